/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port xdp: an interface that goes down, away, elsewhere or changes, and a daemon that is killed,
 * cost what the contract allows and nothing more.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/xdpnet.h"

static struct nic_frame *const frame = &wire.frame;

/* Whatever it is that waits, nobody spins: that would take all of the time. */
static void expect_rest(void)
{
	uint64_t before = daemon_cpu_ms(dut);

	wait_pause_us(100000);
	expect_le(daemon_cpu_ms(dut) - before, wait_scaled_ms(40));
}

static uint64_t n_tx_dropped(void)
{
	return daemon_counter(dut, 0, "tx_dropped");
}

/* Send frame `seq` from the guest and receive all up to it. Return: how many came before it. */
static unsigned expect_out(uint32_t seq, unsigned ms)
{
	unsigned n = 0;

	wire_send_from_guest(FRAME_LEN, seq);
	for (;; n++) {
		ssize_t len = netns_receive(wire.packet, frame->data, NIC_MAX_FRAME, ms);

		expect_msg(len == FRAME_LEN, "frame %u does not come out", seq);
		frame->len = FRAME_LEN;
		nic_check_frame(frame, FRAME_LEN, nic_frame_seq(frame));
		if (nic_frame_seq(frame) == seq)
			return n;
		expect_lt(nic_frame_seq(frame), seq);
	}
}

/* The socket on the wire reports once that its interface was down. */
static void clear_wire(void)
{
	int err;

	expect_eq(getsockopt(wire.packet, SOL_SOCKET, SO_ERROR, &err, &(socklen_t){sizeof(err)}),
		  0);
}

/* ---- down and up ---- */

START_TEST(interface_that_was_down_or_without_carrier_goes_on_at_once)
{
	const bool is_far = _i / XDP_N_MODES;
	const struct netns *ns = is_far ? &xdpnet.far_ns : &xdpnet.ns;
	unsigned n_out = 0;

	xdpnet_start_guest((unsigned)_i % XDP_N_MODES, NULL);
	wire_check_both_ways(1);
	for (uint32_t round = 0; round < 3; round++) {
		netns_set_link_up(ns, is_far ? XDP_FAR : XDP_IF, false);
		wait_pause_us(20000);
		for (uint32_t i = 0; i < 10; i++)
			wire_send_from_guest(FRAME_LEN, 100 * round + i);
		expect_rest();
		xdpnet_take_up();
		clear_wire();
		n_out += expect_out(100 * round + 50, WAIT_PROMPT_MS);
		wire_send(FRAME_LEN, round);
		wire_expect_at_guest(FRAME_LEN, round, WAIT_PROMPT_MS);
	}
	/* They have waited, or were dropped. */
	expect_eq(n_out + n_tx_dropped(), 30);
	expect_lt(daemon_log_count(dut, "\n"), 15);
	system_check_end();
	xdpnet_check_left(false);
}
END_TEST

START_TEST(interface_can_be_down_at_the_start)
{
	netns_make_veth(&xdpnet.ns, XDP_IF, &xdpnet.far_ns, XDP_FAR, 1);
	xdpnet_start("--set", xdpnet_mode_set[_i]);
	system_connect(NULL);
	nic_post(&nic, 0, 64, 2048);
	wire_send_from_guest(FRAME_LEN, 1);
	expect_rest();
	xdpnet_take_up();
	xdpnet_listen(false);
	expect_out(2, WAIT_PROMPT_MS);
	wire_check_both_ways(3);
}
END_TEST

START_TEST(daemon_ends_well_with_frames_that_wait)
{
	xdpnet_start_guest(0, NULL);
	netns_set_link_up(&xdpnet.ns, XDP_IF, false);
	for (uint32_t i = 0; i < 100; i++)
		wire_send_from_guest(FRAME_LEN, i);
	/* The rings stop at once, and the guest can go. */
	frontend_get_vring_base(&nic.fe, 0);
	frontend_get_vring_base(&nic.fe, 1);
	if (_i)
		nic_close(&nic);
	system_check_end();
	xdpnet_check_left(false);
}
END_TEST

static bool is_flapping;

static void *flap(void *arg)
{
	const unsigned *n = arg;

	for (unsigned i = 0; i < *n; i++) {
		const bool is_far = i % 2;
		const struct netns *ns = is_far ? &xdpnet.far_ns : &xdpnet.ns;

		netns_set_link_up(ns, is_far ? XDP_FAR : XDP_IF, false);
		wait_pause_us(i % 5 * 1000);
		netns_set_link_up(ns, is_far ? XDP_FAR : XDP_IF, true);
		wait_pause_us(i % 7 * 1000);
	}
	__atomic_store_n(&is_flapping, false, __ATOMIC_RELEASE);
	return NULL;
}

