/* SPDX-License-Identifier: BSD-2-Clause */
#include <check.h>
#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "support/device_fixture.h"
#include "support/suite.h"
#include "support/wait.h"

#define V1   BIT_ULL(VIRTIO_F_VERSION_1)
#define PF   BIT_ULL(VHOST_USER_F_PROTOCOL_FEATURES)
#define NOFD VHOST_USER_VRING_NOFD

/* Two pairs, memory of two regions, features with the protocol features bit. */
static void setup(void)
{
	dx_setup();
	dx_negotiate(V1, true);
	expect_eq(dx_send_mem(2), 0);
	dx_forget();
}

static uint32_t ask_base(uint32_t ring)
{
	expect_eq(dx_send_state(VHOST_USER_GET_VRING_BASE, ring, 0), 0);
	expect(dx.reply.send);
	expect_eq(dx.reply.size, sizeof(struct vhost_user_vring_state));
	expect_eq(dx.reply.payload.state.index, ring);
	return dx.reply.payload.state.num;
}

static int kick(uint32_t ring)
{
	return dx_send_fd(VHOST_USER_SET_VRING_KICK, ring, dx_eventfd());
}

/* ---- the start ---- */

enum { NUM, ADDR, MEM, KICK, BASE, N_STEPS };
#define N_ORDERS 120

/* Put the steps into their i-th order. */
static void order_steps(int steps[N_STEPS], int i)
{
	for (int k = 0; k < N_STEPS; k++) {
		int at = i % (k + 1);

		i /= k + 1;
		for (int j = k; j > at; j--)
			steps[j] = steps[j - 1];
		steps[at] = k;
	}
}

static int take_step(int step)
{
	switch (step) {
	case NUM:
		return dx_send_state(VHOST_USER_SET_VRING_NUM, 1, 1024);
	case ADDR:
		return dx_send_addr(1);
	case MEM:
		return dx_send_mem(2);
	case KICK:
		return kick(1);
	default:
		return dx_send_state(VHOST_USER_SET_VRING_BASE, 1, 77);
	}
}

START_TEST(in_any_order_a_ring_starts_once_when_it_is_complete)
{
	int steps[N_STEPS] = {0};
	unsigned n_needed = 0;
	bool has_base = false;

	order_steps(steps, _i);
	dx_renew();
	dx_negotiate(V1, true);
	for (int i = 0; i < N_STEPS; i++) {
		expect_eq(take_step(steps[i]), 0);
		has_base |= steps[i] == BASE && n_needed < 4;
		n_needed += steps[i] != BASE;
		expect_eq(dx_count(DX_START, -1), n_needed == 4);
	}
	expect_eq(dx_last(DX_START, -1)->ring, 1);
	expect_eq(dx_last(DX_START, 1)->setup.size, 1024);
	expect_eq(dx_last(DX_START, 1)->setup.desc.v, DX_DESC(1));
	expect_eq(dx_last(DX_START, 1)->setup.avail.v, DX_AVAIL(1));
	expect_eq(dx_last(DX_START, 1)->setup.used.v, DX_USED(1));
	expect_eq(dx_last(DX_START, 1)->setup.features, V1 | PF);
	expect_eq(dx_last(DX_START, 1)->setup.base, has_base ? 77 : 0);
	expect_eq(dx_count(DX_STOP, -1), 0);
}
END_TEST

START_TEST(rings_do_not_start_by_what_belongs_to_another)
{
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, 0, 256), 0);
	expect_eq(dx_send_addr(1), 0);
	expect_eq(kick(2), 0);
	expect_eq(dx_count(DX_START, -1), 0);
}
END_TEST

START_TEST(a_ring_may_start_without_any_fd)
{
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, 0, 256), 0);
	expect_eq(dx_send_addr(0), 0);
	expect_eq(dx_send_fd(VHOST_USER_SET_VRING_KICK, 0 | NOFD, -1), 0);
	expect(dx.rings[0].is_started);
	expect_eq(dx.rings[0].fds[0], -1);
}
END_TEST

START_TEST(fds_are_handed_on_at_once_whether_started_or_not)
{
	for (unsigned round = 0; round < 2; round++) {
		int fd = dx_eventfd();

		expect_eq(dx_send_fd(VHOST_USER_SET_VRING_CALL, 2, fd), 0);
		expect_eq(dx.rings[2].fds[1], fd);
		fd = dx_eventfd();
		expect_eq(dx_send_fd(VHOST_USER_SET_VRING_ERR, 2, fd), 0);
		expect_eq(dx.rings[2].fds[2], fd);
		fd = dx_eventfd();
		expect_eq(dx_send_fd(VHOST_USER_SET_VRING_KICK, 2, fd), 0);
		expect_eq(dx.rings[2].fds[0], fd);
		if (round == 0)
			dx_start(2);
	}
	expect_eq(dx_count(DX_START, 2), 1);
}
END_TEST

