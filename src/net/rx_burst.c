/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Towards the guest: look at the port's frames, reserve buffers for each, copy it, and only then
 * take it from the port (invariant 1). A frame for which there is no room stays where it is.
 */
#include <string.h>

#include "base/copy.h"
#include "net/reserve.h"
#include "net/rx_direct.h"
#include "net/turn.h"
#include "net/vnet_hdr.h"
#include "net/pair.h"

/* Frames up to so many bytes are copied in line: doc/performance.md. */
#define COPY_BREAK 256

enum outcome { DELIVERED, DROPPED, NO_ROOM };

static inline void copy_data(const struct pair *p, char *to, const char *from, uint32_t len)
{
	const uint32_t limit = p->params.copy_break ? p->params.copy_break : COPY_BREAK;

	if (likely(len <= limit && len >= COPY_SHORT_MIN))
		copy_short(to, from, len);
	else
		memcpy(to, from, len);
}

/* Read position in a frame's segments. */
struct source {
	const struct iovec *iov;
	size_t offset;
};

static void copy_from(struct source *src, char *to, size_t len)
{
	while (len > 0) {
		size_t n = min_of(len, src->iov->iov_len - src->offset);

		memcpy(to, (char *)src->iov->iov_base + src->offset, n);
		to += n;
		len -= n;
		src->offset += n;
		if (src->offset == src->iov->iov_len)
			*src = (struct source){.iov = src->iov + 1};
	}
}

/* Fill a chain with at most `left` bytes. Return: how many. */
static uint32_t fill_chain(const struct virtq_chain *c, struct source *src, uint64_t left)
{
	uint32_t len = (uint32_t)min_of((uint64_t)c->len, left);
	uint32_t todo = len;

	for (const struct iovec *iov = c->iov; todo > 0; iov++) {
		size_t n = min_of((size_t)todo, iov->iov_len);

		copy_from(src, iov->iov_base, n);
		todo -= (uint32_t)n;
	}
	return len;
}

/* Copy a frame of `total` bytes, guest's header included, into the reserved chains; complete them. */
static void fill(struct virtq *vq, const struct frame *f, const struct reservation *r,
		 uint64_t total)
{
	const struct virtq_chain *c = virtq_chain_at(vq, vq->used_idx);
	struct source src = {.iov = f->iov};

	if (likely(r->n_chains == 1 && c->n_iov == 1 && f->n_iov == 2)) {
		char *to = c->iov->iov_base;

		memcpy(to, f->iov[0].iov_base, f->iov[0].iov_len);
		memcpy(to + f->iov[0].iov_len, f->iov[1].iov_base, f->len);
		virtq_complete(vq, (uint32_t)total);
		return;
	}
	for (uint32_t i = 0; i < r->n_chains; i++) {
		uint32_t len = fill_chain(virtq_chain_at(vq, vq->used_idx), &src, total);

		total -= len;
		virtq_complete(vq, len);
	}
}

static enum outcome deliver(struct pair *p, struct frame *f)
{
	uint64_t total = (uint64_t)p->rx.hdr_len + f->len;
	struct reservation r;
	vnet_hdr h;

	memcpy(&h, f->iov[0].iov_base, sizeof(h));
	if (unlikely(!vnet_hdr_rx_check(&h, p->rx.features)))
		return DROPPED;
	if (unlikely(!reserve(p, total, &r))) {
		if (!r.is_all)
			return NO_ROOM;
		stat_add(&p->stats, STAT_rx_oversize, 1);
		return DROPPED;
	}
	h.num_buffers = (uint16_t)r.n_chains;
	memcpy(f->iov[0].iov_base, &h, sizeof(h));
	f->iov[0].iov_len = p->rx.hdr_len;
	fill(&p->rx.vq, f, &r, total);
	return DELIVERED;
}

/*
 * Most frames are in one piece, ask nothing of the guest, and fit into its next buffer.
 * Return: whether `f` was that, and is delivered.
 */
static inline bool deliver_plain(struct pair *p, const struct frame *f)
{
	static const vnet_hdr plain = {.num_buffers = 1};
	struct virtq *vq = &p->rx.vq;
	const struct virtq_chain *c = virtq_chain_at(vq, vq->used_idx);
	const vnet_hdr *h = f->iov[0].iov_base;
	const uint32_t total = p->rx.hdr_len + f->len;
	char *to;

	if (vq->used_idx == vq->last_avail || c->n_iov != 1 || c->len < total || f->n_iov != 2 ||
	    h->flags != 0 || h->gso_type != 0)
		return false;
	to = c->iov->iov_base;
	if (likely(p->rx.hdr_len == sizeof(plain)))
		memcpy(to, &plain, sizeof(plain));
	else
		memcpy(to, &plain, sizeof(struct virtio_net_hdr));
	copy_data(p, to + p->rx.hdr_len, f->iov[1].iov_base, f->len);
	virtq_complete(vq, total);
	return true;
}

