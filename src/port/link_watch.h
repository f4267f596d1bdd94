/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hears from the kernel (rtnetlink) that an interface has been deleted, or that one of its name is
 * there again; one that cannot be used is tried again every second. Control thread only; owns its
 * socket, watch and timer; wakes nobody while the interface is in use, or absent, and none changes.
 */
#ifndef PORT_LINK_WATCH_H
#define PORT_LINK_WATCH_H

#include <ev.h>
#include <net/if.h>
#include <stdbool.h>

struct link_watch {
	ev_io watch;
	ev_timer retry;
	struct ev_loop *loop;
	int sock; /* -1: not open */
	char ifname[IFNAMSIZ];
	bool is_gone;
	bool (*is_alive)(void *arg); /* whether the interface that is in use still exists */
	void (*on_gone)(void *arg);
	/* Return: 0 when the interface is in use again. */
	int (*on_back)(void *arg);
	/* Anything of any interface has changed, and ours exists. NULL: does not matter. */
	void (*on_change)(void *arg);
	void *arg;
};

/* Start to listen; ifname, callbacks and arg are the caller's to set, before. Return: 0 or -errno. */
int link_watch_open(struct link_watch *l, struct ev_loop *loop);

/* Stop. Accepts one that is not open (sock = -1). */
void link_watch_close(struct link_watch *l);

#endif
