/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kicks and calls: none is lost, none is sent that nobody wants, and what the frontend hands in as
 * an eventfd may be anything.
 */
#include <endian.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/system.h"

#define FRAME_LEN    100u
#define NO_EVENT_IDX (NIC_FEATURES & ~NIC_BIT(VIRTIO_RING_F_EVENT_IDX))

static struct nic_frame frame;

static void queue_frame(uint32_t seq)
{
	char data[FRAME_LEN];

	nic_make_frame(data, sizeof(data), seq);
	nic_queue(&nic, 0, NULL, data, sizeof(data));
}

/* ---- kicks around the start ---- */

/* What happens to a ring in the order of the string: K: SET_VRING_KICK, E: enable, A: a chain is
 * made available, W: the eventfd is written. */
static const char *const start_orders[] = {
	"AKE", "KAE", "EAK", "EKA", "AEK", "AWKE", "WAEK", "KAWE", "EAWK", "WKEA", "AWEK", "EWAK",
};

static void do_start_step(char step)
{
	for (unsigned ring = 0; ring < 2; ring++) {
		struct driver_ring *r = &nic.rings[ring];

		if (step == 'K')
			driver_send_kick(r, &nic.fe);
		else if (step == 'E')
			frontend_set_vring_enable(&nic.fe, ring, true);
		else if (step == 'W')
			driver_kick_always(r);
	}
	frontend_sync(&nic.fe);
	if (step != 'A')
		return;
	nic_post(&nic, 0, 4, 2048);
	queue_frame(1);
	driver_publish(nic_tx(&nic, 0));
}

START_TEST(rings_are_looked_at_when_they_start)
{
	const char *order = start_orders[_i / 2];
	bool is_enabled_last =
		strchr(order, 'K') < strchr(order, 'E') && strchr(order, 'A') < strchr(order, 'E');

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.is_left_stopped = true,
					     .features = _i % 2 ? NO_EVENT_IDX : NIC_FEATURES});
	for (const char *step = order; *step; step++)
		do_start_step(*step);
	if (order[strlen(order) - 1] == 'A')
		driver_kick_always(nic_tx(&nic, 0));
	/* No further kick. A ring that is started and not yet enabled may discard, or wait. */
	if (is_enabled_last) {
		nic_wait_sent(&nic, 0, WAIT_PROMPT_MS);
		nic_poll(&nic, 0, &frame);
	} else {
		nic_recv(&nic, 0, &frame, WAIT_PROMPT_MS);
		nic_check_frame(&frame, FRAME_LEN, 1);
	}
	nic_ping(&nic, 0, FRAME_LEN, 2);
}
END_TEST

START_TEST(frames_that_wait_at_a_restart_need_no_kick)
{
	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 16, 2048);
	for (uint32_t i = 0; i < 50; i++) {
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
		frontend_get_vring_base(&nic.fe, 1);
		queue_frame(i);
		driver_publish(nic_tx(&nic, 0));
		driver_send_setup(nic_tx(&nic, 0), &nic.fe);
		nic_recv(&nic, 0, &frame, WAIT_PROMPT_MS);
		nic_check_frame(&frame, FRAME_LEN, i);
	}
}
END_TEST

/* ---- calls ---- */

/* Send `n` frames to a port that swallows them, in one burst; wait until they are back, and a
 * little for a call that may follow. Return: calls. */
static uint64_t calls_for(unsigned n)
{
	struct driver_ring *r = nic_tx(&nic, 0);

	driver_take_calls(r);
	for (unsigned i = 0; i < n; i++)
		queue_frame(i);
	driver_kick(r);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	frontend_sync(&nic.fe);
	wait_pause_us(1000);
	return driver_take_calls(r);
}

static void start_null(uint64_t features, uint16_t base)
{
	system_start("--port=null");
	system_connect(&(struct nic_options){.features = features, .base = base});
}

START_TEST(first_completions_after_a_start_are_always_called)
{
	start_null(NIC_FEATURES, 100);
	for (int i = 0; i < 3; i++) {
		driver_set_used_event(nic_tx(&nic, 0), (uint16_t)(nic_tx(&nic, 0)->last_used + 99));
		expect_ge(calls_for(1), 1);
		expect_eq(calls_for(1), 0);
		frontend_get_vring_base(&nic.fe, 1);
		driver_send_setup(nic_tx(&nic, 0), &nic.fe);
	}
}
END_TEST