/* A frame has come at either end; none comes twice, or out of order. */
static void check_order(uint32_t *next, uint32_t limit)
{
	uint32_t seq = nic_frame_seq(frame);

	expect_ge(seq, *next);
	expect_lt(seq, limit);
	nic_check_frame(frame, FRAME_LEN, seq);
	*next = seq + 1;
}

static void send_while_flapping(uint32_t *n_from_guest)
{
	char data[FRAME_LEN];
	uint32_t n_to_guest = 0, next_out = 0, next_in = 0;

	while (__atomic_load_n(&is_flapping, __ATOMIC_ACQUIRE)) {
		nic_reap(&nic, 0);
		nic_make_frame(data, sizeof(data), n_to_guest);
		n_to_guest += send(wire.packet, data, sizeof(data), 0) == FRAME_LEN;
		if (nic_tx(&nic, 0)->n_free > 0)
			wire_send_from_guest(FRAME_LEN, (*n_from_guest)++);
		while (nic_poll(&nic, 0, frame))
			check_order(&next_in, n_to_guest);
		while (netns_receive(wire.packet, frame->data, NIC_MAX_FRAME, 0) == FRAME_LEN) {
			frame->len = FRAME_LEN;
			check_order(&next_out, *n_from_guest);
		}
	}
}

static void drain_guest(void)
{
	while (nic_poll(&nic, 0, frame))
		;
}

START_TEST(flaps_under_load_break_nothing)
{
	unsigned n = wait_repeats("flaps of the interface", 30, 100);
	uint32_t n_from_guest = 0;
	struct xdpnet_umem before;
	pthread_t thread;

	xdpnet_start_guest((unsigned)_i, NULL);
	before = xdpnet_get_umem(0);
	is_flapping = true;
	expect_eq(pthread_create(&thread, NULL, flap, &n), 0);
	send_while_flapping(&n_from_guest);
	pthread_join(thread, NULL);
	xdpnet_take_up();
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	expect_eq(daemon_counter(dut, 0, "tx_packets") + n_tx_dropped(), n_from_guest);
	wait_until((drain_guest(), xdpnet_get_umem(0).rx == 0), WAIT_LONG_MS);
	xdpnet_wait_umem_at_rest(0, &before);
	xdpnet_listen(false);
	drain_guest();
	wire_check_both_ways(1);
	system_check_end();
}
END_TEST

/* ---- deleted, moved ---- */

static void start_pairs(unsigned n_pairs, unsigned mode)
{
	char option[24];

	snprintf(option, sizeof(option), "--queue-pairs=%u", n_pairs);
	xdpnet_make_link(n_pairs);
	xdpnet_start("--set", xdpnet_mode_set[mode], option);
	xdpnet_listen(false);
	system_connect(&(struct nic_options){.n_pairs = n_pairs});
	for (unsigned pair = 0; pair < n_pairs; pair++)
		nic_post(&nic, pair, 64, 2048);
}

/* While it is not there, the guest's frames are dropped and counted, and nobody spins. */
static void expect_gone(unsigned n_pairs)
{
	for (unsigned pair = 0; pair < n_pairs; pair++) {
		uint64_t n = daemon_counter(dut, pair, "tx_dropped");

		/* The end of the interface may be noticed a little later. */
		wait_until((nic_send(&nic, pair, (char[100]){2}, 100),
			    nic_wait_sent(&nic, pair, WAIT_LONG_MS),
			    daemon_counter(dut, pair, "tx_dropped") > n),
			   WAIT_LONG_MS);
	}
	expect_rest();
}

/* It is there again: wait until the daemon has it, then everything works at once. */
static void expect_back(unsigned n_pairs)
{
	wait_until(bpfprog_find(&xdpnet.ns, XDP_IF) != 0, WAIT_LONG_MS);
	frontend_sync(&nic.fe);
	xdpnet_take_up();
	xdpnet_listen(false);
	for (unsigned pair = 0; pair < n_pairs; pair++) {
		char data[FRAME_LEN];

		nic_make_frame(data, sizeof(data), 10 + pair);
		nic_send(&nic, pair, data, sizeof(data));
		wire_expect(FRAME_LEN, 10 + pair);
	}
	wire_send(FRAME_LEN, 1);
	wait_until(nic_poll(&nic, 0, frame) || (n_pairs == 2 && nic_poll(&nic, 1, frame)),
		   WAIT_PROMPT_MS);
	nic_check_frame(frame, FRAME_LEN, 1);
}

