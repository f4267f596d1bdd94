/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port "null": discards what the guest sends, and with `source-size` offers the guest an endless
 * supply of frames of that size. For measuring the path between guest and worker alone: there is
 * no system call in it. The frames are broadcasts of an experimental Ethernet type, all zeros
 * behind the Ethernet header, and all share one piece of memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
#include "port/port.h"

#define SOURCE_ETHERTYPE_HI 0x88 /* IEEE 802 local experimental, 0x88b5 */
#define SOURCE_ETHERTYPE_LO 0xb5

struct null_queue {
	struct port_queue base;
	unsigned n_sent; /* taken by tx, not yet reported */
	char header[FRAME_HDR_LEN];
	struct iovec iov[2]; /* header and data of every frame */
};

struct null {
	struct null_queue queues[PORT_MAX_QUEUES];
	uint32_t source_size;
	char *source; /* the data of every frame; NULL without a source */
};

static struct null *null_of(const struct port *p)
{
	return p->priv;
}

static uint64_t null_features(const struct port *p)
{
	(void)p;
	return 0;
}

static void null_close(struct port *p)
{
	struct null *null = null_of(p);

	if (!null)
		return;
	free(null->source);
	free(null);
	p->priv = NULL;
}

static int null_make_source(struct null *null, unsigned n_queues, uint32_t size)
{
	char *frame = calloc(1, size);

	if (!frame)
		return -ENOMEM;
	memset(frame, 0xff, 6);
	frame[6] = 0x02; /* a locally administered source address */
	frame[12] = (char)SOURCE_ETHERTYPE_HI;
	frame[13] = (char)SOURCE_ETHERTYPE_LO;
	null->source = frame;
	null->source_size = size;
	for (unsigned i = 0; i < n_queues; i++) {
		struct null_queue *nq = &null->queues[i];

		nq->iov[0] = (struct iovec){nq->header, FRAME_HDR_LEN};
		nq->iov[1] = (struct iovec){frame, size};
	}
	return 0;
}

static int null_open(struct port *p, const struct port_config *cfg, const struct port_host *host)
{
	struct null *null = lines_alloc(1, sizeof(*null));
	int err = 0;

	(void)host;
	if (!null)
		return -ENOMEM;
	p->priv = null;
	for (unsigned i = 0; i < p->n_queues; i++)
		null->queues[i].base = (struct port_queue){.port = p, .index = i, .fd = -1};
	if (cfg->source_size > 0)
		err = null_make_source(null, p->n_queues, cfg->source_size);
	if (err)
		null_close(p);
	return err;
}

static int null_negotiate(struct port *p, uint64_t features)
{
	(void)p;
	(void)features;
	return 0;
}

static void null_describe(const struct port *p, char *text, size_t size)
{
	const struct null *null = null_of(p);

	if (null->source)
		snprintf(text, size, "null (source of %u-byte frames)", null->source_size);
	else
		snprintf(text, size, "null");
}

static struct port_queue *null_queue(struct port *p, unsigned i)
{
	return &null_of(p)->queues[i].base;
}

static unsigned null_rx_peek(struct port_queue *q, struct frame *frames, unsigned max)
{
	struct null_queue *nq = container_of(q, struct null_queue, base);
	const struct null *null = null_of(q->port);

	q->rx_more = null->source != NULL;
	if (!null->source)
		return 0;
	/* The last receiver has written its header; each frame starts with an empty one. */
	memset(nq->header, 0, sizeof(nq->header));
	for (unsigned i = 0; i < max; i++)
		frames[i] = (struct frame){.iov = nq->iov, .n_iov = 2, .len = null->source_size};
	return max;
}

static void null_rx_release(struct port_queue *q, unsigned n)
{
	(void)q;
	(void)n;
}

static unsigned null_tx(struct port_queue *q, struct frame *frames, unsigned n)
{
	(void)frames;
	container_of(q, struct null_queue, base)->n_sent += n;
	return n;
}

static unsigned null_tx_reap(struct port_queue *q)
{
	struct null_queue *nq = container_of(q, struct null_queue, base);
	unsigned n = nq->n_sent;

	nq->n_sent = 0;
	return n;
}

const struct port_ops null_port = {
	.name = "null",
	.features = null_features,
	.open = null_open,
	.close = null_close,
	.negotiate = null_negotiate,
	.describe = null_describe,
	.queue = null_queue,
	.rx_peek = null_rx_peek,
	.rx_release = null_rx_release,
	.tx = null_tx,
	.tx_reap = null_tx_reap,
};
