/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest without a VM, at the machine's own speed: a virtio-net driver in user space (the frontend
 * library) between the daemon's socket and a tap. The kernel behind that tap, in a network namespace
 * of its own, is the guest's: what it sends is read from the tap straight into transmit buffers, and
 * received buffers are written to the tap, headers and offloads as they are.
 *
 * One thread for each queue pair. It works as a Linux driver does: a call starts it, it turns calls off
 * and works until there is nothing left, turns them on, looks once more, and sleeps. Transmit buffers
 * are taken back on the way; a call for them is asked for only when there are none left, and then the
 * tap is not read. The main thread waits for signals and for the end of the connection, and connects
 * again when the daemon is back; the rings go on where they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_config.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "support/nic.h"
#include "support/wait.h"

#define TX_BUFFER_LEN (NIC_MAX_FRAME + 64)
#define RX_BUFFER_LEN 4096
/* Frames between two kicks. */
#define BURST 32
/* Pieces of a frame of 64 KiB, and more. */
#define MAX_PIECES 64
/* The daemon is gone: look again so often. */
#define RECONNECT_US 5000

struct pair {
	unsigned index;
	int tap;
	uint64_t *free_bufs; /* transmit buffers, guest-physical */
	uint32_t n_free_bufs;
	uint64_t n_sent, n_received, n_calls, n_refused;
	pthread_t thread;
};

static struct nic nic;
static struct pair pairs[NIC_MAX_PAIRS];
static struct nic_options options = {
	.n_pairs = 1,
	.size = 256,
	.features = NIC_FEATURES | NIC_OFFLOADS | NIC_BIT(VIRTIO_NET_F_MQ) |
		    NIC_BIT(VIRTIO_NET_F_CTRL_VQ) | NIC_BIT(VIRTIO_NET_F_STATUS),
};
static const char *socket_path, *tap_name;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("vguest: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(EXIT_FAILURE);
}

/* ---- the tap ---- */

static unsigned tap_offloads(uint64_t features)
{
	unsigned offloads = 0;

	if (!(features & NIC_BIT(VIRTIO_NET_F_CSUM)))
		return 0;
	offloads |= TUN_F_CSUM;
	if (features & NIC_BIT(VIRTIO_NET_F_HOST_TSO4))
		offloads |= TUN_F_TSO4;
	if (features & NIC_BIT(VIRTIO_NET_F_HOST_TSO6))
		offloads |= TUN_F_TSO6;
	return offloads;
}

/* Open a queue of the tap, which is made if it is not there. */
static int open_tap(const char *name, bool is_multi_queue, uint64_t features)
{
	struct ifreq req = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int hdr_len = (int)nic.hdr_len, fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (is_multi_queue)
		req.ifr_flags |= IFF_MULTI_QUEUE;
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &req) < 0 || ioctl(fd, TUNSETVNETHDRSZ, &hdr_len) < 0 ||
	    ioctl(fd, TUNSETOFFLOAD, tap_offloads(features)) < 0)
		die("cannot have the tap %s: %s (needs root)", name, strerror(errno));
	return fd;
}

/* ---- from the daemon to the tap ---- */

/* Write the frame that begins with used element `u`. Return: how many buffers it took. */
static void write_frame(struct pair *p, struct driver_used *u)
{
	struct driver_ring *r = nic_rx(&nic, p->index);
	const struct virtio_net_hdr_v1 *h = guest_at(&nic.guest, u->chain->cookie);
	struct driver_seg seg = {.len = RX_BUFFER_LEN, .is_writable = true};
	uint64_t bufs[MAX_PIECES];
	struct iovec iov[MAX_PIECES];
	unsigned n = le16toh(h->num_buffers);

	expect(n >= 1 && n <= MAX_PIECES);
	for (unsigned i = 0; i < n; i++) {
		bufs[i] = u->chain->cookie;
		iov[i] = (struct iovec){guest_at(&nic.guest, bufs[i]), u->len};
		if (i + 1 < n)
			expect(driver_take(r, u));
	}
	if (writev(p->tap, iov, (int)n) < 0)
		p->n_refused++;
	else
		p->n_received++;
	for (unsigned i = 0; i < n; i++) {
		seg.gpa = bufs[i];
		driver_add(r, &seg, 1, bufs[i]);
	}
}

