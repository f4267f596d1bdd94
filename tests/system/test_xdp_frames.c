/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port xdp: no unfinished checksum leaves, and those that arrive are finished or marked; VLAN tags
 * beside a frame get into it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/segment.h"
#include "support/xdpnet.h"

#define TAG	    0x6005 /* priority 3, VLAN 5 */
#define TAG_LEN	    4u
#define MAX_SEGMENT 1514u

static char data[MAX_SEGMENT + TAG_LEN], got[10 + NIC_MAX_FRAME];
static struct nic_frame *const frame = &wire.frame;

static const struct nic_options with_csum = {.features = NIC_FEATURES | NIC_OFFLOADS};

/* Lengths of frames: even and odd, the smallest included. */
static const uint32_t lens[] = {74, 75, 200, 601, 1513, MAX_SEGMENT};
#define N_LENS (sizeof(lens) / sizeof(lens[0]))

static void send_from_guest(const struct virtio_net_hdr_v1 *hdr, uint32_t len)
{
	nic_reap(&nic, 0);
	nic_queue(&nic, 0, hdr, data, len);
	driver_kick(nic_tx(&nic, 0));
}

/* The next frame at the far end is `data`, whatever its transport checksum is. */
static void expect_data_on_wire(uint32_t len, const struct segment_kind *k)
{
	ssize_t n = netns_receive(wire.packet, got, sizeof(got), WAIT_LONG_MS);
	uint32_t at = segment_csum_start(k) + segment_csum_offset(k);

	expect_eq(n, len);
	expect(memcmp(got, data, at) == 0);
	expect(memcmp(got + at + 2, data + at + 2, len - at - 2) == 0);
}

/* ---- from the guest ---- */

START_TEST(checksums_that_the_guest_leaves_open_are_finished)
{
	const struct segment_kind *k = &segment_kinds[_i];
	struct virtio_net_hdr_v1 h = segment_hdr(k);

	xdpnet_start_guest(0, &with_csum);
	for (unsigned i = 0; i < N_LENS; i++) {
		segment_make(data, lens[i], k, i);
		send_from_guest(&h, lens[i]);
		expect_data_on_wire(lens[i], k);
		expect_msg(segment_is_finished(got, lens[i], k), "%s of %u bytes", k->name,
			   lens[i]);
	}
}
END_TEST

START_TEST(udp_checksum_of_zero_is_sent_as_all_ones)
{
	const struct segment_kind *k = &segment_kinds[_i ? SEGMENT_UDP6 : SEGMENT_UDP4];
	struct virtio_net_hdr_v1 h = segment_hdr(k);
	uint16_t csum;

	xdpnet_start_guest(0, &with_csum);
	/* A payload that sums up to zero, because it ends with what was missing. */
	segment_make(data, 200, k, 0);
	memset(data + 198, 0, 2);
	memcpy(got, data, 200);
	segment_finish(got, 200, k);
	csum = htons(segment_csum(got, k));
	memcpy(data + 198, &csum, 2);
	send_from_guest(&h, 200);
	expect_data_on_wire(200, k);
	expect_eq(segment_csum(got, k), 0xffff);
}
END_TEST

START_TEST(checksums_that_the_guest_has_made_stay_as_they_are)
{
	xdpnet_start_guest(0, &with_csum);
	for (unsigned kind = 0; kind < SEGMENT_N_KINDS; kind++) {
		const struct segment_kind *k = &segment_kinds[kind];

		segment_make(data, 301, k, kind);
		segment_finish(data, 301, k);
		send_from_guest(NULL, 301);
		expect_data_on_wire(301, k);
		expect_eq(segment_csum(got, k), segment_csum(data, k));
		/* A wrong one is for the receiver to find. */
		data[300] ^= 1;
		send_from_guest(NULL, 301);
		expect_data_on_wire(301, k);
		expect_eq(segment_csum(got, k), segment_csum(data, k));
	}
}
END_TEST

