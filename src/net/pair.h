/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair, as the bursts see it: two queues, its part of the port, its parameters and
 * counters. Owned by a worker (worker.h), whose thread alone runs the bursts; the control thread
 * changes it while that worker is parked.
 */
#ifndef NET_PAIR_H
#define NET_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "net/params.h"
#include "net/queue.h"
#include "port/port.h"

/* The most segments that one readv takes. */
#define PAIR_MAX_SEGMENTS 1024

/* What a burst reads or writes of guest memory is fetched so many chains before its turn: enough to
 * hide the way to another core's cache, and not more lines than a core can wait for at a time. */
#define PAIR_PREFETCH_AHEAD 8

struct pair {
	struct queue rx, tx;
	struct port_queue *port;
	const struct port_ops *ops;
	struct pair_params params;
	bool rx_is_starved;	 /* receive waits for guest buffers, and for nothing else... */
	uint16_t rx_starved_at;	 /* ...beyond those that are offered at this avail index */
	uint32_t rx_n_malformed; /* chains given back in this burst */
	bool rx_wait_is_counted; /* this wait for buffers is in rx_no_buffer */
	struct frame frames[PORT_MAX_BATCH];
	uint16_t pos[PORT_MAX_BATCH];		    /* tx: the ring positions of `frames` */
	struct iovec direct_iov[PAIR_MAX_SEGMENTS]; /* rx: guest buffers for one large frame */
	struct queue_stats stats;
};

#endif