START_TEST(call_comes_exactly_when_used_event_is_passed)
{
	struct driver_ring *r = nic_tx(&nic, 0);
	unsigned seed = 1;

	start_null(NIC_FEATURES, 65400);
	expect_ge(calls_for(1), 1);
	for (int i = 0; i < 300; i++) {
		seed = seed * 1103515245 + 12345;

		unsigned n = 1 + seed / 65536 % 20, ahead = seed / 256 % 24;
		uint16_t event = (uint16_t)(r->last_used + ahead);
		uint64_t calls;

		driver_set_used_event(r, event);
		calls = calls_for(n);
		/* It lies in (old, new] when counted in heads: old <= event < new. */
		expect_msg(calls == (ahead < n), "%u heads from %u, used_event %u: %llu calls", n,
			   (uint16_t)(r->last_used - n), event, (unsigned long long)calls);
	}
}
END_TEST

START_TEST(no_interrupt_flag_is_obeyed)
{
	start_null(NO_EVENT_IDX, 65500);
	for (int i = 0; i < 50; i++) {
		expect_ge(calls_for(1 + (unsigned)i % 5), 1);
		driver_calls_off(nic_tx(&nic, 0));
		expect_eq(calls_for(1 + (unsigned)i % 5), 0);
		driver_calls_on(nic_tx(&nic, 0));
	}
	expect_gt(daemon_counter(dut, 0, "calls"), 0);
	expect_gt(daemon_counter(dut, 0, "calls_suppressed"), 0);
}
END_TEST

START_TEST(each_burst_is_called_without_coalescing)
{
	start_null(NO_EVENT_IDX, 0);
	for (int i = 0; i < 20; i++)
		expect_eq(calls_for(64), 1);
}
END_TEST

START_TEST(dropped_heads_are_called_too)
{
	struct driver_ring *r = nic_tx(&nic, 0);
	struct driver_used u;

	start_null(NIC_FEATURES, 0);
	expect_ge(calls_for(1), 1);
	for (int i = 0; i < 10; i++) {
		/* Shorter than a header. */
		struct driver_seg seg = {guest_alloc(&nic.guest, 8, 8), 5, false};

		driver_calls_on(r);
		driver_add(r, &seg, 1, 0);
		driver_kick(r);
		expect(driver_wait_call(r, WAIT_PROMPT_MS));
		driver_wait(r, &u, WAIT_LONG_MS);
		expect_eq(u.len, 0);
	}
	expect_eq(daemon_counter(dut, 0, "tx_malformed"), 10);
}
END_TEST

START_TEST(notify_on_empty_calls_when_the_ring_is_worked_off)
{
	start_null(NO_EVENT_IDX | NIC_BIT(VIRTIO_F_NOTIFY_ON_EMPTY), 0);
	driver_calls_off(nic_tx(&nic, 0));
	for (int i = 0; i < 10; i++)
		expect_eq(calls_for(3), 1);
}
END_TEST

/* ---- event words ---- */

START_TEST(event_words_are_left_alone_when_not_negotiated)
{
	uint16_t *avail_event;

	start_null(NO_EVENT_IDX, 0);
	avail_event = (uint16_t *)(void *)&nic_tx(&nic, 0)->used->ring[256];
	*avail_event = 0xabcd;
	for (int i = 0; i < 20; i++)
		calls_for(3);
	expect_eq(*avail_event, 0xabcd);
}
END_TEST

/* Put avail or used so that its event word is the first thing behind the guest's memory. */
static void move_ring_to_the_end(struct driver_ring *r, bool is_avail, uint64_t features)
{
	uint64_t end = guest_edge(&nic.guest, 1);
	uint64_t desc = guest_alloc(&nic.guest, driver_desc_len(256), 16);
	uint64_t other = guest_alloc(&nic.guest, 4096, 4);
	/* The used ring must be 4-byte aligned: its last element ends at the end. */
	uint64_t at = is_avail ? end - driver_avail_len(256) + 2 : end - driver_used_len(256) + 2;

	driver_fini(r);
	driver_init_at(r, &nic.guest, 1, 256, 0, features & ~NIC_BIT(VIRTIO_RING_F_EVENT_IDX), desc,
		       is_avail ? at : other, is_avail ? other : at);
}

