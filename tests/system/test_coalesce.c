/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt coalescing: how many calls, and when. Most of it sends to a port that swallows frames,
 * so that completions come one by one as fast as the test asks for them; times have the slack of a
 * busy machine, but an upper bound always.
 */
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/system.h"

#define FEATURES (NIC_FEATURES & ~NIC_BIT(VIRTIO_RING_F_EVENT_IDX))
/* The longest delay that can be configured, so that what comes early is early beyond doubt. */
#define USECS	 10000u
#define FRAMES	 8u
#define SLACK_US 4000u
#define NS	 1000ull

static void start(const char *port, const char *direction, unsigned usecs, unsigned frames,
		  const struct nic_options *options)
{
	char usecs_key[48], frames_key[48];

	snprintf(usecs_key, sizeof(usecs_key), "coalesce.%s-usecs=%u", direction, usecs);
	snprintf(frames_key, sizeof(frames_key), "coalesce.%s-frames=%u", direction, frames);
	system_start(port, "--queue-pairs=2", "--set", usecs_key, "--set", frames_key);
	system_connect(options);
}

static void start_tx(unsigned usecs, unsigned frames)
{
	start("--port=null", "tx", usecs, frames,
	      &(struct nic_options){.features = FEATURES, .n_pairs = 2});
}

/* Send one frame and wait for its completion, by looking. */
static void complete_one(unsigned pair)
{
	nic_send(&nic, pair, (char[100]){0}, 100);
	nic_wait_sent(&nic, pair, WAIT_LONG_MS);
}

/* Return: microseconds from `start_ns` to the call, which must come. */
static uint64_t call_delay_us(struct driver_ring *r, uint64_t start_ns)
{
	expect_msg(driver_wait_call(r, WAIT_LONG_MS), "a call was lost");
	return (wait_now_ns() - start_ns) / NS;
}

static void expect_no_call(struct driver_ring *r, unsigned us)
{
	wait_pause_us(us);
	expect_eq(driver_take_calls(r), 0);
}

static unsigned slack_us(void)
{
	return wait_scaled_ms(SLACK_US);
}

/* Delays that a busy machine has made longer: some are forgiven, most must be in time. */
static unsigned n_judged, n_late;

static void judge_delay(uint64_t us, uint64_t limit_us)
{
	n_judged++;
	n_late += us > limit_us + slack_us();
	expect_msg(us <= limit_us + 50 * (uint64_t)slack_us(), "a call was %llu us late",
		   (unsigned long long)(us - limit_us));
}

static void expect_most_in_time(void)
{
	expect_msg(2 * n_late <= n_judged, "%u of %u calls were late", n_late, n_judged);
	n_judged = n_late = 0;
}

/* The first completion after a start may be called at once. */
static void settle(unsigned pair)
{
	for (unsigned i = 0; i < FRAMES; i++)
		complete_one(pair);
	wait_pause_us(2 * USECS);
	driver_take_calls(nic_tx(&nic, pair));
}

/* ---- frames and time ---- */

START_TEST(call_comes_with_the_last_of_the_frames)
{
	struct driver_ring *r = nic_tx(&nic, 0);

	start_tx(USECS, FRAMES);
	settle(0);
	for (int round = 0; round < 10; round++) {
		uint64_t start_ns = wait_now_ns();

		for (unsigned i = 0; i < FRAMES; i++)
			complete_one(0);
		/* A machine that took longer for them than the delay lasts shows nothing. */
		if (wait_now_ns() - start_ns > USECS * NS / 2) {
			wait_pause_us(2 * USECS);
			driver_take_calls(r);
			continue;
		}
		judge_delay(call_delay_us(r, start_ns), 0);
		expect_no_call(r, USECS + slack_us());
	}
	expect_most_in_time();
	expect_gt(daemon_counter(dut, 0, "calls_coalesced"), 0);
}
END_TEST

START_TEST(remainder_is_called_after_the_time)
{
	struct driver_ring *r = nic_tx(&nic, 0);
	const unsigned counts[] = {1, FRAMES - 1};

	start_tx(USECS, FRAMES);
	settle(0);
	for (int round = 0; round < 10; round++) {
		uint64_t start_ns = wait_now_ns(), us;

		for (unsigned i = 0; i < counts[round % 2]; i++)
			complete_one(0);
		us = call_delay_us(r, start_ns);
		expect_ge(us, USECS - 100);
		judge_delay(us, USECS);
		expect_no_call(r, USECS);
	}
	expect_ge(daemon_counter(dut, 0, "calls_timer"), 10);
	expect_most_in_time();
}
END_TEST

START_TEST(bursts_are_never_left_uncalled)
{
	const unsigned bursts[] = {FRAMES - 1, FRAMES, FRAMES + 1, 2 * FRAMES + 1};
	struct driver_ring *r = nic_tx(&nic, 0);

	start_tx(USECS / 5, FRAMES);
	settle(0);
	for (int round = 0; round < 40; round++) {
		unsigned n = bursts[round % 4];
		uint64_t calls, start_ns = wait_now_ns();

		for (unsigned i = 0; i < n; i++)
			nic_queue(&nic, 0, NULL, (char[100]){0}, 100);
		driver_kick(r);
		judge_delay(call_delay_us(r, start_ns), USECS / 5);
		wait_pause_us(USECS / 5 + 2000);
		calls = 1 + driver_take_calls(r);
		/* One for each F frames, and one for a remainder, at most. */
		expect_le(calls, (n + FRAMES - 1) / FRAMES);
		expect_eq(nic_reap(&nic, 0), n);
	}
	expect_most_in_time();
}
END_TEST

