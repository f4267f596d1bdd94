/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/tapnet.h"

struct tapnet tapnet;

static void setup(void)
{
	wire_init();
	netns_open(&tapnet.ns);
}

static void teardown(void)
{
	wire_close();
	netns_close(&tapnet.ns);
}

void tapnet_add_fixture(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
}

void tapnet_listen(bool has_vnet_hdr)
{
	wire_listen(&tapnet.ns, TAP, has_vnet_hdr);
}

void tapnet_start_guest(const struct nic_options *options)
{
	tapnet_start(NULL);
	tapnet_listen(false);
	system_connect(options);
	nic_post(&nic, 0, 128, 2048);
}
