/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port "xdp": one AF_XDP socket (xdp_sock.h) on a queue of a network interface for each queue pair,
 * and an XDP program (xdp_prog.h) that brings the frames of these queues to them.
 *
 * A pair sends by its own socket. It receives from its own, and while some pairs do not receive,
 * also from theirs, so that no flow ends in nothing: socket i of those goes to the receiving pair i
 * modulo their number, moved while all workers are parked.
 *
 * While the interface is down the guest's frames wait; when it has been deleted, or has gone to
 * another namespace, they are dropped until one of its name is back and has been opened again.
 */
#include <errno.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lines.h"
#include "base/log.h"
#include "port/link_watch.h"
#include "port/port.h"
#include "port/xdp_dev.h"
#include "port/xdp_group.h"
#include "port/xdp_prog.h"
#include "port/xdp_sock.h"

/* While there are frames in a queue's own sockets, the group's gets a look in so many. */
#define GROUP_PERIOD 32

struct xdp_queue {
	struct port_queue base;
	struct xdp_sock sock;
	bool receives; /* the guest does, on this pair */

	/* the sockets that the pair receives from */
	struct xdp_sock *sources[PORT_MAX_QUEUES];
	unsigned n_sources;
	unsigned at;  /* the one that was looked at last */
	int epoll_fd; /* all of them, if they are several; -1 */

	struct xdp_group *group; /* of the first pair that receives; else NULL */
	unsigned n_looks;	 /* since the last one at it */
	bool is_group_shown;

	unsigned n_done; /* frames that tx_reap is to report beyond those that were sent... */
	unsigned n_lost; /* ...of which so many were not, and never will be */
};

/* What an interface is like, as far as it decides whether we can use it. */
struct look {
	int ifindex; /* 0: none */
	unsigned n_queues, n_tx_queues, mtu;
	uint32_t program;
};

struct xdp {
	struct port *port;
	struct port_host host;
	struct port_config cfg;
	struct link_watch link;
	struct xdp_prog prog;
	struct xdp_dev_info dev;
	int listen_fd; /* keeps the interface open for the guest's frames; -1 */
	struct xdp_queue queues[PORT_MAX_QUEUES];
	struct xdp_group group cacheline_align; /* that pair's worker's */
	bool is_gone cacheline_align;
	bool wants_csum;       /* the guest takes frames with unfinished checksums */
	bool has_vlan_changed; /* stripping of tags was turned off, and is to be restored */
	/* An interface that came in place of a deleted one, and could not be used: what is wrong with
	 * it is said once, and it is tried again when it looks different. */
	struct look refused;
};

static struct xdp *xdp_of(const struct port *p)
{
	return p->priv;
}

static struct xdp_queue *xdp_queue_of(struct port_queue *q)
{
	return container_of(q, struct xdp_queue, base);
}

/* ---- the path of a packet ---- */

/* Look at the sockets in turn, until one has frames. */
static unsigned peek_sockets(struct xdp_queue *xq, struct frame *frames, unsigned max,
			     bool wants_csum)
{
	unsigned n = 0;

	for (unsigned i = 0; i < xq->n_sources && n == 0; i++) {
		xq->at = xq->at + 1 < xq->n_sources ? xq->at + 1 : 0;
		n = xdp_sock_rx_peek(xq->sources[xq->at], frames, max, wants_csum);
	}
	/* The others, and what is left of this one, are seen in the next turn. */
	xq->base.rx_more = n == max || (n > 0 && xq->n_sources > 1);
	return n;
}

static bool peek_group(struct xdp_queue *xq, struct frame *frames, bool wants_csum)
{
	xq->n_looks = 0;
	xq->is_group_shown = xdp_group_peek(xq->group, frames, wants_csum, xq->base.stats);
	xq->base.rx_more = xq->is_group_shown;
	return xq->is_group_shown;
}

static unsigned xdp_rx_peek(struct port_queue *q, struct frame *frames, unsigned max)
{
	struct xdp_queue *xq = xdp_queue_of(q);
	const bool wants_csum = xdp_of(q->port)->wants_csum;
	const bool has_group = xq->group != NULL;
	unsigned n;

	if (unlikely(has_group) && ++xq->n_looks >= GROUP_PERIOD &&
	    peek_group(xq, frames, wants_csum))
		return 1;
	n = peek_sockets(xq, frames, max, wants_csum);
	if (n == 0 && has_group)
		n = peek_group(xq, frames, wants_csum);
	return n;
}