START_TEST(event_words_must_be_mapped_only_when_negotiated)
{
	bool has_event_idx = _i / 2;
	uint64_t features = has_event_idx ? NIC_FEATURES : NO_EVENT_IDX;
	struct vhost_user_vring_addr addr = {.index = 1};
	struct driver_ring *r = nic_tx(&nic, 0);
	struct guest_layout layout = {.region_size = 1 << 20};
	uint64_t acks, value = 1;

	system_start("--port=null");
	/* A spare page behind the memory that is told of keeps the driver itself from faulting. */
	layout.n_regions = 3;
	system_connect(&(struct nic_options){.features = features,
					     .wants_acks = true,
					     .is_left_stopped = true,
					     .layout = &layout});
	nic.guest.n_regions = 2;
	frontend_set_mem_table(&nic.fe, &nic.guest);
	move_ring_to_the_end(r, _i % 2, features);
	driver_send_num(r, &nic.fe);
	addr.desc_uva = guest_uva(&nic.guest, r->desc_gpa);
	addr.avail_uva = guest_uva(&nic.guest, r->avail_gpa);
	addr.used_uva = guest_uva(&nic.guest, r->used_gpa);
	acks = frontend_ack(&nic.fe, VHOST_USER_SET_VRING_ADDR, &addr, sizeof(addr), NULL, 0);
	acks |= frontend_ack(&nic.fe, VHOST_USER_SET_VRING_KICK, &value, 8, &r->kick_fd, 1);
	expect_eq(acks != 0, has_event_idx);
	if (!has_event_idx) {
		frontend_set_vring_enable(&nic.fe, 1, true);
		queue_frame(1);
		driver_kick(r);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	}
	nic.guest.n_regions = 3;
}
END_TEST

/* ---- waiting for receive buffers ---- */

static void expect_kicks_are_wanted(struct driver_ring *r)
{
	wait_until(driver_kick_is_wanted(r), WAIT_LONG_MS);
}

START_TEST(refill_and_one_kick_deliver_what_waited)
{
	struct driver_ring *r = nic_rx(&nic, 0);
	unsigned n_wanted = 0;
	struct driver_used u;

	system_start("--port=loopback");
	system_connect(
		&(struct nic_options){.features = _i ? NO_EVENT_IDX : NIC_FEATURES, .base = 65530});
	for (uint32_t i = 0; i < 50; i++) {
		struct driver_seg seg = {guest_alloc(&nic.guest, 2048, 4), 2048, true};

		queue_frame(i);
		driver_kick(nic_tx(&nic, 0));
		wait_pause_us(1000);
		expect_kicks_are_wanted(r);
		driver_add(r, &seg, 1, seg.gpa);
		/* Now and then the worker is only about to see the frame, and looks by itself. */
		n_wanted += driver_kick(r);
		driver_wait_n(r, 1, WAIT_PROMPT_MS);
		expect(driver_take(r, &u));
		expect_eq(u.len, nic.hdr_len + FRAME_LEN);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	}
	expect_ge(n_wanted, 25);
}
END_TEST

START_TEST(refill_for_a_large_merged_frame_is_waited_for)
{
	struct driver_ring *r = nic_rx(&nic, 0);
	static char data[5000];

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.features = _i ? NO_EVENT_IDX : NIC_FEATURES,
					     .tx_buf_len = 8192});
	nic_make_frame(data, sizeof(data), 7);
	/* Four buffers of 1 KiB are too few for the frame; it stays whole. */
	nic_post(&nic, 0, 4, 1024);
	nic_send(&nic, 0, data, sizeof(data));
	nic_expect_nothing(&nic, 0);
	expect_kicks_are_wanted(r);
	nic.rx_buf_len[0] = 1024;
	struct driver_seg seg = {guest_alloc(&nic.guest, 1024, 4), 1024, true};
	driver_add(r, &seg, 1, seg.gpa);
	expect(driver_kick(r));
	nic_recv(&nic, 0, &frame, WAIT_PROMPT_MS);
	nic_check_frame(&frame, sizeof(data), 7);
	expect_eq(frame.n_buffers, 5);
	expect_gt(daemon_counter(dut, 0, "rx_no_buffer"), 0);
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 0);
}
END_TEST

