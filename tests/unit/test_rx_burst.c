/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/turn.h"

#include <check.h>
#include <endian.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <string.h>

#include "support/bursts.h"
#include "support/suite.h"

#define V1	  BIT_ULL(VIRTIO_F_VERSION_1)
#define MERGEABLE (V1 | BIT_ULL(VIRTIO_NET_F_MRG_RXBUF))
#define BIG_RING  16 /* the first shape of 256 entries, direct */

static void push(uint32_t len, unsigned seed)
{
	fake_port_push(&bx.fake, NULL, len, seed);
}

static bool is_event_shape(int i)
{
	return i & RING_SHAPE_EVENT_IDX;
}

/* ---- whole frames ---- */

START_TEST(frames_arrive_whole_and_in_order)
{
	const uint64_t features = _i % 3 == 0 ? MERGEABLE : _i % 3 == 1 ? V1 : 0;
	uint32_t size = ring_shape(_i).size;
	unsigned seed = 0, n = size < 8 ? size : 8;

	bursts_start(_i, features);
	for (unsigned round = 0; round < 10; round++) {
		bursts_offer(300, n);
		for (unsigned i = 0; i < n; i++)
			push(14 + (round * 37 + i) % 270, round * n + i);
		expect_eq(rx_burst(bx.pair), n);
		for (unsigned i = 0; i < n; i++, seed++) {
			vnet_hdr h = bursts_receive(14 + (round * 37 + i) % 270, seed);

			expect_eq(h.num_buffers, features ? 1 : 0);
			expect_eq(h.flags, 0);
		}
		bursts_expect_quiet();
	}
	expect_eq(bursts_stat(STAT_rx_packets), 10 * n);
	expect_eq(bursts_stat(STAT_rx_batches), 10);
	expect_eq(bursts_stat(STAT_used_publishes), 10);
	expect_eq(bursts_stat(STAT_rx_no_buffer), 0);
}
END_TEST

/* The header in a buffer of its own, with data, or in pieces; the data in pieces, too. */
static const struct {
	uint32_t lens[RING_MAX_SEGS];
	unsigned n;
} layouts[] = {
	{{1012}, 1},
	{{10, 1002}, 2},
	{{12, 1000}, 2},
	{{11, 1001}, 2},
	{{1, 1011}, 2},
	{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 998}, 15},
	{{5, 5, 2, 500, 500}, 5},
	{{6, 0, 6, 0, 1000}, 5},
	{{0, 12, 999, 1}, 4},
	{{4096, 4096}, 2},
};

START_TEST(receive_buffers_may_have_any_layout)
{
	int shape = BIG_RING + _i % 2;
	uint64_t features = _i / 2 % 3 == 0 ? MERGEABLE : _i / 2 % 3 == 1 ? V1 : 0;

	bursts_start(shape, features);
	for (unsigned i = 0; i < array_size(layouts); i++) {
		bx.fake.n_segs = 1 + i % FAKE_MAX_SEGS;
		bursts_offer_lens(layouts[i].lens, layouts[i].n);
		push(1000, i);
		expect_eq(rx_burst(bx.pair), 1);
		bursts_receive(1000, i);
		/* One byte less than there is room for, and a short one. */
		bursts_offer_lens(layouts[i].lens, layouts[i].n);
		push(999, i + 100);
		bursts_offer_lens(layouts[i].lens, layouts[i].n);
		push(14, i + 200);
		expect_eq(rx_burst(bx.pair), 2);
		bursts_receive(999, i + 100);
		bursts_receive(14, i + 200);
	}
}
END_TEST

START_TEST(a_header_that_was_negotiated_reaches_the_guest)
{
	vnet_hdr h = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = 54,
		.gso_size = 1448,
		.csum_start = 34,
		.csum_offset = 16,
	};
	vnet_hdr got;

	bursts_start(_i, V1 | BIT_ULL(VIRTIO_NET_F_GUEST_CSUM) | BIT_ULL(VIRTIO_NET_F_GUEST_TSO4));
	bursts_offer(5000, 1);
	fake_port_push(&bx.fake, &h, 4000, 1);
	expect_eq(rx_burst(bx.pair), 1);
	got = bursts_receive(4000, 1);
	h.num_buffers = 1;
	expect_eq(memcmp(&got, &h, sizeof(h)), 0);
}
END_TEST

