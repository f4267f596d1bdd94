/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/rx_direct.h"

#include <string.h>

#include "net/reserve.h"
#include "net/vnet_hdr.h"
#include "net/pair.h"

/*
 * List the reserved segments behind a header of ours: the guest's copy of it is written when it is
 * known how many buffers the frame took.
 * Return: entries in p->direct_iov; 0 when there are more segments than it holds.
 */
static unsigned list_segments(struct pair *p, vnet_hdr *h, const struct reservation *r)
{
	struct iovec *to = p->direct_iov;
	size_t skip = sizeof(*h);
	unsigned n = 0;

	to[n++] = (struct iovec){h, sizeof(*h)};
	for (uint32_t i = 0; i < r->n_chains; i++) {
		const struct virtq_chain *c =
			virtq_chain_at(&p->rx.vq, (uint16_t)(p->rx.vq.used_idx + i));

		if (n + c->n_iov > array_size(p->direct_iov))
			return 0;
		for (uint32_t k = 0; k < c->n_iov; k++) {
			size_t cut = min_of(skip, c->iov[k].iov_len);

			skip -= cut;
			if (c->iov[k].iov_len > cut)
				to[n++] = (struct iovec){(char *)c->iov[k].iov_base + cut,
							 c->iov[k].iov_len - cut};
		}
	}
	return n;
}

/* Write the header into the front of the first chain, which holds it. */
static void write_header(const struct virtq_chain *c, const vnet_hdr *h)
{
	const char *from = (const char *)h;
	size_t left = sizeof(*h);

	for (const struct iovec *iov = c->iov; left > 0; iov++) {
		size_t n = min_of(left, iov->iov_len);

		memcpy(iov->iov_base, from, n);
		from += n;
		left -= n;
	}
}

/* Complete the chains that `total` bytes took. */
static void commit(struct virtq *vq, vnet_hdr *h, uint64_t total)
{
	const struct virtq_chain *first = virtq_chain_at(vq, vq->used_idx);
	uint16_t n_chains = 0;

	while (total > 0) {
		uint32_t len =
			(uint32_t)min_of((uint64_t)virtq_chain_at(vq, vq->used_idx)->len, total);

		total -= len;
		virtq_complete(vq, len);
		n_chains++;
	}
	h->num_buffers = n_chains;
	write_header(first, h);
}

enum outcome { MOVED, NOTHING_THERE, OTHER_WAY };

static enum outcome move_one(struct pair *p, uint64_t *bytes)
{
	struct reservation r;
	unsigned n_iov;
	vnet_hdr h;
	int len;

	if (!reserve(p, sizeof(h) + FRAME_MAX_LEN, &r))
		return OTHER_WAY;
	n_iov = list_segments(p, &h, &r);
	if (n_iov == 0)
		return OTHER_WAY;
	len = p->ops->rx_into(p->port, p->direct_iov, n_iov);
	if (len <= 0)
		return NOTHING_THERE;
	if (!vnet_hdr_rx_check(&h, p->rx.features)) {
		stat_add(&p->stats, STAT_rx_dropped, 1);
		return MOVED;
	}
	commit(&p->rx.vq, &h, (uint64_t)len);
	stat_add(&p->stats, STAT_rx_packets, 1);
	*bytes += (uint64_t)len - sizeof(h);
	return MOVED;
}

bool rx_direct(struct pair *p, unsigned *n)
{
	struct virtq *vq = &p->rx.vq;
	enum outcome outcome = MOVED;
	uint64_t bytes = 0;

	*n = 0;
	if (!p->ops->rx_into || p->rx.hdr_len != sizeof(vnet_hdr))
		return false;
	while (*n < p->params.batch && p->port->rx_is_large && outcome == MOVED) {
		outcome = move_one(p, &bytes);
		*n += outcome == MOVED;
		/* What the frame did not take, or no frame came for, goes back to the guest's ring. */
		virtq_unpop(vq, vq->used_idx);
		if (virtq_n_unpublished(vq) >= p->params.batch)
			queue_publish(&p->rx);
	}
	stat_add(&p->stats, STAT_rx_bytes, bytes);
	stat_add(&p->stats, STAT_rx_batches, bytes > 0);
	queue_publish(&p->rx);
	queue_report_broken(&p->rx);
	return *n > 0 || outcome == NOTHING_THERE;
}
