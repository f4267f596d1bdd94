/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/umem.h"

#include <check.h>
#include <string.h>

#include "base/util.h"
#include "support/expect.h"
#include "support/suite.h"

#define N_FRAMES 64

static struct umem umem;

static void set_up(void)
{
	expect_eq(umem_init(&umem, N_FRAMES, 2048), 0);
}

static void tear_down(void)
{
	umem_fini(&umem);
}

static uint32_t sum(void)
{
	return umem.n_free_rx + umem.n_free_tx + umem.n_filled + umem.n_sending;
}

START_TEST(half_is_for_each_direction)
{
	expect_eq(umem.n_free_rx, N_FRAMES / 2);
	expect_eq(umem.n_free_tx, N_FRAMES / 2);
	expect_eq(sum(), N_FRAMES);
}
END_TEST

START_TEST(each_frame_is_given_out_once)
{
	bool seen[N_FRAMES] = {false};

	for (unsigned i = 0; i < N_FRAMES; i++) {
		uint64_t addr = i % 2 ? umem_take_rx(&umem) : umem_take_tx(&umem);

		expect_eq(addr % 2048, 0);
		expect_lt(addr / 2048, N_FRAMES);
		expect(!seen[addr / 2048]);
		seen[addr / 2048] = true;
		memset(umem_at(&umem, addr), 0xaa, 2048);
		expect_eq(sum(), N_FRAMES);
	}
	expect_eq(umem.n_filled, N_FRAMES / 2);
	expect_eq(umem.n_sending, N_FRAMES / 2);
}
END_TEST

START_TEST(frame_comes_back_by_any_address_inside_of_it)
{
	uint64_t rx = umem_take_rx(&umem), tx = umem_take_tx(&umem);

	umem_give_rx(&umem, rx + 256);
	umem_give_tx(&umem, tx + 2047);
	expect_eq(umem.n_free_rx, N_FRAMES / 2);
	expect_eq(umem.n_free_tx, N_FRAMES / 2);
	expect_eq(umem_take_rx(&umem), rx);
	expect_eq(umem_take_tx(&umem), tx);
}
END_TEST

START_TEST(directions_do_not_starve_each_other)
{
	while (umem.n_free_tx > 0)
		umem_take_tx(&umem);
	for (unsigned i = 0; i < 1000; i++)
		umem_give_rx(&umem, umem_take_rx(&umem));
	expect_eq(umem.n_free_rx, N_FRAMES / 2);
}
END_TEST

START_TEST(all_is_free_again_after_a_reset)
{
	umem_take_rx(&umem);
	umem_take_tx(&umem);
	umem_reset(&umem);
	expect_eq(umem.n_free_rx + umem.n_free_tx, N_FRAMES);
	expect_eq(sum(), N_FRAMES);
}
END_TEST

static void add_all(TCase *tc)
{
	tcase_add_test(tc, half_is_for_each_direction);
	tcase_add_test(tc, each_frame_is_given_out_once);
	tcase_add_test(tc, frame_comes_back_by_any_address_inside_of_it);
	tcase_add_test(tc, directions_do_not_starve_each_other);
	tcase_add_test(tc, all_is_free_again_after_a_reset);
}

int main(void)
{
	static const struct suite_case cases[] = {{"umem", set_up, tear_down, add_all}};

	return suite_run("umem", cases, array_size(cases));
}
