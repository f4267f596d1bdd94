/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive without the copy: large frames go from the port straight into guest buffers, one at a
 * time. Worth it for them only: reading 64 KiB frames was 1.3 to 1.8 times as fast as by way of
 * the port's stash, while frames of an MTU gain nothing (doc/performance.md). Called by the worker
 * in its receive burst while the port says that its frames are large.
 */
#ifndef NET_RX_DIRECT_H
#define NET_RX_DIRECT_H

#include <stdbool.h>

struct pair;

/*
 * Move frames as long as they are large, and the guest's buffers hold the largest one there can be:
 * a port that does not know a frame's length in advance would cut it.
 * @n: frames that left the port
 * Return: false when the first frame must take the other way.
 */
bool rx_direct(struct pair *p, unsigned *n);

#endif
