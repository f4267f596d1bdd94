/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/rx_direct.h"

#include <check.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <string.h>

#include "support/bursts.h"
#include "support/suite.h"

#define V1	  BIT_ULL(VIRTIO_F_VERSION_1)
#define MERGEABLE (V1 | BIT_ULL(VIRTIO_NET_F_MRG_RXBUF))
#define BIG_RING  16 /* the first shape of 256 entries, direct */
#define LARGEST	  (FRAME_HDR_LEN + FRAME_MAX_LEN)

static void start(int shape, uint64_t features)
{
	bx.pair->ops = &fake_port_direct_ops;
	bursts_start(shape, features);
}

/* Have a large frame wait, and the port say so. */
static void push(uint32_t len, unsigned seed)
{
	fake_port_push(&bx.fake, NULL, len, seed);
	bx.fake.base.rx_is_large = true;
}

START_TEST(large_frames_go_straight_into_the_guests_buffers)
{
	start(BIG_RING + _i, MERGEABLE);
	bursts_offer(1526, 130);
	push(30000, 1);
	push(FRAME_MAX_LEN, 2);
	push(5000, 3);
	expect_eq(rx_burst(bx.pair), 3);
	expect_eq(bx.fake.n_direct, 3);
	expect_eq(bursts_receive(30000, 1).num_buffers, 20);
	expect_eq(bursts_receive(FRAME_MAX_LEN, 2).num_buffers, 43);
	expect_eq(bursts_receive(5000, 3).num_buffers, 4);
	bursts_expect_quiet();
	expect_eq(virtq_n_in_flight(&bx.pair->rx.vq), 0);
	expect_eq(bursts_stat(STAT_rx_packets), 3);
	expect_eq(bursts_stat(STAT_rx_bytes), 35000 + FRAME_MAX_LEN);
	expect_eq(bursts_stat(STAT_rx_batches), 1);
}
END_TEST

START_TEST(one_buffer_that_holds_the_largest_frame_will_do)
{
	start(_i, V1);
	bursts_offer(LARGEST, 2);
	push(FRAME_MAX_LEN, 1);
	push(4000, 2);
	expect_eq(rx_burst(bx.pair), 2);
	expect_eq(bx.fake.n_direct, 2);
	bursts_receive(FRAME_MAX_LEN, 1);
	bursts_receive(4000, 2);
}
END_TEST

/* The guest's header may lie in any pieces, though the port writes to one of ours. */
START_TEST(the_first_chain_may_have_any_layout)
{
	static const struct {
		uint32_t lens[5];
		unsigned n;
	} layouts[] = {
		{{12, LARGEST}, 2},	    {{11, LARGEST}, 2},	   {{13, LARGEST}, 2},
		{{1, 2, 3, 4, LARGEST}, 5}, {{0, 12, LARGEST}, 3},
	};
	vnet_hdr h = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_start = 34,
		.csum_offset = 16,
	};

	start(BIG_RING + _i, MERGEABLE | BIT_ULL(VIRTIO_NET_F_GUEST_CSUM));
	for (unsigned i = 0; i < array_size(layouts); i++) {
		vnet_hdr got;

		bursts_offer_lens(layouts[i].lens, layouts[i].n);
		fake_port_push(&bx.fake, &h, 20000, i);
		bx.fake.base.rx_is_large = true;
		expect_eq(rx_burst(bx.pair), 1);
		expect_eq(bx.fake.n_direct, i + 1);
		got = bursts_receive(20000, i);
		h.num_buffers = 1;
		expect_eq(memcmp(&got, &h, sizeof(h)), 0);
	}
}
END_TEST

/* A port that knows no length in advance cuts what does not fit: then the frame is copied. */
START_TEST(with_less_room_than_the_largest_frame_it_is_copied)
{
	bool is_mergeable = _i % 2;

	start(BIG_RING + _i / 2, is_mergeable ? MERGEABLE : V1);
	bursts_offer(LARGEST - 1, 1);
	push(FRAME_MAX_LEN - 1, 1);
	expect_eq(rx_burst(bx.pair), 1);
	expect_eq(bx.fake.n_direct, 0);
	bursts_receive(FRAME_MAX_LEN - 1, 1);
}
END_TEST

START_TEST(more_segments_than_a_readv_takes_are_copied_into)
{
	uint32_t lens[RING_MAX_SEGS];

	for (unsigned i = 0; i < RING_MAX_SEGS; i++)
		lens[i] = 60;
	start(BIG_RING + 1, MERGEABLE);
	for (unsigned i = 0; i < 20; i++)
		bursts_offer_lens(lens, RING_MAX_SEGS);
	push(60000, 1);
	expect_eq(rx_burst(bx.pair), 1);
	expect_eq(bx.fake.n_direct, 0);
	bursts_receive(60000, 1);
}
END_TEST

