/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/expect.h"

#define TIMEOUT_SECONDS 60
#define MAX_CASES	32

static void add_case(Suite *suite, const struct suite_case *c, const char *name,
		     void (*use_layout)(void))
{
	TCase *tc = tcase_create(name);

	/* Setups run in the order in which they were added. */
	if (use_layout)
		tcase_add_checked_fixture(tc, use_layout, NULL);
	tcase_add_checked_fixture(tc, c->setup, c->teardown);
	tcase_set_timeout(tc, TIMEOUT_SECONDS);
	c->add(tc);
	suite_add_tcase(suite, tc);
}

static int run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int n_failed;

	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int suite_run(const char *name, const struct suite_case *cases, unsigned n)
{
	Suite *suite = suite_create(name);

	for (unsigned i = 0; i < n; i++)
		add_case(suite, &cases[i], cases[i].name, NULL);
	return run(suite);
}

int suite_run_rings(const char *name, const struct suite_ring_case *cases, unsigned n)
{
	static char names[2 * MAX_CASES][64]; /* check keeps pointers to them */
	Suite *suite = suite_create(name);

	expect_le(n, MAX_CASES);
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < 2; k++) {
			char *text = names[2 * i + k];

			if (!(cases[i].layouts & (k ? LAYOUT_PACKED : LAYOUT_SPLIT)))
				continue;
			snprintf(text, sizeof(names[0]), "%s, %s", cases[i].base.name,
				 k ? "packed" : "split");
			add_case(suite, &cases[i].base, text,
				 k ? layout_use_packed : layout_use_split);
		}
	}
	return run(suite);
}
