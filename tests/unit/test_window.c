/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/window.h"

#include <check.h>

#include "base/timer.h"
#include "base/util.h"
#include "support/expect.h"
#include "support/suite.h"

#define NOW 1000000000ULL

/* Look in vain from `now_ns` on until it is time to sleep. Return: how long that was. */
static uint64_t look_in_vain(struct window *w, uint64_t poll_ns, uint64_t now_ns)
{
	uint64_t t = now_ns;

	while (window_is_open(w, poll_ns, t))
		t += 100;
	return t - now_ns;
}

/* Return: sleeps without a look before them, until the next trial. */
static unsigned count_sleeps(struct window *w)
{
	unsigned n = 0;

	while (look_in_vain(w, 0, NOW) == 0)
		n++;
	return n;
}

START_TEST(looks_for_a_moment_before_it_sleeps)
{
	struct window w = {0};

	expect_eq(look_in_vain(&w, 0, NOW), WINDOW_TRIAL_NS);
}
END_TEST

START_TEST(moment_that_does_not_pay_becomes_rare)
{
	struct window w = {0};

	look_in_vain(&w, 0, NOW);
	for (unsigned n = 1; n < WINDOW_MAX_SKIPS; n = 2 * n + 1)
		expect_eq(count_sleeps(&w), n);
	expect_eq(count_sleeps(&w), WINDOW_MAX_SKIPS);
	expect_eq(count_sleeps(&w), WINDOW_MAX_SKIPS);
}
END_TEST

/* Have `n` moments bring work at once. */
static void look_and_find(struct window *w, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		expect(window_is_open(w, 0, NOW));
		window_note_work(w);
	}
}

START_TEST(moment_that_pays_again_is_taken_each_time)
{
	struct window w = {0};

	look_in_vain(&w, 0, NOW);
	count_sleeps(&w);
	while (!window_is_open(&w, 0, NOW))
		continue;
	window_note_work(&w);
	look_and_find(&w, 2);
	look_in_vain(&w, 0, NOW);
	expect_eq(count_sleeps(&w), 1);
}
END_TEST

START_TEST(credit_makes_moments_longer_and_outlasts_some_in_vain)
{
	struct window w = {0};

	look_and_find(&w, 1000);
	for (unsigned left = WINDOW_MAX_CREDIT / WINDOW_LOSS; left > 0; left--)
		expect_eq(look_in_vain(&w, 0, NOW), (1 + left) * WINDOW_TRIAL_NS);
	expect_eq(look_in_vain(&w, 0, NOW), WINDOW_TRIAL_NS);
	expect_eq(count_sleeps(&w), 1);
}
END_TEST

START_TEST(configured_window_is_kept_each_time)
{
	struct window w = {0};

	for (int i = 0; i < 10; i++)
		expect_eq(look_in_vain(&w, 100 * NS_PER_US, NOW), 100 * NS_PER_US);
}
END_TEST

START_TEST(work_starts_the_configured_window_anew)
{
	struct window w = {0};

	expect(window_is_open(&w, 100 * NS_PER_US, NOW));
	window_note_work(&w);
	expect_eq(look_in_vain(&w, 100 * NS_PER_US, NOW + 90 * NS_PER_US), 100 * NS_PER_US);
}
END_TEST

static void add_arithmetic(TCase *tc)
{
	tcase_add_test(tc, looks_for_a_moment_before_it_sleeps);
	tcase_add_test(tc, moment_that_does_not_pay_becomes_rare);
	tcase_add_test(tc, moment_that_pays_again_is_taken_each_time);
	tcase_add_test(tc, credit_makes_moments_longer_and_outlasts_some_in_vain);
	tcase_add_test(tc, configured_window_is_kept_each_time);
	tcase_add_test(tc, work_starts_the_configured_window_anew);
}

int main(void)
{
	static const struct suite_case cases[] = {{"arithmetic", NULL, NULL, add_arithmetic}};

	return suite_run("window", cases, array_size(cases));
}
