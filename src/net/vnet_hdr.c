/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/vnet_hdr.h"

#include <linux/virtio_config.h>

#include "base/util.h"

#define GSO_ECN VIRTIO_NET_HDR_GSO_ECN

/* The feature bits that a kind of segmentation needs, one set for each direction. */
struct gso_features {
	unsigned tso4, tso6, ecn;
};

static const struct gso_features from_guest = {VIRTIO_NET_F_HOST_TSO4, VIRTIO_NET_F_HOST_TSO6,
					       VIRTIO_NET_F_HOST_ECN};
static const struct gso_features to_guest = {VIRTIO_NET_F_GUEST_TSO4, VIRTIO_NET_F_GUEST_TSO6,
					     VIRTIO_NET_F_GUEST_ECN};

static bool has(uint64_t features, unsigned bit)
{
	return features & BIT_ULL(bit);
}

static bool gso_is_negotiated(uint8_t gso_type, uint64_t features, const struct gso_features *bits)
{
	if ((gso_type & GSO_ECN) && !has(features, bits->ecn))
		return false;
	switch (gso_type & ~GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
		return has(features, bits->tso4);
	case VIRTIO_NET_HDR_GSO_TCPV6:
		return has(features, bits->tso6);
	default:
		return false;
	}
}

uint32_t vnet_hdr_len(uint64_t features)
{
	bool is_v1 = has(features, VIRTIO_F_VERSION_1) || has(features, VIRTIO_NET_F_MRG_RXBUF);

	return is_v1 ? sizeof(struct virtio_net_hdr_v1) : sizeof(struct virtio_net_hdr);
}

bool vnet_hdr_tx_check(vnet_hdr *h, uint32_t frame_len, uint64_t features)
{
	h->num_buffers = 0;
	h->flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	if (likely(h->flags == 0 && h->gso_type == VIRTIO_NET_HDR_GSO_NONE)) {
		*h = (vnet_hdr){0};
		return true;
	}
	if (h->flags != 0) {
		/* Both are 16 bits wide: their sum cannot wrap in 32. */
		uint32_t csum_end = (uint32_t)h->csum_start + h->csum_offset + sizeof(uint16_t);

		if (!has(features, VIRTIO_NET_F_CSUM) || csum_end > frame_len)
			return false;
	}
	/* Only a hint; beyond the frame it would have the kernel refuse it. */
	h->hdr_len = (uint16_t)min_of((uint32_t)h->hdr_len, frame_len);
	if (h->gso_type == VIRTIO_NET_HDR_GSO_NONE) {
		h->gso_size = 0;
		return true;
	}
	return h->flags != 0 && h->gso_size != 0 &&
	       gso_is_negotiated(h->gso_type, features, &from_guest);
}

bool vnet_hdr_rx_check(vnet_hdr *h, uint64_t features)
{
	if (!has(features, VIRTIO_NET_F_GUEST_CSUM)) {
		/* "Valid" is for those who asked only; "needs" is a frame that waited too long. */
		h->flags &= (uint8_t)~VIRTIO_NET_HDR_F_DATA_VALID;
		if (h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
			return false;
	}
	return h->gso_type == VIRTIO_NET_HDR_GSO_NONE ||
	       gso_is_negotiated(h->gso_type, features, &to_guest);
}