START_TEST(a_size_is_a_power_of_two_up_to_32768)
{
	static const uint32_t bad[] = {0,	   1,	     3,	     6,		255,
				       257,	   32767,    32769,  65535,	65536,
				       0x10000100, 1U << 31, 100000, UINT32_MAX};

	for (uint32_t size = 2; size <= 32768; size *= 2)
		expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, 0, size), 0);
	for (unsigned i = 0; i < array_size(bad); i++)
		expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, 0, bad[i]), -EINVAL);
	expect_eq(dx_send_addr(0), 0);
	expect_eq(kick(0), 0);
	expect_eq(dx_last(DX_START, 0)->setup.size, 32768);
}
END_TEST

START_TEST(a_base_has_sixteen_bits)
{
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_BASE, 0, 65535), 0);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_BASE, 0, 65536), -EINVAL);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_BASE, 0, UINT32_MAX), -EINVAL);
	expect_eq(ask_base(0), 65535);
}
END_TEST

START_TEST(a_ring_that_cannot_start_is_refused_and_may_be_mended)
{
	dx.rings[0].start_err = -EFAULT;
	dx_set_up(0);
	dx.flags |= VHOST_USER_NEED_REPLY;
	expect_eq(kick(0), 0);
	expect(!dx_is_acked());
	expect_eq(dx_count(DX_STOP, 0), 0);
	dx.rings[0].start_err = 0;
	expect_eq(dx_send_addr(0), 0);
	expect(dx_is_acked());
	expect(dx.rings[0].is_started);
	expect_eq(dx_count(DX_START, 0), 2);
}
END_TEST

START_TEST(a_kick_fd_that_cannot_be_waited_for_starts_nothing)
{
	dx.rings[0].kick_err = -EPERM;
	dx_set_up(0);
	expect_eq(kick(0), -EPERM);
	expect_eq(dx_count(DX_START, 0), 0);
	dx.rings[0].kick_err = 0;
	expect_eq(kick(0), 0);
	expect_eq(dx_count(DX_START, 0), 1);
	/* And is no reason to stop one that runs. */
	dx.rings[0].kick_err = -EPERM;
	expect_eq(kick(0), -EPERM);
	expect(dx.rings[0].is_started);
}
END_TEST

/* ---- enabled ---- */

START_TEST(with_the_protocol_features_bit_a_ring_is_enabled_by_a_message)
{
	dx_start(0);
	expect(!dx.rings[0].is_enabled);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_ENABLE, 0, 1), 0);
	expect(dx.rings[0].is_enabled);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_ENABLE, 0, 0), 0);
	expect(!dx.rings[0].is_enabled);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_ENABLE, 0, 2), -EINVAL);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_ENABLE, 0, UINT32_MAX), -EINVAL);
	expect_eq(dx_count(DX_ENABLE, 0), 2);
	/* Also before the start, which changes nothing about it. */
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_ENABLE, 1, 1), 0);
	dx_start(1);
	expect(dx.rings[1].is_enabled);
	expect(dx.rings[0].is_started);
}
END_TEST

START_TEST(without_it_a_ring_is_enabled_from_its_start)
{
	expect_eq(dx_send_u64(VHOST_USER_SET_FEATURES, V1), 0);
	dx_set_up(0);
	expect(!dx.rings[0].is_enabled);
	expect_eq(kick(0), 0);
	expect(dx.rings[0].is_enabled);
	expect(!dx.rings[1].is_enabled);
}
END_TEST

/* ---- while it runs ---- */

START_TEST(a_started_ring_gets_a_new_kick_fd_and_no_second_start)
{
	dx_start(0);
	expect_eq(kick(0), 0);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, 0, 256), 0);
	expect_eq(dx_count(DX_START, 0), 1);
	expect_eq(dx_count(DX_KICK, 0), 2);
	expect_eq(dx_count(DX_STOP, 0), 0);
}
END_TEST

START_TEST(the_size_of_a_started_ring_stays)
{
	dx_start(0);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, 0, 512), -EBUSY);
	expect_eq(dx_send_addr(0), 0);
	expect_eq(dx_last(DX_START, 0)->setup.size, 256);
}
END_TEST

