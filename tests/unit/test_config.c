/* SPDX-License-Identifier: BSD-2-Clause */
/* Values, where they come from, and what does not fit together. The file is test_config_file.c. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "support/conf.h"

static struct log_capture lines;
static struct conf_file conf = {.fd = -1};

static void setup(void)
{
	log_capture_start(&lines);
}

static void teardown(void)
{
	log_capture_stop(&lines);
	conf_close(&conf);
}

static int load_file(struct config *cfg, const char *text)
{
	conf_write(&conf, text);
	return config_load(cfg, &(struct config_overrides){.file = conf.path});
}

/* Load one --set, upon a null port. */
static int load_set(struct config *cfg, const char *set)
{
	const char *sets[] = {set};
	struct config_overrides over = {.port = "null", .sets = sets, .n_sets = 1};

	return config_load(cfg, &over);
}

static void assert_pair_defaults(const struct netdev_pair_config *pair)
{
	ck_assert_int_eq(pair->cpu, -1);
	ck_assert_uint_eq(pair->params.batch, 64);
	ck_assert_uint_eq(pair->params.poll_usecs, 0);
	ck_assert_uint_eq(pair->params.rx.usecs, 0);
	ck_assert_uint_eq(pair->params.rx.frames, 0);
	ck_assert_uint_eq(pair->params.tx.usecs, 0);
	ck_assert_uint_eq(pair->params.tx.frames, 0);
	ck_assert(pair->params.tx_at_rx);
}

static void assert_defaults(const struct config *cfg)
{
	ck_assert_uint_eq(cfg->n_pairs, 1);
	ck_assert(!cfg->has_mac);
	ck_assert_uint_eq(cfg->mtu, 0);
	ck_assert_int_eq(cfg->log_level, LOG_LEVEL_INFO);
	ck_assert_uint_eq(cfg->socket_mode, 0660);
	ck_assert_str_eq(cfg->socket_group, "");
	ck_assert(!cfg->offer_config);
	ck_assert_int_eq(cfg->port.fd, -1);
	ck_assert_str_eq(cfg->port.bridge, "");
	ck_assert_uint_eq(cfg->port.sndbuf, 0);
	ck_assert(cfg->port.create);
	ck_assert_uint_eq(cfg->port.source_size, 0);
	for (unsigned i = 0; i < DEVICE_MAX_PAIRS; i++)
		assert_pair_defaults(&cfg->pairs[i]);
}

START_TEST(defaults_are_as_documented)
{
	struct config_overrides over = {.port = "tap:vm0"};
	struct config cfg;

	ck_assert_int_eq(config_load(&cfg, &over), 0);
	assert_defaults(&cfg);
	ck_assert_ptr_eq(cfg.port.ops, &tap_port);
	ck_assert_str_eq(cfg.port.ifname, "vm0");
	log_assert_none(&lines);
}
END_TEST

START_TEST(queue_section_wins_wherever_it_stands)
{
	struct config cfg;

	ck_assert_int_eq(load_file(&cfg, "queue 0 { coalesce { rx-usecs = 7 tx-at-rx = off } }\n"
					 "coalesce { rx-usecs = 9 rx-frames = 4 }\n"
					 "port { type = null }\n"),
			 0);
	ck_assert_uint_eq(cfg.pairs[0].params.rx.usecs, 7);
	ck_assert_uint_eq(cfg.pairs[0].params.rx.frames, 4);
	ck_assert(!cfg.pairs[0].params.tx_at_rx);
}
END_TEST

