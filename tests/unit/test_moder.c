/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/moder.h"

#include <check.h>

#include "base/timer.h"
#include "base/util.h"
#include "support/expect.h"
#include "support/suite.h"

#define NOW 1000000000ULL

static struct moder moder_of(uint32_t usecs, uint32_t frames)
{
	return (struct moder){.params = {.usecs = usecs, .frames = frames}};
}

static void change(struct moder *m, uint32_t usecs, uint32_t frames)
{
	struct moder_params params = {.usecs = usecs, .frames = frames};

	moder_set(m, &params);
}

START_TEST(nothing_pending_is_never_due)
{
	struct moder off = moder_of(0, 0), on = moder_of(50, 8);

	expect(!moder_due(&off, NOW));
	expect(!moder_due(&on, UINT64_MAX));
}
END_TEST

START_TEST(without_parameters_each_publish_is_due_at_once)
{
	struct moder m = moder_of(0, 0);

	expect(!moder_is_on(&m));
	moder_add(&m, 1, NOW);
	expect(moder_due(&m, NOW));
}
END_TEST

START_TEST(the_call_is_due_at_the_deadline_and_not_before)
{
	struct moder m = moder_of(50, 8);

	expect(moder_is_on(&m));
	moder_add(&m, 1, NOW);
	expect(!moder_due(&m, NOW));
	expect(!moder_due(&m, NOW + 50 * NS_PER_US - 1));
	expect(moder_due(&m, NOW + 50 * NS_PER_US));
	expect(moder_due(&m, UINT64_MAX));
}
END_TEST

START_TEST(later_completions_never_move_the_deadline)
{
	struct moder m = moder_of(50, 1024);

	moder_add(&m, 1, NOW);
	for (uint64_t us = 1; us < 50; us++) {
		moder_add(&m, 1, NOW + us * NS_PER_US);
		expect(!moder_due(&m, NOW + us * NS_PER_US));
	}
	expect_eq(m.deadline_ns, NOW + 50 * NS_PER_US);
	expect(moder_due(&m, NOW + 50 * NS_PER_US));
}
END_TEST

/* A completion every usecs - 1: were the last one to count, the call would never come. */
START_TEST(a_steady_trickle_is_signalled_usecs_after_the_first_one)
{
	struct moder m = moder_of(50, 1024);
	unsigned n_calls = 0;

	for (uint64_t i = 0; i < 100; i++) {
		uint64_t now = NOW + i * 49 * NS_PER_US;

		/* The timer has fired in the meantime. */
		if (m.n_pending > 0 && m.deadline_ns <= now) {
			expect(moder_due(&m, m.deadline_ns));
			expect_eq(m.n_pending, 2);
			moder_clear(&m);
			n_calls++;
		}
		moder_add(&m, 1, now);
	}
	expect_eq(n_calls, 49);
}
END_TEST

START_TEST(the_number_of_frames_ends_the_wait_early)
{
	struct moder m = moder_of(10000, 32);

	for (unsigned i = 1; i < 32; i++) {
		moder_add(&m, 1, NOW);
		expect(!moder_due(&m, NOW));
	}
	moder_add(&m, 1, NOW);
	expect(moder_due(&m, NOW));
	moder_clear(&m);
	moder_add(&m, 31, NOW);
	expect(!moder_due(&m, NOW));
	moder_add(&m, 200, NOW);
	expect(moder_due(&m, NOW));
}
END_TEST

START_TEST(after_a_call_the_next_completion_starts_its_own_deadline)
{
	struct moder m = moder_of(50, 8);

	moder_add(&m, 8, NOW);
	moder_clear(&m);
	expect(!moder_due(&m, UINT64_MAX));
	moder_add(&m, 1, NOW + 7 * NS_PER_US);
	expect(!moder_due(&m, NOW + 56 * NS_PER_US));
	expect(moder_due(&m, NOW + 57 * NS_PER_US));
}
END_TEST

START_TEST(new_parameters_count_from_the_publish_time_of_what_is_pending)
{
	struct moder m = moder_of(50, 8);

	moder_add(&m, 1, NOW);
	change(&m, 200, 8);
	expect(!moder_due(&m, NOW + 199 * NS_PER_US));
	expect(moder_due(&m, NOW + 200 * NS_PER_US));
	change(&m, 20, 8);
	expect(!moder_due(&m, NOW + 19 * NS_PER_US));
	expect(moder_due(&m, NOW + 20 * NS_PER_US));
	change(&m, 10000, 2);
	expect(!moder_due(&m, NOW));
	moder_add(&m, 1, NOW + 1);
	expect(moder_due(&m, NOW + 1));
}
END_TEST

START_TEST(switched_off_while_pending_the_call_is_due_at_once)
{
	struct moder m = moder_of(10000, 1024);

	moder_add(&m, 1, NOW);
	change(&m, 0, 0);
	expect(moder_due(&m, NOW));
	expect(!moder_is_on(&m));
}
END_TEST

START_TEST(parameters_of_an_idle_one_leave_nothing_due)
{
	struct moder m = moder_of(0, 0);

	change(&m, 100, 4);
	expect(!moder_due(&m, UINT64_MAX));
	moder_add(&m, 1, NOW);
	expect(!moder_due(&m, NOW + 99 * NS_PER_US));
	expect(moder_due(&m, NOW + 100 * NS_PER_US));
}
END_TEST

