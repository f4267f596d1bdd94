/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest with a network card: memory, a frontend and a ring pair for each queue pair, set up as
 * VMMs do it, with buffers that are posted and taken back. What tests of packets stand on; tests of
 * the protocol and of rings use the parts.
 *
 * A `struct nic` is large: keep it static.
 */
#ifndef SUPPORT_NIC_H
#define SUPPORT_NIC_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/driver.h"
#include "support/frontend.h"
#include "support/guest.h"

#define NIC_MAX_PAIRS 16
#define NIC_MAX_FRAME 65553 /* 64 KiB of IP, Ethernet header, VLAN tag */

#define NIC_BIT(n) (1ULL << (n))
/* What a Linux guest would take on a port without offloads. */
#define NIC_FEATURES                                                                               \
	(NIC_BIT(VIRTIO_F_VERSION_1) | NIC_BIT(VIRTIO_NET_F_MRG_RXBUF) |                           \
	 NIC_BIT(VIRTIO_RING_F_EVENT_IDX) | NIC_BIT(VIRTIO_RING_F_INDIRECT_DESC))
#define NIC_OFFLOADS                                                                               \
	(NIC_BIT(VIRTIO_NET_F_CSUM) | NIC_BIT(VIRTIO_NET_F_HOST_TSO4) |                            \
	 NIC_BIT(VIRTIO_NET_F_HOST_TSO6) | NIC_BIT(VIRTIO_NET_F_GUEST_CSUM) |                      \
	 NIC_BIT(VIRTIO_NET_F_GUEST_TSO4) | NIC_BIT(VIRTIO_NET_F_GUEST_TSO6))
/* All protocol features but CONFIG. */
#define NIC_PROTOCOL_FEATURES (~NIC_BIT(VHOST_USER_PROTOCOL_F_CONFIG))

struct nic_options {
	uint64_t features; /* 0: NIC_FEATURES; as far as they are offered; layout.h adds its bit */
	bool has_no_protocol; /* do not acknowledge the protocol features */
	bool wants_acks;      /* ask for an ack wherever one can come */
	unsigned n_pairs;     /* 0: 1 */
	uint32_t size;	      /* of each ring; 0: 256 */
	uint16_t base;	      /* where the indices start */
	uint32_t tx_buf_len;  /* 0: 2048, header included */
	bool is_indirect;     /* send through indirect tables */
	bool is_left_stopped; /* set up everything but KICK and ENABLE */
	bool has_old_base;    /* packed: SET_VRING_BASE says where the rings were at first */
	const struct guest_layout *layout;
};

struct nic {
	struct guest guest;
	struct frontend fe;
	struct nic_options options; /* as filled up */
	uint64_t features;
	uint32_t hdr_len; /* 10 or 12 */
	struct driver_ring rings[2 * NIC_MAX_PAIRS];
	uint64_t *tx_bufs[NIC_MAX_PAIRS]; /* free ones */
	uint32_t n_tx_bufs[NIC_MAX_PAIRS];
	uint32_t rx_buf_len[NIC_MAX_PAIRS];
};

/* A frame as it was received. */
struct nic_frame {
	struct virtio_net_hdr_v1 hdr; /* num_buffers 0 without mergeable buffers and VERSION_1 */
	uint32_t len;
	unsigned n_buffers;
	char data[NIC_MAX_FRAME];
};

/* Make guest and rings without a backend. */
void nic_init(struct nic *n, const struct nic_options *options);

/* Connect to `path` and set everything up; the rings run and are enabled. */
void nic_open(struct nic *n, const char *path, const struct nic_options *options);

/* Set up over an attached frontend what nic_init() made, with the rings where they are. The
 * features must be those that nic_init() was told. */
void nic_start(struct nic *n);

/* The connection ends; rings and memory stay, for another nic_start(). */
void nic_disconnect(struct nic *n);

/* Free everything. Accepts a zero-initialised one. */
void nic_close(struct nic *n);

struct driver_ring *nic_rx(struct nic *n, unsigned pair);
struct driver_ring *nic_tx(struct nic *n, unsigned pair);

/* ---- frames ---- */

/* Post `count` receive buffers of `len` bytes, header included, and kick as asked. */
void nic_post(struct nic *n, unsigned pair, unsigned count, uint32_t len);

/* Add a frame to the transmit ring, unpublished. @hdr: NULL: zeros */
void nic_queue(struct nic *n, unsigned pair, const struct virtio_net_hdr_v1 *hdr, const void *data,
	       uint32_t len);

/* Add a frame, publish, kick as asked. Takes back what has been sent. */
void nic_send(struct nic *n, unsigned pair, const void *data, uint32_t len);

/* Take back sent buffers. Return: how many. */
unsigned nic_reap(struct nic *n, unsigned pair);

/* Wait until every frame has been given back. */
void nic_wait_sent(struct nic *n, unsigned pair, unsigned ms);

/* Take a received frame, if there is one; its buffers are posted again (no kick unless asked). */
bool nic_poll(struct nic *n, unsigned pair, struct nic_frame *f);

/* Take the next frame, which must come within `ms`. */
void nic_recv(struct nic *n, unsigned pair, struct nic_frame *f, unsigned ms);

/* No frame comes for WAIT_QUIET_MS. */
void nic_expect_nothing(struct nic *n, unsigned pair);

/* A test frame: for one station, of an experimental Ethernet type, `seq`, and a pattern made of it.
 * @len: >= 18 */
void nic_make_frame(char *data, uint32_t len, uint32_t seq);
void nic_check_frame(const struct nic_frame *f, uint32_t len, uint32_t seq);
uint32_t nic_frame_seq(const struct nic_frame *f);

/* Send frame `seq` and receive it back from a loopback. */
void nic_ping(struct nic *n, unsigned pair, uint32_t len, uint32_t seq);

#endif
