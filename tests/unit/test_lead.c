/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/lead.h"

#include <check.h>

#include "base/timer.h"
#include "base/util.h"
#include "support/expect.h"
#include "support/suite.h"

#define DEADLINE 1000000000ULL
#define LONG	 (1000 * NS_PER_US)

/* Let the timer be late `n` times, by one after the other of the `n_late` times. */
static void be_late(struct lead *l, unsigned n, const uint64_t *late_us, unsigned n_late)
{
	for (unsigned i = 0; i < n; i++)
		lead_note(l, late_us[i % n_late] * NS_PER_US);
}

static uint64_t lead_of(const struct lead *l, uint64_t delay_ns)
{
	return DEADLINE - lead_wake_ns(l, DEADLINE, delay_ns);
}

START_TEST(begins_without)
{
	struct lead l = {0};

	expect_eq(lead_of(&l, LONG), 0);
}
END_TEST

START_TEST(follows_a_steady_timer)
{
	struct lead l = {0};
	const uint64_t slow[] = {30}, fast[] = {5};

	be_late(&l, 100, slow, 1);
	expect_ge(lead_of(&l, LONG), 29 * NS_PER_US);
	expect_le(lead_of(&l, LONG), 32 * NS_PER_US);
	be_late(&l, 100, fast, 1);
	expect_ge(lead_of(&l, LONG), 4 * NS_PER_US);
	expect_le(lead_of(&l, LONG), 7 * NS_PER_US);
}
END_TEST

START_TEST(covers_most_and_not_the_worst)
{
	struct lead l = {0};
	const uint64_t mixed[] = {10, 20, 10, 20, 10, 20, 10, 500};

	be_late(&l, 1000, mixed, array_size(mixed));
	expect_ge(lead_of(&l, LONG), 18 * NS_PER_US);
	expect_le(lead_of(&l, LONG), 25 * NS_PER_US);
}
END_TEST

START_TEST(is_bounded_by_half_of_the_delay_and_by_itself)
{
	struct lead l = {0};
	const uint64_t late[] = {100000};

	be_late(&l, 1000, late, 1);
	expect_eq(lead_of(&l, LONG), LEAD_MAX_NS);
	expect_eq(lead_of(&l, 10 * NS_PER_US), 5 * NS_PER_US);
	expect_eq(lead_of(&l, 0), 0);
}
END_TEST

static void add_arithmetic(TCase *tc)
{
	tcase_add_test(tc, begins_without);
	tcase_add_test(tc, follows_a_steady_timer);
	tcase_add_test(tc, covers_most_and_not_the_worst);
	tcase_add_test(tc, is_bounded_by_half_of_the_delay_and_by_itself);
}

int main(void)
{
	static const struct suite_case cases[] = {{"arithmetic", NULL, NULL, add_arithmetic}};

	return suite_run("lead", cases, array_size(cases));
}
