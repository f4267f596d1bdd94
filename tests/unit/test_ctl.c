/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "support/ctl_fixture.h"
#include "support/nic.h"
#include "support/wait.h"
#include "vhost-user-xdp/ctl.h"

#define STATUS	 "{\"cmd\":\"status\"}"
#define STATS	 "{\"cmd\":\"stats\"}"
#define COALESCE "{\"cmd\":\"coalesce\"}"
#define RINGS	 "{\"cmd\":\"rings\"}"
#define RELOAD	 "{\"cmd\":\"reload\"}"

static int client;
static struct nic nic; /* a guest, where a test wants one */

static void setup(void)
{
	ctl_fixture_setup();
	client = ctl_dial();
}

static void teardown(void)
{
	close(client);
	nic_close(&nic);
	memset(&nic, 0, sizeof(nic));
	ctl_fixture_teardown();
}

static void open_guest(void)
{
	struct nic_options options = {.n_pairs = CTL_FIXTURE_PAIRS, .size = 64};

	nic_open(&nic, cf.socket_path, &options);
}

static void check_alive(int fd)
{
	json_decref(ctl_ask_data(fd, STATUS));
}

/* ---- what the commands say ---- */

static json_int_t number_at(json_t *data, const char *name)
{
	json_t *value = json_object_get(data, name);

	ck_assert_msg(json_is_integer(value), "%s", name);
	return json_integer_value(value);
}

static bool truth_at(json_t *data, const char *name)
{
	json_t *value = json_object_get(data, name);

	ck_assert_msg(json_is_boolean(value), "%s", name);
	return json_is_true(value);
}

static const char *text_at(json_t *data, const char *name)
{
	const char *text = json_string_value(json_object_get(data, name));

	ck_assert_msg(text != NULL, "%s", name);
	return text;
}

static uint64_t bits_at(json_t *data, const char *name)
{
	const char *text = text_at(data, name);

	ck_assert_int_eq(strncmp(text, "0x", 2), 0);
	return strtoull(text, NULL, 16);
}

START_TEST(status_without_a_frontend)
{
	json_t *data = ctl_ask_data(client, STATUS);
	char socket[128];

	snprintf(socket, sizeof(socket), "listening on %s", cf.socket_path);
	ck_assert_str_eq(text_at(data, "socket"), socket);
	ck_assert_str_eq(text_at(data, "port"), "loopback");
	ck_assert_str_ne(text_at(data, "version"), "");
	ck_assert(!truth_at(data, "connected"));
	ck_assert_int_eq(number_at(data, "queue_pairs"), CTL_FIXTURE_PAIRS);
	ck_assert_uint_eq(bits_at(data, "features"), 0);
	ck_assert_uint_eq(bits_at(data, "protocol_features"), 0);
	ck_assert_uint_ne(bits_at(data, "features_offered") & NIC_BIT(VIRTIO_F_VERSION_1), 0);
	ck_assert_uint_eq(json_array_size(json_object_get(data, "pairs")), CTL_FIXTURE_PAIRS);
	json_decref(data);
}
END_TEST

START_TEST(status_with_a_frontend)
{
	json_t *data, *pair;

	open_guest();
	data = ctl_ask_data(client, STATUS);
	ck_assert(truth_at(data, "connected"));
	ck_assert_uint_eq(bits_at(data, "features"), nic.fe.features);
	ck_assert_uint_eq(bits_at(data, "protocol_features"), nic.fe.protocol_features);
	for (size_t i = 0; i < CTL_FIXTURE_PAIRS; i++) {
		pair = json_array_get(json_object_get(data, "pairs"), i);
		ck_assert(truth_at(json_object_get(pair, "rx"), "started"));
		ck_assert(truth_at(json_object_get(pair, "rx"), "enabled"));
		ck_assert(truth_at(json_object_get(pair, "tx"), "started"));
		ck_assert(!truth_at(json_object_get(pair, "tx"), "broken"));
	}
	json_decref(data);
}
END_TEST

static bool is_shown_broken(const char *direction)
{
	json_t *data = ctl_ask_data(client, STATUS);
	json_t *pair = json_array_get(json_object_get(data, "pairs"), 0);
	bool is_broken = truth_at(json_object_get(pair, direction), "broken");

	json_decref(data);
	return is_broken;
}