START_TEST(deleted_interface_is_used_again_when_it_is_back)
{
	const unsigned n_pairs = _i / XDP_N_MODES + 1;
	unsigned n_fds;

	start_pairs(n_pairs, (unsigned)_i % XDP_N_MODES);
	expect_back(n_pairs);
	n_fds = daemon_n_fds(dut);
	for (int round = 0; round < 3; round++) {
		netns_delete_link(&xdpnet.ns, XDP_IF);
		expect_gone(n_pairs);
		xdpnet_make_link(n_pairs);
		expect_back(n_pairs);
		expect_eq(daemon_n_fds(dut), n_fds);
		expect_gt(xdpnet_get_umem(0).fill, 0);
	}
	expect_lt(daemon_log_count(dut, "\n"), 20);
	system_check_end();
	xdpnet_check_left(false);
}
END_TEST

START_TEST(interface_in_another_namespace_is_let_go_and_used_again_when_it_is_back)
{
	start_pairs(1, (unsigned)_i);
	for (int round = 0; round < 2; round++) {
		netns_move_link(&xdpnet.ns, XDP_IF, &xdpnet.far_ns);
		expect_gone(1);
		wait_until(bpfprog_find(&xdpnet.far_ns, XDP_IF) == 0, WAIT_LONG_MS);
		netns_move_link(&xdpnet.far_ns, XDP_IF, &xdpnet.ns);
		netns_set_link_up(&xdpnet.ns, XDP_IF, true);
		expect_back(1);
	}
	system_check_end();
	xdpnet_check_left(false);
}
END_TEST

START_TEST(interface_that_comes_back_unfit_is_named_and_waited_for)
{
	unsigned n_lines;

	start_pairs(2, 0);
	netns_delete_link(&xdpnet.ns, XDP_IF);
	expect_gone(2);
	n_lines = daemon_log_count(dut, "\n");
	/* It has one queue only. */
	xdpnet_make_link(1);
	wait_until(daemon_log_count(dut, "queue 1") > 0, WAIT_LONG_MS);
	for (int i = 0; i < 5; i++)
		netns_set_link_up(&xdpnet.ns, XDP_IF, i % 2);
	expect_gone(2);
	expect_le(daemon_log_count(dut, "\n"), n_lines + 1);
	netns_delete_link(&xdpnet.ns, XDP_IF);
	xdpnet_make_link(2);
	expect_back(2);
}
END_TEST

START_TEST(daemon_ends_well_without_its_interface)
{
	start_pairs(1, (unsigned)_i);
	netns_delete_link(&xdpnet.ns, XDP_IF);
	system_check_end();
	xdpnet_check_left(false);
}
END_TEST

/* ---- the link's state ---- */

/* Negotiate what it takes to hear of it. Return: our end of the backend's channel. */
static int open_channel(void)
{
	int ends[2];

	frontend_connect(&nic.fe, dut->path);
	frontend_negotiate(&nic.fe, NIC_FEATURES | NIC_BIT(VIRTIO_NET_F_STATUS), ~0ULL);
	expect_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	frontend_do(&nic.fe, VHOST_USER_SET_BACKEND_REQ_FD, NULL, 0, &ends[1], 1);
	close(ends[1]);
	return ends[0];
}

static bool is_link_up(void)
{
	uint16_t status = 0;

	expect(frontend_get_config(&nic.fe, offsetof(struct virtio_net_config, status),
				   sizeof(status), &status));
	return status & VIRTIO_NET_S_LINK_UP;
}

static void expect_told(int channel, bool is_up)
{
	struct vhost_user_header h;

	expect_msg(wait_readable(channel, WAIT_LONG_MS), "nobody says that the link is %s",
		   is_up ? "up" : "down");
	expect_eq(recv(channel, &h, sizeof(h), 0), sizeof(h));
	expect_eq(h.request, VHOST_USER_BACKEND_CONFIG_CHANGE);
	expect_eq(is_link_up(), is_up);
}

START_TEST(carrier_is_the_guests_link_status)
{
	int channel;

	xdpnet_make_link(1);
	xdpnet_start("--set", "offer-config=true");
	channel = open_channel();
	expect(is_link_up());
	for (int round = 0; round < 2; round++) {
		netns_set_link_up(&xdpnet.far_ns, XDP_FAR, false);
		expect_told(channel, false);
		xdpnet_take_up();
		expect_told(channel, true);
	}
	netns_delete_link(&xdpnet.ns, XDP_IF);
	expect_told(channel, false);
	xdpnet_make_link(1);
	wait_until(is_link_up(), WAIT_LONG_MS);
	close(channel);
}
END_TEST

