/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A vhost-user server around a real device, in a loop that the test turns, and the frontend's end
 * of its socket. Everything runs in the thread of the test; stderr is captured.
 */
#ifndef SUPPORT_SERVER_FIXTURE_H
#define SUPPORT_SERVER_FIXTURE_H

#include <check.h>
#include <ev.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/timer.h"
#include "support/fds.h"
#include "vhost/device.h"
#include "vhost/server.h"

#define FIXTURE_DEADLINE_NS (10 * NS_PER_SEC)

struct server_fixture {
	struct ev_loop *loop;
	struct device *device; /* one pair; its rings are nobody's */
	struct server *server; /* NULL: none; closed after the test */
	char path[64];	       /* of a socket, in a folder of its own */
	struct log_capture lines;
	unsigned n_ends;	/* how often the server has told its end */
	uint64_t features_told; /* by the device to the owner of the rings */
};

extern struct server_fixture fx;

/* Before and after each test. */
void fixture_setup(void);
void fixture_teardown(void);

/* Open fx.server; the two others must succeed. */
int fixture_open(const struct server_config *cfg);
void fixture_listen(bool is_one_shot);
void fixture_connect(bool is_one_shot);

/* The server's end callback; `arg` is &fx.n_ends. */
void fixture_on_end(void *arg);

/* Run the loop until the condition holds. */
#define run_until(condition)                                                                       \
	do {                                                                                       \
		uint64_t deadline = clock_now_ns() + FIXTURE_DEADLINE_NS;                          \
                                                                                                   \
		while (!(condition)) {                                                             \
			ck_assert_msg(clock_now_ns() < deadline, "never: " #condition);            \
			ev_run(fx.loop, EVRUN_NOWAIT);                                             \
			poll(NULL, 0, 1);                                                          \
		}                                                                                  \
	} while (0)

/* Return: how many times the loop woke up in `seconds`, the end of the time not counted. */
unsigned fixture_count_wakeups(double seconds);

/* Connect to the listening server. Return: the fd, non-blocking. */
int fixture_dial(void);
int fixture_dial_and_wait(void);

bool fixture_is_readable(int fd);

/* Return: whether the server has closed its end, and all that it sent has been read. */
bool fixture_is_closed(int fd);

void fixture_send(int fd, uint32_t request, const void *payload, uint32_t size);
void fixture_send_u64(int fd, uint32_t request, uint64_t value);

/* Take the reply of a u64 that has arrived, and check it. Return: the value. */
uint64_t fixture_take_reply(int fd, uint32_t request);

/* Ask for the features, and get them. */
void fixture_check_served(int fd);

#endif
