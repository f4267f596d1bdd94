/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/netdev.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lines.h"
#include "base/log.h"
#include "net/ctrl_vq.h"
#include "net/turn.h"
#include "net/worker.h"
#include "virtq/journal.h"

struct netdev {
	struct port port;
	bool is_port_open;
	bool is_link_down;
	void (*on_link)(void *arg, bool is_up); /* NULL: nobody asks */
	void *on_link_arg;
	struct ctrl_vq *ctrl;
	struct journal *journal; /* where packed rings stand */
	unsigned n_pairs;
	struct worker workers[];
};

/* ---- which queue a ring index means ---- */

static bool is_ctrl(const struct netdev *n, unsigned ring)
{
	return ring == 2 * n->n_pairs;
}

static unsigned n_rings(const struct netdev *n)
{
	return 2 * n->n_pairs + 1;
}

static struct worker *worker_of(struct netdev *n, unsigned ring)
{
	return &n->workers[ring / 2];
}

static bool is_tx(unsigned ring)
{
	return ring % 2 == 1;
}

static struct queue *queue_of(struct netdev *n, unsigned ring)
{
	struct worker *w = worker_of(n, ring);

	return is_tx(ring) ? &w->pair.tx : &w->pair.rx;
}

static void park_all(void *arg)
{
	struct netdev *n = arg;

	for (unsigned i = 0; i < n->n_pairs; i++)
		worker_park(&n->workers[i]);
}

static void unpark_all(void *arg)
{
	struct netdev *n = arg;

	for (unsigned i = 0; i < n->n_pairs; i++)
		worker_unpark(&n->workers[i]);
}

/*
 * Tell the port on which pairs the guest receives, so that no flow ends in one on which it does not.
 * While no pair receives at all, nothing changes: a guest that stops and goes on, or a frontend that
 * connects again, finds the frames that wait for it where they are.
 */
static void steer_port(struct netdev *n)
{
	bool is_any_live = false;

	if (!n->port.ops->enable_queue || n->n_pairs == 1)
		return;
	park_all(n);
	for (unsigned i = 0; i < n->n_pairs; i++)
		is_any_live |= virtq_is_live(&n->workers[i].pair.rx.vq) &&
			       n->workers[i].pair.rx.is_enabled;
	for (unsigned i = 0; i < n->n_pairs && is_any_live; i++)
		n->port.ops->enable_queue(&n->port, i, n->workers[i].pair.rx.is_enabled);
	unpark_all(n);
}

/* Complete what the port is done with, or has a copy of; take back the rest: its memory may go away.
 * Parked. */
static void retire_tx(struct worker *w)
{
	bool is_live = virtq_is_live(&w->pair.tx.vq);

	if (is_live)
		tx_complete(&w->pair);
	if (w->pair.ops->tx_cancel)
		w->pair.ops->tx_cancel(w->pair.port);
	if (is_live)
		tx_complete(&w->pair);
	/* What nobody waits for must not count for the frames of the next ring. */
	w->pair.ops->tx_reap(w->pair.port);
}

/* ---- device_ops ---- */

static struct virtq_setup setup_of(const struct device_ring *r)
{
	return (struct virtq_setup){
		.size = r->size,
		.desc = r->desc,
		.avail = r->avail,
		.used = r->used,
		.mem = r->mem,
		.features = r->features,
		.base = r->base,
	};
}

/* Give a packed ring its record; what a split one left there is no longer true. */
static int prepare_record(struct netdev *n, unsigned ring, struct virtq_setup *setup)
{
	int err;

	if (!(setup->features & BIT_ULL(VIRTIO_F_RING_PACKED))) {
		journal_forget(n->journal, ring);
		return 0;
	}
	err = journal_get(n->journal, ring, setup->size, &setup->journal);
	if (err)
		log_err(err, "ring %u: no room for its record in the state file", ring);
	return err;
}

static int ring_start(void *arg, unsigned ring, const struct device_ring *r)
{
	struct netdev *n = arg;
	struct virtq_setup setup = setup_of(r);
	struct worker *w;
	int err = prepare_record(n, ring, &setup);

	if (err)
		return err;
	if (is_ctrl(n, ring))
		return ctrl_vq_start(n->ctrl, &setup);
	w = worker_of(n, ring);
	worker_park(w);
	if (is_tx(ring))
		retire_tx(w);
	else
		w->pair.rx_is_starved = false;
	err = queue_start(queue_of(n, ring), &setup);
	steer_port(n);
	worker_unpark(w);
	return err;
}

