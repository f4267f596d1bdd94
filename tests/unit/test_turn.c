/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/turn.h"

#include <check.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <string.h>

#include "base/timer.h"
#include "support/bursts.h"
#include "support/suite.h"

#define V1	 BIT_ULL(VIRTIO_F_VERSION_1)
#define BIG_RING 16 /* the first shape of 256 entries, direct */

static void send_frame(uint32_t len, unsigned seed)
{
	bursts_send(NULL, len, seed, NULL, 0);
}

/* Take turns until there is nothing to do. */
static void turn_until_idle(void)
{
	for (unsigned i = 0; turn(bx.pair); i++)
		expect_lt(i, 10000);
}

static void coalesce(uint32_t usecs)
{
	struct moder_params params = {.usecs = usecs, .frames = usecs ? 1000 : 0};

	bx.pair->params.rx = bx.pair->params.tx = params;
	moder_set(&bx.pair->rx.moder, &params);
	moder_set(&bx.pair->tx.moder, &params);
}

/* ---- turns ---- */

START_TEST(an_idle_turn_says_so_and_touches_nothing)
{
	bursts_start(_i, V1);
	for (unsigned i = 0; i < 3; i++)
		expect(!turn(bx.pair));
	expect_eq(bursts_stat(STAT_used_publishes), 0);
	expect_eq(bursts_stat(STAT_calls), 0);
	expect_eq(driver_take_calls(&bx.rx.drv), 0);
}
END_TEST

START_TEST(a_turn_serves_both_directions_and_says_when_there_was_work)
{
	bursts_start(_i, V1);
	send_frame(60, 1);
	bursts_offer(100, 1);
	fake_port_push(&bx.fake, NULL, 70, 2);
	expect(turn(bx.pair));
	fake_port_sent(&bx.fake, 0, 60, 1);
	bursts_take_sent_n(1);
	bursts_receive(70, 2);
	expect(!turn(bx.pair));
}
END_TEST

START_TEST(a_turn_goes_on_while_the_port_has_frames_for_which_there_is_room)
{
	bursts_start(BIG_RING + _i, V1);
	bx.pair->params.batch = 1;
	bursts_offer(100, 2);
	for (unsigned i = 0; i < 4; i++)
		fake_port_push(&bx.fake, NULL, 60, i);
	expect(turn(bx.pair));
	expect(turn(bx.pair));
	/* No room: no port is asked, and no turn is taken for nothing. */
	expect(!turn(bx.pair));
	expect(!turn(bx.pair));
	bx.pair->rx.is_enabled = false;
	bursts_offer(100, 2);
	expect(!turn(bx.pair));
	bx.pair->rx.is_enabled = true;
	expect(turn(bx.pair));
	expect(turn(bx.pair));
	expect(!turn(bx.pair));
}
END_TEST

START_TEST(kicks_are_off_while_turns_are_taken)
{
	bursts_start(_i & ~RING_SHAPE_EVENT_IDX, V1);
	turn(bx.pair);
	expect(!driver_kick_is_wanted(&bx.rx.drv));
	expect(!driver_kick_is_wanted(&bx.tx.drv));
	virtq_kicks_on(&bx.pair->rx.vq);
	expect(driver_kick_is_wanted(&bx.rx.drv));
	turn(bx.pair);
	expect(!driver_kick_is_wanted(&bx.rx.drv));
}
END_TEST

START_TEST(rings_that_do_not_run_are_no_matter)
{
	bursts_start(_i, V1);
	bursts_stop_rx();
	bursts_stop_tx();
	fake_port_push(&bx.fake, NULL, 60, 1);
	send_frame(60, 1);
	expect(!turn(bx.pair));
	expect_eq(fake_port_n_waiting(&bx.fake), 1);
	expect_eq(bx.fake.n_taken, 0);
}
END_TEST

/* ---- coalescing ---- */

START_TEST(a_turn_sends_the_call_whose_time_has_come)
{
	bursts_start(BIG_RING + _i, V1);
	coalesce(60000000);
	bursts_offer(100, 1);
	fake_port_push(&bx.fake, NULL, 60, 1);
	turn(bx.pair);
	expect_eq(driver_take_calls(&bx.rx.drv), 0);
	bx.pair->rx.moder.deadline_ns = clock_now_ns();
	turn(bx.pair);
	expect_eq(driver_take_calls(&bx.rx.drv), 1);
	expect_eq(bursts_stat(STAT_calls_timer), 1);
	expect_eq(bx.pair->rx.moder.n_pending, 0);
}
END_TEST

