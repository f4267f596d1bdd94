/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the guest: pop heads, take each frame's header into our own memory and check it, hand the
 * frames to the port, complete in order what is done.
 *
 * A head's mark says who answers for it: the port (0), or nobody any more because its frame was
 * dropped. Marked heads wait in line behind those of the port: used entries keep the avail order
 * (invariant 5).
 */
#include <net/ethernet.h>
#include <string.h>

#include "net/turn.h"
#include "net/vnet_hdr.h"
#include "net/pair.h"

enum mark {
	MARK_PORT = 0,
	MARK_MALFORMED, /* never given to the port */
	MARK_DISCARDED, /* never given to the port: the ring is not enabled */
	MARK_FAILED,	/* the port could not send it */
};

_Static_assert(sizeof(vnet_hdr) == FRAME_HDR_LEN, "the ports' header");
_Static_assert(sizeof(vnet_hdr) <= sizeof(((struct virtq_chain *)0)->scratch), "header in scratch");

/* Take `hdr_len` bytes off the front of the chain. Return: its first segment behind them. */
static inline struct iovec *take_header(struct virtq_chain *c, vnet_hdr *h, uint32_t hdr_len)
{
	struct iovec *iov = c->iov;
	char *to = (char *)h;

	if (likely(hdr_len == sizeof(*h) && iov->iov_len > sizeof(*h))) {
		memcpy(h, iov->iov_base, sizeof(*h));
		iov->iov_base = (char *)iov->iov_base + sizeof(*h);
		iov->iov_len -= sizeof(*h);
		return iov;
	}
	while (hdr_len > 0) {
		size_t n = min_of((size_t)hdr_len, iov->iov_len);

		memcpy(to, iov->iov_base, n);
		to += n;
		hdr_len -= (uint32_t)n;
		iov->iov_base = (char *)iov->iov_base + n;
		iov->iov_len -= n;
		if (iov->iov_len == 0)
			iov++;
	}
	return iov;
}

/* Return: whether the chain holds a frame that may be sent; it is in `f` then. */
static inline bool make_frame(const struct queue *q, struct virtq_chain *c, struct frame *f)
{
	vnet_hdr h = {0};
	struct iovec *data;

	f->len = c->len - q->hdr_len;
	/* What is too short for the header wraps around. */
	if (unlikely(c->n_iov == 0 || f->len < ETH_HLEN || f->len > FRAME_MAX_LEN))
		return false;
	data = take_header(c, &h, q->hdr_len);
	if (unlikely(!vnet_hdr_tx_check(&h, f->len, q->features)))
		return false;
	memcpy(c->scratch, &h, sizeof(h));
	/* iov[-1] is ours; further on it is a segment that held nothing but header. */
	f->iov = data - 1;
	f->iov[0] = (struct iovec){c->scratch, sizeof(h)};
	f->n_iov = (uint32_t)(c->iov + c->n_iov - f->iov);
	f->is_dropped = false;
	return true;
}

static inline void prefetch_header(const struct virtq *vq, uint16_t pos)
{
	const struct virtq_chain *c = virtq_chain_at(vq, pos);

	if (likely(c->n_iov > 0))
		__builtin_prefetch(c->iov->iov_base);
}

static void prefetch_first(const struct virtq *vq, uint16_t first)
{
	unsigned n = min_of((uint16_t)(vq->last_avail - first) + 0u, PAIR_PREFETCH_AHEAD + 0u);

	for (unsigned i = 0; i < n; i++)
		prefetch_header(vq, (uint16_t)(first + i));
}

/* Turn the heads from `first` on into frames. Return: how many there are in p->frames. */
static unsigned collect(struct pair *p, uint16_t first)
{
	struct virtq *vq = &p->tx.vq;
	unsigned n = 0;

	prefetch_first(vq, first);
	for (uint16_t pos = first; pos != vq->last_avail; pos++) {
		struct virtq_chain *c = virtq_chain_at(vq, pos);

		if ((uint16_t)(vq->last_avail - pos) > PAIR_PREFETCH_AHEAD)
			prefetch_header(vq, (uint16_t)(pos + PAIR_PREFETCH_AHEAD));
		if (unlikely(!p->tx.is_enabled))
			c->mark = MARK_DISCARDED;
		else if (likely(make_frame(&p->tx, c, &p->frames[n])))
			p->pos[n++] = pos;
		else
			c->mark = MARK_MALFORMED;
	}
	return n;
}

