/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/queue.h"

#include <check.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_config.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/timer.h"
#include "support/fds.h"
#include "support/ring.h"
#include "support/suite.h"

static struct ring_guest guest;
static struct ring ring;
static struct queue q;
static struct queue_stats stats;
static struct log_capture lines;

static void setup(void)
{
	signal(SIGPIPE, SIG_IGN); /* as main() does */
	ring_guest_init(&guest, 0);
	ring = (struct ring){0};
	q = (struct queue){0};
	stats = (struct queue_stats){0};
	log_capture_start(&lines);
	queue_init(&q, VIRTQ_DEVICE_READS, "q3.tx", &stats);
}

static void teardown(void)
{
	queue_stop(&q);
	queue_fini(&q);
	ring_fini(&ring);
	ring_guest_fini(&guest);
	log_capture_stop(&lines);
}

static void start_queue(void)
{
	struct virtq_setup s = ring_setup(&ring);

	expect_eq(queue_start(&q, &s), 0);
}

/* Make a ring of shape `i`, give its call fd to the queue, start, and forget the start's call. */
static void start(int i)
{
	struct ring_shape shape = ring_shape(i);

	ring_init(&ring, &guest, &shape, 0);
	queue_set_call_fd(&q, dup(ring.drv.call_fd));
	start_queue();
	driver_take_calls(&ring.drv);
	stats = (struct queue_stats){0};
}

static void coalesce(uint32_t usecs, uint32_t frames)
{
	struct moder_params params = {.usecs = usecs, .frames = frames};

	moder_set(&q.moder, &params);
}

/* Offer `n` heads and complete them. */
static void complete(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ring_offer_one(&ring, 60, false);
	driver_publish(&ring.drv);
	expect_eq(virtq_pop(&q.vq, n), n);
	for (unsigned i = 0; i < n; i++)
		virtq_complete(&q.vq, 0);
}

static void pass(unsigned n)
{
	struct driver_used u;

	complete(n);
	queue_publish(&q);
	while (n-- > 0)
		expect(driver_take(&ring.drv, &u));
	expect(!driver_take(&ring.drv, &u));
}

static uint64_t counter(enum queue_counter which)
{
	return stat_read(&stats, which);
}

static uint64_t take_calls(void)
{
	return driver_take_calls(&ring.drv);
}

/* Whether the other end of an eventfd was written, or is closed with the last of its fds. */
static bool was_written(int fd)
{
	uint64_t n;

	return read(fd, &n, sizeof(n)) == sizeof(n);
}

static int make_eventfd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	expect_ge(fd, 0);
	return fd;
}

/* ---- calls ---- */

START_TEST(without_coalescing_each_publish_calls_once)
{
	start(_i);
	for (unsigned i = 1; i <= 20; i++) {
		driver_calls_on(&ring.drv);
		pass(1 + i % 2);
		expect_eq(take_calls(), 1);
		expect_eq(counter(STAT_calls), i);
		expect_eq(counter(STAT_used_publishes), i);
	}
	queue_publish(&q);
	expect_eq(take_calls(), 0);
	expect_eq(counter(STAT_used_publishes), 20);
	expect_eq(counter(STAT_calls_suppressed), 0);
}
END_TEST

START_TEST(a_guest_that_wants_no_call_gets_none)
{
	start(_i);
	pass(1);
	take_calls();
	for (unsigned i = 1; i <= 20; i++) {
		driver_calls_off(&ring.drv);
		pass(1);
		expect_eq(take_calls(), 0);
		expect_eq(counter(STAT_calls_suppressed), i);
	}
	expect_eq(counter(STAT_calls), 1);
	driver_calls_on(&ring.drv);
	pass(1);
	expect_eq(take_calls(), 1);
}
END_TEST

START_TEST(with_coalescing_the_call_comes_at_the_deadline)
{
	uint64_t deadline;

	start(_i);
	coalesce(10000, 1000);
	for (unsigned i = 1; i <= 5; i++) {
		driver_calls_on(&ring.drv);
		pass(1);
		deadline = q.moder.deadline_ns;
		expect_le(deadline, clock_now_ns() + 10000 * NS_PER_US);
		pass(2);
		expect_eq(q.moder.deadline_ns, deadline);
		expect(!queue_call_if_due(&q, deadline - 1));
		expect_eq(take_calls(), 0);
		expect(queue_call_if_due(&q, deadline));
		expect_eq(take_calls(), 1);
		expect(!queue_call_if_due(&q, UINT64_MAX));
		expect(!queue_call_pending(&q));
		expect_eq(take_calls(), 0);
		expect_eq(counter(STAT_calls), i);
		expect_eq(counter(STAT_calls_timer), i);
		expect_eq(counter(STAT_calls_coalesced), 2 * i);
	}
}
END_TEST

