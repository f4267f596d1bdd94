/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/packed.h"

#include <errno.h>
#include <string.h>

#include "virtq/chain.h"
#include "virtq/journal.h"
#include "virtq/shared.h"
#include "virtq/simple.h"

/* Descriptors are fetched this many slots ahead of the walk: four to a cache line. */
#define PREFETCH_SLOTS 16

#define EVENT_ALIGN 4

static const char no_end[] = "a chain reaches into descriptors that are not the guest's";
static const char taken_back[] = "a descriptor that was offered is taken back";

int packed_map(struct virtq *vq, const struct virtq_setup *setup)
{
	struct packed_ring *r = &vq->packed;
	const uint64_t event = sizeof(struct vring_packed_desc_event);
	int err = 0;

	r->size = setup->size;
	r->journal = setup->journal;
	r->desc = virtq_map_part(setup->mem, setup->desc,
				 (uint64_t)setup->size * sizeof(struct vring_packed_desc),
				 VRING_DESC_ALIGN_SIZE, &err);
	r->driver = virtq_map_part(setup->mem, setup->avail, event, EVENT_ALIGN, &err);
	r->device = virtq_map_part(setup->mem, setup->used, event, EVENT_ALIGN, &err);
	return err;
}

static uint16_t off_wrap(const struct packed_ring *r, uint32_t place)
{
	return (uint16_t)(packed_slot(r, place) | (uint32_t)packed_wrap(r, place) << 15);
}

uint32_t packed_base(const struct virtq *vq)
{
	return off_wrap(&vq->packed, vq->packed.used_at) * 0x10001u;
}

uint32_t packed_place_of(const struct packed_ring *r, uint32_t base)
{
	uint32_t half = base >> 16 ? base >> 16 : base;
	uint32_t slot = half & 0x7fff;

	if (slot >= r->size)
		return 0;
	return half & 0x8000 ? slot : slot + r->size;
}

/* ---- heads ---- */

/* Return: how many slots from `place` on may hold what the guest offers: the others are ours still. */
static uint32_t room_at(const struct packed_ring *r, uint32_t place)
{
	return r->size - packed_distance(r, r->used_at, place);
}

/* Look at the descriptor at a place. Return: whether it is offered; `d` is a copy of it then. */
static inline bool poll_at(const struct packed_ring *r, uint32_t place, struct vring_desc *d)
{
	return shared_poll_packed(d, &r->desc[packed_slot(r, place)], PACKED_OWNER,
				  packed_avail_flags(packed_wrap(r, place)));
}

/*
 * Step over the chain that begins with `d`, at a place with `room` slots.
 * Return: its length, or 0 when it has no end there.
 */
static uint32_t measure_chain(const struct packed_ring *r, uint32_t place, uint32_t room,
			      struct vring_desc *d)
{
	uint32_t n = 1;

	for (; d->flags & VRING_DESC_F_NEXT; n++) {
		if (n == room)
			return 0;
		shared_read_packed(d, &r->desc[packed_slot(r, packed_after(r, place, n))]);
	}
	return n;
}

uint16_t packed_n_avail(struct virtq *vq)
{
	struct packed_ring *r = &vq->packed;
	uint16_t n_seen = (uint16_t)(vq->avail_idx - vq->last_avail);
	/* One more in any case: who waits for more than are seen must get to see them. */
	unsigned n_more = n_seen < PACKED_LOOK_AHEAD ? PACKED_LOOK_AHEAD - n_seen : 1;
	uint32_t room = room_at(r, r->seen_at);
	struct vring_desc d;

	for (; n_more > 0 && room > 0 && poll_at(r, r->seen_at, &d); n_more--) {
		uint32_t n = measure_chain(r, r->seen_at, room, &d);

		if (unlikely(n == 0)) {
			/* Those before it are good: packed_pop() comes to it in its turn. */
			if (vq->avail_idx == vq->last_avail)
				virtq_break(vq, no_end);
			break;
		}
		r->seen_at = packed_after(r, r->seen_at, n);
		room -= n;
		vq->avail_idx++;
	}
	return (uint16_t)(vq->avail_idx - vq->last_avail);
}

