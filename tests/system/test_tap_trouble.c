/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port tap: a tap that is full, down, deleted or back costs what the contract allows, and nothing
 * more.
 */
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/tapnet.h"

/*
 * A tap is full while frames that were written to it are still in the kernel: the way out of its
 * bridge is a slow one.
 */
static int start_behind_slow_bridge(const char *rate, const char *sndbuf)
{
	char command[200];
	int out;

	netns_run(&tapnet.ns, "ip link add br0 type bridge mcast_snooping 0 && ip link set br0 up");
	out = netns_open_tap(&tapnet.ns, "out0", IFF_NO_PI);
	expect_eq(fcntl(out, F_SETFL, O_NONBLOCK), 0);
	snprintf(command, sizeof(command),
		 "tc qdisc add dev out0 root tbf rate %s burst 2000 limit 1000000 && "
		 "ip link set out0 master br0 up",
		 rate);
	netns_run(&tapnet.ns, command);
	tapnet_start("--set", sndbuf, "--set", "port.bridge=br0");
	wire.packet = out;
	system_connect(NULL);
	return out;
}

static void expect_out_of_bridge(int out, uint32_t len, uint32_t seq)
{
	ssize_t n;

	do { /* the bridge's own network stack may have something to say, too */
		expect_msg(wait_readable(out, WAIT_LONG_MS), "frame %u does not come out", seq);
		n = read(out, wire.frame.data, sizeof(wire.frame.data));
		expect_ge(n, 0);
	} while (memcmp(wire.frame.data + 12, "\x88\xb5", 2) != 0);
	wire.frame.len = (uint32_t)n;
	nic_check_frame(&wire.frame, len, seq);
}

START_TEST(full_tap_delays_frames_and_loses_none)
{
	const unsigned n = 2000;
	char data[1000];
	uint32_t sent = 0;
	int out = start_behind_slow_bridge("40mbit", "port.sndbuf=4096");

	for (uint32_t received = 0; received < n; received++) {
		nic_reap(&nic, 0);
		while (sent < n && nic_tx(&nic, 0)->n_free > 0) {
			nic_make_frame(data, sizeof(data), sent++);
			nic_queue(&nic, 0, NULL, data, sizeof(data));
		}
		driver_kick(nic_tx(&nic, 0));
		expect_out_of_bridge(out, sizeof(data), received);
	}
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	expect_eq(daemon_counter(dut, 0, "tx_packets"), n);
	expect_eq(daemon_counter(dut, 0, "tx_dropped"), 0);
	expect_gt(daemon_counter(dut, 0, "tap_eagain"), 0);
	expect_gt(daemon_counter(dut, 0, "tx_port_full"), 0);
	expect_lt(daemon_log_count(dut, "\n"), 8);
}
END_TEST

static bool is_refused(const char *setting)
{
	struct daemon_result r =
		daemon_run(dut, &(struct daemon_options){.has_no_socket = true,
							 .args = {"--port=tap:" TAP, "--set",
								  setting, "--check-config"}});
	bool is = r.code == 2;

	daemon_result_free(&r);
	return is;
}

START_TEST(send_buffer_that_is_accepted_is_large_enough)
{
	const unsigned sizes[] = {1, 5, 64, 1024, 2048};
	char setting[32], data[1000];
	int out;

	snprintf(setting, sizeof(setting), "port.sndbuf=%u", sizes[_i]);
	if (is_refused(setting))
		return;
	out = start_behind_slow_bridge("40mbit", setting);
	for (uint32_t i = 0; i < 100; i++) {
		nic_make_frame(data, sizeof(data), i);
		nic_queue(&nic, 0, NULL, data, sizeof(data));
	}
	driver_kick(nic_tx(&nic, 0));
	for (uint32_t i = 0; i < 100; i++)
		expect_out_of_bridge(out, sizeof(data), i);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
}
END_TEST

