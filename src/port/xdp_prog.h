/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The XDP program on an interface (bpf/steer*.bpf.c): loads it, attaches it, tells it the sockets.
 * Control thread only. Attached by a bpf link whose only holder is this process, so it is gone when
 * the process is, killed or not. Somebody else's program is named and left alone. With `attach =
 * dispatcher` it shares the interface with others that libxdp's dispatcher runs; a killed process
 * then leaves it behind (xdp_dispatch.h).
 */
#ifndef PORT_XDP_PROG_H
#define PORT_XDP_PROG_H

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"
#include "port/xdp_dispatch.h"

struct steer_bpf;
struct steer_vlan_bpf;

struct xdp_prog {
	struct steer_bpf *plain; /* one of these two */
	struct steer_vlan_bpf *vlan;
	int map_fd;  /* the sockets', by queue */
	int link_fd; /* -1: not attached, or by the dispatcher */
	struct xdp_dispatch dispatch;
	bool is_native;
	bool keeps_vlan; /* tags outside of the frame are put back into it */
};

#define XDP_PROG_NONE ((struct xdp_prog){.map_fd = -1, .link_fd = -1, .dispatch.claim_fd = -1})

/* Return: the id of whatever program is on an interface, in whatever mode; 0: none. */
uint32_t xdp_prog_find(int ifindex);

/*
 * Load the program and attach it.
 * @prog: overwritten
 * Return: 0; or a negative errno after one log line, with nothing left behind.
 */
int xdp_prog_open(struct xdp_prog *prog, const struct port_config *cfg, int ifindex);

/* Take it off. Accepts one that is not open. */
void xdp_prog_close(struct xdp_prog *prog);

#endif
