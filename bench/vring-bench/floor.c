/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limit to compare with: the memory traffic of a split ring, and no protocol. For each packet the
 * driver's side writes 16 bytes (a descriptor, here the address itself) and, for transmit, a header, and
 * reads 8 (a used element) and, for receive, the header and the packet's first line. The device's side
 * reads the 16, copies the packet for receive or reads its header for transmit, and writes the 8. Nothing
 * is translated, checked or counted; two indices on lines of their own say how far each side is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "vring.h"

#define FLOOR_BATCH 32
#define AHEAD	    8

struct slot {
	char *buffer;
	uint64_t len;
};

struct floor_ring {
	/* both sides */
	struct slot *slots;
	uint64_t *done; /* 8 bytes for each packet */
	uint32_t mask, batch, packet;
	bool is_rx;
	char *source;

	/* the driver's */
	cacheline_align uint32_t offered;
	uint32_t taken;
	char *buffers;
	uint32_t stride;
	uint64_t driver_sum;

	/* the device's */
	cacheline_align uint32_t finished;
	uint64_t n_packets, device_sum;
};

struct floor_ring *floor_new(const struct setting *s, struct memory *m)
{
	struct floor_ring *f = aligned_alloc(64, (sizeof(*f) + 63) / 64 * 64);

	if (!f)
		return NULL;
	*f = (struct floor_ring){
		.slots = memory_take(m, s->size * sizeof(*f->slots)),
		.done = memory_take(m, s->size * sizeof(*f->done)),
		.mask = s->size - 1,
		.batch = s->batch,
		.packet = s->packet,
		.is_rx = s->is_rx,
		.source = memory_take(m, s->packet),
		.stride = (VRING_HDR_LEN + s->packet + 2 * 64 + 63) / 64 * 64,
	};
	f->buffers = memory_take(m, (uint64_t)s->size * f->stride);
	if (!f->slots || !f->done || !f->source || !f->buffers) {
		free(f);
		return NULL;
	}
	f->buffers += 64 - VRING_HDR_LEN;
	return f;
}

void floor_free(struct floor_ring *f)
{
	free(f);
}

uint64_t floor_packets(const struct floor_ring *f)
{
	return __atomic_load_n(&f->n_packets, __ATOMIC_RELAXED);
}

unsigned floor_driver_turn(struct floor_ring *f)
{
	uint32_t finished = __atomic_load_n(&f->finished, __ATOMIC_ACQUIRE);
	unsigned n = min_of(finished - f->taken, FLOOR_BATCH + 0u), n_free;

	for (unsigned k = 0; k < n && f->is_rx; k++)
		__builtin_prefetch(f->slots[(f->taken + k) & f->mask].buffer + VRING_HDR_LEN);
	for (unsigned k = 0; k < n; k++, f->taken++) {
		const char *buffer = f->slots[f->taken & f->mask].buffer;

		f->driver_sum += f->done[f->taken & f->mask];
		if (f->is_rx)
			f->driver_sum += (uint64_t)buffer[0] + (uint64_t)buffer[VRING_HDR_LEN + 12];
	}
	n_free = min_of(f->mask + 1 - (f->offered - f->taken), FLOOR_BATCH + 0u);
	for (unsigned k = 0; k < n_free; k++) {
		uint32_t i = (f->offered + k) & f->mask;
		char *buffer = f->buffers + (uint64_t)i * f->stride;

		if (!f->is_rx)
			memset(buffer, 0, VRING_HDR_LEN);
		f->slots[i] = (struct slot){buffer, VRING_HDR_LEN + f->packet};
	}
	if (n_free > 0)
		__atomic_store_n(&f->offered, f->offered + n_free, __ATOMIC_RELEASE);
	return n;
}

static void move_packet(struct floor_ring *f, const struct slot *slot, uint64_t *done)
{
	uint64_t hdr[2] = {0};

	if (f->is_rx) {
		memcpy(slot->buffer, hdr, VRING_HDR_LEN);
		memcpy(slot->buffer + VRING_HDR_LEN, f->source, f->packet);
	} else {
		memcpy(hdr, slot->buffer, VRING_HDR_LEN);
		f->device_sum += hdr[0];
	}
	*done = slot->len;
}

static void prefetch_slot(const struct floor_ring *f, uint32_t i)
{
	const char *buffer = f->slots[i & f->mask].buffer;

	if (!f->is_rx) {
		__builtin_prefetch(buffer);
		return;
	}
	prefetch_for_write(buffer);
	prefetch_for_write(buffer + CACHELINE);
}

bool floor_device_turn(struct floor_ring *f)
{
	uint32_t offered = __atomic_load_n(&f->offered, __ATOMIC_ACQUIRE);
	uint32_t first = f->finished;
	unsigned n = min_of(offered - first, f->batch);

	for (unsigned k = 0; k < min_of(n, AHEAD + 0u); k++)
		prefetch_slot(f, first + k);
	for (unsigned k = 0; k < n; k++) {
		uint32_t i = (first + k) & f->mask;

		if (k + AHEAD < n)
			prefetch_slot(f, first + k + AHEAD);
		move_packet(f, &f->slots[i], &f->done[i]);
	}
	if (n == 0)
		return false;
	__atomic_store_n(&f->finished, first + n, __ATOMIC_RELEASE);
	__atomic_store_n(&f->n_packets, f->n_packets + n, __ATOMIC_RELAXED);
	return true;
}