START_TEST(headers_from_the_guest_that_make_no_sense_cost_one_frame)
{
	struct virtio_net_hdr_v1 good = segment_hdr(&segment_kinds[SEGMENT_TCP4]);
	const struct virtio_net_hdr_v1 bad[] = {
		{.flags = good.flags, .csum_start = 0xffff, .csum_offset = 16},
		{.flags = good.flags, .csum_start = 34, .csum_offset = 0xffff},
		{.flags = good.flags, .csum_start = 34, .csum_offset = 465},
		{.flags = good.flags, .csum_start = 483, .csum_offset = 16},
		{.flags = good.flags, .csum_start = 0xfff0, .csum_offset = 16},
		{.gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = 100, .hdr_len = 54},
		{.flags = good.flags, .gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = 100},
		{.flags = good.flags, .gso_type = 0x7f, .csum_start = 34, .csum_offset = 16},
	};

	xdpnet_start_guest(0, &with_csum);
	segment_make(data, 500, &segment_kinds[SEGMENT_TCP4], 0);
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		send_from_guest(&bad[i], 500);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
		expect_eq(daemon_counter(dut, 0, "tx_dropped"), i + 1);
		wire_check_both_ways(i);
	}
}
END_TEST

/* ---- to the guest ---- */

/* The frame has a form that the guest accepts: marked rightly if it takes that, else finished. */
static void expect_fit(const char *segment, uint32_t len, const struct segment_kind *k,
		       bool takes_marked)
{
	if (frame->hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
		expect_msg(takes_marked, "%s is marked for a guest that takes none", k->name);
		expect_eq(frame->hdr.csum_start, segment - frame->data + segment_csum_start(k));
		expect_eq(frame->hdr.csum_offset, segment_csum_offset(k));
		return;
	}
	expect_msg(segment_is_finished(segment, len, k), "%s arrives unfinished", k->name);
}

START_TEST(unfinished_checksums_arrive_in_a_form_that_the_guest_accepts)
{
	const unsigned mode = (unsigned)_i % XDP_N_MODES;
	const bool takes_marked = _i / XDP_N_MODES;

	xdpnet_start_guest(mode, takes_marked ? &with_csum : NULL);
	xdpnet_listen(true);
	for (unsigned i = 0; i < SEGMENT_N_KINDS * N_LENS; i++) {
		const struct segment_kind *k = &segment_kinds[i % SEGMENT_N_KINDS];
		const uint32_t len = lens[i / SEGMENT_N_KINDS];
		struct virtio_net_hdr_v1 h = segment_hdr(k);

		segment_make(data, len, k, i);
		wire_send_offloaded(&h, data, len);
		nic_recv(&nic, 0, frame, WAIT_LONG_MS);
		expect_eq(frame->len, len);
		expect_eq(frame->hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM,
			  takes_marked ? VIRTIO_NET_HDR_F_NEEDS_CSUM : 0);
		expect_eq(frame->hdr.gso_type, VIRTIO_NET_HDR_GSO_NONE);
		expect_fit(frame->data, len, k, takes_marked);
	}
}
END_TEST

static void expect_data_at_guest(uint32_t len)
{
	expect_msg(send(wire.packet, data, len, 0) == (ssize_t)len, "send: %s", strerror(errno));
	nic_recv(&nic, 0, frame, WAIT_LONG_MS);
	expect_eq(frame->len, len);
	expect_msg(memcmp(frame->data, data, len) == 0, "the frame was changed");
	expect_eq(frame->hdr.flags, 0);
}

START_TEST(finished_checksums_stay_as_they_are_right_or_wrong)
{
	xdpnet_start_guest((unsigned)_i % XDP_N_MODES, _i / XDP_N_MODES ? &with_csum : NULL);
	for (unsigned kind = 0; kind < SEGMENT_N_KINDS; kind++) {
		const struct segment_kind *k = &segment_kinds[kind];

		for (unsigned seed = 0; seed < 20; seed++) {
			segment_make(data, 300 + seed, k, seed);
			segment_finish(data, 300 + seed, k);
			expect_data_at_guest(300 + seed);
			data[290] ^= 0x10;
			expect_data_at_guest(300 + seed);
		}
	}
}
END_TEST

START_TEST(fragments_stay_as_they_are)
{
	xdpnet_start_guest(0, _i ? &with_csum : NULL);
	/* More fragments follow; then: it is not the first one. */
	for (unsigned i = 0; i < 2; i++) {
		segment_make(data, 200, &segment_kinds[SEGMENT_UDP4], i);
		data[14 + 6] = i == 0 ? 0x20 : 0;
		data[14 + 7] = i == 0 ? 0 : 100;
		expect_data_at_guest(200);
	}
}
END_TEST

