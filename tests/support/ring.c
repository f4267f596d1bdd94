/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/ring.h"

#include <endian.h>
#include <linux/virtio_config.h>
#include <string.h>

#include "base/util.h"
#include "support/layout.h"

#define REGION_SIZE  (4ULL << 20)
#define TABLE_STRIDE (RING_TABLE_SEGS * sizeof(struct vring_desc))

struct ring_shape ring_shape(int i)
{
	static const uint32_t sizes[2][4] = {{2, 4, 256, 32768}, {2, 5, 257, 32768}};
	static const uint16_t bases[2][2] = {{65530, 0}, {65533, 0}};
	bool is_packed = layout_is_packed;

	return (struct ring_shape){
		.is_indirect = i & RING_SHAPE_INDIRECT,
		.has_event_idx = i & RING_SHAPE_EVENT_IDX,
		.base = bases[is_packed][i / 4 % 2],
		.size = sizes[is_packed][i / 8 % 4],
	};
}

/* ---- memory ---- */

void ring_guest_init(struct ring_guest *g, uint64_t hole)
{
	struct guest_layout layout = {
		.n_regions = 4,
		.region_size = REGION_SIZE,
		.hole = hole,
		.is_last_apart = true,
	};
	struct gmem_region_desc descs[4];

	guest_init(&g->guest, &layout);
	for (unsigned i = 0; i < array_size(descs); i++) {
		const struct vhost_user_region *r = &g->guest.regions[i];

		descs[i] = (struct gmem_region_desc){
			.gpa = r->gpa,
			.uva = r->uva,
			.size = r->size,
			.mmap_offset = r->mmap_offset,
			.fd = g->guest.fds[i],
		};
	}
	g->mem = NULL;
	expect_eq(gmem_new(&g->mem, descs, array_size(descs)), 0);
}

void ring_guest_fini(struct ring_guest *g)
{
	expect_eq(g->mem->refs, 1);
	gmem_put(g->mem);
	guest_fini(&g->guest);
}

uint64_t ring_gpa_of(const struct ring_guest *g, const void *host)
{
	for (unsigned i = 0; i < g->mem->n_regions; i++) {
		const struct gmem_region *r = &g->mem->regions[i];
		uint64_t offset = (uint64_t)((const char *)host - r->host);

		if (offset < r->size)
			return r->gpa + offset;
	}
	ck_abort_msg("%p is not in guest memory", host);
	return 0;
}

/* ---- rings ---- */

void ring_init(struct ring *r, struct ring_guest *g, const struct ring_shape *shape,
	       uint64_t features)
{
	features |= shape->is_indirect ? BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC) : 0;
	features |= shape->has_event_idx ? BIT_ULL(VIRTIO_RING_F_EVENT_IDX) : 0;
	features |= layout_is_packed ? BIT_ULL(VIRTIO_F_RING_PACKED) : 0;
	*r = (struct ring){.guest = g, .shape = *shape, .features = features};
	driver_init(&r->drv, &g->guest, 0, shape->size, shape->base, features);
	if (shape->is_indirect)
		r->tables = guest_alloc_odd(&g->guest, (r->drv.mask + 1u) * TABLE_STRIDE);
	expect_eq(journal_open(&r->journal, NULL, 1), 0);
}

void ring_fini(struct ring *r)
{
	driver_fini(&r->drv);
	journal_close(r->journal);
}

void ring_reset(struct ring *r)
{
	const struct driver_ring old = r->drv;

	driver_fini(&r->drv);
	driver_init_at(&r->drv, &r->guest->guest, 0, old.size, 0, r->features, old.desc_gpa,
		       old.avail_gpa, old.used_gpa);
}

struct journal_ring *ring_record(const struct ring *r)
{
	struct journal_ring *record;

	expect_eq(journal_get(r->journal, 0, r->shape.size, &record), 0);
	return record;
}

struct virtq_setup ring_setup(const struct ring *r)
{
	const struct guest *g = &r->guest->guest;
	return (struct virtq_setup){
		.size = r->shape.size,
		.desc.v = guest_uva(g, r->drv.desc_gpa),
		.avail.v = guest_uva(g, r->drv.avail_gpa),
		.used.v = guest_uva(g, r->drv.used_gpa),
		.mem = r->guest->mem,
		.features = r->features,
		.base = r->drv.first_base,
		.journal = ring_record(r),
	};
}

uint16_t ring_first(const struct ring *r)
{
	uint16_t base = r->shape.base;

	return r->drv.is_packed ? (uint16_t)(base % (2 * r->shape.size)) : base;
}

/* ---- chains ---- */

uint16_t ring_offer(struct ring *r, const struct driver_seg *segs, unsigned n, uint64_t cookie)
{
	uint64_t slot = r->drv.avail_idx & r->drv.mask;
	uint64_t table = r->tables + slot * TABLE_STRIDE;

	if (!r->shape.is_indirect)
		return driver_add(&r->drv, segs, n, cookie);
	if (n > RING_TABLE_SEGS)
		table = guest_alloc_odd(&r->guest->guest, n * sizeof(struct vring_desc));
	return driver_add_indirect(&r->drv, segs, n, cookie, table);
}

void ring_alloc_segs(struct ring_guest *g, struct driver_seg *segs, const uint32_t *lens,
		     unsigned n, bool is_writable)
{
	for (unsigned i = 0; i < n; i++)
		segs[i] = (struct driver_seg){
			.gpa = guest_alloc_odd(&g->guest, lens[i]),
			.len = lens[i],
			.is_writable = is_writable,
		};
}

uint16_t ring_offer_lens(struct ring *r, const uint32_t *lens, unsigned n, bool is_writable)
{
	struct driver_seg segs[RING_MAX_SEGS];

	expect_le(n, RING_MAX_SEGS);
	ring_alloc_segs(r->guest, segs, lens, n, is_writable);
	return ring_offer(r, segs, n, segs[0].gpa);
}

uint16_t ring_offer_one(struct ring *r, uint32_t len, bool is_writable)
{
	return ring_offer_lens(r, &len, 1, is_writable);
}

void ring_fill_segs(struct ring_guest *g, const struct driver_seg *segs, unsigned n,
		    const void *src)
{
	const char *from = src;

	for (unsigned i = 0; i < n; i++) {
		memcpy(guest_at(&g->guest, segs[i].gpa), from, segs[i].len);
		from += segs[i].len;
	}
}

void ring_write_desc(struct ring *r, uint16_t i, uint64_t gpa, uint32_t len, uint16_t flags,
		     uint16_t next)
{
	r->drv.desc[i] = (struct vring_desc){
		.addr = htole64(gpa),
		.len = htole32(len),
		.flags = htole16(flags),
		.next = htole16(next),
	};
}
