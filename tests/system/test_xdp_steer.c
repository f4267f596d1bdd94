/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port xdp, steer = mac: the guest gets what is for its address, host and guest get what is for
 * groups, and all the rest is the host's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/segment.h"
#include "support/xdpnet.h"

/* Where nic_make_frame()'s frames go to. */
#define MAC "02:76:75:78:00:02"

static const char broadcast[] = "\xff\xff\xff\xff\xff\xff", multicast[] = "\x01\0\x5e\0\0\x05",
		  neighbour[] = "\x02vux\0\3", multicast6[] = "\x33\x33\0\0\0\1";

static char data[9014], got[NIC_MAX_FRAME];
static struct nic_frame *const frame = &wire.frame;
static int host = -1; /* a packet socket on the daemon's interface: what the host sees */

static const struct nic_options with_csum = {.features = NIC_FEATURES | NIC_OFFLOADS};

static void close_host(void)
{
	if (host >= 0)
		close(host);
	host = -1;
}

static void start(unsigned mode, const char *queue_pairs, const struct nic_options *options)
{
	xdpnet_make_link(queue_pairs ? 2 : 1);
	xdpnet_start("--set", xdpnet_mode_set[mode], "--set", "port.steer=mac", "--set", "mac=" MAC,
		     queue_pairs);
	xdpnet_listen(false);
	host = netns_packet_socket(&xdpnet.ns, XDP_IF, false);
	system_connect(options);
}

static void start_guest(unsigned mode, const struct nic_options *options)
{
	start(mode, NULL, options);
	nic_post(&nic, 0, 128, 2048);
}

/* Make `data` frame `seq` to an address. */
static void make_frame_to(const char *dst, uint32_t len, uint32_t seq)
{
	nic_make_frame(data, len, seq);
	memcpy(data, dst, 6);
}

static void send_to(const char *dst, uint32_t len, uint32_t seq)
{
	make_frame_to(dst, len, seq);
	expect_msg(send(wire.packet, data, len, 0) == (ssize_t)len, "send: %s", strerror(errno));
}

/* What the guest gets next is frame `seq` to this address. */
static void expect_at_guest(const char *dst, uint32_t len, uint32_t seq, unsigned ms)
{
	nic_recv(&nic, 0, frame, ms);
	expect_eq(frame->len, len);
	make_frame_to(dst, len, seq);
	expect_msg(memcmp(frame->data, data, len) == 0, "the guest gets frame %u, not %u",
		   nic_frame_seq(frame), seq);
}

/* So is what the host gets next. */
static void expect_at_host(const char *dst, uint32_t len, uint32_t seq)
{
	ssize_t n = netns_receive(host, got, sizeof(got), WAIT_LONG_MS);

	expect_msg(n == (ssize_t)len, "frame %u at the host: %zd bytes", seq, n);
	make_frame_to(dst, len, seq);
	expect(memcmp(got, data, len) == 0);
}

static void expect_nothing_at_host(void)
{
	expect_eq(netns_receive(host, got, sizeof(got), 0), -1);
}

/* ---- who gets what ---- */

START_TEST(frames_for_the_guest_reach_only_the_guest)
{
	start_guest((unsigned)_i, NULL);
	wire_exchange(wait_repeats("frames for the guest's address", 5000, 100000), 200);
	expect_nothing_at_host();
}
END_TEST

START_TEST(frames_for_others_reach_only_the_host)
{
	start_guest((unsigned)_i, NULL);
	for (uint32_t i = 0; i < 100; i++) {
		send_to(neighbour, 60 + i * 14, i);
		expect_at_host(neighbour, 60 + i * 14, i);
	}
	nic_expect_nothing(&nic, 0);
	wire_check_both_ways(1);
}
END_TEST

START_TEST(frames_for_groups_reach_both_once_and_in_order)
{
	static const char *const groups[] = {broadcast, multicast, multicast6};

	start_guest((unsigned)_i, NULL);
	for (uint32_t i = 0; i < 150; i++)
		send_to(groups[i % 3], 60 + i * 1454 / 149, i);
	for (uint32_t i = 0; i < 150; i++) {
		expect_at_guest(groups[i % 3], 60 + i * 1454 / 149, i, WAIT_LONG_MS);
		expect_at_host(groups[i % 3], 60 + i * 1454 / 149, i);
	}
	nic_expect_nothing(&nic, 0);
	expect_nothing_at_host();
	expect_eq(daemon_counter(dut, 0, "rx_packets"), 150);
}
END_TEST

