/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/ctrl_vq.h"

#include <check.h>
#include <endian.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <string.h>
#include <unistd.h>

#include "support/fds.h"
#include "support/ring.h"
#include "support/suite.h"

#define N_PAIRS 4
/* What is in the answer's byte before it is written. */
#define UNTOUCHED 0xee

static struct ring_guest guest;
static struct ring ring;
static struct ev_loop *loop;
static struct ctrl_vq *ctrl;
static struct log_capture lines;
static unsigned n_fds;

static void setup(void)
{
	n_fds = fds_count();
	log_capture_start(&lines);
	loop = ev_loop_new(EVFLAG_AUTO);
	expect(loop);
	ring_guest_init(&guest, 0);
	ring = (struct ring){0};
	ctrl = NULL;
	expect_eq(ctrl_vq_new(&ctrl, loop, N_PAIRS), 0);
}

static void teardown(void)
{
	ctrl_vq_free(ctrl);
	ring_fini(&ring);
	ring_guest_fini(&guest);
	ev_loop_destroy(loop);
	log_capture_stop(&lines);
	expect_eq(fds_count(), n_fds);
}

static void start_queue(void)
{
	struct virtq_setup s = ring_setup(&ring);

	expect_eq(ctrl_vq_start(ctrl, &s), 0);
}

static void make_ring(int i)
{
	struct ring_shape shape = ring_shape(i);

	ring_init(&ring, &guest, &shape, BIT_ULL(VIRTIO_F_VERSION_1));
	ctrl_vq_set_call_fd(ctrl, dup(ring.drv.call_fd));
	expect_eq(ctrl_vq_set_kick_fd(ctrl, dup(ring.drv.kick_fd)), 0);
}

static void start(int i)
{
	make_ring(i);
	start_queue();
	driver_take_calls(&ring.drv);
}

static void run_loop(void)
{
	for (unsigned i = 0; i < 3; i++)
		ev_run(loop, EVRUN_NOWAIT);
}

/*
 * Offer a command, `piece` bytes in a buffer, and a byte for the answer if there is one.
 * Return: where the answer will be.
 */
static const uint8_t *offer(const void *cmd, uint32_t len, uint32_t piece, bool has_answer)
{
	struct driver_seg segs[RING_MAX_SEGS];
	uint32_t lens[RING_MAX_SEGS];
	const uint32_t one = 1;
	unsigned n = 0;

	for (uint32_t at = 0; at < len; at += piece)
		lens[n++] = piece < len - at ? piece : len - at;
	ring_alloc_segs(&guest, segs, lens, n, false);
	ring_fill_segs(&guest, segs, n, cmd);
	if (has_answer) {
		ring_alloc_segs(&guest, &segs[n++], &one, 1, true);
		memset(guest_at(&guest.guest, segs[n - 1].gpa), UNTOUCHED, 1);
	}
	ring_offer(&ring, segs, n, 0);
	return guest_at(&guest.guest, segs[n - 1].gpa);
}

/* Take one head back. Return: the length that came with it. */
static uint32_t take(void)
{
	struct driver_used u;

	expect(driver_take(&ring.drv, &u));
	return u.len;
}

static void serve(void)
{
	driver_publish(&ring.drv);
	driver_kick_always(&ring.drv);
	run_loop();
}

/* ---- commands ---- */

static const struct {
	uint8_t cmd[RING_MAX_SEGS];
	uint32_t len;
	uint8_t answer;
} commands[] = {
	{{VIRTIO_NET_CTRL_ANNOUNCE, VIRTIO_NET_CTRL_ANNOUNCE_ACK}, 2, VIRTIO_NET_OK},
	{{VIRTIO_NET_CTRL_ANNOUNCE, VIRTIO_NET_CTRL_ANNOUNCE_ACK}, 3, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_ANNOUNCE, 1}, 2, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, 1, 0}, 4, VIRTIO_NET_OK},
	{{VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, N_PAIRS, 0}, 4, VIRTIO_NET_OK},
	{{VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, 0, 0}, 4, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, N_PAIRS + 1, 0}, 4, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, 1, 1}, 4, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, 0xff, 0xff}, 4, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, 1}, 3, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET, 1, 0}, 5, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_MQ, VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET}, 2, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_MQ, 1, 1, 0}, 4, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_RX, VIRTIO_NET_CTRL_RX_PROMISC, 1}, 3, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_MAC, VIRTIO_NET_CTRL_MAC_ADDR_SET}, 8, VIRTIO_NET_ERR},
	{{VIRTIO_NET_CTRL_ANNOUNCE}, 1, VIRTIO_NET_ERR},
	{{0xff, 0xff}, RING_MAX_SEGS, VIRTIO_NET_ERR},
};

