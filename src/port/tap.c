/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port "tap": a tap device, one file descriptor (a queue of the tap) for each queue pair.
 *
 * Transmit: the kernel copies the frame straight out of the guest's buffers (writev behind our own
 * checked copy of the virtio-net header), so a frame is sent when the write returns.
 * Receive: a tap tells no length in advance and cuts what does not fit, so frames are read into a
 * stash of slots that each hold the largest frame, and wait there for guest buffers (invariant 1).
 * Nothing is read while frames are left in the stash. After a large frame the next one is read
 * straight into guest buffers, if those hold the largest there can be.
 *
 * The tap carries a 12-byte header always; the worker converts for a guest whose header is shorter.
 * Offloads are set for the whole device, at each negotiation. An interface that has been deleted
 * drops what the guest sends, and is opened again when one of its name is back.
 */
#include <errno.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/lines.h"
#include "base/log.h"
#include "port/port.h"
#include "port/tap_dev.h"
#include "port/tap_io.h"
#include "port/link_watch.h"

/* One byte more than the largest frame: a read that fills it has been cut. Odd multiples of a
 * cache line keep the slots' first lines out of one cache set. */
#define SLOT_LEN    (FRAME_HDR_LEN + FRAME_MAX_LEN + 1)
#define SLOT_STRIDE (65600 + 64)

#define STASH_SLOTS 64u
#define STASH_BYTES ((size_t)STASH_SLOTS * SLOT_STRIDE)
#define MAP_BYTES   (STASH_BYTES + FRAME_MAX_LEN)
#define MIN_READS   4u

_Static_assert(SLOT_LEN <= SLOT_STRIDE, "a slot holds the largest frame");

/* More than a tap's queue can be expected to hold: a sender must not keep us draining it. */
#define MAX_DRAINED 10000

/* From this length on a frame is worth a read of its own, straight into guest buffers. */
#define LARGE_FRAME_LEN 16384

/* More segments than a writev takes: such a frame is made contiguous first, one in each burst. */
#define MAX_SEGMENTS 1024

struct tap_queue {
	struct port_queue base;
	int fd;		  /* the tap's; base.fd is -1 while it cannot be waited for */
	bool is_wanted;	  /* the guest can receive on this queue */
	bool is_detached; /* the kernel steers no flow to it */
	struct tap_io io;

	char *stash;			  /* STASH_SLOTS slots, and behind them `bounce` */
	struct iovec slots[STASH_SLOTS];  /* whole slots, for reading */
	struct iovec iov[STASH_SLOTS][2]; /* header and data of the frame in each slot */
	uint32_t len[STASH_SLOTS];	  /* bytes of data */
	unsigned first, n_held;		  /* slots that hold frames */
	bool is_large;			  /* the last frame that was read */
	unsigned n_reads;		  /* how many frames are asked for next time */

	unsigned n_sent; /* taken by tx, not yet reported */
	char *bounce;	 /* for frames of more than MAX_SEGMENTS */
	struct iovec bounce_iov[2];
	struct tap_op ops[TAP_IO_MAX_OPS];
};

struct tap {
	struct port *port;
	struct port_host host;
	struct port_config cfg;
	struct link_watch link;
	struct tap_queue queues[PORT_MAX_QUEUES];
	unsigned offloads; /* as last set */
	bool was_created;
	bool is_refusal_known; /* of an interface that came in place of a deleted one */
};

static struct tap *tap_of(const struct port *p)
{
	return p->priv;
}

static struct tap_queue *tap_queue_of(struct port_queue *q)
{
	return container_of(q, struct tap_queue, base);
}

/* ---- the path of a packet ---- */

/* The interface has gone: do not wait for its fd any more, it would only report errors. */
static void tap_queue_lose(struct tap_queue *tq)
{
	tq->base.fd = -1;
	tq->base.tx_full = false;
	tq->base.rx_is_large = false;
}