START_TEST(frames_of_the_guest_do_not_come_back)
{
	static const char *const addresses[] = {broadcast, multicast, neighbour, "\x02vux\0\2"};

	start_guest((unsigned)_i, NULL);
	for (uint32_t i = 0; i < 40; i++) {
		make_frame_to(addresses[i % 4], FRAME_LEN, i);
		nic_send(&nic, 0, data, FRAME_LEN);
		expect_eq(netns_receive(wire.packet, got, sizeof(got), WAIT_LONG_MS), FRAME_LEN);
		make_frame_to(addresses[i % 4], FRAME_LEN, i);
		expect(memcmp(got, data, FRAME_LEN) == 0);
	}
	nic_expect_nothing(&nic, 0);
}
END_TEST

START_TEST(frames_that_the_host_sends_are_not_for_the_guest)
{
	start_guest((unsigned)_i, NULL);
	for (uint32_t i = 0; i < 20; i++) {
		make_frame_to(i % 2 ? broadcast : multicast, FRAME_LEN, i);
		expect_eq(send(host, data, FRAME_LEN, 0), FRAME_LEN);
		expect_eq(netns_receive(wire.packet, got, sizeof(got), WAIT_LONG_MS), FRAME_LEN);
	}
	nic_expect_nothing(&nic, 0);
	wire_check_both_ways(1);
}
END_TEST

/* Return: a UDP socket with an address at one end. */
static int open_udp(const struct netns *ns, const char *ip, const char *ifname)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(4000)};
	char command[80];
	int fd;

	snprintf(command, sizeof(command), "ip addr add %s/24 dev %s", ip, ifname);
	netns_run(ns, command);
	fd = netns_socket(ns, AF_INET, SOCK_DGRAM, 0);
	expect_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	addr.sin_addr.s_addr = htonl(0x0a000001);
	expect_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

START_TEST(host_keeps_its_own_network)
{
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	int near, far;

	start_guest((unsigned)_i, NULL);
	near = open_udp(&xdpnet.ns, "10.0.0.1", XDP_IF);
	connect(near, &(struct sockaddr){.sa_family = AF_UNSPEC}, sizeof(struct sockaddr));
	far = open_udp(&xdpnet.far_ns, "10.0.0.2", XDP_FAR);
	for (int i = 0; i < 50; i++) {
		expect_eq(send(far, "ping", 4, 0), 4);
		expect(wait_readable(near, WAIT_LONG_MS));
		expect_eq(recvfrom(near, got, 10, 0, (struct sockaddr *)&from, &from_len), 4);
		expect_eq(sendto(near, "pong!", 5, 0, (struct sockaddr *)&from, from_len), 5);
		expect(wait_readable(far, WAIT_LONG_MS));
		expect_eq(recv(far, got, 10, 0), 5);
	}
	/* Of all that, who has which address was asked of everybody. */
	wait_pause_us(WAIT_QUIET_MS * 1000);
	while (nic_poll(&nic, 0, frame))
		expect(memcmp(frame->data, broadcast, 6) == 0);
	close(near);
	close(far);
}
END_TEST

START_TEST(traffic_of_the_host_does_not_wake_the_daemon)
{
	uint64_t before[DAEMON_MAX_THREADS], after[DAEMON_MAX_THREADS];
	unsigned n;

	start_guest((unsigned)_i, NULL);
	wire_check_both_ways(1);
	wait_pause_us(50000);
	n = daemon_switches(dut, before);
	for (uint32_t i = 0; i < 500; i++)
		send_to(neighbour, FRAME_LEN, i);
	wait_pause_us(50000);
	expect_eq(daemon_switches(dut, after), n);
	/* The link itself may have had something to say. */
	for (unsigned i = 0; i < n; i++)
		expect_le(after[i] - before[i], 5);
}
END_TEST

/* ---- the guest's copies keep the invariants ---- */

START_TEST(copies_wait_while_the_guest_has_no_buffers)
{
	start((unsigned)_i, NULL, NULL);
	for (uint32_t i = 0; i < 100; i++)
		send_to(broadcast, FRAME_LEN, i);
	nic_expect_nothing(&nic, 0);
	nic_post(&nic, 0, 32, 2048);
	for (uint32_t i = 0; i < 100; i++)
		expect_at_guest(broadcast, FRAME_LEN, i, i ? WAIT_LONG_MS : WAIT_PROMPT_MS);
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 0);
}
END_TEST