START_TEST(a_header_that_was_not_negotiated_drops_the_frame_and_no_buffer)
{
	static const vnet_hdr bad[] = {
		{.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM},
		{.gso_type = VIRTIO_NET_HDR_GSO_TCPV6},
	};

	bursts_start(_i, V1);
	bursts_offer(300, 1);
	for (unsigned i = 0; i < array_size(bad); i++)
		fake_port_push(&bx.fake, &bad[i], 100, i);
	expect_eq(rx_burst(bx.pair), 1);
	expect_eq(rx_burst(bx.pair), 1);
	bursts_expect_quiet();
	push(100, 7);
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive(100, 7);
	expect_eq(bursts_stat(STAT_rx_dropped), 2);
	expect_eq(bursts_stat(STAT_rx_oversize), 0);
}
END_TEST

/* ---- more than one buffer for a frame ---- */

START_TEST(a_frame_takes_as_many_buffers_as_it_fills)
{
	static const uint32_t lens[] = {14, 88, 89, 188, 189, 288, 289, 388};
	vnet_hdr h;

	bursts_start(BIG_RING + _i, MERGEABLE);
	for (unsigned i = 0; i < array_size(lens); i++) {
		bx.fake.n_segs = 1 + i % FAKE_MAX_SEGS;
		bursts_offer(100, 4);
		push(lens[i], i);
		expect_eq(rx_burst(bx.pair), 1);
		h = bursts_receive(lens[i], i);
		expect_eq(h.num_buffers, (12 + lens[i] + 99) / 100);
		/* Those that are left, for the round after this one. */
		for (unsigned k = h.num_buffers; k < 4; k++) {
			push(20, k);
			expect_eq(rx_burst(bx.pair), 1);
			bursts_receive(20, k);
		}
	}
}
END_TEST

START_TEST(the_largest_frame_goes_into_small_buffers)
{
	bursts_start(BIG_RING + _i, MERGEABLE);
	bursts_offer(1526, 100);
	push(FRAME_MAX_LEN, 1);
	push(60, 2);
	push(FRAME_MAX_LEN, 3);
	expect_eq(rx_burst(bx.pair), 3);
	expect_eq(bursts_receive(FRAME_MAX_LEN, 1).num_buffers, 43);
	expect_eq(bursts_receive(60, 2).num_buffers, 1);
	expect_eq(bursts_receive(FRAME_MAX_LEN, 3).num_buffers, 43);
	expect_eq(bursts_stat(STAT_rx_bytes), 2 * FRAME_MAX_LEN + 60);
}
END_TEST

START_TEST(chains_of_a_frame_may_differ_in_all)
{
	static const uint32_t a[] = {5, 7, 20}, c[] = {1}, d[] = {3, 0, 4};

	bursts_start(BIG_RING + _i, MERGEABLE);
	bursts_offer_lens(a, 3);
	bursts_offer_lens(c, 1);
	bursts_offer_lens(d, 3);
	push(20 + 1 + 6, 1);
	expect_eq(rx_burst(bx.pair), 1);
	expect_eq(bursts_receive(27, 1).num_buffers, 3);
}
END_TEST

START_TEST(without_mergeable_buffers_a_frame_that_does_not_fit_is_dropped)
{
	uint64_t features = _i % 2 ? V1 : 0;

	bursts_start(_i, features);
	bursts_offer(100, 2);
	push(101 - bx.pair->rx.hdr_len, 1);
	push(100 - bx.pair->rx.hdr_len, 2);
	expect_eq(rx_burst(bx.pair), 2);
	bursts_receive(100 - bx.pair->rx.hdr_len, 2);
	bursts_expect_quiet();
	expect_eq(bursts_stat(STAT_rx_oversize), 1);
	expect_eq(bursts_stat(STAT_rx_dropped), 1);
	expect_eq(bursts_stat(STAT_rx_packets), 1);
}
END_TEST