START_TEST(options_win_over_set_and_set_over_the_file)
{
	const char *sets[] = {"batch=7", "log-level=warn", "queue-pairs=3", "batch=8"};
	struct config_overrides over = {.file = conf.path,
					.sets = sets,
					.n_sets = array_size(sets),
					.n_pairs = 4,
					.log_level = "error"};
	struct config cfg;

	conf_write(&conf, "batch = 6 log-level = info queue-pairs = 2 port { type = null }");
	ck_assert_int_eq(config_load(&cfg, &over), 0);
	ck_assert_uint_eq(cfg.pairs[0].params.batch, 8);
	ck_assert_uint_eq(cfg.pairs[3].params.batch, 8);
	ck_assert_uint_eq(cfg.n_pairs, 4);
	ck_assert_int_eq(cfg.log_level, LOG_LEVEL_ERROR);
}
END_TEST

START_TEST(port_option_replaces_type_and_name)
{
	struct config_overrides over = {.file = conf.path, .port = "tap:vm1"};
	struct config cfg;

	conf_write(&conf, "port { type = tap ifname = vm0 sndbuf = 2049 }");
	ck_assert_int_eq(config_load(&cfg, &over), 0);
	ck_assert_str_eq(cfg.port.ifname, "vm1");
	ck_assert_uint_eq(cfg.port.sndbuf, 2049);

	conf_write(&conf, "port { type = tap ifname = vm0 }");
	over.port = "loopback";
	ck_assert_int_eq(config_load(&cfg, &over), 0);
	ck_assert_ptr_eq(cfg.port.ops, &loopback_port);
	ck_assert_str_eq(cfg.port.ifname, "");
	log_assert_none(&lines);
}
END_TEST

START_TEST(passed_tap_fd_needs_no_name)
{
	struct config cfg;

	ck_assert_int_eq(load_file(&cfg, "port { type = tap fd = 0 }"), 0);
	ck_assert_int_eq(cfg.port.fd, 0);
	ck_assert_str_eq(cfg.port.ifname, "");
}
END_TEST

START_TEST(source_of_null_port_is_configured)
{
	struct config cfg;

	ck_assert_int_eq(load_file(&cfg, "port { type = \"null\" source-size = 64 }"), 0);
	ck_assert_ptr_eq(cfg.port.ops, &null_port);
	ck_assert_uint_eq(cfg.port.source_size, 64);
}
END_TEST

static const struct {
	const char *text;
	bool value;
} bools[] = {
	{"true", true},	  {"on", true},	  {"yes", true}, {"TRUE", true},
	{"false", false}, {"off", false}, {"no", false}, {"No", false},
};

START_TEST(bool_has_three_spellings)
{
	struct config cfg;
	char set[64];

	snprintf(set, sizeof(set), "offer-config=%s", bools[_i].text);
	ck_assert_int_eq(load_set(&cfg, set), 0);
	ck_assert(cfg.offer_config == bools[_i].value);
}
END_TEST

/* ---- values ---- */

#define TEXT_50	 "/abcdefghijklmnopqrstuvwxyz/abcdefghijklmnopqrstuv"
#define PATH_254 TEXT_50 TEXT_50 TEXT_50 TEXT_50 TEXT_50 "/abc"

