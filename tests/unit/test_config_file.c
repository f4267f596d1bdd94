/* SPDX-License-Identifier: BSD-2-Clause */
/* The syntax of the file, and the printing that is its inverse. Values are in test_config.c. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "support/conf.h"

#define ALL_KEYS                                                                                   \
	"queue-pairs = 2\n"                                                                        \
	"mac = \"52:54:00:12:34:56\"\n"                                                            \
	"mtu = 1500\n"                                                                             \
	"batch = 32\n"                                                                             \
	"copy-break = 128\n"                                                                       \
	"log-level = \"debug\"\n"                                                                  \
	"socket-mode = 0600\n"                                                                     \
	"socket-group = \"libvirt-qemu\"\n"                                                        \
	"state-path = \"/run/vm0.state\"\n"                                                        \
	"offer-config = true\n"                                                                    \
	"port { type = \"tap\" ifname = \"vm0\" bridge = \"br0\" sndbuf = 4096 create = false }\n" \
	"coalesce { rx-usecs = 20 rx-frames = 32 tx-usecs = 50 tx-frames = 64 tx-at-rx = false "   \
	"adaptive-rx = true adaptive-tx = false }\n"                                               \
	"poll { usecs = 70 }\n"                                                                    \
	"queue 1 { cpu = 3 coalesce { rx-usecs = 5 } }\n"

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

/* Return: what config_print() makes of it; the caller frees. */
static char *printed(const struct config *cfg)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(out);
	config_print(cfg, out);
	fclose(out);
	return text;
}

static void assert_same(const struct config *a, const struct config *b)
{
	char *text_a = printed(a), *text_b = printed(b);

	ck_assert_str_eq(text_a, text_b);
	free(text_a);
	free(text_b);
}

START_TEST(every_key_of_the_file_takes_effect)
{
	static const uint8_t mac[6] = {0x52, 0x54, 0x00, 0x12, 0x34, 0x56};
	struct config cfg;

	ck_assert_int_eq(load_file(&cfg, ALL_KEYS), 0);
	ck_assert_uint_eq(cfg.n_pairs, 2);
	ck_assert(cfg.has_mac);
	ck_assert_mem_eq(cfg.mac, mac, sizeof(mac));
	ck_assert_uint_eq(cfg.mtu, 1500);
	ck_assert_int_eq(cfg.log_level, LOG_LEVEL_DEBUG);
	ck_assert_uint_eq(cfg.socket_mode, 0600);
	ck_assert_str_eq(cfg.socket_group, "libvirt-qemu");
	ck_assert_str_eq(cfg.state_path, "/run/vm0.state");
	ck_assert(cfg.offer_config);
	ck_assert_ptr_eq(cfg.port.ops, &tap_port);
	ck_assert_str_eq(cfg.port.ifname, "vm0");
	ck_assert_str_eq(cfg.port.bridge, "br0");
	ck_assert_uint_eq(cfg.port.sndbuf, 4096);
	ck_assert(!cfg.port.create);
	log_assert_none(&lines);
}
END_TEST

START_TEST(queue_section_inherits_what_it_does_not_set)
{
	struct config cfg;

	ck_assert_int_eq(load_file(&cfg, ALL_KEYS), 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct pair_params *params = &cfg.pairs[i].params;

		ck_assert_uint_eq(params->batch, 32);
		ck_assert_uint_eq(params->copy_break, 128);
		ck_assert_uint_eq(params->poll_usecs, 70);
		ck_assert_uint_eq(params->rx.usecs, i == 1 ? 5 : 20);
		ck_assert_uint_eq(params->rx.frames, 32);
		ck_assert_uint_eq(params->tx.usecs, 50);
		ck_assert_uint_eq(params->tx.frames, 64);
		ck_assert(!params->tx_at_rx);
		ck_assert(params->rx.is_adaptive);
		ck_assert(!params->tx.is_adaptive);
		ck_assert_int_eq(cfg.pairs[i].cpu, i == 1 ? 3 : -1);
	}
}
END_TEST

