/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port xdp: frames go both ways unharmed, in native and in generic mode, by one queue or several,
 * and what comes while the guest has no buffers costs no frame of the packet memory.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/xdpnet.h"

/* ---- what was obtained ---- */

static void expect_in_status(const char *port)
{
	json_t *status = daemon_ask(dut, "status", NULL);
	const char *text = json_string_value(json_object_get(status, "port"));

	expect_msg(text && strcmp(text, port) == 0, "status: port %s", text ? text : "?");
	json_decref(status);
}

START_TEST(ready_line_and_status_say_what_was_obtained)
{
	static const struct {
		const char *setting, *port;
	} cases[] = {
		{"port.mode=auto", "xdp:" XDP_IF " (native, copy)"},
		{"port.mode=native", "xdp:" XDP_IF " (native, copy)"},
		{"port.mode=generic", "xdp:" XDP_IF " (generic, copy)"},
		{"port.zero-copy=off", "xdp:" XDP_IF " (native, copy)"},
	};
	char expected[160];

	xdpnet_make_link(1);
	xdpnet_start("--set", cases[_i].setting);
	snprintf(expected, sizeof(expected), "ready: listening on %s, port %s", dut->path,
		 cases[_i].port);
	expect_msg(strcmp(dut->ready, expected) == 0, "%s", dut->ready);
	expect_in_status(cases[_i].port);
	expect_ne(bpfprog_find(&xdpnet.ns, XDP_IF), 0);
	system_check_end();
	xdpnet_check_left(false);
}
END_TEST

/* ---- traffic ---- */

static const uint64_t features[] = {
	NIC_FEATURES,
	NIC_BIT(VIRTIO_F_VERSION_1),
	NIC_BIT(VIRTIO_NET_F_MRG_RXBUF),
	NIC_BIT(VIRTIO_RING_F_EVENT_IDX), /* 10 bytes of header */
	NIC_FEATURES | NIC_OFFLOADS,
};

START_TEST(frames_go_both_ways)
{
	xdpnet_start_guest((unsigned)_i % 2,
			   &(struct nic_options){.features = features[_i / 2], .base = 65500});
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t len = 60 + i * 61 % 1455;

		wire_send_from_guest(len, i);
		wire_expect(len, i);
		wire_send(len, i);
		wire_expect_at_guest(len, i, WAIT_LONG_MS);
	}
}
END_TEST

START_TEST(bursts_keep_their_order_and_lose_nothing)
{
	struct xdpnet_umem before;

	xdpnet_start_guest((unsigned)_i, &(struct nic_options){.is_indirect = _i});
	before = xdpnet_get_umem(0);
	/* An interface of this kind drops what is more than 256 frames in one go. */
	wire_exchange(wait_repeats("frames through the interface", 20000, 1000000), 200);
	xdpnet_wait_umem_at_rest(0, &before);
}
END_TEST

START_TEST(sender_on_another_processor_loses_nothing)
{
	xdpnet_start_guest((unsigned)_i, NULL);
	wire_flow_to_guest(wait_repeats("frames from another processor", 20000, 1000000), 200);
}
END_TEST

START_TEST(little_packet_memory_delays_frames_and_loses_none)
{
	struct xdpnet_umem before;
	char data[FRAME_LEN];

	xdpnet_make_link(1);
	xdpnet_start("--set", "port.frames=64");
	xdpnet_listen(false);
	system_connect(&(struct nic_options){.size = 1024});
	nic_post(&nic, 0, 64, 2048);
	before = xdpnet_get_umem(0);
	expect_eq(before.total, 64);
	for (int round = 0; round < 5; round++) {
		for (uint32_t i = 0; i < 1000; i++) {
			nic_make_frame(data, sizeof(data), i);
			nic_queue(&nic, 0, NULL, data, sizeof(data));
		}
		driver_kick(nic_tx(&nic, 0));
		for (uint32_t i = 0; i < 1000; i++)
			wire_expect(FRAME_LEN, i);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	}
	xdpnet_wait_umem_at_rest(0, &before);
}
END_TEST

START_TEST(frames_survive_stop_and_start_of_the_rings)
{
	uint32_t seq = 0, expected = 0;

	xdpnet_start_guest(0, NULL);
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 8; i++)
			wire_send(FRAME_LEN, seq++);
		wire_send_from_guest(FRAME_LEN, (uint32_t)round);
		for (unsigned ring = 0; ring < 2; ring++) {
			frontend_get_vring_base(&nic.fe, ring);
			driver_send_setup(&nic.rings[ring], &nic.fe);
		}
		while (expected < seq)
			wire_expect_at_guest(FRAME_LEN, expected++, WAIT_LONG_MS);
		wire_expect(FRAME_LEN, (uint32_t)round);
	}
}
END_TEST