/* A migration sends features and addresses again. */
START_TEST(addresses_of_a_started_ring_are_translated_again_with_its_own_features)
{
	dx_start(0);
	expect_eq(dx_send_u64(VHOST_USER_SET_FEATURES, PF), 0);
	expect_eq(device_features(dx.device), PF);
	expect_eq(dx_send_addr(0), 0);
	expect_eq(dx_count(DX_START, 0), 2);
	expect_eq(dx_count(DX_STOP, 0), 0);
	expect_eq(dx_last(DX_START, 0)->setup.features, V1 | PF);
	/* The next start is by the new ones. */
	ask_base(0);
	dx_start(0);
	expect_eq(dx_last(DX_START, 0)->setup.features, PF);
}
END_TEST

START_TEST(addresses_that_are_wrong_stop_a_started_ring)
{
	dx_start(0);
	dx.rings[0].start_err = -EFAULT;
	dx.rings[0].position = 4711;
	expect_eq(dx_send_addr(0), -EFAULT);
	/* It is stopped where it was: that is what a frontend that asks must hear. */
	expect_eq(ask_base(0), 4711);
	expect_eq(ask_base(0), 4711);
}
END_TEST

/* ---- memory ---- */

START_TEST(a_new_table_starts_running_rings_again_and_lets_go_of_the_old_one)
{
	const struct gmem *old;

	dx_start(0);
	dx_start(1);
	old = dx_last(DX_START, 1)->setup.mem;
	dx_forget();
	expect_eq(dx_send_mem(3), 0);
	expect_eq(dx_count(DX_START, 0), 1);
	expect_eq(dx_count(DX_START, 1), 1);
	expect_eq(dx_count(DX_START, -1), 2);
	expect_eq(dx_count(DX_STOP, -1), 0);
	expect(dx_last(DX_START, 1)->setup.mem != old);
	expect_eq(dx_last(DX_START, 1)->setup.mem->n_regions, 3);
}
END_TEST

START_TEST(a_ring_that_the_new_table_does_not_hold_stops_and_the_others_go_on)
{
	dx_start(0);
	dx_start(1);
	dx_start(2);
	dx.rings[1].start_err = -EFAULT;
	dx.rings[1].position = 1234;
	expect_eq(dx_send_mem(1), 0);
	expect(dx.rings[0].is_started && dx.rings[2].is_started);
	expect(!dx.rings[1].is_started);
	/* A later table may hold it again. */
	dx.rings[1].start_err = 0;
	dx_forget();
	expect_eq(dx_send_mem(2), 0);
	expect_eq(dx_count(DX_START, -1), 3);
	expect(dx.rings[1].is_started);
	/* Or it is asked where it stopped. */
	dx.rings[1].start_err = -EFAULT;
	expect_eq(dx_send_mem(1), 0);
	expect_eq(ask_base(1), 1234);
	expect_eq(ask_base(1), 1234);
}
END_TEST

static int send_table(struct vhost_user_mem_table *table, uint32_t size, unsigned n_fds)
{
	int fds[VHOST_USER_MAX_REGIONS];

	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = dup(dx.guest.fds[i]);
	return dx_send(VHOST_USER_SET_MEM_TABLE, table, size, fds, n_fds);
}

START_TEST(a_bad_table_leaves_all_of_the_old_one)
{
	static const struct {
		uint32_t n_regions, size;
		unsigned n_fds;
	} bad[] = {
		{0, 8, 0},	     {0, 40, 1},
		{9, 264, 8},	     {UINT32_MAX, 264, 8},
		{2, 72, 1},	     {2, 72, 3},
		{2, 71, 2},	     {2, 40, 2},
		{8, 263, 8},	     {1, 7, 1},
		{1, 0, 0},	     {2, 72, 0},
		{1U << 31, 264, 8},  {0x20000000, 264, 0},
		{0x08000001, 40, 1},
	};
	struct vhost_user_mem_table table;
	const struct gmem *old;
	int fds[VHOST_USER_MAX_REGIONS];

	dx_start(0);
	old = dx_last(DX_START, 0)->setup.mem;
	for (unsigned i = 0; i < array_size(bad); i++) {
		guest_fill_table(&dx.guest, &table, fds);
		table.n_regions = bad[i].n_regions;
		expect_lt(send_table(&table, bad[i].size, bad[i].n_fds), 0);
	}
	guest_fill_table(&dx.guest, &table, fds);
	table.n_regions = 2;
	table.regions[1].size = 0;
	expect_lt(send_table(&table, 72, 2), 0);
	expect_eq(dx_count(DX_START, -1), 1);
	expect_eq(dx_count(DX_STOP, -1), 0);
	expect_eq(dx_send_addr(0), 0);
	expect(dx_last(DX_START, 0)->setup.mem == old);
}
END_TEST

