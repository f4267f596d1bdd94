/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port xdp: frames of every size arrive whole or are dropped under a counter; none is cut.
 */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "support/segment.h"
#include "support/xdpnet.h"

#define JUMBO_MTU 9000
#define JUMBO_LEN (JUMBO_MTU + 14u)

static char data[NIC_MAX_FRAME], got[NIC_MAX_FRAME];
static struct nic_frame *const frame = &wire.frame;

static const struct nic_options jumbo_guest = {
	.features = NIC_FEATURES | NIC_OFFLOADS,
	.tx_buf_len = 66000,
	.layout = &(struct guest_layout){.region_size = 64 << 20},
};

/* Frames in several pieces (XDP_USE_SG). */
static bool kernel_has_multi_buffer(void)
{
	return xdpnet_has_linux(6, 6);
}

static void set_mtus(int mtu)
{
	netns_set_mtu(&xdpnet.far_ns, XDP_FAR, mtu);
	netns_set_mtu(&xdpnet.ns, XDP_IF, mtu);
}

static void start_jumbo(unsigned mode, const char *frame_size, const struct nic_options *options)
{
	xdpnet_make_link(1);
	set_mtus(JUMBO_MTU);
	xdpnet_start("--set", xdpnet_mode_set[mode], "--set", frame_size);
	xdpnet_listen(false);
	system_connect(options);
}

static const char *const frame_sizes[] = {"port.frame-size=2048", "port.frame-size=4096"};

/* ---- larger than a frame of the packet memory ---- */

/* Around what one, two or more pieces hold, with what the kernel keeps free in front of them. */
static const uint32_t lens[] = {60,   1514, 1791, 1792, 1793, 2047, 2048,     2049, 3583,
				3584, 3585, 3839, 3840, 3841, 4095, 4096,     4097, 6144,
				6145, 8191, 8192, 8193, 9000, 9013, JUMBO_LEN};
#define N_LENS (sizeof(lens) / sizeof(lens[0]))

START_TEST(long_frames_go_both_ways_whole)
{
	struct xdpnet_umem before;

	if (!kernel_has_multi_buffer())
		return;
	start_jumbo((unsigned)_i % XDP_N_MODES, frame_sizes[_i / XDP_N_MODES], &jumbo_guest);
	nic_post(&nic, 0, 128, 2048);
	before = xdpnet_get_umem(0);
	for (uint32_t i = 0; i < 5 * N_LENS; i++) {
		const uint32_t len = lens[i * 7 % N_LENS];

		wire_send_from_guest(len, i);
		wire_expect(len, i);
		wire_send(len, i);
		wire_expect_at_guest(len, i, WAIT_LONG_MS);
	}
	expect_eq(daemon_counter(dut, 0, "rx_dropped") + daemon_counter(dut, 0, "tx_dropped"), 0);
	xdpnet_wait_umem_at_rest(0, &before);
}
END_TEST

START_TEST(bursts_of_long_frames_keep_their_order)
{
	struct xdpnet_umem before;

	if (!kernel_has_multi_buffer())
		return;
	start_jumbo((unsigned)_i % XDP_N_MODES, frame_sizes[_i / XDP_N_MODES], &jumbo_guest);
	before = xdpnet_get_umem(0);
	for (int round = 0; round < 20; round++) {
		/* They wait: a burst ends within a frame, if it does not look. */
		for (uint32_t i = 0; i < 60; i++) {
			nic_make_frame(data, lens[i % N_LENS], i);
			nic_queue(&nic, 0, NULL, data, lens[i % N_LENS]);
			wire_send(lens[i % N_LENS], i);
		}
		driver_kick(nic_tx(&nic, 0));
		if (round == 0)
			nic_post(&nic, 0, 200, 2048);
		for (uint32_t i = 0; i < 60; i++) {
			wire_expect(lens[i % N_LENS], i);
			wire_expect_at_guest(lens[i % N_LENS], i, WAIT_LONG_MS);
		}
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	}
	xdpnet_wait_umem_at_rest(0, &before);
}
END_TEST