/* ---- with the far end's own network stack ---- */

static int open_far_udp_socket(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(0x1001)};
	int fd;

	netns_run(&xdpnet.far_ns, "ip addr add 10.0.0.2/24 dev " XDP_FAR " && ip neigh add 10.0.0.1"
				  " lladdr 02:00:00:00:00:01 dev " XDP_FAR " nud permanent");
	fd = netns_socket(&xdpnet.far_ns, AF_INET, SOCK_DGRAM, 0);
	expect_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

START_TEST(stack_at_the_far_end_accepts_frames_and_is_understood)
{
	const struct segment_kind *k = &segment_kinds[SEGMENT_UDP4];
	const bool takes_marked = _i / XDP_N_MODES;
	struct virtio_net_hdr_v1 h = segment_hdr(k);
	struct sockaddr_in peer = {
		.sin_family = AF_INET, .sin_port = htons(0x1000), .sin_addr = {htonl(0x0a000001)}};
	uint8_t mac[6];
	int udp;

	xdpnet_start_guest((unsigned)_i % XDP_N_MODES, takes_marked ? &with_csum : NULL);
	udp = open_far_udp_socket();
	netns_get_mac(&xdpnet.far_ns, XDP_FAR, mac);
	for (uint32_t len = 43; len < 60; len++) {
		segment_make(data, len, k, len);
		memcpy(data, mac, sizeof(mac));
		if (!takes_marked)
			segment_finish(data, len, k);
		send_from_guest(takes_marked ? &h : NULL, len);
		expect(wait_readable(udp, WAIT_LONG_MS));
		expect_eq(recv(udp, got, sizeof(got), 0), len - 42);
		expect(memcmp(got, data + 42, len - 42) == 0);
		expect_eq(sendto(udp, got, len - 42, 0, (struct sockaddr *)&peer, sizeof(peer)),
			  len - 42);
		nic_recv(&nic, 0, frame, WAIT_LONG_MS);
		expect_eq(frame->len, len);
		expect(memcmp(frame->data + 42, data + 42, len - 42) == 0);
		expect_fit(frame->data, len, k, takes_marked);
	}
	close(udp);
}
END_TEST

/* ---- VLAN ---- */

/* Put a tag into `data`. */
static void insert_tag(uint32_t len)
{
	const uint16_t tag[2] = {htons(0x8100), htons(TAG)};

	memmove(data + 12 + TAG_LEN, data + 12, len - 12);
	memcpy(data + 12, tag, TAG_LEN);
}

/* The frame at the guest is `data` with the tag; take that out of it. */
static void take_tag(uint32_t len)
{
	const uint16_t tag[2] = {htons(0x8100), htons(TAG)};

	expect_msg(frame->len == len + TAG_LEN, "the tag is not in the frame of %u bytes",
		   frame->len);
	expect(memcmp(frame->data + 12, tag, TAG_LEN) == 0);
	memmove(frame->data + TAG_LEN, frame->data, 12);
	expect(memcmp(frame->data + TAG_LEN, data, 34) == 0);
}

START_TEST(tags_beside_the_frame_get_into_it)
{
	xdpnet_start_guest(0, _i ? &with_csum : NULL);
	xdpnet_listen(true);
	xdpnet_set_tag(TAG);
	for (unsigned kind = 0; kind < SEGMENT_N_KINDS; kind++) {
		const struct segment_kind *k = &segment_kinds[kind];
		struct virtio_net_hdr_v1 h = segment_hdr(k);

		segment_make(data, 500, k, kind);
		wire_send_offloaded(&h, data, 500);
		nic_recv(&nic, 0, frame, WAIT_LONG_MS);
		take_tag(500);
		expect_fit(frame->data + TAG_LEN, 500, k, _i);
	}
	expect_eq(daemon_log_count(dut, "ethtool -K"), 0);
}
END_TEST