START_TEST(commands_are_answered_whatever_their_layout)
{
	static const uint32_t pieces[] = {1, 2, 3, RING_MAX_SEGS};

	start(16 + _i % 8);
	for (unsigned i = 0; i < array_size(commands); i++)
		for (unsigned k = 0; k < array_size(pieces); k++) {
			const uint8_t *answer;
			uint32_t len = commands[i].len;

			if (len / pieces[k] >= RING_MAX_SEGS - 1)
				len = RING_MAX_SEGS - 1;
			answer = offer(commands[i].cmd, len, pieces[k], true);
			serve();
			expect_eq(take(), 1);
			expect_msg(*answer == commands[i].answer, "command %u, pieces of %u", i,
				   pieces[k]);
		}
}
END_TEST

START_TEST(all_that_are_offered_are_answered_at_once_in_order)
{
	uint32_t size = ring_shape(_i).size;
	unsigned n = size < 16 ? size / 2 : 8;
	const uint8_t *answers[8];

	start(_i);
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < n; i++)
			answers[i] = offer(commands[i].cmd, commands[i].len, 8, true);
		serve();
		for (unsigned i = 0; i < n; i++) {
			expect_eq(take(), 1);
			expect_eq(*answers[i], commands[i].answer);
		}
	}
	expect_ge(driver_take_calls(&ring.drv), 1);
}
END_TEST

/* So many that the loop's other watches get their turn in between. */
START_TEST(many_commands_are_all_answered_by_one_kick)
{
	unsigned n = 100;

	start(16 + _i);
	for (unsigned i = 0; i < n; i++)
		offer(commands[0].cmd, 2, 8, true);
	serve();
	for (unsigned i = 0; i < 3; i++)
		run_loop();
	for (unsigned i = 0; i < n; i++)
		expect_eq(take(), 1);
}
END_TEST

START_TEST(a_command_without_room_for_the_answer_comes_back_empty)
{
	struct driver_seg bad = {.gpa = 8, .len = 2};
	const uint8_t *answer;

	start(_i);
	offer(commands[0].cmd, 2, 8, false);
	serve();
	expect_eq(take(), 0);
	ring_offer(&ring, &bad, 1, 0);
	serve();
	expect_eq(take(), 0);
	answer = offer(commands[0].cmd, 2, 8, true);
	serve();
	expect_eq(take(), 1);
	expect_eq(*answer, VIRTIO_NET_OK);
}
END_TEST

START_TEST(room_for_an_answer_without_a_command_is_an_error)
{
	const uint8_t *answer;

	start(_i);
	answer = offer(NULL, 0, 1, true);
	serve();
	expect_eq(take(), 1);
	expect_eq(*answer, VIRTIO_NET_ERR);
}
END_TEST

/* ---- notification ---- */

START_TEST(what_was_offered_before_the_start_is_answered_without_a_kick)
{
	const uint8_t *answer;

	make_ring(_i);
	answer = offer(commands[0].cmd, 2, 8, true);
	driver_publish(&ring.drv);
	start_queue();
	expect_eq(take(), 1);
	expect_eq(*answer, VIRTIO_NET_OK);
	expect_ge(driver_take_calls(&ring.drv), 1);
	/* And the next one wants a kick. */
	offer(commands[0].cmd, 2, 8, true);
	expect(driver_publish(&ring.drv));
}
END_TEST

START_TEST(each_command_wants_a_kick_and_is_told_of)
{
	start(_i);
	for (unsigned i = 0; i < 10; i++) {
		driver_calls_on(&ring.drv);
		offer(commands[0].cmd, 2, 8, true);
		expect(driver_kick(&ring.drv));
		run_loop();
		expect_eq(driver_take_calls(&ring.drv), 1);
		expect_eq(take(), 1);
	}
}
END_TEST