static void tap_keep(struct tap_queue *tq, unsigned slot, int n_read)
{
	if (n_read < FRAME_HDR_LEN + 1 || n_read >= SLOT_LEN) {
		stat_add(tq->base.stats, STAT_rx_dropped, 1);
		stat_add(tq->base.stats, STAT_rx_oversize, n_read >= SLOT_LEN);
		return;
	}

	unsigned to = tq->n_held++;

	if (to != slot) {
		/* A read before this one left its slot free: swap, the slots stay in order. */
		struct iovec free_slot = tq->slots[to];

		tq->slots[to] = tq->slots[slot];
		tq->slots[slot] = free_slot;
	}
	tq->len[to] = (uint32_t)n_read - FRAME_HDR_LEN;
	tq->is_large = tq->len[to] >= LARGE_FRAME_LEN;
	tq->iov[to][0] = (struct iovec){tq->slots[to].iov_base, FRAME_HDR_LEN};
	tq->iov[to][1] =
		(struct iovec){(char *)tq->slots[to].iov_base + FRAME_HDR_LEN, tq->len[to]};
}

/* Return: whether the tap said that it has no more frames, or none at all any longer. */
static bool tap_keep_all(struct tap_queue *tq, unsigned n_ops)
{
	int last = 0;

	for (unsigned i = 0; i < n_ops; i++) {
		last = tq->ops[i].res;
		if (last >= 0)
			tap_keep(tq, i, last);
		else if (last == -EBADFD)
			tap_queue_lose(tq);
	}
	return last < 0;
}

/* Fill the empty stash with at most `max` frames. */
static void tap_read(struct tap_queue *tq, unsigned max)
{
	unsigned n_ask = min_of(max, tq->n_reads);
	unsigned n_read;

	tq->first = 0;
	for (unsigned i = 0; i < n_ask; i++)
		tq->ops[i] = (struct tap_op){.iov = &tq->slots[i], .n_iov = 1};
	n_read = tap_io_read(&tq->io, tq->ops, n_ask);
	tq->base.rx_more = !tap_keep_all(tq, n_ask);
	/* Each read that finds nothing costs a little: ask for what there was, and a few more. */
	tq->n_reads = n_read == n_ask ? min_of(2 * tq->n_reads, STASH_SLOTS)
				      : max_of(n_read + 1, MIN_READS);
}

static unsigned tap_rx_peek(struct port_queue *q, struct frame *frames, unsigned max)
{
	struct tap_queue *tq = tap_queue_of(q);

	q->rx_more = false;
	if (tq->n_held == 0 && q->fd >= 0)
		tap_read(tq, max);

	unsigned n = min_of(max, tq->n_held);

	q->rx_more |= n < tq->n_held;
	for (unsigned i = 0; i < n; i++)
		frames[i] = (struct frame){
			.iov = tq->iov[tq->first + i], .n_iov = 2, .len = tq->len[tq->first + i]};
	return n;
}

static void tap_rx_release(struct port_queue *q, unsigned n)
{
	struct tap_queue *tq = tap_queue_of(q);

	tq->first += n;
	tq->n_held -= n;
	if (tq->n_held > 0)
		q->rx_more = true;
	q->rx_is_large = tq->n_held == 0 && tq->is_large && q->fd >= 0;
}

static int tap_rx_into(struct port_queue *q, const struct iovec *iov, unsigned n_iov)
{
	struct tap_queue *tq = tap_queue_of(q);
	ssize_t len = readv(tq->fd, iov, (int)n_iov);

	q->rx_more = len >= 0;
	if (len >= 0)
		q->rx_is_large = tq->is_large = len >= LARGE_FRAME_LEN;
	else if (errno == EBADFD)
		tap_queue_lose(tq);
	else if (errno == EFAULT) /* guest memory has vanished, and the frame with it */
		stat_add(q->stats, STAT_rx_dropped, 1);
	return len > FRAME_HDR_LEN ? (int)len : 0;
}

/* Make a frame of too many segments contiguous, behind its header. */
static void tap_bounce(struct tap_queue *tq, const struct frame *f)
{
	size_t at = 0;

	for (uint32_t i = 1; i < f->n_iov; i++) {
		memcpy(tq->bounce + at, f->iov[i].iov_base, f->iov[i].iov_len);
		at += f->iov[i].iov_len;
	}
	tq->bounce_iov[0] = f->iov[0];
	tq->bounce_iov[1] = (struct iovec){tq->bounce, at};
}

