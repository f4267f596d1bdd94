/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's side: a queue pair of the product, on port null, whose turns the benchmark takes itself.
 */
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/pair.h"
#include "net/turn.h"
#include "virtq/journal.h"
#include "vring.h"

struct device {
	struct port port;
	struct pair *pair;
	struct journal *journal;
	bool is_rx;
};

static uint64_t features_of(const struct setting *s)
{
	uint64_t features = BIT_ULL(VIRTIO_F_VERSION_1);

	if (s->is_packed)
		features |= BIT_ULL(VIRTIO_F_RING_PACKED);
	if (s->has_event_idx)
		features |= BIT_ULL(VIRTIO_RING_F_EVENT_IDX);
	if (s->is_indirect)
		features |= BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC);
	if (s->is_mergeable)
		features |= BIT_ULL(VIRTIO_NET_F_MRG_RXBUF);
	if (s->is_in_order)
		features |= BIT_ULL(VIRTIO_F_IN_ORDER);
	return features;
}

static int open_port(struct device *d, const struct setting *s)
{
	struct port_config cfg = {.ops = &null_port, .source_size = s->is_rx ? s->packet : 0};
	struct port_host host = {0};

	d->port = (struct port){.ops = &null_port, .n_queues = 1};
	return null_port.open(&d->port, &cfg, &host);
}

static int start(struct device *d, const struct setting *s, struct memory *m,
		 const struct driver *driver)
{
	struct queue *q = s->is_rx ? &d->pair->rx : &d->pair->tx;
	struct virtq_setup setup;
	int err;

	driver_describe(driver, &setup);
	err = journal_open(&d->journal, NULL, 1);
	if (err == 0)
		err = journal_get(d->journal, 0, s->size, &setup.journal);
	if (err)
		return err;
	setup.mem = m->gmem;
	setup.features = features_of(s);
	/* Both halves: slot 0, wrap bit 1. */
	setup.base = s->is_packed ? 0x80008000 : 0;
	q->is_enabled = true;
	return queue_start(q, &setup);
}

static void init_pair(struct device *d, const struct setting *s, int call_fd)
{
	struct pair *p = d->pair;

	memset(p, 0, sizeof(*p));
	p->params.batch = s->batch;
	p->params.publish = s->publish;
	queue_init(&p->rx, VIRTQ_DEVICE_WRITES, "q0.rx", &p->stats);
	queue_init(&p->tx, VIRTQ_DEVICE_READS, "q0.tx", &p->stats);
	p->ops = d->port.ops;
	p->port = null_port.queue(&d->port, 0);
	p->port->stats = &p->stats;
	if (s->is_rx)
		p->rx.call_fd = call_fd;
	else
		p->tx.call_fd = call_fd;
}

struct device *device_new(const struct setting *s, struct memory *m, const struct driver *driver,
			  int call_fd)
{
	struct device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->is_rx = s->is_rx;
	d->pair = aligned_alloc(64, (sizeof(*d->pair) + 63) / 64 * 64);
	if (d->pair && open_port(d, s) == 0) {
		init_pair(d, s, call_fd);
		if (start(d, s, m, driver) == 0)
			return d;
	}
	fprintf(stderr, "vring-bench: the device cannot start\n");
	device_free(d);
	return NULL;
}

void device_free(struct device *d)
{
	if (d->pair) {
		/* The eventfd is the caller's. */
		d->pair->rx.call_fd = d->pair->tx.call_fd = -1;
		queue_stop(&d->pair->rx);
		queue_stop(&d->pair->tx);
	}
	if (d->port.priv)
		null_port.close(&d->port);
	journal_close(d->journal);
	free(d->pair);
	free(d);
}

/* A function of its own, so that its instructions can be counted (bench/instructions.sh). */
__attribute__((noinline)) bool device_turn(struct device *d)
{
	return turn(d->pair);
}

struct device_counts device_counts(const struct device *d)
{
	const struct queue_stats *stats = &d->pair->stats;

	return (struct device_counts){
		.packets = stat_read(stats, d->is_rx ? STAT_rx_packets : STAT_tx_packets),
		.publishes = stat_read(stats, STAT_used_publishes),
		.calls = stat_read(stats, STAT_calls),
	};
}