static void xdp_rx_release(struct port_queue *q, unsigned n)
{
	struct xdp_queue *xq = xdp_queue_of(q);

	if (unlikely(xq->is_group_shown)) {
		xq->is_group_shown = false;
		if (n > 0)
			xdp_group_release(xq->group);
		return;
	}
	xdp_sock_rx_release(xq->sources[xq->at], n);
}

/* Nothing can be sent, and nothing will be. */
static unsigned drop_all(struct xdp_queue *xq, struct frame *frames, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		frames[i].is_dropped = true;
	xq->base.n_tx_dropped = n;
	xq->n_done += n;
	return n;
}

static unsigned xdp_tx(struct port_queue *q, struct frame *frames, unsigned n)
{
	struct xdp_queue *xq = xdp_queue_of(q);
	unsigned n_taken;

	q->tx_full = false;
	q->n_tx_dropped = 0;
	if (unlikely(!xq->sock.xsk))
		return drop_all(xq, frames, n);
	n_taken = xdp_sock_tx(&xq->sock, frames, n, &q->n_tx_dropped);
	q->tx_full = n_taken < n;
	q->retry_us = xq->sock.retry_us;
	return n_taken;
}

static unsigned xdp_tx_reap(struct port_queue *q)
{
	struct xdp_queue *xq = xdp_queue_of(q);
	unsigned n = xq->n_done + xdp_sock_tx_reap(&xq->sock);

	q->retry_us = xq->sock.retry_us;
	xq->n_done = 0;
	xq->n_lost += xq->sock.n_lost;
	xq->sock.n_lost = 0;
	q->n_tx_lost = min_of(xq->n_lost, n);
	xq->n_lost -= q->n_tx_lost;
	return n;
}

static void xdp_tx_cancel(struct port_queue *q)
{
	struct xdp_queue *xq = xdp_queue_of(q);

	xq->n_done += xdp_sock_tx_disown(&xq->sock);
}

/* ---- who receives from which socket ---- */

/* Write the fds that the pair's frames come from. Return: how many. */
static unsigned list_fds(const struct xdp_queue *xq, int *fds)
{
	unsigned n = 0;

	for (unsigned i = 0; i < xq->n_sources; i++)
		fds[n++] = xq->sources[i]->fd;
	if (xq->group)
		fds[n++] = xq->group->fd;
	return n;
}

static void watch_sources(struct xdp_queue *xq)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fds[PORT_MAX_QUEUES + 1];
	unsigned n = list_fds(xq, fds);

	if (xq->epoll_fd >= 0)
		close(xq->epoll_fd);
	xq->epoll_fd = -1;
	xq->base.fd = n == 1 ? fds[0] : -1;
	if (n <= 1)
		return;
	xq->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned i = 0; i < n; i++)
		if (epoll_ctl(xq->epoll_fd, EPOLL_CTL_ADD, fds[i], &event) < 0)
			log_err(errno, "xdp: queue %u cannot wait for its sockets", xq->base.index);
	xq->base.fd = xq->epoll_fd;
}

/* Give each socket to its own pair, or to one of those that receive, and the group to the first of
 * these; parked. */
static void share_out(struct xdp *xdp)
{
	struct xdp_queue *receivers[PORT_MAX_QUEUES];
	unsigned n_receivers = 0;

	for (unsigned i = 0; i < xdp->port->n_queues; i++) {
		xdp->queues[i].n_sources = 0;
		xdp->queues[i].at = 0;
		xdp->queues[i].group = NULL;
		if (xdp->queues[i].receives)
			receivers[n_receivers++] = &xdp->queues[i];
	}
	for (unsigned i = 0; i < xdp->port->n_queues && !xdp->is_gone; i++) {
		struct xdp_queue *to = &xdp->queues[i];

		if (!to->receives && n_receivers > 0)
			to = receivers[i % n_receivers];
		to->sources[to->n_sources++] = &xdp->queues[i].sock;
	}
	if (xdp->group.fd >= 0)
		(n_receivers > 0 ? receivers[0] : &xdp->queues[0])->group = &xdp->group;
	for (unsigned i = 0; i < xdp->port->n_queues; i++)
		watch_sources(&xdp->queues[i]);
}

static void xdp_enable_queue(struct port *p, unsigned i, bool is_enabled)
{
	struct xdp *xdp = xdp_of(p);

	if (xdp->queues[i].receives == is_enabled)
		return;
	xdp->queues[i].receives = is_enabled;
	share_out(xdp);
}