START_TEST(set_takes_every_key_like_the_file)
{
	static const char *const sets[] = {
		"queue-pairs=2",
		"mac=52:54:00:12:34:56",
		"mtu=1500",
		"batch=32",
		"copy-break=128",
		"log-level=debug",
		"socket-mode=0600",
		"socket-group=libvirt-qemu",
		"state-path=/run/vm0.state",
		"offer-config=true",
		"port.type=tap",
		"port.ifname=vm0",
		"port.bridge=br0",
		"port.sndbuf=4096",
		"port.create=false",
		"coalesce.rx-usecs=20",
		"coalesce.rx-frames=32",
		"coalesce.tx-usecs=50",
		"coalesce.tx-frames=64",
		"coalesce.tx-at-rx=false",
		"coalesce.adaptive-rx=true",
		"coalesce.adaptive-tx=false",
		"poll.usecs=70",
		"queue.1.cpu=3",
		"queue.1.coalesce.rx-usecs=5",
	};
	struct config_overrides over = {.sets = sets, .n_sets = array_size(sets)};
	struct config by_file, by_set;

	ck_assert_int_eq(load_file(&by_file, ALL_KEYS), 0);
	ck_assert_int_eq(config_load(&by_set, &over), 0);
	assert_same(&by_file, &by_set);
	log_assert_none(&lines);
}
END_TEST

/* Ways to write a file that must not matter. */
static const char *const spellings[] = {
	"port{type=null}batch=7",
	"port { type = \"null\" }\nbatch = \"7\"\n",
	"port { type = 'null' } batch = 7",
	"# comment\nport { # another {\n type = null // third \"\n}\n/* { \n */ batch = 7",
	"port /* here */ { type /* \" */ = /* ' */ null }\nbatch /* x */ = 7",
	"\tport\r\n{\r\n\ttype = null\r\n}\r\nbatch = 7\r\n",
	"port { type = loopback }\nport { type = null }\nbatch = 6 batch = 7",
	"port { type = \"n\\u\\ll\" } batch = 7",
	"port { type = \"${VUX_NOT_SET:-null}\" } batch = ${VUX_NOT_SET:-7}",
	"port { type = null } batch = 7 #",
};

START_TEST(spelling_of_the_file_does_not_matter)
{
	struct config cfg;

	ck_assert_int_eq(load_file(&cfg, spellings[_i]), 0);
	ck_assert_ptr_eq(cfg.port.ops, &null_port);
	ck_assert_uint_eq(cfg.pairs[0].params.batch, 7);
	log_assert_none(&lines);
}
END_TEST

START_TEST(empty_file_gives_the_defaults)
{
	struct config_overrides over = {.file = "/dev/null", .port = "null"};
	struct config by_file, by_option;

	ck_assert_int_eq(config_load(&by_file, &over), 0);
	over.file = NULL;
	ck_assert_int_eq(config_load(&by_option, &over), 0);
	assert_same(&by_file, &by_option);
}
END_TEST

/* ---- files ---- */

static const struct {
	const char *text;
	int line;
	const char *word;
} bad_files[] = {
	{"# a\n/* b\n c */\n// d\nspeed = 1\n", 5, "'speed'"},
	{"port {\n\ttype = null\n\tspeed = 1\n}\n", 3, "'speed'"},
	{"queue 0 {\n\tcoalesce {\n\t\tspeed = 1\n\t}\n}\n", 3, "'speed'"},
	{"speed {\n}\n", 1, "'speed'"},
	{"\nqueue 0 { batch = 1 }", 2, "'batch'"},
	{"cpu = 1", 1, "'cpu'"},
	{"user = \"\"", 1, "'user'"},
	{"port { slots = 4096 }", 1, "'slots'"},
	{"port { type = null\n\nbatch = 1", 1, "not closed"},
	{"queue 0 {\ncoalesce {\n}\n", 1, "not closed"},
	{"}\n", 1, "brace"},
	{"batch = 1 }\n", 1, "brace"},
	{"batch = \"1\n\n", 1, "not closed"},
	{"batch = '1\n\n", 1, "not closed"},
	{"batch = \"1\\", 1, "not closed"},
	{"\n/* batch = 1\n\n", 2, "not closed"},
	{"batch = ${X\n", 1, "not closed"},
	{"batch = \"${X\n}\"", 1, "not closed"},
	{"batch = \"\\9\"\n", 1, "backslash"},
	{"batch = \"\\777\"\n", 1, "backslash"},
	{"batch\n", 0, "end of file"},
	{"batch = \n", 0, "end of file"},
	{"batch 64\n", 1, "equal sign"},
	{"batch = = 64\n", 1, "="},
	{"batch = { 64 }\n", 1, "{"},
	{"batch += 64\n", 1, "character"},
	{"\nbatch * = 64\n", 2, "character"},
	{"batch = \x01\n", 1, "character"},
	{"batch = 64, 65\n", 1, ","},
	{"batch(64)\n", 1, "equal sign"},
	{"include(\"/etc/passwd\")\n", 1, "'include'"},
	{"\"\" = 64\n", 1, "syntax"},
	{"\"a\nb\" = 64\n", 2, "unknown"},
	{"port = null\n", 1, "brace"},
	{"port null { }\n", 1, "brace"},
	{"coalesce 0 { }\n", 1, "brace"},
	{"queue { }\n", 1, "title"},
	{"queue 0\n", 0, "end of file"},
	{"queue 1 { }\n", 1, "queue 1"},
	{"\nqueue 1 {\n\n\tcpu = 1\n}\n", 4, "queue 1"},
	{"queue 16 { }\n", 1, "'16'"},
	{"queue -1 { }\n", 1, "'-1'"},
	{"queue 00 { }\n", 1, "'00'"},
	{"queue x { }\n", 1, "'x'"},
	{"queue \"\" { }\n", 1, "queue"},
	{"queue 0 { cpu = 1 }\nqueue 0 { cpu = 2 }\n", 2, "queue 0"},
	{"port { port { type = null } }\n", 1, "'port'"},
	{"{ batch = 64 }\n", 1, "{"},
};

