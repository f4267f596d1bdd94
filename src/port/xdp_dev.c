/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/xdp_dev.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

#define RX_VLAN_FEATURE "rx-vlan-hw-parse"
#define MAX_FEATURES	1024

static struct ifreq request_of(const char *ifname)
{
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	return ifr;
}

/* An ethtool request. Return: 0 or a negative errno. */
static int ask(int sock, const char *ifname, void *cmd)
{
	struct ifreq ifr = request_of(ifname);

	ifr.ifr_data = cmd;
	return ioctl(sock, SIOCETHTOOL, &ifr) < 0 ? -errno : 0;
}

static void count_queues(int sock, const char *ifname, struct xdp_dev_info *info)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};

	if (ask(sock, ifname, &channels) < 0)
		return;
	info->n_queues = channels.rx_count + channels.combined_count;
	info->n_tx_queues = channels.tx_count + channels.combined_count;
}

static void query_driver(int sock, const char *ifname, struct xdp_dev_info *info)
{
	struct ethtool_drvinfo drv = {.cmd = ETHTOOL_GDRVINFO};

	if (ask(sock, ifname, &drv) == 0)
		snprintf(info->driver, sizeof(info->driver), "%s", drv.driver);
}

/* Return: the number in a file of the interface's in sysfs; 0: none. */
static unsigned long long read_setting(const char *ifname, const char *name)
{
	unsigned long long value = 0;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", ifname, name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu", &value) != 1)
		value = 0;
	fclose(f);
	return value;
}

/* ---- the feature that takes tags out ---- */

/* Return: how many features this kernel knows, or a negative errno. */
static int count_features(int sock, const char *ifname)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t n;
	} sset = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_FEATURES}};
	int err = ask(sock, ifname, &sset);

	if (err < 0)
		return err;
	return sset.n <= MAX_FEATURES ? (int)sset.n : -E2BIG;
}

/* Return: the bit of a feature, or a negative errno. */
static int find_feature(int sock, const char *ifname, const char *name)
{
	int n = count_features(sock, ifname);
	struct ethtool_gstrings *names;
	int found = -ENOENT;

	if (n <= 0)
		return n < 0 ? n : -ENOENT;
	names = calloc(1, sizeof(*names) + (size_t)n * ETH_GSTRING_LEN);
	if (!names)
		return -ENOMEM;
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_FEATURES;
	names->len = (uint32_t)n;
	if (ask(sock, ifname, names) == 0)
		for (int i = 0; i < n && found < 0; i++)
			if (strncmp((char *)names->data + i * ETH_GSTRING_LEN, name,
				    ETH_GSTRING_LEN) == 0)
				found = i;
	free(names);
	return found;
}

static void query_vlan(int sock, const char *ifname, struct xdp_dev_info *info)
{
	struct {
		struct ethtool_gfeatures get;
		struct ethtool_get_features_block blocks[MAX_FEATURES / 32];
	} features = {.get = {.cmd = ETHTOOL_GFEATURES, .size = MAX_FEATURES / 32}};
	int bit = find_feature(sock, ifname, RX_VLAN_FEATURE);

	if (bit < 0 || ask(sock, ifname, &features) < 0)
		return;
	info->strips_vlan = features.blocks[bit / 32].active & (1u << bit % 32);
	info->can_keep_vlan = features.blocks[bit / 32].available & (1u << bit % 32);
}

int xdp_dev_strip_vlan(const char *ifname, bool is_on)
{
	struct {
		struct ethtool_sfeatures set;
		struct ethtool_set_features_block blocks[MAX_FEATURES / 32];
	} features = {.set = {.cmd = ETHTOOL_SFEATURES}};
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int bit, err;

	if (sock < 0)
		return -errno;
	bit = find_feature(sock, ifname, RX_VLAN_FEATURE);
	err = bit < 0 ? bit : count_features(sock, ifname);
	if (err > 0) {
		features.set.size = ((uint32_t)err + 31) / 32;
		features.blocks[bit / 32].valid = 1u << bit % 32;
		features.blocks[bit / 32].requested = is_on ? 1u << bit % 32 : 0;
		err = ask(sock, ifname, &features);
	}
	close(sock);
	return err;
}

static int join(int sock, int ifindex, unsigned short type, const uint8_t *mac)
{
	struct packet_mreq request = {.mr_ifindex = ifindex, .mr_type = type};

	if (mac) {
		request.mr_alen = ETH_ALEN;
		memcpy(request.mr_address, mac, ETH_ALEN);
	}
	return setsockopt(sock, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)) < 0
		       ? -errno
		       : 0;
}

int xdp_dev_listen(int ifindex, const uint8_t *mac)
{
	/* Without a protocol it receives nothing itself. */
	int sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	int err;

	if (sock < 0)
		return -errno;
	err = join(sock, ifindex, mac ? PACKET_MR_UNICAST : PACKET_MR_PROMISC, mac);
	if (err == 0 && mac)
		err = join(sock, ifindex, PACKET_MR_ALLMULTI, NULL);
	if (err == 0)
		return sock;
	close(sock);
	return err;
}

static int query_link(int sock, const char *ifname, struct xdp_dev_info *info)
{
	struct ifreq ifr = request_of(ifname);

	if (ioctl(sock, SIOCGIFFLAGS, &ifr) < 0)
		return -errno;
	info->is_up = ifr.ifr_flags & IFF_UP;
	info->has_carrier = ifr.ifr_flags & IFF_RUNNING;
	if (ioctl(sock, SIOCGIFMTU, &ifr) < 0)
		return -errno;
	info->mtu = (unsigned)ifr.ifr_mtu;
	return 0;
}

int xdp_dev_query(const char *ifname, struct xdp_dev_info *info)
{
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (sock < 0)
		return -errno;
	*info = (struct xdp_dev_info){.ifindex = (int)if_nametoindex(ifname)};
	err = info->ifindex == 0 ? -errno : query_link(sock, ifname, info);
	if (err == 0) {
		count_queues(sock, ifname, info);
		query_driver(sock, ifname, info);
		info->defers_interrupts = read_setting(ifname, "napi_defer_hard_irqs") > 0 &&
					  read_setting(ifname, "gro_flush_timeout") > 0;
		query_vlan(sock, ifname, info);
	}
	close(sock);
	return err;
}