START_TEST(a_stopped_queue_is_not_served_and_goes_on_where_it_was)
{
	start(_i);
	offer(commands[0].cmd, 2, 8, true);
	serve();
	expect_eq(take(), 1);
	expect_eq(ctrl_vq_stop(ctrl), driver_base(&ring.drv));
	offer(commands[0].cmd, 2, 8, true);
	serve();
	expect_eq(driver_n_used(&ring.drv), 0);
	expect_eq(ctrl_vq_stop(ctrl), driver_base(&ring.drv));
	start_queue();
	expect_eq(take(), 1);
}
END_TEST

START_TEST(a_broken_ring_is_logged_and_works_again_after_a_start)
{
	start(_i);
	driver_ruin(&ring.drv);
	driver_kick_always(&ring.drv);
	run_loop();
	driver_kick_always(&ring.drv);
	run_loop();
	expect_eq(log_capture_count(&lines, "ctrl: ring broken"), 1);
	ctrl_vq_stop(ctrl);
	driver_mend(&ring.drv);
	start_queue();
	offer(commands[0].cmd, 2, 8, true);
	serve();
	expect_eq(take(), 1);
}
END_TEST

START_TEST(a_refused_kick_fd_leaves_the_one_that_works)
{
	start(_i);
	expect_eq(ctrl_vq_set_kick_fd(ctrl, open("/dev/null", O_RDWR | O_CLOEXEC)), -EPERM);
	offer(commands[0].cmd, 2, 8, true);
	serve();
	expect_eq(take(), 1);
	expect_eq(ctrl_vq_set_kick_fd(ctrl, -1), 0);
	offer(commands[0].cmd, 2, 8, true);
	serve();
	expect_eq(driver_n_used(&ring.drv), 0);
}
END_TEST

START_TEST(a_kick_fd_at_its_end_is_not_waited_for_any_more)
{
	int fds[2];

	start(_i);
	expect_eq(pipe2(fds, O_CLOEXEC), 0);
	expect_eq(ctrl_vq_set_kick_fd(ctrl, fds[0]), 0);
	close(fds[1]);
	run_loop();
	/* Nothing is active, so nothing spins. */
	expect_eq(ev_pending_count(loop), 0);
	expect_eq(ev_run(loop, EVRUN_NOWAIT), 0);
	expect_eq(ctrl_vq_set_kick_fd(ctrl, dup(ring.drv.kick_fd)), 0);
	offer(commands[0].cmd, 2, 8, true);
	serve();
	expect_eq(take(), 1);
}
END_TEST

static void add_commands(TCase *tc)
{
	tcase_add_loop_test(tc, commands_are_answered_whatever_their_layout, 0, 8);
	add_for_small_shapes(tc, all_that_are_offered_are_answered_at_once_in_order);
	tcase_add_loop_test(tc, many_commands_are_all_answered_by_one_kick, 0, 8);
	add_for_small_shapes(tc, a_command_without_room_for_the_answer_comes_back_empty);
	add_for_small_shapes(tc, room_for_an_answer_without_a_command_is_an_error);
}

static void add_notification(TCase *tc)
{
	add_for_small_shapes(tc, what_was_offered_before_the_start_is_answered_without_a_kick);
	add_for_small_shapes(tc, each_command_wants_a_kick_and_is_told_of);
	add_for_small_shapes(tc, a_stopped_queue_is_not_served_and_goes_on_where_it_was);
	add_for_small_shapes(tc, a_broken_ring_is_logged_and_works_again_after_a_start);
	tcase_add_loop_test(tc, a_refused_kick_fd_leaves_the_one_that_works, 0, 4);
	tcase_add_loop_test(tc, a_kick_fd_at_its_end_is_not_waited_for_any_more, 0, 4);
}

int main(void)
{
	static const struct suite_ring_case cases[] = {
		{{"commands", setup, teardown, add_commands}, LAYOUT_BOTH},
		{{"notification", setup, teardown, add_notification}, LAYOUT_BOTH},
	};

	return suite_run_rings("ctrl_vq", cases, array_size(cases));
}