static uint32_t ring_stop(void *arg, unsigned ring)
{
	struct netdev *n = arg;
	struct worker *w;
	uint32_t base;

	if (is_ctrl(n, ring))
		return ctrl_vq_stop(n->ctrl);
	w = worker_of(n, ring);
	worker_park(w);
	if (is_tx(ring))
		retire_tx(w);
	base = queue_stop(queue_of(n, ring));
	steer_port(n);
	worker_unpark(w);
	return base;
}

static void ring_forget(void *arg, unsigned ring)
{
	struct netdev *n = arg;

	journal_forget(n->journal, ring);
}

static void ring_enable(void *arg, unsigned ring, bool is_enabled)
{
	struct netdev *n = arg;
	struct worker *w;
	struct queue *q;

	if (is_ctrl(n, ring))
		return;
	w = worker_of(n, ring);
	q = queue_of(n, ring);
	worker_park(w);
	queue_call_pending(q);
	q->is_enabled = is_enabled;
	steer_port(n);
	worker_unpark(w);
}

static int ring_kick_fd(void *arg, unsigned ring, int fd)
{
	struct netdev *n = arg;
	struct worker *w;
	int err;

	if (is_ctrl(n, ring))
		return ctrl_vq_set_kick_fd(n->ctrl, fd);
	w = worker_of(n, ring);
	worker_park(w);
	err = worker_set_kick_fd(w, queue_of(n, ring), fd);
	worker_unpark(w);
	return err;
}

static void ring_call_fd(void *arg, unsigned ring, int fd)
{
	struct netdev *n = arg;

	if (is_ctrl(n, ring)) {
		ctrl_vq_set_call_fd(n->ctrl, fd);
		return;
	}
	worker_park(worker_of(n, ring));
	queue_set_call_fd(queue_of(n, ring), fd);
	worker_unpark(worker_of(n, ring));
}

static void ring_err_fd(void *arg, unsigned ring, int fd)
{
	struct netdev *n = arg;

	if (is_ctrl(n, ring)) {
		/* A broken control queue stops no packet; its log line is enough. */
		if (fd >= 0)
			close(fd);
		return;
	}
	worker_park(worker_of(n, ring));
	queue_set_err_fd(queue_of(n, ring), fd);
	worker_unpark(worker_of(n, ring));
}

static int set_features(void *arg, uint64_t features)
{
	struct netdev *n = arg;
	int err;

	park_all(n);
	err = n->port.ops->negotiate(&n->port, features);
	unpark_all(n);
	return err;
}

const struct device_ops netdev_device_ops = {
	.ring_start = ring_start,
	.ring_stop = ring_stop,
	.ring_forget = ring_forget,
	.ring_enable = ring_enable,
	.ring_kick_fd = ring_kick_fd,
	.ring_call_fd = ring_call_fd,
	.ring_err_fd = ring_err_fd,
	.features = set_features,
};

/* ---- life ---- */

static void note_link(void *arg, bool is_up)
{
	struct netdev *n = arg;

	n->is_link_down = !is_up;
	if (n->on_link)
		n->on_link(n->on_link_arg, is_up);
}

void netdev_watch_link(struct netdev *n, void (*on_link)(void *arg, bool is_up), void *arg)
{
	n->on_link = on_link;
	n->on_link_arg = arg;
	if (on_link)
		on_link(arg, !n->is_link_down);
}

static int open_port(struct netdev *n, const struct port_config *cfg, struct ev_loop *loop)
{
	struct port_host host = {
		.loop = loop,
		.park = park_all,
		.unpark = unpark_all,
		.link = note_link,
		.arg = n,
	};
	int err;

	n->port.ops = cfg->ops;
	n->port.n_queues = n->n_pairs;
	err = cfg->ops->open(&n->port, cfg, &host);
	n->is_port_open = err == 0;
	return err;
}

int netdev_open(struct netdev **out, const struct netdev_config *cfg, struct ev_loop *loop)
{
	size_t size = sizeof(struct netdev) + cfg->n_pairs * sizeof(struct worker);
	struct netdev *n = lines_alloc(1, size);
	int err;

	if (!n)
		return -ENOMEM;
	n->n_pairs = cfg->n_pairs;
	err = ctrl_vq_new(&n->ctrl, loop, cfg->n_pairs);
	if (err == 0)
		err = journal_open(&n->journal, NULL, n_rings(n));
	if (err == 0)
		err = open_port(n, cfg->port, loop);
	for (unsigned i = 0; i < cfg->n_pairs && err == 0; i++)
		err = worker_start(&n->workers[i], i, cfg->port->ops->queue(&n->port, i),
				   cfg->port->ops, &cfg->pairs[i].params, cfg->pairs[i].cpu);
	if (err) {
		netdev_close(n);
		return err;
	}
	*out = n;
	return 0;
}

