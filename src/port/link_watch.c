/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/link_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

/* What can be wrong with one of the name, like another program on it, may end without a message. */
#define RETRY_S 1.0

/* What the messages only hint at is looked up: an overrun of the socket then costs nothing. */
static void check(struct link_watch *l)
{
	if (!l->is_gone && !l->is_alive(l->arg)) {
		l->is_gone = true;
		l->on_gone(l->arg);
	}
	ev_timer_stop(l->loop, &l->retry);
	if (l->is_gone && if_nametoindex(l->ifname) != 0) {
		l->is_gone = l->on_back(l->arg) != 0;
		if (l->is_gone)
			ev_timer_start(l->loop, &l->retry);
	}
	if (!l->is_gone && l->on_change)
		l->on_change(l->arg);
}

static void on_retry(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	check(w->data);
}

static void on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
	struct link_watch *l = w->data;
	char buf[8192];

	(void)loop;
	(void)revents;
	while (recv(l->sock, buf, sizeof(buf), MSG_DONTWAIT) >= 0 || errno == ENOBUFS)
		;
	check(l);
}

int link_watch_open(struct link_watch *l, struct ev_loop *loop)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	int err;

	l->is_gone = false;
	l->sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (l->sock < 0)
		return -errno;
	if (bind(l->sock, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		err = -errno;
		close(l->sock);
		l->sock = -1;
		return err;
	}
	l->loop = loop;
	ev_io_init(&l->watch, on_readable, l->sock, EV_READ);
	l->watch.data = l;
	ev_io_start(loop, &l->watch);
	ev_timer_init(&l->retry, on_retry, RETRY_S, 0.);
	l->retry.data = l;
	return 0;
}

void link_watch_close(struct link_watch *l)
{
	if (l->sock < 0)
		return;
	ev_io_stop(l->loop, &l->watch);
	ev_timer_stop(l->loop, &l->retry);
	close(l->sock);
	l->sock = -1;
}