START_TEST(the_largest_parameters_do_not_overflow)
{
	struct moder m = moder_of(MODER_MAX_USECS, MODER_MAX_FRAMES);
	/* A machine that has been up for 200 years. */
	uint64_t now = 200ULL * 365 * 86400 * NS_PER_SEC;

	moder_add(&m, MODER_MAX_FRAMES - 1, now);
	expect(!moder_due(&m, now + MODER_MAX_USECS * NS_PER_US - 1));
	expect(moder_due(&m, now + MODER_MAX_USECS * NS_PER_US));
	moder_add(&m, 32768, now);
	expect(moder_due(&m, now));
}
END_TEST

/* ---- adaptive ---- */

/* A guest that is done with each packet before the next one comes, `gap_us` later, and sleeps: without
 * delay it would be called for each. Return: calls for `n` packets. */
static unsigned flood(struct moder *m, unsigned n, uint64_t gap_us, uint64_t *now_ns)
{
	unsigned n_calls = 0;

	for (unsigned i = 0; i < n; i++, *now_ns += gap_us * NS_PER_US) {
		if (moder_due(m, *now_ns)) {
			moder_clear(m);
			n_calls++;
		}
		moder_learn(m, 1, *now_ns);
		moder_add(m, 1, *now_ns);
		if (moder_is_on(m) && !moder_due(m, *now_ns))
			continue;
		moder_clear(m);
		n_calls++;
	}
	return n_calls;
}

START_TEST(a_flood_is_signalled_eight_times_less_often_at_least)
{
	static const uint64_t gaps_us[] = {1, 2, 3, 5, 10, 15};
	struct moder m = {0};
	uint64_t now_ns = NOW;

	moder_set(&m, &(struct moder_params){.is_adaptive = true});
	expect(!moder_is_on(&m));
	/* It has learnt after a twentieth of a second. */
	flood(&m, (unsigned)(100000 / gaps_us[_i]), gaps_us[_i], &now_ns);
	expect_le(8 * flood(&m, 100000, gaps_us[_i], &now_ns), 100000);
}
END_TEST

START_TEST(what_was_set_rests_while_it_is_adaptive_and_holds_afterwards)
{
	struct moder m = {0};

	moder_set(&m, &(struct moder_params){.usecs = 50, .frames = 8, .is_adaptive = true});
	expect(!moder_is_on(&m));
	moder_set(&m, &(struct moder_params){.usecs = 50, .frames = 8});
	expect(moder_is_on(&m));
	moder_add(&m, 1, NOW);
	expect(!moder_due(&m, NOW + 49 * NS_PER_US));
	expect(moder_due(&m, NOW + 50 * NS_PER_US));
}
END_TEST

START_TEST(what_is_pending_when_the_delay_changes_keeps_its_publish_time)
{
	struct moder m = {0};
	uint64_t now_ns = NOW, published_ns;

	moder_set(&m, &(struct moder_params){.is_adaptive = true});
	flood(&m, 100000, 1, &now_ns);
	expect_eq(m.params.usecs, 128);
	moder_clear(&m);
	published_ns = now_ns;
	moder_add(&m, 1, published_ns);
	/* A pause: the next completion is signalled at once, and with it the one before. */
	now_ns += 10 * ADAPT_PERIOD_NS;
	moder_learn(&m, 1, now_ns);
	expect_eq(m.deadline_ns, published_ns);
	expect(moder_due(&m, now_ns));
}
END_TEST

static void add_adaptive(TCase *tc)
{
	tcase_add_loop_test(tc, a_flood_is_signalled_eight_times_less_often_at_least, 0, 6);
	tcase_add_test(tc, what_was_set_rests_while_it_is_adaptive_and_holds_afterwards);
	tcase_add_test(tc, what_is_pending_when_the_delay_changes_keeps_its_publish_time);
}

static void add_arithmetic(TCase *tc)
{
	tcase_add_test(tc, nothing_pending_is_never_due);
	tcase_add_test(tc, without_parameters_each_publish_is_due_at_once);
	tcase_add_test(tc, the_call_is_due_at_the_deadline_and_not_before);
	tcase_add_test(tc, later_completions_never_move_the_deadline);
	tcase_add_test(tc, a_steady_trickle_is_signalled_usecs_after_the_first_one);
	tcase_add_test(tc, the_number_of_frames_ends_the_wait_early);
	tcase_add_test(tc, after_a_call_the_next_completion_starts_its_own_deadline);
	tcase_add_test(tc, new_parameters_count_from_the_publish_time_of_what_is_pending);
	tcase_add_test(tc, switched_off_while_pending_the_call_is_due_at_once);
	tcase_add_test(tc, parameters_of_an_idle_one_leave_nothing_due);
	tcase_add_test(tc, the_largest_parameters_do_not_overflow);
}

int main(void)
{
	static const struct suite_case cases[] = {
		{"arithmetic", NULL, NULL, add_arithmetic},
		{"adaptive", NULL, NULL, add_adaptive},
	};

	return suite_run("moder", cases, array_size(cases));
}
