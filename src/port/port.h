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
#include "base/util.h"

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
	/* The link's state; a port that never says so is up. Also during open. */
	void (*link)(void *arg, bool is_up);
	void *arg;
};

enum port_mode { PORT_MODE_AUTO, PORT_MODE_NATIVE, PORT_MODE_GENERIC };
enum port_zero_copy { PORT_ZERO_COPY_AUTO, PORT_ZERO_COPY_ON, PORT_ZERO_COPY_OFF };
enum port_steer { PORT_STEER_ALL, PORT_STEER_MAC };
enum port_attach { PORT_ATTACH_LINK, PORT_ATTACH_DISPATCHER };

struct port_queue_list {
	unsigned n;
	uint8_t queue[PORT_MAX_QUEUES];
};

struct port_config {
	const struct port_ops *ops;
	char ifname[IFNAMSIZ];
	int fd;		       /* tap: an open one, instead of ifname; else -1 */
	char bridge[IFNAMSIZ]; /* tap: put it into this bridge; "": none */
	uint32_t sndbuf;       /* tap: bytes, 0: the kernel's */
	bool create;	       /* tap: make a missing one */
	uint32_t source_size;  /* null: bytes of the frames it makes, 0: none */

	/* xdp */
	struct port_queue_list queues; /* of the interface, one for each pair; none: 0 and up */
	int mode;		       /* enum port_mode, and so on */
	int zero_copy;
	int steer;
	int attach;
	uint32_t frames;     /* of each queue's packet memory, a power of two */
	uint32_t frame_size; /* bytes, 2048 or 4096 */
	uint8_t mac[6];	     /* steer: the guest's */
	uint32_t poll_usecs; /* have the kernel busy-poll the interface; 0: not */
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
	uint32_t retry_us; /* nobody will tell when there is room, or frames are sent: call tx_reap
			    * and tx again after so long; 0: not needed */
	unsigned n_tx_dropped;	   /* frames that the last tx marked as dropped */
	unsigned n_tx_lost;	   /* of those that the last tx_reap reported: not sent after all */
	struct queue_stats *stats; /* the worker's */
} cacheline_align;

/* Where the frames of a queue's packet memory are; the last five are `total`. */
struct port_memory {
	uint32_t total;
	uint32_t free;
	uint32_t fill, rx;	 /* the kernel may fill them; it has */
	uint32_t tx, completion; /* to be sent; sent */
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
	/* What was taken and not yet reported: its memory goes away. Forget it; or, if the port has a
	 * copy, report it with the next tx_reap. NULL: there never is any. */
	void (*tx_cancel)(struct port_queue *q);
	/* The port's own memory of a queue, with all workers parked. NULL: it has none. */
	void (*memory)(struct port_queue *q, struct port_memory *m);
	/* Bring the counters up to date that the kernel keeps. Control thread. NULL: none. */
	void (*refresh_stats)(struct port *p);
};

extern const struct port_ops tap_port, xdp_port, loopback_port, null_port;

/* Return: the port of that name, or NULL. */
const struct port_ops *port_find(const char *name);

#endif
