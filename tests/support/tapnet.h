/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon on a tap in a network namespace of the test's own, and a packet socket on the tap: what
 * the tests of port tap stand on, besides support/system.h and wire.h.
 */
#ifndef SUPPORT_TAPNET_H
#define SUPPORT_TAPNET_H

#include "support/wire.h"

#define TAP "vm0"

struct tapnet {
	struct netns ns;
};

extern struct tapnet tapnet;

/* Make the namespace with each test of the case. */
void tapnet_add_fixture(TCase *tc);

/* Start the daemon on the tap in the namespace, with these further arguments. */
#define tapnet_start(...)                                                                          \
	daemon_start(dut, &(struct daemon_options){.netns = &tapnet.ns,                            \
						   .args = {"--port=tap:" TAP, __VA_ARGS__}})

/* Open the wire's packet socket on the tap. @has_vnet_hdr: as netns_packet_socket() */
void tapnet_listen(bool has_vnet_hdr);

/* Let the daemon make the tap, listen there, connect a guest with receive buffers. */
void tapnet_start_guest(const struct nic_options *options);

#endif
