/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For a driver (native mode, kernel 6.8 and newer) that tells of a VLAN tag which it, or a veth
 * peer, keeps outside the frame: the tag goes back into the frame. Loaded for one interface only.
 */
#include "steer.h"

struct vlan_tag {
	__be16 proto;
	__be16 tci;
};

extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, __be16 *vlan_proto,
					__u16 *vlan_tci) __ksym;

/* Move both addresses forward, and put the tag behind them. Return: 0, or -1 without room. */
static __always_inline int push_tag(struct xdp_md *ctx, struct vlan_tag tag)
{
	unsigned char addresses[2 * ETH_ALEN];
	unsigned char *data;

	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(tag)))
		return -1;
	data = (unsigned char *)(long)ctx->data;
	if ((void *)(data + sizeof(tag) + sizeof(addresses)) > (void *)(long)ctx->data_end)
		return -1;
	__builtin_memcpy(addresses, data + sizeof(tag), sizeof(addresses));
	__builtin_memcpy(data, addresses, sizeof(addresses));
	__builtin_memcpy(data + sizeof(addresses), &tag, sizeof(tag));
	return 0;
}

SEC("xdp.frags")
int vux_steer_vlan(struct xdp_md *ctx)
{
	/* Set: without CAP_PERFMON no call may be given memory that nobody has written. */
	__be16 proto = 0;
	__u16 tci = 0;

	if (!is_for_guest(ctx))
		return XDP_PASS;
	if (bpf_xdp_metadata_rx_vlan_tag(ctx, &proto, &tci) == 0) {
		struct vlan_tag tag = {proto, bpf_htons(tci)};

		if (push_tag(ctx, tag) < 0)
			return XDP_DROP;
	}
	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
