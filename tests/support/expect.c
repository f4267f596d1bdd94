/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/expect.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *program_name; /* NULL: a test */

void expect_as_program(const char *name)
{
	program_name = name;
}

void expect_failed(const char *format, ...)
{
	va_list args;

	if (!program_name)
		return;
	fprintf(stderr, "%s: ", program_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_FAILURE);
}