/* Bursts of F - 1, F, F + 1 and 2 F + 1: a call at F, and nothing is left behind. */
START_TEST(the_number_of_frames_calls_before_the_deadline)
{
	static const unsigned bursts[] = {15, 16, 17, 33};

	start(_i | 16); /* a ring of 256 */
	coalesce(10000, 16);
	for (unsigned i = 0; i < array_size(bursts); i++) {
		unsigned n_calls = 0;

		driver_calls_on(&ring.drv);
		for (unsigned k = 0; k < bursts[i]; k++) {
			pass(1);
			if (take_calls() == 1) {
				n_calls++;
				expect_eq((k + 1) % 16, 0);
				driver_calls_on(&ring.drv);
			}
		}
		expect_eq(n_calls, bursts[i] / 16);
		expect_eq(queue_call_pending(&q), bursts[i] % 16 != 0);
		expect_eq(take_calls(), bursts[i] % 16 != 0);
	}
}
END_TEST

START_TEST(a_call_that_was_put_off_is_not_sent_to_a_guest_that_looks_by_itself)
{
	start(_i);
	pass(1);
	take_calls();
	coalesce(100, 1000);
	driver_calls_on(&ring.drv);
	pass(1);
	expect_eq(counter(STAT_calls_coalesced), 1);
	driver_calls_off(&ring.drv);
	driver_set_used_event(&ring.drv, (uint16_t)(ring.drv.last_used + 1));
	expect(!queue_call_if_due(&q, UINT64_MAX));
	expect_eq(take_calls(), 0);
	expect_eq(q.moder.n_pending, 0);
	expect_eq(counter(STAT_calls_timer), 0);
	/* And what comes then is a new matter. */
	driver_calls_on(&ring.drv);
	pass(1);
	expect(queue_call_if_due(&q, UINT64_MAX));
	expect_eq(take_calls(), 1);
}
END_TEST

START_TEST(switched_off_coalescing_releases_what_was_put_off)
{
	start(_i);
	coalesce(10000, 1000);
	driver_calls_on(&ring.drv);
	pass(1);
	coalesce(0, 0);
	expect(queue_call_if_due(&q, clock_now_ns()));
	expect_eq(take_calls(), 1);
}
END_TEST

/* ---- nothing is lost when something changes ---- */

static void put_off_a_call(int i)
{
	start(i);
	coalesce(10000, 1000);
	driver_calls_on(&ring.drv);
	pass(1);
	expect_eq(take_calls(), 0);
}

START_TEST(a_pending_call_goes_to_the_new_fd_and_the_old_one_is_closed)
{
	int new_fd = make_eventfd();
	unsigned n_fds = fds_count();

	put_off_a_call(_i);
	n_fds = fds_count();
	queue_set_call_fd(&q, dup(new_fd));
	expect_eq(fds_count(), n_fds);
	expect(was_written(new_fd));
	expect_eq(take_calls(), 0);
	driver_calls_on(&ring.drv);
	pass(1);
	expect(queue_call_pending(&q));
	expect(was_written(new_fd));
	expect_eq(take_calls(), 0);
	close(new_fd);
}
END_TEST

/* KICK comes before CALL in QEMU when a stopped guest goes on. */
START_TEST(a_call_that_finds_no_fd_goes_to_the_one_that_comes)
{
	start(_i);
	coalesce(_i % 3 == 0 ? 100 : 0, _i % 3 == 0 ? 1000 : 0);
	queue_set_call_fd(&q, -1);
	driver_calls_on(&ring.drv);
	pass(1);
	queue_call_pending(&q);
	expect_eq(counter(STAT_calls), 0);
	queue_set_call_fd(&q, dup(ring.drv.call_fd));
	expect_ge(take_calls(), 1);
	expect_ge(counter(STAT_calls), 1);
}
END_TEST

START_TEST(a_pending_call_survives_that_the_fd_is_taken_away)
{
	put_off_a_call(_i);
	queue_set_call_fd(&q, -1);
	queue_set_call_fd(&q, dup(ring.drv.call_fd));
	expect_ge(take_calls(), 1);
}
END_TEST

START_TEST(stop_publishes_and_calls_first)
{
	put_off_a_call(_i);
	complete(1);
	expect_eq(queue_stop(&q), driver_base(&ring.drv));
	expect_eq(driver_n_used(&ring.drv), 1);
	expect_eq(take_calls(), 1);
	expect_eq(queue_stop(&q), driver_base(&ring.drv));
	expect_eq(take_calls(), 0);
	expect(!queue_call_if_due(&q, UINT64_MAX));
}
END_TEST

