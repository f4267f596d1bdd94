/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Assertions that cost nothing while they hold. Those of check write to a file each time, which a
 * loop of a million rounds cannot afford; everything in tests/support uses these instead. Programs
 * that tests start beside the daemon have no runner of check's to report to: they say so first.
 */
#ifndef SUPPORT_EXPECT_H
#define SUPPORT_EXPECT_H

#include <check.h>

/* This is the program `name` and no test: what does not hold is one line on stderr, and exit 1. */
void expect_as_program(const char *name);

/* Of a program: print the line and exit. Of a test: return. */
__attribute__((format(printf, 1, 2))) void expect_failed(const char *format, ...);

#define expect_msg(condition, ...)                                                                 \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0)) {                                           \
			expect_failed(__VA_ARGS__);                                                \
			ck_abort_msg(__VA_ARGS__);                                                 \
		}                                                                                  \
	} while (0)

#define expect(condition) expect_msg(condition, "'%s' does not hold", #condition)

#define expect_op(a, op, b)                                                                        \
	do {                                                                                       \
		long long expect_a = (long long)(a), expect_b = (long long)(b);                    \
                                                                                                   \
		expect_msg(expect_a op expect_b, "'%s %s %s' does not hold: %lld, %lld", #a, #op,  \
			   #b, expect_a, expect_b);                                                \
	} while (0)

#define expect_eq(a, b) expect_op(a, ==, b)
#define expect_ne(a, b) expect_op(a, !=, b)
#define expect_lt(a, b) expect_op(a, <, b)
#define expect_le(a, b) expect_op(a, <=, b)
#define expect_gt(a, b) expect_op(a, >, b)
#define expect_ge(a, b) expect_op(a, >=, b)

#endif
