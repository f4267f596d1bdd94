/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vhost-user socket: listens or connects, serves one frontend at a time, and goes on after it
 * has left. Control thread only, never blocks. Owns the sockets, their watches in the loop that is
 * handed in, and the reader of the connection; hands whole messages to the device.
 *
 * Server mode: a second connection is closed at once, with one log line. Client mode: connects, and
 * again after the frontend has gone, every 100 ms at first and every second later. A connected
 * server has no timer.
 */
#ifndef VHOST_SERVER_H
#define VHOST_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct ev_loop;
struct device;
struct server;

struct server_config {
	const char *path;   /* NULL with `fd` */
	bool is_client;     /* connect to `path` instead of listening */
	int fd;             /* an open socket instead of `path`, listening or connected; else -1 */
	bool is_one_shot;   /* end when the frontend disconnects; implied by a connected `fd` */
	mode_t socket_mode; /* of the file at `path` */
	const char *socket_group; /* "" or NULL: the process's own */
};

/*
 * Open the socket and start to serve.
 * @on_end: called from the loop when a one-shot server's frontend has left
 * Return: 0; or a negative errno after one log line.
 */
int server_open(struct server **out, struct ev_loop *loop, const struct server_config *cfg,
		struct device *device, void (*on_end)(void *arg), void *arg);

/* What the ready line says of the socket: "listening on PATH", "connecting to PATH", "using fd 3". */
void server_describe(const struct server *s, char *text, size_t size);

/* Return: whether a frontend is connected. */
bool server_is_connected(const struct server *s);

/* End the connection, as if the frontend had closed it; log `reason`. */
void server_drop(struct server *s, const char *reason);

/* End the connection and close everything; removes the socket file. NULL is accepted. */
void server_close(struct server *s);

#endif
