/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is outside of a port: a packet socket, on a tap itself or on the far end of a pair of
 * interfaces, to which the guest's frames come and from which it gets some. The guest is `nic`, and
 * uses its first pair.
 */
#ifndef SUPPORT_WIRE_H
#define SUPPORT_WIRE_H

#include "support/netns.h"
#include "support/system.h"

#define FRAME_LEN 200u

struct wire {
	int packet;		/* -1: none */
	struct nic_frame frame; /* the last one received, on either side */
};

extern struct wire wire;

/* Before each test, and after it. */
void wire_init(void);
void wire_close(void);

/* Open the packet socket; one that is open is closed. @has_vnet_hdr: as netns_packet_socket() */
void wire_listen(const struct netns *ns, const char *ifname, bool has_vnet_hdr);

/* Frame `seq` of `len` bytes: to the guest; from the guest; next to come from the guest; next to come
 * to the guest, within `ms`. */
void wire_send(uint32_t len, uint32_t seq);
void wire_send_from_guest(uint32_t len, uint32_t seq);
void wire_expect(uint32_t len, uint32_t seq);
void wire_expect_at_guest(uint32_t len, uint32_t seq, unsigned ms);

/* One frame each way. */
void wire_check_both_ways(uint32_t seq);

/* `n` frames each way, at most `window` of them on their way: none is lost, none comes twice or out
 * of order, and the counters agree. */
void wire_exchange(uint32_t n, uint32_t window);

/* `n` frames to the guest from a thread of its own, at most `window` of them on their way. */
void wire_flow_to_guest(uint32_t n, uint32_t window);

/*
 * Send a frame with a virtio-net header before it, which the kernel follows; the socket was opened
 * with has_vnet_hdr.
 * @hdr: its first 10 bytes count
 */
void wire_send_offloaded(const struct virtio_net_hdr_v1 *hdr, const char *data, uint32_t len);

#endif
