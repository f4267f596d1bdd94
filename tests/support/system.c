/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/system.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For one test; those with many repeats need more. */
#define TEST_SECONDS	  60
#define LONG_TEST_SECONDS 1800

struct daemon daemon_under_test;
struct nic nic;

static void setup(void)
{
	nic.fe.sock = -1;
	daemon_open(dut);
}

static void teardown(void)
{
	frontend_close(&nic.fe);
	nic_close(&nic);
	daemon_close(dut);
}

void system_connect(const struct nic_options *options)
{
	nic_open(&nic, dut->path, options);
}

void system_check_service(void)
{
	nic_close(&nic);
	system_connect(NULL);
	nic_post(&nic, 0, 16, 2048);
	for (uint32_t i = 0; i < 2; i++)
		nic_ping(&nic, 0, 100, i);
}

void system_expect_failure(const struct daemon_options *options, int code, const char *names)
{
	struct daemon_result r = daemon_run(dut, options);
	const char *last = "";

	for (unsigned i = 0; i < DAEMON_MAX_ARGS && options->args[i]; i++)
		last = options->args[i];
	expect_msg(r.code == code, "... %s: exit code %d: %s", last, r.code, r.err);
	expect_msg(r.n_lines == 1, "... %s: %u lines: %s", last, r.n_lines, r.err);
	expect_msg(strstr(r.err, names) != NULL, "... %s: '%s' is not named: %s", last, names,
		   r.err);
	expect_msg(r.out[0] == '\0', "... %s: stdout: %s", last, r.out);
	expect_msg(r.ms < wait_scaled_ms(1000), "... %s: it took %u ms", last, r.ms);
	expect_eq(access(dut->path, F_OK), -1);
	expect_eq(access(dut->ctl, F_OK), -1);
	daemon_result_free(&r);
}

void system_check_end(void)
{
	daemon_stop(dut);
}

static TCase *make_case(const char *name, void (*use_layout)(void))
{
	TCase *tc = tcase_create(name);

	/* Setups run in the order in which they were added. */
	tcase_add_checked_fixture(tc, use_layout, NULL);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, wait_is_long() ? LONG_TEST_SECONDS : wait_scaled_ms(TEST_SECONDS));
	return tc;
}

static int run(Suite *suite)
{
	SRunner *runner;
	int n_failed;

	signal(SIGPIPE, SIG_IGN);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int system_main(const char *name, void (*add)(TCase *tc))
{
	Suite *suite = suite_create(name);
	TCase *tc = make_case(name, layout_use_split);

	add(tc);
	suite_add_tcase(suite, tc);
	return run(suite);
}

int system_main_rings(const char *name, void (*add)(TCase *tc), void (*add_split)(TCase *tc))
{
	Suite *suite = suite_create(name);
	TCase *split = make_case("split", layout_use_split);
	TCase *packed = make_case("packed", layout_use_packed);

	add(split);
	if (add_split)
		add_split(split);
	add(packed);
	suite_add_tcase(suite, split);
	suite_add_tcase(suite, packed);
	return run(suite);
}
