/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/tapnet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct tapnet tapnet;

static void setup(void)
{
	tapnet.packet = -1;
	netns_open(&tapnet.ns);
}

static void teardown(void)
{
	if (tapnet.packet >= 0)
		close(tapnet.packet);
	netns_close(&tapnet.ns);
}

void tapnet_add_fixture(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
}

void tapnet_listen(bool has_vnet_hdr)
{
	if (tapnet.packet >= 0)
		close(tapnet.packet);
	tapnet.packet = netns_packet_socket(&tapnet.ns, TAP, has_vnet_hdr);
}

void tapnet_start_guest(const struct nic_options *options)
{
	tapnet_start(NULL);
	tapnet_listen(false);
	system_connect(options);
	nic_post(&nic, 0, 128, 2048);
}

void tapnet_expect_on_wire(uint32_t len, uint32_t seq)
{
	struct nic_frame *f = &tapnet.frame;
	ssize_t n = netns_receive(tapnet.packet, f->data, sizeof(f->data), WAIT_LONG_MS);

	expect_msg(n >= 0, "frame %u does not come out of the tap", seq);
	f->len = (uint32_t)n;
	nic_check_frame(f, len, seq);
}

void tapnet_send_on_wire(uint32_t len, uint32_t seq)
{
	static char data[NIC_MAX_FRAME];

	nic_make_frame(data, len, seq);
	expect_msg(send(tapnet.packet, data, len, 0) == (ssize_t)len, "send: %s", strerror(errno));
}

void tapnet_send_from_guest(uint32_t len, uint32_t seq)
{
	static char data[NIC_MAX_FRAME];

	nic_make_frame(data, len, seq);
	nic_send(&nic, 0, data, len);
}

void tapnet_check_both_ways(uint32_t seq)
{
	tapnet_send_from_guest(FRAME_LEN, seq);
	tapnet_expect_on_wire(FRAME_LEN, seq);
	tapnet_send_on_wire(FRAME_LEN, seq);
	nic_recv(&nic, 0, &tapnet.frame, WAIT_LONG_MS);
	nic_check_frame(&tapnet.frame, FRAME_LEN, seq);
}