/* ---- overload ---- */

START_TEST(frames_wait_while_the_guest_has_no_buffers)
{
	xdpnet_make_link(1);
	xdpnet_start("--set", xdpnet_mode_set[_i]);
	xdpnet_listen(false);
	system_connect(NULL);
	for (uint32_t i = 0; i < 300; i++)
		wire_send(FRAME_LEN, i);
	nic_expect_nothing(&nic, 0);
	nic_post(&nic, 0, 64, 2048);
	for (uint32_t i = 0; i < 300; i++)
		wire_expect_at_guest(FRAME_LEN, i, i ? WAIT_LONG_MS : WAIT_PROMPT_MS);
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 0);
}
END_TEST

#define FLOOD_FRAMES 256u

/* Send ten times what the packet memory holds; what does not fit is the kernel's to drop. */
static void flood(void)
{
	static char data[FRAME_LEN];

	for (uint32_t i = 0; i < 10 * FLOOD_FRAMES; i++) {
		nic_make_frame(data, sizeof(data), i);
		while (send(wire.packet, data, sizeof(data), 0) < 0)
			wait_pause_us(20);
	}
}

/* Take what has waited: frames of the flood, in order. Return: how many. */
static unsigned take_waiting(void)
{
	uint32_t seq, next = 0;
	unsigned n = 0;

	nic_recv(&nic, 0, &wire.frame, WAIT_PROMPT_MS);
	do {
		seq = nic_frame_seq(&wire.frame);
		expect_ge(seq, next);
		nic_check_frame(&wire.frame, FRAME_LEN, seq);
		next = seq + 1;
		n++;
		/* All of them are there already: none needs another event. */
		for (int i = 0; i < 100 && driver_n_used(nic_rx(&nic, 0)) == 0; i++)
			wait_pause_us(100);
	} while (nic_poll(&nic, 0, &wire.frame));
	return n;
}

START_TEST(overload_ends_with_the_guests_next_buffers)
{
	struct xdpnet_umem before, full;
	uint64_t n_arrived = 0;

	xdpnet_make_link(1);
	xdpnet_start("--set", xdpnet_mode_set[_i], "--set", "port.frames=256");
	xdpnet_listen(false);
	for (int round = 0; round < 3; round++) {
		uint64_t cpu_ms;

		system_connect(NULL);
		before = round == 0 ? xdpnet_get_umem(0) : before;
		flood();
		full = xdpnet_get_umem(0);
		expect_eq(full.total, FLOOD_FRAMES);
		expect_ge(full.rx, FLOOD_FRAMES / 4);
		/* With a full guest the port is not looked at. */
		cpu_ms = daemon_cpu_ms(dut);
		flood();
		expect_le(daemon_cpu_ms(dut) - cpu_ms, wait_scaled_ms(20));
		/* Receive leaves transmit alone. */
		wire_send_from_guest(FRAME_LEN, 7);
		wire_expect(FRAME_LEN, 7);
		nic_post(&nic, 0, 64, 2048);
		expect_eq(take_waiting(), full.rx);
		n_arrived += full.rx;
		wire_check_both_ways(1000);
		xdpnet_wait_umem_at_rest(0, &before);
		nic_close(&nic);
	}
	/* What is missing was counted. */
	expect_eq(n_arrived + daemon_counter(dut, 0, "xdp_rx_dropped") +
			  daemon_counter(dut, 0, "xdp_rx_ring_full"),
		  3 * 2 * 10 * FLOOD_FRAMES);
}
END_TEST

/* ---- several queues ---- */

#define N_PAIRS 4

static void start_pairs(unsigned mode)
{
	xdpnet_make_link(N_PAIRS);
	xdpnet_start("--queue-pairs=4", "--set", xdpnet_mode_set[mode]);
	xdpnet_listen(false);
	system_connect(&(struct nic_options){.n_pairs = N_PAIRS, .size = 64});
	for (unsigned pair = 0; pair < N_PAIRS; pair++)
		nic_post(&nic, pair, 32, 2048);
}

