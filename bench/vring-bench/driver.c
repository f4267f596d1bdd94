/* SPDX-License-Identifier: BSD-2-Clause */
/* A driver that costs as little as one can: its life and its turns. The layouts are in files of their own. */
#include "driver.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

/* Packets between two updates of what the device sees. */
#define DRIVER_BATCH 32

struct driver *driver_new(const struct setting *s, struct memory *m)
{
	struct driver *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->s = *s;
	d->m = m;
	d->layout = s->is_packed ? &driver_packed : &driver_split;
	d->n_chains = s->is_indirect ? s->size : s->size / s->chain;
	/* Positions must name the same chain in each round: as many as divide the ring. */
	while (s->size % d->n_chains != 0)
		d->n_chains--;
	d->tables = memory_take(m, (uint64_t)s->size * s->chain * sizeof(*d->tables));
	d->buffer_len = VRING_HDR_LEN + s->packet;
	/* As in a packet buffer of DPDK or Linux: room in front, the frame on a line of its own. */
	d->stride = (d->buffer_len + 2 * 64 + 63) / 64 * 64;
	d->buffers = memory_take(m, (uint64_t)d->n_chains * d->stride);
	if (!d->tables || !d->buffers || !d->layout->init(d)) {
		free(d);
		return NULL;
	}
	d->buffers += 64 - VRING_HDR_LEN;
	d->layout->calls_off(d);
	return d;
}

void driver_free(struct driver *d)
{
	free(d);
}

void driver_describe(const struct driver *d, struct virtq_setup *setup)
{
	*setup = (struct virtq_setup){.size = d->s.size};
	d->layout->describe(d, setup);
}

unsigned driver_turn(struct driver *d)
{
	unsigned n_done = d->layout->take(d, DRIVER_BATCH), n_free;

	n_free = d->n_chains - (uint16_t)(d->avail_idx - d->last_used);
	n_free = n_free < DRIVER_BATCH ? n_free : DRIVER_BATCH;
	if (n_free > 0)
		d->layout->offer(d, n_free);
	return n_done;
}

void driver_wait(struct driver *d, int call_fd)
{
	struct pollfd pfd = {.fd = call_fd, .events = POLLIN};
	uint64_t count;

	if (!d->s.wants_calls)
		return;
	/* The time limit is for the end of the measurement. */
	if (d->layout->calls_on(d) && poll(&pfd, 1, 10) == 1 &&
	    read(call_fd, &count, sizeof(count)) < 0)
		return;
	d->layout->calls_off(d);
}
