/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest's memory as a frontend shares it: regions in memfds, mapped here. The three kinds of
 * address of a byte (guest-physical, the frontend's, ours) and its offset in the file are all
 * different, so that a backend that forgets to translate one faults or reads something else.
 *
 * Here the regions are mapped at the distances that their guest-physical addresses have, holes
 * included: what crosses from one region to the adjacent one is contiguous for the test. In the
 * file they lie in reverse order.
 */
#ifndef SUPPORT_GUEST_H
#define SUPPORT_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vhost-user-xdp/vhost_user.h"

/* The allocator stays this far away from the edges between regions: they are for tests. */
#define GUEST_EDGE (64u << 10)

struct guest_layout {
	unsigned n_regions;   /* 1..8; 0: 2 */
	uint64_t region_size; /* bytes, whole pages; 0: 16 MiB */
	uint64_t hole;	      /* bytes between regions, whole pages; 0: they are adjacent */
	bool is_last_apart;   /* the last region is in a memfd of its own */
};

struct guest {
	struct vhost_user_region regions[VHOST_USER_MAX_REGIONS];
	int fds[VHOST_USER_MAX_REGIONS]; /* by region; the same memfd, or a copy of its number */
	unsigned n_regions;
	int memfd, memfd_apart; /* -1: none */
	char *map;		/* of regions[0].gpa and all that follows */
	size_t map_size;
	uint64_t next; /* guest-physical: what the allocator gives out next */
};

/* @layout: NULL: two adjacent regions of 16 MiB */
void guest_init(struct guest *g, const struct guest_layout *layout);

/* Unmap and close. Accepts a zero-initialised one. */
void guest_fini(struct guest *g);

/* Write the message of SET_MEM_TABLE. @fds: gets n_regions fds, still the guest's */
void guest_fill_table(const struct guest *g, struct vhost_user_mem_table *table, int *fds);

/* Return: our pointer to a guest-physical address. */
void *guest_at(const struct guest *g, uint64_t gpa);

/* Return: the frontend's address of a guest-physical one. */
uint64_t guest_uva(const struct guest *g, uint64_t gpa);

/* Return: the guest-physical address of `len` fresh bytes, zeroed, all in one region. */
uint64_t guest_alloc(struct guest *g, uint64_t len, uint64_t align);

/* The same at an odd address. */
uint64_t guest_alloc_odd(struct guest *g, uint64_t len);

/* Return: the end of region i, guest-physical. */
uint64_t guest_edge(const struct guest *g, unsigned i);

#endif
