/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port is where a guest's packets go to and come from. It moves bursts of frames, knows nothing
 * of virtqueues or vhost-user, and its functions are called once per burst, never per packet.
 *
 * Threads: open, close, negotiate and describe run in the control thread, with all workers parked
 * or not yet started. The queue's functions run in its worker; they never block.
 *
 * Receive (towards the guest): `rx_peek` shows frames that wait, at most as many as the guest has
 * buffers for; they stay the port's until `rx_release` says that the oldest `n` were taken.
 * Transmit: `tx` takes frames in order and says how many; the first one that it does not take, and
 * all after it, stay with the guest. A taken frame's memory stays valid until `tx_reap` has
 * reported it as sent, in order; only then does the guest get its buffer back.
 */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/stats.h"

struct ev_loop;
struct port;
struct port_queue;

#define PORT_MAX_QUEUES 16
/* A burst's upper limit, and the default. */
#define PORT_MAX_BATCH 256

/* The largest frame that can exist: a 64 KiB IP packet, Ethernet header and VLAN tag. */
#define FRAME_MAX_LEN (65535 + 14 + 4)

/* struct virtio_net_hdr_v1 is the header of every frame here, whatever the guest's looks like. */
#define FRAME_HDR_LEN 12

/*
 * One frame. iov[0] is its virtio-net header, FRAME_HDR_LEN bytes in our own memory; the data
 * follows in iov[1] to iov[n_iov - 1]. Whoever a received frame is shown to may write its header
 * and shorten iov[0].
 */
struct frame {
	struct iovec *iov;
	uint32_t n_iov;
	uint32_t len;	 /* bytes of data, without the header */
	bool is_dropped; /* tx: taken, but it could not be sent and never will be */
};

/* How a port that must change its queues' fds while the workers run makes them rest. */
struct port_host {
	struct ev_loop *loop; /* the control thread's, for what the port watches there */
	void (*park)(void *arg);
	void (*unpark)(void *arg);
	void *arg;
};

struct port_config {
	const struct port_ops *ops;
	char ifname[IFNAMSIZ];
	int fd;		       /* tap: an open one, instead of ifname; else -1 */
	char bridge[IFNAMSIZ]; /* tap: put it into this bridge; "": none */
	uint32_t sndbuf;       /* tap: bytes, 0: the kernel's */
	bool create;	       /* tap: make a missing one */
	uint32_t source_size;  /* null: bytes of the frames it makes, 0: none */
};

struct port {
	const struct port_ops *ops;
	unsigned n_queues; /* one for each pair */
	void *priv;
};

/* The part of a queue that the worker sees; a port puts it in front of its own. */
struct port_queue {
	struct port *port;
	unsigned index;
	int fd;		  /* to wait on; -1: never anything to wait for */
	bool rx_more;	  /* the last rx_peek left frames behind: ask again without waiting */
	bool rx_is_large; /* the last frame was one for which rx_into pays, and no other waits here */
	bool tx_full; /* the last tx took less than it was given: wait for writability of `fd`; a
			 * queue without fd makes room by itself when frames are received */
	unsigned n_tx_dropped;	   /* frames that the last tx marked as dropped */
	struct queue_stats *stats; /* the worker's */
};

struct port_ops {
	const char *name;
	/* Virtio-net feature bits that the port can honour; called after open. */
	uint64_t (*features)(const struct port *p);
	/*
	 * @host: copied
	 * Return: 0; or a negative errno after one log line, with nothing left behind.
	 */
	int (*open)(struct port *p, const struct port_config *cfg, const struct port_host *host);
	void (*close)(struct port *p);
	/* Follow what the guest negotiated; 0: no guest. Return: 0 or -errno after a log line. */
	int (*negotiate)(struct port *p, uint64_t features);
	/* The guest can receive on queue `i`, or no longer: steer flows accordingly. NULL: no matter. */
	void (*enable_queue)(struct port *p, unsigned i, bool is_enabled);
	/* For the ready line: "tap:vm0 (created)". */
	void (*describe)(const struct port *p, char *text, size_t size);
	/* The queue's part `i` of the port. */
	struct port_queue *(*queue)(struct port *p, unsigned i);

	unsigned (*rx_peek)(struct port_queue *q, struct frame *frames, unsigned max);
	void (*rx_release)(struct port_queue *q, unsigned n);
	/*
	 * Move the oldest frame straight into the caller's segments, header first; they hold the
	 * largest frame. Only while `rx_is_large`. NULL: the port cannot.
	 * Return: bytes with the header; 0 when there is none.
	 */
	int (*rx_into)(struct port_queue *q, const struct iovec *iov, unsigned n_iov);
	unsigned (*tx)(struct port_queue *q, struct frame *frames, unsigned n);
	unsigned (*tx_reap)(struct port_queue *q);
	/* Forget what was taken and not yet reported: its memory goes away. NULL: nothing ever is. */
	void (*tx_cancel)(struct port_queue *q);
};

extern const struct port_ops tap_port, loopback_port, null_port;

/* Return: the port of that name, or NULL. */
const struct port_ops *port_find(const char *name);

#endif