/* Keys with what they just take and just do not; `beside` makes the rest of the file fit. */
static const struct {
	const char *path, *beside;
	const char *good[4], *bad[12];
} ranges[] = {
	{"queue-pairs",
	 "",
	 {"1", "16"},
	 {"0", "17", "-1", "", "1x", " 1", "0x1", "01", "1.0", "+1"}},
	{"mtu", "", {"68", "65535"}, {"67", "65536", "0", "-1500", "18446744073709551684"}},
	{"batch", "", {"1", "256"}, {"0", "257", "064", "0x40", "99999999999999999999999", "-64"}},
	{"copy-break", "", {"0", "16", "4096"}, {"1", "15", "4097", "-16", "64b"}},
	{"poll.usecs", "", {"0", "10000"}, {"10001", "-1", "1us", "4294967296"}},
	{"coalesce.rx-usecs", "coalesce.rx-frames=9", {"1", "10000"}, {"10001", "-1", "00"}},
	{"coalesce.rx-frames", "coalesce.rx-usecs=9", {"1", "1024"}, {"1025", "-1", "a"}},
	{"coalesce.tx-usecs", "coalesce.tx-frames=9", {"1", "10000"}, {"10001", "-1", "1e3"}},
	{"coalesce.tx-frames", "coalesce.tx-usecs=9", {"1", "1024"}, {"1025", "-1", "4294967297"}},
	{"coalesce.adaptive-rx", "", {"true", "false"}, {"1", "", "maybe"}},
	{"queue.0.coalesce.adaptive-tx", "", {"on", "off"}, {"2", "maybe"}},
	{"coalesce.tx-at-rx", "", {"true", "false"}, {"1", "0", "", "maybe", "tru"}},
	{"queue.0.cpu", "", {"0", "1023"}, {"1024", "-1", "", "all"}},
	{"queue.0.coalesce.rx-usecs", "coalesce.rx-frames=9", {"1", "10000"}, {"10001", "-1"}},
	{"offer-config", "", {"true", "off"}, {"1", "2", ""}},
	{"socket-mode",
	 "",
	 {"0", "0777", "0660", "00600"},
	 {"01000", "660", "440", "0888", "0x1ff", "-1", "", "rw", "077777777777777777777777"}},
	{"log-level", "", {"error", "warn", "info", "debug"}, {"", "trace", "ERROR", "3"}},
	{"mac",
	 "",
	 {"52:54:00:12:34:56", "02:00:00:00:00:00", "fe:FF:ff:ff:ff:ff"},
	 {"", "52:54:00:12:34", "52:54:00:12:34:56:78", "52-54-00-12-34-56", "525400123456",
	  "53:54:00:12:34:56", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "52:54:00:12:34:5g",
	  "52:54:00:12:34: 6", "5:54:00:12:34:567"}},
	{"socket-group",
	 "",
	 {"", "qemu",
	  "a234567890123456789012345678901234567890123456789012345678901"
	  "23"},
	 {"a2345678901234567890123456789012345678901234567890123456789012345", "a\nb", "a:b"}},
	{"state-path",
	 "",
	 {"", "/run/x.state", "x y:z", PATH_254 "b"},
	 {PATH_254 "bc", "/run/", "/", "a\nb", "a\x7f"}},
	{"port.type", "", {"null", "loopback"}, {"", "xdp0", "Tap", "tap0", "nul"}},
	{"port.ifname",
	 "port.type=tap",
	 {"a", "vm0.100", "abcdefghijklmno"},
	 {"", "abcdefghijklmnop", "a/b", "a b", "a\tb", "a\n", ".", "..", "a:b", "vm%d"}},
	{"port.bridge",
	 "port.type=tap port.ifname=vm0",
	 {"", "br0", "abcdefghijklmno"},
	 {"abcdefghijklmnop", "a/b", "a b"}},
	{"port.sndbuf",
	 "port.type=tap port.ifname=vm0",
	 {"0", "2048", "2147483647"},
	 {"2147483648", "2047", "-1"}},
	{"port.fd", "port.type=tap", {"0", "2147483647"}, {"2147483648", "-1", "", "3 4", "stdin"}},
	{"port.create", "port.type=tap port.ifname=vm0", {"true", "no"}, {"2", ""}},
	{"port.queues",
	 "port.type=xdp port.ifname=eth0",
	 {"0", "63"},
	 {"64", "-1", "", "0,0", "1,", ",1", "1 2", "all",
	  "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"}},
	{"port.mode",
	 "port.type=xdp port.ifname=eth0",
	 {"auto", "native", "generic"},
	 {"", "skb", "Auto", "0"}},
	{"port.zero-copy",
	 "port.type=xdp port.ifname=eth0",
	 {"auto", "on", "off"},
	 {"", "true", "1"}},
	{"port.steer", "port.type=xdp port.ifname=eth0", {"all"}, {"", "MAC", "none"}},
	{"port.attach", "port.type=xdp port.ifname=eth0", {"link", "dispatcher"}, {"", "netlink"}},
	{"port.frames",
	 "port.type=xdp port.ifname=eth0",
	 {"64", "4096", "65536"},
	 {"0", "32", "63", "100", "131072", "-64", ""}},
	{"port.frame-size",
	 "port.type=xdp port.ifname=eth0",
	 {"2048", "4096"},
	 {"0", "1024", "1500", "3072", "8192", ""}},
	{"port.source-size",
	 "port.type=null",
	 {"0", "14", "65553"},
	 {"1", "13", "65554", "-14", "00"}},
};

