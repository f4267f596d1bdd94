/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/reserve.h"

#include <linux/virtio_net.h>

#include "net/pair.h"

/* Give back a malformed chain, and those before it: used entries keep the avail order, and the
 * buffers of one frame must follow one another. Length 0 tells the driver that nothing came. */
static void give_back(struct pair *p, struct reservation *r)
{
	for (uint32_t i = 0; i <= r->n_chains; i++)
		virtq_complete(&p->rx.vq, 0);
	p->rx_n_malformed += r->n_chains + 1;
	*r = (struct reservation){0};
	stat_add(&p->stats, STAT_ring_errors, 1);
}

/*
 * Pop more chains for the frame that is being reserved for. What is popped in advance keeps its
 * segments in the pool: when that is full, start the frame anew with an empty one, once.
 * Return: whether there is a chain behind the `r->n_chains` that the frame has.
 */
static bool pop_more(struct pair *p, struct reservation *r)
{
	struct virtq *vq = &p->rx.vq;

	if (virtq_pop(vq, p->params.batch) > 0)
		return true;
	if (vq->is_broken || virtq_n_avail(vq) == 0)
		return false;
	r->is_all = r->was_restarted;
	if (r->was_restarted)
		return false;
	virtq_unpop(vq, vq->used_idx);
	*r = (struct reservation){.was_restarted = true};
	return virtq_pop(vq, p->params.batch) > 0;
}

bool reserve_must_pause(const struct pair *p)
{
	return p->rx_n_malformed >= p->params.batch;
}

bool reserve(struct pair *p, uint64_t total, struct reservation *r)
{
	struct virtq *vq = &p->rx.vq;
	const bool is_mergeable = p->rx.features & BIT_ULL(VIRTIO_NET_F_MRG_RXBUF);

	*r = (struct reservation){0};
	while (r->len < total) {
		/* A guest can offer malformed chains as fast as it gets them back: not all in one turn. */
		if (unlikely(reserve_must_pause(p)))
			return false;
		if (r->n_chains > 0 && !is_mergeable) {
			r->is_all = true;
			return false;
		}
		if ((uint16_t)(vq->used_idx + r->n_chains) == vq->last_avail && !pop_more(p, r))
			return false;

		const struct virtq_chain *c =
			virtq_chain_at(vq, (uint16_t)(vq->used_idx + r->n_chains));

		if (unlikely(c->n_iov == 0 || (r->n_chains == 0 && c->len < p->rx.hdr_len))) {
			give_back(p, r);
			continue;
		}
		r->n_chains++;
		r->n_descs += c->n_descs;
		r->n_descs_longest = max_of(r->n_descs_longest, (uint32_t)c->n_descs);
		r->len += c->len;
		/* Also when what is left of the table is too little for one more like these. */
		r->is_all = r->n_descs + r->n_descs_longest > vq->size;
	}
	return true;
}