START_TEST(checksums_of_long_frames_are_finished)
{
	if (!kernel_has_multi_buffer())
		return;
	start_jumbo(0, frame_sizes[_i % 2], &jumbo_guest);
	for (uint32_t i = 5; i < N_LENS; i++) {
		const struct segment_kind *k = &segment_kinds[i % SEGMENT_N_KINDS];
		struct virtio_net_hdr_v1 h = segment_hdr(k);

		segment_make(data, lens[i], k, i);
		nic_queue(&nic, 0, &h, data, lens[i]);
		driver_kick(nic_tx(&nic, 0));
		expect_eq(netns_receive(wire.packet, got, sizeof(got), WAIT_LONG_MS), lens[i]);
		expect(memcmp(got + 72, data + 72, lens[i] - 72) == 0);
		expect_msg(segment_is_finished(got, lens[i], k), "%u bytes", lens[i]);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	}
}
END_TEST

START_TEST(unfinished_checksums_of_long_frames_arrive_fit)
{
	const bool takes_marked = _i % 2;
	struct nic_options options = jumbo_guest;

	if (!kernel_has_multi_buffer())
		return;
	options.features = takes_marked ? NIC_FEATURES | NIC_OFFLOADS : NIC_FEATURES;
	start_jumbo((unsigned)_i / 2, frame_sizes[0], &options);
	nic_post(&nic, 0, 128, 2048);
	xdpnet_listen(true);
	for (uint32_t i = 1; i < N_LENS; i++) {
		const struct segment_kind *k = &segment_kinds[i % SEGMENT_N_KINDS];
		struct virtio_net_hdr_v1 h = segment_hdr(k);

		segment_make(data, lens[i], k, i);
		wire_send_offloaded(&h, data, lens[i]);
		nic_recv(&nic, 0, frame, WAIT_LONG_MS);
		expect_eq(frame->len, lens[i]);
		expect(memcmp(frame->data + 72, data + 72, lens[i] - 72) == 0);
		expect_eq(frame->hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM,
			  takes_marked ? VIRTIO_NET_HDR_F_NEEDS_CSUM : 0);
		expect_eq(segment_is_finished(frame->data, lens[i], k), !takes_marked);
	}
}
END_TEST

/* ---- larger than what is at the other end ---- */

START_TEST(long_frames_reach_a_guest_without_merging_whole_or_not_at_all)
{
	start_jumbo((unsigned)_i, frame_sizes[0],
		    &(struct nic_options){.features = NIC_BIT(VIRTIO_F_VERSION_1)});
	nic_post(&nic, 0, 16, 1600);
	for (uint32_t i = 0; i < 20; i++) {
		wire_send(5000, 1000 + i);
		wire_send(FRAME_LEN, i);
		wire_expect_at_guest(FRAME_LEN, i, WAIT_LONG_MS);
	}
	if (!kernel_has_multi_buffer())
		return;
	expect_eq(daemon_counter(dut, 0, "rx_oversize"), 20);
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 20);
}
END_TEST

/* Take what has come out of the port: frame `seq` of `len` bytes, or nothing. */
static unsigned count_on_wire(uint32_t len, uint32_t seq, unsigned ms)
{
	ssize_t n = netns_receive(wire.packet, frame->data, NIC_MAX_FRAME, ms);

	if (n < 0)
		return 0;
	frame->len = (uint32_t)n;
	nic_check_frame(frame, len, seq);
	return 1;
}

