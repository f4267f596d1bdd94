/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bursts that are larger than the guest's receive ring: a guest without a VM, and the host that sends to it.
 * usage: overload SOCKET IFNAME RING_SIZE BURST N_BURSTS
 * Sends BURST numbered frames on IFNAME as fast as it goes, while the guest does not look at its ring; then
 * the guest takes frames until the last one has come, or none does any more.
 * Prints how many were sent, and how many arrived. A frame that comes twice, out of order or with wrong
 * bytes is an error.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "support/nic.h"
#include "support/wait.h"

#define FRAME_LEN  60u
#define BUFFER_LEN 2048u

static struct nic nic;
static struct nic_frame frame;

static int open_interface(const char *name)
{
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)if_nametoindex(name),
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	expect_msg(addr.sll_ifindex > 0, "%s: no such interface", name);
	expect_ge(fd, 0);
	expect_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* What the interface has no room for is lost; the interface counts it. */
static void send_burst(int fd, uint32_t first_seq, uint32_t n)
{
	char data[FRAME_LEN];
	ssize_t ignored = 0;

	for (uint32_t i = 0; i < n; i++) {
		nic_make_frame(data, sizeof(data), first_seq + i);
		ignored = send(fd, data, sizeof(data), 0);
	}
	(void)ignored;
}

static bool comes_another(void)
{
	for (unsigned ms = 0; ms < WAIT_QUIET_MS && driver_n_used(nic_rx(&nic, 0)) == 0; ms++)
		wait_pause_us(1000);
	return driver_n_used(nic_rx(&nic, 0)) > 0;
}

/* Return: how many frames came, all of them numbered from `next_seq` on and below `end_seq`. */
static uint32_t take_burst(uint32_t next_seq, uint32_t end_seq)
{
	uint32_t n = 0;

	while (next_seq != end_seq && comes_another()) {
		expect(nic_poll(&nic, 0, &frame));
		expect_ge(nic_frame_seq(&frame), next_seq);
		expect_lt(nic_frame_seq(&frame), end_seq);
		next_seq = nic_frame_seq(&frame) + 1;
		nic_check_frame(&frame, FRAME_LEN, next_seq - 1);
		n++;
	}
	return n;
}

int main(int argc, char *argv[])
{
	struct nic_options options = {0};
	uint32_t burst, n_bursts, n_arrived = 0;
	int fd;

	expect_as_program("overload");
	if (argc != 6) {
		fprintf(stderr, "usage: overload SOCKET IFNAME RING_SIZE BURST N_BURSTS\n");
		return 2;
	}
	options.size = (uint32_t)atol(argv[3]);
	burst = (uint32_t)atol(argv[4]);
	n_bursts = (uint32_t)atol(argv[5]);
	fd = open_interface(argv[2]);
	nic_open(&nic, argv[1], &options);
	nic_post(&nic, 0, options.size, BUFFER_LEN);
	for (uint32_t i = 0; i < n_bursts; i++) {
		send_burst(fd, i * burst, burst);
		n_arrived += take_burst(i * burst, (i + 1) * burst);
	}
	printf("%u %u\n", n_bursts * burst, n_arrived);
	nic_close(&nic);
	return EXIT_SUCCESS;
}
