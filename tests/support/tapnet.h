/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon on a tap in a network namespace of the test's own, and a packet socket on the tap: what
 * the tests of port tap stand on, besides support/system.h.
 */
#ifndef SUPPORT_TAPNET_H
#define SUPPORT_TAPNET_H

#include "support/system.h"

#define TAP	  "vm0"
#define FRAME_LEN 200u

struct tapnet {
	struct netns ns;
	int packet;		/* -1: none */
	struct nic_frame frame; /* the last one received, on either side */
};

extern struct tapnet tapnet;

/* Make the namespace with each test of the case. */
void tapnet_add_fixture(TCase *tc);

/* Start the daemon on the tap in the namespace, with these further arguments. */
#define tapnet_start(...)                                                                          \
	daemon_start(dut, &(struct daemon_options){.netns = &tapnet.ns,                            \
						   .args = {"--port=tap:" TAP, __VA_ARGS__}})

/* Open the packet socket. @has_vnet_hdr: as netns_packet_socket() */
void tapnet_listen(bool has_vnet_hdr);

/* Let the daemon make the tap, listen there, connect a guest with receive buffers. */
void tapnet_start_guest(const struct nic_options *options);

/* Frame `seq` of `len` bytes: sent by the guest; sent to the tap; next to come out of the tap. */
void tapnet_send_from_guest(uint32_t len, uint32_t seq);
void tapnet_send_on_wire(uint32_t len, uint32_t seq);
void tapnet_expect_on_wire(uint32_t len, uint32_t seq);

/* One frame each way. */
void tapnet_check_both_ways(uint32_t seq);

#endif
