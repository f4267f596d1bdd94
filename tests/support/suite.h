/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The main() of a unit test that has several groups of cases.
 */
#ifndef SUPPORT_SUITE_H
#define SUPPORT_SUITE_H

#include <check.h>

struct suite_case {
	const char *name;
	void (*setup)(void);	/* before each test */
	void (*teardown)(void); /* after it */
	void (*add)(TCase *tc);
};

/* Run the cases. Return: the exit code. */
int suite_run(const char *name, const struct suite_case *cases, unsigned n);

#endif