static bool receive(struct pair *p)
{
	struct driver_ring *r = nic_rx(&nic, p->index);
	struct driver_used u;
	unsigned n = 0;

	while (n < BURST && driver_take(r, &u)) {
		write_frame(p, &u);
		n++;
	}
	if (n > 0)
		driver_kick(r);
	return n > 0;
}

static void post_buffers(struct pair *p)
{
	for (unsigned i = 0; i < options.size; i++) {
		uint64_t gpa = guest_alloc(&nic.guest, RX_BUFFER_LEN, 4096);
		struct driver_seg seg = {.gpa = gpa, .len = RX_BUFFER_LEN, .is_writable = true};

		driver_add(nic_rx(&nic, p->index), &seg, 1, gpa);
	}
	driver_publish(nic_rx(&nic, p->index));
}

/* ---- from the tap to the daemon ---- */

static void reap(struct pair *p)
{
	struct driver_used u;

	while (driver_take(nic_tx(&nic, p->index), &u))
		p->free_bufs[p->n_free_bufs++] = u.chain->cookie;
}

/* Read one frame, with its header, into a buffer of its own. Return: whether there was one. */
static bool read_frame(struct pair *p)
{
	uint64_t gpa = p->free_bufs[p->n_free_bufs - 1];
	struct driver_seg seg = {.gpa = gpa};
	ssize_t len = read(p->tap, guest_at(&nic.guest, gpa), TX_BUFFER_LEN);

	if (len <= 0)
		return false;
	p->n_free_bufs--;
	seg.len = (uint32_t)len;
	driver_add(nic_tx(&nic, p->index), &seg, 1, gpa);
	return true;
}

static bool transmit(struct pair *p)
{
	unsigned n = 0;

	reap(p);
	while (n < BURST && p->n_free_bufs > 0 && read_frame(p))
		n++;
	p->n_sent += n;
	if (n > 0)
		driver_kick(nic_tx(&nic, p->index));
	return n > 0;
}

static void make_buffers(struct pair *p)
{
	p->free_bufs = calloc(options.size, sizeof(*p->free_bufs));
	expect(p->free_bufs);
	for (unsigned i = 0; i < options.size; i++)
		p->free_bufs[p->n_free_bufs++] = guest_alloc(&nic.guest, TX_BUFFER_LEN, 64);
}

/* ---- a queue pair ---- */

/* Return: whether there is nothing to do until something is ready to be read. */
static bool arm_calls(struct pair *p)
{
	if (driver_calls_on(nic_rx(&nic, p->index)))
		return false;
	return p->n_free_bufs > 0 || !driver_calls_on(nic_tx(&nic, p->index));
}

static void rest(struct pair *p)
{
	struct driver_ring *rx = nic_rx(&nic, p->index), *tx = nic_tx(&nic, p->index);
	struct pollfd fds[] = {
		{.fd = rx->call_fd, .events = POLLIN},
		{.fd = tx->call_fd, .events = POLLIN},
		{.fd = p->n_free_bufs > 0 ? p->tap : -1, .events = POLLIN},
	};

	if (arm_calls(p))
		poll(fds, 3, -1);
	p->n_calls += driver_take_calls(rx) + driver_take_calls(tx);
	driver_calls_off(rx);
	driver_calls_off(tx);
}

static void *pair_main(void *arg)
{
	struct pair *p = arg;

	driver_calls_off(nic_rx(&nic, p->index));
	driver_calls_off(nic_tx(&nic, p->index));
	for (;;) {
		bool has_received = receive(p), has_sent = transmit(p);

		if (!has_received && !has_sent)
			rest(p);
	}
	return NULL;
}

