/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port xdp: what happens at the wrong moment: to an interface while no guest is there, while the
 * daemon starts, while it does not look; to pairs and frontends while frames are under way.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/xdpnet.h"

static struct nic_frame *const frame = &wire.frame;
static char data[FRAME_LEN];

/* Nobody spins. */
static void expect_rest(void)
{
	uint64_t before;

	wait_pause_us(50000);
	before = daemon_cpu_ms(dut);
	wait_pause_us(200000);
	expect_le(daemon_cpu_ms(dut) - before, wait_scaled_ms(20));
}

static void flap(void)
{
	netns_set_link_up(&xdpnet.ns, XDP_IF, false);
	wait_until(daemon_log_count(dut, "down") > 0, WAIT_LONG_MS);
	xdpnet_take_up();
	wait_until(daemon_log_count(dut, "up again") > 0, WAIT_LONG_MS);
}

/* ---- without a guest ---- */

START_TEST(flap_without_a_guest_wakes_nobody_afterwards)
{
	xdpnet_make_link(2);
	xdpnet_start("--queue-pairs=2", "--set", xdpnet_mode_set[_i % XDP_N_MODES]);
	if (_i / XDP_N_MODES)
		/* One that uses the first pair only. */
		system_connect(NULL);
	flap();
	expect_rest();
}
END_TEST

/* ---- queues ---- */

START_TEST(interface_with_too_few_transmit_queues_is_named)
{
	netns_make_veth(&xdpnet.ns, XDP_IF, &xdpnet.far_ns, XDP_FAR, 2);
	netns_run(&xdpnet.ns, "ethtool -L " XDP_IF " tx 1");
	xdpnet_take_up();
	system_expect_failure(xdpnet_options("--queue-pairs=2"), 1, "transmit queue 1");
}
END_TEST

/* ---- while the daemon starts ---- */

START_TEST(interface_that_comes_up_during_the_start_is_up)
{
	uint64_t switches[DAEMON_MAX_THREADS];
	static struct daemon other;

	netns_make_veth(&xdpnet.ns, XDP_IF, &xdpnet.far_ns, XDP_FAR, 1);
	daemon_open(&other);
	daemon_start(&other, xdpnet_options(NULL));
	/* It waits for the other one's end, as after a kill. */
	daemon_spawn(dut, xdpnet_options(NULL));
	wait_until((daemon_switches(dut, switches), switches[0] >= 10), WAIT_LONG_MS);
	xdpnet_take_up();
	daemon_kill(&other);
	wait_until(access(dut->ctl, F_OK) == 0, WAIT_LONG_MS);
	xdpnet_listen(false);
	system_connect(NULL);
	nic_post(&nic, 0, 16, 2048);
	for (uint32_t i = 0; i < 100; i++)
		wire_send_from_guest(FRAME_LEN, i);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	for (uint32_t i = 0; i < 100; i++)
		wire_expect(FRAME_LEN, i);
	wire_check_both_ways(1);
	daemon_close(&other);
}
END_TEST

/* ---- while it does not look ---- */

START_TEST(interface_that_has_been_elsewhere_unseen_is_used_again)
{
	struct netns elsewhere;
	int index;

	xdpnet_start_guest((unsigned)_i, NULL);
	wire_check_both_ways(1);
	index = netns_link_index(&xdpnet.ns, XDP_IF);
	netns_open(&elsewhere);
	kill(dut->pid, SIGSTOP);
	netns_move_link(&xdpnet.ns, XDP_IF, &elsewhere);
	netns_move_link(&elsewhere, XDP_IF, &xdpnet.ns);
	xdpnet_take_up();
	netns_close(&elsewhere);
	/* Nothing about it looks different. */
	expect_eq(netns_link_index(&xdpnet.ns, XDP_IF), index);
	kill(dut->pid, SIGCONT);
	xdpnet_listen(false);
	for (uint32_t i = 0;; i++) {
		wire_send_from_guest(FRAME_LEN, i);
		if (netns_receive(wire.packet, frame->data, NIC_MAX_FRAME, 20) == FRAME_LEN)
			break;
		expect_lt(i, 100);
	}
}
END_TEST

