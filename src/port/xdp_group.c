/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/xdp_group.h"

#include <endian.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "port/csum.h"

#define TAG_LEN	      4
#define ADDRESSES_LEN (2 * ETH_ALEN)
/* A tag may come in front of what is read. */
#define BUFFER_LEN (TAG_LEN + FRAME_MAX_LEN)

/* Bytes of the kernel's for frames that wait, each of which takes some thousand: the usual limit
 * holds less than a burst. */
#define RECEIVE_BUFFER (4 << 20)

/* ---- life ---- */

/* What others have sent to a group; what the host itself sends is not for the guest again. */
static int set_filter(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (unsigned)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 2, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	struct sock_fprog program = {array_size(code), code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int set_up(int fd, int ifindex)
{
	const struct sockaddr_ll addr = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = ifindex};
	const int on = 1, room = RECEIVE_BUFFER;

	/* Without the privilege it is cut to the host's limit. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (set_filter(fd) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	return 0;
}

int xdp_group_open(struct xdp_group *g, const char *ifname, int ifindex)
{
	int err;

	*g = (struct xdp_group){.fd = -1};
	g->buffer = malloc(BUFFER_LEN);
	/* Without a protocol it hears nothing until it is bound. */
	g->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	err = g->fd < 0 ? -errno : g->buffer ? set_up(g->fd, ifindex) : -ENOMEM;
	if (err) {
		log_err(err, "xdp %s: cannot have a packet socket for multicast frames%s", ifname,
			err == -EPERM ? ": needs CAP_NET_RAW (or root)" : "");
		xdp_group_close(g);
	}
	return err;
}

void xdp_group_close(struct xdp_group *g)
{
	if (g->fd >= 0)
		close(g->fd);
	free(g->buffer);
	*g = (struct xdp_group){.fd = -1};
}

void xdp_group_read_stats(const struct xdp_group *g, struct queue_stats *stats)
{
	struct tpacket_stats now;
	socklen_t len = sizeof(now);

	/* The kernel counts from zero again after each question. */
	if (getsockopt(g->fd, SOL_PACKET, PACKET_STATISTICS, &now, &len) == 0)
		stat_add(stats, STAT_xdp_rx_dropped, now.tp_drops);
}

/* ---- the path of a packet ---- */

/* Return: the VLAN tag that the kernel has taken out of the frame, if any. */
static bool find_tag(struct msghdr *msg, uint8_t *tag)
{
	struct tpacket_auxdata aux;
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	uint16_t proto, tci;

	if (!c || c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
		return false;
	memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
		return false;
	proto = htons(aux.tp_status & TP_STATUS_VLAN_TPID_VALID ? aux.tp_vlan_tpid : ETH_P_8021Q);
	tci = htons(aux.tp_vlan_tci);
	memcpy(tag, &proto, sizeof(proto));
	memcpy(tag + sizeof(proto), &tci, sizeof(tci));
	return true;
}

/* Put a tag back behind the addresses; the frame then begins where the buffer does. */
static void insert_tag(struct xdp_group *g, struct virtio_net_hdr_v1 *h, const uint8_t *tag)
{
	char *frame = g->buffer;

	memmove(frame, frame + TAG_LEN, ADDRESSES_LEN);
	memcpy(frame + ADDRESSES_LEN, tag, TAG_LEN);
	g->len += TAG_LEN;
	g->iov[1] = (struct iovec){frame, g->len};
	if (h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		h->csum_start = htole16(le16toh(h->csum_start) + TAG_LEN);
}

/* Finish the checksum for a guest that does not. */
static void finish_checksum(struct xdp_group *g, struct virtio_net_hdr_v1 *h)
{
	struct csum_place place = {
		.start = le16toh(h->csum_start),
		.offset = le16toh(h->csum_offset),
		.len = g->len - le16toh(h->csum_start),
		.is_udp = le16toh(h->csum_offset) == 6,
	};

	if (!(h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return;
	if ((uint32_t)place.start + place.offset + 2 <= g->len)
		csum_finish(&g->iov[1], place);
	h->flags &= (uint8_t)~VIRTIO_NET_HDR_F_NEEDS_CSUM;
}

/* Return: whether a frame was read; it is in the buffer then. */
static bool read_frame(struct xdp_group *g, bool wants_csum, struct queue_stats *stats)
{
	struct virtio_net_hdr_v1 h = {0};
	struct iovec iov[2] = {
		{&h, sizeof(struct virtio_net_hdr)},
		{g->buffer + TAG_LEN, FRAME_MAX_LEN},
	};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(g->fd, &msg, MSG_DONTWAIT);
	uint8_t tag[TAG_LEN];

	if (n <= (ssize_t)iov[0].iov_len)
		return false;
	if (msg.msg_flags & MSG_TRUNC) {
		stat_add(stats, STAT_rx_dropped, 1);
		stat_add(stats, STAT_rx_oversize, 1);
		return false;
	}
	g->len = (uint32_t)(n - (ssize_t)iov[0].iov_len);
	g->iov[1] = (struct iovec){iov[1].iov_base, g->len};
	if (find_tag(&msg, tag))
		insert_tag(g, &h, tag);
	if (!wants_csum)
		finish_checksum(g, &h);
	memcpy(g->header, &h, sizeof(h));
	return true;
}

bool xdp_group_peek(struct xdp_group *g, struct frame *f, bool wants_csum,
		    struct queue_stats *stats)
{
	if (g->len == 0 && !read_frame(g, wants_csum, stats))
		return false;
	g->iov[0] = (struct iovec){g->header, FRAME_HDR_LEN};
	*f = (struct frame){.iov = g->iov, .n_iov = 2, .len = g->len};
	return true;
}

void xdp_group_release(struct xdp_group *g)
{
	g->len = 0;
}