START_TEST(full_tap_is_waited_for_without_spinning)
{
	int out = start_behind_slow_bridge("200kbit", "port.sndbuf=4096");
	uint64_t before, n_eagain;
	char data[1000];

	for (uint32_t i = 0; i < 20; i++) {
		nic_make_frame(data, sizeof(data), i);
		nic_queue(&nic, 0, NULL, data, sizeof(data));
	}
	driver_kick(nic_tx(&nic, 0));
	wait_until(daemon_counter(dut, 0, "tx_port_full") > 0, WAIT_LONG_MS);
	before = daemon_cpu_ms(dut);
	n_eagain = daemon_counter(dut, 0, "tap_eagain");
	wait_pause_us(300000);
	expect_le(daemon_cpu_ms(dut) - before, wait_scaled_ms(30));
	/* At most once for each frame that got out. */
	expect_le(daemon_counter(dut, 0, "tap_eagain") - n_eagain, 20);
	for (uint32_t i = 0; i < 20; i++)
		expect_out_of_bridge(out, sizeof(data), i);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
}
END_TEST

START_TEST(tap_that_is_down_drops_and_resumes)
{
	tapnet_start_guest(NULL);
	wire_check_both_ways(1);
	for (uint32_t round = 0; round < 5; round++) {
		uint64_t dropped = daemon_counter(dut, 0, "tx_dropped");
		uint64_t before;

		netns_set_link_up(&tapnet.ns, TAP, false);
		for (uint32_t i = 0; i < 10; i++)
			wire_send_from_guest(FRAME_LEN, i);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
		expect_eq(daemon_counter(dut, 0, "tx_dropped"), dropped + 10);
		before = daemon_cpu_ms(dut);
		wait_pause_us(100000);
		expect_le(daemon_cpu_ms(dut) - before, wait_scaled_ms(20));
		netns_set_link_up(&tapnet.ns, TAP, true);
		recv(wire.packet, wire.frame.data, 1, MSG_DONTWAIT); /* ENETDOWN is reported once */
		wire_send_from_guest(FRAME_LEN, 100 + round);
		expect_gt(netns_receive(wire.packet, wire.frame.data, sizeof(wire.frame.data),
					WAIT_PROMPT_MS),
			  0);
		wire_send(FRAME_LEN, 200 + round);
		wire_expect_at_guest(FRAME_LEN, 200 + round, WAIT_PROMPT_MS);
	}
	expect_lt(daemon_log_count(dut, "\n"), 20);
}
END_TEST

START_TEST(deleted_tap_is_used_again_when_it_is_back)
{
	unsigned n_pairs = _i ? 2 : 1;

	netns_make_tap(&tapnet.ns, TAP, n_pairs);
	netns_set_link_up(&tapnet.ns, TAP, true);
	tapnet_start(n_pairs == 2 ? "--queue-pairs=2" : NULL);
	tapnet_listen(false);
	system_connect(&(struct nic_options){.n_pairs = n_pairs});
	for (unsigned pair = 0; pair < n_pairs; pair++)
		nic_post(&nic, pair, 64, 2048);
	for (uint32_t round = 1; round <= 3; round++) {
		uint64_t before;

		netns_delete_link(&tapnet.ns, TAP);
		wait_until(daemon_log_count(dut, "deleted") == round, WAIT_LONG_MS);
		wire_send_from_guest(FRAME_LEN, 1);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
		expect_ge(daemon_counter(dut, 0, "tx_dropped"), round);
		before = daemon_cpu_ms(dut);
		wait_pause_us(100000);
		expect_le(daemon_cpu_ms(dut) - before, wait_scaled_ms(20));
		netns_make_tap(&tapnet.ns, TAP, n_pairs);
		netns_set_link_up(&tapnet.ns, TAP, true);
		tapnet_listen(false);
		wait_until(daemon_log_count(dut, "is back, and in use") == round, WAIT_LONG_MS);
		netns_wait_running(&tapnet.ns, TAP);
		wire_send_from_guest(FRAME_LEN, 100 + round);
		wire_expect(FRAME_LEN, 100 + round);
		wire_send(FRAME_LEN, 200 + round);
		wait_until(nic_poll(&nic, 0, &wire.frame) ||
				   (n_pairs == 2 && nic_poll(&nic, 1, &wire.frame)),
			   WAIT_PROMPT_MS);
		nic_check_frame(&wire.frame, FRAME_LEN, 200 + round);
	}
	system_check_end();
}
END_TEST

