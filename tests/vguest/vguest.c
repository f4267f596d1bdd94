/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest at native speed, without a VM: a virtio-net driver in user space between the daemon's
 * vhost-user socket and a tap. The namespace that holds the tap is the guest: its kernel's network
 * stack, with TCP and all, is what a VM's would be, and its programs are the guest's programs.
 *
 *   ip netns exec GUEST vguest --socket-path=/run/vm0.sock --tap=eth0
 *   ip -n GUEST addr add 192.0.2.2/24 dev eth0
 *
 * Offloads pass through: the tap is opened with the virtio-net header that the rings carry, so an
 * unfinished checksum or a large segment stays one on its whole way. The rings and buffers lie in a
 * memfd that is shared with the daemon once (support/nic.h); frames are read from the tap straight
 * into guest buffers, and written to it from there (pump.h).
 *
 * The main thread connects, starts a pump for each queue pair, and waits for signals and for the end
 * of the connection. A backend that goes away is looked for until it is back; then it is given the same
 * memory and rings, where they stand, while the pumps go on: the guest sees a network that is slow for
 * a moment. SIGUSR1 prints the counters of all pumps, added up, as a line of JSON; SIGTERM and SIGINT
 * print them and end the program. What cannot go on is one line on stderr, and exit 1; a wrong option
 * is exit 2.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "support/nic.h"
#include "support/wait.h"
#include "vguest/guest_tap.h"
#include "vguest/pump.h"

#define NAME		 "vguest"
#define ECN_OFFLOADS	 (NIC_BIT(VIRTIO_NET_F_HOST_ECN) | NIC_BIT(VIRTIO_NET_F_GUEST_ECN))
#define CONNECT_RETRY_MS 10
#define MIN_SIZE	 32 /* a large frame takes 17 buffers */
#define MAX_SIZE	 32768

static const char usage[] =
	"usage: " NAME " --socket-path=PATH --tap=NAME [options]\n"
	"  --socket-path=PATH   where the daemon listens\n"
	"  --tap=NAME           the guest's network interface, made if there is none\n"
	"  --queue-pairs=N      1..16 (default 1)\n"
	"  --offloads=on|off    checksums and segmentation, both ways (default on)\n"
	"  --size=N             of each ring, a power of two, 32..32768 (default 256)\n"
	"  --busy               look for work all the time, ask for no interrupt\n";

struct options {
	const char *socket_path, *tap;
	unsigned n_pairs;
	uint32_t size;
	bool has_no_offloads, is_busy;
};

static struct nic nic;
static struct pump pumps[NIC_MAX_PAIRS];

/* ---- options ---- */

static void refuse(const char *option, const char *wanted)
{
	fprintf(stderr, NAME ": %s: must be %s\n", option, wanted);
	exit(2);
}

/* Return: a number from `min` to `max`, or 0. */
static unsigned long number_of(const char *value, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	return *value >= '0' && *value <= '9' && *end == '\0' && n >= min && n <= max ? n : 0;
}

static void take_pairs(struct options *o, const char *value)
{
	o->n_pairs = (unsigned)number_of(value, 1, NIC_MAX_PAIRS);
	if (o->n_pairs == 0)
		refuse("--queue-pairs", "a number from 1 to 16");
}

static void take_size(struct options *o, const char *value)
{
	o->size = (uint32_t)number_of(value, MIN_SIZE, MAX_SIZE);
	if (o->size == 0 || (o->size & (o->size - 1)) != 0)
		refuse("--size", "a power of two from 32 to 32768");
}

static void take_offloads(struct options *o, const char *value)
{
	o->has_no_offloads = strcmp(value, "off") == 0;
	if (!o->has_no_offloads && strcmp(value, "on") != 0)
		refuse("--offloads", "on or off");
}

static void take_path(struct options *o, const char *value)
{
	o->socket_path = value;
}

