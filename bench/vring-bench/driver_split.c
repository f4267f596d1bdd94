/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver of a split ring (virtio 1.2, 2.7). Chain i always takes the same descriptors and the same
 * avail slot, so the content of the avail ring never changes; shuffled, the chains take the slots in a
 * scattered order.
 */
#include "driver.h"

static uint16_t *used_event(const struct driver *d)
{
	return &d->split.avail->ring[d->s.size];
}

/* Write the descriptors of chain `i`, in the ring or in a table of its own. */
static void write_chain(struct driver *d, unsigned i)
{
	unsigned n = d->s.chain;

	if (d->s.is_indirect) {
		d->split.desc[i] = driver_indirect(d, i);
		return;
	}
	for (unsigned k = 0; k < n; k++) {
		struct vring_desc piece = driver_piece(d, i, k);

		piece.next = (uint16_t)(i * n + k + 1);
		d->split.desc[i * n + k] = piece;
	}
}

/* The avail ring's content, once: position p holds chain p, or a scattered one. */
static void write_avail(struct driver *d)
{
	for (unsigned p = 0; p < d->s.size; p++) {
		unsigned i = p % d->n_chains;

		if (d->s.is_shuffled)
			i = i * 37 % d->n_chains;
		d->split.avail->ring[p] = (uint16_t)(d->s.is_indirect ? i : i * d->s.chain);
	}
}

/* Return: the chain at a free-running position. */
static unsigned chain_at(const struct driver *d, uint16_t pos)
{
	uint16_t head = d->split.avail->ring[pos & (d->s.size - 1)];

	return d->s.is_indirect ? head : head / d->s.chain;
}

static bool init(struct driver *d)
{
	struct driver_split *r = &d->split;

	r->desc = memory_take(d->m, d->s.size * sizeof(*r->desc));
	r->avail = memory_take(d->m, sizeof(*r->avail) + (d->s.size + 1) * sizeof(uint16_t));
	r->used = memory_take(d->m, sizeof(*r->used) + d->s.size * sizeof(*r->used->ring) + 2);
	if (!r->desc || !r->avail || !r->used)
		return false;
	write_avail(d);
	return true;
}

static void describe(const struct driver *d, struct virtq_setup *setup)
{
	setup->desc.v = (uint64_t)(uintptr_t)d->split.desc;
	setup->avail.v = (uint64_t)(uintptr_t)d->split.avail;
	setup->used.v = (uint64_t)(uintptr_t)d->split.used;
}

static uint16_t n_used(const struct driver *d)
{
	return (uint16_t)(__atomic_load_n(&d->split.used->idx, __ATOMIC_ACQUIRE) - d->last_used);
}

static void take_one(struct driver *d)
{
	const struct vring_used_elem *u = &d->split.used->ring[d->last_used & (d->s.size - 1)];

	d->sum += __atomic_load_n(&u->id, __ATOMIC_RELAXED);
	d->sum += __atomic_load_n(&u->len, __ATOMIC_RELAXED);
	driver_read_packet(d, chain_at(d, d->last_used));
	d->last_used++;
}

static unsigned take(struct driver *d, unsigned max)
{
	unsigned n = n_used(d);

	n = n < max ? n : max;
	for (unsigned k = 0; k < n; k++)
		driver_prefetch_packet(d, chain_at(d, (uint16_t)(d->last_used + k)));
	for (unsigned k = 0; k < n; k++)
		take_one(d);
	return n;
}

static void offer(struct driver *d, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		unsigned i = chain_at(d, (uint16_t)(d->avail_idx + k));

		driver_write_packet(d, i);
		write_chain(d, i);
	}
	d->avail_idx = (uint16_t)(d->avail_idx + n);
	__atomic_store_n(&d->split.avail->idx, d->avail_idx, __ATOMIC_RELEASE);
}

static bool calls_on(struct driver *d)
{
	__atomic_store_n(used_event(d), d->last_used, __ATOMIC_RELAXED);
	__atomic_store_n(&d->split.avail->flags, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return n_used(d) == 0;
}

static void calls_off(struct driver *d)
{
	__atomic_store_n(used_event(d), (uint16_t)(d->last_used - 1), __ATOMIC_RELAXED);
	__atomic_store_n(&d->split.avail->flags, VRING_AVAIL_F_NO_INTERRUPT, __ATOMIC_RELAXED);
}

const struct driver_layout driver_split = {init, describe, take, offer, calls_on, calls_off};