bool packed_has_more(const struct virtq *vq)
{
	const struct packed_ring *r = &vq->packed;
	struct vring_desc d;

	return room_at(r, r->seen_at) > 0 && poll_at(r, r->seen_at, &d);
}

/* What is popped has been seen. */
static void note_seen(struct virtq *vq, unsigned n_popped)
{
	if (n_popped <= (uint16_t)(vq->avail_idx - vq->last_avail))
		return;
	vq->avail_idx = (uint16_t)(vq->last_avail + n_popped);
	vq->packed.seen_at = vq->packed.avail_at;
}

/* Take simple chains from position `pos` on, a batch at most. Return: how many, 0..n. */
static unsigned pop_simple(struct virtq *vq, uint16_t pos, unsigned n)
{
	struct packed_ring *r = &vq->packed;
	const uint16_t kind = VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT | VRING_DESC_F_WRITE;
	const uint16_t owner = packed_avail_flags(packed_wrap(r, r->avail_at));
	/* Whose they are is judged with the rest. */
	const struct simple_rules rules = {
		.mask = (uint64_t)(PACKED_OWNER | kind) << 48,
		.want = (uint64_t)(owner | vq->write_flag) << 48,
	};
	const struct vring_packed_desc *at = &r->desc[packed_slot(r, r->avail_at)];
	struct simple_descs descs;
	uint16_t ids[SIMPLE_BATCH];

	n = min_of(n, SIMPLE_BATCH + 0u);
	n = min_of(n, r->size - packed_slot(r, r->avail_at));
	if (n < SIMPLE_BATCH)
		memset(&descs, 0, sizeof(descs));
	for (unsigned i = 0; i < n; i++)
		ids[i] = shared_copy_packed(&descs.word[2 * i], &at[i]);
	n = simple_take(vq, pos, &descs, ids, n, &rules);
	r->avail_at = packed_after(r, r->avail_at, n);
	return n;
}

/* Take any chain. Return: whether there was one, room for it, and the ring is sound. */
static bool pop_one(struct virtq *vq, uint16_t pos, struct chain_table *table)
{
	struct packed_ring *r = &vq->packed;
	struct virtq_chain *c = virtq_chain_at(vq, pos);
	struct vring_desc d;
	int err;

	if (!poll_at(r, r->avail_at, &d)) {
		/* What was seen has been there. */
		if (unlikely((int16_t)(vq->avail_idx - pos) > 0))
			virtq_break(vq, taken_back);
		return false;
	}
	table->first = packed_slot(r, r->avail_at);
	c->head = d.next;
	err = chain_take(vq, table, CHAIN_PACKED_RING, c, &d);
	if (unlikely(err)) {
		if (err == -ELOOP)
			virtq_break(vq, no_end);
		return false;
	}
	r->avail_at = packed_after(r, r->avail_at, c->n_descs);
	return true;
}

unsigned packed_pop(struct virtq *vq, unsigned max)
{
	struct packed_ring *r = &vq->packed;
	struct chain_table table = {.mem = vq->mem, .host = (const char *)r->desc, .n = r->size};
	bool has_others = vq->does_both;
	unsigned i = 0;

	while (i < max && (table.limit = room_at(r, r->avail_at)) > 0) {
		unsigned end = min_of(i + SIMPLE_BATCH, max);

		/* Only a hint: it may be behind the ring. */
		__builtin_prefetch(&r->desc[packed_slot(r, r->avail_at) + PREFETCH_SLOTS]);
		if (!has_others)
			i += pop_simple(vq, (uint16_t)(vq->last_avail + i),
					min_of(end - i, table.limit));
		/* A ring with other chains than simple ones has some more of them. */
		has_others = i < end;
		for (; i < end && (table.limit = room_at(r, r->avail_at)) > 0; i++)
			if (!pop_one(vq, (uint16_t)(vq->last_avail + i), &table))
				goto out;
	}
out:
	note_seen(vq, i);
	return i;
}