/* Load PATH=VALUE after `beside`, which is a list of sets. */
static int load_beside(struct config *cfg, const char *beside, const char *path, const char *value)
{
	char list[128], set[512];
	const char *sets[8];
	unsigned n = 0;

	sets[n++] = "port.type=null";
	snprintf(list, sizeof(list), "%s", beside);
	for (char *item = strtok(list, " "); item; item = strtok(NULL, " "))
		sets[n++] = item;
	snprintf(set, sizeof(set), "%s=%s", path, value);
	sets[n++] = set;

	struct config_overrides over = {.sets = sets, .n_sets = n};

	return config_load(cfg, &over);
}

START_TEST(value_at_the_bound_is_taken)
{
	for (unsigned i = 0; i < array_size(ranges[_i].good) && ranges[_i].good[i]; i++) {
		struct config cfg;

		ck_assert_msg(load_beside(&cfg, ranges[_i].beside, ranges[_i].path,
					  ranges[_i].good[i]) == 0,
			      "%s=%s", ranges[_i].path, ranges[_i].good[i]);
	}
	log_assert_none(&lines);
}
END_TEST

START_TEST(value_beyond_the_bound_is_refused_by_set)
{
	for (unsigned i = 0; i < array_size(ranges[_i].bad) && ranges[_i].bad[i]; i++) {
		const char *words[] = {ranges[_i].path, "--set ", "must be", NULL};
		struct config cfg;

		ck_assert_msg(load_beside(&cfg, ranges[_i].beside, ranges[_i].path,
					  ranges[_i].bad[i]) == -EINVAL,
			      "%s=%s", ranges[_i].path, ranges[_i].bad[i]);
		log_assert_one(&lines, words);
	}
}
END_TEST

/* The file that has `value` in line 3, as a quoted string, under a path of --set. */
static void write_conf_value(const char *path, const char *value)
{
	char text[512], head[64] = "", tail[8] = "";
	int queue;

	if (sscanf(path, "queue.%d.", &queue) == 1) {
		snprintf(head, sizeof(head), "queue %d { ", queue);
		strcat(tail, " }");
		path = strchr(strchr(path, '.') + 1, '.') + 1;
	}

	const char *dot = strchr(path, '.');

	if (dot) {
		snprintf(head + strlen(head), sizeof(head) - strlen(head), "%.*s { ",
			 (int)(dot - path), path);
		strcat(tail, " }");
		path = dot + 1;
	}
	snprintf(text, sizeof(text), "# one\n/* two */\n%s%s = '%s'%s\n", head, path, value, tail);
	conf_write(&conf, text);
}

START_TEST(value_beyond_the_bound_is_refused_in_the_file)
{
	for (unsigned i = 0; i < array_size(ranges[_i].bad) && ranges[_i].bad[i]; i++) {
		struct config_overrides over = {.file = conf.path, .port = "null"};
		const char *value = ranges[_i].bad[i];
		char where[100];
		const char *words[] = {ranges[_i].path, where, "must be", NULL};
		struct config cfg;

		write_conf_value(ranges[_i].path, value);
		/* A newline in a value is one in the file. */
		snprintf(where, sizeof(where), "%s:%d: ", conf.path, strchr(value, '\n') ? 4 : 3);
		ck_assert_msg(config_load(&cfg, &over) == -EINVAL, "%s=%s", ranges[_i].path, value);
		log_assert_one(&lines, words);
	}
}
END_TEST

