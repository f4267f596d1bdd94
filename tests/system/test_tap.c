/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port tap: frames go both ways unharmed, through io_uring and without it, and the tap comes and
 * goes as the configuration says.
 */
#include <net/if.h>
#include <linux/if_tun.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/tapnet.h"

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
	tapnet_start_guest(&(struct nic_options){.features = features[_i], .base = 65500});
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t len = 18 + i * 61 % 1497;

		wire_send_from_guest(len, i);
		wire_expect(len, i);
		wire_send(len, i);
		wire_expect_at_guest(len, i, WAIT_LONG_MS);
	}
}
END_TEST

START_TEST(bursts_keep_their_order_and_lose_nothing)
{
	tapnet_start_guest(&(struct nic_options){.size = 256});
	wire_exchange(wait_repeats("frames through the tap", 5000, 100000), 400);
}
END_TEST

START_TEST(sender_on_another_processor_loses_nothing)
{
	tapnet_start_guest(NULL);
	/* The tap's own queue holds 500, and drops what is too much. */
	wire_flow_to_guest(wait_repeats("frames from another processor", 20000, 1000000), 300);
}
END_TEST

START_TEST(frames_wait_in_the_tap_while_the_guest_has_no_buffers)
{
	tapnet_start(NULL);
	tapnet_listen(false);
	system_connect(NULL);
	for (uint32_t i = 0; i < 300; i++)
		wire_send(FRAME_LEN, i);
	nic_expect_nothing(&nic, 0);
	nic_post(&nic, 0, 64, 2048);
	for (uint32_t i = 0; i < 300; i++) {
		wire_expect_at_guest(FRAME_LEN, i, i ? WAIT_LONG_MS : WAIT_PROMPT_MS);
	}
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 0);
}
END_TEST

/* What a tap's own queue holds at least. */
#define TAP_QUEUE 500u

/* Send frames as fast as it goes; what does not fit into the tap is the kernel's to drop. */
static void flood(uint32_t n)
{
	static char data[FRAME_LEN];
	ssize_t ignored = 0;

	for (uint32_t i = 0; i < n; i++) {
		nic_make_frame(data, sizeof(data), i);
		ignored = send(wire.packet, data, sizeof(data), 0);
	}
	(void)ignored;
}

/* Return: whether the guest gets one more frame before it must be believed that there is none. */
static bool gets_another_frame(void)
{
	for (unsigned ms = 0; ms < WAIT_QUIET_MS && driver_n_used(nic_rx(&nic, 0)) == 0; ms++)
		wait_pause_us(1000);
	return driver_n_used(nic_rx(&nic, 0)) > 0;
}

/* A ring smaller than the burst, and no buffers in it: the frames are left where they are, all that
 * there is room for, and nothing of the daemon's grows. */
START_TEST(overload_costs_no_memory_and_no_frame_that_the_tap_has_room_for)
{
	unsigned n = wait_repeats("frames of overload", 30000, 1000000);
	uint32_t n_arrived = 0;
	uint64_t kib;

	tapnet_start(NULL);
	tapnet_listen(false);
	system_connect(&(struct nic_options){.size = 16});
	flood(2 * TAP_QUEUE);
	kib = daemon_memory_kib(dut);
	flood(n);
	expect_le(daemon_memory_kib(dut), kib + 64);
	nic_post(&nic, 0, 16, 2048);
	for (; n_arrived < TAP_QUEUE || gets_another_frame(); n_arrived++)
		wire_expect_at_guest(FRAME_LEN, n_arrived, WAIT_LONG_MS);
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 0);
	expect_eq(daemon_counter(dut, 0, "rx_packets"), n_arrived);
	wire_check_both_ways(1);
}
END_TEST

START_TEST(frames_survive_stop_and_start_of_the_receive_ring)
{
	uint32_t seq = 0, expected = 0;

	tapnet_start_guest(NULL);
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 8; i++)
			wire_send(FRAME_LEN, seq++);
		frontend_get_vring_base(&nic.fe, 0);
		driver_send_setup(nic_rx(&nic, 0), &nic.fe);
		while (expected < seq) {
			wire_expect_at_guest(FRAME_LEN, expected++, WAIT_LONG_MS);
		}
	}
}
END_TEST

