/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/wait.h"

bool netns_is_possible(void)
{
	if (geteuid() != 0) {
		printf("skipped: network namespaces need root\n");
		return false;
	}
	if (access("/dev/net/tun", R_OK | W_OK) != 0) {
		printf("skipped: there is no /dev/net/tun\n");
		return false;
	}
	return true;
}

void netns_enter(const struct netns *ns)
{
	expect_eq(setns(ns->fd, CLONE_NEWNET), 0);
}

void netns_leave(const struct netns *ns)
{
	expect_eq(setns(ns->home_fd, CLONE_NEWNET), 0);
}

static void turn_ipv6_off(void)
{
	int fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC);

	/* A kernel without IPv6 has no such file. */
	if (fd < 0)
		return;
	expect_eq(write(fd, "1", 1), 1);
	close(fd);
}

void netns_open(struct netns *ns)
{
	ns->home_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	expect_ge(ns->home_fd, 0);
	expect_eq(unshare(CLONE_NEWNET), 0);
	ns->fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	expect_ge(ns->fd, 0);
	turn_ipv6_off();
	netns_leave(ns);
}

void netns_close(struct netns *ns)
{
	if (ns->fd < 0)
		return;
	close(ns->fd);
	close(ns->home_fd);
	ns->fd = ns->home_fd = -1;
}

static struct ifreq request_of(const char *name)
{
	struct ifreq ifr = {0};

	expect_lt(strlen(name), sizeof(ifr.ifr_name));
	memcpy(ifr.ifr_name, name, strlen(name));
	return ifr;
}

int netns_open_tap(const struct netns *ns, const char *name, int flags)
{
	struct ifreq ifr = request_of(name);
	int fd;

	ifr.ifr_flags = (short)(IFF_TAP | flags);
	netns_enter(ns);
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	expect_ge(fd, 0);
	expect_msg(ioctl(fd, TUNSETIFF, &ifr) == 0, "tap %s: %s", name, strerror(errno));
	netns_leave(ns);
	return fd;
}

void netns_make_tap(const struct netns *ns, const char *name, unsigned n_queues)
{
	int multi = n_queues > 1 ? IFF_MULTI_QUEUE : 0;
	int fd = netns_open_tap(ns, name, IFF_NO_PI | IFF_VNET_HDR | multi);

	expect_eq(ioctl(fd, TUNSETPERSIST, 1), 0);
	close(fd);
}

void netns_run(const struct netns *ns, const char *command)
{
	int status;

	netns_enter(ns);
	status = system(command);
	netns_leave(ns);
	expect_msg(status == 0, "%s: status %d", command, status);
}

/* `ip` knows a namespace by a path. */
void netns_make_veth(const struct netns *ns, const char *name, const struct netns *far_ns,
		     const char *far, unsigned n_queues)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "ip link add %s numrxqueues %u numtxqueues %u type veth peer name %s "
		 "numrxqueues %u numtxqueues %u netns /proc/%d/fd/%d",
		 name, n_queues, n_queues, far, n_queues, n_queues, getpid(), far_ns->fd);
	netns_run(ns, command);
}

void netns_move_link(const struct netns *ns, const char *name, const struct netns *to)
{
	char command[128];

	snprintf(command, sizeof(command), "ip link set %s netns /proc/%d/fd/%d", name, getpid(),
		 to->fd);
	netns_run(ns, command);
}

int netns_socket(const struct netns *ns, int domain, int type, int protocol)
{
	int fd;

	netns_enter(ns);
	fd = socket(domain, type | SOCK_CLOEXEC, protocol);
	netns_leave(ns);
	expect_msg(fd >= 0, "socket: %s", strerror(errno));
	return fd;
}

/* An ioctl on an interface. Return: 0 or -errno. */
static int link_ioctl(const struct netns *ns, unsigned long request, struct ifreq *ifr)
{
	int fd = netns_socket(ns, AF_INET, SOCK_DGRAM, 0);
	int err = ioctl(fd, request, ifr) < 0 ? -errno : 0;

	close(fd);
	return err;
}

int netns_link_index(const struct netns *ns, const char *name)
{
	struct ifreq ifr = request_of(name);

	return link_ioctl(ns, SIOCGIFINDEX, &ifr) == 0 ? ifr.ifr_ifindex : 0;
}

bool netns_link_exists(const struct netns *ns, const char *name)
{
	return netns_link_index(ns, name) != 0;
}

void netns_set_link_up(const struct netns *ns, const char *name, bool is_up)
{
	struct ifreq ifr = request_of(name);

	expect_eq(link_ioctl(ns, SIOCGIFFLAGS, &ifr), 0);
	ifr.ifr_flags = (short)(is_up ? ifr.ifr_flags | IFF_UP : ifr.ifr_flags & ~IFF_UP);
	expect_eq(link_ioctl(ns, SIOCSIFFLAGS, &ifr), 0);
}

void netns_get_mac(const struct netns *ns, const char *name, uint8_t mac[6])
{
	struct ifreq ifr = request_of(name);

	expect_eq(link_ioctl(ns, SIOCGIFHWADDR, &ifr), 0);
	memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
}

/* The question makes the kernel deal at once with what it has put off: it starts the queues of an
 * interface up to a second after its carrier came, and drops what is sent before. */
static bool has_link(const struct netns *ns, const char *name)
{
	struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
	struct ifreq ifr = request_of(name);

	ifr.ifr_data = (void *)&link;
	return link_ioctl(ns, SIOCETHTOOL, &ifr) == 0 && link.data;
}

void netns_wait_running(const struct netns *ns, const char *name)
{
	wait_until(has_link(ns, name), WAIT_LONG_MS);
}

void netns_set_mtu(const struct netns *ns, const char *name, int mtu)
{
	struct ifreq ifr = request_of(name);

	ifr.ifr_mtu = mtu;
	expect_eq(link_ioctl(ns, SIOCSIFMTU, &ifr), 0);
}

void netns_delete_link(const struct netns *ns, const char *name)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = RTM_DELLINK,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.link = {.ifi_family = AF_UNSPEC, .ifi_index = netns_link_index(ns, name)},
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char echo[256];
	} answer;
	int fd = netns_socket(ns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	expect_ne(request.link.ifi_index, 0);
	expect_eq(send(fd, &request, sizeof(request), 0), sizeof(request));
	expect_ge(recv(fd, &answer, sizeof(answer), 0), 0);
	expect_eq(answer.header.nlmsg_type, NLMSG_ERROR);
	expect_eq(answer.error.error, 0);
	close(fd);
}

int netns_packet_socket(const struct netns *ns, const char *name, bool has_vnet_hdr)
{
	int fd = netns_socket(ns, AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = netns_link_index(ns, name),
	};
	int on = 1, room = 8 << 20;

	expect_ne(addr.sll_ifindex, 0);
	if (has_vnet_hdr)
		expect_eq(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	expect_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

ssize_t netns_receive(int sock, void *data, size_t cap, unsigned ms)
{
	struct sockaddr_ll from;
	socklen_t from_len;
	ssize_t len;

	do {
		from_len = sizeof(from);
		len = recvfrom(sock, data, cap, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&from,
			       &from_len);
		if (len < 0 && (errno != EAGAIN || !wait_readable(sock, ms)))
			return -1;
	} while (len < 0 || from.sll_pkttype == PACKET_OUTGOING);
	return len;
}
