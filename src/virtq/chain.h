/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only walk along a descriptor chain, for both ring layouts, direct and indirect tables alike
 * (virtio 1.2, 2.7.5 and 2.8.5 to 2.8.7). All checks of a chain are here: direction, bounds of every
 * address, length of the chain, next inside its table, one level of indirection. Each descriptor is
 * copied once.
 *
 * Inlined into the layouts' pop, which read the first descriptor and call chain_take().
 */
#ifndef VIRTQ_CHAIN_H
#define VIRTQ_CHAIN_H

#include <errno.h>
#include <limits.h>

#include "virtq/shared.h"
#include "virtq/state.h"

/* How the descriptors of a table follow one another. A constant wherever the walk is inlined. */
enum chain_layout {
	CHAIN_LINKED,	    /* by `next`: a split ring's table, and its indirect ones */
	CHAIN_PACKED_RING,  /* in the slots of the ring, as long as there is NEXT */
	CHAIN_PACKED_TABLE, /* a packed ring's indirect table: all of it, whatever NEXT says */
};

/* A descriptor table: the ring's own, or an indirect one. */
struct chain_table {
	const struct gmem *mem;
	const char *host; /* NULL: lies in several regions, read through `gpa` */
	gpa_t gpa;
	uint32_t n;	/* entries */
	uint32_t first; /* packed ring: the slot that the chain begins in */
	uint32_t limit; /* packed ring: slots from there on that are the guest's to offer */
};

static inline void chain_copy_desc(enum chain_layout layout, struct vring_desc *d, const void *src)
{
	if (layout == CHAIN_LINKED)
		shared_read_desc(d, src);
	else
		shared_read_packed(d, src);
}

static inline int chain_table_read(const struct chain_table *t, enum chain_layout layout,
				   uint32_t i, struct vring_desc *d)
{
	if (likely(t->host)) {
		chain_copy_desc(layout, d, t->host + (uint64_t)i * sizeof(*d));
		return 0;
	}

	struct vring_desc raw;
	gpa_t at = {t->gpa.v + (uint64_t)i * sizeof(raw)};
	int err = gmem_read(t->mem, at, &raw, sizeof(raw));

	if (err == 0)
		chain_copy_desc(layout, d, &raw);
	return err;
}

/*
 * Step from the `n`-th descriptor of a chain, which is in `d`, to the next one.
 * Return: 1; 0: it was the last one; -ELOOP: the chain of a packed ring has no end; -EINVAL.
 */
static inline int chain_step(const struct chain_table *t, enum chain_layout layout,
			     struct vring_desc *d, uint32_t n)
{
	bool has_next = layout == CHAIN_PACKED_TABLE ? n < t->n : d->flags & VRING_DESC_F_NEXT;
	uint32_t next = n;
	int err;

	if (!has_next)
		return 0;
	if (layout == CHAIN_PACKED_RING) {
		if (n >= t->limit)
			return -ELOOP;
		next = t->first + n < t->n ? t->first + n : t->first + n - t->n;
	} else if (layout == CHAIN_LINKED) {
		/* A table of n entries holds no chain of more than n: it would be a loop. */
		if (d->next >= t->n || n >= t->n)
			return -EINVAL;
		next = d->next;
	}
	err = chain_table_read(t, layout, next, d);
	return err ? err : 1;
}

/* Return: whether a buffer of this kind may come next. */
static inline bool chain_direction_ok(const struct virtq *vq, const struct virtq_chain *c,
				      const struct vring_desc *d)
{
	bool is_writable = d->flags & VRING_DESC_F_WRITE;

	if (vq->does_both)
		return is_writable || c->n_readable == c->n_iov;
	return is_writable == (vq->write_flag != 0);
}

/*
 * Append a buffer to the chain, in as many segments as regions it lies in.
 * Return: 0, -EFAULT not all mapped, -EINVAL wrong direction or too long a chain, -ENOBUFS no room.
 */
static inline int chain_add(struct virtq *vq, struct virtq_chain *c, const struct vring_desc *d)
{
	uint64_t left = d->len;
	gpa_t at = {d->addr};

	if (!chain_direction_ok(vq, c, d) || left > UINT_MAX - c->len)
		return -EINVAL;
	while (left > 0) {
		uint64_t len = left;
		void *p = gmem_translate(vq->mem, at, &len);

		if (!p)
			return -EFAULT;
		if (vq->iov_n_used == vq->iov_capacity)
			return -ENOBUFS;
		vq->iov_pool[vq->iov_n_used++] = (struct iovec){p, len};
		c->n_iov++;
		if (!(d->flags & VRING_DESC_F_WRITE))
			c->n_readable++;
		at.v += len;
		left -= len;
	}
	c->len += d->len;
	return 0;
}

/* Find the table that an indirect descriptor names. Any length but k * 16 with 1 <= k <= ring size
 * is malformed, and so is a table that also has a next. Return: 0 or -EINVAL, -EFAULT. */
static inline int chain_open_indirect(const struct virtq *vq, const struct vring_desc *d,
				      struct chain_table *t)
{
	uint64_t len = d->len;

	if (!vq->has_indirect || (d->flags & VRING_DESC_F_NEXT) || len == 0 ||
	    len % sizeof(struct vring_desc) != 0 || len / sizeof(struct vring_desc) > vq->size)
		return -EINVAL;
	t->mem = vq->mem;
	t->gpa.v = d->addr;
	t->n = (uint32_t)(len / sizeof(struct vring_desc));

