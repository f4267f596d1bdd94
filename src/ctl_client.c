/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl_client.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/timer.h"
#include "base/unix_sock.h"

/* The longest answer that is believed to be one; rings of 16 pairs need some 6 KiB. */
#define MAX_ANSWER	 (4u << 20)
#define CONNECT_RETRY_MS 20

/* What has come of an answer. */
struct answer {
	char *text;
	size_t len, size;
};

static int fail(struct ctl_client *c, int err, const char *fmt, ...) LOG_PRINTF(3, 4);

/* Return: `err`, for the caller to return. */
static int fail(struct ctl_client *c, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(c->why, sizeof(c->why), fmt, args);
	va_end(args);
	return err;
}

static uint64_t deadline_from_now(void)
{
	return clock_now_ns() + CTL_CLIENT_TIMEOUT_SEC * NS_PER_SEC;
}

/* ---- connecting ---- */

/* The socket's backlog is full while the daemon is busy, or stopped. */
static int connect_patiently(const char *path)
{
	uint64_t deadline_ns = deadline_from_now();
	int fd = unix_connect(path);

	while (fd == -EAGAIN && clock_now_ns() < deadline_ns) {
		poll(NULL, 0, CONNECT_RETRY_MS);
		fd = unix_connect(path);
	}
	return fd;
}

int ctl_client_open(struct ctl_client *c, const char *path)
{
	c->fd = connect_patiently(path);
	if (c->fd >= 0)
		return 0;
	switch (c->fd) {
	case -ENOENT:
		return fail(c, c->fd,
			    "no such socket: is the daemon running, and this its control "
			    "socket?");
	case -ECONNREFUSED:
		return fail(c, c->fd, "nobody listens there: is the daemon running?");
	case -EACCES:
		return fail(c, c->fd, "not allowed to connect: run as the user of the daemon");
	case -EAGAIN:
		return fail(c, c->fd,
			    "the daemon has accepted no connection for %d s: is it "
			    "stopped?",
			    CTL_CLIENT_TIMEOUT_SEC);
	default:
		return fail(c, c->fd, "cannot connect: %s", strerror(-c->fd));
	}
}

void ctl_client_close(struct ctl_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* ---- bytes ---- */

/* Return: 0 when the fd is ready; -ETIMEDOUT, or a negative errno. */
static int wait_for(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd pfd = {.fd = fd, .events = events};

	for (;;) {
		uint64_t now_ns = clock_now_ns();
		int n = 0;

		if (now_ns < deadline_ns)
			n = poll(&pfd, 1, (int)((deadline_ns - now_ns) / NS_PER_MS + 1));
		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int send_all(int fd, const char *text, size_t len, uint64_t deadline_ns)
{
	while (len > 0) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
		int err = 0;

		if (n >= 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			err = wait_for(fd, POLLOUT, deadline_ns);
		} else if (errno == EPIPE || errno == ECONNRESET) {
			/* The daemon may have said why before it closed. */
			return 0;
		} else if (errno != EINTR) {
			err = -errno;
		}
		if (err < 0)
			return err;
	}
	return 0;
}

/* Make room for more. Return: 0; -EPROTO when the answer is too long to be one. */
static int answer_grow(struct answer *a)
{
	size_t size = a->size == 0 ? 4096 : 2 * a->size;
	char *text;

	if (size > MAX_ANSWER)
		return -EPROTO;
	text = realloc(a->text, size);
	if (!text)
		return -ENOMEM;
	a->text = text;
	a->size = size;
	return 0;
}

/* Read what has come. Return: bytes; -ECONNRESET at the end; 0 when nothing has come yet. */
static ssize_t answer_read(struct answer *a, int fd)
{
	ssize_t n = recv(fd, a->text + a->len, a->size - a->len, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	a->len += (size_t)n;
	return n == 0 ? -ECONNRESET : n;
}

static int read_answer(struct answer *a, int fd, uint64_t deadline_ns)
{
	while (a->len == 0 || a->text[a->len - 1] != '\n') {
		ssize_t err = a->len == a->size ? answer_grow(a) : 0;

		if (err == 0)
			err = wait_for(fd, POLLIN, deadline_ns);
		if (err == 0)
			err = answer_read(a, fd);
		if (err < 0)
			return (int)err;
	}
	return 0;
}

/* ---- requests ---- */

static char *request_text(const char *cmd, json_t *args)
{
	json_t *request = json_pack("{ss sO*}", "cmd", cmd, "args", args);
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;

	json_decref(request);
	return text;
}

static int send_request(int fd, const char *cmd, json_t *args, uint64_t deadline_ns)
{
	char *text = request_text(cmd, args);
	int err;

	if (!text)
		return -EINVAL;

	size_t len = strlen(text);

	/* The NUL makes room for the newline. */
	text[len] = '\n';
	err = send_all(fd, text, len + 1, deadline_ns);
	free(text);
	return err;
}

/* Return: 0 with the data, -EREMOTEIO, or -EPROTO. */
static int judge_answer(struct ctl_client *c, const struct answer *a, json_t **data)
{
	json_t *answer = json_loadb(a->text, a->len, JSON_REJECT_DUPLICATES, NULL);
	const char *error = json_string_value(json_object_get(answer, "error"));
	int err = -EPROTO;

	*data = json_object_get(answer, "data");
	if (json_is_true(json_object_get(answer, "ok")) && *data) {
		json_incref(*data);
		err = 0;
	} else if (json_is_false(json_object_get(answer, "ok")) && error) {
		err = fail(c, -EREMOTEIO, "%s", error);
	}
	json_decref(answer);
	return err;
}

static int explain(struct ctl_client *c, int err)
{
	switch (err) {
	case 0:
	case -EREMOTEIO:
		return err;
	case -ETIMEDOUT:
		return fail(c, err, "the daemon has not answered for %d s: is it stopped?",
			    CTL_CLIENT_TIMEOUT_SEC);
	case -ECONNRESET:
		return fail(c, err,
			    "the connection was closed: has the daemon ended, or is this no "
			    "control socket?");
	case -EPROTO:
		return fail(c, err,
			    "the answer is not understood: is this a control socket of "
			    "vhost-user-xdp?");
	case -EINVAL:
		return fail(c, err, "the arguments cannot be sent: they must be UTF-8");
	default:
		return fail(c, err, "cannot talk to the daemon: %s", strerror(-err));
	}
}

int ctl_client_ask(struct ctl_client *c, const char *cmd, json_t *args, json_t **data)
{
	uint64_t deadline_ns = deadline_from_now();
	struct answer a = {0};
	int err = send_request(c->fd, cmd, args, deadline_ns);

	if (err == 0)
		err = read_answer(&a, c->fd, deadline_ns);
	if (err == 0)
		err = judge_answer(c, &a, data);
	free(a.text);
	return explain(c, err);
}