START_TEST(overridden_value_is_still_judged)
{
	const char *sets[] = {"batch=7"};
	struct config_overrides over = {
		.file = conf.path, .port = "null", .sets = sets, .n_sets = 1};
	struct config cfg;

	conf_write(&conf, "batch = 0");
	ck_assert_int_eq(config_load(&cfg, &over), -EINVAL);
	log_assert_one_with(&lines, ":1: batch must be");
}
END_TEST

static const char *const bad_sets[] = {
	"",
	"batch",
	"=",
	"=7",
	"unknown=7",
	"port=null",
	"port.=1",
	".batch=7",
	"batch.=7",
	"port.batch=7",
	"cpu=1",
	"queue.0.batch=7",
	"queue.0=1",
	"queue.0.=1",
	"queue.16.cpu=1",
	"queue.-1.cpu=1",
	"queue.a.cpu=1",
	"queue..cpu=1",
	"queue.00.cpu=1",
	"queue.0.port.type=tap",
	"queue.99999999999999999999.cpu=1",
	"user=x",
	"port.mode=auto",
	"port.zero-copy=on",
	"batch =7",
	"BATCH=7",
	"a-key-that-is-far-longer-than-any-key-which-is-known-here=7",
	"a\nb=7",
};

START_TEST(bad_set_is_refused_with_one_line)
{
	struct config cfg;

	ck_assert_int_eq(load_set(&cfg, bad_sets[_i]), -EINVAL);
	log_assert_one_with(&lines, "--set ");
}
END_TEST

START_TEST(unknown_key_of_set_is_named)
{
	struct config cfg;

	ck_assert_int_eq(load_set(&cfg, "port.speed=7"), -EINVAL);
	log_assert_one_with(&lines, "--set port.speed=7: port.speed is an unknown key");
}
END_TEST

/* ---- what does not fit together ---- */

static const struct {
	const char *text;
	const char *words[4];
} misfits[] = {
	{"", {"--port=tap:IFNAME", "port {"}},
	{"port { }", {"--port=tap:IFNAME", "port {"}},
	{"port {\n ifname = vm0 }", {":2: ", "port.ifname", "port.type"}},
	{"port {\n type = tap }", {":2: ", "port.type", "port.ifname", "port.fd"}},
	{"port { type = tap ifname = vm0\n fd = 3 }", {":2: ", "port.fd", "port.ifname"}},
	{"queue-pairs = 2\nport { type = tap fd = 3 }", {":2: ", "port.fd", "queue-pairs"}},
	{"port { type = tap ifname = vm0\n source-size = 0 }", {":2: ", "port.source-size", "tap"}},
	{"port { type = null\n ifname = vm0 }", {":2: ", "port.ifname", "null"}},
	{"port { type = null\n fd = 3 }", {":2: ", "port.fd", "null"}},
	{"port { type = null\n bridge = br0 }", {":2: ", "port.bridge", "null"}},
	{"port { type = null\n sndbuf = 0 }", {":2: ", "port.sndbuf", "null"}},
	{"port { type = null\n create = true }", {":2: ", "port.create", "null"}},
	{"port { type = loopback\n source-size = 64 }", {":2: ", "port.source-size", "loopback"}},
	{"port { type = loopback\n ifname = vm0 }", {":2: ", "port.ifname", "loopback"}},
	{"port { type = null }\ncoalesce { rx-usecs = 20 }",
	 {":2: ", "queue 0", "rx-usecs", "rx-frames"}},
	{"port { type = null }\ncoalesce { rx-frames = 20 }",
	 {":2: ", "queue 0", "rx-usecs", "rx-frames"}},
	{"port { type = null }\ncoalesce { tx-usecs = 20 tx-frames = 0 }",
	 {":2: ", "queue 0", "tx-usecs", "tx-frames"}},
	{"port { type = null } queue-pairs = 2 coalesce { rx-usecs = 20 rx-frames = 20 }\n"
	 "queue 1 { coalesce {\n rx-frames = 0 } }",
	 {":3: ", "queue 1", "rx-usecs", "rx-frames"}},
	{"port { type = null } queue-pairs = 2\nqueue 1 { coalesce { tx-frames = 9 } }",
	 {":2: ", "queue 1", "tx-usecs", "tx-frames"}},
};

