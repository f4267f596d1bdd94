/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/turn.h"

#include <check.h>
#include <endian.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <string.h>

#include "support/bursts.h"
#include "support/suite.h"

#define V1	 BIT_ULL(VIRTIO_F_VERSION_1)
#define BIG_RING 16 /* the first shape of 256 entries, direct */

static void send_frame(uint32_t len, unsigned seed)
{
	bursts_send(NULL, len, seed, NULL, 0);
}

static const struct fake_frame *sent(unsigned i, uint32_t len, unsigned seed)
{
	return fake_port_sent(&bx.fake, i, len, seed);
}

/* Offer a chain whose buffer is not mapped. */
static void send_unmapped(void)
{
	struct driver_seg seg = {.gpa = 0, .len = 100};

	ring_offer(&bx.tx, &seg, 1, 0);
	driver_publish(&bx.tx.drv);
}

/* ---- whole frames ---- */

START_TEST(frames_are_sent_whole_and_in_order)
{
	const uint64_t features = _i % 2 ? V1 : 0;
	uint32_t size = ring_shape(_i).size;
	unsigned n = size < 8 ? size : 8;

	bursts_start(_i, features);
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < n; i++)
			send_frame(14 + (round * 37 + i) % 2000, round * n + i);
		expect_gt(tx_burst(bx.pair), 0);
		bursts_take_sent_n(n);
	}
	expect_eq(bx.fake.n_sent, 10 * n);
	for (unsigned i = 0; i < 10 * n; i++)
		sent(i, 14 + (i / n * 37 + i % n) % 2000, i);
	expect_eq(bursts_stat(STAT_tx_packets), 10 * n);
	expect_eq(bursts_stat(STAT_tx_batches), 10);
	expect_eq(bursts_stat(STAT_used_publishes), 10);
	expect_eq(tx_burst(bx.pair), 0);
}
END_TEST

static const struct {
	uint32_t lens[RING_MAX_SEGS];
	unsigned n;
} layouts[] = {
	{{0}, 0},
	{{10}, 1},
	{{12}, 1},
	{{11}, 1},
	{{1}, 1},
	{{9, 1, 1, 1}, 4},
	{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 17},
	{{12, 14}, 2},
	{{10, 14, 100, 200}, 4},
	{{0, 5, 0, 7, 0, 3}, 6},
	{{30}, 1},
};

START_TEST(header_and_data_may_have_any_layout)
{
	vnet_hdr h = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_start = 0x0122,
		.csum_offset = 0x0110,
		.hdr_len = 0x0236,
	};
	uint64_t features = (_i / 2 ? V1 : 0) | BIT_ULL(VIRTIO_NET_F_CSUM);

	bursts_start(BIG_RING + _i % 2, features);
	for (unsigned i = 0; i < array_size(layouts); i++) {
		const vnet_hdr *got;

		bursts_send(&h, 1000, i, layouts[i].lens, layouts[i].n);
		expect_gt(tx_burst(bx.pair), 0);
		got = &sent(i, 1000, i)->hdr;
		expect_eq(memcmp(got, &h, sizeof(h)), 0);
		bursts_take_sent_n(1);
	}
}
END_TEST

START_TEST(a_header_that_asks_for_nothing_leaves_as_zeros)
{
	static const vnet_hdr zero;
	vnet_hdr h = {.flags = VIRTIO_NET_HDR_F_DATA_VALID, .hdr_len = 9, .csum_offset = 0xffff};

	bursts_start(_i, V1);
	bursts_send(&h, 100, 1, NULL, 0);
	expect_gt(tx_burst(bx.pair), 0);
	expect_eq(memcmp(&sent(0, 100, 1)->hdr, &zero, sizeof(zero)), 0);
}
END_TEST

START_TEST(a_burst_is_bounded)
{
	bursts_start(BIG_RING + _i, V1);
	bx.pair->params.batch = 4;
	for (unsigned i = 0; i < 10; i++)
		send_frame(60, i);
	tx_burst(bx.pair);
	bursts_take_sent_n(4);
	tx_burst(bx.pair);
	bursts_take_sent_n(4);
	tx_burst(bx.pair);
	bursts_take_sent_n(2);
	expect_eq(bursts_stat(STAT_tx_batches), 3);
	expect_eq(bursts_stat(STAT_used_publishes), 3);
}
END_TEST

