/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/split.h"

#include <errno.h>
#include <string.h>

#include "virtq/chain.h"
#include "virtq/shared.h"
#include "virtq/simple.h"

/* Descriptors are fetched this many heads ahead of the walk. */
#define PREFETCH_HEADS SIMPLE_BATCH

int split_map(struct virtq *vq, const struct virtq_setup *setup)
{
	uint64_t size = setup->size;
	/* Each ring ends with the other side's event word when that is negotiated (2.7.6, 2.7.8). */
	uint64_t event = vq->has_event_idx ? sizeof(uint16_t) : 0;
	uint64_t avail_len = sizeof(struct vring_avail) + size * sizeof(uint16_t) + event;
	uint64_t used_len =
		sizeof(struct vring_used) + size * sizeof(struct vring_used_elem) + event;
	int err = 0;

	vq->desc = virtq_map_part(setup->mem, setup->desc, size * sizeof(struct vring_desc),
				  VRING_DESC_ALIGN_SIZE, &err);
	vq->avail =
		virtq_map_part(setup->mem, setup->avail, avail_len, VRING_AVAIL_ALIGN_SIZE, &err);
	vq->used = virtq_map_part(setup->mem, setup->used, used_len, VRING_USED_ALIGN_SIZE, &err);
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

/* Fetch the descriptors of the heads from the `i`-th on. */
static inline void prefetch_descs(const struct virtq *vq, unsigned i, unsigned n)
{
	for (unsigned k = i; k < min_of(i + PREFETCH_HEADS, n); k++) {
		uint16_t at = (uint16_t)(vq->last_avail + k) & vq->mask;

		/* A hint only: the head is read again, and checked. */
		__builtin_prefetch(&vq->desc[shared_load16(&vq->avail->ring[at]) & vq->mask]);
	}
}

/*
 * Read a whole batch of heads, if they lie together at `pos`, and are consecutive ones of the ring: by
 * arithmetic without branches, as in simple.h.
 * Return: whether that is so.
 */
static inline bool read_run(const struct virtq *vq, uint16_t pos, uint16_t *heads)
{
	const uint16_t at = pos & vq->mask;
	uint16_t jumps = 0;

	if (unlikely(at + SIMPLE_BATCH > vq->mask + 1))
		return false;
	memcpy(heads, &vq->avail->ring[at], SIMPLE_BATCH * sizeof(*heads));
	/* From here on the guest may have changed them. */
	__asm__ volatile("" : : : "memory");
	for (unsigned i = 0; i < SIMPLE_BATCH; i++) {
		heads[i] = le16toh(heads[i]);
		jumps |= (uint16_t)(heads[i] - heads[0] - i);
	}
	return jumps == 0 && heads[0] + SIMPLE_BATCH <= vq->mask + 1;
}

/* Read the heads at positions `pos` on. Return: how many there are before one beyond the ring. */
static inline unsigned read_heads(const struct virtq *vq, uint16_t pos, uint16_t *heads, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		heads[i] = shared_load16(&vq->avail->ring[(uint16_t)(pos + i) & vq->mask]);
		if (unlikely(heads[i] > vq->mask))
			break;
	}
	return i;
}

/* Copy the descriptors of a batch's consecutive heads, once. */
static inline void copy_run(const struct virtq *vq, uint16_t head, struct simple_descs *d)
{
	memcpy(d->word, &vq->desc[head], sizeof(d->word));
	/* From here on the guest may have changed them; the copy is all that counts. */
	__asm__ volatile("" : : : "memory");
}

/* Copy the descriptors of `n` heads, once. */
static inline void copy_descs(const struct virtq *vq, const uint16_t *heads, unsigned n,
			      struct simple_descs *d)
{
	memset(d->word, 0, sizeof(d->word));
	for (unsigned i = 0; i < n; i++)
		memcpy(&d->word[2 * i], &vq->desc[heads[i]], sizeof(*vq->desc));
	__asm__ volatile("" : : : "memory");
}

/* Take simple chains from position `pos` on, a batch at most. Return: how many, 0..n. */
static unsigned pop_simple(struct virtq *vq, uint16_t pos, unsigned n)
{
	const struct simple_rules rules = {
		.mask = (uint64_t)(VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT | VRING_DESC_F_WRITE)
			<< 32,
		.want = (uint64_t)vq->write_flag << 32,
	};
	uint16_t heads[SIMPLE_BATCH];
	struct simple_descs descs;

	if (likely(n >= SIMPLE_BATCH && read_run(vq, pos, heads))) {
		n = SIMPLE_BATCH;
		copy_run(vq, heads[0], &descs);
	} else {
		n = read_heads(vq, pos, heads, min_of(n, SIMPLE_BATCH + 0u));
		if (unlikely(n == 0))
			return 0;
		copy_descs(vq, heads, n, &descs);
	}
	return simple_take(vq, pos, &descs, heads, n, &rules);
}

/* Take any chain. Return: whether there was room for it, and the ring is sound. */
static bool pop_one(struct virtq *vq, uint16_t pos)
{
	const struct chain_table table = {
		.mem = vq->mem, .host = (const char *)vq->desc, .n = vq->size};
	struct virtq_chain *c = virtq_chain_at(vq, pos);
	uint16_t head = shared_load16(&vq->avail->ring[pos & vq->mask]);
	struct vring_desc d;

	if (unlikely(head > vq->mask)) {
		virtq_break(vq, "avail ring names a head beyond the ring");
		return false;
	}
	c->head = head;
	shared_read_desc(&d, &vq->desc[head]);
	return chain_take(vq, &table, CHAIN_LINKED, c, &d) == 0;
}

unsigned split_pop(struct virtq *vq, unsigned n)
{
	bool has_others = vq->does_both;
	unsigned i = 0;

	prefetch_descs(vq, 0, n);
	while (i < n) {
		unsigned end = min_of(i + SIMPLE_BATCH, n);

		prefetch_descs(vq, end, n);
		if (!has_others)
			i += pop_simple(vq, (uint16_t)(vq->last_avail + i), end - i);
		/* A ring with other chains than simple ones has some more of them. */
		has_others = i < end;
		for (; i < end; i++)
			if (!pop_one(vq, (uint16_t)(vq->last_avail + i)))
				return i;
	}
	return i;
}

void split_complete(struct virtq *vq, uint16_t pos, uint32_t head, uint32_t len)
{
	shared_write_used(&vq->used->ring[pos & vq->mask], head, len);
}

void split_complete_unwritten(struct virtq *vq, uint16_t pos, unsigned n)
{
	for (unsigned i = 0; i < n; i++, pos++)
		shared_write_used(&vq->used->ring[pos & vq->mask], virtq_chain_at(vq, pos)->head,
				  0);
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
