/* SPDX-License-Identifier: BSD-2-Clause */
/* For every interface, kernel and mode: what is inside the frame is all that counts. */
#include "steer.h"

SEC("xdp.frags")
int vux_steer(struct xdp_md *ctx)
{
	if (!is_for_guest(ctx))
		return XDP_PASS;
	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
