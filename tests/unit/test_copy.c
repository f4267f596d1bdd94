/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/copy.h"

#include <check.h>

#include "support/suite.h"

#define MAX_LEN 300

/* Every length, at every alignment: all bytes arrive, and none is written beside them. */
START_TEST(short_copy_is_whole_and_nothing_more)
{
	char from[MAX_LEN + 64], to[MAX_LEN + 64], expected[MAX_LEN + 64];

	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (char)(i * 7 + 1);
	for (uint32_t len = COPY_SHORT_MIN; len <= MAX_LEN; len++) {
		const uint32_t at = len % 32;

		memset(to, 0, sizeof(to));
		memset(expected, 0, sizeof(expected));
		memcpy(expected + at, from + 1, len);
		copy_short(to + at, from + 1, len);
		ck_assert_mem_eq(to, expected, sizeof(to));
	}
}
END_TEST

static void add_all(TCase *tc)
{
	tcase_add_test(tc, short_copy_is_whole_and_nothing_more);
}

int main(void)
{
	static const struct suite_case cases[] = {{"copy", NULL, NULL, add_all}};

	return suite_run("copy", cases, 1);
}
