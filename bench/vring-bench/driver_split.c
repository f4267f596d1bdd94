/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A driver for a split ring (virtio 1.2, 2.7) that costs as little as one can. Chain i always takes the
 * same descriptors and the same avail slot, so the content of the avail ring never changes; shuffled,
 * the chains take the slots in a scattered order. What a driver writes for each packet is written: the
 * descriptors (fresh addresses), and a header for transmit; what it reads is read: used element, header
 * and the packet's first line.
 */
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vring.h"

/* Packets between two updates of the avail index. */
#define DRIVER_BATCH 32

struct driver {
	struct setting s;
	struct memory *m;
	unsigned n_chains; /* that the ring holds */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	struct vring_desc *tables; /* indirect: one for each chain */
	char *buffers;
	unsigned buffer_len, stride;
	uint16_t avail_idx, last_used;
	uint64_t sum; /* of what was read, so that it is read */
};

static uint16_t *used_event(struct driver *d)
{
	return &d->avail->ring[d->s.size];
}

/* ---- chains ---- */

/* Write the descriptors of chain `i`, in the ring or in a table of its own. */
static void write_chain(struct driver *d, unsigned i)
{
	const uint16_t flags = d->s.is_rx ? VRING_DESC_F_WRITE : 0;
	unsigned n = d->s.chain, first = d->s.is_indirect ? 0 : i * n;
	struct vring_desc *table = d->s.is_indirect ? &d->tables[i * n] : d->desc;
	uint64_t at = memory_gpa(d->m, d->buffers + (uint64_t)i * d->stride);
	unsigned piece = d->buffer_len / n, left = d->buffer_len;

	for (unsigned k = 0; k < n; k++) {
		bool is_last = k + 1 == n;
		unsigned len = is_last ? left : piece;

		table[first + k] = (struct vring_desc){
			.addr = at,
			.len = len,
			.flags = (uint16_t)(flags | (is_last ? 0 : VRING_DESC_F_NEXT)),
			.next = (uint16_t)(first + k + 1),
		};
		at += len;
		left -= len;
	}
	if (d->s.is_indirect)
		d->desc[i] = (struct vring_desc){
			.addr = memory_gpa(d->m, table),
			.len = n * (uint32_t)sizeof(struct vring_desc),
			.flags = VRING_DESC_F_INDIRECT,
		};
}

static uint16_t head_of(const struct driver *d, unsigned i)
{
	return (uint16_t)(d->s.is_indirect ? i : i * d->s.chain);
}

/* The avail ring's content, once: position p holds chain p, or a scattered one. */
static void write_avail(struct driver *d)
{
	for (unsigned p = 0; p < d->s.size; p++) {
		unsigned i = p % d->n_chains;

		if (d->s.is_shuffled)
			i = i * 37 % d->n_chains;
		d->avail->ring[p] = head_of(d, i);
	}
}

/* Return: the chain at a free-running position. */
static unsigned chain_at(const struct driver *d, uint16_t pos)
{
	uint16_t head = d->avail->ring[pos & (d->s.size - 1)];

	return d->s.is_indirect ? head : head / d->s.chain;
}

/* ---- life ---- */

struct driver *driver_new(const struct setting *s, struct memory *m)
{
	struct driver *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->s = *s;
	d->m = m;
	d->n_chains = s->is_indirect ? s->size : s->size / s->chain;
	/* Positions must name the same chain in each round: as many as divide the ring. */
	while (s->size % d->n_chains != 0)
		d->n_chains--;
	d->desc = memory_take(m, s->size * sizeof(*d->desc));
	d->avail = memory_take(m, sizeof(*d->avail) + (s->size + 1) * sizeof(uint16_t));
	d->used = memory_take(m, sizeof(*d->used) + s->size * sizeof(*d->used->ring) + 2);
	d->tables = memory_take(m, (uint64_t)s->size * s->chain * sizeof(*d->tables));
	d->buffer_len = VRING_HDR_LEN + s->packet;
	/* As in a packet buffer of DPDK or Linux: room in front, the frame on a line of its own. */
	d->stride = (d->buffer_len + 2 * 64 + 63) / 64 * 64;
	d->buffers = memory_take(m, (uint64_t)d->n_chains * d->stride);
	if (!d->desc || !d->avail || !d->used || !d->tables || !d->buffers) {
		free(d);
		return NULL;
	}
	d->buffers += 64 - VRING_HDR_LEN;
	write_avail(d);
	if (!s->wants_calls)
		d->avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	*used_event(d) = (uint16_t)-1;
	return d;
}