START_TEST(a_table_has_up_to_eight_regions_and_may_come_with_empty_places)
{
	struct vhost_user_mem_table table;
	int fds[VHOST_USER_MAX_REGIONS];

	dx_start(0);
	for (unsigned n = 1; n <= 8; n++) {
		expect_eq(dx_send_mem(n), 0);
		expect_eq(dx_last(DX_START, 0)->setup.mem->n_regions, n);
		guest_fill_table(&dx.guest, &table, fds);
		table.n_regions = n;
		expect_eq(send_table(&table, sizeof(table), n), 0);
		expect_eq(dx_last(DX_START, 0)->setup.mem->n_regions, n);
	}
}
END_TEST

START_TEST(many_tables_leak_nothing)
{
	unsigned n = wait_repeats("tables", 200, 1000);

	dx_start(0);
	for (unsigned i = 0; i < n; i++) {
		expect_eq(dx_send_mem(1 + i % 8), 0);
		dx_forget();
	}
}
END_TEST

/* ---- the end ---- */

START_TEST(get_vring_base_stops_a_ring_once_and_says_where)
{
	dx_start(0);
	dx_start(1);
	dx.rings[1].position = 65534;
	dx_forget();
	expect_eq(ask_base(1), 65534);
	expect_eq(dx_count(DX_STOP, 1), 1);
	expect(dx.rings[0].is_started);
	expect_eq(dx.rings[1].fds[0], -1);
	expect_eq(dx.rings[1].fds[1], -1);
	dx.rings[1].position = 9;
	expect_eq(ask_base(1), 65534);
	expect_eq(dx_count(DX_STOP, -1), 1);
}
END_TEST

START_TEST(a_ring_that_never_started_answers_its_base)
{
	expect_eq(ask_base(3), 0);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_BASE, 3, 5), 0);
	expect_eq(ask_base(3), 5);
	expect_eq(dx_count(DX_STOP, -1), 0);
}
END_TEST

START_TEST(a_stopped_ring_starts_again_by_a_kick_only)
{
	dx_start(0);
	dx.rings[0].position = 30;
	ask_base(0);
	dx_set_up(0);
	expect_eq(dx_send_mem(2), 0);
	expect(!dx.rings[0].is_started);
	expect_eq(kick(0), 0);
	expect(dx.rings[0].is_started);
	/* Also with nothing said anew; the base is that of the stop then. */
	ask_base(0);
	expect_eq(kick(0), 0);
	expect_eq(dx_last(DX_START, 0)->setup.base, 30);
}
END_TEST

/* QEMU sends it before it asks for the positions when a guest is stopped. */
START_TEST(status_zero_leaves_the_rings_alone)
{
	dx_start(0);
	dx.rings[0].position = 13610;
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_ENABLE, 0, 1), 0);
	expect_eq(dx_send_u64(VHOST_USER_SET_STATUS, 7), 0);
	expect_eq(dx_send_u64(VHOST_USER_SET_STATUS, 0), 0);
	expect_eq(ask_base(0), 13610);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_ENABLE, 0, 0), 0);
}
END_TEST

static void expect_forgotten(void)
{
	for (unsigned i = 0; i < 5; i++) {
		expect(!dx.rings[i].is_started && !dx.rings[i].is_enabled);
		for (unsigned k = 0; k < 3; k++)
			expect_eq(dx.rings[i].fds[k], -1);
		expect_eq(ask_base(i), 0);
	}
	expect_eq(device_features(dx.device), 0);
	expect_eq(dx_last(DX_FEATURES, -1)->value, 0);
}

static void start_all(void)
{
	for (uint32_t i = 0; i < 5; i++) {
		dx_start(i);
		expect_eq(dx_send_state(VHOST_USER_SET_VRING_ENABLE, i, 1), 0);
	}
}

START_TEST(reset_device_forgets_rings_and_features_and_keeps_the_rest)
{
	uint64_t protocol_features = device_protocol_features(dx.device);

	start_all();
	dx_forget();
	dx.flags |= VHOST_USER_NEED_REPLY;
	expect_eq(dx_send(VHOST_USER_RESET_DEVICE, NULL, 0, NULL, 0), 0);
	expect(dx_is_acked());
	dx.flags &= ~VHOST_USER_NEED_REPLY;
	expect_eq(dx_count(DX_STOP, -1), 5);
	expect_forgotten();
	expect_eq(device_protocol_features(dx.device), protocol_features);
	expect_eq(dx_send(VHOST_USER_GET_STATUS, NULL, 0, NULL, 0), 0);
	expect_eq(dx.reply.payload.u64, 0);
	/* The memory is known still, sizes and addresses are not. */
	expect_eq(dx_send_u64(VHOST_USER_SET_FEATURES, V1 | PF), 0);
	expect_eq(kick(0), 0);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, 0, 256), 0);
	expect(!dx.rings[0].is_started);
	expect_eq(dx_send_addr(0), 0);
	expect(dx.rings[0].is_started);
}
END_TEST

