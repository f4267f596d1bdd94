/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One AF_XDP socket on one queue of an interface: its four rings, and its packet memory (umem.h).
 * Opened and closed by the control thread with the workers parked; used by one worker at a time,
 * which never blocks here.
 *
 * Receive: frames stay in the RX ring while they are looked at; those that are released go back to
 * the fill ring at once. The rings are as large as the reserve, so they are never full.
 * Transmit: frames are copied into memory of our own and put into the TX ring, as many as there are
 * free ones; then the kernel is told. In copy mode a frame is sent when the kernel has consumed it
 * from the TX ring, which the system call does: what it consumed outlives us. In zero-copy mode it
 * is sent when it is in the completion ring. What cannot go on at once is tried again after
 * `retry_us`: the kernel tells nobody when it could.
 */
#ifndef PORT_XDP_SOCK_H
#define PORT_XDP_SOCK_H

#include <linux/if_xdp.h>
#include <xdp/xsk.h>

#include "port/port.h"
#include "port/umem.h"

/* In front of what the MTU counts: Ethernet header and VLAN tag. */
#define LINK_HEADER_LEN 18

/* Most segments of the frames that one burst looks at. */
#define XDP_SOCK_SEGMENTS 1024

struct xdp_sock {
	struct umem umem;
	struct xsk_umem *xsk_umem;
	struct xsk_socket *xsk; /* NULL: not open */
	int fd;
	unsigned queue; /* of the interface */
	bool is_zero_copy;
	bool polls_device;    /* our system calls do: made in every turn */
	bool is_multi_buffer; /* frames may take several frames of the umem */
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons completion, rx;

	/* receive: the frames that are being looked at */
	unsigned n_rx_descs[PORT_MAX_BATCH]; /* of each */
	unsigned n_rx_peeked;		     /* descriptors */
	char headers[PORT_MAX_BATCH][FRAME_HDR_LEN];
	struct iovec rx_iov[XDP_SOCK_SEGMENTS];

	/* transmit: frames in the order in which they were taken, by their number of descriptors */
	uint8_t *n_tx_descs;	   /* a ring of umem.n_frames entries */
	uint32_t tx_head, tx_tail; /* free-running: the oldest that is not sent, the next */
	uint32_t n_sent_descs;	   /* of the oldest frames; not yet reported */
	uint32_t n_disowned_descs; /* of frames before those, which nobody waits for */
	uint32_t tx_consumed;	   /* the TX ring's consumer, as last seen */
	uint32_t n_lost;   /* dropped by the kernel, to be reported with the next sent ones */
	uint32_t retry_us; /* 0: nothing to try again */
	bool is_full;	   /* the last frames were not all taken */
	bool is_down;	   /* the interface is: sends nothing */

	struct xdp_statistics seen; /* the control thread's: in the counters already */
};

struct xdp_sock_config {
	const struct port_config *port;
	unsigned mtu;	 /* bytes; frames up to this one should fit */
	bool is_generic; /* the program is attached in generic mode */
	int map_fd;	 /* of the program's map of sockets */
};

/* Return: 0 when this process can have AF_XDP sockets at all; or a negative errno after a log line. */
int xdp_sock_check(const char *ifname);

/*
 * Open a socket on a queue, and enter it in the program's map.
 * @s: all zero, or closed
 * Return: 0; or a negative errno after one log line, with nothing left behind.
 */
int xdp_sock_open(struct xdp_sock *s, unsigned queue, const struct xdp_sock_config *cfg);

/* Close it. Return: frames that were not yet sent, and are lost. Accepts one that is not open. */
unsigned xdp_sock_close(struct xdp_sock *s);

/* Return: whether its interface is still the one that it was opened on: the kernel lets go of one that
 * is deleted, or leaves the namespace, for good. */
bool xdp_sock_is_bound(const struct xdp_sock *s);

/* As the functions of struct port_ops. */
unsigned xdp_sock_rx_peek(struct xdp_sock *s, struct frame *frames, unsigned max, bool wants_csum);
void xdp_sock_rx_release(struct xdp_sock *s, unsigned n);

/*
 * Take frames: copy, finish checksums, send.
 * @n_dropped: counts those that are marked as dropped: larger than the socket can send
 * Return: how many were taken; fewer than `n` when there is no room for the next.
 */
unsigned xdp_sock_tx(struct xdp_sock *s, struct frame *frames, unsigned n, unsigned *n_dropped);

/* Go on sending, collect what is done. Return: frames sent since the last call, in order. */
unsigned xdp_sock_tx_reap(struct xdp_sock *s);

/* Let go of all frames that were taken: they are in our memory, and will be sent. Return: how many. */
unsigned xdp_sock_tx_disown(struct xdp_sock *s);

/* Where the frames of its memory are. Parked. */
void xdp_sock_memory(const struct xdp_sock *s, struct port_memory *m);

/* Return: received frames that nobody has taken. Parked. */
unsigned xdp_sock_n_waiting(struct xdp_sock *s);

/* Add to the counters what the kernel has counted since the last time. Control thread only: nobody
 * else touches these counters. */
void xdp_sock_read_stats(struct xdp_sock *s, struct queue_stats *stats);

/* Return: the bytes of the largest frame that can be received. */
uint32_t xdp_sock_max_received(const struct xdp_sock *s);

/* The interface is down and sends nothing, or up again. Parked. */
void xdp_sock_set_down(struct xdp_sock *s, bool is_down);

#endif
