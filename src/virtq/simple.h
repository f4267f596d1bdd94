/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The batch path of pop: most chains are one descriptor, and most rings hold nothing else. Eight
 * descriptors at a time are judged by arithmetic without branches, which the compiler turns into vector
 * instructions, the widest that the processor has. What is recognised here is right by the rules of
 * chain.h; all else is left to the walk there, which alone says what is malformed.
 *
 * Private to `virtq`; the ring layouts copy descriptors out of the ring, once, and hand them over.
 */
#ifndef VIRTQ_SIMPLE_H
#define VIRTQ_SIMPLE_H

#include "virtq/state.h"

#define SIMPLE_BATCH 8

/* Descriptors as the ring has them, two words each: the address; length, flags and what else there is.
 * Those beyond the last one are zero. */
struct simple_descs {
	uint64_t word[2 * SIMPLE_BATCH] __attribute__((aligned(64)));
};

/* What the second word of a simple one looks like. */
struct simple_rules {
	uint64_t mask, want; /* of the flags, at their place */
};

/*
 * Take chains of one descriptor to positions `pos` on, as long as each is simple: by the rules, not
 * empty, in one region of memory, which is that of the first.
 * @heads: the chains' heads, or ids
 * @n: how many there are, 1..SIMPLE_BATCH
 * Return: how many were taken, 0..n.
 */
unsigned simple_take(struct virtq *vq, uint16_t pos, const struct simple_descs *d,
		     const uint16_t *heads, unsigned n, const struct simple_rules *rules);

#endif