START_TEST(broken_ring_is_shown)
{
	open_guest();
	driver_add_raw(nic_tx(&nic, 0), 64);
	driver_kick(nic_tx(&nic, 0));
	wait_until(is_shown_broken("tx"), WAIT_LONG_MS);
	ck_assert(!is_shown_broken("rx"));
}
END_TEST

START_TEST(stats_have_the_exact_names)
{
	static const char *const names[] = {
		"rx_packets",	  "rx_bytes",	"rx_batches",	    "rx_no_buffer",
		"rx_oversize",	  "rx_dropped", "tx_packets",	    "tx_bytes",
		"tx_batches",	  "tx_dropped", "tx_malformed",	    "tx_port_full",
		"used_publishes", "calls",	"calls_suppressed", "calls_coalesced",
		"calls_timer",	  "kicks",	"wakeups",	    "ring_errors",
		"tap_eagain",
	};
	json_t *data = ctl_ask_data(client, STATS);
	json_t *queues = json_object_get(data, "queues"), *total = json_object_get(data, "total");

	ck_assert_uint_eq(json_array_size(queues), CTL_FIXTURE_PAIRS);
	ck_assert_uint_eq(json_object_size(total), N_QUEUE_COUNTERS);
	for (size_t i = 0; i < array_size(names); i++) {
		number_at(total, names[i]);
		number_at(json_array_get(queues, 0), names[i]);
		number_at(json_array_get(queues, 1), names[i]);
	}
	json_decref(data);
}
END_TEST

START_TEST(stats_count_per_queue_and_in_total)
{
	json_t *data, *queues;

	open_guest();
	nic_post(&nic, 0, 8, 2048);
	nic_post(&nic, 1, 8, 2048);
	nic_ping(&nic, 0, 100, 1);
	nic_ping(&nic, 1, 200, 2);
	nic_ping(&nic, 1, 300, 3);
	nic_wait_sent(&nic, 1, WAIT_LONG_MS);
	data = ctl_ask_data(client, STATS);
	queues = json_object_get(data, "queues");
	ck_assert_int_eq(number_at(json_array_get(queues, 0), "rx_packets"), 1);
	ck_assert_int_eq(number_at(json_array_get(queues, 1), "rx_packets"), 2);
	ck_assert_int_eq(number_at(json_array_get(queues, 1), "tx_bytes"), 500);
	ck_assert_int_eq(number_at(json_object_get(data, "total"), "rx_packets"), 3);
	ck_assert_int_eq(number_at(json_object_get(data, "total"), "rx_bytes"), 600);
	json_decref(data);
}
END_TEST

START_TEST(rings_show_their_indices)
{
	json_t *data, *rx, *tx;

	open_guest();
	nic_post(&nic, 1, 8, 2048);
	nic_ping(&nic, 1, 100, 1);
	nic_wait_sent(&nic, 1, WAIT_LONG_MS);
	data = ctl_ask_data(client, RINGS);
	ck_assert_uint_eq(json_array_size(json_object_get(data, "rings")), 2 * CTL_FIXTURE_PAIRS);
	rx = json_array_get(json_object_get(data, "rings"), 2);
	tx = json_array_get(json_object_get(data, "rings"), 3);
	ck_assert_int_eq(number_at(tx, "ring"), 3);
	ck_assert_int_eq(number_at(tx, "queue"), 1);
	ck_assert_str_eq(text_at(rx, "direction"), "rx");
	ck_assert_str_eq(text_at(tx, "direction"), "tx");
	ck_assert(truth_at(tx, "started") && truth_at(tx, "enabled") && !truth_at(tx, "broken"));
	ck_assert_int_eq(number_at(tx, "size"), 64);
	ck_assert_int_eq(number_at(tx, "avail_idx"), 1);
	ck_assert_int_eq(number_at(tx, "next_avail"), 1);
	ck_assert_int_eq(number_at(tx, "used_idx"), 1);
	ck_assert_int_eq(number_at(tx, "in_flight"), 0);
	ck_assert_int_eq(number_at(tx, "uncalled"), 0);
	ck_assert_int_eq(number_at(rx, "used_idx"), 1);
	truth_at(tx, "kicks_on");
	json_decref(data);
}
END_TEST

