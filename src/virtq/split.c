/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/split.h"

#include <errno.h>

#include "virtq/chain.h"
#include "virtq/shared.h"

/* Descriptors are fetched this many heads ahead of the walk. */
#define PREFETCH_HEADS 8

static void *map_part(const struct gmem *mem, uva_t at, uint64_t len, uint64_t align, int *err)
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

int split_map(struct virtq *vq, const struct virtq_setup *setup)
{
	uint64_t size = setup->size;
	/* Each ring ends with the other side's event word when that is negotiated (2.7.6, 2.7.8). */
	uint64_t event = vq->has_event_idx ? sizeof(uint16_t) : 0;
	uint64_t avail_len = sizeof(struct vring_avail) + size * sizeof(uint16_t) + event;
	uint64_t used_len =
		sizeof(struct vring_used) + size * sizeof(struct vring_used_elem) + event;
	int err = 0;

	vq->desc = map_part(setup->mem, setup->desc, size * sizeof(struct vring_desc),
			    VRING_DESC_ALIGN_SIZE, &err);
	vq->avail = map_part(setup->mem, setup->avail, avail_len, VRING_AVAIL_ALIGN_SIZE, &err);
	vq->used = map_part(setup->mem, setup->used, used_len, VRING_USED_ALIGN_SIZE, &err);
	return err;
}

uint16_t split_used_idx(const struct virtq *vq)
{
	return shared_load16(&vq->used->idx);
}

uint16_t split_avail_idx(const struct virtq *vq)
{
	return shared_load16_acquire(&vq->avail->idx);
}

unsigned split_pop(struct virtq *vq, unsigned n)
{
	const struct chain_table table = {
		.mem = vq->mem, .host = (const char *)vq->desc, .n = vq->size};
	const uint16_t mask = vq->mask;
	unsigned i;

	for (i = 0; i < n; i++) {
		uint16_t pos = (uint16_t)(vq->last_avail + i);

		if (i % PREFETCH_HEADS == 0)
			for (unsigned k = i; k < min_of(i + 2 * PREFETCH_HEADS, n); k++) {
				uint16_t at = (uint16_t)(vq->last_avail + k) & mask;
				uint16_t ahead = shared_load16(&vq->avail->ring[at]);

				/* A hint only: the value is read again, checked, below. */
				__builtin_prefetch(&vq->desc[ahead & mask]);
			}

		uint16_t head = shared_load16(&vq->avail->ring[pos & mask]);

		if (unlikely(head > mask)) {
			virtq_break(vq, "avail ring names a head beyond the ring");
			break;
		}

		struct virtq_chain *c = &vq->chains[pos & mask];
		struct vring_desc d;

		c->head = head;
		shared_read_desc(&d, &vq->desc[head]);
		if (unlikely(chain_take(vq, &table, c, &d) != 0))
			break;
	}
	return i;
}

void split_complete(struct virtq *vq, uint16_t pos, uint32_t head, uint32_t len)
{
	shared_write_used(&vq->used->ring[pos & vq->mask], head, len);
}

void split_publish(struct virtq *vq)
{
	shared_store16_release(&vq->used->idx, vq->used_idx);
}

bool split_call_wanted(const struct virtq *vq, uint16_t from, uint16_t to)
{
	if (!vq->has_event_idx)
		return !(shared_load16(&vq->avail->flags) & VRING_AVAIL_F_NO_INTERRUPT);
	/* used_event follows the avail ring (2.7.7). */
	return vring_need_event(shared_load16(&vq->avail->ring[vq->size]), to, from);
}

void split_kicks_off(struct virtq *vq)
{
	/* With EVENT_IDX the old avail_event lies behind: the guest is quiet for 65535 entries. */
	if (!vq->has_event_idx)
		shared_store16(&vq->used->flags, VRING_USED_F_NO_NOTIFY);
}

void split_kicks_on(struct virtq *vq)
{
	if (vq->has_event_idx)
		/* avail_event follows the used ring (2.7.10). */
		shared_store16((uint16_t *)(void *)&vq->used->ring[vq->size], vq->avail_idx);
	else
		shared_store16(&vq->used->flags, 0);
}
