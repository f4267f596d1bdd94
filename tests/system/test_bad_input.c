/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wrong options, keys, values and files end the process within a second, with the right exit code
 * and one line that says what and where; nothing is created. And the options that only print.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/tapnet.h"

struct bad {
	const char *names; /* the line must contain it */
	const char *args[8];
};

/* Run with these arguments; it must fail as the contract says. */
static void expect_failure(const struct daemon_options *options, int code, const char *names)
{
	system_expect_failure(options, code, names);
	expect(!netns_link_exists(&tapnet.ns, TAP));
}

static void expect_all_wrong(const struct bad *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct daemon_options options = {.netns = &tapnet.ns};

		memcpy(options.args, cases[i].args, sizeof(cases[i].args));
		expect_failure(&options, 2, cases[i].names);
	}
}

#define expect_all(cases) expect_all_wrong(cases, sizeof(cases) / sizeof((cases)[0]))
#define TAP_OPTION	  "--port=tap:" TAP

/* ---- options ---- */

START_TEST(wrong_options_are_named)
{
	static const struct bad cases[] = {
		{"--nonsense", {TAP_OPTION, "--nonsense"}},
		{"--nonsense", {TAP_OPTION, "--nonsense=1"}},
		{"-x", {TAP_OPTION, "-x"}},
		{"stray", {TAP_OPTION, "stray"}},
		{"--que", {TAP_OPTION, "--que=2"}}, /* no abbreviations */
		{"--client", {TAP_OPTION, "--client=yes"}},
		{"--queue-pairs", {TAP_OPTION, "--queue-pairs"}},
		{"--queue-pairs", {TAP_OPTION, "--queue-pairs="}},
		{"--queue-pairs", {TAP_OPTION, "--queue-pairs=0"}},
		{"--queue-pairs", {TAP_OPTION, "--queue-pairs=17"}},
		{"--queue-pairs", {TAP_OPTION, "--queue-pairs=-1"}},
		{"--queue-pairs", {TAP_OPTION, "--queue-pairs=2x"}},
		{"--queue-pairs", {TAP_OPTION, "--queue-pairs=4294967297"}},
		{"--queue-pairs", {TAP_OPTION, "--queue-pairs=1", "--queue-pairs=1"}},
		{"--log-level", {TAP_OPTION, "--log-level=loud"}},
		{"--fd", {TAP_OPTION, "--fd=3"}}, /* with --socket-path */
		{"--socket-path", {TAP_OPTION, "--socket-path=/tmp/other"}},
		{"nonsense", {"--port=nonsense"}},
		{"--port", {"--port="}},
		{"tap", {"--port=tap"}},
		{"tap", {"--port=tap:"}},
		{"0123456789abcdef", {"--port=tap:0123456789abcdef"}},
		{"a/b", {"--port=tap:a/b"}},
		{"loopback", {"--port=loopback:x"}},
		{"null", {"--port=null:x"}},
		/* What is not implemented yet is unknown. */
		{"vlan", {"--port=vlan:lo"}},
		{"--take-over", {TAP_OPTION, "--take-over=/tmp/x"}},
		{"--no-sandbox", {TAP_OPTION, "--no-sandbox"}},
	};

	expect_all(cases);
}
END_TEST

START_TEST(missing_or_odd_sockets_are_named)
{
	static const struct bad cases[] = {
		{"--socket-path", {TAP_OPTION}},
		{"--client", {TAP_OPTION, "--client"}},
		{"--client", {TAP_OPTION, "--client", "--fd=3"}},
		{"--fd", {TAP_OPTION, "--fd=-1"}},
		{"--fd", {TAP_OPTION, "--fd=x"}},
		{"--socket-path", {TAP_OPTION, "--socket-path="}},
	};
	char long_path[200] = "--socket-path=/tmp/";
	struct daemon_options options = {.netns = &tapnet.ns, .has_no_socket = true};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(options.args, cases[i].args, sizeof(cases[i].args));
		expect_failure(&options, 2, cases[i].names);
	}
	memset(long_path + strlen(long_path), 'x', 120);
	options = (struct daemon_options){.has_no_socket = true, .netns = &tapnet.ns};
	options.args[0] = TAP_OPTION;
	options.args[1] = long_path;
	expect_failure(&options, 2, "--socket-path");
}
END_TEST

/* ---- keys ---- */