START_TEST(a_short_header_is_copied)
{
	start(BIG_RING, 0);
	bursts_offer(LARGEST, 1);
	push(5000, 1);
	expect_eq(rx_burst(bx.pair), 1);
	expect_eq(bx.fake.n_direct, 0);
	bursts_receive(5000, 1);
}
END_TEST

START_TEST(a_header_that_was_not_negotiated_drops_the_frame_and_no_buffer)
{
	vnet_hdr bad = {.gso_type = VIRTIO_NET_HDR_GSO_TCPV4};

	start(BIG_RING + _i, MERGEABLE);
	bursts_offer(LARGEST, 1);
	fake_port_push(&bx.fake, &bad, 5000, 1);
	push(6000, 2);
	expect_eq(rx_burst(bx.pair), 2);
	expect_eq(bx.fake.n_direct, 2);
	bursts_receive(6000, 2);
	bursts_expect_quiet();
	expect_eq(bursts_stat(STAT_rx_dropped), 1);
	expect_eq(bursts_stat(STAT_rx_packets), 1);
}
END_TEST

START_TEST(without_a_frame_the_buffers_stay_with_the_guest)
{
	start(BIG_RING + _i, MERGEABLE);
	bursts_offer(LARGEST, 1);
	bx.fake.base.rx_is_large = true;
	expect_eq(rx_burst(bx.pair), 0);
	bursts_expect_quiet();
	expect_eq(virtq_n_in_flight(&bx.pair->rx.vq), 0);
	expect_eq(bursts_stat(STAT_used_publishes), 0);
	push(5000, 1);
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive(5000, 1);
}
END_TEST

START_TEST(bad_chains_come_back_empty)
{
	struct driver_seg bad = {.gpa = 0, .len = LARGEST, .is_writable = true};

	start(BIG_RING + _i, MERGEABLE);
	bursts_offer(40000, 1);
	ring_offer(&bx.rx, &bad, 1, 0);
	bursts_offer(40000, 2);
	push(50000, 1);
	expect_eq(rx_burst(bx.pair), 1);
	bursts_receive_empty();
	bursts_receive_empty();
	expect_eq(bursts_receive(50000, 1).num_buffers, 2);
	expect_eq(bursts_stat(STAT_ring_errors), 1);
}
END_TEST

START_TEST(a_burst_is_bounded)
{
	start(BIG_RING + _i, MERGEABLE);
	bx.pair->params.batch = 3;
	bursts_offer(LARGEST, 10);
	for (unsigned i = 0; i < 7; i++)
		push(5000, i);
	expect_eq(rx_burst(bx.pair), 3);
	expect_eq(driver_n_used(&bx.rx.drv), 3);
	expect_eq(rx_burst(bx.pair), 3);
	expect_eq(rx_burst(bx.pair), 1);
	for (unsigned i = 0; i < 7; i++)
		bursts_receive(5000, i);
}
END_TEST

START_TEST(small_frames_behind_large_ones_are_copied)
{
	start(BIG_RING + _i, MERGEABLE);
	bursts_offer(LARGEST, 3);
	push(5000, 1);
	fake_port_push(&bx.fake, NULL, 60, 2);
	fake_port_push(&bx.fake, NULL, 61, 3);
	expect_eq(rx_burst(bx.pair), 1);
	expect_eq(rx_burst(bx.pair), 2);
	expect_eq(bx.fake.n_direct, 1);
	bursts_receive(5000, 1);
	bursts_receive(60, 2);
	bursts_receive(61, 3);
}
END_TEST

static void add_frames(TCase *tc)
{
	tcase_add_loop_test(tc, large_frames_go_straight_into_the_guests_buffers, 0, 8);
	add_for_small_shapes(tc, one_buffer_that_holds_the_largest_frame_will_do);
	tcase_add_loop_test(tc, the_first_chain_may_have_any_layout, 0, 8);
	tcase_add_loop_test(tc, with_less_room_than_the_largest_frame_it_is_copied, 0, 16);
	tcase_add_test(tc, more_segments_than_a_readv_takes_are_copied_into);
	tcase_add_test(tc, a_short_header_is_copied);
	tcase_add_loop_test(tc, a_header_that_was_not_negotiated_drops_the_frame_and_no_buffer, 0,
			    8);
	tcase_add_loop_test(tc, without_a_frame_the_buffers_stay_with_the_guest, 0, 8);
	tcase_add_loop_test(tc, bad_chains_come_back_empty, 0, 8);
	tcase_add_loop_test(tc, a_burst_is_bounded, 0, 8);
	tcase_add_loop_test(tc, small_frames_behind_large_ones_are_copied, 0, 8);
}

int main(void)
{
	static const struct suite_ring_case cases[] = {
		{{"frames", bursts_setup, bursts_teardown, add_frames}, LAYOUT_BOTH},
	};

	return suite_run_rings("rx_direct", cases, array_size(cases));
}