START_TEST(several_queues_carry_frames)
{
	tapnet_start("--queue-pairs=4");
	tapnet_listen(false);
	system_connect(&(struct nic_options){.n_pairs = 4, .size = 64});
	for (unsigned pair = 0; pair < 4; pair++)
		nic_post(&nic, pair, 32, 2048);
	for (uint32_t i = 0; i < 40; i++) {
		char data[FRAME_LEN];

		nic_make_frame(data, sizeof(data), i);
		nic_send(&nic, i % 4, data, sizeof(data));
		wire_expect(FRAME_LEN, i);
	}
	/* What comes from the wire is steered to some enabled queue. */
	for (unsigned disabled = 0; disabled < 3; disabled++) {
		for (uint32_t i = 0; i < 20; i++) {
			unsigned n = 0;

			wire_send(FRAME_LEN, i);
			wait_until((n = nic_poll(&nic, 0, &wire.frame) ||
					nic_poll(&nic, 1, &wire.frame) ||
					nic_poll(&nic, 2, &wire.frame) ||
					nic_poll(&nic, 3, &wire.frame)) > 0,
				   WAIT_LONG_MS);
			nic_check_frame(&wire.frame, FRAME_LEN, i);
		}
		for (unsigned ring = 0; ring < 2; ring++)
			frontend_set_vring_enable(&nic.fe, 2 * (3 - disabled) + ring, false);
		frontend_sync(&nic.fe);
	}
}
END_TEST

/* ---- how the tap comes to be ---- */

START_TEST(missing_tap_is_made_and_goes_with_the_process)
{
	char expected[160];

	tapnet_start(NULL);
	snprintf(expected, sizeof(expected), "ready: listening on %s, port tap:" TAP " (created)",
		 dut->path);
	expect_msg(strcmp(dut->ready, expected) == 0, "%s", dut->ready);
	expect(netns_link_exists(&tapnet.ns, TAP));
	system_check_end();
	wait_until(!netns_link_exists(&tapnet.ns, TAP), WAIT_LONG_MS);
}
END_TEST

START_TEST(tap_that_was_there_stays)
{
	netns_make_tap(&tapnet.ns, TAP, 1);
	tapnet_start(NULL);
	expect_msg(strstr(dut->ready, "created") == NULL, "%s", dut->ready);
	system_check_end();
	expect(netns_link_exists(&tapnet.ns, TAP));
}
END_TEST

START_TEST(tap_is_there_again_at_once_after_the_daemon_has_gone)
{
	netns_make_tap(&tapnet.ns, TAP, 1);
	for (int round = 0; round < 5; round++) {
		tapnet_start(NULL);
		system_connect(NULL);
		nic_post(&nic, 0, 8, 2048);
		nic_close(&nic);
		if (round % 2)
			daemon_kill(dut);
		else
			daemon_stop(dut);
	}
}
END_TEST

START_TEST(tap_that_cannot_be_had_is_an_error_of_one_line)
{
	const char *args[][4] = {
		{"--port=tap:" TAP, "--set", "port.create=false"},
		{"--port=tap:" TAP, "--queue-pairs=2"},
		{"--port=tap:" TAP},
		{"--port=tap:lo"},
	};
	struct daemon_options options = {.netns = &tapnet.ns};
	struct daemon holder;
	struct daemon_result r;

	daemon_open(&holder);
	if (_i == 1)
		netns_make_tap(&tapnet.ns, TAP, 1);
	if (_i == 2)
		daemon_start(&holder, &(struct daemon_options){.netns = &tapnet.ns,
							       .args = {"--port=tap:" TAP}});
	memcpy(options.args, args[_i], sizeof(args[_i]));
	r = daemon_run(dut, &options);
	expect_eq(r.code, 1);
	expect_msg(r.n_lines == 1, "%u lines: %s", r.n_lines, r.err);
	expect_msg(strstr(r.err, _i == 3 ? "lo" : TAP), "%s", r.err);
	expect_eq(r.out[0], '\0');
	expect_eq(access(dut->path, F_OK), -1);
	expect_eq(netns_link_exists(&tapnet.ns, TAP), _i == 1 || _i == 2);
	daemon_result_free(&r);
	daemon_close(&holder);
}
END_TEST