static void take_tap(struct options *o, const char *value)
{
	o->tap = value;
}

static void take_busy(struct options *o, const char *value)
{
	(void)value;
	o->is_busy = true;
}

static void take_help(struct options *o, const char *value)
{
	(void)o;
	(void)value;
	fputs(usage, stdout);
	exit(EXIT_SUCCESS);
}

static const struct {
	const char *name; /* ends with '=': a value follows */
	void (*take)(struct options *o, const char *value);
} rows[] = {
	{"--socket-path=", take_path},	{"--tap=", take_tap},	{"--queue-pairs=", take_pairs},
	{"--offloads=", take_offloads}, {"--size=", take_size}, {"--busy", take_busy},
	{"--help", take_help},
};

static void take_option(struct options *o, const char *arg)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(rows[i].name);
		bool has_value = rows[i].name[len - 1] == '=';

		if (strncmp(arg, rows[i].name, len) != 0 || (!has_value && arg[len] != '\0'))
			continue;
		rows[i].take(o, arg + len);
		return;
	}
	fprintf(stderr, NAME ": %s: no such option, see --help\n", arg);
	exit(2);
}

static struct options parse(char *argv[])
{
	struct options o = {.n_pairs = 1, .size = 256};

	for (unsigned i = 1; argv[i]; i++)
		take_option(&o, argv[i]);
	if (!o.socket_path)
		refuse("--socket-path", "given");
	if (!o.tap)
		refuse("--tap", "given");
	return o;
}

/* ---- signals and counters ---- */

static int open_signals(void)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	expect_ge(fd, 0);
	return fd;
}

#define ADD_UP(name)                                                                               \
	for (unsigned i = 0; i < n; i++)                                                           \
		sum.name += __atomic_load_n(&pumps[i].counters.name, __ATOMIC_RELAXED);
#define PRINT(name)                                                                                \
	printf("%s\"" #name "\":%" PRIu64, separator, sum.name);                                   \
	separator = ",";

static void print_counters(unsigned n)
{
	struct pump_counters sum = {0};
	const char *separator = "{";

	PUMP_COUNTERS(ADD_UP)
	PUMP_COUNTERS(PRINT)
	puts("}");
	fflush(stdout);
}

/* Return: whether to go on. */
static bool take_signal(int signals, unsigned n_pumps)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return true;
	if (info.ssi_signo != SIGUSR1)
		return false;
	print_counters(n_pumps);
	return true;
}

/* Wait for a signal, or what else ends a wait. @sock: -1: none; @ms: -1: for ever
 * Return: whether to go on. */
static bool wait_for_event(int signals, unsigned n_pumps, int sock, int ms, bool *is_hung_up)
{
	struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, {.fd = sock, .events = POLLIN}};

	poll(fds, 2, ms);
	*is_hung_up = fds[1].revents != 0;
	return fds[0].revents == 0 || take_signal(signals, n_pumps);
}

/* ---- the connection ---- */

/* Return: whether who has accepted the connection answers. A daemon that has just been killed may
 * still take one into its queue, and one that serves another frontend closes it at once. */
static bool is_answered(void)
{
	struct frontend_reply reply;

	return frontend_send(&nic.fe, VHOST_USER_GET_FEATURES, VHOST_USER_VERSION, NULL, 0, NULL,
			     0) &&
	       frontend_wait(&nic.fe, &reply, WAIT_LONG_MS) == FRONTEND_REPLY;
}

/* Return: NULL, or why there is no connection. */
static const char *try_connect(const char *path)
{
	int err = frontend_try_connect(&nic.fe, path);

	if (err)
		return strerror(-err);
	if (is_answered())
		return NULL;
	frontend_close(&nic.fe);
	return "closed without an answer";
}