START_TEST(wait_for_buffers_is_counted)
{
	system_start("--port=loopback");
	system_connect(NULL);
	queue_frame(1);
	driver_kick(nic_tx(&nic, 0));
	wait_until(daemon_counter(dut, 0, "rx_no_buffer") > 0, WAIT_PROMPT_MS);
}
END_TEST

/* ---- the races ---- */

/* Sleep until frames are there, as a driver's interrupt handler does. */
static void wait_by_interrupt(struct driver_ring *r, unsigned round)
{
	while (!driver_calls_on(r))
		expect_msg(driver_wait_call(r, 1000), "round %u: ring %u: no call; used: %u", round,
			   r->index, driver_n_used(r));
}

START_TEST(no_notification_is_lost_in_request_and_response)
{
	static const uint32_t sizes[] = {2, 4, 4, 2};
	bool has_event_idx = _i < 2;
	unsigned n = wait_repeats("requests and responses", 20000, 1000000);
	struct driver_used u;

	system_start("--port=loopback");
	system_connect(&(struct nic_options){
		.size = sizes[_i], .features = has_event_idx ? NIC_FEATURES : NO_EVENT_IDX});
	nic_post(&nic, 0, sizes[_i], 256);
	for (uint32_t i = 0; i < n; i++) {
		queue_frame(i);
		driver_kick(nic_tx(&nic, 0));
		wait_by_interrupt(nic_rx(&nic, 0), i);
		expect(nic_poll(&nic, 0, &frame));
		expect_eq(nic_frame_seq(&frame), i);
		wait_by_interrupt(nic_tx(&nic, 0), i);
		expect(driver_take(nic_tx(&nic, 0), &u));
		nic.tx_bufs[0][nic.n_tx_bufs[0]++] = u.chain->cookie;
	}
}
END_TEST

/* ---- fds that are no proper eventfds ---- */

static int make_full_eventfd(int flags)
{
	int fd = eventfd(0, EFD_CLOEXEC | flags);
	uint64_t most = UINT64_MAX - 1;

	expect_ge(fd, 0);
	expect_eq(write(fd, &most, sizeof(most)), sizeof(most));
	return fd;
}

static int make_full_pipe(int *other)
{
	char block[4096] = {0};
	int fds[2];

	expect_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(fds[1], block, sizeof(block)) > 0)
		;
	expect_eq(fcntl(fds[1], F_SETFL, 0), 0);
	*other = fds[0];
	return fds[1];
}

#define KIND_SEMAPHORE 2

static int make_odd_fd(int kind, int *other)
{
	int fds[2];

	*other = -1;
	switch (kind) {
	case 0:
		return make_full_eventfd(0);
	case 1:
		return make_full_eventfd(EFD_NONBLOCK);
	case KIND_SEMAPHORE:
		return make_full_eventfd(EFD_SEMAPHORE);
	case 3:
		return make_full_pipe(other);
	case 4:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 5:
		return open("/dev/zero", O_RDWR | O_CLOEXEC);
	case 6:
		return memfd_create("file", MFD_CLOEXEC);
	case 7:
		return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case 8:
		expect_eq(pipe2(fds, O_CLOEXEC), 0);
		close(fds[1]); /* the read end, at its end */
		return fds[0];
	default:
		expect_eq(pipe2(fds, O_CLOEXEC), 0);
		close(fds[0]); /* the write end of a broken pipe */
		return fds[1];
	}
}

#define N_ODD_FDS 10

/* Whatever became of the odd fd, the daemon works and does not burn the processor. */
static void check_daemon_is_calm(void)
{
	uint64_t before;

	nic_close(&nic);
	wait_pause_us(20000);
	system_check_service();
	before = daemon_cpu_ms(dut);
	wait_pause_us(200000);
	expect_le(daemon_cpu_ms(dut) - before, wait_scaled_ms(50));
}