/* ---- frames that are no frames ---- */

/* Offer a frame that must be dropped, between two good ones. */
static void send_bad(int i)
{
	static const uint32_t lens[] = {0, 1, 13, FRAME_MAX_LEN + 1, 100000};
	static const vnet_hdr headers[] = {
		{.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 99},
		{.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 0xffff, .csum_offset = 0xffff},
		{.gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = 50},
		{.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = VIRTIO_NET_HDR_GSO_TCPV4},
		{.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		 .gso_type = VIRTIO_NET_HDR_GSO_TCPV6,
		 .gso_size = 50},
		{.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		 .gso_type = VIRTIO_NET_HDR_GSO_UDP,
		 .gso_size = 50},
		{.gso_type = 0x40},
	};

	if (i < 5)
		send_frame(lens[i], 7);
	else if (i < 12)
		bursts_send(&headers[i - 5], 100, 7, NULL, 0);
	else
		send_unmapped();
}

#define N_BAD 13

START_TEST(a_malformed_frame_comes_back_unsent_and_the_others_leave)
{
	bursts_start(BIG_RING + _i / N_BAD,
		     V1 | BIT_ULL(VIRTIO_NET_F_CSUM) | BIT_ULL(VIRTIO_NET_F_HOST_TSO4));
	send_frame(60, 1);
	send_bad(_i % N_BAD);
	send_frame(61, 2);
	expect_gt(tx_burst(bx.pair), 0);
	bursts_take_sent_n(3);
	expect_eq(bx.fake.n_sent, 2);
	sent(0, 60, 1);
	sent(1, 61, 2);
	expect_eq(bursts_stat(STAT_tx_malformed), 1);
	expect_eq(bursts_stat(STAT_tx_dropped), 1);
	expect_eq(bursts_stat(STAT_tx_bytes), 121);
	/* Nothing but bad ones. */
	send_bad(_i % N_BAD);
	send_bad(_i % N_BAD);
	expect_gt(tx_burst(bx.pair), 0);
	bursts_take_sent_n(2);
	expect_eq(bursts_stat(STAT_tx_malformed), 3);
	expect(!bx.pair->tx.vq.is_broken);
}
END_TEST

START_TEST(a_chain_shorter_than_the_header_is_malformed)
{
	bursts_start(_i, _i % 2 ? V1 : 0);
	ring_offer_one(&bx.tx, 1, false);
	ring_offer_one(&bx.tx, bx.pair->tx.hdr_len - 1, false);
	driver_publish(&bx.tx.drv);
	expect_gt(tx_burst(bx.pair), 0);
	bursts_take_sent_n(2);
	expect_eq(bursts_stat(STAT_tx_malformed), 2);
	expect_eq(bx.fake.n_taken, 0);
}
END_TEST

START_TEST(the_smallest_and_the_largest_frame_pass)
{
	static const uint32_t cuts[] = {12, 14, 30000, 20000};

	bursts_start(BIG_RING + _i, _i % 2 ? V1 : 0);
	send_frame(14, 1);
	send_frame(FRAME_MAX_LEN, 2);
	bursts_send(NULL, FRAME_MAX_LEN, 3, cuts, 4);
	expect_gt(tx_burst(bx.pair), 0);
	sent(0, 14, 1);
	sent(1, FRAME_MAX_LEN, 2);
	sent(2, FRAME_MAX_LEN, 3);
	bursts_take_sent_n(3);
}
END_TEST

START_TEST(a_head_that_ruins_the_ring_is_reported_and_the_frames_before_it_leave)
{
	bursts_start(_i, V1);
	send_frame(60, 1);
	driver_ruin(&bx.tx.drv);
	expect_gt(tx_burst(bx.pair), 0);
	sent(0, 60, 1);
	bursts_take_sent_n(1);
	expect_eq(driver_take_errs(&bx.tx.drv), 1);
	expect_eq(log_capture_count(&bx.lines, "q0.tx: ring broken"), 1);
	expect_eq(tx_burst(bx.pair), 0);
	expect_eq(driver_take_errs(&bx.tx.drv), 0);
	/* Set up again, it works. */
	bursts_stop_tx();
	driver_mend(&bx.tx.drv);
	bursts_restart_tx();
	send_frame(61, 2);
	expect_gt(tx_burst(bx.pair), 0);
	sent(1, 61, 2);
	bursts_take_sent_n(1);
}
END_TEST