START_TEST(a_frame_that_the_whole_ring_cannot_hold_is_dropped)
{
	uint32_t size = ring_shape(_i).size;

	bursts_start(_i, MERGEABLE);
	bursts_offer(100, size);
	push(100 * size - 11, 1);
	push(100 * size - 12, 2);
	while (rx_burst(bx.pair) > 0)
		;
	expect_eq(bursts_receive(100 * size - 12, 2).num_buffers, size);
	expect_eq(bursts_stat(STAT_rx_oversize), 1);
	expect_eq(bursts_stat(STAT_rx_dropped), 1);
}
END_TEST

/* Three descriptors a chain: the one or two more of the ring can never hold another one. */
START_TEST(a_ring_that_no_further_chain_fits_into_is_the_whole_ring)
{
	static const uint32_t lens[] = {50, 50, 50};

	bursts_start(8, MERGEABLE);
	expect_lt(ring_shape(8).size, 6);
	bursts_offer_lens(lens, 3);
	push(139, 1);
	push(138, 2);
	while (rx_burst(bx.pair) > 0)
		;
	bursts_receive(138, 2);
	expect_eq(bursts_stat(STAT_rx_oversize), 1);
}
END_TEST

/* ---- waiting for buffers ---- */

START_TEST(without_buffers_frames_stay_in_the_port)
{
	bursts_start(_i, MERGEABLE);
	push(60, 1);
	push(61, 2);
	for (unsigned i = 0; i < 3; i++) {
		expect_eq(rx_burst(bx.pair), 0);
		expect(bx.pair->rx_is_starved);
		expect_eq(fake_port_n_waiting(&bx.fake), 2);
	}
	bursts_offer(100, 1);
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive(60, 1);
	expect_eq(rx_burst(bx.pair), 0);
	expect(bx.pair->rx_is_starved);
	bursts_offer(100, 1);
	expect_eq(rx_burst(bx.pair), 1);
	expect(!bx.pair->rx_is_starved);
	bursts_receive(61, 2);
}
END_TEST

START_TEST(too_few_buffers_for_a_frame_stay_with_the_guest)
{
	bursts_start(BIG_RING + _i, MERGEABLE);
	bursts_offer(100, 2);
	push(400, 1);
	push(20, 2);
	for (unsigned i = 0; i < 3; i++) {
		expect_eq(rx_burst(bx.pair), 0);
		expect(bx.pair->rx_is_starved);
		/* One wait, however often it is looked at. */
		expect_eq(bursts_stat(STAT_rx_no_buffer), 1);
		expect_eq(virtq_n_in_flight(&bx.pair->rx.vq), 0);
	}
	bursts_offer(100, 1);
	expect_eq(rx_burst(bx.pair), 0);
	expect_eq(bursts_stat(STAT_rx_no_buffer), 2);
	bursts_expect_quiet();
	bursts_offer(100, 3);
	expect_eq(rx_burst(bx.pair), 2);
	expect_eq(bursts_receive(400, 1).num_buffers, 5);
	expect_eq(bursts_receive(20, 2).num_buffers, 1);
	expect_eq(bursts_stat(STAT_rx_dropped), 0);
}
END_TEST

START_TEST(frames_before_the_one_that_must_wait_are_delivered)
{
	bursts_start(BIG_RING + _i, MERGEABLE);
	bursts_offer(100, 4);
	push(20, 1);
	push(150, 2);
	push(350, 3);
	expect_eq(rx_burst(bx.pair), 2);
	bursts_receive(20, 1);
	bursts_receive(150, 2);
	bursts_expect_quiet();
	expect_eq(fake_port_n_waiting(&bx.fake), 1);
	expect_eq(bursts_stat(STAT_rx_packets), 2);
	bursts_offer(100, 3);
	expect_eq(rx_burst(bx.pair), 1);
	expect_eq(bursts_receive(350, 3).num_buffers, 4);
}
END_TEST

START_TEST(a_ring_that_is_not_enabled_is_not_touched)
{
	bursts_start(_i, MERGEABLE);
	bx.pair->rx.is_enabled = false;
	bursts_offer(100, 2);
	push(60, 1);
	expect_eq(rx_burst(bx.pair), 0);
	bursts_expect_quiet();
	expect_eq(fake_port_n_waiting(&bx.fake), 1);
	bx.pair->rx.is_enabled = true;
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive(60, 1);
	bx.pair->rx.is_enabled = false;
	push(60, 2);
	expect_eq(rx_burst(bx.pair), 0);
	bx.pair->rx.is_enabled = true;
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive(60, 2);
}
END_TEST

