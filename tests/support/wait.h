/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time in tests: conditions with deadlines instead of sleeps, and repeat counts. A deadline grows
 * under a sanitizer, as everything does there.
 */
#ifndef SUPPORT_WAIT_H
#define SUPPORT_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "support/expect.h"

/* For what must come at all; only a fault makes a test wait that long. */
#define WAIT_LONG_MS 5000
/* For what the contract wants within 100 ms and without further events. The rest is for a machine
 * that is busy with something else: what was lost never comes, as nothing here ticks. */
#define WAIT_PROMPT_MS 400
/* How long nothing may come before a test believes that nothing will. */
#define WAIT_QUIET_MS 60

/* Return: CLOCK_MONOTONIC, nanoseconds. */
uint64_t wait_now_ns(void);

/* Return: a time span as long as this build needs it. */
unsigned wait_scaled_ms(unsigned ms);

/* Sleep; only for "nothing happens meanwhile". */
void wait_pause_us(unsigned us);

/* Return: whether the fd became readable (or reached its end) within the time. */
bool wait_readable(int fd, unsigned ms);

/* Return: whether VUX_LONG=1 asks for the full number of repeats. */
bool wait_is_long(void);

/*
 * How often a loop runs: `full` times when VUX_LONG=1 is set, else `reduced` times, which is
 * printed once for each call.
 */
unsigned wait_repeats(const char *what, unsigned reduced, unsigned full);

/* Wait until the condition holds; the test fails when it does not within `ms`. */
#define wait_until(condition, ms)                                                                  \
	do {                                                                                       \
		uint64_t wait_end = wait_now_ns() + wait_scaled_ms(ms) * 1000000ULL;               \
                                                                                                   \
		while (!(condition)) {                                                             \
			expect_msg(wait_now_ns() < wait_end, "not within %u ms: %s",               \
				   wait_scaled_ms(ms), #condition);                                \
			wait_pause_us(100);                                                        \
		}                                                                                  \
	} while (0)

#endif