/* ---- deleted ---- */

START_TEST(frames_that_wait_are_counted_when_the_interface_is_deleted)
{
	const uint32_t len = _i ? 9014 : FRAME_LEN, n = 10;

	xdpnet_make_link(1);
	netns_set_mtu(&xdpnet.far_ns, XDP_FAR, 9000);
	netns_set_mtu(&xdpnet.ns, XDP_IF, 9000);
	xdpnet_start("--set", "port.frame-size=2048");
	/* Before Linux 6.6 a frame of the packet memory is all that there is. */
	if (_i && daemon_log_count(dut, "6.6") > 0)
		return;
	xdpnet_listen(false);
	system_connect(NULL);
	for (uint32_t i = 0; i < n; i++)
		wire_send(len, i);
	wait_until(xdpnet_get_umem(0).rx >= n, WAIT_LONG_MS);
	netns_delete_link(&xdpnet.ns, XDP_IF);
	wait_until(daemon_counter(dut, 0, "rx_dropped") > 0, WAIT_LONG_MS);
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), n);
}
END_TEST

/* ---- unfit ---- */

START_TEST(interface_is_used_when_what_was_wrong_is_put_right)
{
	/* No message tells that a program went whose link was closed. */
	bool is_link = _i % 2;
	int fd;

	xdpnet_start_guest((unsigned)_i / 2, NULL);
	netns_delete_link(&xdpnet.ns, XDP_IF);
	wait_until(daemon_log_count(dut, "is gone") > 0, WAIT_LONG_MS);
	kill(dut->pid, SIGSTOP);
	xdpnet_make_link(1);
	fd = bpfprog_attach_foreign(&xdpnet.ns, XDP_IF, is_link);
	kill(dut->pid, SIGCONT);
	wait_until(daemon_log_count(dut, "'foreign'") > 0, WAIT_LONG_MS);
	/* As the line says. */
	if (!is_link)
		bpfprog_detach(&xdpnet.ns, XDP_IF);
	close(fd);
	wait_until(daemon_log_count(dut, "and in use") > 0, WAIT_LONG_MS);
	frontend_sync(&nic.fe);
	xdpnet_listen(false);
	wire_check_both_ways(1);
	expect_eq(daemon_log_count(dut, "'foreign'"), 1);
}
END_TEST

START_TEST(peer_with_more_queues_is_named)
{
	netns_run(&xdpnet.ns, "ip link add " XDP_IF " numrxqueues 1 numtxqueues 1 type veth"
			      " peer name peer0 numrxqueues 4 numtxqueues 4");
	system_expect_failure(xdpnet_options("--set", "port.mode=native"), 1, "ethtool -L");
	xdpnet_start("--set", "port.mode=auto");
	expect_msg(strstr(dut->ready, "generic"), "%s", dut->ready);
}
END_TEST

/* ---- several pairs ---- */

#define MAX_PAIRS 16u

static void enable_pair(unsigned pair, bool is_enabled)
{
	frontend_set_vring_enable(&nic.fe, 2 * pair, is_enabled);
	frontend_set_vring_enable(&nic.fe, 2 * pair + 1, is_enabled);
}

static void connect_pairs(unsigned n_pairs, uint32_t size)
{
	xdpnet_listen(false);
	system_connect(&(struct nic_options){.n_pairs = n_pairs, .size = size});
	for (unsigned pair = 0; pair < n_pairs; pair++)
		nic_post(&nic, pair, size / 2, 2048);
}

static bool is_flooding;

static void *flood(void *arg)
{
	(void)arg;
	nic_make_frame(data, sizeof(data), 1);
	while (__atomic_load_n(&is_flooding, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 64; i++)
			(void)send(wire.packet, data, sizeof(data), 0);
		while (nic_poll(&nic, 0, frame))
			;
	}
	return NULL;
}