START_TEST(buffers_survive_stop_and_start_of_the_ring)
{
	bursts_start(_i, MERGEABLE);
	bursts_offer(100, 2);
	push(60, 1);
	expect_eq(rx_burst(bx.pair), 1);
	bursts_stop_rx();
	push(61, 2);
	expect_eq(rx_burst(bx.pair), 0);
	bursts_restart_rx();
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive(60, 1);
	bursts_receive(61, 2);
}
END_TEST

/* ---- chains that are wrong ---- */

static void offer_unmapped(void)
{
	struct driver_seg seg = {.gpa = 0, .len = 100, .is_writable = true};

	ring_offer(&bx.rx, &seg, 1, 0);
	driver_publish(&bx.rx.drv);
}

START_TEST(a_bad_chain_comes_back_empty_and_costs_no_frame)
{
	bursts_start(_i, MERGEABLE);
	offer_unmapped();
	bursts_offer(100, 1);
	push(60, 1);
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive_empty();
	bursts_receive(60, 1);
	expect_eq(bursts_stat(STAT_ring_errors), 1);
	expect_eq(bursts_stat(STAT_rx_packets), 1);
	/* Nothing but bad ones: the frame waits for good ones. */
	offer_unmapped();
	offer_unmapped();
	push(61, 2);
	expect_eq(rx_burst(bx.pair), 0);
	expect(bx.pair->rx_is_starved);
	bursts_receive_empty();
	bursts_receive_empty();
	bursts_expect_quiet();
	bursts_offer(100, 1);
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive(61, 2);
}
END_TEST

/* A guest could refill them as fast as they come back. */
START_TEST(a_burst_gives_back_some_bad_chains_and_the_next_one_goes_on)
{
	unsigned n_bursts = 0;

	bursts_start(BIG_RING + _i, MERGEABLE);
	bx.pair->params.batch = 4;
	for (unsigned i = 0; i < 100; i++)
		offer_unmapped();
	push(60, 1);
	while (driver_n_used(&bx.rx.drv) < 100) {
		uint16_t before = driver_n_used(&bx.rx.drv);

		/* The last one finds out that there are no more. */
		expect(turn(bx.pair) || driver_n_used(&bx.rx.drv) == 100);
		expect_le(driver_n_used(&bx.rx.drv) - before, 5);
		n_bursts++;
	}
	expect_ge(n_bursts, 20);
	while (turn(bx.pair))
		;
	expect(bx.pair->rx_is_starved);
	for (unsigned i = 0; i < 100; i++)
		bursts_receive_empty();
	bursts_offer(100, 1);
	expect(turn(bx.pair));
	bursts_receive(60, 1);
}
END_TEST

/* Buffers of one frame follow one another, and used ones keep their order. */
START_TEST(a_bad_chain_amid_a_frame_comes_back_empty_with_those_before_it)
{
	bursts_start(BIG_RING + _i, MERGEABLE);
	push(20, 1);
	push(250, 2);
	bursts_offer(100, 1);
	bursts_offer(100, 2);
	offer_unmapped();
	bursts_offer(100, 3);
	expect_eq(rx_burst(bx.pair), 2);
	bursts_receive(20, 1);
	for (unsigned i = 0; i < 3; i++)
		bursts_receive_empty();
	expect_eq(bursts_receive(250, 2).num_buffers, 3);
	bursts_expect_quiet();
	expect_eq(bursts_stat(STAT_ring_errors), 1);
	expect_eq(bursts_stat(STAT_rx_dropped), 0);
}
END_TEST

START_TEST(a_chain_that_cannot_hold_the_header_comes_back_empty)
{
	bursts_start(BIG_RING + _i / 2, _i % 2 ? MERGEABLE : 0);
	bursts_offer(bx.pair->rx.hdr_len - 1, 2);
	bursts_offer(200, 1);
	push(60, 1);
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive_empty();
	bursts_receive_empty();
	bursts_receive(60, 1);
}
END_TEST