START_TEST(misfit_is_refused_with_one_line)
{
	const char *words[] = {misfits[_i].words[0], misfits[_i].words[1], misfits[_i].words[2],
			       misfits[_i].words[3], NULL};
	struct config cfg;

	ck_assert_int_eq(load_file(&cfg, misfits[_i].text), -EINVAL);
	log_assert_one(&lines, words);
}
END_TEST

START_TEST(both_or_neither_is_judged_on_the_merged_result)
{
	const char *sets[] = {"coalesce.tx-frames=3"};
	struct config_overrides over = {.file = conf.path, .sets = sets, .n_sets = 1};
	struct config cfg;

	/* Each part alone would be wrong. */
	conf_write(&conf,
		   "port { type = null } queue-pairs = 2 coalesce { rx-usecs = 20 tx-usecs = 5 }\n"
		   "queue 0 { coalesce { rx-frames = 4 } } queue 1 { coalesce { rx-usecs = 0 } }");
	ck_assert_int_eq(config_load(&cfg, &over), 0);
	ck_assert_uint_eq(cfg.pairs[0].params.rx.usecs, 20);
	ck_assert_uint_eq(cfg.pairs[0].params.rx.frames, 4);
	ck_assert_uint_eq(cfg.pairs[1].params.rx.usecs, 0);
	ck_assert_uint_eq(cfg.pairs[1].params.tx.frames, 3);
	log_assert_none(&lines);
}
END_TEST

START_TEST(misfit_of_set_names_the_option)
{
	struct config cfg;

	ck_assert_int_eq(load_set(&cfg, "queue.0.coalesce.rx-usecs=20"), -EINVAL);
	log_assert_one_with(&lines, "--set queue.0.coalesce.rx-usecs=20: queue 0 ");
	ck_assert_int_eq(load_set(&cfg, "queue.1.cpu=1"), -EINVAL);
	log_assert_one_with(&lines, "--set queue.1.cpu=1: queue 1 ");
	ck_assert_int_eq(load_set(&cfg, "port.ifname=vm0"), 0);
	log_assert_none(&lines);
}
END_TEST

static const char *const bad_ports[] = {
	"tap",	    "tap:",	 "tap:a/b",    "tap:abcdefghijklmnop",
	"tap:a b",  "tap:vm0:1", "xdp:eth0:1", "vm0",
	"null:vm0", "loopback:", ":vm0",       "",
	":",	    "xdp",	 "xdp:",       "xdp:abcdefghijklmnop",
};

START_TEST(bad_port_option_is_refused_with_one_line)
{
	struct config_overrides over = {.port = bad_ports[_i]};
	struct config cfg;

	ck_assert_int_eq(config_load(&cfg, &over), -EINVAL);
	log_assert_one_with(&lines, "--port ");
}
END_TEST

START_TEST(bad_log_level_option_is_refused_with_one_line)
{
	struct config_overrides over = {.port = "null", .log_level = "loud"};
	struct config cfg;

	ck_assert_int_eq(config_load(&cfg, &over), -EINVAL);
	log_assert_one_with(&lines, "--log-level loud: ");
}
END_TEST

START_TEST(bad_number_of_pairs_is_refused_with_one_line)
{
	struct config_overrides over = {.port = "null", .n_pairs = 17};
	struct config cfg;

	ck_assert_int_eq(config_load(&cfg, &over), -EINVAL);
	log_assert_one_with(&lines, "--queue-pairs 17: ");
}
END_TEST

/* ---- changes at run time ---- */