void packed_unpop(struct virtq *vq, uint16_t pos)
{
	struct packed_ring *r = &vq->packed;

	for (uint16_t i = vq->last_avail; i != pos; i--) {
		uint32_t n = virtq_chain_at(vq, (uint16_t)(i - 1))->n_descs;

		r->avail_at = packed_after(r, r->avail_at, 2 * r->size - n);
	}
}

/* ---- giving back ---- */

static struct journal_entry *entry_at(const struct virtq *vq, uint16_t pos)
{
	return &vq->packed.journal->entries[pos & vq->mask];
}

void packed_complete(struct virtq *vq, uint16_t pos, uint32_t len)
{
	const struct virtq_chain *c = virtq_chain_at(vq, pos);

	*entry_at(vq, pos) = (struct journal_entry){c->head, c->n_descs, len};
}

/* Write the used descriptor of the chain at a position. The write flag says that `len` counts. */
static void write_used(const struct virtq *vq, uint16_t pos, uint32_t place, bool is_release)
{
	const struct packed_ring *r = &vq->packed;
	const struct journal_entry e = *entry_at(vq, pos);
	uint16_t flags = packed_used_flags(packed_wrap(r, place));

	if (e.len > 0)
		flags |= VRING_DESC_F_WRITE;
	shared_write_packed_used(&r->desc[packed_slot(r, place)], e.id, e.len, flags, is_release);
}

void packed_publish(struct virtq *vq)
{
	struct packed_ring *r = &vq->packed;
	const uint16_t first = vq->published_idx, end = vq->used_idx;
	struct journal_mark mark = {.pos = end, .has_last = true};
	uint32_t place = r->used_at, n_slots = entry_at(vq, first)->n_slots;

	journal_intend(r->journal, end);
	for (uint16_t pos = (uint16_t)(first + 1); pos != end; pos++) {
		place = packed_after(r, r->used_at, n_slots);
		write_used(vq, pos, place, false);
		n_slots += entry_at(vq, pos)->n_slots;
	}
	mark.last = (uint16_t)place;
	/* The driver goes along the ring: it sees none of the others before this one. */
	write_used(vq, first, r->used_at, true);
	r->used_at = packed_after(r, r->used_at, n_slots);
	mark.place = (uint16_t)r->used_at;
	journal_done(r->journal, &mark);
	r->n_uncalled = min_of(r->n_uncalled + n_slots, 2 * r->size);
}

/* ---- calls and kicks ---- */

/* Is the place that the guest waits for among those that were published since the last call? A guest
 * that has not moved it for laps may be called in vain. */
static bool is_event_passed(const struct packed_ring *r, uint16_t event)
{
	uint32_t slot = event & 0x7fff;
	uint32_t at = event & 0x8000 ? slot : slot + r->size;

	return slot >= r->size || packed_distance(r, r->called_at, at) < r->n_uncalled;
}

bool packed_call_wanted(const struct virtq *vq)
{
	const struct vring_packed_desc_event e = shared_read_event(vq->packed.driver);

	if (e.flags == VRING_PACKED_EVENT_FLAG_DESC && vq->has_event_idx)
		return is_event_passed(&vq->packed, e.off_wrap);
	return e.flags != VRING_PACKED_EVENT_FLAG_DISABLE;
}

void packed_called(struct virtq *vq)
{
	vq->packed.called_at = vq->packed.used_at;
	vq->packed.n_uncalled = 0;
}

void packed_kicks_off(struct virtq *vq)
{
	shared_write_event(vq->packed.device, 0, VRING_PACKED_EVENT_FLAG_DISABLE);
}

void packed_kicks_on(struct virtq *vq)
{
	const struct packed_ring *r = &vq->packed;

	if (vq->has_event_idx)
		shared_write_event(r->device, off_wrap(r, r->seen_at),
				   VRING_PACKED_EVENT_FLAG_DESC);
	else
		shared_write_event(r->device, 0, VRING_PACKED_EVENT_FLAG_ENABLE);
}