START_TEST(bad_file_is_refused_with_one_line)
{
	struct config_overrides over = {.file = conf.path, .port = "null"};
	char where[100];
	const char *words[] = {where, bad_files[_i].word, NULL};
	struct config cfg;

	conf_write(&conf, bad_files[_i].text);
	/* Line 0: it is the end that is wrong, and any line may be named. */
	if (bad_files[_i].line > 0)
		snprintf(where, sizeof(where), "error: %s:%d: ", conf.path, bad_files[_i].line);
	else
		snprintf(where, sizeof(where), "error: %s:", conf.path);
	ck_assert_int_eq(config_load(&cfg, &over), -EINVAL);
	log_assert_one(&lines, words);
	/* Nothing of it stays in the parser. */
	ck_assert_int_eq(load_file(&cfg, ALL_KEYS), 0);
	log_assert_none(&lines);
}
END_TEST

START_TEST(zero_byte_in_the_file_is_refused)
{
	struct config_overrides over = {.file = conf.path, .port = "null"};
	struct config cfg;

	conf_write(&conf, "batch = 6\nX");
	ck_assert_int_eq(pwrite(conf.fd, "", 1, 10), 1);
	ck_assert_int_eq(config_load(&cfg, &over), -EINVAL);
	log_assert_one_with(&lines, ":2: zero byte");
}
END_TEST

static const struct {
	const char *path;
	int err;
	const char *word;
} unreadable[] = {
	{"/nonexistent/vux.conf", -ENOENT, "/nonexistent/vux.conf: "},
	{"/", -EINVAL, "/: is no regular file"},
	{"/dev/zero", -EFBIG, "/dev/zero: "},
	{"", -ENOENT, "check --config"},
};

START_TEST(unreadable_file_is_named)
{
	struct config_overrides over = {.file = unreadable[_i].path, .port = "null"};
	struct config cfg;

	ck_assert_int_eq(config_load(&cfg, &over), unreadable[_i].err);
	log_assert_one_with(&lines, unreadable[_i].word);
}
END_TEST