/* ---- open and close ---- */

static unsigned queue_number(const struct xdp *xdp, unsigned i)
{
	return xdp->cfg.queues.n > 0 ? xdp->cfg.queues.queue[i] : i;
}

/* What is on its way comes to nothing; the guest gets its buffers back. */
static void close_socket(struct xdp_queue *xq)
{
	unsigned n_unsent;

	if (xq->base.stats && xq->sock.xsk)
		stat_add(xq->base.stats, STAT_rx_dropped, xdp_sock_n_waiting(&xq->sock));
	n_unsent = xdp_sock_close(&xq->sock);
	xq->n_done += n_unsent;
	xq->n_lost += n_unsent;
	xq->base.retry_us = 0;
	xq->base.tx_full = false;
}

/* Add what the kernel has counted; it forgets that with the sockets. */
static void refresh_stats(struct xdp *xdp)
{
	for (unsigned i = 0; i < xdp->port->n_queues; i++) {
		struct xdp_queue *xq = &xdp->queues[i];

		if (xq->sock.xsk && xq->base.stats)
			xdp_sock_read_stats(&xq->sock, xq->base.stats);
	}
	if (xdp->group.fd >= 0 && xdp->queues[0].base.stats)
		xdp_group_read_stats(&xdp->group, xdp->queues[0].base.stats);
}

static void close_sockets(struct xdp *xdp)
{
	refresh_stats(xdp);
	for (unsigned i = 0; i < xdp->port->n_queues; i++)
		close_socket(&xdp->queues[i]);
	xdp_group_close(&xdp->group);
	if (xdp->listen_fd >= 0)
		close(xdp->listen_fd);
	xdp->listen_fd = -1;
	xdp_prog_close(&xdp->prog);
	xdp->is_gone = true;
	share_out(xdp);
}

/* Have the kernel poll the interface from our system calls, for as long as a worker looks. */
static void prefer_busy_poll(const struct xdp *xdp, struct xdp_sock *s)
{
	const int on = 1, usecs = (int)xdp->cfg.poll_usecs, budget = 64;

	if (setsockopt(s->fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &on, sizeof(on)) < 0 ||
	    setsockopt(s->fd, SOL_SOCKET, SO_BUSY_POLL, &usecs, sizeof(usecs)) < 0 ||
	    setsockopt(s->fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget, sizeof(budget)) < 0)
		log_warn(errno,
			 "xdp %s: cannot ask for busy polling of queue %u (needs CAP_NET_ADMIN)",
			 xdp->cfg.ifname, s->queue);
	else
		s->polls_device = true;
}

/* Return: whether busy polling is asked for, and the interface waits for those who poll it. */
static bool wants_busy_poll(const struct xdp *xdp)
{
	if (xdp->cfg.poll_usecs == 0)
		return false;
	if (!xdp->dev.defers_interrupts)
		log_info("xdp %s: poll.usecs does not make the kernel poll the interface: for that "
			 "set "
			 "napi_defer_hard_irqs and gro_flush_timeout in /sys/class/net/%s, and "
			 "start "
			 "again",
			 xdp->cfg.ifname, xdp->cfg.ifname);
	return xdp->dev.defers_interrupts;
}

/* Return: whether the interface has a pair's queue among its `n` of a kind; else a line has said so. */
static bool has_queue(const struct xdp *xdp, unsigned i, const char *kind, unsigned n)
{
	const unsigned queue = queue_number(xdp, i);

	if (n == 0 || queue < n)
		return true;
	log_errx("xdp %s: the interface has no %s queue %u, it has %u: add some (ethtool -L %s "
		 "combined %u, or rx %u tx %u), or lower queue-pairs or port.queues",
		 xdp->cfg.ifname, kind, queue, n, xdp->cfg.ifname, queue + 1, queue + 1, queue + 1);
	return false;
}

static int check_queues(const struct xdp *xdp)
{
	/* To a transmit queue that is not there the kernel sends nothing, and does not say so. */
	for (unsigned i = 0; i < xdp->port->n_queues; i++)
		if (!has_queue(xdp, i, "receive", xdp->dev.n_queues) ||
		    !has_queue(xdp, i, "transmit", xdp->dev.n_tx_queues))
			return -EINVAL;
	if (xdp->dev.n_queues > xdp->port->n_queues)
		log_warnx(
			"xdp %s: the interface has %u receive queues and %u of them are the "
			"guest's: frames on the others do not reach it: ethtool -L %s combined %u "
			"(or rx %u)",
			xdp->cfg.ifname, xdp->dev.n_queues, xdp->port->n_queues, xdp->cfg.ifname,
			xdp->port->n_queues, xdp->port->n_queues);
	return 0;
}

