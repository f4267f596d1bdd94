/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The main() of a unit test that has several groups of cases. Those with rings run once for each
 * layout of the rings, or for one of them.
 */
#ifndef SUPPORT_SUITE_H
#define SUPPORT_SUITE_H

#include <check.h>

#include "support/layout.h"

struct suite_case {
	const char *name;
	void (*setup)(void);	/* before each test */
	void (*teardown)(void); /* after it */
	void (*add)(TCase *tc);
};

struct suite_ring_case {
	struct suite_case base;
	enum layout layouts;
};

/* Run the cases. Return: the exit code. */
int suite_run(const char *name, const struct suite_case *cases, unsigned n);
int suite_run_rings(const char *name, const struct suite_ring_case *cases, unsigned n);

#endif
