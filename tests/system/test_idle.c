/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No work, no wake-up (invariant 7): daemons in several states are left alone for ten seconds, all
 * at once, and no thread of any of them may have been scheduled in between.
 */
#include <stdio.h>

#include "support/tapnet.h"

#define IDLE_US 10000000

enum scene { UNCONNECTED, CONNECTED, RUNNING, COALESCING, ON_TAP, WITHOUT_BUFFERS, N_SCENES };

static const char *const names[] = {"unconnected",     "connected", "rings running",
				    "with coalescing", "on a tap",  "without receive buffers"};

static const struct daemon_options options[] = {
	[UNCONNECTED] = {.args = {"--port=loopback", "--queue-pairs=4"}},
	[CONNECTED] = {.args = {"--port=null"}},
	[RUNNING] = {.args = {"--port=loopback", "--queue-pairs=2"}},
	[COALESCING] = {.args = {"--port=loopback", "--queue-pairs=2", "--set",
				 "coalesce.rx-usecs=500", "--set", "coalesce.rx-frames=16", "--set",
				 "coalesce.tx-usecs=500", "--set", "coalesce.tx-frames=16", "--set",
				 "poll.usecs=100"}},
	[ON_TAP] = {.args = {"--port=tap:" TAP, "--queue-pairs=2"}, .netns = &tapnet.ns},
	[WITHOUT_BUFFERS] = {.args = {"--port=null", "--set", "port.source-size=64"}},
};

static struct daemon daemons[N_SCENES];
static struct nic nics[N_SCENES];
static uint64_t before[N_SCENES][DAEMON_MAX_THREADS], after[N_SCENES][DAEMON_MAX_THREADS];

static void setup_scenes(void)
{
	for (int i = 0; i < N_SCENES; i++)
		daemon_open(&daemons[i]);
}

static void teardown_scenes(void)
{
	for (int i = 0; i < N_SCENES; i++) {
		nic_close(&nics[i]);
		daemon_close(&daemons[i]);
	}
}

static void run_traffic(enum scene scene)
{
	struct nic *n = &nics[scene];

	nic_open(n, daemons[scene].path, &(struct nic_options){.n_pairs = 2});
	for (unsigned pair = 0; pair < 2; pair++) {
		nic_post(n, pair, 32, 2048);
		for (uint32_t i = 0; i < 20; i++)
			nic_send(n, pair, (char[100]){0}, 100);
		nic_wait_sent(n, pair, WAIT_LONG_MS);
	}
}

static void start_scene(enum scene scene)
{
	struct nic *n = &nics[scene];

	daemon_start(&daemons[scene], &options[scene]);
	switch (scene) {
	case CONNECTED:
		nic_open(n, daemons[scene].path, &(struct nic_options){.is_left_stopped = true});
		break;
	case RUNNING:
	case COALESCING:
	case ON_TAP:
		run_traffic(scene);
		break;
	case WITHOUT_BUFFERS:
		/* An endless supply of frames, and a ring that is full of them. */
		nic_open(n, daemons[scene].path, NULL);
		nic_post(n, 0, 100, 2048);
		driver_wait_n(nic_rx(n, 0), 100, WAIT_LONG_MS);
		break;
	default:
		break;
	}
}

START_TEST(idle_daemons_do_not_wake_up)
{
	unsigned n_threads[N_SCENES];

	for (enum scene i = 0; i < N_SCENES; i++)
		start_scene(i);
	/* Timers that were armed by the traffic run out. */
	wait_pause_us(500000);
	for (int i = 0; i < N_SCENES; i++)
		n_threads[i] = daemon_switches(&daemons[i], before[i]);
	wait_pause_us(IDLE_US);
	for (int i = 0; i < N_SCENES; i++) {
		expect_eq(daemon_switches(&daemons[i], after[i]), n_threads[i]);
		for (unsigned t = 0; t < n_threads[i]; t++)
			expect_msg(after[i][t] == before[i][t],
				   "%s: thread %u woke up %llu times in 10 s", names[i], t,
				   (unsigned long long)(after[i][t] - before[i][t]));
	}
	/* They sleep; they are not dead. What was received before is taken first. */
	for (unsigned pair = 0; pair < 2; pair++) {
		while (nic_poll(&nics[RUNNING], pair, &wire.frame))
			;
		nic_ping(&nics[RUNNING], pair, 100, 1);
	}
}
END_TEST

START_TEST(idle_daemon_uses_no_processor_time_while_a_frame_waits)
{
	uint64_t before_ms;

	/* The port holds a frame; only the guest's buffers are missing. */
	system_start("--port=loopback");
	system_connect(NULL);
	nic_send(&nic, 0, (char[100]){0}, 100);
	wait_pause_us(50000);
	before_ms = daemon_cpu_ms(dut);
	wait_pause_us(500000);
	expect_le(daemon_cpu_ms(dut) - before_ms, 10);
}
END_TEST

static void add_all(TCase *tc)
{
	tapnet_add_fixture(tc);
	tcase_add_checked_fixture(tc, setup_scenes, teardown_scenes);
	tcase_add_test(tc, idle_daemons_do_not_wake_up);
	tcase_add_test(tc, idle_daemon_uses_no_processor_time_while_a_frame_waits);
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
	printf("skipped: ThreadSanitizer's own thread wakes up\n");
	return 77;
#endif
	return netns_is_possible() ? system_main("idle", add_all) : 77;
}