START_TEST(frames_beyond_the_mtu_leave_whole_or_are_counted)
{
	static const uint32_t beyond[] = {1515, 1519, 2048, 2049, 5000, 9014, 20000, 40000, 65000};
	unsigned n_out = 0, n = 0;

	xdpnet_make_link(1);
	xdpnet_start("--set", xdpnet_mode_set[_i]);
	xdpnet_listen(false);
	system_connect(&jumbo_guest);
	nic_post(&nic, 0, 64, 2048);
	for (; n < sizeof(beyond) / sizeof(beyond[0]); n++) {
		wire_send_from_guest(beyond[n], n);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
		wire_send_from_guest(FRAME_LEN, 100 + n);
		/* Either of the two comes first. */
		expect(wait_readable(wire.packet, WAIT_LONG_MS));
		if (recv(wire.packet, got, sizeof(got), MSG_PEEK | MSG_TRUNC) != FRAME_LEN)
			n_out += count_on_wire(beyond[n], n, WAIT_LONG_MS);
		wire_expect(FRAME_LEN, 100 + n);
	}
	expect_eq(n_out + daemon_counter(dut, 0, "tx_dropped"), n);
	wire_check_both_ways(1);
}
END_TEST

#define SUPER_LEN    30000u
#define SEGMENT_LEN  1448u
#define TCP4_PAYLOAD 54u

/* The sequence number of a frame made by segment_make(), or cut from it, counted from the first. */
static uint32_t offset_of(const struct nic_frame *f)
{
	uint32_t seq;

	memcpy(&seq, f->data + 38, sizeof(seq));
	return ntohl(seq) - 1;
}

/* Receive all of a stream's bytes. Return: in how many frames. */
static unsigned expect_stream(unsigned seed, uint32_t max_len)
{
	const uint32_t n_bytes = SUPER_LEN - TCP4_PAYLOAD;
	unsigned n = 0;

	for (uint32_t at = 0; at < n_bytes; n++) {
		nic_recv(&nic, 0, frame, WAIT_LONG_MS);
		expect_ge(max_len, frame->len);
		expect_ge(frame->len, TCP4_PAYLOAD + 1);
		expect_eq(offset_of(frame), at);
		for (uint32_t i = TCP4_PAYLOAD; i < frame->len; i++, at++)
			expect_eq(frame->data[i], (char)((at + TCP4_PAYLOAD) * 7 + seed));
	}
	return n;
}

/* What a veth's peer has not segmented: in native mode the kernel does, in generic mode nobody. */
START_TEST(unsegmented_frames_of_a_peer_arrive_whole)
{
	const struct segment_kind *k = &segment_kinds[SEGMENT_TCP4];
	struct virtio_net_hdr_v1 h = segment_hdr(k);
	const bool is_native = _i == 0;

	if (!kernel_has_multi_buffer())
		return;
	h.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	h.gso_size = SEGMENT_LEN;
	h.hdr_len = TCP4_PAYLOAD;
	xdpnet_make_link(1);
	xdpnet_start("--set", xdpnet_mode_set[_i]);
	expect_eq(daemon_log_count(dut, "ethtool -K PEER tso off"), is_native ? 0 : 1);
	xdpnet_listen(true);
	system_connect(&jumbo_guest);
	nic_post(&nic, 0, 128, 2048);
	for (unsigned i = 0; i < 50; i++) {
		segment_make(data, SUPER_LEN, k, i);
		wire_send_offloaded(&h, data, SUPER_LEN);
		expect_ge(expect_stream(i, is_native ? SEGMENT_LEN + TCP4_PAYLOAD : SUPER_LEN), 1);
	}
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 0);
}
END_TEST

START_TEST(unsegmented_frames_beyond_the_guests_buffers_are_counted)
{
	const struct segment_kind *k = &segment_kinds[SEGMENT_TCP4];
	struct virtio_net_hdr_v1 h = segment_hdr(k);

	h.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	h.gso_size = SEGMENT_LEN;
	h.hdr_len = TCP4_PAYLOAD;
	xdpnet_make_link(1);
	xdpnet_start("--set", xdpnet_mode_set[1]);
	xdpnet_listen(true);
	system_connect(&(struct nic_options){.features = NIC_BIT(VIRTIO_F_VERSION_1)});
	nic_post(&nic, 0, 16, 1600);
	for (unsigned i = 0; i < 20; i++) {
		segment_make(data, SUPER_LEN, k, i);
		wire_send_offloaded(&h, data, SUPER_LEN);
		segment_make(data, FRAME_LEN, k, i);
		segment_finish(data, FRAME_LEN, k);
		wire_send_offloaded(&(struct virtio_net_hdr_v1){0}, data, FRAME_LEN);
		nic_recv(&nic, 0, frame, WAIT_LONG_MS);
		expect_eq(frame->len, FRAME_LEN);
		expect(memcmp(frame->data, data, FRAME_LEN) == 0);
	}
	if (!kernel_has_multi_buffer())
		return;
	expect_eq(daemon_counter(dut, 0, "rx_oversize"), 20);
}
END_TEST

