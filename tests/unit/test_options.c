/* SPDX-License-Identifier: BSD-2-Clause */
#include "options.h"

#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "support/conf.h"

#define MAX_WORDS 12
/* 107 bytes, the longest path of a socket; and parts of it */
#define P100                                                                                       \
	"/1234567890123456789012345678901234567890123456789"                                       \
	"01234567890123456789012345678901234567890123456789"
#define P107 P100 "1234567"
#define P103 P100 "123"

static struct log_capture lines;

static void setup(void)
{
	unsetenv("LISTEN_FDS");
	log_capture_start(&lines);
}

static void teardown(void)
{
	log_capture_stop(&lines);
	unsetenv("LISTEN_FDS");
}

/* Parse words, up to a NULL, behind the program's name. */
static int parse(struct options *o, const char *const *words)
{
	static char copies[MAX_WORDS][256];
	char *argv[MAX_WORDS + 2] = {copies[0]};
	int argc = 1;

	strcpy(copies[0], "vhost-user-xdp");
	for (; words[argc - 1]; argc++) {
		ck_assert_int_lt(argc, MAX_WORDS);
		snprintf(copies[argc], sizeof(copies[argc]), "%s", words[argc - 1]);
		argv[argc] = copies[argc];
	}
	return options_parse(o, argc, argv);
}

START_TEST(every_option_is_taken)
{
	const char *words[] = {"--socket-path=/run/a",
			       "--client",
			       "--config=/etc/a.conf",
			       "--port=tap:vm0",
			       "--queue-pairs=16",
			       "--set=batch=7",
			       "--set=mac=1:2",
			       "--ctl-path=/run/b",
			       "--one-shot",
			       "--log-level=debug",
			       NULL};
	struct options o;

	ck_assert_int_eq(parse(&o, words), 0);
	ck_assert_int_eq(o.action, OPTIONS_RUN);
	ck_assert_str_eq(o.socket_path, "/run/a");
	ck_assert(o.is_client);
	ck_assert(o.is_one_shot);
	ck_assert_int_eq(o.fd, -1);
	ck_assert_str_eq(o.ctl_path, "/run/b");
	ck_assert_str_eq(o.overrides.file, "/etc/a.conf");
	ck_assert_str_eq(o.overrides.port, "tap:vm0");
	ck_assert_uint_eq(o.overrides.n_pairs, 16);
	ck_assert_str_eq(o.overrides.log_level, "debug");
	ck_assert_uint_eq(o.overrides.n_sets, 2);
	ck_assert_str_eq(o.overrides.sets[0], "batch=7");
	ck_assert_str_eq(o.overrides.sets[1], "mac=1:2");
	log_assert_none(&lines);
}
END_TEST

START_TEST(value_may_be_the_next_word)
{
	const char *words[] = {"--socket-path", "/run/a",	 "--set", "batch=7", "--set",
			       "mtu=99",	"--queue-pairs", "2",	  NULL};
	struct options o;

	ck_assert_int_eq(parse(&o, words), 0);
	ck_assert_str_eq(o.socket_path, "/run/a");
	ck_assert_uint_eq(o.overrides.n_pairs, 2);
	ck_assert_uint_eq(o.overrides.n_sets, 2);
	ck_assert_str_eq(o.overrides.sets[1], "mtu=99");
}
END_TEST

START_TEST(what_is_not_given_is_left_open)
{
	const char *words[] = {"--fd=0", NULL};
	struct options o;

	ck_assert_int_eq(parse(&o, words), 0);
	ck_assert_int_eq(o.fd, 0);
	ck_assert_ptr_null(o.socket_path);
	ck_assert_ptr_null(o.ctl_path);
	ck_assert(!o.is_client);
	ck_assert(!o.is_one_shot);
	ck_assert_ptr_null(o.overrides.file);
	ck_assert_ptr_null(o.overrides.port);
	ck_assert_ptr_null(o.overrides.log_level);
	ck_assert_uint_eq(o.overrides.n_pairs, 0);
	ck_assert_uint_eq(o.overrides.n_sets, 0);
}
END_TEST

static const struct {
	const char *words[MAX_WORDS];
	enum options_action action;
} actions[] = {
	{{"--check-config"}, OPTIONS_CHECK_CONFIG},
	{{"--check-config", "--config=/x", "--socket-path=/y"}, OPTIONS_CHECK_CONFIG},
	{{"--version"}, OPTIONS_VERSION},
	{{"--help"}, OPTIONS_HELP},
	{{"--socket-path=/x", "--help"}, OPTIONS_HELP},
	/* The first of them is done, whatever follows. */
	{{"--help", "--version"}, OPTIONS_HELP},
	{{"--version", "--nonsense"}, OPTIONS_VERSION},
	{{"--print-capabilities"}, OPTIONS_PRINT_CAPABILITIES},
	/* vhost-user's rule: all else is ignored. */
	{{"--nonsense", "word", "--fd", "--print-capabilities"}, OPTIONS_PRINT_CAPABILITIES},
	{{"--print-capabilities", "--client"}, OPTIONS_PRINT_CAPABILITIES},
};

