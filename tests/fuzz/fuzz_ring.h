/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fuzz targets of both ring layouts share: guest memory, and a device that takes what is
 * there. The first byte of the input chooses features and direction, the rest is laid over guest
 * memory, rings included, and between the device's steps more of it is laid over the part that
 * `flips`.
 *
 * Whatever is there: each segment that a chain hands out lies in guest memory, no more heads are
 * completed than were popped, and no more are published than the ring has.
 */
#ifndef FUZZ_RING_H
#define FUZZ_RING_H

#include <stddef.h>
#include <stdint.h>

/* Where the parts of a ring lie, as the frontend sees them. */
#define FUZZ_GPA      0x10000
#define FUZZ_UVA      0x7f0000000000
#define FUZZ_DESC_AT  0
#define FUZZ_AVAIL_AT 256
#define FUZZ_USED_AT  512

struct fuzz_ring {
	uint32_t size;	   /* entries */
	uint64_t features; /* besides those that the input chooses */
	uint32_t base;
	size_t flip_at, flip_len;
};

/* Run one input. @size: > 0 */
void fuzz_ring_run(const struct fuzz_ring *r, const uint8_t *data, size_t size);

#endif