START_TEST(an_avail_index_that_jumps_is_reported)
{
	bursts_start(_i, V1);
	bx.tx.drv.avail->idx = htole16((uint16_t)(bx.tx.shape.base + bx.tx.shape.size + 1));
	expect_eq(tx_burst(bx.pair), 0);
	expect_eq(driver_take_errs(&bx.tx.drv), 1);
	expect_eq(tx_burst(bx.pair), 0);
	expect_eq(driver_take_errs(&bx.tx.drv), 0);
}
END_TEST

/* ---- a ring that is not enabled ---- */

START_TEST(frames_of_a_ring_that_is_not_enabled_are_discarded)
{
	bursts_start(_i, V1);
	bx.pair->tx.is_enabled = false;
	send_frame(60, 1);
	send_unmapped();
	expect_gt(tx_burst(bx.pair), 0);
	bursts_take_sent_n(2);
	expect_eq(bx.fake.n_taken, 0);
	expect_eq(bursts_stat(STAT_tx_dropped), 2);
	expect_eq(bursts_stat(STAT_tx_malformed), 0);
	expect_eq(bursts_stat(STAT_tx_packets), 0);
	bx.pair->tx.is_enabled = true;
	send_frame(61, 2);
	expect_gt(tx_burst(bx.pair), 0);
	bursts_take_sent_n(1);
	sent(0, 61, 2);
}
END_TEST

/* What the port has taken already is sent; what it would not take is the guest's still. */
START_TEST(disabling_does_not_touch_what_the_port_has_taken)
{
	bursts_start(BIG_RING + _i, V1);
	bx.fake.holds = true;
	send_frame(60, 1);
	tx_burst(bx.pair);
	bx.pair->tx.is_enabled = false;
	send_frame(61, 2);
	tx_burst(bx.pair);
	expect(!bursts_take_sent());
	fake_port_finish(&bx.fake, 1);
	tx_burst(bx.pair);
	bursts_take_sent_n(2);
	expect_eq(bursts_stat(STAT_tx_packets), 1);
	expect_eq(bursts_stat(STAT_tx_dropped), 1);
}
END_TEST

/* ---- a port that is full, drops, or takes its time ---- */

START_TEST(what_a_full_port_does_not_take_waits_in_the_ring)
{
	unsigned n_room = (unsigned)_i % 6;

	bursts_start(BIG_RING + _i / 6, V1);
	bx.fake.room = n_room;
	for (unsigned i = 0; i < 5; i++)
		send_frame(60 + i, i);
	tx_burst(bx.pair);
	bursts_take_sent_n(n_room);
	expect_eq(bursts_stat(STAT_tx_port_full), n_room < 5);
	for (unsigned i = 0; i < 3 && n_room < 5; i++) {
		/* The port is not even asked (the fake insists) and it counts as one wait. */
		expect_eq(tx_burst(bx.pair), 0);
		expect_eq(bursts_stat(STAT_tx_port_full), 1);
		expect_eq(virtq_n_in_flight(&bx.pair->tx.vq), 0);
	}
	bx.fake.room = 100;
	bx.fake.base.tx_full = false;
	tx_burst(bx.pair);
	bursts_take_sent_n(5 - (n_room < 5 ? n_room : 5));
	for (unsigned i = 0; i < 5; i++)
		sent(i, 60 + i, i);
	expect_eq(bursts_stat(STAT_tx_dropped), 0);
}
END_TEST

START_TEST(a_malformed_frame_behind_an_untaken_one_waits_too)
{
	bursts_start(BIG_RING + _i, V1);
	bx.fake.room = 1;
	send_frame(60, 1);
	send_unmapped();
	send_frame(61, 2);
	send_unmapped();
	tx_burst(bx.pair);
	bursts_take_sent_n(2);
	bx.fake.room = 1;
	bx.fake.base.tx_full = false;
	tx_burst(bx.pair);
	bursts_take_sent_n(2);
	expect_eq(bx.fake.n_sent, 2);
	expect_eq(bursts_stat(STAT_tx_malformed), 2);
}
END_TEST

