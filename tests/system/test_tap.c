/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port tap: frames go both ways unharmed, through io_uring and without it, and the tap comes and
 * goes as the configuration says.
 */
#include <net/if.h>
#include <linux/if_tun.h>
#include <pthread.h>
#include <string.h>
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

		tapnet_send_from_guest(len, i);
		tapnet_expect_on_wire(len, i);
		tapnet_send_on_wire(len, i);
		nic_recv(&nic, 0, &tapnet.frame, WAIT_LONG_MS);
		nic_check_frame(&tapnet.frame, len, i);
	}
}
END_TEST

START_TEST(bursts_keep_their_order_and_lose_nothing)
{
	unsigned n = wait_repeats("frames through the tap", 5000, 100000);
	uint32_t out = 0, in = 0, to_guest = 0, at_guest = 0;
	char data[FRAME_LEN];

	tapnet_start_guest(&(struct nic_options){.size = 256});
	while (in < n || at_guest < n) {
		nic_reap(&nic, 0);
		for (int i = 0; i < 64 && out < n && nic_tx(&nic, 0)->n_free > 0 && out - in < 400;
		     i++) {
			nic_make_frame(data, sizeof(data), out++);
			nic_queue(&nic, 0, NULL, data, sizeof(data));
		}
		driver_kick(nic_tx(&nic, 0));
		for (int i = 0; i < 64 && to_guest < n && to_guest - at_guest < 400; i++)
			tapnet_send_on_wire(FRAME_LEN, to_guest++);
		while (in < out && netns_receive(tapnet.packet, tapnet.frame.data,
						 sizeof(tapnet.frame.data), 0) >= 0) {
			tapnet.frame.len = FRAME_LEN;
			nic_check_frame(&tapnet.frame, FRAME_LEN, in++);
		}
		while (nic_poll(&nic, 0, &tapnet.frame))
			nic_check_frame(&tapnet.frame, FRAME_LEN, at_guest++);
	}
	expect_eq(daemon_counter(dut, 0, "tx_packets"), n);
	expect_eq(daemon_counter(dut, 0, "rx_packets"), n);
	expect_eq(daemon_counter(dut, 0, "rx_dropped") + daemon_counter(dut, 0, "tx_dropped"), 0);
}
END_TEST

static unsigned n_sent_by_thread, n_seen, n_to_send;

static void *send_all(void *arg)
{
	(void)arg;
	while (n_sent_by_thread < n_to_send) {
		/* The tap's own queue holds 500, and drops what is too much. */
		if (n_sent_by_thread - __atomic_load_n(&n_seen, __ATOMIC_RELAXED) < 300)
			tapnet_send_on_wire(FRAME_LEN, n_sent_by_thread++);
		else
			wait_pause_us(20);
	}
	return NULL;
}

START_TEST(sender_on_another_processor_loses_nothing)
{
	pthread_t thread;

	n_to_send = wait_repeats("frames from another processor", 20000, 1000000);
	n_sent_by_thread = n_seen = 0;
	tapnet_start_guest(NULL);
	expect_eq(pthread_create(&thread, NULL, send_all, NULL), 0);
	for (uint32_t i = 0; i < n_to_send; i++) {
		nic_recv(&nic, 0, &tapnet.frame, WAIT_LONG_MS);
		nic_check_frame(&tapnet.frame, FRAME_LEN, i);
		__atomic_store_n(&n_seen, i + 1, __ATOMIC_RELAXED);
	}
	pthread_join(thread, NULL);
	expect_eq(daemon_counter(dut, 0, "rx_packets"), n_to_send);
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 0);
}
END_TEST

START_TEST(frames_wait_in_the_tap_while_the_guest_has_no_buffers)
{
	tapnet_start(NULL);
	tapnet_listen(false);
	system_connect(NULL);
	for (uint32_t i = 0; i < 300; i++)
		tapnet_send_on_wire(FRAME_LEN, i);
	nic_expect_nothing(&nic, 0);
	nic_post(&nic, 0, 64, 2048);
	for (uint32_t i = 0; i < 300; i++) {
		nic_recv(&nic, 0, &tapnet.frame, i ? WAIT_LONG_MS : WAIT_PROMPT_MS);
		nic_check_frame(&tapnet.frame, FRAME_LEN, i);
	}
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 0);
}
END_TEST

START_TEST(frames_survive_stop_and_start_of_the_receive_ring)
{
	uint32_t seq = 0, expected = 0;

	tapnet_start_guest(NULL);
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 8; i++)
			tapnet_send_on_wire(FRAME_LEN, seq++);
		frontend_get_vring_base(&nic.fe, 0);
		driver_send_setup(nic_rx(&nic, 0), &nic.fe);
		while (expected < seq) {
			nic_recv(&nic, 0, &tapnet.frame, WAIT_LONG_MS);
			nic_check_frame(&tapnet.frame, FRAME_LEN, expected++);
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
		tapnet_expect_on_wire(FRAME_LEN, i);
	}
	/* What comes from the wire is steered to some enabled queue. */
	for (unsigned disabled = 0; disabled < 3; disabled++) {
		for (uint32_t i = 0; i < 20; i++) {
			unsigned n = 0;

			tapnet_send_on_wire(FRAME_LEN, i);
			wait_until((n = nic_poll(&nic, 0, &tapnet.frame) ||
					nic_poll(&nic, 1, &tapnet.frame) ||
					nic_poll(&nic, 2, &tapnet.frame) ||
					nic_poll(&nic, 3, &tapnet.frame)) > 0,
				   WAIT_LONG_MS);
			nic_check_frame(&tapnet.frame, FRAME_LEN, i);
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
		tapnet_check_both_ways(i);
	/* Without a name there is no coming back, but no harm either. */
	netns_delete_link(&tapnet.ns, TAP);
	wait_until(daemon_log_count(dut, "deleted") == 1, WAIT_LONG_MS);
	tapnet_send_from_guest(FRAME_LEN, 1);
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
		tapnet_send_from_guest(FRAME_LEN, i);
		tapnet_expect_on_wire(FRAME_LEN, i);
		tapnet_send_on_wire(FRAME_LEN, i);
		wait_until(nic_poll(&nic, 0, &tapnet.frame) || nic_poll(&nic, 1, &tapnet.frame),
			   WAIT_LONG_MS);
		nic_check_frame(&tapnet.frame, FRAME_LEN, i);
	}
	for (uint32_t i = 0; i < 200; i++) {
		nic_make_frame(data, sizeof(data), i);
		nic_reap(&nic, 0);
		nic_queue(&nic, 0, NULL, data, sizeof(data));
	}
	driver_kick(nic_tx(&nic, 0));
	for (uint32_t i = 0; i < 200; i++)
		tapnet_expect_on_wire(sizeof(data), i);
	netns_set_link_up(&tapnet.ns, TAP, false);
	tapnet_send_from_guest(FRAME_LEN, 1);
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