START_TEST(packet_memory_adds_up_while_another_pair_receives)
{
	const unsigned n = wait_repeats("questions about packet memory", 10000, 50000);
	pthread_t thread;

	xdpnet_make_link(2);
	xdpnet_start("--queue-pairs=2", "--set", "port.frames=256");
	connect_pairs(2, 256);
	enable_pair(1, false);
	frontend_sync(&nic.fe);
	xdpnet_set_queue(1);
	is_flooding = true;
	expect_eq(pthread_create(&thread, NULL, flood, NULL), 0);
	for (unsigned i = 0; i < n; i++)
		xdpnet_get_umem(1);
	__atomic_store_n(&is_flooding, false, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(groups_reach_a_guest_whose_first_pair_is_off)
{
	xdpnet_make_link(2);
	xdpnet_start("--queue-pairs=2", "--set", "port.steer=mac", "--set",
		     "mac=02:76:75:78:00:02");
	connect_pairs(2, 64);
	for (uint32_t i = 0; i < 10; i++) {
		enable_pair(0, i % 2);
		frontend_sync(&nic.fe);
		nic_make_frame(data, sizeof(data), i);
		memset(data, 0xff, 6);
		expect_eq(send(wire.packet, data, sizeof(data), 0), FRAME_LEN);
		nic_recv(&nic, i % 2 ? 0 : 1, frame, WAIT_LONG_MS);
		expect_eq(nic_frame_seq(frame), i);
	}
}
END_TEST

static struct {
	unsigned n_to_guest, n_at_guest, n_from_guest, n_out;
} seen;

static unsigned take_at_guest(unsigned pair)
{
	unsigned n = 0;

	while (nic_poll(&nic, pair, frame))
		n++;
	return n;
}

static void exchange_on_all_queues(void)
{
	for (unsigned i = 0; i < 2 * MAX_PAIRS; i++) {
		const unsigned pair = i % MAX_PAIRS;

		xdpnet_set_queue(pair);
		nic_make_frame(data, sizeof(data), i);
		seen.n_to_guest += send(wire.packet, data, sizeof(data), 0) == FRAME_LEN;
		nic_reap(&nic, pair);
		if (nic_tx(&nic, pair)->n_free == 0)
			continue;
		nic_send(&nic, pair, data, sizeof(data));
		seen.n_from_guest++;
	}
	for (unsigned pair = 0; pair < MAX_PAIRS; pair++)
		seen.n_at_guest += take_at_guest(pair);
	while (netns_receive(wire.packet, frame->data, NIC_MAX_FRAME, 0) > 0)
		seen.n_out++;
}

static uint64_t sum_of(const char *name)
{
	uint64_t sum = 0;

	for (unsigned pair = 0; pair < MAX_PAIRS; pair++)
		sum += daemon_counter(dut, pair, name);
	return sum;
}

static void expect_all_accounted(const struct xdpnet_umem *before)
{
	for (unsigned pair = 0; pair < MAX_PAIRS; pair++)
		nic_wait_sent(&nic, pair, WAIT_LONG_MS);
	for (unsigned pair = 0; pair < MAX_PAIRS; pair++) {
		wait_until((seen.n_at_guest += take_at_guest(pair), xdpnet_get_umem(pair).rx == 0),
			   WAIT_LONG_MS);
		seen.n_at_guest += take_at_guest(pair);
		xdpnet_wait_umem_at_rest(pair, &before[pair]);
	}
	while (netns_receive(wire.packet, frame->data, NIC_MAX_FRAME, WAIT_QUIET_MS) > 0)
		seen.n_out++;
	expect_eq(seen.n_from_guest, sum_of("tx_packets") + sum_of("tx_dropped"));
	expect_eq(seen.n_out, sum_of("tx_packets"));
	expect_eq(seen.n_at_guest, sum_of("rx_packets"));
	expect_eq(seen.n_to_guest, seen.n_at_guest + sum_of("rx_dropped") +
					   sum_of("xdp_rx_dropped") + sum_of("xdp_rx_ring_full"));
}

START_TEST(pairs_go_on_and_off_in_any_order_under_load)
{
	struct xdpnet_umem before[MAX_PAIRS];
	unsigned random = 1;

	seen.n_to_guest = seen.n_at_guest = seen.n_from_guest = seen.n_out = 0;
	xdpnet_make_link(MAX_PAIRS);
	xdpnet_start("--queue-pairs=16", "--set", xdpnet_mode_set[_i]);
	connect_pairs(MAX_PAIRS, 64);
	for (unsigned pair = 0; pair < MAX_PAIRS; pair++)
		before[pair] = xdpnet_get_umem(pair);
	for (unsigned n = wait_repeats("pairs on and off", 400, 5000); n > 0; n--) {
		random = random * 1103515245 + 12345;
		enable_pair(random >> 16 & (MAX_PAIRS - 1), random >> 20 & 1);
		exchange_on_all_queues();
	}
	for (unsigned pair = 0; pair < MAX_PAIRS; pair++)
		enable_pair(pair, true);
	frontend_sync(&nic.fe);
	expect_all_accounted(before);
	expect_rest();
}
END_TEST

/* ---- frontends that come and go ---- */

static void start_bursts_both_ways(void)
{
	nic_post(&nic, 0, 64, 2048);
	for (uint32_t i = 0; i < 1000; i++) {
		nic_make_frame(data, sizeof(data), i);
		nic_queue(&nic, 0, NULL, data, sizeof(data));
	}
	driver_kick(nic_tx(&nic, 0));
	for (int i = 0; i < 100; i++)
		(void)send(wire.packet, data, sizeof(data), 0);
}

/* With so little packet memory the port is full most of the time. */
START_TEST(frontends_that_go_in_the_middle_of_bursts_leave_nothing)
{
	const unsigned n = wait_repeats("frontends that go", 600, 10000);
	struct xdpnet_umem before;

	xdpnet_make_link(1);
	xdpnet_start("--set", "port.frames=64", "--set", xdpnet_mode_set[_i]);
	xdpnet_listen(false);
	before = xdpnet_get_umem(0);
	for (unsigned round = 0; round < n; round++) {
		system_connect(&(struct nic_options){.size = 1024});
		start_bursts_both_ways();
		wait_pause_us(round * 7 % 300);
		if (round % 3 == 0)
			frontend_set_mem_table(&nic.fe, &nic.guest);
		else if (round % 3 == 1)
			frontend_get_vring_base(&nic.fe, 1);
		nic_close(&nic);
		xdpnet_get_umem(0);
	}
	expect_rest();
	system_connect(NULL);
	nic_post(&nic, 0, 64, 2048);
	wait_until((take_at_guest(0), xdpnet_get_umem(0).rx == 0), WAIT_LONG_MS);
	xdpnet_wait_umem_at_rest(0, &before);
	take_at_guest(0);
	xdpnet_listen(false);
	wire_check_both_ways(1);
}
END_TEST

static void add_all(TCase *tc)
{
	xdpnet_add_fixture(tc);
	tcase_add_loop_test(tc, flap_without_a_guest_wakes_nobody_afterwards, 0, 2 * XDP_N_MODES);
	tcase_add_test(tc, interface_with_too_few_transmit_queues_is_named);
	tcase_add_loop_test(tc, interface_that_comes_up_during_the_start_is_up, 0, 3);
	tcase_add_loop_test(tc, interface_that_has_been_elsewhere_unseen_is_used_again, 0,
			    XDP_N_MODES);
	tcase_add_loop_test(tc, frames_that_wait_are_counted_when_the_interface_is_deleted, 0, 2);
	tcase_add_loop_test(tc, interface_is_used_when_what_was_wrong_is_put_right, 0,
			    2 * XDP_N_MODES);
	tcase_add_test(tc, peer_with_more_queues_is_named);
	tcase_add_test(tc, packet_memory_adds_up_while_another_pair_receives);
	tcase_add_test(tc, groups_reach_a_guest_whose_first_pair_is_off);
	tcase_add_loop_test(tc, pairs_go_on_and_off_in_any_order_under_load, 0, XDP_N_MODES);
	tcase_add_loop_test(tc, frontends_that_go_in_the_middle_of_bursts_leave_nothing, 0,
			    XDP_N_MODES);
}

int main(void)
{
	return xdpnet_is_possible() ? system_main("xdp_trouble", add_all) : 77;
}
