/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest's copies of multicast and broadcast frames, for `steer = mac`: the XDP program leaves
 * these to the host, and a filtered packet socket hands them to us too. The worker of the first pair
 * that receives looks at it, when its queue is empty and now and then otherwise; there is never more
 * than one frame here, which stays until it is released (invariant 1). Opened and closed by the
 * control thread with the workers parked.
 */
#ifndef PORT_XDP_GROUP_H
#define PORT_XDP_GROUP_H

#include "port/port.h"

struct xdp_group {
	int fd; /* -1: not open */
	char *buffer;
	char header[FRAME_HDR_LEN];
	struct iovec iov[2];
	uint32_t len; /* bytes of the frame that is here; 0: none */
};

/* Listen on an interface. Return: 0; or a negative errno after one log line. */
int xdp_group_open(struct xdp_group *g, const char *ifname, int ifindex);

/* Stop. Accepts one that is not open (fd = -1). */
void xdp_group_close(struct xdp_group *g);

/*
 * Look for a frame.
 * @wants_csum: the guest takes unfinished checksums; else they are finished
 * @stats: counts what is too large
 * Return: whether `f` was set.
 */
bool xdp_group_peek(struct xdp_group *g, struct frame *f, bool wants_csum,
		    struct queue_stats *stats);

/* The frame has been taken. */
void xdp_group_release(struct xdp_group *g);

/* Add to the counters what the kernel has dropped since the last time, for want of room. Control
 * thread only: nobody else touches these counters. */
void xdp_group_read_stats(const struct xdp_group *g, struct queue_stats *stats);

#endif