START_TEST(largest_frames_arrive_whole_or_are_counted)
{
	uint64_t n_counted = 0, n_arrived = 0;

	xdpnet_make_link(1);
	set_mtus(65535);
	/* Native mode may not go with such an MTU. */
	xdpnet_start("--set", frame_sizes[_i]);
	xdpnet_listen(false);
	system_connect(&jumbo_guest);
	nic_post(&nic, 0, 200, 2048);
	for (uint32_t i = 0; i < 10; i++) {
		const uint32_t len = 20000 + 5000 * i;

		wire_send(len, i);
		wire_send(FRAME_LEN, 100 + i);
		nic_recv(&nic, 0, frame, WAIT_LONG_MS);
		if (frame->len != FRAME_LEN) {
			nic_check_frame(frame, len, i);
			n_arrived++;
			nic_recv(&nic, 0, frame, WAIT_LONG_MS);
		}
		nic_check_frame(frame, FRAME_LEN, 100 + i);
	}
	n_counted = daemon_counter(dut, 0, "rx_dropped") + daemon_counter(dut, 0, "xdp_rx_dropped");
	expect_eq(n_arrived + n_counted, 10);
}
END_TEST

/* ---- small ones ---- */

START_TEST(short_frames_leave_whole_or_are_counted)
{
	unsigned n_out = 0;

	xdpnet_start_guest((unsigned)_i, NULL);
	for (uint32_t len = 18; len < 64; len++) {
		wire_send_from_guest(len, len);
		wire_expect(len, len);
		wire_send(len, len);
		wire_expect_at_guest(len, len, WAIT_LONG_MS);
	}
	for (uint32_t len = 0; len < 18; len++) {
		nic_send(&nic, 0, memset(data, 2, 18), len);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
		n_out += netns_receive(wire.packet, got, sizeof(got), 10) == (ssize_t)len;
	}
	expect_eq(n_out + daemon_counter(dut, 0, "tx_dropped"), 18);
	wire_check_both_ways(1);
}
END_TEST

static void add_all(TCase *tc)
{
	xdpnet_add_fixture(tc);
	tcase_add_loop_test(tc, long_frames_go_both_ways_whole, 0, 2 * XDP_N_MODES);
	tcase_add_loop_test(tc, bursts_of_long_frames_keep_their_order, 0, 2 * XDP_N_MODES);
	tcase_add_loop_test(tc, checksums_of_long_frames_are_finished, 0, 2);
	tcase_add_loop_test(tc, unfinished_checksums_of_long_frames_arrive_fit, 0, 2 * XDP_N_MODES);
	tcase_add_loop_test(tc, long_frames_reach_a_guest_without_merging_whole_or_not_at_all, 0,
			    XDP_N_MODES);
	tcase_add_loop_test(tc, frames_beyond_the_mtu_leave_whole_or_are_counted, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, unsegmented_frames_of_a_peer_arrive_whole, 0, XDP_N_MODES);
	tcase_add_test(tc, unsegmented_frames_beyond_the_guests_buffers_are_counted);
	tcase_add_loop_test(tc, largest_frames_arrive_whole_or_are_counted, 0, 2);
	tcase_add_loop_test(tc, short_frames_leave_whole_or_are_counted, 0, XDP_N_MODES);
}

int main(void)
{
	return xdpnet_is_possible() ? system_main("xdp_sizes", add_all) : 77;
}