/* Connect, as soon as somebody answers. Return: false: told to end in the meantime. */
static bool connect_at_last(const struct options *o, int signals, unsigned n_pumps)
{
	bool was_said = false, is_hung_up;
	const char *why;

	while ((why = try_connect(o->socket_path))) {
		if (!was_said)
			fprintf(stderr, NAME ": %s: %s: waiting for the daemon\n", o->socket_path,
				why);
		was_said = true;
		if (!wait_for_event(signals, n_pumps, -1, CONNECT_RETRY_MS, &is_hung_up))
			return false;
	}
	return true;
}

static uint64_t features_of(const struct options *o)
{
	return NIC_FEATURES | NIC_BIT(VIRTIO_NET_F_MQ) | NIC_BIT(VIRTIO_NET_F_CTRL_VQ) |
	       NIC_BIT(VIRTIO_NET_F_STATUS) |
	       (o->has_no_offloads ? 0 : NIC_OFFLOADS | ECN_OFFLOADS);
}

/* Make memory and rings as what the backend offers has them. */
static void make_guest(const struct options *o)
{
	struct frontend fe = nic.fe;
	uint64_t per_pair = pump_memory(o->size) + 64ULL * o->size;
	struct guest_layout layout = {
		.n_regions = 1,
		.region_size = (o->n_pairs * per_pair + 4ULL * GUEST_EDGE) & ~0xfffULL,
	};
	struct nic_options options = {
		.features = features_of(o) & frontend_ask_u64(&fe, VHOST_USER_GET_FEATURES),
		.n_pairs = o->n_pairs,
		.size = o->size,
		.layout = &layout,
	};

	expect_msg(options.features & NIC_BIT(VIRTIO_F_VERSION_1),
		   "%s: the backend does not offer virtio 1", o->socket_path);
	nic_init(&nic, &options);
	nic.options.layout = NULL; /* of no use any more */
	nic.fe = fe;
}

static void start_pumps(const struct options *o)
{
	int fds[NIC_MAX_PAIRS];

	guest_tap_open(o->tap, nic.features, o->n_pairs, fds);
	for (unsigned i = 0; i < o->n_pairs; i++)
		pump_init(&pumps[i], &nic, i, fds[i], o->is_busy);
	nic_start(&nic);
	for (unsigned i = 0; i < o->n_pairs; i++)
		pump_start(&pumps[i]);
	printf("ready: connected to %s, tap %s, offloads %s\n", o->socket_path, o->tap,
	       nic.features & NIC_BIT(VIRTIO_NET_F_CSUM) ? "on" : "off");
	fflush(stdout);
}

/* Return: false: told to end in the meantime. */
static bool connect_again(const struct options *o, int signals)
{
	fprintf(stderr, NAME ": %s: the daemon has gone: looking for the next one\n",
		o->socket_path);
	frontend_close(&nic.fe);
	if (!connect_at_last(o, signals, o->n_pairs))
		return false;
	nic_start(&nic);
	expect_msg((nic.features & ~nic.fe.features) == 0,
		   "%s: the daemon offers less than the one before: 0x%" PRIx64 " is missing",
		   o->socket_path, nic.features & ~nic.fe.features);
	fprintf(stderr, NAME ": %s: connected again\n", o->socket_path);
	return true;
}

static void serve(const struct options *o, int signals)
{
	bool is_hung_up = false;

	while (wait_for_event(signals, o->n_pairs, nic.fe.sock, -1, &is_hung_up))
		if (is_hung_up && !connect_again(o, signals))
			return;
}

int main(int argc, char *argv[])
{
	struct options o = parse(argv);
	int signals = open_signals();

	(void)argc;
	expect_as_program(NAME);
	if (!connect_at_last(&o, signals, 0))
		return EXIT_SUCCESS;
	make_guest(&o);
	start_pumps(&o);
	serve(&o, signals);
	for (unsigned i = 0; i < o.n_pairs; i++)
		pump_stop(&pumps[i]);
	print_counters(o.n_pairs);
	nic_close(&nic);
	return EXIT_SUCCESS;
}