/* Turn frames into writes. Return: how many, at least 1: a burst ends before a second long one. */
static unsigned tap_prepare(struct tap_queue *tq, const struct frame *frames, unsigned n)
{
	bool is_bounce_used = false;
	unsigned i;

	for (i = 0; i < n; i++) {
		struct tap_op *op = &tq->ops[i];

		*op = (struct tap_op){.iov = frames[i].iov, .n_iov = frames[i].n_iov};
		if (likely(op->n_iov <= MAX_SEGMENTS))
			continue;
		if (is_bounce_used)
			break;
		is_bounce_used = true;
		tap_bounce(tq, &frames[i]);
		op->iov = tq->bounce_iov;
		op->n_iov = 2;
	}
	return i;
}

static void tap_drop(struct tap_queue *tq, struct frame *f)
{
	f->is_dropped = true;
	tq->base.n_tx_dropped++;
}

/*
 * Judge the results of a burst, in order.
 * Return: frames that are done, sent or dropped; the next one must be tried again, or waits when
 * the tap is full.
 */
static unsigned tap_settle(struct tap_queue *tq, struct frame *frames, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		int res = tq->ops[i].res;

		if (likely(res >= 0))
			continue;
		if (res == -ECANCELED)
			return i;
		if (res == -EAGAIN && (i + 1 == n || tq->ops[i + 1].res == -ECANCELED)) {
			tq->base.tx_full = true;
			stat_add(tq->base.stats, STAT_tap_eagain, 1);
			return i;
		}
		/* Down (EIO), gone (EBADFD), not a frame (EINVAL), no memory: the frame is lost. */
		tap_drop(tq, &frames[i]);
		if (res == -EBADFD)
			tap_queue_lose(tq);
	}
	return n;
}

static unsigned tap_tx(struct port_queue *q, struct frame *frames, unsigned n)
{
	struct tap_queue *tq = tap_queue_of(q);
	unsigned n_done = 0;

	q->tx_full = false;
	q->n_tx_dropped = 0;
	while (n_done < n && !q->tx_full && q->fd >= 0) {
		unsigned n_ops = tap_prepare(tq, frames + n_done, n - n_done);

		tap_io_write(&tq->io, tq->ops, n_ops);
		n_ops = tap_settle(tq, frames + n_done, n_ops);
		/* No write was even tried, and none will be: do not turn here for ever. */
		if (unlikely(n_ops == 0 && !q->tx_full))
			tap_drop(tq, &frames[n_done++]);
		n_done += n_ops;
	}
	if (unlikely(q->fd < 0))
		while (n_done < n)
			tap_drop(tq, &frames[n_done++]);
	tq->n_sent += n_done;
	return n_done;
}

static unsigned tap_tx_reap(struct port_queue *q)
{
	struct tap_queue *tq = tap_queue_of(q);
	unsigned n = tq->n_sent;

	tq->n_sent = 0;
	return n;
}

/* ---- life ---- */

static uint64_t tap_features(const struct port *p)
{
	(void)p;
	return BIT_ULL(VIRTIO_NET_F_CSUM) | BIT_ULL(VIRTIO_NET_F_GUEST_CSUM) |
	       BIT_ULL(VIRTIO_NET_F_HOST_TSO4) | BIT_ULL(VIRTIO_NET_F_HOST_TSO6) |
	       BIT_ULL(VIRTIO_NET_F_HOST_ECN) | BIT_ULL(VIRTIO_NET_F_GUEST_TSO4) |
	       BIT_ULL(VIRTIO_NET_F_GUEST_TSO6) | BIT_ULL(VIRTIO_NET_F_GUEST_ECN);
}

static int tap_queue_init(struct tap_queue *tq, struct port *p, unsigned i)
{
	tq->base = (struct port_queue){.port = p, .index = i, .fd = -1};
	tq->fd = -1;
	tq->n_reads = MIN_READS;
	/* Only what frames touch becomes resident. */
	tq->stash = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (tq->stash == MAP_FAILED) {
		tq->stash = NULL;
		return -ENOMEM;
	}
	tq->bounce = tq->stash + STASH_BYTES;
	for (unsigned s = 0; s < STASH_SLOTS; s++)
		tq->slots[s] = (struct iovec){tq->stash + (size_t)s * SLOT_STRIDE, SLOT_LEN};
	return 0;
}

static void tap_queue_detach_fd(struct tap_queue *tq)
{
	tap_io_fini(&tq->io);
	if (tq->fd >= 0)
		close(tq->fd);
	tq->fd = -1;
	tq->base.fd = -1;
}