START_TEST(reload_is_passed_on)
{
	json_t *data = ctl_ask_data(client, RELOAD);

	json_decref(data);
	ck_assert_uint_eq(__atomic_load_n(&cf.n_reloads, __ATOMIC_RELAXED), 1);
	__atomic_store_n(&cf.reload_result, -EINVAL, __ATOMIC_RELAXED);
	ctl_ask_refused(client, RELOAD, "no such thing as a \"file\"");
	check_alive(client);
}
END_TEST

/* ---- coalesce ---- */

/* Compare the coalescing of a pair as the socket shows it, and as the device has it. */
static void check_coalesce(unsigned queue, int rx_usecs, int rx_frames, int tx_usecs, int tx_frames,
			   bool tx_at_rx)
{
	json_t *data = ctl_ask_data(client, COALESCE);
	json_t *q = json_array_get(json_object_get(data, "queues"), queue);
	struct pair_params params;

	ck_assert_int_eq(number_at(q, "queue"), queue);
	ck_assert_int_eq(number_at(q, "rx-usecs"), rx_usecs);
	ck_assert_int_eq(number_at(q, "rx-frames"), rx_frames);
	ck_assert_int_eq(number_at(q, "tx-usecs"), tx_usecs);
	ck_assert_int_eq(number_at(q, "tx-frames"), tx_frames);
	ck_assert_int_eq(truth_at(q, "tx-at-rx"), tx_at_rx);
	json_decref(data);
	netdev_get_params(cf.netdev, queue, &params);
	ck_assert_uint_eq(params.rx.usecs, rx_usecs);
	ck_assert_uint_eq(params.tx.frames, tx_frames);
	ck_assert_uint_eq(params.batch, 64);
}

START_TEST(coalesce_sets_all_pairs)
{
	json_t *data =
		ctl_ask_data(client, "{\"cmd\":\"coalesce\",\"args\":{\"set\":[\"rx-usecs=20\","
				     "\"rx-frames=32\",\"tx-at-rx=false\"]}}");
	json_t *q = json_array_get(json_object_get(data, "queues"), 1);

	ck_assert_int_eq(number_at(q, "rx-usecs"), 20);
	json_decref(data);
	check_coalesce(0, 20, 32, 0, 0, false);
	check_coalesce(1, 20, 32, 0, 0, false);
}
END_TEST

START_TEST(coalesce_sets_one_pair)
{
	json_t *data = ctl_ask_data(client, "{\"cmd\":\"coalesce\",\"args\":{\"queue\":1,\"set\":["
					    "\"tx-usecs=10000\",\"tx-frames=1024\"]}}");

	ck_assert_uint_eq(json_array_size(json_object_get(data, "queues")), 1);
	json_decref(data);
	check_coalesce(0, 0, 0, 0, 0, true);
	check_coalesce(1, 0, 0, 10000, 1024, true);
}
END_TEST

START_TEST(coalesce_shows_one_pair)
{
	json_t *data =
		ctl_ask_data(client, "{\"cmd\":\"coalesce\",\"args\":{\"queue\":1,\"set\":[]}}");
	json_t *queues = json_object_get(data, "queues");

	ck_assert_uint_eq(json_array_size(queues), 1);
	ck_assert_int_eq(number_at(json_array_get(queues, 0), "queue"), 1);
	json_decref(data);
}
END_TEST

START_TEST(refused_coalesce_leaves_the_old_values)
{
	static const char *const sets[][2] = {
		{"\"rx-usecs=20\",\"rx-frames=0\"", "set both above 0, or both to 0"},
		{"\"tx-usecs=5\"", "tx-frames = 0"},
		{"\"rx-usecs=30\",\"rx-frames=8\",\"tx-usecs=10001\"", "tx-usecs must be"},
		{"\"rx-usecs=30\",\"rx-frames=1025\"", "rx-frames must be"},
		{"\"rx-usecs=-1\"", "rx-usecs must be"},
		{"\"rx-usecs=\"", "rx-usecs must be"},
		{"\"rx-usecs\"", "must be KEY=VALUE"},
		{"\"tx-at-rx=maybe\"", "tx-at-rx must be"},
		{"\"batch=32\"", "must be KEY=VALUE, with the key"},
		{"\"rx-usecs=30\",7", "must hold strings"},
		{"\"\"", "must be KEY=VALUE"},
		{"\"\xc3\xa9=1\"", "\xc3\xa9"},
	};
	char request[256];

	json_decref(ctl_ask_data(client, "{\"cmd\":\"coalesce\",\"args\":{\"set\":[\"rx-usecs=20\","
					 "\"rx-frames=32\"]}}"));
	for (size_t i = 0; i < array_size(sets); i++) {
		snprintf(request, sizeof(request), "{\"cmd\":\"coalesce\",\"args\":{\"set\":[%s]}}",
			 sets[i][0]);
		ctl_ask_refused(client, request, sets[i][1]);
		check_coalesce(0, 20, 32, 0, 0, true);
		check_coalesce(1, 20, 32, 0, 0, true);
	}
}
END_TEST