START_TEST(a_new_translation_publishes_and_calls_first)
{
	put_off_a_call(_i);
	complete(1);
	start_queue();
	expect_eq(driver_n_used(&ring.drv), 1);
	expect_ge(take_calls(), 1);
	expect_eq(q.moder.n_pending, 0);
}
END_TEST

/* A daemon before this one may have died between a used index and its call. */
START_TEST(a_start_calls_in_case_that_the_last_call_was_lost)
{
	struct ring_shape shape = ring_shape(_i & ~RING_SHAPE_AT_ZERO);

	ring_init(&ring, &guest, &shape, 0);
	expect_ne(shape.base, 0);
	queue_set_call_fd(&q, dup(ring.drv.call_fd));
	start_queue();
	expect_eq(take_calls(), 1);
	/* The fd may also come later. */
	queue_stop(&q);
	queue_set_call_fd(&q, -1);
	start_queue();
	queue_set_call_fd(&q, dup(ring.drv.call_fd));
	expect_eq(take_calls(), 1);
}
END_TEST

START_TEST(a_position_that_the_frontend_does_not_know_is_logged)
{
	struct virtq_setup s;

	start(_i);
	pass(2);
	queue_stop(&q);
	s = ring_setup(&ring);
	s.base = driver_base(&ring.drv);
	expect_eq(queue_start(&q, &s), 0);
	expect_eq(log_capture_count(&lines, "resuming"), 0);
	queue_stop(&q);
	s.base = ring.drv.first_base;
	expect_eq(queue_start(&q, &s), 0);
	expect_eq(log_capture_count(&lines, "q3.tx: resuming"), 1);
	pass(2);
}
END_TEST

START_TEST(a_ring_that_cannot_start_is_one_line_and_nothing_is_kept)
{
	struct ring_shape shape = ring_shape(_i);
	struct virtq_setup s;

	ring_init(&ring, &guest, &shape, 0);
	s = ring_setup(&ring);
	s.used.v = 0x1000;
	expect_eq(queue_start(&q, &s), -EFAULT);
	expect_eq(log_capture_count(&lines, "\n"), 1);
	expect_eq(log_capture_count(&lines, "q3.tx: "), 1);
	expect_eq(guest.mem->refs, 1);
	queue_publish(&q);
	expect(!queue_call_pending(&q));
}
END_TEST

START_TEST(the_header_follows_the_features_of_the_start)
{
	struct ring_shape shape = ring_shape(16);

	ring_init(&ring, &guest, &shape, 0);
	start_queue();
	expect_eq(q.hdr_len, 10);
	ring.features |= BIT_ULL(VIRTIO_F_VERSION_1);
	start_queue();
	expect_eq(q.hdr_len, 12);
}
END_TEST

/* ---- fds of any kind ---- */

/* Publish often: a call that blocks would end in the test's timeout. */
static void call_often(int fd)
{
	start(16);
	queue_set_call_fd(&q, fd);
	for (unsigned i = 0; i < 100; i++) {
		driver_calls_on(&ring.drv);
		pass(1);
	}
	expect_eq(counter(STAT_used_publishes), 100);
}

START_TEST(a_full_call_fd_never_blocks)
{
	const uint64_t full = UINT64_MAX - 1;
	int fd = eventfd(0, EFD_CLOEXEC);

	expect_eq(write(fd, &full, sizeof(full)), sizeof(full));
	call_often(dup(fd));
	expect(fds_is_nonblocking(fd));
	/* Its owner can take that back at any time. */
	expect_eq(fcntl(fd, F_SETFL, 0), 0);
	driver_calls_on(&ring.drv);
	pass(1);
	close(fd);
}
END_TEST

START_TEST(a_call_fd_that_is_no_eventfd_never_blocks)
{
	char zeros[65536] = {0};
	int fds[2];

	expect_eq(pipe2(fds, O_CLOEXEC), 0);
	expect_eq(write(fds[1], zeros, sizeof(zeros)), sizeof(zeros));
	call_often(fds[1]);
	close(fds[0]);
}
END_TEST

START_TEST(a_call_fd_whose_other_end_is_closed_is_no_matter)
{
	int fds[2];

	expect_eq(pipe2(fds, O_CLOEXEC), 0);
	close(fds[0]);
	call_often(fds[1]);
}
END_TEST

START_TEST(a_call_fd_that_cannot_be_written_is_no_matter)
{
	call_often(open("/dev/null", O_RDONLY | O_CLOEXEC));
}
END_TEST