/* Put off a call for each direction, then let the one for receive become due. */
static void call_for_receive(bool tx_at_rx)
{
	bx.pair->params.tx_at_rx = tx_at_rx;
	coalesce(60000000);
	send_frame(60, 1);
	bursts_offer(100, 1);
	fake_port_push(&bx.fake, NULL, 60, 1);
	turn(bx.pair);
	expect_eq(driver_take_calls(&bx.tx.drv), 0);
	bx.pair->rx.moder.deadline_ns = clock_now_ns();
	turn(bx.pair);
	expect_eq(driver_take_calls(&bx.rx.drv), 1);
}

START_TEST(pending_completions_ride_on_a_call_for_receive)
{
	bursts_start(BIG_RING + _i, V1);
	call_for_receive(true);
	expect_eq(driver_take_calls(&bx.tx.drv), 1);
	expect_eq(bx.pair->tx.moder.n_pending, 0);
}
END_TEST

START_TEST(pending_completions_wait_for_their_own_time_when_so_configured)
{
	bursts_start(BIG_RING + _i, V1);
	call_for_receive(false);
	expect_eq(driver_take_calls(&bx.tx.drv), 0);
	bx.pair->tx.moder.deadline_ns = clock_now_ns();
	turn(bx.pair);
	expect_eq(driver_take_calls(&bx.tx.drv), 1);
}
END_TEST

START_TEST(pending_completions_ride_on_a_call_in_the_burst_itself)
{
	bursts_start(BIG_RING + _i, V1);
	bx.pair->params.tx_at_rx = true;
	coalesce(60000000);
	send_frame(60, 1);
	turn(bx.pair);
	expect_eq(driver_take_calls(&bx.tx.drv), 0);
	moder_set(&bx.pair->rx.moder, &(struct moder_params){0});
	bursts_offer(100, 1);
	fake_port_push(&bx.fake, NULL, 60, 1);
	turn(bx.pair);
	expect_eq(driver_take_calls(&bx.rx.drv), 1);
	expect_eq(driver_take_calls(&bx.tx.drv), 1);
}
END_TEST

/* ---- port loopback ---- */

static const struct port_config loopback_config = {.ops = &loopback_port, .fd = -1};

START_TEST(what_the_guest_sends_comes_back)
{
	uint32_t size = ring_shape(_i).size;
	unsigned n = size < 8 ? size : 8;

	bursts_start_port(_i, _i % 3 ? V1 : 0, &loopback_config);
	for (unsigned round = 0; round < 10; round++) {
		bursts_offer(300, n);
		for (unsigned i = 0; i < n; i++)
			send_frame(14 + round * 20 + i, i);
		turn_until_idle();
		bursts_take_sent_n(n);
		for (unsigned i = 0; i < n; i++)
			bursts_receive(14 + round * 20 + i, i);
	}
	expect_eq(bursts_stat(STAT_tx_packets), 10 * n);
	expect_eq(bursts_stat(STAT_rx_packets), 10 * n);
	expect_eq(bursts_stat(STAT_tx_bytes), bursts_stat(STAT_rx_bytes));
}
END_TEST

START_TEST(frames_of_many_buffers_come_back_in_many_buffers)
{
	static const uint32_t cuts[] = {3, 9, 100, 1, 2000, 7};

	bursts_start_port(BIG_RING + _i, V1 | BIT_ULL(VIRTIO_NET_F_MRG_RXBUF), &loopback_config);
	bursts_offer(1000, 10);
	bursts_send(NULL, 5000, 1, cuts, array_size(cuts));
	bursts_send(NULL, 3000, 2, cuts, 3);
	turn_until_idle();
	bursts_receive(5000, 1);
	bursts_receive(3000, 2);
	bursts_take_sent_n(2);
}
END_TEST

START_TEST(without_receive_buffers_it_holds_the_guests_own)
{
	bursts_start_port(_i, V1, &loopback_config);
	send_frame(60, 1);
	send_frame(61, 2);
	turn_until_idle();
	expect(!bursts_take_sent());
	expect_eq(bursts_stat(STAT_tx_packets), 0);
	bursts_offer(100, 1);
	turn_until_idle();
	bursts_receive(60, 1);
	bursts_take_sent_n(1);
	bursts_offer(100, 1);
	turn_until_idle();
	bursts_receive(61, 2);
	bursts_take_sent_n(1);
}
END_TEST

