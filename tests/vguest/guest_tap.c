/* SPDX-License-Identifier: BSD-2-Clause */
#include "vguest/guest_tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/expect.h"
#include "support/nic.h"

static struct ifreq request_of(const char *name, int flags)
{
	struct ifreq ifr = {.ifr_flags = (short)flags};

	expect_msg(strlen(name) < sizeof(ifr.ifr_name), "tap %s: the name is longer than %zu", name,
		   sizeof(ifr.ifr_name) - 1);
	memcpy(ifr.ifr_name, name, strlen(name));
	return ifr;
}

static int open_queue(const char *name, bool is_multi_queue)
{
	struct ifreq ifr = request_of(name, IFF_TAP | IFF_NO_PI | IFF_VNET_HDR |
						    (is_multi_queue ? IFF_MULTI_QUEUE : 0));
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int hdr_len = GUEST_TAP_HDR_LEN;

	expect_msg(fd >= 0, "/dev/net/tun: %s", strerror(errno));
	expect_msg(ioctl(fd, TUNSETIFF, &ifr) == 0,
		   "tap %s: %s: is it another process's, or of another kind?", name,
		   strerror(errno));
	expect_eq(ioctl(fd, TUNSETVNETHDRSZ, &hdr_len), 0);
	return fd;
}

static unsigned offloads_of(uint64_t features)
{
	unsigned offloads = 0;

	/* The kernel wants checksums for segmentation, and segmentation for ECN. */
	if (!(features & NIC_BIT(VIRTIO_NET_F_CSUM)))
		return 0;
	if (features & NIC_BIT(VIRTIO_NET_F_HOST_TSO4))
		offloads |= TUN_F_TSO4;
	if (features & NIC_BIT(VIRTIO_NET_F_HOST_TSO6))
		offloads |= TUN_F_TSO6;
	if (offloads && (features & NIC_BIT(VIRTIO_NET_F_HOST_ECN)))
		offloads |= TUN_F_TSO_ECN;
	return TUN_F_CSUM | offloads;
}

static void set_up(const char *name)
{
	struct ifreq ifr = request_of(name, 0);
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	expect_ge(sock, 0);
	expect_eq(ioctl(sock, SIOCGIFFLAGS, &ifr), 0);
	ifr.ifr_flags = (short)(ifr.ifr_flags | IFF_UP);
	expect_msg(ioctl(sock, SIOCSIFFLAGS, &ifr) == 0, "tap %s: cannot be set up: %s", name,
		   strerror(errno));
	close(sock);
}

void guest_tap_open(const char *name, uint64_t features, unsigned n_queues, int *fds)
{
	unsigned offloads = offloads_of(features);

	for (unsigned i = 0; i < n_queues; i++)
		fds[i] = open_queue(name, n_queues > 1);
	expect_msg(ioctl(fds[0], TUNSETOFFLOAD, (unsigned long)offloads) == 0,
		   "tap %s: offloads 0x%x: %s", name, offloads, strerror(errno));
	set_up(name);
}
