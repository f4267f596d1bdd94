/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a packed ring goes on. Memory holds no index, and three may speak: the descriptors, the
 * record of whoever served the ring before (journal.h), and the frontend. Nobody touches what is
 * looked at here but the guest, which may offer more at any time; each question is about flags that
 * it cannot change then.
 */
#include "virtq/packed.h"

#include "virtq/journal.h"
#include "virtq/shared.h"

static uint16_t owner_flags(const struct packed_ring *r, uint32_t place)
{
	return shared_load16(&r->desc[packed_slot(r, place)].flags) & PACKED_OWNER;
}

/* A driver clears a ring's memory before it first uses it, and only we set a used bit. So a guest
 * that was reset is told from one that goes on, whatever others remember. */
static bool is_fresh(const struct packed_ring *r)
{
	for (uint32_t slot = 0; slot < r->size; slot++) {
		struct vring_desc d;

		shared_read_packed(&d, &r->desc[slot]);
		if ((d.flags & PACKED_USED) || (!(d.flags & PACKED_AVAIL) && d.addr != 0))
			return false;
	}
	return true;
}

/* Return: whether the used bit is that of the place's lap: we have given it back then, even if the
 * guest has offered it anew. */
static bool is_given_back(const struct packed_ring *r, uint32_t place)
{
	return !!(owner_flags(r, place) & PACKED_USED) == packed_wrap(r, place);
}

/* Return: whether a ring may stand at a place: its descriptor is not one that was given back there. */
static bool may_stand_at(const struct packed_ring *r, uint32_t place)
{
	return owner_flags(r, place) != packed_used_flags(packed_wrap(r, place));
}

/* ---- the record ---- */

static bool is_mark_sound(const struct packed_ring *r, const struct journal_mark *m)
{
	return m->place < 2 * r->size && m->last < 2 * r->size;
}

/* Return: whether the last used descriptor that the mark tells of is there. */
static bool is_last_there(const struct virtq *vq, const struct journal_mark *m)
{
	const struct packed_ring *r = &vq->packed;
	const struct vring_packed_desc *d = &r->desc[packed_slot(r, m->last)];
	const struct journal_entry *e = &r->journal->entries[(uint16_t)(m->pos - 1) & vq->mask];

	if (!m->has_last)
		return true;
	if (!is_given_back(r, m->last))
		return false;
	return owner_flags(r, m->last) != packed_used_flags(packed_wrap(r, m->last)) ||
	       shared_load16(&d->id) == e->id;
}

/* Return: whether the entries from `m` to `intended` can be what was to be published there. */
static bool are_entries_sound(const struct virtq *vq, const struct journal_mark *m,
			      uint16_t intended)
{
	const struct packed_ring *r = &vq->packed;
	uint32_t n_slots = 0;

	for (uint16_t pos = m->pos; pos != intended; pos++) {
		uint16_t n = r->journal->entries[pos & vq->mask].n_slots;

		n_slots += n;
		if (n == 0 || n_slots > r->size)
			return false;
	}
	/* They were offered when they were taken. */
	return is_given_back(r, m->place) ||
	       owner_flags(r, m->place) == packed_avail_flags(packed_wrap(r, m->place));
}

/* Go on at a mark. */
static void stand_at(struct virtq *vq, const struct journal_mark *m)
{
	struct packed_ring *r = &vq->packed;

	r->used_at = m->place;
	r->avail_at = m->place;
	r->seen_at = m->place;
	r->called_at = m->place;
	r->n_uncalled = 0;
	vq->used_idx = m->pos;
	vq->published_idx = m->pos;
}

/* Publish what a killed process was about to publish, or note that it had. */
static void finish_publish(struct virtq *vq, uint16_t intended)
{
	const struct packed_ring *r = &vq->packed;
	struct journal_mark m = {.pos = intended, .place = (uint16_t)r->used_at, .has_last = true};

	if (!is_given_back(r, r->used_at)) {
		vq->used_idx = intended;
		packed_publish(vq);
	}
	for (uint16_t pos = vq->published_idx; pos != intended; pos++) {
		m.last = m.place;
		m.place = (uint16_t)packed_after(r, m.place,
						 r->journal->entries[pos & vq->mask].n_slots);
	}
	journal_done(r->journal, &m);
	stand_at(vq, &m);
}

/* Return: whether the record is of this ring; it stands where that says then. */
static bool resume_by_record(struct virtq *vq)
{
	const struct packed_ring *r = &vq->packed;
	const struct journal_mark m = r->journal->done;
	const uint16_t intended = r->journal->intended;

	if (r->journal->size != r->size || !is_mark_sound(r, &m) || !is_last_there(vq, &m))
		return false;
	if (intended == m.pos ? !may_stand_at(r, m.place) : !are_entries_sound(vq, &m, intended))
		return false;
	stand_at(vq, &m);
	if (intended != m.pos)
		finish_publish(vq, intended);
	return true;
}

/* ---- the frontend's word ---- */

/* A record that begins at a place, which nobody remembers more of. */
static void begin_at(struct virtq *vq, uint32_t place)
{
	const struct journal_mark m = {.pos = (uint16_t)place, .place = (uint16_t)place};

	journal_begin(vq->packed.journal, vq->packed.size, &m);
	stand_at(vq, &m);
}

static bool resume_by_base(struct virtq *vq, uint32_t base)
{
	const struct packed_ring *r = &vq->packed;
	uint32_t place = packed_place_of(r, base);
	uint32_t before = packed_after(r, place, 2 * r->size - 1);

	/* The slot before is of this lap: given back, further in a chain, or offered anew. */
	if (!may_stand_at(r, place) ||
	    owner_flags(r, before) == packed_used_flags(!packed_wrap(r, before)))
		return false;
	begin_at(vq, place);
	return true;
}

void packed_resume(struct virtq *vq, uint32_t base)
{
	const struct journal_mark m = {.place = (uint16_t)packed_place_of(&vq->packed, base)};

	if (is_fresh(&vq->packed)) {
		begin_at(vq, 0);
		return;
	}
	if (resume_by_record(vq) || resume_by_base(vq, base))
		return;
	/* The record stays: whoever comes next may know better. */
	stand_at(vq, &m);
	virtq_break(vq, "where it stands is not known: the descriptors fit neither to the state "
			"file nor to what the frontend says");
}