START_TEST(a_full_loopback_leaves_frames_with_the_guest_and_loses_none)
{
	struct ring_shape shape;
	unsigned n = 0;

	bursts_start_port(24 + _i, V1, &loopback_config);
	shape = ring_shape(24 + _i);
	expect_eq(shape.size, 32768);
	for (unsigned i = 0; i < PORT_MAX_BATCH + 100; i++)
		send_frame(60 + i % 100, i);
	turn_until_idle();
	expect(bx.pair->port->tx_full);
	expect_eq(virtq_n_in_flight(&bx.pair->tx.vq), PORT_MAX_BATCH);
	while (n < PORT_MAX_BATCH + 100) {
		bursts_offer(200, 3);
		turn_until_idle();
		for (unsigned i = 0; i < 3 && n < PORT_MAX_BATCH + 100; i++, n++)
			bursts_receive(60 + n % 100, n);
	}
	bursts_take_sent_n(n);
	expect(!bx.pair->port->tx_full);
}
END_TEST

START_TEST(frames_that_it_holds_when_transmit_stops_come_again_once)
{
	bursts_start_port(BIG_RING + _i, V1, &loopback_config);
	for (unsigned i = 0; i < 4; i++)
		send_frame(60, i);
	bursts_offer(100, 1);
	turn_until_idle();
	bursts_receive(60, 0);
	bursts_stop_tx();
	bursts_take_sent_n(1);
	/* Their memory may be gone: nothing of it may reach the guest now. */
	bursts_offer(100, 10);
	turn_until_idle();
	bursts_expect_quiet();
	bursts_restart_tx();
	turn_until_idle();
	for (unsigned i = 1; i < 4; i++)
		bursts_receive(60, i);
	bursts_expect_quiet();
	bursts_take_sent_n(3);
}
END_TEST

START_TEST(a_full_loopback_that_was_stopped_takes_frames_again)
{
	bursts_start_port(24 + _i, V1, &loopback_config);
	for (unsigned i = 0; i < PORT_MAX_BATCH + 1; i++)
		send_frame(60, i);
	turn_until_idle();
	expect(bx.pair->port->tx_full);
	bursts_stop_tx();
	bursts_restart_tx();
	bursts_offer(100, PORT_MAX_BATCH + 1);
	turn_until_idle();
	for (unsigned i = 0; i < PORT_MAX_BATCH + 1; i++)
		bursts_receive(60, i);
	bursts_take_sent_n(PORT_MAX_BATCH + 1);
}
END_TEST

START_TEST(frames_that_it_holds_survive_stop_and_start_of_receive)
{
	bursts_start_port(BIG_RING + _i, V1, &loopback_config);
	send_frame(60, 1);
	turn_until_idle();
	bursts_stop_rx();
	turn_until_idle();
	bursts_restart_rx();
	bursts_offer(100, 1);
	turn_until_idle();
	bursts_receive(60, 1);
	bursts_take_sent_n(1);
}
END_TEST

START_TEST(a_frame_too_large_to_come_back_does_not_block_it)
{
	bursts_start_port(BIG_RING + _i, V1, &loopback_config);
	bursts_offer(100, 1);
	send_frame(200, 1);
	send_frame(60, 2);
	turn_until_idle();
	bursts_receive(60, 2);
	bursts_take_sent_n(2);
	expect_eq(bursts_stat(STAT_rx_oversize), 1);
}
END_TEST

/* ---- port null ---- */

START_TEST(null_discards_what_the_guest_sends)
{
	struct port_config cfg = {.ops = &null_port, .fd = -1};

	bursts_start_port(_i, V1, &cfg);
	bursts_offer(100, 2);
	for (unsigned i = 0; i < 10; i++) {
		send_frame(60, i);
		send_frame(61, i);
		turn_until_idle();
		bursts_take_sent_n(2);
	}
	bursts_expect_quiet();
	expect_eq(bursts_stat(STAT_tx_packets), 20);
	expect_eq(bursts_stat(STAT_tx_bytes), 1210);
}
END_TEST

START_TEST(null_is_an_endless_source_of_frames_of_one_size)
{
	struct port_config cfg = {
		.ops = &null_port, .fd = -1, .source_size = 14 + (uint32_t)_i * 500};
	uint32_t hdr_len;
	struct driver_used u;
	char frame[2048];

	bursts_start_port(BIG_RING + _i % 8, _i % 3 ? V1 : 0, &cfg);
	hdr_len = bx.pair->rx.hdr_len;
	for (unsigned round = 0; round < 5; round++) {
		bursts_offer(2048, 10);
		expect(turn(bx.pair));
		for (unsigned i = 0; i < 10; i++) {
			expect(driver_take(&bx.rx.drv, &u));
			expect_eq(u.len, hdr_len + cfg.source_size);
			driver_read(&bx.rx.drv, &u, frame, sizeof(frame));
			expect_eq(memcmp(frame, "\0\0\0\0\0\0\0\0\0\0", 10), 0);
			expect_eq(memcmp(frame + hdr_len, "\xff\xff\xff\xff\xff\xff", 6), 0);
		}
		expect(!turn(bx.pair));
	}
	expect_eq(bursts_stat(STAT_rx_packets), 50);
	expect_eq(bursts_stat(STAT_rx_bytes), 50 * cfg.source_size);
}
END_TEST

