/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets and clients; what a line means is ctl_cmd.c's. A client's next line stays in its socket
 * until the one before is answered, and one line is taken at a time: a flood of requests shares the
 * loop with everybody else.
 */
#include "ctl.h"

#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/unix_sock.h"
#include "base/util.h"
#include "ctl_cmd.h"
#include "vhost-user-xdp/ctl.h"

#define MAX_CLIENTS 16
/* Answers that wait for a client to read them, bytes. */
#define MAX_UNREAD	 (1u << 20)
#define ACCEPT_RETRY_SEC 0.1

struct client {
	struct ctl *ctl;
	int sock;
	ev_io read_watch;
	ev_io write_watch; /* started while answers wait */
	bool is_ending;	   /* closed when all answers are sent */
	char *unread;	   /* answers that wait: n_unread bytes from unread_start on; NULL: none */
	size_t unread_start, n_unread;
	size_t n_line; /* bytes of `line` that have come */
	char line[CTL_MAX_LINE];
};

struct ctl {
	struct ev_loop *loop;
	struct ctl_targets targets;
	struct unix_listener listener;
	ev_io accept_watch;
	ev_timer accept_retry;
	bool outage_is_known; /* the log tells of it already */
	struct client *clients[MAX_CLIENTS];
};

/* ---- one client ---- */

static void client_close(struct client *c)
{
	struct ctl *ctl = c->ctl;

	ev_io_stop(ctl->loop, &c->read_watch);
	ev_io_stop(ctl->loop, &c->write_watch);
	close(c->sock);
	for (size_t i = 0; i < MAX_CLIENTS; i++)
		if (ctl->clients[i] == c)
			ctl->clients[i] = NULL;
	free(c->unread);
	free(c);
}

/* Send what waits, as far as the client reads. Return: 0 or a negative errno. */
static int send_unread(struct client *c)
{
	while (c->n_unread > 0) {
		ssize_t n = send(c->sock, c->unread + c->unread_start, c->n_unread, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			c->unread_start += (size_t)n;
			c->n_unread -= (size_t)n;
		}
	}
	free(c->unread);
	c->unread = NULL;
	c->unread_start = 0;
	return 0;
}

/* Send what waits, now or when the client reads. The client may be gone after it. */
static void client_flush(struct client *c)
{
	int err = send_unread(c);

	if (err < 0 || (c->is_ending && c->n_unread == 0))
		client_close(c);
	else if (c->n_unread > 0)
		ev_io_start(c->ctl->loop, &c->write_watch);
	else
		ev_io_stop(c->ctl->loop, &c->write_watch);
}

/* Put an answer behind those that wait. Return: whether that was possible. */
static bool queue_answer(struct client *c, const char *answer, size_t len)
{
	char *unread;

	if (c->n_unread + len > MAX_UNREAD) {
		log_warnx("control socket: a client was closed: it does not read its answers");
		return false;
	}
	if (c->unread)
		memmove(c->unread, c->unread + c->unread_start, c->n_unread);
	c->unread_start = 0;
	unread = realloc(c->unread, c->n_unread + len);
	if (!unread)
		return false;
	memcpy(unread + c->n_unread, answer, len);
	c->unread = unread;
	c->n_unread += len;
	return true;
}

/* Answer, and free the answer (NULL: there was no memory). The client may be gone after it. */
static void client_answer(struct client *c, char *answer)
{
	size_t len = answer ? strlen(answer) : 0;
	bool is_queued = false;

	if (answer) {
		/* The NUL makes room for the newline. */
		answer[len] = '\n';
		is_queued = queue_answer(c, answer, len + 1);
	}
	free(answer);
	if (is_queued)
		client_flush(c);
	else
		client_close(c);
}

/* No more requests; close when the answers are sent. The client may be gone after it. */
static void client_end(struct client *c)
{
	ev_io_stop(c->ctl->loop, &c->read_watch);
	c->is_ending = true;
	client_flush(c);
}

static void client_refuse_line(struct client *c)
{
	char why[96];

	ev_io_stop(c->ctl->loop, &c->read_watch);
	c->is_ending = true;
	snprintf(why, sizeof(why), "the request is too long: a line has %d bytes at most",
		 CTL_MAX_LINE);
	client_answer(c, ctl_cmd_refusal(why));
}

static void client_handle_line(struct client *c)
{
	size_t len = c->n_line;

	c->n_line = 0;
	client_answer(c, ctl_cmd_answer(&c->ctl->targets, c->line, len));
}

/* Take what has come of the line, nothing of the next one. Return: bytes; 0 at the end; -errno. */
static ssize_t take_line(struct client *c)
{
	char *to = c->line + c->n_line;
	ssize_t n = recv(c->sock, to, sizeof(c->line) - c->n_line, MSG_PEEK);
	const char *newline = n > 0 ? memchr(to, '\n', (size_t)n) : NULL;

	if (n > 0)
		n = recv(c->sock, to, newline ? (size_t)(newline - to) + 1 : (size_t)n, 0);
	return n < 0 ? -errno : n;
}