START_TEST(actions_need_no_socket)
{
	struct options o;

	ck_assert_int_eq(parse(&o, actions[_i].words), 0);
	ck_assert_int_eq(o.action, actions[_i].action);
	log_assert_none(&lines);
}
END_TEST

static const struct {
	const char *words[MAX_WORDS];
	const char *log;
} refused[] = {
	{{NULL}, "--socket-path=PATH"},
	{{"--port=null"}, "--socket-path=PATH"},
	{{"--client"}, "--client: "},
	{{"--client", "--check-config"}, "--client: "},
	{{"--client", "--fd=3"}, "--client: "},
	{{"--fd=3", "--socket-path=/x"}, "--fd: "},
	{{"--fd=-1"}, "--fd: "},
	{{"--fd=x"}, "--fd: "},
	{{"--fd=3x"}, "--fd: "},
	{{"--fd= 3"}, "--fd: "},
	{{"--fd=0x3"}, "--fd: "},
	{{"--fd=2147483648"}, "--fd: "},
	{{"--fd=99999999999999999999"}, "--fd: "},
	{{"--fd="}, "--fd: needs a value"},
	{{"--fd"}, "--fd: needs a value"},
	{{"--socket-path"}, "--socket-path: needs a value"},
	{{"--socket-path="}, "--socket-path: needs a value"},
	{{"--socket-path", ""}, "--socket-path: needs a value"},
	{{"--socket-path=/x", "--config="}, "--config: needs a value"},
	{{"--socket-path=/x", "--port="}, "--port: needs a value"},
	{{"--socket-path=/x", "--set="}, "--set: needs a value"},
	{{"--socket-path=/x", "--ctl-path="}, "--ctl-path: needs a value"},
	{{"--socket-path=/x", "--log-level="}, "--log-level: needs a value"},
	{{"--socket-path=/x", "--queue-pairs="}, "--queue-pairs: needs a value"},
	{{"--socket-path=/x", "--queue-pairs=0"}, "--queue-pairs: "},
	{{"--socket-path=/x", "--queue-pairs=17"}, "--queue-pairs: "},
	{{"--socket-path=/x", "--queue-pairs=-1"}, "--queue-pairs: "},
	{{"--socket-path=/x", "--queue-pairs=4294967297"}, "--queue-pairs: "},
	{{"--socket-path=/x", "--queue-pairs=one"}, "--queue-pairs: "},
	{{"--socket-path=" P107 "8"}, "--socket-path: "},
	{{"--socket-path=/x", "--ctl-path=" P107 "8"}, "--ctl-path: "},
	/* The control socket's own path would be too long. */
	{{"--socket-path=" P103 "4"}, "--ctl-path"},
	{{"--socket-path=/x", "--ctl-path=/x"}, "--ctl-path: "},
	{{"--socket-path=/x", "--socket-path=/y"}, "--socket-path: given more than once"},
	{{"--socket-path=/x", "--one-shot", "--one-shot"}, "--one-shot: given more than once"},
	{{"--check-config", "--check-config"}, "--check-config: given more than once"},
	{{"--socket-path=/x", "word"}, "'word': unexpected"},
	{{"word", "--socket-path=/x"}, "'word': unexpected"},
	{{"--socket-path=/x", ""}, "'': unexpected"},
	{{"--socket-path=/x", "--"}, "--: unknown option"},
	{{"--socket-path=/x", "--", "word"}, "--: unknown option"},
	{{"--socket-path=/x", "-"}, "-: unknown option"},
	{{"-h"}, "-h: unknown option"},
	{{"-socket-path=/x"}, "-socket-path=/x: unknown option"},
	{{"--socket=/x"}, "--socket=/x: unknown option"},
	{{"--socket-pat=/x"}, "--socket-pat=/x: unknown option"},
	{{"--socket-paths=/x"}, "--socket-paths=/x: unknown option"},
	{{"--cli"}, "--cli: unknown option"},
	{{"--versio"}, "--versio: unknown option"},
	{{"--=x"}, "--=x: unknown option"},
	{{"--client=yes", "--socket-path=/x"}, "--client: takes no value"},
	{{"--client=", "--socket-path=/x"}, "--client: takes no value"},
	{{"--help=x"}, "--help: takes no value"},
	{{"--take-over=/x"}, "--take-over=/x: unknown option"},
	{{"--no-sandbox"}, "--no-sandbox: unknown option"},
	{{"--a\nb"}, "--a?b: unknown option"},
};

