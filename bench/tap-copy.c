/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does it pay to read a tap straight into guest buffers? Compares, in alternation, reading a frame
 * into a stash and copying it to scattered buffers, with one readv into them. Prints ns per frame.
 * Makes its own tap, in the namespace that it is started in.
 * usage: tap-copy PAYLOAD SEGMENT (bytes of TCP payload in a frame, bytes of a guest buffer)
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define TAP_NAME    "copy0"
#define HDR_LEN	    12
#define TCP_HEADERS 54 /* Ethernet, IPv4, TCP */
#define MSS	    1448
#define SLOT	    65664UL
#define N_SLOTS	    16
#define GUEST_BYTES (64UL << 20)
#define BUFFER_STEP 2048
#define ROUNDS	    400

enum way { BY_STASH, DIRECT, N_WAYS };

static char *guest, *stash;
static size_t guest_at;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static char *next_buffer(void)
{
	char *p = guest + guest_at;

	guest_at = (guest_at + BUFFER_STEP) % (GUEST_BYTES - SLOT);
	return p;
}

static int open_tap(void)
{
	struct ifreq ifr = {.ifr_name = TAP_NAME, .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	int hdr_len = HDR_LEN;
	int sock = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr) || ioctl(fd, TUNSETVNETHDRSZ, &hdr_len) ||
	    ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4))
		fail("tap");
	ifr.ifr_flags = IFF_UP;
	if (ioctl(sock, SIOCSIFFLAGS, &ifr))
		fail("tap up");
	close(sock);
	return fd;
}

/* A packet socket that sends through the tap's interface, so that its reader gets the frames. */
static int open_sender(void)
{
	struct sockaddr_ll addr = {.sll_family = AF_PACKET,
				   .sll_protocol = htons(ETH_P_IP),
				   .sll_ifindex = (int)if_nametoindex(TAP_NAME)};
	int sock = socket(AF_PACKET, SOCK_RAW, 0);
	int one = 1, bytes = 64 << 20;

	if (sock < 0 || setsockopt(sock, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) ||
	    bind(sock, (struct sockaddr *)&addr, sizeof(addr)))
		fail("packet socket");
	return sock;
}

static size_t make_frame(char *at, size_t payload)
{
	struct virtio_net_hdr hdr = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 34, .csum_offset = 16};
	size_t len = TCP_HEADERS + payload;
	struct iphdr ip = {.version = 4,
			   .ihl = 5,
			   .tot_len = htons((uint16_t)(len - 14)),
			   .ttl = 64,
			   .protocol = IPPROTO_TCP,
			   .saddr = htonl(0xc0000201),
			   .daddr = htonl(0xc0000202)};
	struct tcphdr tcp = {.doff = 5};

	if (payload > MSS) {
		hdr.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
		hdr.gso_size = MSS;
		hdr.hdr_len = TCP_HEADERS;
	}
	memcpy(at, &hdr, sizeof(hdr));
	at += sizeof(hdr);
	memset(at, 0xff, 6);
	at[12] = 8; /* IPv4 */
	memcpy(at + 14, &ip, sizeof(ip));
	memcpy(at + 34, &tcp, sizeof(tcp));
	return sizeof(hdr) + len;
}

static void read_by_stash(int tap, unsigned i, size_t segment)
{
	char *slot = stash + i * SLOT;
	ssize_t len = read(tap, slot, SLOT);

	for (ssize_t at = 0; at < len; at += (ssize_t)segment) {
		size_t n = (size_t)(len - at);

		memcpy(next_buffer(), slot + at, n < segment ? n : segment);
	}
}

static void read_direct(int tap, size_t segment)
{
	struct iovec iov[64];
	int n = 0;

	for (size_t room = 0; room < SLOT && n < 64; room += segment)
		iov[n++] = (struct iovec){next_buffer(), segment};
	if (readv(tap, iov, n) < 0)
		fail("readv");
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

int main(int argc, char *argv[])
{
	size_t payload = argc == 3 ? (size_t)atol(argv[1]) : 0;
	size_t segment = argc == 3 ? (size_t)atol(argv[2]) : 0;
	double ns[N_WAYS] = {0};
	static char frame[SLOT];

	if (payload < 1 || payload > 65000 || segment < 1100 || segment > 65600)
		return 2;
	int tap = open_tap(), sender = open_sender();
	size_t len = make_frame(frame, payload);

	guest = mmap(NULL, GUEST_BYTES, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	stash = calloc(N_SLOTS, SLOT);
	if (guest == MAP_FAILED || !stash)
		fail("memory");
	for (unsigned round = 0; round < ROUNDS * N_WAYS; round++) {
		enum way way = round % N_WAYS;
		double start;

		for (unsigned i = 0; i < N_SLOTS; i++)
			if (send(sender, frame, len, 0) < 0)
				fail("send");
		start = now_ns();
		for (unsigned i = 0; i < N_SLOTS; i++) {
			if (way == BY_STASH)
				read_by_stash(tap, i, segment);
			else
				read_direct(tap, segment);
		}
		ns[way] += now_ns() - start;
	}
	printf("payload %zu, buffers of %zu: by stash %.0f ns, direct %.0f ns, ratio %.2f\n",
	       payload, segment, ns[BY_STASH] / (ROUNDS * N_SLOTS), ns[DIRECT] / (ROUNDS * N_SLOTS),
	       ns[BY_STASH] / ns[DIRECT]);
	return 0;
}