START_TEST(each_pair_serves_its_queue)
{
	char data[FRAME_LEN];

	/* In generic mode an interface of this kind tells the wrong queue. */
	start_pairs(0);
	expect_eq(daemon_log_count(dut, "ethtool"), 0);
	for (uint32_t i = 0; i < 200; i++) {
		unsigned pair = i % N_PAIRS;

		nic_make_frame(data, sizeof(data), i);
		nic_send(&nic, pair, data, sizeof(data));
		wire_expect(FRAME_LEN, i);
		xdpnet_set_queue(pair);
		wire_send(FRAME_LEN, i);
		nic_recv(&nic, pair, &wire.frame, WAIT_LONG_MS);
		nic_check_frame(&wire.frame, FRAME_LEN, i);
	}
	for (unsigned pair = 0; pair < N_PAIRS; pair++)
		expect_eq(daemon_counter(dut, pair, "rx_packets"), 50);
}
END_TEST

/* Return: whether a frame has come on one of the first `n` pairs. */
static bool poll_pairs(unsigned n)
{
	for (unsigned pair = 0; pair < n; pair++)
		if (nic_poll(&nic, pair, &wire.frame))
			return true;
	return false;
}

static void send_bursts_to_all_queues(unsigned n_enabled)
{
	for (uint32_t i = 0; i < 40; i++) {
		xdpnet_set_queue(i % N_PAIRS);
		wire_send(FRAME_LEN, i);
		wait_until(poll_pairs(n_enabled), WAIT_LONG_MS);
		nic_check_frame(&wire.frame, FRAME_LEN, i);
	}
}

START_TEST(queues_of_disabled_pairs_are_served_by_the_others)
{
	start_pairs((unsigned)_i);
	for (unsigned n_enabled = N_PAIRS; n_enabled > 0; n_enabled--) {
		send_bursts_to_all_queues(n_enabled);
		for (unsigned ring = 0; ring < 2 && n_enabled > 1; ring++)
			frontend_set_vring_enable(&nic.fe, 2 * (n_enabled - 1) + ring, false);
		frontend_sync(&nic.fe);
	}
	for (unsigned ring = 2; ring < 2 * N_PAIRS; ring++)
		frontend_set_vring_enable(&nic.fe, ring, true);
	frontend_sync(&nic.fe);
	send_bursts_to_all_queues(N_PAIRS);
}
END_TEST

START_TEST(chosen_queues_are_the_guests_and_the_others_the_hosts)
{
	int host;

	xdpnet_make_link(3);
	xdpnet_start("--queue-pairs=2", "--set", "port.queues=2,0");
	expect_eq(daemon_log_count(dut, "ethtool -L"), 1);
	xdpnet_listen(false);
	host = netns_packet_socket(&xdpnet.ns, XDP_IF, false);
	system_connect(&(struct nic_options){.n_pairs = 2});
	for (unsigned pair = 0; pair < 2; pair++) {
		nic_post(&nic, pair, 32, 2048);
		xdpnet_set_queue(pair == 0 ? 2 : 0);
		wire_send(FRAME_LEN, pair);
		nic_recv(&nic, pair, &wire.frame, WAIT_LONG_MS);
		nic_check_frame(&wire.frame, FRAME_LEN, pair);
	}
	xdpnet_set_queue(1);
	wire_send(FRAME_LEN, 3);
	expect_eq(netns_receive(host, wire.frame.data, NIC_MAX_FRAME, WAIT_LONG_MS), FRAME_LEN);
	nic_expect_nothing(&nic, 0);
	close(host);
}
END_TEST

static void add_all(TCase *tc)
{
	xdpnet_add_fixture(tc);
	tcase_add_loop_test(tc, ready_line_and_status_say_what_was_obtained, 0, 4);
	tcase_add_loop_test(tc, frames_go_both_ways, 0, 10);
	tcase_add_loop_test(tc, bursts_keep_their_order_and_lose_nothing, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, sender_on_another_processor_loses_nothing, 0, XDP_N_MODES);
	tcase_add_test(tc, little_packet_memory_delays_frames_and_loses_none);
	tcase_add_test(tc, frames_survive_stop_and_start_of_the_rings);
	tcase_add_loop_test(tc, frames_wait_while_the_guest_has_no_buffers, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, overload_ends_with_the_guests_next_buffers, 0, XDP_N_MODES);
	tcase_add_test(tc, each_pair_serves_its_queue);
	tcase_add_loop_test(tc, queues_of_disabled_pairs_are_served_by_the_others, 0, XDP_N_MODES);
	tcase_add_test(tc, chosen_queues_are_the_guests_and_the_others_the_hosts);
}

int main(void)
{
	return xdpnet_is_possible() ? system_main("xdp", add_all) : 77;
}
