/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/virtq.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
#include "virtq/journal.h"
#include "virtq/packed.h"
#include "virtq/shared.h"
#include "virtq/split.h"

/* Segments for a burst of 64 KiB frames in small pieces, whatever the ring's size. */
#define MIN_IOV_CAPACITY 2048

void virtq_init(struct virtq *vq, enum virtq_direction direction)
{
	*vq = (struct virtq){
		.write_flag = direction == VIRTQ_DEVICE_WRITES ? VRING_DESC_F_WRITE : 0,
		.does_both = direction == VIRTQ_DEVICE_DOES_BOTH,
	};
}

static bool has_feature(const struct virtq_setup *setup, unsigned bit)
{
	return setup->features & BIT_ULL(bit);
}

void *virtq_map_part(const struct gmem *mem, uva_t at, uint64_t len, uint64_t align, int *err)
{
	if (at.v % align != 0) {
		*err = -EINVAL;
		return NULL;
	}

	void *p = gmem_uva_span(mem, at, len);

	if (!p)
		*err = -EFAULT;
	return p;
}

static void release(struct virtq *vq)
{
	free(vq->chains);
	free(vq->iov_pool);
	gmem_put(vq->mem);
	vq->chains = NULL;
	vq->iov_pool = NULL;
	vq->mem = NULL;
	vq->is_started = false;
}

/* Room for what is in flight: one chain a position; segments for the longest chain there can be
 * (a whole table, ending in an indirect one), crossing regions here and there. */
static int allocate(struct virtq *vq, const struct virtq_setup *setup)
{
	vq->iov_capacity = max_of(2 * setup->size + 2 * GMEM_MAX_REGIONS, MIN_IOV_CAPACITY + 0u);
	vq->chains = lines_alloc(vq->mask + 1u, sizeof(*vq->chains));
	vq->iov_pool = lines_alloc(vq->iov_capacity, sizeof(*vq->iov_pool));
	return vq->chains && vq->iov_pool ? 0 : -ENOMEM;
}

/* Positions are picked by mask; a packed ring has any number of slots. */
static uint16_t mask_for(uint32_t size)
{
	uint32_t n = 1;

	while (n < size)
		n *= 2;
	return (uint16_t)(n - 1);
}

/* Take the position from the ring: its used index is what the guest has been given, in order. An
 * avail index that does not fit to it is the guest's fault: the first look breaks the queue. */
static void adopt_indices(struct virtq *vq, const struct virtq_setup *setup)
{
	if (vq->is_packed)
		packed_resume(vq, setup->base);
	else
		vq->used_idx = split_used_idx(vq);
	vq->last_avail = vq->used_idx;
	vq->avail_idx = vq->used_idx;
	vq->published_idx = vq->used_idx;
	vq->called_idx = vq->used_idx;
	vq->iov_n_used = 0;
}

int virtq_start(struct virtq *vq, const struct virtq_setup *setup)
{
	struct gmem *mem = gmem_get(setup->mem);
	int err;

	virtq_stop(vq);
	vq->mem = mem;
	vq->size = setup->size;
	vq->mask = mask_for(setup->size);
	vq->is_packed = has_feature(setup, VIRTIO_F_RING_PACKED);
	vq->has_event_idx = has_feature(setup, VIRTIO_RING_F_EVENT_IDX);
	vq->has_indirect = has_feature(setup, VIRTIO_RING_F_INDIRECT_DESC);
	vq->has_notify_on_empty = has_feature(setup, VIRTIO_F_NOTIFY_ON_EMPTY);
	err = vq->is_packed ? packed_map(vq, setup) : split_map(vq, setup);
	if (err == 0)
		err = allocate(vq, setup);
	if (err) {
		release(vq);
		return err;
	}
	vq->is_broken = false;
	vq->broken_why = NULL;
	adopt_indices(vq, setup);
	vq->call_once = true;
	/* A stopped ring's guest kicks; so it is until the worker says otherwise. */
	vq->kicks_are_on = true;
	vq->is_started = true;
	return 0;
}

uint32_t virtq_stop(struct virtq *vq)
{
	if (vq->is_started) {
		if (!vq->is_broken)
			virtq_publish(vq);
		release(vq);
	}
	return virtq_base(vq);
}

uint32_t virtq_base(const struct virtq *vq)
{
	return vq->is_packed ? packed_base(vq) : vq->used_idx;
}

static struct virtq_index packed_index(const struct packed_ring *r, uint32_t place)
{
	return (struct virtq_index){(uint16_t)packed_slot(r, place), packed_wrap(r, place)};
}

void virtq_indices(const struct virtq *vq, struct virtq_index *used, struct virtq_index *next,
		   struct virtq_index *avail)
{
	const struct packed_ring *r = &vq->packed;

	if (vq->is_packed) {
		*used = packed_index(r, r->used_at);
		*next = packed_index(r, r->avail_at);
		*avail = packed_index(r, r->seen_at);
		return;
	}
	*used = (struct virtq_index){.idx = vq->published_idx};
	*next = (struct virtq_index){.idx = vq->last_avail};
	*avail = (struct virtq_index){.idx = vq->avail_idx};
}

