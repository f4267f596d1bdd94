/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port "loopback": returns what the guest sends on the same queue pair. For trying out a guest and
 * for tests. It holds the guest's own transmit buffers until the receive side has copied them into
 * receive buffers, so there is one copy and no memory of the port's own; without receive buffers
 * the guest's transmit queue waits.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lines.h"
#include "port/port.h"

struct loopback_queue {
	struct port_queue base;
	struct frame held[PORT_MAX_BATCH]; /* taken by tx, oldest first */
	unsigned n_held;
	unsigned n_sent; /* delivered, not yet reported */
};

static struct loopback_queue *loopback_queue_of(struct port_queue *q)
{
	return container_of(q, struct loopback_queue, base);
}

static uint64_t loopback_features(const struct port *p)
{
	(void)p;
	return 0;
}

static int loopback_open(struct port *p, const struct port_config *cfg,
			 const struct port_host *host)
{
	struct loopback_queue *queues = lines_alloc(p->n_queues, sizeof(*queues));

	(void)cfg;
	(void)host;
	if (!queues)
		return -ENOMEM;
	for (unsigned i = 0; i < p->n_queues; i++)
		queues[i].base = (struct port_queue){.port = p, .index = i, .fd = -1};
	p->priv = queues;
	return 0;
}

static void loopback_close(struct port *p)
{
	free(p->priv);
	p->priv = NULL;
}

static int loopback_negotiate(struct port *p, uint64_t features)
{
	(void)p;
	(void)features;
	return 0;
}

static void loopback_describe(const struct port *p, char *text, size_t size)
{
	(void)p;
	snprintf(text, size, "loopback");
}

static struct port_queue *loopback_queue(struct port *p, unsigned i)
{
	struct loopback_queue *queues = p->priv;

	return &queues[i].base;
}

static unsigned loopback_rx_peek(struct port_queue *q, struct frame *frames, unsigned max)
{
	struct loopback_queue *lq = loopback_queue_of(q);
	unsigned n = min_of(max, lq->n_held);

	for (unsigned i = 0; i < n; i++)
		frames[i] = lq->held[i];
	q->rx_more = n < lq->n_held;
	return n;
}

static void loopback_rx_release(struct port_queue *q, unsigned n)
{
	struct loopback_queue *lq = loopback_queue_of(q);

	lq->n_held -= n;
	lq->n_sent += n;
	for (unsigned i = 0; i < lq->n_held; i++)
		lq->held[i] = lq->held[i + n];
}

static unsigned loopback_tx(struct port_queue *q, struct frame *frames, unsigned n)
{
	struct loopback_queue *lq = loopback_queue_of(q);
	unsigned n_taken = min_of(n, PORT_MAX_BATCH - lq->n_held);

	for (unsigned i = 0; i < n_taken; i++)
		lq->held[lq->n_held++] = frames[i];
	q->tx_full = n_taken < n;
	q->rx_more |= n_taken > 0;
	return n_taken;
}

static unsigned loopback_tx_reap(struct port_queue *q)
{
	struct loopback_queue *lq = loopback_queue_of(q);
	unsigned n = lq->n_sent;

	lq->n_sent = 0;
	if (n > 0)
		q->tx_full = false;
	return n;
}

static void loopback_tx_cancel(struct port_queue *q)
{
	struct loopback_queue *lq = loopback_queue_of(q);

	lq->n_held = 0;
	lq->n_sent = 0;
	q->tx_full = false;
}

const struct port_ops loopback_port = {
	.name = "loopback",
	.features = loopback_features,
	.open = loopback_open,
	.close = loopback_close,
	.negotiate = loopback_negotiate,
	.describe = loopback_describe,
	.queue = loopback_queue,
	.rx_peek = loopback_rx_peek,
	.rx_release = loopback_rx_release,
	.tx = loopback_tx,
	.tx_reap = loopback_tx_reap,
	.tx_cancel = loopback_tx_cancel,
};