START_TEST(what_the_port_drops_comes_back_and_is_counted)
{
	bursts_start(BIG_RING + _i, V1);
	bx.fake.drop_every = 3;
	for (unsigned i = 0; i < 10; i++)
		send_frame(60 + i, i);
	tx_burst(bx.pair);
	bursts_take_sent_n(10);
	expect_eq(bx.fake.n_sent, 7);
	expect_eq(bursts_stat(STAT_tx_packets), 7);
	expect_eq(bursts_stat(STAT_tx_dropped), 3);
	expect_eq(bursts_stat(STAT_tx_malformed), 0);
	sent(2, 63, 3);
	/* All of them. */
	bx.fake.drop_every = 1;
	send_frame(60, 1);
	tx_burst(bx.pair);
	bursts_take_sent_n(1);
	expect_eq(bursts_stat(STAT_tx_dropped), 4);
	expect_eq(bursts_stat(STAT_tx_batches), 1);
}
END_TEST

START_TEST(heads_come_back_when_the_port_is_done_and_not_before)
{
	bursts_start(BIG_RING + _i, V1);
	bx.fake.holds = true;
	for (unsigned i = 0; i < 8; i++)
		send_frame(60 + i, i);
	expect_gt(tx_burst(bx.pair), 0);
	expect(!bursts_take_sent());
	expect_eq(bursts_stat(STAT_tx_packets), 0);
	fake_port_finish(&bx.fake, 3);
	expect_gt(tx_burst(bx.pair), 0);
	bursts_take_sent_n(3);
	expect_eq(tx_burst(bx.pair), 0);
	fake_port_finish(&bx.fake, 5);
	expect_eq(tx_complete(bx.pair), 5);
	bursts_take_sent_n(5);
	expect_eq(bursts_stat(STAT_tx_packets), 8);
}
END_TEST

START_TEST(what_was_dropped_waits_in_line_behind_what_the_port_holds)
{
	bursts_start(BIG_RING + _i, V1);
	bx.fake.holds = true;
	bx.fake.drop_every = 2;
	send_unmapped();
	send_frame(60, 1);
	send_unmapped();
	send_frame(61, 2); /* the port drops it */
	send_unmapped();
	tx_burst(bx.pair);
	bursts_take_sent_n(1);
	fake_port_finish(&bx.fake, 1);
	tx_burst(bx.pair);
	bursts_take_sent_n(2);
	fake_port_finish(&bx.fake, 1);
	tx_burst(bx.pair);
	bursts_take_sent_n(2);
	expect_eq(bursts_stat(STAT_tx_packets), 1);
	expect_eq(bursts_stat(STAT_tx_dropped), 4);
	expect_eq(bursts_stat(STAT_tx_malformed), 3);
}
END_TEST

/* The port reads a frame long after later ones were popped: its segments must still be there. */
START_TEST(frames_in_flight_stay_whole_while_others_come_and_go)
{
	static const uint32_t cuts[] = {12, 3, 100, 1, 1, 1, 50};
	unsigned n = 0;

	bursts_start(BIG_RING + _i, V1);
	bx.fake.holds = true;
	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < 7; i++)
			bursts_send(NULL, 300 + (n + i) % 100, n + i, cuts, i);
		tx_burst(bx.pair);
		n += 7;
		if (round % 3 == 2) {
			fake_port_finish(&bx.fake, 18);
			tx_burst(bx.pair);
			bursts_take_sent_n(18);
		}
	}
	fake_port_finish(&bx.fake, bx.fake.n_taken - bx.fake.n_finished);
	tx_burst(bx.pair);
	expect_eq(bx.fake.n_sent, n);
	for (unsigned i = 0; i < n; i++)
		sent(i, 300 + i % 100, i);
}
END_TEST

START_TEST(frames_that_find_no_room_for_their_segments_wait)
{
	uint32_t cuts[RING_MAX_SEGS - 1];
	unsigned n_back = 0;

	for (unsigned i = 0; i < array_size(cuts); i++)
		cuts[i] = 10;
	bursts_start(BIG_RING + 1, V1);
	bx.fake.holds = true;
	for (unsigned i = 0; i < 100; i++)
		bursts_send(NULL, 1000, i, cuts, array_size(cuts));
	/* Done one by one, which never leaves the pool empty until all that fit are gone. */
	while (n_back < 100) {
		expect_gt(tx_burst(bx.pair), 0);
		expect_gt(bx.fake.n_taken, n_back);
		while (bx.fake.n_taken > n_back) {
			fake_port_finish(&bx.fake, 1);
			tx_complete(bx.pair);
			bursts_take_sent_n(1);
			n_back++;
		}
	}
	for (unsigned i = 0; i < 100; i++)
		sent(i, 1000, i);
}
END_TEST