/* Pair 1 already has what pair 0 lacks: the change would be right for one of them only. */
START_TEST(coalesce_changes_no_pair_when_one_refuses)
{
	json_decref(ctl_ask_data(client, "{\"cmd\":\"coalesce\",\"args\":{\"queue\":0,\"set\":["
					 "\"rx-usecs=20\",\"rx-frames=32\"]}}"));
	ctl_ask_refused(client, "{\"cmd\":\"coalesce\",\"args\":{\"set\":[\"rx-usecs=40\"]}}",
			"queue 1: ");
	check_coalesce(0, 20, 32, 0, 0, true);
	check_coalesce(1, 0, 0, 0, 0, true);
}
END_TEST

START_TEST(coalesce_takes_a_bounded_number_of_items)
{
	char request[2048] = "{\"cmd\":\"coalesce\",\"args\":{\"set\":[\"tx-at-rx=true\"";

	for (int i = 0; i < 64; i++)
		strcat(request, ",\"tx-at-rx=false\"");
	strcat(request, "]}}");
	ctl_ask_refused(client, request, "65 items");
	check_coalesce(0, 0, 0, 0, 0, true);
}
END_TEST

/* ---- refusals ---- */

static const char *const refused[][2] = {
	{"", "not JSON"},
	{"   ", "not JSON"},
	{"hello", "not JSON"},
	{"{", "not JSON"},
	{"{\"cmd\":\"status\"", "not JSON"},
	{"{\"cmd\":\"status\"} {}", "not JSON"},
	{"{'cmd':'status'}", "not JSON"},
	{"{\"cmd\":\"status\",}", "not JSON"},
	{"{\"cmd\":\"sta\xfftus\"}", "not JSON"},
	{"{\"cmd\":\"\xc3\"}", "not JSON"},
	{"\xef\xbb\xbf{\"cmd\":\"status\"}", "not JSON"},
	{"{\"cmd\":\"status\\u0000\"}", "not JSON"},
	{"{\"cmd\":\"status\",\"cmd\":\"stats\"}", "duplicate"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"queue\":0,\"queue\":1}}", "duplicate"},
	{"\"status\"", "not JSON"},
	{"17", "not JSON"},
	{"null", "not JSON"},
	{"[]", "must be an object"},
	{"[{\"cmd\":\"status\"}]", "must be an object"},
	{"{}", "no \"cmd\": give one of status, stats, coalesce, rings, reload"},
	{"{\"args\":{}}", "no \"cmd\""},
	{"{\"cmd\":7}", "must be a string"},
	{"{\"cmd\":null}", "must be a string"},
	{"{\"cmd\":[\"status\"]}", "must be a string"},
	{"{\"cmd\":\"\"}", "unknown command"},
	{"{\"cmd\":\"Status\"}", "unknown command Status"},
	{"{\"cmd\":\"drain\"}", "unknown command drain"},
	{"{\"cmd\":\"\xc3\xa9t\xc3\xa9\"}", "unknown command \xc3\xa9t\xc3\xa9"},
	{"{\"cmd\":\"status\",\"id\":1}", "unknown key 'id'"},
	{"{\"cmd\":\"status\",\"args\":null}", "\"args\" must be an object"},
	{"{\"cmd\":\"status\",\"args\":[]}", "\"args\" must be an object"},
	{"{\"cmd\":\"status\",\"args\":\"x\"}", "\"args\" must be an object"},
	{"{\"cmd\":\"status\",\"args\":{\"x\":1}}", "status: takes no arguments"},
	{"{\"cmd\":\"stats\",\"args\":{\"queue\":0}}", "stats: takes no arguments"},
	{"{\"cmd\":\"rings\",\"args\":{\"queue\":0}}", "rings: takes no arguments"},
	{"{\"cmd\":\"reload\",\"args\":{\"file\":\"x\"}}", "reload: takes no arguments"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"queues\":0}}", "unknown argument 'queues'"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"queue\":\"0\"}}", "\"queue\" must be an integer"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"queue\":0.0}}", "\"queue\" must be an integer"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"queue\":null}}", "\"queue\" must be an integer"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"queue\":-1}}", "queue -1 does not exist"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"queue\":2}}", "queue 2 does not exist: there are 2"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"queue\":4294967296}}", "does not exist"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"queue\":9223372036854775807}}", "does not exist"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"queue\":9223372036854775808}}", "not JSON"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"set\":\"rx-usecs=1\"}}", "\"set\" must be an array"},
	{"{\"cmd\":\"coalesce\",\"args\":{\"set\":{\"rx-usecs\":1}}}", "\"set\" must be an array"},
};