static void expect_kick_refused(int fd)
{
	int good = make_eventfd();
	unsigned n_fds;

	expect_ge(fd, 0);
	expect_eq(queue_set_kick_fd(&q, good), 0);
	n_fds = fds_count();
	expect_eq(queue_set_kick_fd(&q, fd), -EPERM);
	expect_eq(fds_count(), n_fds - 1);
	expect_eq(log_capture_count(&lines, "q3.tx: the kick fd"), 1);
	expect_eq(log_capture_count(&lines, "\n"), 1);
	/* The one that works stays: without any, the worker would have to look all the time. */
	expect_eq(q.kick_fd, good);
}

START_TEST(a_kick_fd_that_cannot_be_waited_for_is_refused_and_the_old_one_stays)
{
	if (_i == 0)
		expect_kick_refused(open("/dev/null", O_RDWR | O_CLOEXEC));
	else
		expect_kick_refused(memfd_create("kick", MFD_CLOEXEC));
}
END_TEST

START_TEST(a_kick_fd_is_replaced_and_taken_away)
{
	unsigned n_fds = fds_count();
	int fd = eventfd(0, EFD_CLOEXEC);

	expect_eq(queue_set_kick_fd(&q, fd), 0);
	expect(fds_is_nonblocking(fd));
	expect_eq(queue_set_kick_fd(&q, make_eventfd()), 0);
	expect_eq(fds_count(), n_fds + 1);
	expect_eq(queue_set_kick_fd(&q, -1), 0);
	expect_eq(q.kick_fd, -1);
	expect_eq(fds_count(), n_fds);
}
END_TEST

START_TEST(kicks_are_read_until_there_are_none)
{
	const uint64_t three = 3;
	int fd = make_eventfd();

	expect_eq(queue_set_kick_fd(&q, fd), 0);
	expect_eq(queue_drain_kick(&q), 0);
	expect_eq(counter(STAT_kicks), 0);
	expect_eq(write(fd, &three, sizeof(three)), sizeof(three));
	expect_eq(queue_drain_kick(&q), 0);
	expect_eq(counter(STAT_kicks), 1);
	expect(!was_written(fd));
	expect_eq(queue_drain_kick(&q), 0);
	expect_eq(counter(STAT_kicks), 1);
}
END_TEST

START_TEST(a_kick_fd_at_its_end_must_not_be_waited_for)
{
	int fds[2];

	expect_eq(pipe2(fds, O_CLOEXEC), 0);
	expect_eq(queue_set_kick_fd(&q, fds[0]), 0);
	expect_eq(queue_drain_kick(&q), 0);
	expect_eq(write(fds[1], "kick", 4), 4);
	expect_eq(queue_drain_kick(&q), -ENOTSUP);
	close(fds[1]);
	expect_eq(queue_drain_kick(&q), -ENOTSUP);
	expect_eq(counter(STAT_kicks), 0);
}
END_TEST

/* Such an fd is never readable and always active: waiting for it would have a worker spin. */
START_TEST(a_kick_fd_that_knows_errors_only_must_not_be_waited_for)
{
	int fds[2];

	expect_eq(pipe2(fds, O_CLOEXEC), 0);
	close(fds[0]);
	expect_eq(queue_set_kick_fd(&q, fds[1]), 0);
	expect_eq(queue_drain_kick(&q), -ENOTSUP);
}
END_TEST

START_TEST(a_kick_fd_that_its_owner_makes_blocking_never_blocks)
{
	int fd = make_eventfd();

	expect_eq(queue_set_kick_fd(&q, fd), 0);
	expect_eq(fcntl(fd, F_SETFL, 0), 0);
	expect_eq(queue_drain_kick(&q), 0);
	expect_eq(counter(STAT_kicks), 0);
}
END_TEST

START_TEST(fini_closes_all_and_once)
{
	unsigned n_fds = fds_count();

	queue_set_call_fd(&q, make_eventfd());
	queue_set_err_fd(&q, make_eventfd());
	queue_set_err_fd(&q, make_eventfd());
	expect_eq(queue_set_kick_fd(&q, make_eventfd()), 0);
	expect_eq(fds_count(), n_fds + 3);
	queue_fini(&q);
	queue_fini(&q);
	expect_eq(fds_count(), n_fds);
}
END_TEST

/* ---- broken rings ---- */

static void break_ring(void)
{
	driver_ruin(&ring.drv);
	expect_eq(virtq_pop(&q.vq, 1), 0);
}

