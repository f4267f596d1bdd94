/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest in memory for tests of virtqueues and bursts: its regions as the daemon maps them, and
 * the driver's side of rings in it. No socket: what a frontend would say is in `struct virtq_setup`.
 *
 * The shapes are what such tests loop over: {direct, indirect} x {event index, flags} x sizes x
 * the position at which a ring starts, one of them close to the wrap of the indices. Packed rings have
 * sizes of their own.
 */
#ifndef SUPPORT_RING_H
#define SUPPORT_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/gmem.h"
#include "support/driver.h"
#include "support/expect.h"
#include "support/guest.h"
#include "virtq/journal.h"
#include "virtq/virtq.h"

/* The first ones are those of small rings. Large ones cost a test some 10 ms under TSan. */
#define RING_N_SMALL_SHAPES 24
#ifdef __SANITIZE_THREAD__
#define RING_N_SHAPES 26
#else
#define RING_N_SHAPES 32
#endif
/* Bits of a shape's number. */
#define RING_SHAPE_INDIRECT  1
#define RING_SHAPE_EVENT_IDX 2
#define RING_SHAPE_AT_ZERO   4
/* An indirect table of ring_offer() holds this many; longer chains get a table of their own. */
#define RING_TABLE_SEGS 4
#define RING_MAX_SEGS	64

struct ring_shape {
	uint32_t size;
	uint16_t base; /* both indices at the start; packed: slots that have been used */
	bool is_indirect;
	bool has_event_idx;
};

/* Return: shape `i`, 0..31, of the layout that the test is to run on. */
struct ring_shape ring_shape(int i);

struct ring_guest {
	struct guest guest;
	struct gmem *mem; /* the same memory, mapped a second time */
};

/* Four regions of 4 MiB; the last one is in a file of its own. @hole: bytes between them, whole pages */
void ring_guest_init(struct ring_guest *g, uint64_t hole);

/* Let go of both mappings; nobody else may have a reference any more. */
void ring_guest_fini(struct ring_guest *g);

/* Return: the guest-physical address of a byte of the daemon's mapping. */
uint64_t ring_gpa_of(const struct ring_guest *g, const void *host);

struct ring {
	struct ring_guest *guest;
	struct ring_shape shape;
	struct driver_ring drv;
	uint64_t features; /* with the ring's own bits */
	uint64_t tables;   /* guest-physical: an indirect table for each position, none aligned */
	struct journal *journal; /* packed: the record of where it stands */
};

/* Make an empty ring. @features: negotiated virtio bits besides those of the shape */
void ring_init(struct ring *r, struct ring_guest *g, const struct ring_shape *shape,
	       uint64_t features);

void ring_fini(struct ring *r);

/* The guest starts anew: an empty ring at the same place, at its start. Its record stays. */
void ring_reset(struct ring *r);

/* Return: what SET_VRING_NUM, _ADDR and _BASE say of it: the base is that of the start. */
struct virtq_setup ring_setup(const struct ring *r);

/* Return: the record of where a packed ring stands. */
struct journal_ring *ring_record(const struct ring *r);

/* Return: the position that the device's indices have at the start. */
uint16_t ring_first(const struct ring *r);

/* Add a chain, direct or indirect as the shape says; the device does not see it yet.
 * Return: its head. */
uint16_t ring_offer(struct ring *r, const struct driver_seg *segs, unsigned n, uint64_t cookie);

/* Add a chain of fresh buffers of these lengths. Its cookie is the first one's address. */
uint16_t ring_offer_lens(struct ring *r, const uint32_t *lens, unsigned n, bool is_writable);

/* Add a fresh buffer of `len` bytes. */
uint16_t ring_offer_one(struct ring *r, uint32_t len, bool is_writable);

/* Make fresh buffers. */
void ring_alloc_segs(struct ring_guest *g, struct driver_seg *segs, const uint32_t *lens,
		     unsigned n, bool is_writable);

/* Copy a frame into the buffers of a chain that is to be sent, as many bytes as they hold. */
void ring_fill_segs(struct ring_guest *g, const struct driver_seg *segs, unsigned n,
		    const void *src);

/* Write descriptor `i` of a split ring's table as it is given. */
void ring_write_desc(struct ring *r, uint16_t i, uint64_t gpa, uint32_t len, uint16_t flags,
		     uint16_t next);

/* Have check run a test once for each shape. */
#define add_for_all_shapes(tc, test)   tcase_add_loop_test(tc, test, 0, RING_N_SHAPES)
#define add_for_small_shapes(tc, test) tcase_add_loop_test(tc, test, 0, RING_N_SMALL_SHAPES)

#endif
