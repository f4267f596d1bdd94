/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/ctrl_vq.h"

#include <endian.h>
#include <errno.h>
#include <ev.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
#include "net/queue.h"

struct ctrl_vq {
	struct queue q;
	struct queue_stats stats; /* nobody reads them: packets only are counted */
	struct ev_loop *loop;
	ev_timer go_on; /* after the loop's other watches: there is more to serve */
	unsigned n_pairs;
};

/* Commands served before the loop's other watches get their turn. */
#define MAX_COMMANDS 64

/* The longest command that is answered OK: class, command, one 16-bit number. */
#define MAX_COMMAND (sizeof(struct virtio_net_ctrl_hdr) + sizeof(uint16_t))

/* Copy the readable part of a chain. Return: its length, or MAX_COMMAND + 1 when it is longer. */
static size_t read_command(const struct virtq_chain *c, uint8_t cmd[MAX_COMMAND])
{
	size_t len = 0;

	for (uint32_t i = 0; i < c->n_readable; i++) {
		if (c->iov[i].iov_len > MAX_COMMAND - len)
			return MAX_COMMAND + 1;
		memcpy(cmd + len, c->iov[i].iov_base, c->iov[i].iov_len);
		len += c->iov[i].iov_len;
	}
	return len;
}

static uint8_t execute(const struct ctrl_vq *c, const uint8_t *cmd, size_t len)
{
	if (len == 2 && cmd[0] == VIRTIO_NET_CTRL_ANNOUNCE &&
	    cmd[1] == VIRTIO_NET_CTRL_ANNOUNCE_ACK)
		return VIRTIO_NET_OK;
	if (len == MAX_COMMAND && cmd[0] == VIRTIO_NET_CTRL_MQ &&
	    cmd[1] == VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET) {
		uint16_t n;

		memcpy(&n, cmd + 2, sizeof(n));
		n = le16toh(n);
		return n >= 1 && n <= c->n_pairs ? VIRTIO_NET_OK : VIRTIO_NET_ERR;
	}
	return VIRTIO_NET_ERR;
}

/* Return: bytes written into the chain: the answer is one byte, at its end. */
static uint32_t serve(const struct ctrl_vq *c, const struct virtq_chain *chain)
{
	uint8_t cmd[MAX_COMMAND];
	size_t len;

	if (chain->n_iov == 0 || chain->n_readable == chain->n_iov)
		return 0;
	len = read_command(chain, cmd);
	*(uint8_t *)chain->iov[chain->n_readable].iov_base = execute(c, cmd, len);
	return 1;
}

/* Serve what is there, but not for ever: a guest could refill the ring as fast as it is served. */
static void serve_some(struct ctrl_vq *c)
{
	struct virtq *vq = &c->q.vq;
	unsigned n = 0;

	if (!virtq_is_live(vq))
		return;
	do {
		for (; n < MAX_COMMANDS && virtq_pop(vq, 1) > 0; n++)
			virtq_complete(vq, serve(c, virtq_chain_at(vq, vq->used_idx)));
		queue_publish(&c->q);
	} while (n < MAX_COMMANDS && !vq->is_broken && virtq_kicks_on(vq));
	if (n == MAX_COMMANDS)
		ev_timer_start(c->loop, &c->go_on);
	queue_report_broken(&c->q);
}

static void on_go_on(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	serve_some(timer->data);
}

static void on_kick(struct ev_loop *loop, ev_io *watch, int events)
{
	struct ctrl_vq *c = watch->data;

	(void)events;
	if (queue_drain_kick(&c->q) != 0)
		ev_io_stop(loop, watch);
	serve_some(c);
}

int ctrl_vq_new(struct ctrl_vq **out, struct ev_loop *loop, unsigned n_pairs)
{
	struct ctrl_vq *c = lines_alloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->loop = loop;
	c->n_pairs = n_pairs;
	queue_init(&c->q, VIRTQ_DEVICE_DOES_BOTH, "ctrl", &c->stats);
	ev_timer_init(&c->go_on, on_go_on, 0., 0.);
	c->go_on.data = c;
	*out = c;
	return 0;
}

void ctrl_vq_free(struct ctrl_vq *c)
{
	if (!c)
		return;
	ctrl_vq_stop(c);
	ctrl_vq_set_kick_fd(c, -1);
	queue_fini(&c->q);
	free(c);
}

int ctrl_vq_start(struct ctrl_vq *c, const struct virtq_setup *setup)
{
	int err = queue_start(&c->q, setup);

	if (err == 0)
		serve_some(c);
	return err;
}

uint32_t ctrl_vq_stop(struct ctrl_vq *c)
{
	ev_timer_stop(c->loop, &c->go_on);
	return queue_stop(&c->q);
}

int ctrl_vq_set_kick_fd(struct ctrl_vq *c, int fd)
{
	struct queue *q = &c->q;
	bool was_watched = q->kick_fd >= 0;
	int err = queue_set_kick_fd(q, fd);

	if (err)
		return err;
	if (was_watched)
		ev_io_stop(c->loop, &q->kick_watch);
	if (fd < 0)
		return 0;
	ev_io_init(&q->kick_watch, on_kick, fd, EV_READ);
	q->kick_watch.data = c;
	ev_io_start(c->loop, &q->kick_watch);
	return 0;
}

void ctrl_vq_set_call_fd(struct ctrl_vq *c, int fd)
{
	queue_set_call_fd(&c->q, fd);
}
