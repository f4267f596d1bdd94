/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/driver_packed.h"

#include <endian.h>
#include <string.h>

#include "support/expect.h"

#define AVAIL (1u << VRING_PACKED_DESC_F_AVAIL)
#define USED  (1u << VRING_PACKED_DESC_F_USED)

/* ---- places ---- */

static uint32_t slot_of(const struct driver_ring *r, uint32_t place)
{
	return place % r->size;
}

static bool wrap_of(const struct driver_ring *r, uint32_t place)
{
	return place < r->size;
}

static uint32_t after(const struct driver_ring *r, uint32_t place, uint32_t n)
{
	return (place + n) % (2 * r->size);
}

static uint16_t avail_flags(bool wrap)
{
	return wrap ? AVAIL : USED;
}

static uint16_t used_flags(bool wrap)
{
	return wrap ? AVAIL | USED : 0;
}

static uint16_t off_wrap(const struct driver_ring *r, uint32_t place)
{
	return (uint16_t)(slot_of(r, place) | (uint32_t)wrap_of(r, place) << 15);
}

static uint16_t load_flags(const struct driver_ring *r, uint32_t place)
{
	return le16toh(__atomic_load_n(&r->packed.desc[slot_of(r, place)].flags, __ATOMIC_ACQUIRE));
}

static void store_flags(struct driver_ring *r, uint32_t place, uint16_t flags)
{
	__atomic_store_n(&r->packed.desc[slot_of(r, place)].flags, htole16(flags),
			 __ATOMIC_RELEASE);
}

/* ---- chains ---- */

static uint16_t take_id(struct driver_ring *r, unsigned n)
{
	uint16_t id = r->first_free;

	expect_msg(r->n_free >= n, "ring %u: %u free slots for %u", r->index, r->n_free, n);
	r->n_free -= n;
	r->first_free = r->next_free[id];
	return id;
}

uint16_t driver_packed_add(struct driver_ring *r, const struct vring_desc *descs, unsigned n)
{
	struct driver_packed *p = &r->packed;
	uint16_t id = take_id(r, n);

	for (unsigned i = 0; i < n; i++) {
		uint32_t place = after(r, p->avail_at, i);
		struct vring_packed_desc *d = &p->desc[slot_of(r, place)];
		uint16_t flags =
			(uint16_t)(le16toh(descs[i].flags) | avail_flags(wrap_of(r, place)));

		d->addr = descs[i].addr;
		d->len = descs[i].len;
		/* The last one's counts. */
		d->id = htole16(i + 1 < n ? 0xffff : id);
		if (place == p->published_at)
			p->hidden_flags = flags;
		else
			store_flags(r, place, flags);
	}
	p->avail_at = after(r, p->avail_at, n);
	r->heads[r->avail_idx & r->mask] = id;
	r->avail_idx++;
	r->chains[id].n_descs = (uint16_t)n;
	return id;
}

/* Return: whether the device asks for a kick for slots from `from` up to and without `to`. */
static bool wants_kick(const struct driver_ring *r, uint32_t from, uint32_t to)
{
	const struct vring_packed_desc_event *e = r->packed.device;
	uint16_t flags = le16toh(__atomic_load_n(&e->flags, __ATOMIC_ACQUIRE));
	uint16_t event = le16toh(__atomic_load_n(&e->off_wrap, __ATOMIC_RELAXED));
	uint32_t laps = 2 * r->size, at;

	if (flags != VRING_PACKED_EVENT_FLAG_DESC)
		return flags == VRING_PACKED_EVENT_FLAG_ENABLE;
	expect(r->has_event_idx);
	at = (event & 0x7fffu) + (event & 0x8000 ? 0 : r->size);
	expect_lt(event & 0x7fffu, r->size);
	return (at + laps - from) % laps < (to + laps - from) % laps;
}

