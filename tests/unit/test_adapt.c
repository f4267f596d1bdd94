/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/adapt.h"

#include <check.h>

#include "base/timer.h"
#include "base/util.h"
#include "support/expect.h"
#include "support/suite.h"

#define STEP_NS (20 * NS_PER_US)

static struct adapt adapt;
static uint64_t now_ns;

static void set_up(void)
{
	adapt_reset(&adapt);
	now_ns = 1000 * NS_PER_US;
}

static uint32_t usecs(void)
{
	return adapt_level(&adapt)->usecs;
}

/* Packets that come as they come, `rate` in each step. */
static void stream(uint32_t rate, unsigned n_periods)
{
	const uint64_t end_ns = now_ns + n_periods * ADAPT_PERIOD_NS;

	for (; now_ns < end_ns; now_ns += STEP_NS)
		adapt_note(&adapt, rate, now_ns);
}

/* One request after the other: each takes `base_us`, and the delay. Return: the mean delay, us. */
static double request_response(uint64_t base_us, unsigned n_periods)
{
	const uint64_t end_ns = now_ns + n_periods * ADAPT_PERIOD_NS;
	uint64_t sum = 0, n = 0;

	for (; now_ns < end_ns; now_ns += (base_us + usecs()) * NS_PER_US) {
		adapt_note(&adapt, 1, now_ns);
		sum += usecs();
		n++;
	}
	return (double)sum / (double)n;
}

START_TEST(it_begins_without_delay)
{
	expect_eq(usecs(), 0);
	expect_eq(adapt_level(&adapt)->frames, 0);
}
END_TEST

START_TEST(a_stream_gets_the_longest_delay_and_keeps_it)
{
	unsigned n_longest = 0;

	stream(10, 20);
	expect_eq(usecs(), 128);
	for (unsigned i = 0; i < 1000; i++) {
		stream(10, 1);
		n_longest += usecs() == 128;
	}
	expect(n_longest > 980);
}
END_TEST

/* It costs a tenth at most, also from the start. */
START_TEST(requests_that_wait_for_the_answer_are_hardly_delayed)
{
	static const uint64_t base_us[] = {15, 20, 30, 40};

	expect(request_response(base_us[_i], 250) < (double)base_us[_i] / 10);
	expect(request_response(base_us[_i], 2500) < (double)base_us[_i] / 50);
}
END_TEST

START_TEST(few_packets_are_never_delayed)
{
	for (unsigned i = 0; i < 5000; i++, now_ns += 60 * NS_PER_US) {
		adapt_note(&adapt, 1, now_ns);
		expect_eq(usecs(), 0);
	}
}
END_TEST

START_TEST(the_first_packet_after_a_pause_is_not_delayed)
{
	stream(10, 20);
	expect_eq(usecs(), 128);
	now_ns += 3 * ADAPT_PERIOD_NS;
	expect(adapt_note(&adapt, 1, now_ns));
	expect_eq(usecs(), 0);
}
END_TEST

START_TEST(a_stream_that_ends_in_requests_is_given_up_in_two_periods)
{
	stream(10, 20);
	request_response(30, 2);
	expect_eq(usecs(), 0);
	expect(request_response(30, 250) < 3);
}
END_TEST

/* A delay that was found when it cost nothing is left when it does. */
START_TEST(a_delay_that_has_begun_to_cost_is_left)
{
	unsigned n_longest = 0;

	stream(1, 20);
	expect_eq(usecs(), 128);
	/* The rate is the same at that delay, and twice as high without any. */
	for (unsigned i = 0; i < 500000; i++, now_ns += STEP_NS) {
		adapt_note(&adapt, usecs() >= 128 ? 1 : 2, now_ns);
		n_longest += usecs() >= 128;
	}
	expect(n_longest < 100000);
}
END_TEST

START_TEST(a_jump_of_the_clock_does_no_harm)
{
	stream(10, 20);
	adapt_note(&adapt, 1, UINT64_MAX - ADAPT_PERIOD_NS - 1);
	expect_eq(usecs(), 0);
}
END_TEST

static void add_all(TCase *tc)
{
	tcase_add_test(tc, it_begins_without_delay);
	tcase_add_test(tc, a_stream_gets_the_longest_delay_and_keeps_it);
	tcase_add_loop_test(tc, requests_that_wait_for_the_answer_are_hardly_delayed, 0, 4);
	tcase_add_test(tc, few_packets_are_never_delayed);
	tcase_add_test(tc, the_first_packet_after_a_pause_is_not_delayed);
	tcase_add_test(tc, a_stream_that_ends_in_requests_is_given_up_in_two_periods);
	tcase_add_test(tc, a_delay_that_has_begun_to_cost_is_left);
	tcase_add_test(tc, a_jump_of_the_clock_does_no_harm);
}

int main(void)
{
	static const struct suite_case cases[] = {{"adapt", set_up, NULL, add_all}};

	return suite_run("adapt", cases, array_size(cases));
}
