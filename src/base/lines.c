/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

void *lines_alloc(size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes) ||
	    __builtin_add_overflow(bytes, CACHELINE - 1, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	bytes -= bytes % CACHELINE;
	p = aligned_alloc(CACHELINE, bytes);
	if (p)
		memset(p, 0, bytes);
	return p;
}
