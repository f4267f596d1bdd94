/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/suite.h"

#include <stdlib.h>

#define TIMEOUT_SECONDS 60

int suite_run(const char *name, const struct suite_case *cases, unsigned n)
{
	Suite *suite = suite_create(name);
	SRunner *runner = srunner_create(suite);
	int n_failed;

	for (unsigned i = 0; i < n; i++) {
		TCase *tc = tcase_create(cases[i].name);

		tcase_add_checked_fixture(tc, cases[i].setup, cases[i].teardown);
		tcase_set_timeout(tc, TIMEOUT_SECONDS);
		cases[i].add(tc);
		suite_add_tcase(suite, tc);
	}
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
