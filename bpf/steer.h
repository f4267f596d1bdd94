/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decision for one received frame: to the socket of the queue that it came in on, or to the
 * host's own network stack. A queue without a socket is the host's.
 */
#ifndef STEER_H
#define STEER_H

#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bpf_shared.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, STEER_MAX_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

const volatile struct steer_config config = {};

static __always_inline int is_for_guest(struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data;
	const void *end = (const void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;

	if (!config.has_mac)
		return 1;
	if ((const void *)(eth + 1) > end)
		return 0;
	for (int i = 0; i < ETH_ALEN; i++)
		if (eth->h_dest[i] != config.mac[i])
			return 0;
	return 1;
}

#endif