void netdev_close(struct netdev *n)
{
	if (!n)
		return;
	for (unsigned i = 0; i < n->n_pairs; i++)
		worker_stop(&n->workers[i]);
	if (n->is_port_open)
		n->port.ops->close(&n->port);
	ctrl_vq_free(n->ctrl);
	journal_close(n->journal);
	free(n);
}

int netdev_use_state_file(struct netdev *n, const char *path)
{
	struct journal *journal;
	int err = journal_open(&journal, path, n_rings(n));

	if (err)
		return err;
	journal_close(n->journal);
	n->journal = journal;
	return 0;
}

void netdev_forget_rings(struct netdev *n)
{
	for (unsigned i = 0; i < n_rings(n); i++)
		journal_forget(n->journal, i);
}

uint64_t netdev_features(const struct netdev *n)
{
	uint64_t features = BIT_ULL(VIRTIO_F_VERSION_1) | BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC) |
			    BIT_ULL(VIRTIO_RING_F_EVENT_IDX) | BIT_ULL(VIRTIO_F_IN_ORDER) |
			    BIT_ULL(VIRTIO_F_RING_PACKED) | BIT_ULL(VIRTIO_F_ANY_LAYOUT) |
			    BIT_ULL(VIRTIO_F_NOTIFY_ON_EMPTY) | BIT_ULL(VIRTIO_NET_F_MRG_RXBUF) |
			    BIT_ULL(VIRTIO_NET_F_GUEST_ANNOUNCE) | BIT_ULL(VIRTIO_NET_F_STATUS) |
			    BIT_ULL(VIRTIO_NET_F_CTRL_VQ);

	if (n->n_pairs > 1)
		features |= BIT_ULL(VIRTIO_NET_F_MQ);
	return features | n->port.ops->features(&n->port);
}

void netdev_describe_port(const struct netdev *n, char *text, size_t size)
{
	n->port.ops->describe(&n->port, text, size);
}

unsigned netdev_n_pairs(const struct netdev *n)
{
	return n->n_pairs;
}

const struct queue_stats *netdev_stats(const struct netdev *n, unsigned pair)
{
	return &n->workers[pair].pair.stats;
}

void netdev_get_params(const struct netdev *n, unsigned pair, struct pair_params *params)
{
	*params = n->workers[pair].pair.params;
}

void netdev_set_params(struct netdev *n, unsigned pair, const struct pair_params *params)
{
	struct worker *w = &n->workers[pair];

	worker_park(w);
	w->pair.params = *params;
	moder_set(&w->pair.rx.moder, &params->rx);
	moder_set(&w->pair.tx.moder, &params->tx);
	worker_unpark(w);
}

void netdev_ring_info(struct netdev *n, unsigned ring, struct netdev_ring_info *info)
{
	struct worker *w = worker_of(n, ring);
	const struct queue *q = queue_of(n, ring);

	worker_park(w);
	*info = (struct netdev_ring_info){
		.is_started = q->vq.is_started,
		.is_enabled = q->is_enabled,
		.is_broken = q->vq.is_broken,
		.is_packed = q->vq.is_packed,
		.size = q->vq.size,
		.n_in_flight = virtq_n_in_flight(&q->vq),
		.n_uncalled = q->moder.n_pending,
		.call_usecs = q->moder.params.usecs,
		.kicks_on = q->vq.kicks_are_on,
	};
	virtq_indices(&q->vq, &info->used, &info->next, &info->avail);
	worker_unpark(w);
}

bool netdev_port_memory(struct netdev *n, unsigned pair, struct port_memory *m)
{
	if (!n->port.ops->memory)
		return false;
	/* Another pair's worker may be the one that receives from it. */
	park_all(n);
	n->port.ops->memory(n->workers[pair].pair.port, m);
	unpark_all(n);
	return true;
}

void netdev_refresh_stats(struct netdev *n)
{
	if (n->port.ops->refresh_stats)
		n->port.ops->refresh_stats(&n->port);
}