START_TEST(pipe_is_refused_at_once)
{
	struct config_overrides over = {.file = conf.path, .port = "null"};
	struct config cfg;
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	snprintf(conf.path, sizeof(conf.path), "/proc/self/fd/%d", fds[0]);
	ck_assert_int_eq(config_load(&cfg, &over), -EINVAL);
	log_assert_one_with(&lines, conf.path);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(loading_leaks_no_fd)
{
	struct config_overrides over = {.port = "null"};
	unsigned before = fds_count();
	struct config cfg;

	for (unsigned i = 0; i < array_size(unreadable); i++) {
		over.file = unreadable[i].path;
		config_load(&cfg, &over);
	}
	ck_assert_int_eq(load_file(&cfg, ALL_KEYS), 0);
	ck_assert_int_eq(load_file(&cfg, "speed = 1"), -EINVAL);
	conf_close(&conf);
	ck_assert_uint_eq(fds_count(), before);
}
END_TEST

/* ---- printing ---- */

static const char *const printable[] = {
	"port { type = null }",
	"port { type = null source-size = 1500 }",
	"port { type = loopback } mtu = 9000",
	"port { type = tap fd = 7 bridge = br0 }",
	ALL_KEYS,
	"port { type = tap ifname = \"a$\\\"{}'b\" } socket-group = 'x \\\\ ${HOME} #y'\n"
	"state-path = \"/a \\\"b\\\"/$c\"",
	"port { type = null } queue-pairs = 3 queue 0 { coalesce { rx-usecs = 1 rx-frames = 1 } }\n"
	"queue 1 { coalesce { rx-usecs = 2 rx-frames = 2 tx-at-rx = no } } queue 2 { cpu = 0 }",
	"port { type = null } queue-pairs = 16 queue 15 { coalesce { tx-usecs = 9 tx-frames = 1 } "
	"}",
	"port { type = null } socket-mode = 0 log-level = error offer-config = on batch = 1",
};

START_TEST(print_can_be_read_again)
{
	struct config first, second;
	char *text;

	ck_assert_int_eq(load_file(&first, printable[_i]), 0);
	text = printed(&first);
	ck_assert_int_eq(load_file(&second, text), 0);
	assert_same(&first, &second);
	free(text);
	ck_assert_str_eq(first.port.ifname, second.port.ifname);
	ck_assert_str_eq(first.socket_group, second.socket_group);
	ck_assert_str_eq(first.state_path, second.state_path);
	ck_assert_int_eq(first.port.fd, second.port.fd);
	ck_assert_mem_eq(first.mac, second.mac, sizeof(first.mac));
	for (unsigned i = 0; i < first.n_pairs; i++) {
		const struct pair_params *a = &first.pairs[i].params, *b = &second.pairs[i].params;

		ck_assert_int_eq(first.pairs[i].cpu, second.pairs[i].cpu);
		ck_assert_mem_eq(&a->rx, &b->rx, sizeof(a->rx));
		ck_assert_mem_eq(&a->tx, &b->tx, sizeof(a->tx));
		ck_assert(a->tx_at_rx == b->tx_at_rx);
		ck_assert(a->rx.is_adaptive == b->rx.is_adaptive);
		ck_assert(a->tx.is_adaptive == b->tx.is_adaptive);
	}
	log_assert_none(&lines);
}
END_TEST

START_TEST(print_says_what_differs_per_queue_only)
{
	struct config cfg;
	char *text;

	ck_assert_int_eq(load_file(&cfg, printable[7]), 0);
	text = printed(&cfg);
	ck_assert_ptr_nonnull(strstr(text, "queue 15 {\n\tcoalesce {\n\t\ttx-usecs = 9\n"));
	ck_assert_ptr_null(strstr(text, "queue 0 {"));
	ck_assert_ptr_nonnull(strstr(text, "\ttx-usecs = 0\n"));
	free(text);
}
END_TEST

START_TEST(sample_file_is_valid_and_shows_the_defaults)
{
	struct config_overrides by_option = {.port = "tap:vm0"}, by_file = {0};
	struct config sample, defaults;
	char path[512] = __FILE__;
	char *end = strstr(path, "tests/unit/");

	ck_assert_ptr_nonnull(end);
	strcpy(end, "config/vhost-user-xdp.conf");
	by_file.file = path;
	ck_assert_int_eq(config_load(&sample, &by_file), 0);
	ck_assert_int_eq(config_load(&defaults, &by_option), 0);
	assert_same(&sample, &defaults);
	log_assert_none(&lines);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("config_file");
	TCase *tc = tcase_create("config_file");
	SRunner *runner;
	int n_failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, every_key_of_the_file_takes_effect);
	tcase_add_test(tc, queue_section_inherits_what_it_does_not_set);
	tcase_add_test(tc, set_takes_every_key_like_the_file);
	tcase_add_loop_test(tc, spelling_of_the_file_does_not_matter, 0, array_size(spellings));
	tcase_add_test(tc, empty_file_gives_the_defaults);
	tcase_add_loop_test(tc, bad_file_is_refused_with_one_line, 0, array_size(bad_files));
	tcase_add_test(tc, zero_byte_in_the_file_is_refused);
	tcase_add_loop_test(tc, unreadable_file_is_named, 0, array_size(unreadable));
	tcase_add_test(tc, pipe_is_refused_at_once);
	tcase_add_test(tc, loading_leaks_no_fd);
	tcase_add_loop_test(tc, print_can_be_read_again, 0, array_size(printable));
	tcase_add_test(tc, print_says_what_differs_per_queue_only);
	tcase_add_test(tc, sample_file_is_valid_and_shows_the_defaults);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
