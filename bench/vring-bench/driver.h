/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the drivers of both layouts share. Chain i always has the same buffer, and offers come in the
 * order of the ring. What a driver writes for each packet is written: the descriptors (fresh addresses),
 * and a header for transmit; what it reads is read: what names the used chain, header and the packet's
 * first line.
 */
#ifndef VRING_BENCH_DRIVER_H
#define VRING_BENCH_DRIVER_H

#include <linux/virtio_ring.h>
#include <string.h>

#include "vring.h"

/* What only one layout has: the ring's parts, and where the driver stands in it. */
struct driver_split {
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
};

struct driver_packed {
	struct vring_packed_desc *desc;
	struct vring_packed_desc_event *driver, *device;
	uint32_t avail_slot, used_slot;
	bool avail_wrap, used_wrap;
};

struct driver;

struct driver_layout {
	/* Make the ring. Return: whether there was memory. */
	bool (*init)(struct driver *d);
	void (*describe)(const struct driver *d, struct virtq_setup *setup);
	/* Take back what is done, at most `max` packets. Return: how many. */
	unsigned (*take)(struct driver *d, unsigned max);
	/* Offer `n` chains, which are free. */
	void (*offer)(struct driver *d, unsigned n);
	/* Ask for a call. Return: whether there is nothing yet to take. */
	bool (*calls_on)(struct driver *d);
	void (*calls_off)(struct driver *d);
};

extern const struct driver_layout driver_split, driver_packed;

struct driver {
	struct setting s;
	struct memory *m;
	const struct driver_layout *layout;
	unsigned n_chains; /* that the ring holds */
	struct driver_split split;
	struct driver_packed packed;
	struct vring_desc *tables; /* indirect: one for each chain */
	char *buffers;
	unsigned buffer_len, stride;
	uint16_t avail_idx, last_used; /* chains */
	uint64_t sum;		       /* of what was read, so that it is read */
};

static inline char *driver_buffer(const struct driver *d, unsigned i)
{
	return d->buffers + (uint64_t)i * d->stride;
}

/* A piece of a chain's buffer, as a descriptor without next. */
static inline struct vring_desc driver_piece(const struct driver *d, unsigned i, unsigned k)
{
	unsigned n = d->s.chain, len = d->buffer_len / n;
	uint64_t at = memory_gpa(d->m, driver_buffer(d, i)) + (uint64_t)k * len;

	return (struct vring_desc){
		.addr = at,
		.len = k + 1 == n ? d->buffer_len - k * len : len,
		.flags = (uint16_t)((d->s.is_rx ? VRING_DESC_F_WRITE : 0) |
				    (k + 1 == n ? 0 : VRING_DESC_F_NEXT)),
	};
}

/* Write entry `k` of an indirect table, in the ring's own layout of descriptors. */
static inline void write_entry(const struct driver *d, struct vring_desc *at,
			       struct vring_desc piece, unsigned k)
{
	if (d->s.is_packed) {
		*(struct vring_packed_desc *)(void *)at = (struct vring_packed_desc){
			.addr = piece.addr,
			.len = piece.len,
			.flags = (uint16_t)(piece.flags & ~VRING_DESC_F_NEXT),
		};
		return;
	}
	piece.next = (uint16_t)(k + 1);
	*at = piece;
}

/* Write the indirect table of a chain. Return: the descriptor that names it. */
static inline struct vring_desc driver_indirect(const struct driver *d, unsigned i)
{
	unsigned n = d->s.chain;
	struct vring_desc *table = &d->tables[i * n];

	for (unsigned k = 0; k < n; k++)
		write_entry(d, &table[k], driver_piece(d, i, k), k);
	return (struct vring_desc){
		.addr = memory_gpa(d->m, table),
		.len = n * (uint32_t)sizeof(struct vring_desc),
		.flags = VRING_DESC_F_INDIRECT,
	};
}

/* Read what the device has written into a chain's buffer. */
static inline void driver_read_packet(struct driver *d, unsigned i)
{
	const char *buffer = driver_buffer(d, i);

	if (d->s.is_rx)
		d->sum += (uint64_t)buffer[0] + (uint64_t)buffer[VRING_HDR_LEN + 12];
}

/* Write what the device reads first, of a packet to send. */
static inline void driver_write_packet(struct driver *d, unsigned i)
{
	if (!d->s.is_rx)
		memset(driver_buffer(d, i), 0, VRING_HDR_LEN);
}

static inline void driver_prefetch_packet(const struct driver *d, unsigned i)
{
	if (d->s.is_rx)
		__builtin_prefetch(driver_buffer(d, i) + VRING_HDR_LEN);
}

#endif