static const char every_fixed_key[] =
	"queue-pairs = 2 mac = 52:54:00:12:34:56 mtu = 1500 socket-mode = 0600\n"
	"socket-group = qemu state-path = /x offer-config = true\n"
	"port { type = tap ifname = vm0 }\n"
	"queue 0 { cpu = 1 } batch = 1 log-level = debug poll { usecs = 1 }\n"
	"coalesce { rx-usecs = 1 rx-frames = 1 }";

START_TEST(reload_warns_of_keys_that_cannot_change)
{
	struct config running, wanted;
	const char *words[] = {"warn: ",      "queue-pairs",  "mac",	     "mtu",
			       "socket-mode", "socket-group", "state-path",  "offer-config",
			       "port.type",   "port.ifname",  "queue.0.cpu", NULL};

	ck_assert_int_eq(load_file(&running, "port { type = null }"), 0);
	ck_assert_int_eq(load_file(&wanted, every_fixed_key), 0);
	config_warn_fixed(&running, &wanted);
	ck_assert_uint_eq(log_capture_count(&lines, "batch"), 0);
	ck_assert_uint_eq(log_capture_count(&lines, "coalesce"), 0);
	ck_assert_uint_eq(log_capture_count(&lines, "poll"), 0);
	ck_assert_uint_eq(log_capture_count(&lines, "log-level"), 0);
	log_assert_one(&lines, words);
}
END_TEST

START_TEST(reload_is_silent_about_what_can_change)
{
	struct config running, wanted;

	ck_assert_int_eq(load_file(&running, "port { type = null }"), 0);
	ck_assert_int_eq(load_file(&wanted,
				   "port { type = null } batch = 1 poll { usecs = 1 }\n"
				   "coalesce { rx-usecs = 1 rx-frames = 1 tx-at-rx = no }\n"
				   "log-level = debug"),
			 0);
	config_warn_fixed(&running, &wanted);
	config_warn_fixed(&running, &running);
	log_assert_none(&lines);
}
END_TEST

static const struct {
	unsigned n;
	const char *items[4];
	const char *why; /* NULL: it is taken */
} changes[] = {
	{0, {NULL}, NULL},
	{2, {"rx-usecs=20", "rx-frames=32"}, NULL},
	{2, {"rx-frames=32", "rx-usecs=20"}, NULL},
	{1, {"tx-usecs=10000"}, NULL}, /* the other one is set already */
	{2, {"tx-usecs=0", "tx-frames=0"}, NULL},
	{1, {"tx-at-rx=off"}, NULL},
	{2, {"tx-frames=1", "tx-frames=1024"}, NULL},
	{1, {"rx-usecs=20"}, "rx-frames"},
	{1, {"tx-usecs=0"}, "tx-frames"},
	{3, {"rx-usecs=20", "rx-frames=32", "tx-frames=0"}, "tx-usecs"},
	{2, {"rx-usecs=10001", "rx-frames=1"}, "rx-usecs must be"},
	{1, {"tx-frames=1025"}, "tx-frames must be"},
	{1, {"tx-frames=-1"}, "tx-frames must be"},
	{1, {"tx-frames="}, "tx-frames must be"},
	{1, {"tx-frames"}, "'tx-frames'"},
	{1, {"batch=1"}, "'batch=1'"},
	{1, {"cpu=1"}, "'cpu=1'"},
	{1, {"adaptive-rx=true"}, NULL},
	{1, {"adaptive-rx=1"}, "adaptive-rx must be"},
	{1, {"=1"}, "'=1'"},
	{1, {""}, "''"},
	{1, {"tx-at-rx=2"}, "tx-at-rx must be"},
};