bool virtq_stands_at(const struct virtq *vq, uint32_t base)
{
	if (vq->is_packed)
		return packed_place_of(&vq->packed, base) == vq->packed.used_at;
	return vq->used_idx == base;
}

bool virtq_is_at_start(const struct virtq *vq)
{
	return vq->is_packed ? vq->packed.used_at == 0 : vq->used_idx == 0;
}

static uint16_t split_n_avail(struct virtq *vq)
{
	uint16_t idx = split_avail_idx(vq);
	uint16_t seen = (uint16_t)(vq->avail_idx - vq->used_idx);
	uint16_t now = (uint16_t)(idx - vq->used_idx);

	/* Both distances count from the oldest head that the guest has not got back. */
	if (unlikely(now > vq->size || now < seen)) {
		virtq_break(vq, "avail index jumped");
		return 0;
	}
	vq->avail_idx = idx;
	return (uint16_t)(idx - vq->last_avail);
}

uint16_t virtq_n_avail(struct virtq *vq)
{
	return vq->is_packed ? packed_n_avail(vq) : split_n_avail(vq);
}

unsigned virtq_pop(struct virtq *vq, unsigned max)
{
	unsigned n = (uint16_t)(vq->avail_idx - vq->last_avail);

	if (!vq->is_packed && n < max)
		n = split_n_avail(vq);
	if (unlikely(vq->is_broken))
		return 0;
	if (vq->last_avail == vq->used_idx)
		vq->iov_n_used = 0;
	/* A packed ring tells as it is walked. */
	n = vq->is_packed ? packed_pop(vq, max) : split_pop(vq, min_of(n, max));
	vq->last_avail = (uint16_t)(vq->last_avail + n);
	return n;
}

void virtq_unpop(struct virtq *vq, uint16_t pos)
{
	if (pos == vq->last_avail)
		return;
	/* The pool was filled in the order of the positions: so it is emptied. */
	vq->iov_n_used = (uint32_t)(virtq_chain_at(vq, pos)->iov - 1 - vq->iov_pool);
	if (vq->is_packed)
		packed_unpop(vq, pos);
	vq->last_avail = pos;
}

void virtq_complete(struct virtq *vq, uint32_t len)
{
	if (vq->is_packed)
		packed_complete(vq, vq->used_idx, len);
	else
		split_complete(vq, vq->used_idx, virtq_chain_at(vq, vq->used_idx)->head, len);
	vq->used_idx++;
}

void virtq_complete_unwritten(struct virtq *vq, unsigned n)
{
	if (vq->is_packed) {
		for (unsigned i = 0; i < n; i++)
			virtq_complete(vq, 0);
		return;
	}
	split_complete_unwritten(vq, vq->used_idx, n);
	vq->used_idx = (uint16_t)(vq->used_idx + n);
}

uint16_t virtq_publish(struct virtq *vq)
{
	uint16_t n = virtq_n_unpublished(vq);

	if (n == 0)
		return 0;
	if (vq->is_packed)
		packed_publish(vq);
	else
		split_publish(vq);
	vq->published_idx = vq->used_idx;
	return n;
}

/* Return: whether the guest has offered nothing that it has not got back. */
static bool is_worked_off(const struct virtq *vq)
{
	if (vq->is_packed)
		return vq->avail_idx == vq->used_idx && !packed_has_more(vq);
	return split_avail_idx(vq) == vq->used_idx;
}

bool virtq_call_needed(struct virtq *vq)
{
	/* Our used index must be visible before we look whether the guest waits for it; the guest
	 * asks for a call, then looks at the index. One of the two sees the other. */
	shared_full_barrier();
	if (vq->has_notify_on_empty && is_worked_off(vq))
		return true;
	if (vq->call_once && vq->has_event_idx)
		return true;
	if (vq->is_packed)
		return packed_call_wanted(vq);
	return split_call_wanted(vq, vq->called_idx, vq->published_idx);
}

void virtq_called(struct virtq *vq)
{
	packed_called(vq);
	vq->called_idx = vq->published_idx;
	vq->call_once = false;
}

void virtq_kicks_off(struct virtq *vq)
{
	if (!vq->kicks_are_on)
		return;
	if (vq->is_packed)
		packed_kicks_off(vq);
	else
		split_kicks_off(vq);
	vq->kicks_are_on = false;
}

bool virtq_kicks_on(struct virtq *vq)
{
	if (vq->is_packed)
		packed_kicks_on(vq);
	else
		split_kicks_on(vq);
	vq->kicks_are_on = true;
	/* The guest must see the request before we look once more: partner is its barrier between
	 * the avail index and its look at the request. */
	shared_full_barrier();
	return vq->is_packed ? packed_has_more(vq) : split_avail_idx(vq) != vq->avail_idx;
}