START_TEST(a_broken_ring_is_reported_once)
{
	start(_i);
	queue_set_err_fd(&q, dup(ring.drv.err_fd));
	queue_report_broken(&q);
	expect_eq(driver_take_errs(&ring.drv), 0);
	for (unsigned i = 1; i <= 2; i++) {
		break_ring();
		queue_report_broken(&q);
		queue_report_broken(&q);
		expect_eq(driver_take_errs(&ring.drv), 1);
		expect_eq(counter(STAT_ring_errors), i);
		expect_eq(log_capture_count(&lines, "q3.tx: ring broken"), i);
		expect_eq(log_capture_count(&lines, q.vq.broken_why), i);
		/* Set up again, it works, and may break again. */
		queue_stop(&q);
		driver_mend(&ring.drv);
		start_queue();
		pass(1);
	}
}
END_TEST

START_TEST(a_ring_may_break_without_an_err_fd)
{
	start(_i);
	break_ring();
	queue_report_broken(&q);
	expect_eq(log_capture_count(&lines, "q3.tx: ring broken"), 1);
}
END_TEST

START_TEST(a_broken_ring_leaves_nothing_to_wait_for)
{
	put_off_a_call(_i);
	break_ring();
	queue_report_broken(&q);
	expect_eq(q.moder.n_pending, 0);
	expect(!queue_call_if_due(&q, UINT64_MAX));
}
END_TEST

static void add_calls(TCase *tc)
{
	add_for_small_shapes(tc, without_coalescing_each_publish_calls_once);
	add_for_small_shapes(tc, a_guest_that_wants_no_call_gets_none);
	add_for_small_shapes(tc, with_coalescing_the_call_comes_at_the_deadline);
	tcase_add_loop_test(tc, the_number_of_frames_calls_before_the_deadline, 0, 8);
	add_for_small_shapes(tc,
			     a_call_that_was_put_off_is_not_sent_to_a_guest_that_looks_by_itself);
	add_for_small_shapes(tc, switched_off_coalescing_releases_what_was_put_off);
}

static void add_changes(TCase *tc)
{
	add_for_small_shapes(tc, a_pending_call_goes_to_the_new_fd_and_the_old_one_is_closed);
	add_for_small_shapes(tc, a_call_that_finds_no_fd_goes_to_the_one_that_comes);
	add_for_small_shapes(tc, a_pending_call_survives_that_the_fd_is_taken_away);
	add_for_small_shapes(tc, stop_publishes_and_calls_first);
	add_for_small_shapes(tc, a_new_translation_publishes_and_calls_first);
	add_for_small_shapes(tc, a_start_calls_in_case_that_the_last_call_was_lost);
	add_for_small_shapes(tc, a_position_that_the_frontend_does_not_know_is_logged);
	add_for_small_shapes(tc, a_ring_that_cannot_start_is_one_line_and_nothing_is_kept);
	tcase_add_test(tc, the_header_follows_the_features_of_the_start);
}

static void add_fds(TCase *tc)
{
	tcase_add_test(tc, a_full_call_fd_never_blocks);
	tcase_add_test(tc, a_call_fd_that_is_no_eventfd_never_blocks);
	tcase_add_test(tc, a_call_fd_whose_other_end_is_closed_is_no_matter);
	tcase_add_test(tc, a_call_fd_that_cannot_be_written_is_no_matter);
	tcase_add_loop_test(
		tc, a_kick_fd_that_cannot_be_waited_for_is_refused_and_the_old_one_stays, 0, 2);
	tcase_add_test(tc, a_kick_fd_is_replaced_and_taken_away);
	tcase_add_test(tc, kicks_are_read_until_there_are_none);
	tcase_add_test(tc, a_kick_fd_at_its_end_must_not_be_waited_for);
	tcase_add_test(tc, a_kick_fd_that_knows_errors_only_must_not_be_waited_for);
	tcase_add_test(tc, a_kick_fd_that_its_owner_makes_blocking_never_blocks);
	tcase_add_test(tc, fini_closes_all_and_once);
}

static void add_broken(TCase *tc)
{
	add_for_small_shapes(tc, a_broken_ring_is_reported_once);
	add_for_small_shapes(tc, a_ring_may_break_without_an_err_fd);
	add_for_small_shapes(tc, a_broken_ring_leaves_nothing_to_wait_for);
}

int main(void)
{
	static const struct suite_ring_case cases[] = {
		{{"calls", setup, teardown, add_calls}, LAYOUT_BOTH},
		{{"changes", setup, teardown, add_changes}, LAYOUT_BOTH},
		{{"fds", setup, teardown, add_fds}, LAYOUT_SPLIT},
		{{"broken rings", setup, teardown, add_broken}, LAYOUT_BOTH},
	};

	return suite_run_rings("queue", cases, array_size(cases));
}
