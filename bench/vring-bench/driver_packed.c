/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of a packed ring (virtio 1.2, 2.8). The id of a chain is its number; they come in its order. */
#include "driver.h"

#define AVAIL (1u << VRING_PACKED_DESC_F_AVAIL)
#define USED  (1u << VRING_PACKED_DESC_F_USED)

/* Slots of the ring that a chain takes. */
static unsigned n_slots(const struct driver *d)
{
	return d->s.is_indirect ? 1 : d->s.chain;
}

static void advance(const struct driver *d, uint32_t *slot, bool *wrap, unsigned n)
{
	*slot += n;
	if (*slot < d->s.size)
		return;
	*slot -= d->s.size;
	*wrap = !*wrap;
}

static bool init(struct driver *d)
{
	struct driver_packed *r = &d->packed;

	r->desc = memory_take(d->m, d->s.size * sizeof(*r->desc));
	r->driver = memory_take(d->m, sizeof(*r->driver));
	r->device = memory_take(d->m, sizeof(*r->device));
	r->avail_wrap = r->used_wrap = true;
	return r->desc && r->driver && r->device;
}

static void describe(const struct driver *d, struct virtq_setup *setup)
{
	setup->desc.v = (uint64_t)(uintptr_t)d->packed.desc;
	setup->avail.v = (uint64_t)(uintptr_t)d->packed.driver;
	setup->used.v = (uint64_t)(uintptr_t)d->packed.device;
}

static bool is_used(const struct driver *d)
{
	const struct driver_packed *r = &d->packed;
	uint16_t flags = __atomic_load_n(&r->desc[r->used_slot].flags, __ATOMIC_ACQUIRE);

	return (flags & (AVAIL | USED)) == (r->used_wrap ? AVAIL | USED : 0);
}

static unsigned take(struct driver *d, unsigned max)
{
	struct driver_packed *r = &d->packed;
	unsigned n;

	for (n = 0; n < max && d->last_used != d->avail_idx && is_used(d); n++) {
		const struct vring_packed_desc *u = &r->desc[r->used_slot];

		d->sum += (uint64_t)u->id + u->len;
		driver_prefetch_packet(d, u->id);
		d->last_used++;
		advance(d, &r->used_slot, &r->used_wrap, n_slots(d));
	}
	for (unsigned k = 0; k < n; k++)
		driver_read_packet(d, (unsigned)(uint16_t)(d->last_used - n + k) % d->n_chains);
	return n;
}

/* Write the descriptors of chain `i` into the next slots, but for the flags of the first: they are
 * returned. */
static uint16_t write_chain(struct driver *d, unsigned i)
{
	struct driver_packed *r = &d->packed;
	uint16_t first_flags = 0;

	for (unsigned k = 0; k < n_slots(d); k++) {
		struct vring_packed_desc *at = &r->desc[r->avail_slot];
		struct vring_desc piece =
			d->s.is_indirect ? driver_indirect(d, i) : driver_piece(d, i, k);
		uint16_t flags = (uint16_t)(piece.flags | (r->avail_wrap ? AVAIL : USED));

		at->addr = piece.addr;
		at->len = piece.len;
		at->id = (uint16_t)i;
		if (k == 0)
			first_flags = flags;
		else
			at->flags = flags;
		advance(d, &r->avail_slot, &r->avail_wrap, 1);
	}
	return first_flags;
}

static void offer(struct driver *d, unsigned n)
{
	struct driver_packed *r = &d->packed;
	uint16_t *first = NULL, first_flags = 0;

	for (unsigned k = 0; k < n; k++) {
		unsigned i = d->avail_idx % d->n_chains;
		uint16_t *flags = &r->desc[r->avail_slot].flags, value;

		driver_write_packet(d, i);
		value = write_chain(d, i);
		d->avail_idx++;
		if (!first) {
			first = flags;
			first_flags = value;
		} else {
			__atomic_store_n(flags, value, __ATOMIC_RELAXED);
		}
	}
	__atomic_store_n(first, first_flags, __ATOMIC_RELEASE);
}

static bool calls_on(struct driver *d)
{
	struct driver_packed *r = &d->packed;

	__atomic_store_n(&r->driver->flags, VRING_PACKED_EVENT_FLAG_ENABLE, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return d->last_used == d->avail_idx || !is_used(d);
}

static void calls_off(struct driver *d)
{
	__atomic_store_n(&d->packed.driver->flags, VRING_PACKED_EVENT_FLAG_DISABLE,
			 __ATOMIC_RELAXED);
}

const struct driver_layout driver_packed = {init, describe, take, offer, calls_on, calls_off};