START_TEST(flood_of_copies_ends_with_the_guests_next_buffers)
{
	uint32_t next = 0, seq, n = 0;
	uint64_t cpu_ms;

	start((unsigned)_i, NULL, NULL);
	for (uint32_t i = 0; i < 5000; i++)
		send_to(broadcast, FRAME_LEN, i);
	cpu_ms = daemon_cpu_ms(dut);
	for (uint32_t i = 5000; i < 10000; i++)
		send_to(broadcast, FRAME_LEN, i);
	expect_le(daemon_cpu_ms(dut) - cpu_ms, wait_scaled_ms(20));
	nic_post(&nic, 0, 64, 2048);
	nic_recv(&nic, 0, frame, WAIT_PROMPT_MS);
	do { /* those that had room, in order */
		seq = nic_frame_seq(frame);
		expect_ge(seq, next);
		next = seq + 1;
		n++;
		for (int i = 0; i < 100 && driver_n_used(nic_rx(&nic, 0)) == 0; i++)
			wait_pause_us(100);
	} while (nic_poll(&nic, 0, frame));
	/* What is missing was counted. */
	expect_eq(n + daemon_counter(dut, 0, "rx_dropped") +
			  daemon_counter(dut, 0, "xdp_rx_dropped"),
		  10000);
	wire_check_both_ways(1);
}
END_TEST

START_TEST(copies_come_while_the_guest_is_busy)
{
	uint32_t copies = 0, own = 0;

	start_guest((unsigned)_i, NULL);
	for (uint32_t i = 0; i < 50; i++) {
		for (uint32_t k = 0; k < 40; k++)
			wire_send(FRAME_LEN, i * 40 + k);
		send_to(multicast, 100, i);
		for (int k = 0; k < 41; k++) {
			nic_recv(&nic, 0, frame, WAIT_LONG_MS);
			if (frame->len == 100)
				expect_eq(nic_frame_seq(frame), copies++);
			else
				nic_check_frame(frame, FRAME_LEN, own++);
		}
	}
	expect_eq(copies, 50);
}
END_TEST

START_TEST(each_copy_goes_to_one_of_several_pairs)
{
	start(0, "--queue-pairs=2", &(struct nic_options){.n_pairs = 2});
	nic_post(&nic, 0, 64, 2048);
	nic_post(&nic, 1, 64, 2048);
	for (uint32_t i = 0; i < 20; i++) {
		xdpnet_set_queue(i % 2);
		send_to(broadcast, FRAME_LEN, i);
		expect_at_guest(broadcast, FRAME_LEN, i, WAIT_LONG_MS);
		wire_send(FRAME_LEN, i);
		nic_recv(&nic, i % 2, frame, WAIT_LONG_MS);
		nic_check_frame(frame, FRAME_LEN, i);
	}
	nic_expect_nothing(&nic, 0);
	nic_expect_nothing(&nic, 1);
}
END_TEST

/* ---- what they look like ---- */

static void send_segment(const struct virtio_net_hdr_v1 *h, uint32_t len)
{
	memcpy(data, multicast, 6);
	wire_send_offloaded(h, data, len);
	nic_recv(&nic, 0, frame, WAIT_LONG_MS);
}

START_TEST(copies_with_unfinished_checksums_arrive_fit)
{
	const bool takes_marked = _i % 2, is_tagged = _i / 2;
	const uint32_t at = is_tagged ? 4 : 0;

	start_guest(0, takes_marked ? &with_csum : NULL);
	xdpnet_listen(true);
	if (is_tagged)
		xdpnet_set_tag(0x6005);
	for (unsigned kind = 0; kind < SEGMENT_N_KINDS; kind++) {
		const struct segment_kind *k = &segment_kinds[kind];
		struct virtio_net_hdr_v1 h = segment_hdr(k);

		segment_make(data, 501, k, kind);
		send_segment(&h, 501);
		expect_eq(frame->len, 501 + at);
		if (is_tagged)
			expect(memcmp(frame->data + 12, "\x81\0\x60\5", 4) == 0);
		expect_eq(frame->hdr.flags, takes_marked ? VIRTIO_NET_HDR_F_NEEDS_CSUM : 0);
		if (takes_marked)
			expect_eq(frame->hdr.csum_start, h.csum_start + at);
		memmove(frame->data + at, frame->data, 12);
		expect_eq(segment_is_finished(frame->data + at, 501, k), !takes_marked);
	}
}
END_TEST