/* Header and the first bytes of a frame lie in two lines, as a rule. */
static inline void prefetch_buffer(const struct virtq *vq, uint16_t pos)
{
	const struct virtq_chain *c = virtq_chain_at(vq, pos);

	if (likely(c->n_iov > 0)) {
		prefetch_for_write(c->iov->iov_base);
		prefetch_for_write((const char *)c->iov->iov_base + CACHELINE);
	}
}

static void prefetch_first(const struct virtq *vq)
{
	unsigned n = min_of(virtq_n_in_flight(vq) + 0u, PAIR_PREFETCH_AHEAD + 0u);

	for (unsigned i = 0; i < n; i++)
		prefetch_buffer(vq, (uint16_t)(vq->used_idx + i));
}

static inline void prefetch_next(const struct virtq *vq)
{
	if (virtq_n_in_flight(vq) > PAIR_PREFETCH_AHEAD)
		prefetch_buffer(vq, (uint16_t)(vq->used_idx + PAIR_PREFETCH_AHEAD));
}

/* Count a wait for guest buffers once, and only if frames are known to wait. */
static void count_wait(struct pair *p)
{
	if (p->rx_wait_is_counted || !p->port->rx_more)
		return;
	stat_add(&p->stats, STAT_rx_no_buffer, 1);
	p->rx_wait_is_counted = true;
}

/* A frame stays in the port: until the guest offers more, or for the next turn. */
static void wait_for_buffers(struct pair *p)
{
	p->port->rx_more = true;
	if (unlikely(reserve_must_pause(p)))
		return;
	p->rx_is_starved = true;
	p->rx_starved_at = p->rx.vq.avail_idx;
	count_wait(p);
}

/* Deliver `n` frames as far as there are buffers. Return: how many left the port. */
static unsigned deliver_all(struct pair *p, unsigned n)
{
	const unsigned publish = p->params.publish ? p->params.publish : p->params.batch;
	unsigned n_of[NO_ROOM] = {0};
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		enum outcome outcome = DELIVERED;

		prefetch_next(&p->rx.vq);
		if (unlikely(!deliver_plain(p, &p->frames[i])))
			outcome = deliver(p, &p->frames[i]);
		if (outcome == NO_ROOM) {
			wait_for_buffers(p);
			break;
		}
		n_of[outcome]++;
		if (outcome == DELIVERED)
			bytes += p->frames[i].len;
		if (virtq_n_unpublished(&p->rx.vq) >= publish)
			queue_publish(&p->rx);
	}
	stat_add(&p->stats, STAT_rx_packets, n_of[DELIVERED]);
	stat_add(&p->stats, STAT_rx_bytes, bytes);
	stat_add(&p->stats, STAT_rx_batches, n_of[DELIVERED] > 0);
	stat_add(&p->stats, STAT_rx_dropped, n_of[DROPPED]);
	return i;
}

unsigned rx_burst(struct pair *p)
{
	struct virtq *vq = &p->rx.vq;
	unsigned n, n_released;

	if (!virtq_is_live(vq) || !p->rx.is_enabled)
		return 0;
	n = virtq_n_avail(vq);
	if (n == 0 || (p->rx_is_starved && p->rx_starved_at == vq->avail_idx)) {
		p->rx_is_starved = true;
		p->rx_starved_at = vq->avail_idx;
		count_wait(p);
		queue_report_broken(&p->rx);
		return 0;
	}
	p->rx_is_starved = false;
	p->rx_wait_is_counted = false;
	p->rx_n_malformed = 0;
	if (p->port->rx_is_large && rx_direct(p, &n_released))
		return n_released;
	n = p->ops->rx_peek(p->port, p->frames, min_of(n, p->params.batch));
	if (n == 0)
		return 0;
	virtq_pop(vq, n);
	prefetch_first(vq);
	n_released = deliver_all(p, n);
	p->ops->rx_release(p->port, n_released);
	/* What was reserved in advance or in vain goes back to the guest's ring. */
	virtq_unpop(vq, vq->used_idx);
	queue_publish(&p->rx);
	queue_report_broken(&p->rx);
	return n_released;
}