START_TEST(open_tap_can_be_handed_in)
{
	int fd = netns_open_tap(&tapnet.ns, TAP, IFF_NO_PI | IFF_VNET_HDR);

	netns_set_link_up(&tapnet.ns, TAP, true);
	daemon_start(dut, &(struct daemon_options){
				  .netns = &tapnet.ns,
				  .pass_fd = fd,
				  .args = {"--set", "port.type=tap", "--set", "port.fd=3"},
			  });
	close(fd);
	expect_msg(strstr(dut->ready, "port tap:" TAP), "%s", dut->ready);
	tapnet_listen(false);
	system_connect(NULL);
	nic_post(&nic, 0, 64, 2048);
	for (uint32_t i = 0; i < 10; i++)
		wire_check_both_ways(i);
	/* Without a name there is no coming back, but no harm either. */
	netns_delete_link(&tapnet.ns, TAP);
	wait_until(daemon_log_count(dut, "deleted") == 1, WAIT_LONG_MS);
	wire_send_from_guest(FRAME_LEN, 1);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	system_check_end();
}
END_TEST

/* ---- without io_uring ---- */

static unsigned warnings(void)
{
	return daemon_log_count(dut, "no io_uring");
}

START_TEST(host_without_io_uring_gets_one_warning_and_all_frames)
{
	char data[1000];

	daemon_start(dut, &(struct daemon_options){
				  .netns = &tapnet.ns,
				  .is_io_uring_denied = true,
				  .args = {"--port=tap:" TAP, "--queue-pairs=2", "--set",
					   "port.sndbuf=16384"},
			  });
	expect_eq(warnings(), 1);
	tapnet_listen(false);
	system_connect(&(struct nic_options){.n_pairs = 2});
	nic_post(&nic, 0, 64, 2048);
	nic_post(&nic, 1, 64, 2048);
	for (uint32_t i = 0; i < 100; i++) {
		wire_send_from_guest(FRAME_LEN, i);
		wire_expect(FRAME_LEN, i);
		wire_send(FRAME_LEN, i);
		wait_until(nic_poll(&nic, 0, &wire.frame) || nic_poll(&nic, 1, &wire.frame),
			   WAIT_LONG_MS);
		nic_check_frame(&wire.frame, FRAME_LEN, i);
	}
	for (uint32_t i = 0; i < 200; i++) {
		nic_make_frame(data, sizeof(data), i);
		nic_reap(&nic, 0);
		nic_queue(&nic, 0, NULL, data, sizeof(data));
	}
	driver_kick(nic_tx(&nic, 0));
	for (uint32_t i = 0; i < 200; i++)
		wire_expect(sizeof(data), i);
	netns_set_link_up(&tapnet.ns, TAP, false);
	wire_send_from_guest(FRAME_LEN, 1);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	expect_eq(daemon_counter(dut, 0, "tx_dropped"), 1);
	expect_eq(warnings(), 1);
	system_check_end();
}
END_TEST

static void add_all(TCase *tc)
{
	tapnet_add_fixture(tc);
	tcase_add_loop_test(tc, frames_go_both_ways, 0, 5);
	tcase_add_test(tc, bursts_keep_their_order_and_lose_nothing);
	tcase_add_test(tc, sender_on_another_processor_loses_nothing);
	tcase_add_test(tc, frames_wait_in_the_tap_while_the_guest_has_no_buffers);
	tcase_add_test(tc, overload_costs_no_memory_and_no_frame_that_the_tap_has_room_for);
	tcase_add_test(tc, frames_survive_stop_and_start_of_the_receive_ring);
	tcase_add_test(tc, several_queues_carry_frames);
	tcase_add_test(tc, missing_tap_is_made_and_goes_with_the_process);
	tcase_add_test(tc, tap_that_was_there_stays);
	tcase_add_test(tc, tap_is_there_again_at_once_after_the_daemon_has_gone);
	tcase_add_loop_test(tc, tap_that_cannot_be_had_is_an_error_of_one_line, 0, 4);
	tcase_add_test(tc, open_tap_can_be_handed_in);
	tcase_add_test(tc, host_without_io_uring_gets_one_warning_and_all_frames);
}

int main(void)
{
	return netns_is_possible() ? system_main("tap", add_all) : 77;
}