static void expect_reported(void)
{
	expect_eq(driver_take_errs(&bx.rx.drv), 1);
	expect_eq(log_capture_count(&bx.lines, "q0.rx: ring broken"), 1);
	expect_eq(bursts_stat(STAT_ring_errors), 1);
	expect_eq(rx_burst(bx.pair), 0);
	expect_eq(driver_take_errs(&bx.rx.drv), 0);
}

START_TEST(an_avail_index_that_jumps_is_reported_also_while_frames_wait)
{
	bool is_starved = _i % 2;

	bursts_start(_i / 2, MERGEABLE);
	push(60, 1);
	if (is_starved)
		expect_eq(rx_burst(bx.pair), 0);
	bx.rx.drv.avail->idx = htole16((uint16_t)(bx.rx.shape.base + bx.rx.shape.size + 1));
	expect_eq(rx_burst(bx.pair), 0);
	expect_reported();
	expect_eq(fake_port_n_waiting(&bx.fake), 1);
}
END_TEST

START_TEST(a_head_that_ruins_the_ring_is_reported_and_the_frames_stay_in_the_port)
{
	bursts_start(_i, MERGEABLE);
	bursts_offer(100, 1);
	push(60, 1);
	push(61, 2);
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive(60, 1);
	driver_ruin(&bx.rx.drv);
	expect_eq(rx_burst(bx.pair), 0);
	expect_reported();
	expect_eq(fake_port_n_waiting(&bx.fake), 1);
	/* Set up again, it works. */
	bursts_stop_rx();
	driver_mend(&bx.rx.drv);
	bursts_restart_rx();
	bursts_offer(100, 1);
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive(61, 2);
}
END_TEST

/* ---- bursts ---- */

START_TEST(a_burst_is_bounded_and_published_at_its_end)
{
	bursts_start(BIG_RING + _i, MERGEABLE);
	bx.pair->params.batch = 4;
	bursts_offer(100, 10);
	for (unsigned i = 0; i < 10; i++)
		push(60, i);
	expect_eq(rx_burst(bx.pair), 4);
	expect(bx.fake.base.rx_more);
	expect_eq(driver_n_used(&bx.rx.drv), 4);
	expect_eq(bursts_stat(STAT_used_publishes), 1);
	expect_eq(rx_burst(bx.pair), 4);
	expect_eq(rx_burst(bx.pair), 2);
	expect(!bx.fake.base.rx_more);
	for (unsigned i = 0; i < 10; i++)
		bursts_receive(60, i);
	expect_eq(bursts_stat(STAT_rx_batches), 3);
	expect_eq(bursts_stat(STAT_used_publishes), 3);
	expect_eq(driver_take_calls(&bx.rx.drv), is_event_shape(_i) ? 1 : 3);
}
END_TEST

/* Used entries of more than a batch: a frame may take many. */
START_TEST(more_used_entries_than_a_batch_are_published_in_between)
{
	bursts_start(BIG_RING + _i, MERGEABLE);
	bx.pair->params.batch = 4;
	bursts_offer(100, 12);
	for (unsigned i = 0; i < 4; i++)
		push(250, i);
	expect_eq(rx_burst(bx.pair), 4);
	expect_ge(bursts_stat(STAT_used_publishes), 2);
	for (unsigned i = 0; i < 4; i++)
		expect_eq(bursts_receive(250, i).num_buffers, 3);
}
END_TEST

/* ---- many segments ---- */

static void offer_many_segments(unsigned n)
{
	uint32_t lens[RING_MAX_SEGS];

	for (unsigned i = 0; i < RING_MAX_SEGS; i++)
		lens[i] = 16;
	while (n-- > 0)
		bursts_offer_lens(lens, RING_MAX_SEGS);
}

START_TEST(frames_pass_though_their_segments_fill_the_pool_again_and_again)
{
	bursts_start(BIG_RING + 1, MERGEABLE);
	bx.pair->params.batch = 1 + _i * 85; /* 1, 86, 171, 256 */
	offer_many_segments(240);
	/* Each takes 20 chains of 65 entries; the pool holds 31 or so. */
	for (unsigned i = 0; i < 12; i++)
		push(20 * 1024 - 12, i);
	while (rx_burst(bx.pair) > 0)
		;
	for (unsigned i = 0; i < 12; i++)
		expect_eq(bursts_receive(20 * 1024 - 12, i).num_buffers, 20);
	expect_eq(bursts_stat(STAT_rx_dropped), 0);
}
END_TEST