void driver_free(struct driver *d)
{
	free(d);
}

void driver_describe(const struct driver *d, struct virtq_setup *setup)
{
	*setup = (struct virtq_setup){
		.size = d->s.size,
		.desc = {(uint64_t)(uintptr_t)d->desc},
		.avail = {(uint64_t)(uintptr_t)d->avail},
		.used = {(uint64_t)(uintptr_t)d->used},
	};
}

/* ---- a turn ---- */

static void take_back(struct driver *d, uint16_t pos)
{
	const struct vring_used_elem *u = &d->used->ring[pos & (d->s.size - 1)];
	const char *buffer = d->buffers + (uint64_t)chain_at(d, pos) * d->stride;

	d->sum += __atomic_load_n(&u->id, __ATOMIC_RELAXED);
	d->sum += __atomic_load_n(&u->len, __ATOMIC_RELAXED);
	if (!d->s.is_rx)
		return;
	d->sum += (uint64_t)buffer[0] + (uint64_t)buffer[VRING_HDR_LEN + 12];
}

static void offer(struct driver *d, uint16_t pos)
{
	unsigned i = chain_at(d, pos);

	if (!d->s.is_rx)
		memset(d->buffers + (uint64_t)i * d->stride, 0, VRING_HDR_LEN);
	write_chain(d, i);
}

static void prefetch(const struct driver *d, uint16_t pos, unsigned n)
{
	for (unsigned k = 0; k < n && d->s.is_rx; k++)
		__builtin_prefetch(d->buffers + VRING_HDR_LEN +
				   (uint64_t)chain_at(d, (uint16_t)(pos + k)) * d->stride);
}

unsigned driver_turn(struct driver *d)
{
	uint16_t used = __atomic_load_n(&d->used->idx, __ATOMIC_ACQUIRE);
	unsigned n_done = (uint16_t)(used - d->last_used), n_free;

	n_done = n_done < DRIVER_BATCH ? n_done : DRIVER_BATCH;
	prefetch(d, d->last_used, n_done);
	for (unsigned k = 0; k < n_done; k++)
		take_back(d, d->last_used++);
	n_free = d->n_chains - (uint16_t)(d->avail_idx - d->last_used);
	n_free = n_free < DRIVER_BATCH ? n_free : DRIVER_BATCH;
	for (unsigned k = 0; k < n_free; k++)
		offer(d, (uint16_t)(d->avail_idx + k));
	if (n_free > 0) {
		d->avail_idx = (uint16_t)(d->avail_idx + n_free);
		__atomic_store_n(&d->avail->idx, d->avail_idx, __ATOMIC_RELEASE);
	}
	return n_done;
}

void driver_wait(struct driver *d, int call_fd)
{
	struct pollfd pfd = {.fd = call_fd, .events = POLLIN};
	uint64_t count;

	if (!d->s.wants_calls)
		return;
	__atomic_store_n(used_event(d), d->last_used, __ATOMIC_RELAXED);
	__atomic_store_n(&d->avail->flags, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* The time limit is for the end of the measurement. */
	if (__atomic_load_n(&d->used->idx, __ATOMIC_ACQUIRE) == d->last_used &&
	    poll(&pfd, 1, 10) == 1 && read(call_fd, &count, sizeof(count)) < 0)
		return;
	__atomic_store_n(used_event(d), (uint16_t)(d->last_used - 1), __ATOMIC_RELAXED);
	__atomic_store_n(&d->avail->flags, VRING_AVAIL_F_NO_INTERRUPT, __ATOMIC_RELAXED);
}