static int query_device(struct xdp *xdp)
{
	int err = xdp_dev_query(xdp->cfg.ifname, &xdp->dev);

	if (err == -ENODEV)
		log_errx("xdp %s: there is no such interface: create it, or give another "
			 "(ip link show)",
			 xdp->cfg.ifname);
	else if (err)
		log_err(err, "xdp %s: cannot ask the interface", xdp->cfg.ifname);
	return err ? err : check_queues(xdp);
}

/* A veth's tags are where its peer has left them; only the XDP program can put them back. */
static void keep_vlan_tags_of_veth(const struct xdp *xdp)
{
	if (!xdp->prog.keeps_vlan)
		log_warnx("xdp %s: VLAN tags that the veth peer keeps outside the frame are lost "
			  "to the guest: ethtool -K PEER txvlan off; or Linux 6.8 or newer and "
			  "native mode, for which the peer must not have more transmit queues "
			  "than this end receive queues",
			  xdp->cfg.ifname);
}

/* VLAN tags belong into the frame, where the guest looks for them. That the program could put them
 * back does not mean that this driver tells of them. */
static void keep_vlan_tags(struct xdp *xdp)
{
	int err;

	if (!xdp->dev.strips_vlan)
		return;
	if (strcmp(xdp->dev.driver, "veth") == 0) {
		keep_vlan_tags_of_veth(xdp);
		return;
	}
	err = xdp->dev.can_keep_vlan ? xdp_dev_strip_vlan(xdp->cfg.ifname, false) : -EOPNOTSUPP;
	xdp->has_vlan_changed = err == 0;
	if (err)
		log_warn(err,
			 "xdp %s: VLAN tags of received frames may be lost to the guest: ethtool "
			 "-K %s "
			 "rxvlan off",
			 xdp->cfg.ifname, xdp->cfg.ifname);
}

/* In generic mode a veth's peer goes on handing over what it would cut in native mode. It reaches the
 * guest as it is, whole: a guest that only ends connections does not mind. */
static void check_superframes(const struct xdp *xdp)
{
	if (!xdp->prog.is_native && strcmp(xdp->dev.driver, "veth") == 0)
		log_warnx(
			"xdp %s: in generic mode frames that the veth peer has not segmented reach "
			"the guest larger than the MTU: ethtool -K PEER tso off gso off",
			xdp->cfg.ifname);
}

/* The interface takes frames that the sockets cannot; said once for each MTU. */
static void check_mtu(const struct xdp *xdp)
{
	uint32_t largest = xdp_sock_max_received(&xdp->queues[0].sock);

	if (xdp->dev.mtu + LINK_HEADER_LEN > largest)
		log_warnx("xdp %s: the MTU is %u, but frames of more than %u bytes are dropped: "
			  "lower it%s%s",
			  xdp->cfg.ifname, xdp->dev.mtu, largest,
			  xdp->cfg.frame_size < 4096 ? ", or set port.frame-size = 4096" : "",
			  xdp->queues[0].sock.is_multi_buffer ? "" : ", or use Linux 6.6 or newer");
}

/* An interface lets through what is for its own address only; the guest has another. */
static void listen_for_guest(struct xdp *xdp)
{
	xdp->listen_fd = xdp_dev_listen(xdp->dev.ifindex,
					xdp->cfg.steer == PORT_STEER_MAC ? xdp->cfg.mac : NULL);
	if (xdp->listen_fd < 0)
		log_warn(xdp->listen_fd,
			 "xdp %s: frames to the guest's address may not come in: ip link set %s "
			 "promisc on",
			 xdp->cfg.ifname, xdp->cfg.ifname);
}

static int open_sockets(struct xdp *xdp)
{
	struct xdp_sock_config cfg = {
		.port = &xdp->cfg,
		.mtu = xdp->dev.mtu,
		.is_generic = !xdp->prog.is_native,
		.map_fd = xdp->prog.map_fd,
	};
	const bool is_busy_poll = wants_busy_poll(xdp);
	int err = 0;

	for (unsigned i = 0; i < xdp->port->n_queues && err == 0; i++) {
		struct xdp_sock *s = &xdp->queues[i].sock;

		err = xdp_sock_open(s, queue_number(xdp, i), &cfg);
		if (err == 0 && is_busy_poll)
			prefer_busy_poll(xdp, s);
		xdp_sock_set_down(s, !xdp->dev.is_up);
	}
	return err;
}

