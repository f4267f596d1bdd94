/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guest buffers for one frame: popped chains, from the oldest one on, that together hold it.
 * Called by the worker in its receive burst; blocks nothing and owns nothing: a reservation is
 * what the ring has popped and not completed, and virtq_unpop() to used_idx takes it back.
 */
#ifndef NET_RESERVE_H
#define NET_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

struct pair;

struct reservation {
	uint32_t n_chains;
	uint32_t n_descs;
	uint32_t n_descs_longest; /* of the longest of these chains */
	uint64_t len;
	bool is_all;	    /* the guest can offer no more than this */
	bool was_restarted; /* the pool has been emptied for this frame */
};

/*
 * Reserve chains for `total` bytes. Malformed chains in the way are given back to the guest.
 * @r: what there is, also when it is not enough
 * Return: whether `r` holds `total` bytes.
 */
bool reserve(struct pair *p, uint64_t total, struct reservation *r);

/* Return: whether this burst has given back so many malformed chains that the next one must go on. */
bool reserve_must_pause(const struct pair *p);

#endif