START_TEST(a_source_that_the_guest_cannot_take_does_not_spin)
{
	struct port_config cfg = {.ops = &null_port, .fd = -1, .source_size = 1500};

	bursts_start_port(BIG_RING + _i, V1, &cfg);
	expect(!turn(bx.pair));
	bursts_offer(2000, 3);
	expect(turn(bx.pair));
	expect(!turn(bx.pair));
	expect(!turn(bx.pair));
	expect_eq(bursts_stat(STAT_rx_packets), 3);
}
END_TEST

START_TEST(ports_are_found_by_name_and_describe_themselves)
{
	struct port_config cfg = {.ops = &null_port, .fd = -1, .source_size = 64};
	char text[64];

	expect(port_find("null") == &null_port);
	expect(port_find("loopback") == &loopback_port);
	expect(port_find("tap") == &tap_port);
	expect(!port_find("") && !port_find("nul") && !port_find("nullx"));
	bursts_start_port(BIG_RING, V1, &cfg);
	bx.port.ops->describe(&bx.port, text, sizeof(text));
	expect(strcmp(text, "null (source of 64-byte frames)") == 0);
	expect_eq(bx.port.ops->features(&bx.port), 0);
	expect_eq(bx.port.ops->negotiate(&bx.port, V1), 0);
}
END_TEST

static void add_turns(TCase *tc)
{
	add_for_small_shapes(tc, an_idle_turn_says_so_and_touches_nothing);
	add_for_small_shapes(tc, a_turn_serves_both_directions_and_says_when_there_was_work);
	tcase_add_loop_test(tc, a_turn_goes_on_while_the_port_has_frames_for_which_there_is_room, 0,
			    8);
	add_for_small_shapes(tc, kicks_are_off_while_turns_are_taken);
	add_for_small_shapes(tc, rings_that_do_not_run_are_no_matter);
	tcase_add_loop_test(tc, a_turn_sends_the_call_whose_time_has_come, 0, 8);
	tcase_add_loop_test(tc, pending_completions_ride_on_a_call_for_receive, 0, 8);
	tcase_add_loop_test(tc, pending_completions_wait_for_their_own_time_when_so_configured, 0,
			    8);
	tcase_add_loop_test(tc, pending_completions_ride_on_a_call_in_the_burst_itself, 0, 8);
}

static void add_loopback(TCase *tc)
{
	add_for_small_shapes(tc, what_the_guest_sends_comes_back);
	tcase_add_loop_test(tc, frames_of_many_buffers_come_back_in_many_buffers, 0, 8);
	add_for_small_shapes(tc, without_receive_buffers_it_holds_the_guests_own);
	tcase_add_loop_test(tc, a_full_loopback_leaves_frames_with_the_guest_and_loses_none, 0, 2);
	tcase_add_loop_test(tc, frames_that_it_holds_when_transmit_stops_come_again_once, 0, 8);
	tcase_add_loop_test(tc, a_full_loopback_that_was_stopped_takes_frames_again, 0, 2);
	tcase_add_loop_test(tc, frames_that_it_holds_survive_stop_and_start_of_receive, 0, 8);
	tcase_add_loop_test(tc, a_frame_too_large_to_come_back_does_not_block_it, 0, 8);
}

static void add_null(TCase *tc)
{
	add_for_small_shapes(tc, null_discards_what_the_guest_sends);
	tcase_add_loop_test(tc, null_is_an_endless_source_of_frames_of_one_size, 0, 4);
	tcase_add_loop_test(tc, a_source_that_the_guest_cannot_take_does_not_spin, 0, 8);
	tcase_add_test(tc, ports_are_found_by_name_and_describe_themselves);
}

int main(void)
{
	static const struct suite_ring_case cases[] = {
		{{"turns", bursts_setup, bursts_teardown, add_turns}, LAYOUT_BOTH},
		{{"loopback", bursts_setup, bursts_teardown, add_loopback}, LAYOUT_BOTH},
		{{"null", bursts_setup, bursts_teardown, add_null}, LAYOUT_BOTH},
	};

	return suite_run_rings("turn", cases, array_size(cases));
}