START_TEST(wrong_options_are_refused_with_one_line)
{
	struct options o;

	ck_assert_int_eq(parse(&o, refused[_i].words), -EINVAL);
	log_assert_one_with(&lines, refused[_i].log);
}
END_TEST

START_TEST(longest_paths_are_taken)
{
	const char *alone[] = {"--socket-path=" P103, NULL};
	const char *both[] = {"--socket-path=" P107, "--ctl-path=" P100, NULL};
	struct options o;

	ck_assert_int_eq(parse(&o, alone), 0);
	ck_assert_int_eq(parse(&o, both), 0);
	log_assert_none(&lines);
}
END_TEST

START_TEST(systemd_may_bring_the_socket)
{
	const char *words[] = {"--port=null", NULL}, *client[] = {"--client", NULL};
	struct options o;

	setenv("LISTEN_FDS", "1", 1);
	ck_assert_int_eq(parse(&o, words), 0);
	ck_assert_int_eq(o.fd, -1);
	ck_assert_ptr_null(o.socket_path);
	ck_assert_int_eq(parse(&o, client), -EINVAL);
	log_assert_one_with(&lines, "--client: ");
}
END_TEST

START_TEST(sets_are_limited)
{
	static char set[] = "--set=batch=1";
	char *argv[OPTIONS_MAX_SETS + 3];
	struct options o;
	int argc = 0;

	argv[argc++] = set;
	argv[argc++] = (char[]){"--socket-path=/x"};
	for (int i = 0; i < OPTIONS_MAX_SETS; i++)
		argv[argc++] = set;
	ck_assert_int_eq(options_parse(&o, argc, argv), 0);
	ck_assert_uint_eq(o.overrides.n_sets, OPTIONS_MAX_SETS);
	argv[argc++] = set;
	ck_assert_int_eq(options_parse(&o, argc, argv), -EINVAL);
	log_assert_one_with(&lines, "--set: ");
}
END_TEST

/* Return: what is printed to stdout; the caller frees. */
static char *printed(enum options_action action)
{
	int saved = dup(STDOUT_FILENO), file = memfd_create("out", MFD_CLOEXEC);
	char *text = calloc(1, 8192);

	ck_assert_ptr_nonnull(text);
	fflush(stdout);
	ck_assert_int_eq(dup2(file, STDOUT_FILENO), STDOUT_FILENO);
	options_print(action);
	fflush(stdout);
	ck_assert_int_eq(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
	ck_assert_int_gt(pread(file, text, 8191, 0), 0);
	close(saved);
	close(file);
	return text;
}

START_TEST(capabilities_are_the_json_that_vhost_user_defines)
{
	char *text = printed(OPTIONS_PRINT_CAPABILITIES);
	json_t *root = json_loads(text, 0, NULL);

	ck_assert_ptr_nonnull(root);
	ck_assert_uint_eq(json_object_size(root), 2);
	ck_assert_str_eq(json_string_value(json_object_get(root, "type")), "net");
	ck_assert(json_is_array(json_object_get(root, "features")));
	json_decref(root);
	free(text);
}
END_TEST

START_TEST(help_shows_every_option)
{
	static const char *const names[] = {
		"socket-path=PATH",
		"client ",
		"fd=N",
		"config=FILE",
		"port=SPEC",
		"queue-pairs=N",
		"set=KEY=VALUE",
		"ctl-path=PATH",
		"one-shot ",
		"check-config ",
		"print-capabilities ",
		"log-level=LEVEL",
		"version ",
		"help ",
	};
	char *text = printed(OPTIONS_HELP);

	for (size_t i = 0; i < array_size(names); i++) {
		char row[40];

		snprintf(row, sizeof(row), "\n  --%s", names[i]);
		ck_assert_msg(strstr(text, row) != NULL, "%s", names[i]);
	}
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		ck_assert_int_le(strcspn(line, "\n"), 100);
	free(text);
}
END_TEST

START_TEST(version_is_one_line)
{
	char *text = printed(OPTIONS_VERSION);

	ck_assert_int_eq(strncmp(text, "vhost-user-xdp ", 15), 0);
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("options");
	TCase *tc = tcase_create("options");
	SRunner *runner;
	int n_failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, every_option_is_taken);
	tcase_add_test(tc, value_may_be_the_next_word);
	tcase_add_test(tc, what_is_not_given_is_left_open);
	tcase_add_loop_test(tc, actions_need_no_socket, 0, array_size(actions));
	tcase_add_loop_test(tc, wrong_options_are_refused_with_one_line, 0, array_size(refused));
	tcase_add_test(tc, longest_paths_are_taken);
	tcase_add_test(tc, systemd_may_bring_the_socket);
	tcase_add_test(tc, sets_are_limited);
	tcase_add_test(tc, capabilities_are_the_json_that_vhost_user_defines);
	tcase_add_test(tc, help_shows_every_option);
	tcase_add_test(tc, version_is_one_line);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