START_TEST(live_change_is_taken_as_a_whole_or_not_at_all)
{
	struct pair_params params = {
		.tx = {.usecs = 50, .frames = 64}, .tx_at_rx = true, .batch = 9, .poll_usecs = 8};
	const struct pair_params before = params;
	char why[200] = "";
	int err =
		config_coalesce_apply(&params, changes[_i].items, changes[_i].n, why, sizeof(why));

	ck_assert_uint_eq(params.batch, 9);
	ck_assert_uint_eq(params.poll_usecs, 8);
	log_assert_none(&lines);
	if (!changes[_i].why) {
		ck_assert_int_eq(err, 0);
		return;
	}
	ck_assert_int_eq(err, -EINVAL);
	ck_assert_msg(strstr(why, changes[_i].why) != NULL, "%s", why);
	ck_assert_mem_eq(&params, &before, sizeof(params));
}
END_TEST

START_TEST(live_change_sets_the_fields)
{
	static const char *const items[] = {"rx-usecs=1", "rx-frames=2", "tx-usecs=3",
					    "tx-frames=4", "tx-at-rx=true"};
	struct pair_params params = {0};
	char why[200];

	ck_assert_int_eq(config_coalesce_apply(&params, items, array_size(items), why, sizeof(why)),
			 0);
	ck_assert_uint_eq(params.rx.usecs, 1);
	ck_assert_uint_eq(params.rx.frames, 2);
	ck_assert_uint_eq(params.tx.usecs, 3);
	ck_assert_uint_eq(params.tx.frames, 4);
	ck_assert(params.tx_at_rx);
}
END_TEST

static TCase *case_of_values(void)
{
	TCase *tc = tcase_create("values");

	tcase_add_test(tc, defaults_are_as_documented);
	tcase_add_test(tc, queue_section_wins_wherever_it_stands);
	tcase_add_test(tc, options_win_over_set_and_set_over_the_file);
	tcase_add_test(tc, port_option_replaces_type_and_name);
	tcase_add_test(tc, passed_tap_fd_needs_no_name);
	tcase_add_test(tc, source_of_null_port_is_configured);
	tcase_add_loop_test(tc, bool_has_three_spellings, 0, array_size(bools));
	tcase_add_loop_test(tc, value_at_the_bound_is_taken, 0, array_size(ranges));
	tcase_add_loop_test(tc, value_beyond_the_bound_is_refused_by_set, 0, array_size(ranges));
	tcase_add_loop_test(tc, value_beyond_the_bound_is_refused_in_the_file, 0,
			    array_size(ranges));
	tcase_add_test(tc, overridden_value_is_still_judged);
	tcase_add_loop_test(tc, bad_set_is_refused_with_one_line, 0, array_size(bad_sets));
	tcase_add_test(tc, unknown_key_of_set_is_named);
	return tc;
}

static TCase *case_of_judgement(void)
{
	TCase *tc = tcase_create("judgement");

	tcase_add_loop_test(tc, misfit_is_refused_with_one_line, 0, array_size(misfits));
	tcase_add_test(tc, both_or_neither_is_judged_on_the_merged_result);
	tcase_add_test(tc, misfit_of_set_names_the_option);
	tcase_add_loop_test(tc, bad_port_option_is_refused_with_one_line, 0, array_size(bad_ports));
	tcase_add_test(tc, bad_log_level_option_is_refused_with_one_line);
	tcase_add_test(tc, bad_number_of_pairs_is_refused_with_one_line);
	return tc;
}

static TCase *case_of_changes(void)
{
	TCase *tc = tcase_create("changes at run time");

	tcase_add_test(tc, reload_warns_of_keys_that_cannot_change);
	tcase_add_test(tc, reload_is_silent_about_what_can_change);
	tcase_add_loop_test(tc, live_change_is_taken_as_a_whole_or_not_at_all, 0,
			    array_size(changes));
	tcase_add_test(tc, live_change_sets_the_fields);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("config");
	TCase *cases[] = {case_of_values(), case_of_judgement(), case_of_changes()};
	SRunner *runner;
	int n_failed;

	for (size_t i = 0; i < array_size(cases); i++) {
		tcase_add_checked_fixture(cases[i], setup, teardown);
		suite_add_tcase(suite, cases[i]);
	}
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
