/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The virtio-net header in front of every frame (virtio 1.2, 5.1.6): what is let through in each
 * direction. Pure functions on a copy in our own memory; called by the worker for each frame.
 *
 * What a header asks for must have been negotiated and must lie inside its frame; the port and
 * the guest may then act on it without looking again.
 */
#ifndef NET_VNET_HDR_H
#define NET_VNET_HDR_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

/* The header as the ports know it. */
typedef struct virtio_net_hdr_v1 vnet_hdr;

/* Return: bytes of the header in the guest's buffers with these features: 10 or 12 (5.1.6). */
uint32_t vnet_hdr_len(uint64_t features);

/*
 * Check the header of a frame from the guest; clear what means nothing there.
 * @frame_len: bytes of the frame behind it
 * Return: false when the frame must be dropped as malformed.
 */
bool vnet_hdr_tx_check(vnet_hdr *h, uint32_t frame_len, uint64_t features);

/*
 * Check the header of a frame towards the guest, from a port that honours what is negotiated now.
 * A frame may have waited there since a time when the guest had accepted more.
 * Return: false when the guest could not handle the frame.
 */
bool vnet_hdr_rx_check(vnet_hdr *h, uint64_t features);

#endif