	const char *host = gmem_translate(vq->mem, t->gpa, &len);

	if (!host)
		return -EFAULT;
	t->host = len == d->len ? host : NULL;
	return 0;
}

/* Return: whether the chain may go on in the table that its n-th descriptor names. In a packed ring
 * such a descriptor is alone (2.8.19). */
static inline bool chain_may_go_indirect(enum chain_layout layout, const struct vring_desc *d,
					 uint32_t n)
{
	return layout == CHAIN_LINKED || (n == 1 && !(d->flags & VRING_DESC_F_NEXT));
}

/*
 * Walk a table from descriptor `d` on, whose own index no longer matters. In a packed ring, to the
 * end of the chain even if it is malformed: where the next one begins is not known otherwise, nor
 * this one's id, which comes last.
 * @indirect: gets the indirect descriptor that ends the chain; NULL inside an indirect table
 * @n_descs: counts the descriptors
 * Return: 0: the chain ended; 1: it goes on in `indirect`; or a negative errno.
 */
static inline int chain_walk_table(struct virtq *vq, const struct chain_table *t,
				   enum chain_layout layout, struct virtq_chain *c,
				   struct vring_desc d, struct vring_desc *indirect,
				   uint32_t *n_descs)
{
	int err = 0, more;

	for (*n_descs = 1;; ++*n_descs) {
		if ((d.flags & VRING_DESC_F_INDIRECT) && indirect &&
		    chain_may_go_indirect(layout, &d, *n_descs)) {
			*indirect = d;
			return 1;
		}
		if (d.flags & VRING_DESC_F_INDIRECT)
			err = -EINVAL;
		if (!err)
			err = chain_add(vq, c, &d);
		if (err && layout != CHAIN_PACKED_RING)
			return err;
		more = chain_step(t, layout, &d, *n_descs);
		if (more < 0)
			return more;
		if (more == 0)
			break;
	}
	if (layout == CHAIN_PACKED_RING)
		c->head = d.next;
	return err;
}

/*
 * Walk the chain whose first descriptor in `table` is `first`; fill n_iov, len and n_descs.
 * Return: 0; -ENOBUFS when the pool has no room for it; another negative errno when it is malformed.
 */
static inline int chain_walk(struct virtq *vq, const struct chain_table *table,
			     enum chain_layout layout, struct virtq_chain *c,
			     const struct vring_desc *first)
{
	const enum chain_layout inner_layout =
		layout == CHAIN_LINKED ? CHAIN_LINKED : CHAIN_PACKED_TABLE;
	struct vring_desc indirect;
	struct chain_table inner;
	uint32_t n_descs;
	int err = chain_walk_table(vq, table, layout, c, *first, &indirect, &n_descs);

	c->n_descs = (uint16_t)n_descs;
	if (err <= 0)
		return err;
	err = chain_open_indirect(vq, &indirect, &inner);
	if (err)
		return err;

	struct vring_desc d;

	err = chain_table_read(&inner, inner_layout, 0, &d);
	if (err)
		return err;
	return chain_walk_table(vq, &inner, inner_layout, c, d, NULL, &n_descs);
}

/*
 * Most chains are one buffer in one region: no walk, one segment.
 * Return: whether `d` was that.
 */
static inline bool chain_take_simple(struct virtq *vq, struct virtq_chain *c,
				     const struct vring_desc *d)
{
	const uint16_t flags = VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT | VRING_DESC_F_WRITE;
	uint64_t len = d->len;

	if ((d->flags & flags) != vq->write_flag || len == 0 || vq->does_both ||
	    vq->iov_n_used == vq->iov_capacity)
		return false;

	void *p = gmem_translate(vq->mem, (gpa_t){d->addr}, &len);

	if (!p || len != d->len)
		return false;
	vq->iov_pool[vq->iov_n_used++] = (struct iovec){p, len};
	c->n_iov = 1;
	c->len = d->len;
	c->n_descs = 1;
	return true;
}

/*
 * Take the chain whose first descriptor in `table` is `first` to position `c`, whose `head` is that
 * descriptor's index, or its id in a packed ring. A malformed chain has n_iov = 0.
 * Return: 0; -ENOBUFS when it must wait for room in the pool; -ELOOP when it does not end: then
 * nothing behind it in a packed ring can be found.
 */
static inline int chain_take(struct virtq *vq, const struct chain_table *table,
			     enum chain_layout layout, struct virtq_chain *c,
			     const struct vring_desc *first)
{
	uint32_t pool_mark = vq->iov_n_used;

	if (pool_mark == vq->iov_capacity)
		return -ENOBUFS;
	c->mark = 0;
	c->n_iov = 0;
	c->n_readable = 0;
	c->len = 0;
	vq->iov_n_used++; /* iov[-1], the owner's */
	c->iov = &vq->iov_pool[vq->iov_n_used];
	if (likely(chain_take_simple(vq, c, first)))
		return 0;

	int err = chain_walk(vq, table, layout, c, first);

	if (likely(err == 0))
		return 0;
	vq->iov_n_used = pool_mark;
	/* An empty pool has room for every chain that is not pathological. */
	if ((err == -ENOBUFS && pool_mark > 0) || err == -ELOOP)
		return err;
	c->n_iov = 0;
	return 0;
}

#endif