START_TEST(bad_request_is_refused_and_the_connection_stays)
{
	ctl_ask_refused(client, refused[_i][0], refused[_i][1]);
	check_alive(client);
	ck_assert_uint_eq(__atomic_load_n(&cf.n_reloads, __ATOMIC_RELAXED), 0);
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
	static char request[CTL_MAX_LINE];

	memset(request, '[', sizeof(request) - 2);
	ctl_ask_refused(client, request, "not JSON");
	for (size_t i = 0; i + 5 < sizeof(request); i += 5)
		memcpy(request + i, "{\"a\":", 5);
	request[sizeof(request) / 5 * 5 - 5] = '\0';
	ctl_ask_refused(client, request, "not JSON");
	check_alive(client);
}
END_TEST

START_TEST(raw_bytes_are_refused)
{
	char bytes[257];
	json_t *answer;

	for (int i = 0; i < 256; i++)
		bytes[i] = (char)(i == '\n' ? 0 : i);
	bytes[256] = '\n';
	ck_assert(ctl_send(client, bytes, sizeof(bytes)));
	answer = ctl_take(client);
	ck_assert(json_is_false(json_object_get(answer, "ok")));
	json_decref(answer);
	check_alive(client);
}
END_TEST

START_TEST(long_name_is_cut_in_the_answer)
{
	char request[4096] = "{\"cmd\":\"x";

	for (int i = 0; i < 1000; i++)
		strcat(request, "\xc3\xa9");
	strcat(request, "\"}");
	/* Cut in the middle of a character: still an answer in UTF-8. */
	ctl_ask_refused(client, request, "unknown command x");
}
END_TEST

START_TEST(spaces_and_empty_args_are_fine)
{
	json_decref(ctl_ask_data(client, " { \"args\" : { } , \"cmd\" : \"status\" } \r"));
}
END_TEST

static void add(TCase *c, const TTest *const tests[], size_t n)
{
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 120);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(c, tests[i]);
}

static TCase *commands_case(void)
{
	const TTest *const tests[] = {
		status_without_a_frontend,
		status_with_a_frontend,
		broken_ring_is_shown,
		stats_have_the_exact_names,
		stats_count_per_queue_and_in_total,
		rings_show_their_indices,
		reload_is_passed_on,
		coalesce_sets_all_pairs,
		coalesce_sets_one_pair,
		coalesce_shows_one_pair,
		refused_coalesce_leaves_the_old_values,
		coalesce_changes_no_pair_when_one_refuses,
		coalesce_takes_a_bounded_number_of_items,
	};
	TCase *c = tcase_create("commands");

	add(c, tests, array_size(tests));
	return c;
}

static TCase *refusals_case(void)
{
	const TTest *const tests[] = {
		deep_nesting_is_refused,
		raw_bytes_are_refused,
		long_name_is_cut_in_the_answer,
		spaces_and_empty_args_are_fine,
	};
	TCase *c = tcase_create("refusals");

	add(c, tests, array_size(tests));
	tcase_add_loop_test(c, bad_request_is_refused_and_the_connection_stays, 0,
			    (int)array_size(refused));
	return c;
}

int main(void)
{
	Suite *s = suite_create("ctl");
	SRunner *runner;
	int n_failed;

	suite_add_tcase(s, commands_case());
	suite_add_tcase(s, refusals_case());
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
