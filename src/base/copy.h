/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copy of short frames, without a call and without a branch on each byte: two overlapping pieces end
 * it. No state; for the data path.
 */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stdint.h>
#include <string.h>

/* The shortest that copy_short() takes. */
#define COPY_SHORT_MIN 16

/* Copy `len` >= COPY_SHORT_MIN bytes; the two must not overlap. */
static inline void copy_short(char *to, const char *from, uint32_t len)
{
	uint32_t at = 0;

	for (; at + 32 <= len; at += 32)
		memcpy(to + at, from + at, 32);
	if (at + 16 <= len)
		memcpy(to + at, from + at, 16);
	/* The last 16 bytes, of which some are there already. */
	memcpy(to + len - 16, from + len - 16, 16);
}

#endif