START_TEST(steady_trickle_does_not_put_the_call_off)
{
	struct driver_ring *r = nic_tx(&nic, 0);

	start_tx(USECS, 1000);
	settle(0);
	for (int round = 0; round < 5; round++) {
		uint64_t first_ns = wait_now_ns(), next_ns = first_ns;
		uint64_t us = 0;

		/* A frame every 3 ms: the call counts from the first of them. */
		while (us == 0) {
			if (wait_now_ns() >= next_ns) {
				complete_one(0);
				next_ns += 3000 * NS;
			}
			if (driver_take_calls(r) > 0)
				us = (wait_now_ns() - first_ns) / NS;
			expect_lt(wait_now_ns() - first_ns, 1000000 * NS);
		}
		expect_ge(us, USECS - 100);
		judge_delay(us, USECS);
		wait_pause_us(2 * USECS);
		driver_take_calls(r);
	}
	expect_most_in_time();
}
END_TEST

START_TEST(zero_means_a_call_at_once)
{
	struct driver_ring *r = nic_tx(&nic, 0);

	start_tx(0, 0);
	for (int i = 0; i < 50; i++) {
		complete_one(0);
		expect(driver_wait_call(r, WAIT_PROMPT_MS));
	}
	expect_eq(daemon_counter(dut, 0, "calls_coalesced"), 0);
}
END_TEST

START_TEST(driver_that_looks_by_itself_is_not_called)
{
	struct driver_ring *r = nic_tx(&nic, 0);

	start_tx(USECS / 5, FRAMES);
	settle(0);
	complete_one(0);
	driver_calls_off(r);
	expect_no_call(r, USECS);
	driver_calls_on(r);
	complete_one(0);
	expect(driver_wait_call(r, WAIT_LONG_MS));
}
END_TEST

START_TEST(settings_hold_for_every_pair_and_later_connection)
{
	start_tx(USECS, FRAMES);
	for (int connection = 0; connection < 3; connection++) {
		for (unsigned pair = 0; pair < 2; pair++) {
			uint64_t start_ns, us;

			settle(pair);
			start_ns = wait_now_ns();
			complete_one(pair);
			us = call_delay_us(nic_tx(&nic, pair), start_ns);
			expect_ge(us, USECS - 100);
			judge_delay(us, USECS);
		}
		nic_close(&nic);
		system_connect(&(struct nic_options){.features = FEATURES, .n_pairs = 2});
	}
	expect_most_in_time();
}
END_TEST

/* ---- towards the guest ---- */

START_TEST(receive_calls_are_put_off_too)
{
	struct driver_ring *r = nic_rx(&nic, 0);

	start("--port=loopback", "rx", USECS, FRAMES, &(struct nic_options){.features = FEATURES});
	nic_post(&nic, 0, 64, 2048);
	for (int round = 0; round < 10; round++) {
		uint64_t start_ns = wait_now_ns(), us;

		nic_ping(&nic, 0, 100, 1);
		us = call_delay_us(r, start_ns);
		expect_ge(us, USECS - 100);
		judge_delay(us, USECS);
		expect_no_call(r, USECS);
	}
	expect_most_in_time();
}
END_TEST

START_TEST(transmit_calls_ride_on_receive_calls_when_told_to)
{
	const char *setting = _i ? "coalesce.tx-at-rx=true" : "coalesce.tx-at-rx=false";
	uint64_t start_ns, us;

	system_start("--port=loopback", "--set", "coalesce.tx-usecs=10000", "--set",
		     "coalesce.tx-frames=1000", "--set", setting);
	system_connect(&(struct nic_options){.features = FEATURES});
	nic_post(&nic, 0, 64, 2048);
	nic_ping(&nic, 0, 100, 0);
	wait_pause_us(2 * USECS);
	driver_take_calls(nic_tx(&nic, 0));
	driver_take_calls(nic_rx(&nic, 0));
	for (int round = 0; round < 10; round++) {
		start_ns = wait_now_ns();
		/* The first one's completion is pending when the second one is received. */
		nic_ping(&nic, 0, 100, 1);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
		nic_ping(&nic, 0, 100, 2);
		us = call_delay_us(nic_tx(&nic, 0), start_ns);
		if (!_i)
			expect_ge(us, USECS - 100);
		judge_delay(us, _i ? 0 : USECS);
		wait_pause_us(2 * USECS);
		driver_take_calls(nic_tx(&nic, 0));
	}
	expect_most_in_time();
}
END_TEST

/* ---- what is pending when things change ---- */