/* ---- MTU ---- */

START_TEST(changes_of_the_mtu_are_followed)
{
	static const int mtus[] = {1500, 3000, 1200, 1500};

	xdpnet_start_guest((unsigned)_i, NULL);
	for (uint32_t i = 0; i < 4; i++) {
		const uint32_t len = (uint32_t)mtus[i] + 14;

		netns_set_mtu(&xdpnet.far_ns, XDP_FAR, mtus[i]);
		netns_set_mtu(&xdpnet.ns, XDP_IF, mtus[i]);
		wire_check_both_ways(i);
		/* Before Linux 6.6 a frame of the packet memory is all that there is. */
		if (mtus[i] > 1500 && daemon_log_count(dut, "6.6") > 0)
			continue;
		wire_send(len, i);
		wire_expect_at_guest(len, i, WAIT_LONG_MS);
		if (len < 2000) {
			wire_send_from_guest(len, i);
			wire_expect(len, i);
		}
	}
}
END_TEST

/* ---- killed ---- */

static const char *const steer_set[] = {"port.steer=all", "port.steer=mac"};

START_TEST(killed_daemon_leaves_nothing_and_starts_again_at_once)
{
	unsigned n = wait_repeats("restarts after kill -9", 8, 50);

	xdpnet_make_link(2);
	for (unsigned i = 0; i < n; i++) {
		xdpnet_start("--set", xdpnet_mode_set[_i], "--queue-pairs=2", "--set",
			     steer_set[i % 2], "--set", "mac=02:76:75:78:00:02");
		xdpnet_listen(false);
		xdpnet_set_queue(0);
		system_connect(&(struct nic_options){.n_pairs = 2});
		nic_post(&nic, 0, 64, 2048);
		wire_check_both_ways(i);
		/* Some on their way. */
		for (uint32_t k = 0; k < 50; k++) {
			wire_send(FRAME_LEN, k);
			wire_send_from_guest(FRAME_LEN, k);
		}
		daemon_kill(dut);
		nic_close(&nic);
	}
	xdpnet_check_left(true);
}
END_TEST

START_TEST(guest_that_reconnects_after_a_kill_loses_no_buffer)
{
	unsigned n = wait_repeats("reconnections after kill -9", 5, 50);

	xdpnet_start_guest((unsigned)_i, NULL);
	for (unsigned i = 0; i < n; i++) {
		wire_check_both_ways(i);
		daemon_kill(dut);
		nic_disconnect(&nic);
		xdpnet_start("--set", xdpnet_mode_set[_i]);
		frontend_connect(&nic.fe, dut->path);
		nic_start(&nic);
	}
	wire_check_both_ways(n);
	expect_eq(nic_rx(&nic, 0)->size - nic_rx(&nic, 0)->n_free, 128);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
}
END_TEST

static void add_all(TCase *tc)
{
	xdpnet_add_fixture(tc);
	tcase_add_loop_test(tc, interface_that_was_down_or_without_carrier_goes_on_at_once, 0,
			    2 * XDP_N_MODES);
	tcase_add_loop_test(tc, interface_can_be_down_at_the_start, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, daemon_ends_well_with_frames_that_wait, 0, 2);
	tcase_add_loop_test(tc, flaps_under_load_break_nothing, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, deleted_interface_is_used_again_when_it_is_back, 0,
			    2 * XDP_N_MODES);
	tcase_add_loop_test(tc,
			    interface_in_another_namespace_is_let_go_and_used_again_when_it_is_back,
			    0, XDP_N_MODES);
	tcase_add_test(tc, interface_that_comes_back_unfit_is_named_and_waited_for);
	tcase_add_loop_test(tc, daemon_ends_well_without_its_interface, 0, XDP_N_MODES);
	tcase_add_test(tc, carrier_is_the_guests_link_status);
	tcase_add_loop_test(tc, changes_of_the_mtu_are_followed, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, killed_daemon_leaves_nothing_and_starts_again_at_once, 0,
			    XDP_N_MODES);
	tcase_add_loop_test(tc, guest_that_reconnects_after_a_kill_loses_no_buffer, 0, XDP_N_MODES);
}

int main(void)
{
	return xdpnet_is_possible() ? system_main("xdp_life", add_all) : 77;
}