static void tap_queue_attach_fd(struct tap_queue *tq, int fd)
{
	tq->fd = fd;
	tq->base.fd = fd;
	tq->is_detached = false;
	tq->base.tx_full = false;
	tap_io_init(&tq->io, fd, tap_dev_has_limit(fd));
}

/* The kernel purges a queue that is detached: keep what fits into the stash, count the rest. */
static void tap_queue_drain(struct tap_queue *tq)
{
	unsigned n_lost = 0;

	if (!tq->base.stats) /* not in use yet */
		return;
	if (tq->n_held == 0) {
		tq->n_reads = STASH_SLOTS;
		tap_read(tq, STASH_SLOTS);
	}
	while (n_lost < MAX_DRAINED && read(tq->fd, tq->bounce, FRAME_MAX_LEN) > 0)
		n_lost++;
	stat_add(tq->base.stats, STAT_rx_dropped, n_lost);
}

/* Have the kernel steer flows to the queue, or not, as the guest can receive on it. */
static void tap_queue_steer(struct tap_queue *tq)
{
	/* Some queue must stay: without any, the kernel forgets the device's settings. */
	bool is_wanted = tq->is_wanted || tq->base.index == 0;

	if (tq->fd < 0 || tq->is_detached == !is_wanted)
		return;
	if (!is_wanted)
		tap_queue_drain(tq);
	if (tap_dev_attach_queue(tq->fd, is_wanted) != 0)
		return;
	tq->is_detached = !is_wanted;
	/* A detached queue cannot send either; the first one's fd can, from any thread. */
	tq->io.fd = is_wanted ? tq->fd : tap_of(tq->base.port)->queues[0].fd;
	tq->base.fd = tq->io.fd;
}

static void tap_enable_queue(struct port *p, unsigned i, bool is_enabled)
{
	struct tap_queue *tq = &tap_of(p)->queues[i];

	tq->is_wanted = is_enabled;
	tap_queue_steer(tq);
}

static void tap_queue_fini(struct tap_queue *tq)
{
	if (!tq->base.port)
		return;
	tap_queue_detach_fd(tq);
	if (tq->n_held > 0)
		stat_add(tq->base.stats, STAT_rx_dropped, tq->n_held);
	if (tq->stash)
		munmap(tq->stash, MAP_BYTES);
}

static bool tap_is_alive(void *arg)
{
	struct tap *tap = arg;

	return tap_dev_is_alive(tap->queues[0].fd);
}

static struct tap_dev_request tap_request(const struct tap *tap, bool may_create)
{
	return (struct tap_dev_request){
		.ifname = tap->cfg.ifname,
		.bridge = tap->cfg.bridge,
		.sndbuf = tap->cfg.sndbuf,
		.may_create = may_create,
		.n_queues = tap->port->n_queues,
	};
}

/* Open the interface for every queue. Return: 0 or -errno after a log line. */
static int tap_attach(struct tap *tap, bool may_create)
{
	struct tap_dev_request req = tap_request(tap, may_create);
	int fds[PORT_MAX_QUEUES];
	int err =
		tap->cfg.fd >= 0 ? tap_dev_adopt(&req, tap->cfg.fd, fds) : tap_dev_open(&req, fds);

	if (err)
		return err;
	tap->was_created = req.was_created;
	memcpy(tap->cfg.ifname, req.name, sizeof(tap->cfg.ifname));
	for (unsigned i = 0; i < tap->port->n_queues; i++)
		tap_queue_attach_fd(&tap->queues[i], fds[i]);
	for (unsigned i = 0; i < tap->port->n_queues; i++)
		tap_queue_steer(&tap->queues[i]);
	return 0;
}

static void tap_on_gone(void *arg)
{
	struct tap *tap = arg;

	log_warnx("tap %s: the interface was deleted: frames from the guest are dropped until it "
		  "is back%s",
		  tap->cfg.ifname, tap->cfg.fd >= 0 ? " (restart with a new fd)" : "");
	tap->is_refusal_known = false;
	tap->host.park(tap->host.arg);
	for (unsigned i = 0; i < tap->port->n_queues; i++)
		tap_queue_detach_fd(&tap->queues[i]);
	tap->host.unpark(tap->host.arg);
}

