/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port tap: checksums and segmentation follow what the guest has negotiated, in both directions;
 * large frames arrive whole or not at all.
 */
#include <string.h>

#include "support/segment.h"
#include "support/tapnet.h"

/* All of them are TCP over IPv4. */
static void make_tcp(char *data, uint32_t len)
{
	segment_make(data, len, &segment_kinds[SEGMENT_TCP4], 0);
}

static bool is_finished(const char *data, uint32_t len)
{
	return segment_is_finished(data, len, &segment_kinds[SEGMENT_TCP4]);
}

static const struct virtio_net_hdr_v1 csum_hdr = {
	.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 34, .csum_offset = 16};
static const struct virtio_net_hdr_v1 tso_hdr = {
	.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
	.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
	.hdr_len = 54,
	.gso_size = 1460,
	.csum_start = 34,
	.csum_offset = 16,
};

#define TSO_LEN (14u + 65535u)
/* The kernel cuts what is larger than an interface's gso_max_size, Ethernet header included. */
#define TSO_IN_LEN 65535u

START_TEST(large_segmented_frames_go_out_whole)
{
	static char data[TSO_LEN], got[10 + NIC_MAX_FRAME];
	struct virtio_net_hdr h;

	tapnet_start(NULL);
	tapnet_listen(true);
	system_connect(&(struct nic_options){
		.features = NIC_FEATURES | NIC_OFFLOADS,
		.tx_buf_len = 66000,
		.layout = &(struct guest_layout){.region_size = 64 << 20},
	});
	for (int i = 0; i < 20; i++) {
		ssize_t n;

		make_tcp(data, sizeof(data));
		nic_queue(&nic, 0, &tso_hdr, data, sizeof(data));
		driver_kick(nic_tx(&nic, 0));
		n = netns_receive(wire.packet, got, sizeof(got), WAIT_LONG_MS);
		expect_eq(n, 10 + (ssize_t)sizeof(data));
		memcpy(&h, got, sizeof(h));
		expect_eq(h.gso_type, VIRTIO_NET_HDR_GSO_TCPV4);
		expect_eq(h.gso_size, 1460);
		expect_eq(h.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_F_NEEDS_CSUM);
		expect(memcmp(got + 10, data, sizeof(data)) == 0);
		nic_reap(&nic, 0);
	}
}
END_TEST

START_TEST(large_segmented_frames_come_in_whole)
{
	static char data[TSO_IN_LEN];

	tapnet_start(NULL);
	tapnet_listen(true);
	system_connect(&(struct nic_options){.features = NIC_FEATURES | NIC_OFFLOADS});
	nic_post(&nic, 0, 200, 2048);
	for (int i = 0; i < 20; i++) {
		make_tcp(data, sizeof(data));
		wire_send_offloaded(&tso_hdr, data, sizeof(data));
		nic_recv(&nic, 0, &wire.frame, WAIT_LONG_MS);
		expect_eq(wire.frame.len, sizeof(data));
		expect_gt(wire.frame.n_buffers, 30);
		expect_eq(wire.frame.hdr.gso_type, VIRTIO_NET_HDR_GSO_TCPV4);
		expect_eq(wire.frame.hdr.gso_size, 1460);
		expect(memcmp(wire.frame.data, data, sizeof(data)) == 0);
	}
}
END_TEST

START_TEST(segmented_frames_are_cut_up_for_a_guest_that_takes_none)
{
	static char data[TSO_LEN];
	uint32_t n_bytes = 0;

	tapnet_start(NULL);
	tapnet_listen(true);
	system_connect(NULL);
	nic_post(&nic, 0, 200, 2048);
	make_tcp(data, 54 + 10 * 1460);
	wire_send_offloaded(&tso_hdr, data, 54 + 10 * 1460);
	for (int i = 0; i < 10; i++) {
		nic_recv(&nic, 0, &wire.frame, WAIT_LONG_MS);
		expect_eq(wire.frame.len, 54 + 1460);
		expect(memcmp(&wire.frame.hdr, (char[10]){0}, 10) == 0);
		expect(is_finished(wire.frame.data, wire.frame.len));
		n_bytes += wire.frame.len - 54;
	}
	expect_eq(n_bytes, 14600);
}
END_TEST

START_TEST(unfinished_checksums_reach_only_guests_that_take_them)
{
	bool is_offloaded = _i;
	char data[500];

	tapnet_start(NULL);
	tapnet_listen(true);
	system_connect(&(struct nic_options){.features = is_offloaded ? NIC_FEATURES | NIC_OFFLOADS
								      : NIC_FEATURES});
	nic_post(&nic, 0, 64, 2048);
	make_tcp(data, sizeof(data));
	wire_send_offloaded(&csum_hdr, data, sizeof(data));
	nic_recv(&nic, 0, &wire.frame, WAIT_LONG_MS);
	expect_eq(wire.frame.len, sizeof(data));
	expect_eq(wire.frame.hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM,
		  is_offloaded ? VIRTIO_NET_HDR_F_NEEDS_CSUM : 0);
	expect_eq(is_finished(wire.frame.data, wire.frame.len), !is_offloaded);
}
END_TEST

START_TEST(offloads_follow_each_negotiation_and_end_with_it)
{
	char data[500];

	tapnet_start(NULL);
	tapnet_listen(true);
	make_tcp(data, sizeof(data));
	for (unsigned i = 0; i < 6; i++) {
		bool is_offloaded = i % 2 == 0;

		system_connect(&(struct nic_options){
			.features = is_offloaded ? NIC_FEATURES | NIC_OFFLOADS : NIC_FEATURES});
		nic_post(&nic, 0, 64, 2048);
		wire_send_offloaded(&csum_hdr, data, sizeof(data));
		nic_recv(&nic, 0, &wire.frame, WAIT_LONG_MS);
		expect_eq(is_finished(wire.frame.data, wire.frame.len), !is_offloaded);
		/* While nobody is connected the tap keeps what comes; it is finished by then. */
		nic_close(&nic);
	}
}
END_TEST

