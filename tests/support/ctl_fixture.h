/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A control socket around a real network device, whose loop runs in a thread of its own as the
 * daemon's does, and clients of it that the test plays. The port is loopback: no privileges needed.
 * stderr is captured.
 */
#ifndef SUPPORT_CTL_FIXTURE_H
#define SUPPORT_CTL_FIXTURE_H

#include <ev.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "ctl.h"
#include "net/netdev.h"
#include "support/fds.h"

#define CTL_FIXTURE_PAIRS 2

struct ctl_fixture {
	struct ev_loop *loop; /* its thread's, while that runs */
	pthread_t thread;
	ev_async stop;
	struct netdev *netdev;
	struct device *device;
	struct server *server;
	struct ctl *ctl;
	char socket_path[64]; /* in a folder of its own */
	char ctl_path[64];
	struct log_capture lines;

	/* What the reload callback does, and how often it was called. Atomic. */
	int reload_result;
	unsigned n_reloads;
};

extern struct ctl_fixture cf;

/* Before and after each test. */
void ctl_fixture_setup(void);
void ctl_fixture_teardown(void);

/* Close the control socket in its thread, with whatever clients it has. */
void ctl_fixture_close_ctl(void);

/* Connect to the control socket. Return: the fd, blocking. */
int ctl_dial(void);

/* Send bytes. Return: false when the server has hung up. */
bool ctl_send(int fd, const void *bytes, size_t len);

/* Take the next answer, which must come. Return: it, to be released. */
json_t *ctl_take(int fd);

/* Send a line, and take its answer. */
json_t *ctl_ask(int fd, const char *request);

/* The same; the answer must be a yes. Return: its data, to be released. */
json_t *ctl_ask_data(int fd, const char *request);

/* The same; the answer must be a no, and its text must have `part` in it. */
void ctl_ask_refused(int fd, const char *request, const char *part);

/* The server hangs up without another answer. */
void ctl_expect_closed(int fd);

/* The connection stays, and nothing comes. */
void ctl_expect_silence(int fd);

#endif