/* Take the interface into use. Return: 0 or -errno after a log line, with nothing left behind. */
static int attach(struct xdp *xdp)
{
	int err = query_device(xdp);

	if (err == 0)
		err = xdp_sock_check(xdp->cfg.ifname);
	if (err)
		return err;
	err = xdp_prog_open(&xdp->prog, &xdp->cfg, xdp->dev.ifindex);
	if (err)
		return err;
	err = open_sockets(xdp);
	if (err == 0 && xdp->cfg.steer == PORT_STEER_MAC)
		err = xdp_group_open(&xdp->group, xdp->cfg.ifname, xdp->dev.ifindex);
	if (err) {
		close_sockets(xdp);
		return err;
	}
	listen_for_guest(xdp);
	keep_vlan_tags(xdp);
	check_mtu(xdp);
	xdp->is_gone = false;
	share_out(xdp);
	xdp->host.link(xdp->host.arg, xdp->dev.has_carrier);
	return 0;
}

/* ---- what happens to the interface ---- */

/* An interface that was elsewhere may be back with its name and its number. */
static bool xdp_is_alive(void *arg)
{
	const struct xdp *xdp = arg;

	return (int)if_nametoindex(xdp->cfg.ifname) == xdp->dev.ifindex &&
	       xdp_sock_is_bound(&xdp->queues[0].sock);
}

static void xdp_on_gone(void *arg)
{
	struct xdp *xdp = arg;

	log_warnx(
		"xdp %s: the interface is gone: frames from the guest are dropped until it is back",
		xdp->cfg.ifname);
	xdp->refused.ifindex = 0;
	xdp->has_vlan_changed = false;
	xdp->host.park(xdp->host.arg);
	close_sockets(xdp);
	xdp->host.unpark(xdp->host.arg);
	xdp->host.link(xdp->host.arg, false);
}

static struct look look_at(const char *ifname)
{
	struct xdp_dev_info dev;

	if (xdp_dev_query(ifname, &dev) < 0)
		return (struct look){0};
	return (struct look){
		.ifindex = dev.ifindex,
		.n_queues = dev.n_queues,
		.n_tx_queues = dev.n_tx_queues,
		.mtu = dev.mtu,
		.program = xdp_prog_find(dev.ifindex),
	};
}

static bool is_same_look(const struct look *a, const struct look *b)
{
	return a->ifindex == b->ifindex && a->n_queues == b->n_queues &&
	       a->n_tx_queues == b->n_tx_queues && a->mtu == b->mtu && a->program == b->program;
}

static int xdp_on_back(void *arg)
{
	struct xdp *xdp = arg;
	/* Before the attempt: what is put right while it lasts is a difference, too. */
	struct look look = look_at(xdp->cfg.ifname);
	int err;

	if (look.ifindex == 0 || is_same_look(&look, &xdp->refused))
		return -EBUSY;
	xdp->host.park(xdp->host.arg);
	err = attach(xdp);
	xdp->host.unpark(xdp->host.arg);
	if (err)
		xdp->refused = look;
	else
		log_info("xdp %s: the interface is back, and in use", xdp->cfg.ifname);
	return err;
}

static void set_down(struct xdp *xdp, bool is_down)
{
	log_info("xdp %s: the interface is %s", xdp->cfg.ifname,
		 is_down ? "down: the guest's frames wait" : "up again");
	xdp->host.park(xdp->host.arg);
	for (unsigned i = 0; i < xdp->port->n_queues; i++) {
		struct xdp_queue *xq = &xdp->queues[i];

		xdp_sock_set_down(&xq->sock, is_down);
		xq->base.retry_us = xq->sock.retry_us;
		xq->base.tx_full = false;
	}
	xdp->host.unpark(xdp->host.arg);
}

static void xdp_on_change(void *arg)
{
	struct xdp *xdp = arg;
	struct xdp_dev_info before = xdp->dev;

	if (xdp_dev_query(xdp->cfg.ifname, &xdp->dev) < 0 || xdp->dev.ifindex != before.ifindex) {
		xdp->dev = before;
		return;
	}
	if (xdp->dev.is_up != before.is_up)
		set_down(xdp, !xdp->dev.is_up);
	if (xdp->dev.has_carrier != before.has_carrier)
		xdp->host.link(xdp->host.arg, xdp->dev.has_carrier);
	if (xdp->dev.mtu != before.mtu)
		check_mtu(xdp);
}