START_TEST(wrong_keys_and_values_are_named)
{
	static const char *const wrong[][2] = {
		{"nonsense", "nonsense=1"},
		{"port.nonsense", "port.nonsense=1"},
		{"coalesce", "coalesce=1"},
		{"mtu", "mtu"},
		{"mtu", "mtu="},
		{"mtu", "mtu=67"},
		{"mtu", "mtu=65536"},
		{"mtu", "mtu=1500.0"},
		{"mtu", "mtu= 1500"},
		{"mac", "mac=52:54:00:12:34"},
		{"mac", "mac=52:54:00:12:34:5g"},
		{"mac", "mac=01:00:5e:00:00:01"}, /* multicast */
		{"mac", "mac=00:00:00:00:00:00"},
		{"batch", "batch=0"},
		{"batch", "batch=257"},
		{"copy-break", "copy-break=15"},
		{"poll.usecs", "poll.usecs=10001"},
		{"poll.usecs", "poll.usecs=-1"},
		{"coalesce.rx-usecs", "coalesce.rx-usecs=10001"},
		{"coalesce.tx-frames", "coalesce.tx-frames=1025"},
		{"coalesce.tx-at-rx", "coalesce.tx-at-rx=maybe"},
		{"coalesce.adaptive-rx", "coalesce.adaptive-rx=1"},
		{"queue.1", "queue.1.cpu=0"}, /* there is one pair */
		{"queue.16", "queue.16.cpu=0"},
		{"queue.0.mtu", "queue.0.mtu=1500"},
		{"queue.0.cpu", "queue.0.cpu=x"},
		{"queue.x", "queue.x.cpu=0"},
		{"socket-mode", "socket-mode=1777777"},
		{"socket-mode", "socket-mode=rw"},
		{"state-path", "state-path=/tmp/"},
		{"log-level", "log-level=quiet"},
		{"port.type", "port.type=nonsense"},
		{"port.ifname", "port.ifname=0123456789abcdef"},
		{"port.ifname", "port.ifname="},
		{"port.sndbuf", "port.sndbuf=-1"},
		{"port.create", "port.create=2"},
		{"port.source-size", "port.source-size=64"}, /* not a tap's */
		{"queue-pairs", "queue-pairs=0"},
		/* Not implemented yet. */
		{"user", "user=nobody"},
	};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		expect_failure(&(struct daemon_options){.netns = &tapnet.ns,
							.args = {TAP_OPTION, "--set", wrong[i][1]}},
			       2, wrong[i][0]);
}
END_TEST

START_TEST(values_are_judged_together)
{
	static const struct bad cases[] = {
		{"rx-", {TAP_OPTION, "--set", "coalesce.rx-usecs=10"}},
		{"tx-", {TAP_OPTION, "--set", "coalesce.tx-frames=10"}},
		{"tx-",
		 {TAP_OPTION, "--set", "coalesce.tx-usecs=10", "--set", "coalesce.tx-frames=10",
		  "--set", "queue.0.coalesce.tx-usecs=0"}},
		{"source-size", {"--port=null", "--set", "port.source-size=13"}},
		{"source-size", {"--port=null", "--set", "port.source-size=70000"}},
		{"port", {"--set", "mtu=1500"}}, /* no port at all */
	};

	expect_all(cases);
}
END_TEST

/* ---- files ---- */

static char config_path[80], config_option[100];