START_TEST(reset_owner_changes_nothing)
{
	dx_start(0);
	dx_forget();
	expect_eq(dx_send(VHOST_USER_RESET_OWNER, NULL, 0, NULL, 0), 0);
	expect_eq(dx_send(VHOST_USER_SET_OWNER, NULL, 0, NULL, 0), 0);
	expect_eq(dx.n_ops, 0);
}
END_TEST

START_TEST(a_frontend_that_goes_leaves_nothing_for_the_next)
{
	for (unsigned round = 0; round < 3; round++) {
		start_all();
		dx_forget();
		device_disconnect(dx.device);
		expect_eq(dx_count(DX_STOP, -1), 5);
		expect_forgotten();
		expect_eq(device_protocol_features(dx.device), 0);
		/* Nor does the memory stay: a complete ring does not start without. */
		dx_negotiate(V1, true);
		dx_set_up(0);
		expect_eq(kick(0), 0);
		expect_eq(dx_count(DX_START, 0), 0);
		expect_eq(dx_send_mem(2), 0);
		expect(dx.rings[0].is_started);
		ask_base(0);
	}
}
END_TEST

START_TEST(a_device_may_be_freed_in_any_state_and_nothing_may_be)
{
	start_all();
	device_free(dx.device);
	expect_eq(dx_count(DX_STOP, -1), 5);
	dx.device = NULL;
	device_free(NULL);
}
END_TEST

static void add_starts(TCase *tc)
{
	tcase_add_loop_test(tc, in_any_order_a_ring_starts_once_when_it_is_complete, 0, N_ORDERS);
	tcase_add_test(tc, rings_do_not_start_by_what_belongs_to_another);
	tcase_add_test(tc, a_ring_may_start_without_any_fd);
	tcase_add_test(tc, fds_are_handed_on_at_once_whether_started_or_not);
	tcase_add_test(tc, a_size_is_a_power_of_two_up_to_32768);
	tcase_add_test(tc, a_base_has_sixteen_bits);
	tcase_add_test(tc, a_ring_that_cannot_start_is_refused_and_may_be_mended);
	tcase_add_test(tc, a_kick_fd_that_cannot_be_waited_for_starts_nothing);
	tcase_add_test(tc, with_the_protocol_features_bit_a_ring_is_enabled_by_a_message);
	tcase_add_test(tc, without_it_a_ring_is_enabled_from_its_start);
}

static void add_running(TCase *tc)
{
	tcase_add_test(tc, a_started_ring_gets_a_new_kick_fd_and_no_second_start);
	tcase_add_test(tc, the_size_of_a_started_ring_stays);
	tcase_add_test(tc, addresses_of_a_started_ring_are_translated_again_with_its_own_features);
	tcase_add_test(tc, addresses_that_are_wrong_stop_a_started_ring);
	tcase_add_test(tc, a_new_table_starts_running_rings_again_and_lets_go_of_the_old_one);
	tcase_add_test(tc, a_ring_that_the_new_table_does_not_hold_stops_and_the_others_go_on);
	tcase_add_test(tc, a_bad_table_leaves_all_of_the_old_one);
	tcase_add_test(tc, a_table_has_up_to_eight_regions_and_may_come_with_empty_places);
	tcase_add_test(tc, many_tables_leak_nothing);
}

static void add_ends(TCase *tc)
{
	tcase_add_test(tc, get_vring_base_stops_a_ring_once_and_says_where);
	tcase_add_test(tc, a_ring_that_never_started_answers_its_base);
	tcase_add_test(tc, a_stopped_ring_starts_again_by_a_kick_only);
	tcase_add_test(tc, status_zero_leaves_the_rings_alone);
	tcase_add_test(tc, reset_device_forgets_rings_and_features_and_keeps_the_rest);
	tcase_add_test(tc, reset_owner_changes_nothing);
	tcase_add_test(tc, a_frontend_that_goes_leaves_nothing_for_the_next);
	tcase_add_test(tc, a_device_may_be_freed_in_any_state_and_nothing_may_be);
}

int main(void)
{
	static const struct suite_case cases[] = {
		{"start", setup, dx_teardown, add_starts},
		{"running", setup, dx_teardown, add_running},
		{"end", setup, dx_teardown, add_ends},
	};

	return suite_run("device_rings", cases, array_size(cases));
}