/* ---- the port ---- */

static uint64_t xdp_features(const struct port *p)
{
	(void)p;
	return BIT_ULL(VIRTIO_NET_F_CSUM) | BIT_ULL(VIRTIO_NET_F_GUEST_CSUM);
}

static void xdp_close(struct port *p)
{
	struct xdp *xdp = xdp_of(p);

	if (!xdp)
		return;
	link_watch_close(&xdp->link);
	if (xdp->has_vlan_changed)
		xdp_dev_strip_vlan(xdp->cfg.ifname, true);
	close_sockets(xdp);
	free(xdp);
	p->priv = NULL;
}

static int watch_link(struct xdp *xdp)
{
	int err;

	memcpy(xdp->link.ifname, xdp->cfg.ifname, sizeof(xdp->link.ifname));
	xdp->link.is_alive = xdp_is_alive;
	xdp->link.on_gone = xdp_on_gone;
	xdp->link.on_back = xdp_on_back;
	xdp->link.on_change = xdp_on_change;
	xdp->link.arg = xdp;
	err = link_watch_open(&xdp->link, xdp->host.loop);
	if (err)
		log_err(err, "xdp %s: cannot watch the interface", xdp->cfg.ifname);
	return err;
}

static int xdp_open(struct port *p, const struct port_config *cfg, const struct port_host *host)
{
	struct xdp *xdp = lines_alloc(1, sizeof(*xdp));
	int err;

	if (!xdp)
		return -ENOMEM;
	p->priv = xdp;
	xdp->port = p;
	xdp->cfg = *cfg;
	xdp->host = *host;
	xdp->link.sock = -1;
	xdp->prog = XDP_PROG_NONE;
	xdp->listen_fd = -1;
	xdp->group.fd = -1;
	for (unsigned i = 0; i < p->n_queues; i++) {
		xdp->queues[i].base = (struct port_queue){.port = p, .index = i, .fd = -1};
		xdp->queues[i].epoll_fd = -1;
		xdp->queues[i].receives = true;
	}
	/* First: what changes in the meantime is looked at afterwards. */
	err = watch_link(xdp);
	if (err == 0)
		err = attach(xdp);
	if (err)
		xdp_close(p);
	else
		check_superframes(xdp);
	return err;
}

static int xdp_negotiate(struct port *p, uint64_t features)
{
	xdp_of(p)->wants_csum = features & BIT_ULL(VIRTIO_NET_F_GUEST_CSUM);
	return 0;
}

static void xdp_describe(const struct port *p, char *text, size_t size)
{
	const struct xdp *xdp = xdp_of(p);

	if (xdp->is_gone)
		snprintf(text, size, "xdp:%s (gone)", xdp->cfg.ifname);
	else
		snprintf(text, size, "xdp:%s (%s, %s%s)", xdp->cfg.ifname,
			 xdp->prog.is_native ? "native" : "generic",
			 xdp->queues[0].sock.is_zero_copy ? "zero-copy" : "copy",
			 xdp->queues[0].sock.polls_device ? ", busy-poll" : "");
}

static struct port_queue *xdp_queue(struct port *p, unsigned i)
{
	return &xdp_of(p)->queues[i].base;
}

static void xdp_memory(struct port_queue *q, struct port_memory *m)
{
	const struct xdp_sock *s = &xdp_queue_of(q)->sock;

	*m = (struct port_memory){0};
	if (s->xsk)
		xdp_sock_memory(s, m);
}

static void xdp_refresh_stats(struct port *p)
{
	refresh_stats(xdp_of(p));
}

const struct port_ops xdp_port = {
	.name = "xdp",
	.features = xdp_features,
	.open = xdp_open,
	.close = xdp_close,
	.negotiate = xdp_negotiate,
	.enable_queue = xdp_enable_queue,
	.describe = xdp_describe,
	.queue = xdp_queue,
	.rx_peek = xdp_rx_peek,
	.rx_release = xdp_rx_release,
	.tx = xdp_tx,
	.tx_reap = xdp_tx_reap,
	.tx_cancel = xdp_tx_cancel,
	.memory = xdp_memory,
	.refresh_stats = xdp_refresh_stats,
};