/* Give frames to the port; what it does not take goes back to the guest's ring. */
static unsigned send_frames(struct pair *p, unsigned n)
{
	struct virtq *vq = &p->tx.vq;
	unsigned n_taken;

	p->port->n_tx_dropped = 0;
	n_taken = p->ops->tx(p->port, p->frames, n);
	if (n_taken < n) {
		virtq_unpop(vq, p->pos[n_taken]);
		stat_add(&p->stats, STAT_tx_port_full, 1);
	}
	for (unsigned i = 0; p->port->n_tx_dropped > 0 && i < n_taken; i++)
		if (p->frames[i].is_dropped)
			virtq_chain_at(vq, p->pos[i])->mark = MARK_FAILED;
	return n_taken;
}

/*
 * Look at the heads in line while they are done: those of the port, of which it has reported `n_done`,
 * and those that it does not answer for.
 * @n_of: gets how many of each mark there are
 * @bytes: gets what the sent frames hold
 * Return: how many they are.
 */
static unsigned count_done(const struct pair *p, unsigned n_done, unsigned *n_of, uint64_t *bytes)
{
	const struct virtq *vq = &p->tx.vq;
	unsigned n_sent = 0;
	uint64_t sum = 0;
	uint16_t pos;

	for (pos = vq->used_idx; pos != vq->last_avail; pos++) {
		const struct virtq_chain *c = virtq_chain_at(vq, pos);

		if (c->mark == MARK_PORT || c->mark == MARK_FAILED) {
			if (n_done == 0)
				break;
			n_done--;
		}
		if (likely(c->mark == MARK_PORT)) {
			n_sent++;
			sum += c->len;
		} else {
			n_of[c->mark]++;
		}
	}
	n_of[MARK_PORT] = n_sent;
	*bytes = sum - (uint64_t)n_sent * p->tx.hdr_len;
	return (uint16_t)(pos - vq->used_idx);
}

unsigned tx_complete(struct pair *p)
{
	unsigned n_of[MARK_FAILED + 1] = {0};
	uint64_t bytes = 0;
	unsigned n = count_done(p, p->ops->tx_reap(p->port), n_of, &bytes);

	if (n == 0)
		return 0;
	virtq_complete_unwritten(&p->tx.vq, n);
	/* Which of them is not known: the bytes count them all. */
	n_of[MARK_PORT] -= min_of(p->port->n_tx_lost, n_of[MARK_PORT]);
	stat_add(&p->stats, STAT_tx_packets, n_of[MARK_PORT]);
	stat_add(&p->stats, STAT_tx_bytes, bytes);
	stat_add(&p->stats, STAT_tx_batches, n_of[MARK_PORT] > 0);
	stat_add(&p->stats, STAT_tx_malformed, n_of[MARK_MALFORMED]);
	stat_add(&p->stats, STAT_tx_dropped, n - n_of[MARK_PORT]);
	queue_publish(&p->tx);
	return n;
}

/* The ring is not there, or broken; frames that the port has taken of it may wait to be sent. */
static void go_on_without_ring(struct pair *p)
{
	if (likely(p->port->retry_us == 0))
		return;
	if (p->ops->tx_cancel)
		p->ops->tx_cancel(p->port);
	p->ops->tx_reap(p->port);
}

unsigned tx_burst(struct pair *p)
{
	struct virtq *vq = &p->tx.vq;
	unsigned n_moved, n_frames;
	uint16_t first;

	if (!virtq_is_live(vq)) {
		go_on_without_ring(p);
		return 0;
	}
	n_moved = tx_complete(p);
	/* Until the port says that there is room again, the frames wait in the guest's ring. */
	if (unlikely(p->port->tx_full))
		return n_moved;
	first = vq->last_avail;
	if (virtq_pop(vq, p->params.batch) == 0) {
		queue_report_broken(&p->tx);
		return n_moved;
	}
	n_frames = collect(p, first);
	if (n_frames > 0)
		n_moved += send_frames(p, n_frames);
	n_moved += tx_complete(p);
	queue_report_broken(&p->tx);
	return n_moved;
}