START_TEST(name_that_another_kind_of_interface_takes_is_said_once)
{
	unsigned n_lines;
	uint64_t start;

	netns_make_tap(&tapnet.ns, TAP, 1);
	netns_set_link_up(&tapnet.ns, TAP, true);
	tapnet_start(NULL);
	system_connect(NULL);
	nic_post(&nic, 0, 64, 2048);
	netns_delete_link(&tapnet.ns, TAP);
	wait_until(daemon_log_count(dut, "deleted") == 1, WAIT_LONG_MS);
	netns_run(&tapnet.ns, "ip link add " TAP " type bridge");
	wait_pause_us(50000);
	n_lines = daemon_log_count(dut, "\n");
	for (int i = 0; i < 10; i++) {
		netns_set_link_up(&tapnet.ns, "lo", i % 2);
		netns_set_link_up(&tapnet.ns, TAP, i % 2);
		start = wait_now_ns();
		frontend_sync(&nic.fe);
		expect_lt(wait_now_ns() - start, wait_scaled_ms(200) * 1000000ULL);
	}
	expect_le(daemon_log_count(dut, "\n"), n_lines + 1);
	netns_delete_link(&tapnet.ns, TAP);
	netns_make_tap(&tapnet.ns, TAP, 1);
	netns_set_link_up(&tapnet.ns, TAP, true);
	tapnet_listen(false);
	wait_until(daemon_log_count(dut, "is back, and in use") == 1, WAIT_LONG_MS);
	netns_wait_running(&tapnet.ns, TAP);
	wire_check_both_ways(1);
}
END_TEST

START_TEST(name_that_another_process_takes_is_waited_for)
{
	uint64_t start;
	int fd;

	netns_make_tap(&tapnet.ns, TAP, 1);
	tapnet_start(NULL);
	system_connect(NULL);
	nic_post(&nic, 0, 64, 2048);
	netns_delete_link(&tapnet.ns, TAP);
	wait_until(daemon_log_count(dut, "deleted") == 1, WAIT_LONG_MS);
	fd = netns_open_tap(&tapnet.ns, TAP, IFF_NO_PI | IFF_VNET_HDR);
	for (int i = 0; i < 6; i++) {
		netns_set_link_up(&tapnet.ns, TAP, i % 2);
		start = wait_now_ns();
		frontend_sync(&nic.fe);
		expect_lt(wait_now_ns() - start, wait_scaled_ms(200) * 1000000ULL);
	}
	expect_lt(daemon_log_count(dut, "\n"), 10);
	/* It stays when the other one lets go of it; the next change of any link tells. */
	expect_eq(ioctl(fd, TUNSETPERSIST, 1), 0);
	close(fd);
	netns_set_link_up(&tapnet.ns, TAP, true);
	tapnet_listen(false);
	wait_until(daemon_log_count(dut, "is back, and in use") == 1, WAIT_LONG_MS);
	netns_wait_running(&tapnet.ns, TAP);
	wire_check_both_ways(1);
}
END_TEST

START_TEST(daemon_ends_well_without_its_tap)
{
	netns_make_tap(&tapnet.ns, TAP, 1);
	tapnet_start(NULL);
	system_connect(NULL);
	netns_delete_link(&tapnet.ns, TAP);
	system_check_end();
}
END_TEST

static void add_all(TCase *tc)
{
	tapnet_add_fixture(tc);
	tcase_add_test(tc, full_tap_delays_frames_and_loses_none);
	tcase_add_loop_test(tc, send_buffer_that_is_accepted_is_large_enough, 0, 5);
	tcase_add_test(tc, full_tap_is_waited_for_without_spinning);
	tcase_add_test(tc, tap_that_is_down_drops_and_resumes);
	tcase_add_loop_test(tc, deleted_tap_is_used_again_when_it_is_back, 0, 2);
	tcase_add_test(tc, name_that_another_kind_of_interface_takes_is_said_once);
	tcase_add_test(tc, name_that_another_process_takes_is_waited_for);
	tcase_add_test(tc, daemon_ends_well_without_its_tap);
}

int main(void)
{
	return netns_is_possible() ? system_main("tap_trouble", add_all) : 77;
}