START_TEST(a_frame_for_which_the_pool_has_no_room_is_dropped)
{
	bursts_start(BIG_RING + 1, MERGEABLE);
	offer_many_segments(100);
	push(40 * 1024, 1);
	push(1000, 2);
	while (rx_burst(bx.pair) > 0)
		;
	bursts_receive(1000, 2);
	bursts_expect_quiet();
	expect_eq(bursts_stat(STAT_rx_dropped), 1);
	expect_eq(bursts_stat(STAT_rx_oversize), 1);
	expect(!bx.pair->rx.vq.is_broken);
}
END_TEST

static void add_frames(TCase *tc)
{
	add_for_all_shapes(tc, frames_arrive_whole_and_in_order);
	tcase_add_loop_test(tc, receive_buffers_may_have_any_layout, 0, 6);
	add_for_small_shapes(tc, a_header_that_was_negotiated_reaches_the_guest);
	add_for_small_shapes(tc, a_header_that_was_not_negotiated_drops_the_frame_and_no_buffer);
	tcase_add_loop_test(tc, a_frame_takes_as_many_buffers_as_it_fills, 0, 8);
	tcase_add_loop_test(tc, the_largest_frame_goes_into_small_buffers, 0, 8);
	tcase_add_loop_test(tc, chains_of_a_frame_may_differ_in_all, 0, 8);
	add_for_small_shapes(tc, without_mergeable_buffers_a_frame_that_does_not_fit_is_dropped);
	add_for_small_shapes(tc, a_frame_that_the_whole_ring_cannot_hold_is_dropped);
	tcase_add_test(tc, a_ring_that_no_further_chain_fits_into_is_the_whole_ring);
	tcase_add_loop_test(tc, a_burst_is_bounded_and_published_at_its_end, 0, 8);
	tcase_add_loop_test(tc, more_used_entries_than_a_batch_are_published_in_between, 0, 8);
	tcase_add_loop_test(tc, frames_pass_though_their_segments_fill_the_pool_again_and_again, 0,
			    4);
	tcase_add_test(tc, a_frame_for_which_the_pool_has_no_room_is_dropped);
}

static void add_waits(TCase *tc)
{
	add_for_small_shapes(tc, without_buffers_frames_stay_in_the_port);
	tcase_add_loop_test(tc, too_few_buffers_for_a_frame_stay_with_the_guest, 0, 8);
	tcase_add_loop_test(tc, frames_before_the_one_that_must_wait_are_delivered, 0, 8);
	add_for_small_shapes(tc, a_ring_that_is_not_enabled_is_not_touched);
	add_for_small_shapes(tc, buffers_survive_stop_and_start_of_the_ring);
}

static void add_faults(TCase *tc)
{
	add_for_small_shapes(tc, a_bad_chain_comes_back_empty_and_costs_no_frame);
	tcase_add_loop_test(tc, a_burst_gives_back_some_bad_chains_and_the_next_one_goes_on, 0, 8);
	tcase_add_loop_test(tc, a_bad_chain_amid_a_frame_comes_back_empty_with_those_before_it, 0,
			    8);
	tcase_add_loop_test(tc, a_chain_that_cannot_hold_the_header_comes_back_empty, 0, 16);
	add_for_small_shapes(
		tc, a_head_that_ruins_the_ring_is_reported_and_the_frames_stay_in_the_port);
}

static void add_split_faults(TCase *tc)
{
	tcase_add_loop_test(tc, an_avail_index_that_jumps_is_reported_also_while_frames_wait, 0,
			    2 * RING_N_SMALL_SHAPES);
}

int main(void)
{
	static const struct suite_ring_case cases[] = {
		{{"frames", bursts_setup, bursts_teardown, add_frames}, LAYOUT_BOTH},
		{{"waits", bursts_setup, bursts_teardown, add_waits}, LAYOUT_BOTH},
		{{"faults", bursts_setup, bursts_teardown, add_faults}, LAYOUT_BOTH},
		{{"indices", bursts_setup, bursts_teardown, add_split_faults}, LAYOUT_SPLIT},
	};

	return suite_run_rings("rx_burst", cases, array_size(cases));
}