START_TEST(tags_that_generic_mode_loses_are_warned_of)
{
	xdpnet_start_guest(1, NULL);
	xdpnet_listen(true);
	xdpnet_set_tag(TAG);
	segment_make(data, 500, &segment_kinds[SEGMENT_TCP4], 0);
	segment_finish(data, 500, &segment_kinds[SEGMENT_TCP4]);
	wire_send_offloaded(&(struct virtio_net_hdr_v1){0}, data, 500);
	nic_recv(&nic, 0, frame, WAIT_LONG_MS);
	if (frame->len == 500)
		expect_eq(daemon_log_count(dut, "txvlan off"), 1);
	else
		take_tag(500);
}
END_TEST

/* Receive at the far end. @tci: the tag that the kernel has taken out of the frame; 0: none */
static ssize_t receive_with_tag(uint16_t *tci)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	struct iovec iov = {got, sizeof(got)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct tpacket_auxdata aux = {0};
	ssize_t n;

	expect(wait_readable(wire.packet, WAIT_LONG_MS));
	n = recvmsg(wire.packet, &msg, 0);
	expect_eq(control.header.cmsg_type, PACKET_AUXDATA);
	memcpy(&aux, CMSG_DATA(&control.header), sizeof(aux));
	*tci = aux.tp_status & TP_STATUS_VLAN_VALID ? aux.tp_vlan_tci : 0;
	return n;
}

START_TEST(tags_in_the_frame_stay_there)
{
	const struct segment_kind *k = &segment_kinds[SEGMENT_TCP4];
	struct virtio_net_hdr_v1 h = segment_hdr(k);
	const int on = 1;
	uint16_t tci;

	xdpnet_start_guest((unsigned)_i, &with_csum);
	segment_make(data, 500, k, 0);
	insert_tag(500);
	h.csum_start += TAG_LEN;
	expect_eq(setsockopt(wire.packet, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)), 0);
	send_from_guest(&h, 500 + TAG_LEN);
	expect_eq(receive_with_tag(&tci), 500);
	expect_eq(tci, TAG);
	expect(segment_is_finished(got, 500, k));
	segment_make(data, 500, k, 0);
	segment_finish(data, 500, k);
	insert_tag(500);
	expect_data_at_guest(500 + TAG_LEN);
}
END_TEST

START_TEST(stripping_of_tags_is_as_before_when_the_daemon_has_gone)
{
	const char *is_on = "ethtool -k " XDP_IF " | grep -q '^rx-vlan-offload: on'";

	xdpnet_make_link(1);
	netns_run(&xdpnet.ns, is_on);
	xdpnet_start("--set", xdpnet_mode_set[_i]);
	system_check_end();
	netns_run(&xdpnet.ns, is_on);
}
END_TEST

static void add_all(TCase *tc)
{
	xdpnet_add_fixture(tc);
	tcase_add_loop_test(tc, checksums_that_the_guest_leaves_open_are_finished, 0,
			    SEGMENT_N_KINDS);
	tcase_add_loop_test(tc, udp_checksum_of_zero_is_sent_as_all_ones, 0, 2);
	tcase_add_test(tc, checksums_that_the_guest_has_made_stay_as_they_are);
	tcase_add_test(tc, headers_from_the_guest_that_make_no_sense_cost_one_frame);
	tcase_add_loop_test(tc, unfinished_checksums_arrive_in_a_form_that_the_guest_accepts, 0,
			    2 * XDP_N_MODES);
	tcase_add_loop_test(tc, finished_checksums_stay_as_they_are_right_or_wrong, 0,
			    2 * XDP_N_MODES);
	tcase_add_loop_test(tc, fragments_stay_as_they_are, 0, 2);
	tcase_add_loop_test(tc, stack_at_the_far_end_accepts_frames_and_is_understood, 0,
			    2 * XDP_N_MODES);
	tcase_add_loop_test(tc, tags_beside_the_frame_get_into_it, 0, 2);
	tcase_add_test(tc, tags_that_generic_mode_loses_are_warned_of);
	tcase_add_loop_test(tc, tags_in_the_frame_stay_there, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, stripping_of_tags_is_as_before_when_the_daemon_has_gone, 0,
			    XDP_N_MODES);
}

int main(void)
{
	return xdpnet_is_possible() ? system_main("xdp_frames", add_all) : 77;
}