START_TEST(stop_cancels_what_the_port_holds_and_it_is_sent_after_a_start)
{
	bursts_start(BIG_RING + _i, V1);
	bx.fake.holds = true;
	for (unsigned i = 0; i < 4; i++)
		send_frame(60 + i, i);
	send_unmapped();
	tx_burst(bx.pair);
	fake_port_finish(&bx.fake, 2);
	bursts_stop_tx();
	expect(bx.fake.is_canceled);
	bursts_take_sent_n(2);
	expect_eq(tx_burst(bx.pair), 0);
	bursts_restart_tx();
	bx.fake.holds = false;
	expect_gt(tx_burst(bx.pair), 0);
	bursts_take_sent_n(3);
	for (unsigned i = 0; i < 4; i++)
		sent(i, 60 + i, i);
	expect_eq(bursts_stat(STAT_tx_packets), 4);
	expect_eq(bursts_stat(STAT_tx_dropped), 1);
}
END_TEST

static void add_frames(TCase *tc)
{
	add_for_all_shapes(tc, frames_are_sent_whole_and_in_order);
	tcase_add_loop_test(tc, header_and_data_may_have_any_layout, 0, 4);
	add_for_small_shapes(tc, a_header_that_asks_for_nothing_leaves_as_zeros);
	tcase_add_loop_test(tc, a_burst_is_bounded, 0, 8);
	tcase_add_loop_test(tc, the_smallest_and_the_largest_frame_pass, 0, 8);
	add_for_small_shapes(tc, frames_of_a_ring_that_is_not_enabled_are_discarded);
	tcase_add_loop_test(tc, disabling_does_not_touch_what_the_port_has_taken, 0, 8);
}

static void add_faults(TCase *tc)
{
	tcase_add_loop_test(tc, a_malformed_frame_comes_back_unsent_and_the_others_leave, 0,
			    4 * N_BAD);
	add_for_small_shapes(tc, a_chain_shorter_than_the_header_is_malformed);
	add_for_small_shapes(tc,
			     a_head_that_ruins_the_ring_is_reported_and_the_frames_before_it_leave);
}

static void add_port(TCase *tc)
{
	tcase_add_loop_test(tc, what_a_full_port_does_not_take_waits_in_the_ring, 0, 48);
	tcase_add_loop_test(tc, a_malformed_frame_behind_an_untaken_one_waits_too, 0, 8);
	tcase_add_loop_test(tc, what_the_port_drops_comes_back_and_is_counted, 0, 8);
	tcase_add_loop_test(tc, heads_come_back_when_the_port_is_done_and_not_before, 0, 8);
	tcase_add_loop_test(tc, what_was_dropped_waits_in_line_behind_what_the_port_holds, 0, 8);
	tcase_add_loop_test(tc, frames_in_flight_stay_whole_while_others_come_and_go, 0, 4);
	tcase_add_test(tc, frames_that_find_no_room_for_their_segments_wait);
	tcase_add_loop_test(tc, stop_cancels_what_the_port_holds_and_it_is_sent_after_a_start, 0,
			    8);
}

static void add_split_faults(TCase *tc)
{
	add_for_small_shapes(tc, an_avail_index_that_jumps_is_reported);
}

int main(void)
{
	static const struct suite_ring_case cases[] = {
		{{"frames", bursts_setup, bursts_teardown, add_frames}, LAYOUT_BOTH},
		{{"faults", bursts_setup, bursts_teardown, add_faults}, LAYOUT_BOTH},
		{{"indices", bursts_setup, bursts_teardown, add_split_faults}, LAYOUT_SPLIT},
		{{"ports", bursts_setup, bursts_teardown, add_port}, LAYOUT_BOTH},
	};

	return suite_run_rings("tx_burst", cases, array_size(cases));
}
