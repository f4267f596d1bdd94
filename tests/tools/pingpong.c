/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Request and response over TCP, one byte each, on any number of connections at a time: what an
 * interrupt that comes late costs.
 * usage: pingpong PORT                          answers, until it is ended; prints "ready"
 *        pingpong HOST PORT CONNECTIONS SECONDS asks; prints responses per second, p50 and p99 in us
 * One thread and epoll on either side.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_EVENTS  64
#define MAX_SAMPLES 4000000
#define NS	    1000000000ULL

struct connection {
	int fd;
	uint64_t asked_ns;
};

static float samples_us[MAX_SAMPLES];
static size_t n_samples;

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "pingpong: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static void set_up(int fd)
{
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	fcntl(fd, F_SETFL, O_NONBLOCK);
}

static void watch(int epoll, int fd, void *data)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		die("epoll_ctl");
}

/* ---- the side that answers ---- */

static void answer(struct connection *c)
{
	char byte;
	ssize_t n = read(c->fd, &byte, 1);

	if (n == 1 && write(c->fd, &byte, 1) == 1)
		return;
	if (n < 0 && errno == EAGAIN)
		return;
	close(c->fd);
	free(c);
}

static void accept_one(int epoll, int listener)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		die("calloc");
	c->fd = accept(listener, NULL, NULL);
	if (c->fd < 0) {
		free(c);
		return;
	}
	set_up(c->fd);
	watch(epoll, c->fd, c);
}

static void serve(uint16_t port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
	struct epoll_event events[MAX_EVENTS];
	const int on = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(listener, 512) < 0)
		die("cannot listen");
	watch(epoll, listener, NULL);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll, events, MAX_EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				answer(events[i].data.ptr);
			else
				accept_one(epoll, listener);
		}
	}
}

/* ---- the side that asks ---- */

static void ask(struct connection *c)
{
	c->asked_ns = now_ns();
	if (write(c->fd, "", 1) != 1)
		die("write");
}

static void take_answer(struct connection *c)
{
	char byte;

	if (read(c->fd, &byte, 1) != 1)
		die("read");
	if (n_samples < MAX_SAMPLES)
		samples_us[n_samples++] = (float)(now_ns() - c->asked_ns) / 1000;
	ask(c);
}

static void run(int epoll, uint64_t end_ns)
{
	struct epoll_event events[MAX_EVENTS];

	while (now_ns() < end_ns) {
		int n = epoll_wait(epoll, events, MAX_EVENTS, 1000);

		if (n == 0)
			fprintf(stderr, "pingpong: no answer for a second\n");
		for (int i = 0; i < n; i++)
			take_answer(events[i].data.ptr);
	}
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void ask_all(const char *host, uint16_t port, unsigned n_connections, unsigned seconds)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct connection *c = calloc(n_connections, sizeof(*c));
	int epoll = epoll_create1(0);

	if (!c || inet_pton(AF_INET, host, &addr.sin_addr) != 1)
		die(host);
	for (unsigned i = 0; i < n_connections; i++) {
		c[i].fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(c[i].fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
			die("cannot connect");
		set_up(c[i].fd);
		watch(epoll, c[i].fd, &c[i]);
		ask(&c[i]);
	}
	/* The first half second is not counted: caches warm, moderation learns. */
	run(epoll, now_ns() + NS / 2);
	n_samples = 0;
	run(epoll, now_ns() + seconds * NS);
	if (n_samples == 0)
		die("no answer");
	qsort(samples_us, n_samples, sizeof(samples_us[0]), compare);
	printf("%.0f %.1f %.1f\n", (double)n_samples / seconds, (double)samples_us[n_samples / 2],
	       (double)samples_us[n_samples * 99 / 100]);
}

int main(int argc, char *argv[])
{
	if (argc == 2)
		serve((uint16_t)atoi(argv[1]));
	if (argc != 5) {
		fprintf(stderr, "usage: pingpong PORT | pingpong HOST PORT CONNECTIONS SECONDS\n");
		return 2;
	}
	ask_all(argv[1], (uint16_t)atoi(argv[2]), (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	return EXIT_SUCCESS;
}
