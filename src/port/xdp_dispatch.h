/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `attach = dispatcher`: the XDP program beside others on the interface, all of them run by libxdp's
 * dispatcher. Control thread only.
 *
 * No bpf link holds a program there, so a killed process leaves its own behind, where it passes
 * everything on; a dispatcher has room for ten. Each of our programs therefore has a number in it
 * (owner, bpf/bpf_shared.h), and as long as its process lives that holds an abstract Unix socket of
 * that name. Whoever comes next takes off those of which the name is free.
 */
#ifndef PORT_XDP_DISPATCH_H
#define PORT_XDP_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_object;
struct xdp_program;

struct xdp_dispatch {
	/* where to attach; the caller's */
	const char *ifname;
	int ifindex;
	bool is_native;

	uint64_t owner;
	int claim_fd;		     /* the socket that says that we live; -1: none */
	struct xdp_program *program; /* NULL: not attached */
};

/* Get the owner's number for a program that is to be loaded. Return: 0 or a negative errno. */
int xdp_dispatch_claim(struct xdp_dispatch *d);

/*
 * Attach the program `name` of an object that has not been loaded, with the number in it.
 * Return: 0; -ENOSYS when there can be no dispatcher here; another negative errno. Nothing is
 * attached then, and the number is given up.
 */
int xdp_dispatch_join(struct xdp_dispatch *d, struct bpf_object *obj, const char *name);

/* Take it off, give up the number. Accepts one that is not attached, with claim_fd -1. */
void xdp_dispatch_leave(struct xdp_dispatch *d);

#endif