START_TEST(odd_call_fds_never_block_a_worker)
{
	int other, fd = make_odd_fd(_i, &other);

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.features = NO_EVENT_IDX});
	nic_post(&nic, 0, 8, 2048);
	for (unsigned ring = 0; ring < 2; ring++) {
		uint64_t value = ring;

		/* Refusing it is fine; hanging is not. */
		frontend_ack(&nic.fe, VHOST_USER_SET_VRING_CALL, &value, 8, &fd, 1);
		frontend_ack(&nic.fe, VHOST_USER_SET_VRING_ERR, &value, 8, &fd, 1);
	}
	for (uint32_t i = 0; i < 5; i++)
		nic_ping(&nic, 0, FRAME_LEN, i);
	/* Break the transmit ring: the err fd is written. */
	nic_tx(&nic, 0)->avail->idx = htole16((uint16_t)(nic_tx(&nic, 0)->avail_idx + 1000));
	driver_kick_always(nic_tx(&nic, 0));
	wait_until(daemon_log_count(dut, "q0.tx") == 1, WAIT_LONG_MS);
	expect_eq(frontend_get_vring_base(&nic.fe, 0), 5);
	check_daemon_is_calm();
	close(fd);
	if (other >= 0)
		close(other);
}
END_TEST

START_TEST(fds_that_are_made_blocking_later_never_block_a_worker)
{
	const uint64_t most = UINT64_MAX - 1;

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.features = NO_EVENT_IDX});
	nic_post(&nic, 0, 8, 2048);
	/* The flag is one of the open file, which the frontend has as well. */
	for (unsigned ring = 0; ring < 2; ring++) {
		struct driver_ring *r = &nic.rings[ring];

		driver_take_calls(r);
		expect_eq(write(r->call_fd, &most, sizeof(most)), sizeof(most));
		expect_eq(fcntl(r->call_fd, F_SETFL, 0), 0);
		expect_eq(fcntl(r->kick_fd, F_SETFL, 0), 0);
	}
	for (uint32_t i = 0; i < 5; i++)
		nic_ping(&nic, 0, FRAME_LEN, i);
	expect_eq(frontend_get_vring_base(&nic.fe, 0), 5);
	check_daemon_is_calm();
	system_check_end();
}
END_TEST

START_TEST(odd_kick_fds_never_block_or_spin_a_worker)
{
	int other, fd = make_odd_fd(_i, &other);
	uint64_t before;

	system_start("--port=loopback");
	system_connect(NULL);
	for (unsigned ring = 0; ring < 2; ring++) {
		uint64_t value = ring;

		frontend_ack(&nic.fe, VHOST_USER_SET_VRING_KICK, &value, 8, &fd, 1);
	}
	before = daemon_cpu_ms(dut);
	wait_pause_us(300000);
	/* A full semaphore is a kick without end: that is its owner's will. */
	if (_i != KIND_SEMAPHORE)
		expect_le(daemon_cpu_ms(dut) - before, wait_scaled_ms(60));
	frontend_get_vring_base(&nic.fe, 0);
	frontend_get_vring_base(&nic.fe, 1);
	check_daemon_is_calm();
	close(fd);
	if (other >= 0)
		close(other);
}
END_TEST

static void add_rings(TCase *tc)
{
	tcase_add_loop_test(tc, rings_are_looked_at_when_they_start, 0, 24);
	tcase_add_test(tc, frames_that_wait_at_a_restart_need_no_kick);
	tcase_add_test(tc, first_completions_after_a_start_are_always_called);
	tcase_add_test(tc, call_comes_exactly_when_used_event_is_passed);
	tcase_add_test(tc, no_interrupt_flag_is_obeyed);
	tcase_add_test(tc, each_burst_is_called_without_coalescing);
	tcase_add_test(tc, dropped_heads_are_called_too);
	tcase_add_test(tc, notify_on_empty_calls_when_the_ring_is_worked_off);
	tcase_add_loop_test(tc, refill_and_one_kick_deliver_what_waited, 0, 2);
	tcase_add_loop_test(tc, refill_for_a_large_merged_frame_is_waited_for, 0, 2);
	tcase_add_test(tc, wait_for_buffers_is_counted);
	tcase_add_loop_test(tc, no_notification_is_lost_in_request_and_response, 0, 4);
}

static void add_others(TCase *tc)
{
	tcase_add_test(tc, event_words_are_left_alone_when_not_negotiated);
	tcase_add_loop_test(tc, event_words_must_be_mapped_only_when_negotiated, 0, 4);
	tcase_add_loop_test(tc, odd_call_fds_never_block_a_worker, 0, N_ODD_FDS);
	tcase_add_test(tc, fds_that_are_made_blocking_later_never_block_a_worker);
	tcase_add_loop_test(tc, odd_kick_fds_never_block_or_spin_a_worker, 0, N_ODD_FDS);
}

int main(void)
{
	return system_main_rings("notify", add_rings, add_others);
}