bool driver_packed_publish(struct driver_ring *r)
{
	struct driver_packed *p = &r->packed;
	uint32_t old = p->published_at;

	if (p->hidden_flags)
		store_flags(r, old, p->hidden_flags);
	p->hidden_flags = 0;
	p->published_at = p->avail_at;
	r->published_idx = r->avail_idx;
	/* The flags before the look at what the device asks for: its partner does the reverse. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return wants_kick(r, old, p->avail_at);
}

bool driver_packed_wants_kick(const struct driver_ring *r)
{
	return wants_kick(r, r->packed.published_at, after(r, r->packed.published_at, 1));
}

/* ---- coming back ---- */

static uint32_t length_at(const struct driver_ring *r, uint16_t idx)
{
	return r->chains[r->heads[idx & r->mask]].n_descs;
}

static bool is_used(const struct driver_ring *r, uint32_t place)
{
	return (load_flags(r, place) & (AVAIL | USED)) == used_flags(wrap_of(r, place));
}

/* Count what is used. Return: the place behind it. */
static uint32_t find_end(const struct driver_ring *r, uint16_t *n)
{
	uint32_t place = r->packed.used_at;
	uint16_t idx = r->last_used;

	for (; idx != r->published_idx && is_used(r, place); idx++)
		place = after(r, place, length_at(r, idx));
	*n = (uint16_t)(idx - r->last_used);
	return place;
}

uint16_t driver_packed_n_used(const struct driver_ring *r)
{
	uint16_t n;

	find_end(r, &n);
	return n;
}

bool driver_packed_take(struct driver_ring *r, struct driver_used *u)
{
	struct driver_packed *p = &r->packed;
	const struct vring_packed_desc *d = &p->desc[slot_of(r, p->used_at)];
	uint16_t expected = r->heads[r->last_used & r->mask];
	bool is_written = load_flags(r, p->used_at) & VRING_DESC_F_WRITE;

	if (r->last_used == r->published_idx || !is_used(r, p->used_at))
		return false;
	u->head = le16toh(__atomic_load_n(&d->id, __ATOMIC_RELAXED));
	u->len = le32toh(__atomic_load_n(&d->len, __ATOMIC_RELAXED));
	expect_msg(u->head == expected, "ring %u: position %u: id %u, expected %u", r->index,
		   r->last_used, u->head, expected);
	/* The length of what was not written means nothing. */
	expect_eq(is_written, u->len > 0);
	u->chain = &r->chains[u->head];
	p->used_at = after(r, p->used_at, u->chain->n_descs);
	r->n_free += u->chain->n_descs;
	r->next_free[u->head] = r->first_free;
	r->first_free = u->head;
	r->last_used++;
	return true;
}

/* ---- ruins ---- */

/* Link all slots but those that are offered, or unlink them. */
static void link_others(struct driver_ring *r, bool are_linked)
{
	uint16_t n;
	uint32_t first = find_end(r, &n), place = r->packed.avail_at;

	for (; place != after(r, first, r->size); place = after(r, place, 1)) {
		struct vring_packed_desc *d = &r->packed.desc[slot_of(r, place)];

		d->flags &= (uint16_t)~htole16(VRING_DESC_F_NEXT);
		d->flags |= htole16(are_linked ? VRING_DESC_F_NEXT : 0);
	}
}

/* Say whose the next slot is: the device's, or the driver's as it was a lap ago. */
static void mark_next(struct driver_ring *r, uint16_t owner)
{
	uint32_t place = r->packed.avail_at;
	uint16_t flags = load_flags(r, place);

	store_flags(r, place, (uint16_t)((flags & ~(AVAIL | USED)) | owner));
}

void driver_packed_ruin(struct driver_ring *r)
{
	link_others(r, true);
	mark_next(r, avail_flags(wrap_of(r, r->packed.avail_at)));
}

void driver_packed_mend(struct driver_ring *r)
{
	link_others(r, false);
	mark_next(r, used_flags(!wrap_of(r, r->packed.avail_at)));
}

uint32_t driver_packed_base(const struct driver_ring *r)
{
	uint16_t n;

	return off_wrap(r, find_end(r, &n)) * 0x10001u;
}

/* ---- interrupts ---- */

static void write_event(struct driver_ring *r, uint16_t at, uint16_t flags)
{
	struct vring_packed_desc_event *e = r->packed.driver;

	__atomic_store_n(&e->off_wrap, htole16(at), __ATOMIC_RELAXED);
	__atomic_store_n(&e->flags, htole16(flags), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void driver_packed_set_used_event(struct driver_ring *r, uint16_t idx)
{
	int16_t ahead = (int16_t)(idx - r->last_used);
	uint32_t place = r->packed.used_at;

	if (!r->has_event_idx)
		return;
	/* What is not there is taken for chains of one descriptor. */
	for (int i = 0; i < ahead; i++)
		place = after(r, place,
			      (uint16_t)(r->last_used + i - r->avail_idx) < 0x8000
				      ? 1
				      : length_at(r, (uint16_t)(r->last_used + i)));
	for (int i = 0; i > ahead; i--)
		place = after(r, place, 2 * r->size - 1);
	write_event(r, off_wrap(r, place), VRING_PACKED_EVENT_FLAG_DESC);
}

void driver_packed_set_calls(struct driver_ring *r, bool are_on)
{
	if (!are_on)
		write_event(r, 0, VRING_PACKED_EVENT_FLAG_DISABLE);
	else if (r->has_event_idx)
		driver_packed_set_used_event(r, r->last_used);
	else
		write_event(r, 0, VRING_PACKED_EVENT_FLAG_ENABLE);
}

/* ---- life ---- */

void driver_packed_reset(struct driver_ring *r, uint16_t base)
{
	struct driver_packed *p = &r->packed;
	uint32_t place = base % (2 * r->size);
	bool wrap = wrap_of(r, place);

	p->desc = (void *)r->desc;
	p->driver = (void *)r->avail;
	p->device = (void *)r->used;
	p->avail_at = p->published_at = p->used_at = place;
	p->hidden_flags = 0;
	memset(p->desc, 0, r->size * sizeof(*p->desc));
	memset(p->driver, 0, sizeof(*p->driver));
	memset(p->device, 0, sizeof(*p->device));
	driver_packed_set_used_event(r, base);
	for (uint32_t slot = 0; base != 0 && slot < r->size; slot++)
		p->desc[slot] = (struct vring_packed_desc){
			.addr = htole64(r->desc_gpa),
			.flags = htole16(used_flags(slot < slot_of(r, place) ? wrap : !wrap)),
		};
}