static void on_request(struct ev_loop *loop, ev_io *watch, int events)
{
	struct client *c = watch->data;
	ssize_t n = take_line(c);

	(void)loop;
	(void)events;
	if (n == 0) {
		client_end(c);
	} else if (n < 0) {
		if (n != -EAGAIN && n != -EINTR)
			client_close(c);
	} else {
		c->n_line += (size_t)n;
		if (c->line[c->n_line - 1] == '\n')
			client_handle_line(c);
		else if (c->n_line == sizeof(c->line))
			client_refuse_line(c);
	}
}

static void on_writable(struct ev_loop *loop, ev_io *watch, int events)
{
	(void)loop;
	(void)events;
	client_flush(watch->data);
}

/* ---- the socket ---- */

static struct client **find_free_slot(struct ctl *c)
{
	for (size_t i = 0; i < MAX_CLIENTS; i++)
		if (!c->clients[i])
			return &c->clients[i];
	return NULL;
}

static void turn_away(struct ctl *c, int sock)
{
	static const char answer[] =
		"{\"ok\":false,\"error\":\"too many clients: close one of the others\"}\n";
	ssize_t ignored = send(sock, answer, sizeof(answer) - 1, MSG_NOSIGNAL);

	(void)ignored;
	close(sock);
	if (!c->outage_is_known)
		log_warnx("control socket: %d clients are connected, more are turned away; close "
			  "some of them",
			  MAX_CLIENTS);
	c->outage_is_known = true;
}

static void start_client(struct ctl *ctl, struct client **slot, int sock)
{
	struct client *c = malloc(sizeof(*c));

	if (!c) {
		log_err(ENOMEM, "control socket: a client was closed");
		close(sock);
		return;
	}
	memset(c, 0, offsetof(struct client, line));
	c->ctl = ctl;
	c->sock = sock;
	ev_io_init(&c->read_watch, on_request, sock, EV_READ);
	ev_io_init(&c->write_watch, on_writable, sock, EV_WRITE);
	c->read_watch.data = c->write_watch.data = c;
	ev_io_start(ctl->loop, &c->read_watch);
	*slot = c;
	ctl->outage_is_known = false;
}

static void accept_failed(struct ctl *c, int err)
{
	/* The one who connected has gone again. */
	if (err == EAGAIN || err == EINTR || err == ECONNABORTED)
		return;
	if (!c->outage_is_known)
		log_warn(err, "control socket: cannot accept a client, trying again every %.0f ms",
			 ACCEPT_RETRY_SEC * 1e3);
	c->outage_is_known = true;
	/* The connection stays in the queue, and would wake us for ever. */
	ev_io_stop(c->loop, &c->accept_watch);
	ev_timer_set(&c->accept_retry, ACCEPT_RETRY_SEC, 0.);
	ev_timer_start(c->loop, &c->accept_retry);
}

static void on_connection(struct ev_loop *loop, ev_io *watch, int events)
{
	struct ctl *c = watch->data;
	int sock = accept4(c->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client **slot = find_free_slot(c);

	(void)loop;
	(void)events;
	if (sock < 0)
		accept_failed(c, errno);
	else if (!slot)
		turn_away(c, sock);
	else
		start_client(c, slot, sock);
}

static void on_accept_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct ctl *c = timer->data;

	(void)events;
	ev_io_start(loop, &c->accept_watch);
}

int ctl_open(struct ctl **out, struct ev_loop *loop, const char *path,
	     const struct ctl_targets *targets)
{
	struct ctl *c = calloc(1, sizeof(*c));
	int err;

	if (!c) {
		log_err(ENOMEM, "control socket: cannot be opened");
		return -ENOMEM;
	}
	c->loop = loop;
	c->targets = *targets;
	err = unix_listener_open(&c->listener, path, 0600, NULL);
	if (err < 0) {
		free(c);
		return err;
	}
	ev_init(&c->accept_retry, on_accept_retry);
	ev_io_init(&c->accept_watch, on_connection, c->listener.fd, EV_READ);
	c->accept_retry.data = c->accept_watch.data = c;
	/* That a client has left is seen before its successor is turned away. */
	ev_set_priority(&c->accept_watch, -1);
	ev_io_start(loop, &c->accept_watch);
	*out = c;
	return 0;
}

void ctl_close(struct ctl *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < MAX_CLIENTS; i++)
		if (c->clients[i])
			client_close(c->clients[i]);
	ev_io_stop(c->loop, &c->accept_watch);
	ev_timer_stop(c->loop, &c->accept_retry);
	unix_listener_close(&c->listener);
	free(c);
}