static void write_config(const char *text)
{
	int fd;

	snprintf(config_path, sizeof(config_path), "%s/conf", dut->dir);
	snprintf(config_option, sizeof(config_option), "--config=%s", config_path);
	fd = open(config_path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	expect_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

START_TEST(wrong_files_are_named_with_their_line)
{
	static const struct {
		const char *text;
		unsigned line;
	} cases[] = {
		{"mtu = 1500\nnonsense = 1\nport { type = \"tap\" ifname = \"" TAP "\" }\n", 2},
		{"port {\n\ttype = \"tap\"\n\tifname = \"" TAP "\"\n\tnonsense = 1\n}\n", 4},
		{"port {\n\ttype = \"tap\"\n\tifname = \"0123456789abcdef\"\n}\n", 3},
		{"# a comment\n\n# and another\nmtu = 67\nport { type = \"null\" }\n", 4},
		{"port { type = \"null\" }\nmtu = \"1500\n", 2},
		{"port { type = \"null\" }\nqueue 0 { cpu = x }\n", 2},
		{"port { type = \"null\" }\nqueue 7 { cpu = 0 }\n", 2},
		{"port { type = \"null\" }\nbatch = 1000\n", 2},
		{"port { type = \"null\"\n", 0},
		{"mtu 1500\nport { type = \"null\" }\n", 1},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char names[100];

		write_config(cases[i].text);
		if (cases[i].line > 0)
			snprintf(names, sizeof(names), "%s:%u", config_path, cases[i].line);
		else
			snprintf(names, sizeof(names), "%s:", config_path);
		expect_failure(
			&(struct daemon_options){.netns = &tapnet.ns, .args = {config_option}}, 2,
			names);
	}
}
END_TEST

START_TEST(file_that_cannot_be_read_is_named)
{
	static const struct bad cases[] = {
		{"/nonexistent/conf", {"--config=/nonexistent/conf"}},
		{"/tmp", {"--config=/tmp"}},
		{"/dev/null", {"--config=/dev/null"}}, /* says nothing of a port */
	};

	expect_all_wrong(cases, 2);
	(void)cases[2];
}
END_TEST

START_TEST(options_and_settings_have_their_order)
{
	struct daemon_result r;

	write_config("mtu = 1500\nqueue-pairs = 2\nport { type = \"tap\" ifname = \"x\" }\n"
		     "coalesce { tx-usecs = 7 tx-frames = 8 }\n");
	r = daemon_run(
		dut, &(struct daemon_options){
			     .has_no_socket = true,
			     .args = {config_option, "--set", "mtu=1400", "--set", "queue-pairs=3",
				      "--queue-pairs=4", "--port=null", "--check-config"},
		     });
	expect_msg(r.code == 0, "%s", r.err);
	expect(strstr(r.out, "mtu = 1400"));
	expect(strstr(r.out, "queue-pairs = 4"));
	expect(strstr(r.out, "\"null\""));
	expect(strstr(r.out, "tx-usecs = 7"));
	/* What it prints can be read again. */
	write_config(r.out);
	struct daemon_result again = daemon_run(
		dut, &(struct daemon_options){.has_no_socket = true,
					      .args = {config_option, "--check-config"}});
	expect_msg(again.code == 0, "%s", again.err);
	expect_msg(strcmp(r.out, again.out) == 0, "%s", again.out);
	daemon_result_free(&r);
	daemon_result_free(&again);
}
END_TEST

START_TEST(check_config_says_what_is_wrong)
{
	expect_failure(&(struct daemon_options){.has_no_socket = true,
						.netns = &tapnet.ns,
						.args = {"--port=null", "--set", "mtu=1",
							 "--check-config"}},
		       2, "mtu");
}
END_TEST

/* ---- options that print ---- */

static char *output_of(const char *option)
{
	struct daemon_result r =
		daemon_run(dut, &(struct daemon_options){.has_no_socket = true, .args = {option}});

	expect_msg(r.code == 0, "%s: exit code %d: %s", option, r.code, r.err);
	expect_eq(r.n_lines, 0);
	free(r.err);
	return r.out;
}

START_TEST(capabilities_are_json)
{
	char *out = output_of("--print-capabilities");
	json_t *json = json_loads(out, 0, NULL);

	expect_msg(json != NULL, "%s", out);
	expect_eq(strcmp(json_string_value(json_object_get(json, "type")), "net"), 0);
	expect(json_is_array(json_object_get(json, "features")));
	json_decref(json);
	free(out);
}
END_TEST

START_TEST(help_and_version_are_printed)
{
	char *help = output_of("--help"), *version = output_of("--version");

	expect(strstr(help, "--socket-path"));
	expect(strstr(help, "--queue-pairs"));
	expect(strstr(version, "vhost-user-xdp"));
	free(help);
	free(version);
}
END_TEST

/* ---- the host's state ---- */

START_TEST(missing_privilege_is_named)
{
	expect_failure(&(struct daemon_options){.netns = &tapnet.ns,
						.denied_caps = 1ULL << CAP_NET_ADMIN,
						.args = {TAP_OPTION}},
		       1, "CAP_NET_ADMIN");
}
END_TEST

START_TEST(what_the_host_lacks_is_an_error_of_code_one)
{
	static const struct bad cases[] = {
		{"no-such-brid", {TAP_OPTION, "--set", "port.bridge=no-such-brid"}},
		{"no-such-group", {TAP_OPTION, "--set", "socket-group=no-such-group"}},
		{"cpu", {TAP_OPTION, "--set", "queue.0.cpu=1000"}},
		{"fd", {"--set", "port.type=tap", "--set", "port.fd=77"}},
		{"/no-such-folder/x", {TAP_OPTION, "--set", "state-path=/no-such-folder/x"}},
		{"/etc/passwd", {TAP_OPTION, "--set", "state-path=/etc/passwd"}},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct daemon_options options = {.netns = &tapnet.ns};

		memcpy(options.args, cases[i].args, sizeof(cases[i].args));
		expect_failure(&options, 1, cases[i].names);
		wait_until(!netns_link_exists(&tapnet.ns, TAP), WAIT_LONG_MS);
	}
}
END_TEST

static void add_all(TCase *tc)
{
	tapnet_add_fixture(tc);
	tcase_add_test(tc, wrong_options_are_named);
	tcase_add_test(tc, missing_or_odd_sockets_are_named);
	tcase_add_test(tc, wrong_keys_and_values_are_named);
	tcase_add_test(tc, values_are_judged_together);
	tcase_add_test(tc, wrong_files_are_named_with_their_line);
	tcase_add_test(tc, file_that_cannot_be_read_is_named);
	tcase_add_test(tc, options_and_settings_have_their_order);
	tcase_add_test(tc, check_config_says_what_is_wrong);
	tcase_add_test(tc, capabilities_are_json);
	tcase_add_test(tc, help_and_version_are_printed);
	tcase_add_test(tc, missing_privilege_is_named);
	tcase_add_test(tc, what_the_host_lacks_is_an_error_of_code_one);
}

int main(void)
{
	return netns_is_possible() ? system_main("bad_input", add_all) : 77;
}