/* Something of the interface's name is there. Called every second and at each change of any interface,
 * so what is wrong with it is said once, and nobody is made to wait before it can be had. */
static int tap_on_back(void *arg)
{
	struct tap *tap = arg;
	struct tap_dev_request req = tap_request(tap, false);
	int err = tap->cfg.fd >= 0 ? -ENODEV : tap_dev_try(&req);

	if (err) {
		if (!tap->is_refusal_known && tap->cfg.fd < 0)
			log_warn(err,
				 "tap %s: there is one of this name, but it cannot be had: "
				 "delete it, or end the process that uses it",
				 tap->cfg.ifname);
		tap->is_refusal_known = true;
		return err;
	}
	tap->host.park(tap->host.arg);
	err = tap_attach(tap, false);
	if (err == 0)
		err = tap_dev_set_offloads(tap->queues[0].fd, tap->offloads);
	tap->host.unpark(tap->host.arg);
	if (err == 0)
		log_info("tap %s: the interface is back, and in use", tap->cfg.ifname);
	return err;
}

static void tap_close(struct port *p)
{
	struct tap *tap = tap_of(p);

	if (!tap)
		return;
	link_watch_close(&tap->link);
	if (tap->queues[0].fd >= 0 && tap->offloads != 0)
		tap_dev_set_offloads(tap->queues[0].fd, 0);
	for (unsigned i = 0; i < p->n_queues; i++)
		tap_queue_fini(&tap->queues[i]);
	free(tap);
	p->priv = NULL;
}

static int tap_open(struct port *p, const struct port_config *cfg, const struct port_host *host)
{
	struct tap *tap = lines_alloc(1, sizeof(*tap));
	int err = 0;

	if (!tap)
		return -ENOMEM;
	p->priv = tap;
	tap->port = p;
	tap->host = *host;
	tap->cfg = *cfg;
	tap->link.sock = -1;
	for (unsigned i = 0; i < p->n_queues && err == 0; i++)
		err = tap_queue_init(&tap->queues[i], p, i);
	if (err)
		log_err(err, "tap %s: cannot have memory for its queues", cfg->ifname);
	else
		err = tap_attach(tap, cfg->create);
	if (err)
		goto fail;
	memcpy(tap->link.ifname, tap->cfg.ifname, sizeof(tap->link.ifname));
	tap->link.is_alive = tap_is_alive;
	tap->link.on_gone = tap_on_gone;
	tap->link.on_back = tap_on_back;
	tap->link.arg = tap;
	err = link_watch_open(&tap->link, host->loop);
	if (err) {
		log_err(err, "tap %s: cannot listen for changes of interfaces (netlink)",
			cfg->ifname);
		goto fail;
	}
	return 0;
fail:
	tap_close(p);
	return err;
}

static int tap_negotiate(struct port *p, uint64_t features)
{
	struct tap *tap = tap_of(p);
	unsigned offloads = tap_dev_offloads(features);

	/* A tap that has gone gets them when it is back. */
	tap->offloads = offloads;
	if (tap->queues[0].fd < 0)
		return 0;

	int err = tap_dev_set_offloads(tap->queues[0].fd, offloads);

	/* Deleted a moment ago, and the control thread has not heard of it yet. */
	if (err == -EBADFD)
		return 0;
	if (err)
		log_err(err, "tap %s: cannot set offloads 0x%x", tap->cfg.ifname, offloads);
	return err;
}

static void tap_describe(const struct port *p, char *text, size_t size)
{
	const struct tap *tap = tap_of(p);

	snprintf(text, size, "tap:%s%s", tap->cfg.ifname, tap->was_created ? " (created)" : "");
}

static struct port_queue *tap_queue(struct port *p, unsigned i)
{
	return &tap_of(p)->queues[i].base;
}

const struct port_ops tap_port = {
	.name = "tap",
	.features = tap_features,
	.open = tap_open,
	.close = tap_close,
	.negotiate = tap_negotiate,
	.enable_queue = tap_enable_queue,
	.describe = tap_describe,
	.queue = tap_queue,
	.rx_peek = tap_rx_peek,
	.rx_release = tap_rx_release,
	.rx_into = tap_rx_into,
	.tx = tap_tx,
	.tx_reap = tap_tx_reap,
};