START_TEST(copies_of_long_frames_are_whole)
{
	xdpnet_make_link(1);
	netns_set_mtu(&xdpnet.far_ns, XDP_FAR, 9000);
	netns_set_mtu(&xdpnet.ns, XDP_IF, 9000);
	xdpnet_start("--set", "port.steer=mac", "--set", "mac=" MAC);
	xdpnet_listen(false);
	system_connect(NULL);
	nic_post(&nic, 0, 128, 2048);
	for (uint32_t i = 0; i < 5; i++) {
		send_to(multicast, 9014 - i, i);
		expect_at_guest(multicast, 9014 - i, i, WAIT_LONG_MS);
	}
}
END_TEST

START_TEST(segmented_copies_are_cut_up_or_counted)
{
	struct virtio_net_hdr_v1 h = segment_hdr(&segment_kinds[SEGMENT_TCP4]);
	uint32_t n_bytes = 0;

	start_guest((unsigned)_i % XDP_N_MODES, _i / XDP_N_MODES ? &with_csum : NULL);
	xdpnet_listen(true);
	h.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	h.gso_size = 1000;
	h.hdr_len = 54;
	segment_make(data, 54 + 5000, &segment_kinds[SEGMENT_TCP4], 0);
	memcpy(data, multicast, 6);
	wire_send_offloaded(&h, data, 54 + 5000);
	wait_until((n_bytes += nic_poll(&nic, 0, frame) ? frame->len - 54 : 0) == 5000 ||
			   daemon_counter(dut, 0, "rx_dropped") > 0,
		   WAIT_LONG_MS);
	/* Nobody has told the guest that there is such a thing. */
	expect_eq(frame->hdr.gso_type, VIRTIO_NET_HDR_GSO_NONE);
	wire_listen(&xdpnet.far_ns, XDP_FAR, false);
	wire_check_both_ways(1);
}
END_TEST

/* ---- while the interface changes ---- */

START_TEST(copies_come_again_after_down_and_deletion)
{
	start_guest((unsigned)_i, NULL);
	send_to(broadcast, FRAME_LEN, 1);
	expect_at_guest(broadcast, FRAME_LEN, 1, WAIT_LONG_MS);
	netns_set_link_up(&xdpnet.ns, XDP_IF, false);
	wait_pause_us(20000);
	xdpnet_take_up();
	xdpnet_listen(false);
	send_to(broadcast, FRAME_LEN, 2);
	expect_at_guest(broadcast, FRAME_LEN, 2, WAIT_PROMPT_MS);
	close_host();
	netns_delete_link(&xdpnet.ns, XDP_IF);
	xdpnet_make_link(1);
	xdpnet_listen(false);
	wait_until(bpfprog_find(&xdpnet.ns, XDP_IF) != 0, WAIT_LONG_MS);
	wait_until((send_to(broadcast, FRAME_LEN, 3), nic_poll(&nic, 0, frame)), WAIT_LONG_MS);
	expect_eq(nic_frame_seq(frame), 3);
}
END_TEST

static void add_all(TCase *tc)
{
	xdpnet_add_fixture(tc);
	tcase_add_checked_fixture(tc, NULL, close_host);
	tcase_add_loop_test(tc, frames_for_the_guest_reach_only_the_guest, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, frames_for_others_reach_only_the_host, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, frames_for_groups_reach_both_once_and_in_order, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, frames_of_the_guest_do_not_come_back, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, frames_that_the_host_sends_are_not_for_the_guest, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, host_keeps_its_own_network, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, traffic_of_the_host_does_not_wake_the_daemon, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, copies_wait_while_the_guest_has_no_buffers, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, flood_of_copies_ends_with_the_guests_next_buffers, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, copies_come_while_the_guest_is_busy, 0, XDP_N_MODES);
	tcase_add_test(tc, each_copy_goes_to_one_of_several_pairs);
	tcase_add_loop_test(tc, copies_with_unfinished_checksums_arrive_fit, 0, 4);
	tcase_add_test(tc, copies_of_long_frames_are_whole);
	tcase_add_loop_test(tc, segmented_copies_are_cut_up_or_counted, 0, 2 * XDP_N_MODES);
	tcase_add_loop_test(tc, copies_come_again_after_down_and_deletion, 0, XDP_N_MODES);
}

int main(void)
{
	return xdpnet_is_possible() ? system_main("xdp_steer", add_all) : 77;
}