START_TEST(frame_that_waits_for_a_guest_with_fewer_offloads_is_fit_or_dropped)
{
	char data[500];

	tapnet_start(NULL);
	tapnet_listen(true);
	make_tcp(data, sizeof(data));
	system_connect(&(struct nic_options){.features = NIC_FEATURES | NIC_OFFLOADS});
	/* No buffers: it waits, and its checksum is not finished. */
	wire_send_offloaded(&csum_hdr, data, sizeof(data));
	wait_pause_us(20000);
	nic_close(&nic);
	system_connect(NULL);
	nic_post(&nic, 0, 64, 2048);
	for (int i = 0; i < 10; i++) {
		if (nic_poll(&nic, 0, &wire.frame)) {
			expect_eq(wire.frame.hdr.flags, 0);
			expect(is_finished(wire.frame.data, wire.frame.len));
		}
		wait_pause_us(5000);
	}
	wire_send_offloaded(&csum_hdr, data, sizeof(data));
	nic_recv(&nic, 0, &wire.frame, WAIT_LONG_MS);
	expect(is_finished(wire.frame.data, wire.frame.len));
}
END_TEST

START_TEST(headers_from_the_guest_that_make_no_sense_cost_one_frame)
{
	struct virtio_net_hdr_v1 bad = {0};
	char data[500];

	tapnet_start_guest(&(struct nic_options){.features = NIC_FEATURES | NIC_OFFLOADS});
	make_tcp(data, sizeof(data));
	for (unsigned i = 0; i < 9; i++) {
		bad = tso_hdr;
		switch (i) {
		case 0:
			bad.csum_start = 0xffff;
			break;
		case 1:
			bad.csum_offset = 0xffff;
			break;
		case 2:
			bad.csum_start = sizeof(data) - 17;
			break;
		case 3:
			bad.gso_size = 0;
			break;
		case 4:
			bad.hdr_len = 0xffff;
			break;
		case 5:
			bad.gso_type = 0x7f;
			break;
		case 6:
			bad.gso_type = VIRTIO_NET_HDR_GSO_UDP;
			break;
		case 7:
			bad.flags = 0;
			break;
		default:
			memset(&bad, 0xff, sizeof(bad));
		}
		nic_queue(&nic, 0, &bad, data, sizeof(data));
		driver_kick(nic_tx(&nic, 0));
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
		/* Whatever came of it. */
		while (netns_receive(wire.packet, wire.frame.data, sizeof(wire.frame.data), 0) >= 0)
			;
		wire_check_both_ways(i);
	}
	expect_ge(daemon_counter(dut, 0, "tx_dropped"), 6);
}
END_TEST

START_TEST(large_frames_reach_a_guest_without_merging_whole_or_not_at_all)
{
	tapnet_start(NULL);
	tapnet_listen(false);
	netns_set_mtu(&tapnet.ns, TAP, 9000);
	system_connect(&(struct nic_options){.features = NIC_BIT(VIRTIO_F_VERSION_1)});
	nic_post(&nic, 0, 16, 1600);
	for (uint32_t i = 0; i < 20; i++) {
		wire_send(5000, 1000 + i);
		wire_send(FRAME_LEN, i);
		wire_expect_at_guest(FRAME_LEN, i, WAIT_LONG_MS);
	}
	expect_eq(daemon_counter(dut, 0, "rx_oversize"), 20);
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 20);
}
END_TEST

START_TEST(offloads_are_offered_on_a_tap)
{
	const uint64_t offloads =
		NIC_OFFLOADS | NIC_BIT(VIRTIO_NET_F_HOST_ECN) | NIC_BIT(VIRTIO_NET_F_GUEST_ECN);
	uint64_t offered;

	tapnet_start("--set", "mtu=1500");
	frontend_connect(&nic.fe, dut->path);
	offered = frontend_ask_u64(&nic.fe, VHOST_USER_GET_FEATURES);
	expect_eq(offered & offloads, offloads);
	expect_eq(offered & NIC_BIT(VIRTIO_NET_F_MTU), NIC_BIT(VIRTIO_NET_F_MTU));
	/* No frontend passes UDP segmentation of today's kind, and the old kind is gone. */
	expect_eq(offered & (NIC_BIT(54) | NIC_BIT(55) | NIC_BIT(56)), 0);
}
END_TEST

static void add_all(TCase *tc)
{
	tapnet_add_fixture(tc);
	tcase_add_test(tc, large_segmented_frames_go_out_whole);
	tcase_add_test(tc, large_segmented_frames_come_in_whole);
	tcase_add_test(tc, segmented_frames_are_cut_up_for_a_guest_that_takes_none);
	tcase_add_loop_test(tc, unfinished_checksums_reach_only_guests_that_take_them, 0, 2);
	tcase_add_test(tc, offloads_follow_each_negotiation_and_end_with_it);
	tcase_add_test(tc, frame_that_waits_for_a_guest_with_fewer_offloads_is_fit_or_dropped);
	tcase_add_test(tc, headers_from_the_guest_that_make_no_sense_cost_one_frame);
	tcase_add_test(tc, large_frames_reach_a_guest_without_merging_whole_or_not_at_all);
	tcase_add_test(tc, offloads_are_offered_on_a_tap);
}

int main(void)
{
	return netns_is_possible() ? system_main("tap_offload", add_all) : 77;
}