/* ---- the connection ---- */

static void reconnect(void)
{
	nic_disconnect(&nic);
	while (frontend_try_connect(&nic.fe, socket_path) < 0)
		wait_pause_us(RECONNECT_US);
	nic_start(&nic);
	puts("connected again");
}

/* Until SIGTERM or SIGINT; the backend says nothing of its own accord. */
static void serve(int signals)
{
	struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, {.events = POLLIN}};

	for (;;) {
		fds[1].fd = nic.fe.sock;
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents)
			return;
		if (fds[1].revents)
			reconnect();
	}
}

static int catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void report(void)
{
	for (unsigned i = 0; i < options.n_pairs; i++)
		printf("q%u: sent %llu, received %llu, refused by the tap %llu, calls %llu, kicks "
		       "%llu\n",
		       i, (unsigned long long)pairs[i].n_sent,
		       (unsigned long long)pairs[i].n_received,
		       (unsigned long long)pairs[i].n_refused, (unsigned long long)pairs[i].n_calls,
		       (unsigned long long)(nic_rx(&nic, i)->n_kicks + nic_tx(&nic, i)->n_kicks));
}

/* ---- command line ---- */

static const char usage[] =
	"usage: vguest --socket-path=PATH --tap=NAME [options]\n"
	"Be the guest of the daemon that listens at PATH, with the kernel behind tap NAME as its "
	"stack.\n"
	"  --queue-pairs=N    1 to 16 (default 1)\n"
	"  --size=N           entries of each ring, a power of two (default 256)\n"
	"  --offloads=on|off  checksums and segmentation are left to the daemon (default on)\n"
	"It prints \"ready\" when frames flow, and counters at SIGTERM.\n";

static unsigned take_number(const char *name, const char *text, unsigned min, unsigned max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text == '\0' || *end != '\0' || n < min || n > max)
		die("--%s must be a whole number from %u to %u, not '%s'", name, min, max, text);
	return (unsigned)n;
}

static void take_options(int argc, char *argv[])
{
	static const struct option known[] = {
		{"socket-path", required_argument, NULL, 's'},
		{"tap", required_argument, NULL, 't'},
		{"queue-pairs", required_argument, NULL, 'q'},
		{"size", required_argument, NULL, 'n'},
		{"offloads", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 's':
			socket_path = optarg;
			break;
		case 't':
			tap_name = optarg;
			break;
		case 'q':
			options.n_pairs = take_number("queue-pairs", optarg, 1, 16);
			break;
		case 'n':
			options.size = take_number("size", optarg, 2, 32768);
			break;
		case 'o':
			if (strcmp(optarg, "off") == 0)
				options.features &= ~NIC_OFFLOADS;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(EXIT_SUCCESS);
		default:
			exit(2);
		}
	}
	if (!socket_path || !tap_name)
		die("--socket-path and --tap are needed (--help)");
}

int main(int argc, char *argv[])
{
	/* Sparse; the buffers of all pairs fit. */
	static struct guest_layout layout = {.region_size = 1ULL << 30};
	int signals;

	take_options(argc, argv);
	options.layout = &layout;
	signals = catch_signals();
	nic_open(&nic, socket_path, &options);
	for (unsigned i = 0; i < options.n_pairs; i++) {
		struct pair *p = &pairs[i];

		p->index = i;
		p->tap = open_tap(tap_name, options.n_pairs > 1, nic.fe.features);
		make_buffers(p);
		post_buffers(p);
		if (pthread_create(&p->thread, NULL, pair_main, p) != 0)
			die("cannot start a thread");
		driver_kick_always(nic_rx(&nic, i));
	}
	puts("ready");
	fflush(stdout);
	serve(signals);
	report();
	return EXIT_SUCCESS;
}
