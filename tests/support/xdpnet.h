/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon on one end of a pair of virtual Ethernet interfaces, in a network namespace of the
 * test's own, and a packet socket (wire.h) on the other end, in another one: what the tests of port
 * xdp stand on.
 */
#ifndef SUPPORT_XDPNET_H
#define SUPPORT_XDPNET_H

#include "support/bpfprog.h"
#include "support/wire.h"

#define XDP_IF	"vm0"
#define XDP_FAR "wire0"

struct xdpnet {
	struct netns ns;     /* of the daemon */
	struct netns far_ns; /* of the packet socket */
};

extern struct xdpnet xdpnet;

/* The modes in which a program can be attached here; for loops. */
#define XDP_N_MODES 2
extern const char *const xdpnet_modes[XDP_N_MODES];    /* "native", "generic" */
extern const char *const xdpnet_mode_set[XDP_N_MODES]; /* "port.mode=native", ... */

/* Return: whether the tests can run here; else a line has said why not. */
bool xdpnet_is_possible(void);

/* Return: whether the kernel is of this version, or newer. */
bool xdpnet_has_linux(unsigned major, unsigned minor);

/* Make the namespaces with each test of the case. */
void xdpnet_add_fixture(TCase *tc);

/* Make the interfaces, with `n_queues` each, and wait until they carry frames. */
void xdpnet_make_link(unsigned n_queues);

/* Take both ends up (again), and wait until they carry frames. */
void xdpnet_take_up(void);

/* Start the daemon on the interface, with these further arguments. */
#define xdpnet_options(...)                                                                        \
	(&(struct daemon_options){.netns = &xdpnet.ns, .args = {"--port=xdp:" XDP_IF, __VA_ARGS__}})
#define xdpnet_start(...) daemon_start(dut, xdpnet_options(__VA_ARGS__))

/* Open the wire's packet socket on the far end. @has_vnet_hdr: as netns_packet_socket() */
void xdpnet_listen(bool has_vnet_hdr);

/*
 * Make interfaces with one queue each, start the daemon, listen, connect a guest with receive
 * buffers.
 * @mode: a number in xdpnet_modes
 */
void xdpnet_start_guest(unsigned mode, const struct nic_options *options);

/* What the packet socket sends from now on goes to this queue; carries this VLAN tag outside of the
 * frame (0: none). */
void xdpnet_set_queue(unsigned queue);
void xdpnet_set_tag(uint16_t tci);

/* Where the packet memory of a pair is; its parts are all of it. */
struct xdpnet_umem {
	uint32_t total, free, fill, rx, tx, completion;
};

struct xdpnet_umem xdpnet_get_umem(unsigned pair);

/* Wait until no frame is under way and the kernel has got as many for receive as `before`. */
void xdpnet_wait_umem_at_rest(unsigned pair, const struct xdpnet_umem *before);

/* The daemon has gone: it has left nothing on the interface, and its sockets' files are there, or
 * not. */
void xdpnet_check_left(bool has_files);

#endif
