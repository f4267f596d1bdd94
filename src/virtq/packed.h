/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What only the packed ring does (virtio 1.2, 2.8): where heads are found, how used descriptors and
 * event suppression structures are written, and where a ring goes on. Private to `virtq`; the rules
 * of chains are in chain.h, the positions and their life in virtq.c.
 *
 * Positions count chains here, as in a split ring, and are ours alone: the guest knows places, that
 * is slots and wrap bits (state.h). A chain takes as many slots as it has descriptors, and is given
 * back in the first of them. There is no avail index: how far the guest has got shows in the
 * descriptors' flags, which are looked at ahead of time no further than PACKED_LOOK_AHEAD chains.
 *
 * Slots belong to the guest from their publication on. A chain that reaches into those that are
 * still ours has no end that could be believed, and breaks the queue.
 */
#ifndef VIRTQ_PACKED_H
#define VIRTQ_PACKED_H

#include "virtq/state.h"

#define PACKED_LOOK_AHEAD 256

/* Translate the ring's parts with their full extents. Return: 0, -EINVAL misaligned, -EFAULT. */
int packed_map(struct virtq *vq, const struct virtq_setup *setup);

/*
 * Find out where a ring goes on, by the descriptors, by its record, and by the frontend's word; break
 * the queue when they do not agree. Finishes what a killed process has left undone.
 */
void packed_resume(struct virtq *vq, uint32_t base);

/* Return: the base that tells a frontend where the ring stands, the same in both halves. */
uint32_t packed_base(const struct virtq *vq);

/*
 * Return: the place that a frontend means; 0 when the ring has no such slot. What is in flight is
 * offered again, so the used half counts. Some frontends know the other half only, and leave it 0.
 */
uint32_t packed_place_of(const struct packed_ring *r, uint32_t base);

/* Look how far the guest has got. Return: the number of heads that can be popped and were seen. */
uint16_t packed_n_avail(struct virtq *vq);

/* Return: whether there is a head behind those that were seen. */
bool packed_has_more(const struct virtq *vq);

/* Pop at most `max` heads, to positions last_avail on. Return: how many there were, and had room. */
unsigned packed_pop(struct virtq *vq, unsigned max);

/* Hand back the newest heads, from position `pos` on. */
void packed_unpop(struct virtq *vq, uint16_t pos);

void packed_complete(struct virtq *vq, uint16_t pos, uint32_t len);
void packed_publish(struct virtq *vq);

/* Return: whether the guest wants a call for what is published since packed_called(). */
bool packed_call_wanted(const struct virtq *vq);
void packed_called(struct virtq *vq);

void packed_kicks_off(struct virtq *vq);
void packed_kicks_on(struct virtq *vq);

/* ---- places ---- */

static inline uint32_t packed_slot(const struct packed_ring *r, uint32_t place)
{
	return place < r->size ? place : place - r->size;
}

/* Return: the wrap bit of the lap. */
static inline bool packed_wrap(const struct packed_ring *r, uint32_t place)
{
	return place < r->size;
}

/* Return: the place `n` slots on, 0..2 * size. */
static inline uint32_t packed_after(const struct packed_ring *r, uint32_t place, uint32_t n)
{
	place += n;
	return place < 2 * r->size ? place : place - 2 * r->size;
}

/* Return: slots from one place to another one behind it, 0..2 * size - 1. */
static inline uint32_t packed_distance(const struct packed_ring *r, uint32_t from, uint32_t to)
{
	return to >= from ? to - from : to - from + 2 * r->size;
}

/* The two flags that say whose a descriptor is (2.8.1). */
#define PACKED_AVAIL (1u << VRING_PACKED_DESC_F_AVAIL)
#define PACKED_USED  (1u << VRING_PACKED_DESC_F_USED)
#define PACKED_OWNER (PACKED_AVAIL | PACKED_USED)

static inline uint16_t packed_avail_flags(bool wrap)
{
	return wrap ? PACKED_AVAIL : PACKED_USED;
}

static inline uint16_t packed_used_flags(bool wrap)
{
	return wrap ? PACKED_OWNER : 0;
}

#endif