/* Leave one completion that has not been signalled. */
static void leave_one_pending(void)
{
	struct driver_ring *r = nic_tx(&nic, 0);

	/* Seldom the machine is so slow that the call comes first. */
	do {
		wait_pause_us(2 * USECS);
		driver_take_calls(r);
		complete_one(0);
	} while (driver_take_calls(r) > 0);
}

START_TEST(new_call_fd_gets_what_is_pending)
{
	struct driver_ring *r = nic_tx(&nic, 0);
	int old;

	start_tx(USECS, 1000);
	for (int round = 0; round < 10; round++) {
		leave_one_pending();
		old = r->call_fd;
		r->call_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		driver_send_call(r, &nic.fe);
		frontend_sync(&nic.fe);
		expect_eq(driver_take_calls(r) > 0 || wait_readable(old, 0), true);
		/* Whatever went to the old one went before the reply. */
		eventfd_read(old, &(eventfd_t){0});
		complete_one(0);
		expect(driver_wait_call(r, WAIT_LONG_MS));
		expect_eq(eventfd_read(old, &(eventfd_t){0}), -1);
		close(old);
	}
}
END_TEST

START_TEST(call_that_was_pending_at_removal_goes_to_the_next_fd)
{
	struct driver_ring *r = nic_tx(&nic, 0);

	start_tx(USECS, 1000);
	for (int round = 0; round < 5; round++) {
		leave_one_pending();
		frontend_set_vring_fd(&nic.fe, VHOST_USER_SET_VRING_CALL, 1, -1);
		frontend_sync(&nic.fe);
		/* Signalled first, or kept for the next fd: but not lost. */
		if (driver_take_calls(r) > 0)
			continue;
		driver_send_call(r, &nic.fe);
		expect_msg(driver_wait_call(r, WAIT_PROMPT_MS), "the call is lost");
	}
}
END_TEST

START_TEST(stop_and_disable_signal_what_is_pending_first)
{
	struct driver_ring *r = nic_tx(&nic, 0);

	start_tx(USECS, 1000);
	for (int round = 0; round < 6; round++) {
		leave_one_pending();
		if (round % 2)
			frontend_set_vring_enable(&nic.fe, 1, false);
		else
			frontend_get_vring_base(&nic.fe, 1);
		frontend_sync(&nic.fe);
		expect_eq(driver_take_calls(r), 1);
		expect_no_call(r, 2 * USECS);
		frontend_set_vring_enable(&nic.fe, 1, true);
		driver_send_setup(r, &nic.fe);
		frontend_sync(&nic.fe);
	}
}
END_TEST

START_TEST(end_of_the_daemon_signals_what_is_pending_first)
{
	start_tx(USECS, 1000);
	leave_one_pending();
	daemon_stop(dut);
	expect_eq(driver_take_calls(nic_tx(&nic, 0)), 1);
}
END_TEST

START_TEST(new_settings_hold_at_once_and_lose_nothing)
{
	struct driver_ring *r = nic_tx(&nic, 0);

	start_tx(USECS, 1000);
	for (int round = 0; round < 6; round++) {
		bool is_on = round % 2;
		const char *usecs = is_on ? "tx-usecs=10000" : "tx-usecs=0";
		const char *frames = is_on ? "tx-frames=1000" : "tx-frames=0";
		uint64_t start_ns, us;

		if (!is_on)
			leave_one_pending();
		json_decref(
			daemon_ask(dut, "coalesce",
				   json_pack("{s:i, s:[s, s]}", "queue", 0, "set", usecs, frames)));
		if (!is_on)
			expect_msg(driver_wait_call(r, WAIT_PROMPT_MS), "the call is lost");
		driver_take_calls(r);
		start_ns = wait_now_ns();
		complete_one(0);
		us = call_delay_us(r, start_ns);
		if (is_on)
			expect_ge(us, USECS - 100);
		judge_delay(us, is_on ? USECS : 0);
	}
	expect_most_in_time();
}
END_TEST

static void add_rings(TCase *tc)
{
	tcase_add_test(tc, call_comes_with_the_last_of_the_frames);
	tcase_add_test(tc, bursts_are_never_left_uncalled);
	tcase_add_test(tc, driver_that_looks_by_itself_is_not_called);
	tcase_add_test(tc, receive_calls_are_put_off_too);
	tcase_add_test(tc, new_call_fd_gets_what_is_pending);
	tcase_add_test(tc, stop_and_disable_signal_what_is_pending_first);
	tcase_add_test(tc, end_of_the_daemon_signals_what_is_pending_first);
}

static void add_others(TCase *tc)
{
	tcase_add_test(tc, remainder_is_called_after_the_time);
	tcase_add_test(tc, steady_trickle_does_not_put_the_call_off);
	tcase_add_test(tc, zero_means_a_call_at_once);
	tcase_add_test(tc, settings_hold_for_every_pair_and_later_connection);
	tcase_add_loop_test(tc, transmit_calls_ride_on_receive_calls_when_told_to, 0, 2);
	tcase_add_test(tc, call_that_was_pending_at_removal_goes_to_the_next_fd);
	tcase_add_test(tc, new_settings_hold_at_once_and_lose_nothing);
}

int main(void)
{
	return system_main_rings("coalesce", add_rings, add_others);
}
