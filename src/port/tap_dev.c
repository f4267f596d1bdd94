/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/tap_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/if_bridge.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "port/port.h"

#define TUN_DEVICE	 "/dev/net/tun"
#define BUSY_RETRY_NS	 20000000 /* 20 ms, for half a second at most */
#define MAX_BUSY_RETRIES 25
#define MAX_BRIDGE_PORTS 1024 /* the kernel's limit */

static void copy_name(char to[IFNAMSIZ], const char *from)
{
	size_t len = strnlen(from, IFNAMSIZ - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

static int tun_ioctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

/* An ioctl on the interface by name, through a socket of any kind. */
static int netdev_ioctl(unsigned long request, struct ifreq *ifr)
{
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = 0;

	if (sock < 0)
		return -errno;
	if (ioctl(sock, request, ifr) < 0)
		err = -errno;
	close(sock);
	return err;
}

static int set_up(const char *ifname)
{
	struct ifreq ifr = {0};
	int err;

	copy_name(ifr.ifr_name, ifname);
	err = netdev_ioctl(SIOCGIFFLAGS, &ifr);
	if (err)
		return err;
	ifr.ifr_flags = (short)(ifr.ifr_flags | IFF_UP);
	return netdev_ioctl(SIOCSIFFLAGS, &ifr);
}

/* Return: whether the interface is a port of the bridge. */
static bool is_in_bridge(const char *bridge, int ifindex)
{
	int ports[MAX_BRIDGE_PORTS] = {0};
	unsigned long args[] = {BRCTL_GET_PORT_LIST, (unsigned long)ports, MAX_BRIDGE_PORTS, 0};
	struct ifreq ifr = {0};

	copy_name(ifr.ifr_name, bridge);
	ifr.ifr_data = (void *)args;
	if (netdev_ioctl(SIOCDEVPRIVATE, &ifr) < 0)
		return false;
	for (size_t i = 0; i < array_size(ports); i++)
		if (ports[i] == ifindex)
			return true;
	return false;
}

static int add_to_bridge(const char *bridge, const char *ifname)
{
	struct ifreq ifr = {0};
	int ifindex = (int)if_nametoindex(ifname);
	int err;

	copy_name(ifr.ifr_name, bridge);
	ifr.ifr_ifindex = ifindex;
	err = netdev_ioctl(SIOCBRADDIF, &ifr);
	/* In a bridge already: this one, or one that somebody chose. */
	return err == -EBUSY && is_in_bridge(bridge, ifindex) ? 0 : err;
}

/* What a refused TUNSETIFF means, for the person who must act. */
static int report_attach(int err, const char *ifname, unsigned n_queues)
{
	switch (-err) {
	case EPERM:
		log_err(err,
			"tap %s: may not be opened: needs CAP_NET_ADMIN, or an interface that "
			"belongs to this user (ip tuntap add %s mode tap user NAME)",
			ifname, ifname);
		break;
	case EBUSY:
		log_err(err,
			"tap %s: another process uses it: stop that one, or choose another "
			"interface",
			ifname);
		break;
	case EINVAL:
		log_err(err,
			"tap %s: exists with other settings than a tap of %u queue%s: delete it, "
			"or make it by: ip tuntap add %s mode tap%s",
			ifname, n_queues, n_queues > 1 ? "s" : "", ifname,
			n_queues > 1 ? " multi_queue" : "");
		break;
	default:
		log_err(err, "tap %s: cannot be opened", ifname);
	}
	return err;
}

/* Open one queue of the interface. Return: its fd, or -errno without a log line. */
static int open_queue(const char *ifname, bool is_multi_queue)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int fd = open(TUN_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	if (is_multi_queue)
		ifr.ifr_flags |= IFF_MULTI_QUEUE;
	copy_name(ifr.ifr_name, ifname);
	err = tun_ioctl(fd, TUNSETIFF, &ifr);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* One queue: of a tap of either kind, as somebody may have made it multi-queue. */
static int try_first(const struct tap_dev_request *req)
{
	int fd = open_queue(req->ifname, req->n_queues > 1);

	if (fd == -EINVAL && req->n_queues == 1)
		fd = open_queue(req->ifname, true);
	return fd;
}

/* A daemon before this one may have been killed: the kernel lets go of its tap a moment later. */
static int open_first(const struct tap_dev_request *req)
{
	const struct timespec pause = {.tv_nsec = BUSY_RETRY_NS};
	int fd = try_first(req);

	for (int i = 0; fd == -EBUSY && i < MAX_BUSY_RETRIES; i++) {
		nanosleep(&pause, NULL);
		fd = try_first(req);
	}
	return fd;
}

static int set_sizes(const struct tap_dev_request *req, int fd)
{
	int hdr_len = FRAME_HDR_LEN;
	int err = tun_ioctl(fd, TUNSETVNETHDRSZ, &hdr_len);

	if (err == 0 && req->sndbuf > 0) {
		int sndbuf = (int)min_of(req->sndbuf, (uint32_t)INT_MAX);

		err = tun_ioctl(fd, TUNSETSNDBUF, &sndbuf);
	}
	if (err == 0)
		err = tap_dev_set_offloads(fd, 0);
	if (err)
		log_err(err,
			"tap %s: refuses a virtio-net header of %d bytes, its send buffer or "
			"its offloads",
			req->name, hdr_len);
	return err;
}

/* What is asked for beyond the queues themselves. */
static int settle(const struct tap_dev_request *req)
{
	int err = 0;

	if (req->bridge[0] != '\0') {
		err = add_to_bridge(req->bridge, req->name);
		if (err) {
			log_err(err,
				"tap %s: cannot be put into bridge %s: does it exist, is the "
				"tap in no other, is CAP_NET_ADMIN there?",
				req->name, req->bridge);
			return err;
		}
	}
	if (req->was_created) {
		err = set_up(req->name);
		if (err)
			log_err(err, "tap %s: made, but cannot be set up", req->name);
	}
	return err;
}

int tap_dev_try(const struct tap_dev_request *req)
{
	int fd = try_first(req);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static void close_all(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

int tap_dev_open(struct tap_dev_request *req, int *fds)
{
	bool is_there = if_nametoindex(req->ifname) != 0;
	unsigned n;
	int err;

	copy_name(req->name, req->ifname);
	req->was_created = false;
	if (!is_there && !req->may_create) {
		log_errx("tap %s: no such interface: make it (ip tuntap add %s mode tap), or set "
			 "create = true",
			 req->ifname, req->ifname);
		return -ENODEV;
	}
	for (n = 0; n < req->n_queues; n++) {
		fds[n] = n == 0 ? open_first(req) : open_queue(req->ifname, true);
		if (fds[n] == -ENOENT || fds[n] == -ENXIO || fds[n] == -EACCES) {
			log_err(fds[n],
				"tap %s: cannot open %s: is the tun module loaded, and may "
				"this user open it?",
				req->ifname, TUN_DEVICE);
			err = fds[n];
			goto fail;
		}
		err = fds[n] < 0 ? report_attach(fds[n], req->ifname, req->n_queues) : 0;
		if (err)
			goto fail;
		err = set_sizes(req, fds[n]);
		if (err) {
			n++;
			goto fail;
		}
	}
	req->was_created = !is_there;
	err = settle(req);
	if (err)
		goto fail;
	return 0;
fail:
	close_all(fds, n);
	return err;
}

int tap_dev_adopt(struct tap_dev_request *req, int fd, int *fds)
{
	struct ifreq ifr = {0};
	int err = tun_ioctl(fd, TUNGETIFF, &ifr);

	req->was_created = false;
	if (err) {
		log_err(err, "tap fd %d: is no open tap: hand one over by its number (fd = N)", fd);
		return err;
	}
	copy_name(req->name, ifr.ifr_name);
	if ((ifr.ifr_flags & (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR)) !=
	    (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR)) {
		log_errx("tap fd %d (%s): must be opened with IFF_TAP, IFF_NO_PI and IFF_VNET_HDR",
			 fd, req->name);
		return -EINVAL;
	}
	fds[0] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (fds[0] < 0) {
		err = -errno;
		log_err(err, "tap fd %d: cannot be copied", fd);
		return err;
	}
	err = fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : set_sizes(req, fds[0]);
	if (err == 0)
		err = settle(req);
	if (err)
		close(fds[0]);
	return err;
}

bool tap_dev_is_alive(int fd)
{
	struct ifreq ifr = {0};

	return tun_ioctl(fd, TUNGETIFF, &ifr) == 0;
}

bool tap_dev_has_limit(int fd)
{
	int sndbuf;

	return tun_ioctl(fd, TUNGETSNDBUF, &sndbuf) == 0 && sndbuf != INT_MAX;
}

unsigned tap_dev_offloads(uint64_t features)
{
	unsigned offloads = 0;

	/* The kernel refuses segmentation without checksums, and ECN without segmentation. */
	if (!(features & BIT_ULL(VIRTIO_NET_F_GUEST_CSUM)))
		return 0;
	offloads |= TUN_F_CSUM;
	if (features & BIT_ULL(VIRTIO_NET_F_GUEST_TSO4))
		offloads |= TUN_F_TSO4;
	if (features & BIT_ULL(VIRTIO_NET_F_GUEST_TSO6))
		offloads |= TUN_F_TSO6;
	if ((features & BIT_ULL(VIRTIO_NET_F_GUEST_ECN)) && (offloads & (TUN_F_TSO4 | TUN_F_TSO6)))
		offloads |= TUN_F_TSO_ECN;
	return offloads;
}

int tap_dev_set_offloads(int fd, unsigned offloads)
{
	return ioctl(fd, TUNSETOFFLOAD, (unsigned long)offloads) < 0 ? -errno : 0;
}

int tap_dev_attach_queue(int fd, bool is_attached)
{
	struct ifreq ifr = {0};

	ifr.ifr_flags = is_attached ? IFF_ATTACH_QUEUE : IFF_DETACH_QUEUE;
	return tun_ioctl(fd, TUNSETQUEUE, &ifr);
}
