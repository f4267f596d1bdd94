/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/virtq.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <stdlib.h>
#include <string.h>

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
	vq->chains = calloc(setup->size, sizeof(*vq->chains));
	vq->iov_pool = calloc(vq->iov_capacity, sizeof(*vq->iov_pool));
	return vq->chains && vq->iov_pool ? 0 : -ENOMEM;
}

/* Take the position from the ring: its used index is what the guest has been given, in order. An
 * avail index that does not fit to it is the guest's fault: the first look breaks the queue. */
static void adopt_indices(struct virtq *vq)
{
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
	vq->mask = (uint16_t)(setup->size - 1);
	vq->has_event_idx = has_feature(setup, VIRTIO_RING_F_EVENT_IDX);
	vq->has_indirect = has_feature(setup, VIRTIO_RING_F_INDIRECT_DESC);
	vq->has_notify_on_empty = has_feature(setup, VIRTIO_F_NOTIFY_ON_EMPTY);
	err = split_map(vq, setup);
	if (err == 0)
		err = allocate(vq, setup);
	if (err) {
		release(vq);
		return err;
	}
	adopt_indices(vq);
	vq->is_broken = false;
	vq->broken_why = NULL;
	vq->call_once = true;
	/* A stopped ring's guest kicks; so it is until the worker says otherwise. */
	vq->kicks_are_on = true;
	vq->is_started = true;
	return 0;
}

uint16_t virtq_stop(struct virtq *vq)
{
	if (vq->is_started) {
		if (!vq->is_broken)
			virtq_publish(vq);
		release(vq);
	}
	return vq->used_idx;
}

uint16_t virtq_n_avail(struct virtq *vq)
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

unsigned virtq_pop(struct virtq *vq, unsigned max)
{
	unsigned n = (uint16_t)(vq->avail_idx - vq->last_avail);

	if (n < max)
		n = virtq_n_avail(vq);
	if (unlikely(vq->is_broken))
		return 0;
	if (vq->last_avail == vq->used_idx)
		vq->iov_n_used = 0;
	n = split_pop(vq, min_of(n, max));
	vq->last_avail = (uint16_t)(vq->last_avail + n);
	return n;
}

void virtq_unpop(struct virtq *vq, uint16_t pos)
{
	if (pos == vq->last_avail)
		return;
	/* The pool was filled in the order of the positions: so it is emptied. */
	vq->iov_n_used = (uint32_t)(virtq_chain_at(vq, pos)->iov - 1 - vq->iov_pool);
	vq->last_avail = pos;
}

void virtq_complete(struct virtq *vq, uint32_t len)
{
	split_complete(vq, vq->used_idx, virtq_chain_at(vq, vq->used_idx)->head, len);
	vq->used_idx++;
}

uint16_t virtq_publish(struct virtq *vq)
{
	uint16_t n = virtq_n_unpublished(vq);

	if (n > 0) {
		split_publish(vq);
		vq->published_idx = vq->used_idx;
	}
	return n;
}

bool virtq_call_needed(struct virtq *vq)
{
	/* Our used index must be visible before we look whether the guest waits for it; the guest
	 * asks for a call, then looks at the index. One of the two sees the other. */
	shared_full_barrier();
	if (vq->has_notify_on_empty && split_avail_idx(vq) == vq->used_idx)
		return true;
	if (vq->call_once && vq->has_event_idx)
		return true;
	return split_call_wanted(vq, vq->called_idx, vq->published_idx);
}

void virtq_called(struct virtq *vq)
{
	vq->called_idx = vq->published_idx;
	vq->call_once = false;
}

void virtq_kicks_off(struct virtq *vq)
{
	if (!vq->kicks_are_on)
		return;
	split_kicks_off(vq);
	vq->kicks_are_on = false;
}

bool virtq_kicks_on(struct virtq *vq)
{
	split_kicks_on(vq);
	vq->kicks_are_on = true;
	/* The guest must see the request before we look once more: partner is its barrier between
	 * the avail index and its look at the request. */
	shared_full_barrier();
	return split_avail_idx(vq) != vq->avail_idx;
}
