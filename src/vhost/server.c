/* SPDX-License-Identifier: BSD-2-Clause */
#include "vhost/server.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/unix_sock.h"
#include "base/util.h"
#include "vhost/device.h"
#include "vhost/wire.h"

/* Messages handled per wake-up: a flood of them must not hold up the other watches of the loop. */
#define MAX_MESSAGES 64
/* The first tries to connect follow quickly: a frontend that restarts is back within a second. */
#define QUICK_RETRIES	  10
#define QUICK_RETRY_SEC	  0.1
#define SLOW_RETRY_SEC	  1.0
#define ACCEPT_RETRY_SEC  0.1
#define DESCRIPTION_BYTES 128

enum server_mode {
	SERVER_LISTENING,
	SERVER_CLIENT,
	SERVER_ONE_CONNECTION, /* an fd that came connected */
};

struct server {
	struct ev_loop *loop;
	struct device *device;
	void (*on_end)(void *arg);
	void *arg;

	enum server_mode mode;
	bool is_one_shot;
	char path[sizeof(((struct unix_listener *)0)->path)]; /* client */
	char description[DESCRIPTION_BYTES];

	struct unix_listener listener; /* without a file when its fd was handed in */
	ev_io accept_watch;
	int sock; /* the frontend's; -1: none */
	ev_io sock_watch;
	struct wire_reader reader;

	ev_timer retry;	      /* of connect, or of accept */
	unsigned n_retries;   /* of connect, since the last message of a frontend */
	bool outage_is_known; /* the log tells of it already */
};

static void start_connection(struct server *s, int sock)
{
	s->sock = sock;
	s->outage_is_known = false;
	ev_io_set(&s->sock_watch, sock, EV_READ);
	ev_io_start(s->loop, &s->sock_watch);
	log_info("vhost-user: frontend connected");
}

static void close_connection(struct server *s)
{
	if (s->sock < 0)
		return;
	ev_io_stop(s->loop, &s->sock_watch);
	/* The frontend sees the end of the connection only when nothing touches its memory. */
	device_disconnect(s->device);
	wire_reader_next(&s->reader);
	close(s->sock);
	s->sock = -1;
}

static void stop_waiting(struct server *s)
{
	ev_io_stop(s->loop, &s->accept_watch);
	ev_timer_stop(s->loop, &s->retry);
}

static void retry_after(struct server *s, double seconds)
{
	ev_timer_set(&s->retry, seconds, 0.);
	ev_timer_start(s->loop, &s->retry);
}

static void reconnect_later(struct server *s)
{
	bool is_quick = s->n_retries < QUICK_RETRIES;

	if (is_quick)
		s->n_retries++;
	retry_after(s, is_quick ? QUICK_RETRY_SEC : SLOW_RETRY_SEC);
}

/* The connection is over, a log line has said why: do what comes next in this mode. */
static void lose_connection(struct server *s)
{
	close_connection(s);
	if (s->is_one_shot) {
		stop_waiting(s);
		s->on_end(s->arg);
	} else if (s->mode == SERVER_CLIENT) {
		reconnect_later(s);
	}
}

static void log_read_error(const struct server *s, int err)
{
	const struct vhost_user_header *header = &s->reader.msg.header;

	switch (err) {
	case -ECONNRESET:
		if (s->reader.n_read == 0)
			log_info("vhost-user: frontend disconnected");
		else
			log_warnx("vhost-user: frontend disconnected in the middle of a message");
		break;
	case -EPROTO:
		log_warnx("vhost-user: connection closed: no message of version 1 has request %u, "
			  "flags 0x%x, %u bytes; check what connects",
			  header->request, header->flags, header->size);
		break;
	case -EMFILE:
		log_warnx("vhost-user: connection closed: more fds than a message carries, or "
			  "than this process may open (ulimit -n)");
		break;
	default:
		log_warn(err, "vhost-user: connection closed: cannot read from the frontend");
	}
}

static void log_reply_error(int err)
{
	if (err == -EAGAIN)
		log_warnx("vhost-user: connection closed: the frontend does not read its replies");
	else if (err == -EPIPE || err == -ECONNRESET)
		log_info("vhost-user: frontend disconnected");
	else
		log_warn(err, "vhost-user: connection closed: cannot reply to the frontend");
}

/* Return: 0; or a negative errno, after a log line, when the connection must end. */
static int handle_message(struct server *s)
{
	struct wire_msg *msg = &s->reader.msg;
	struct device_reply reply = {.send = false};
	int err = device_handle(s->device, msg, &reply);

	if (err < 0)
		return err;
	if (reply.send) {
		err = wire_reply(s->sock, msg->header.request, &reply.payload, reply.size);
		if (err < 0)
			log_reply_error(err);
		else
			device_replied(s->device);
	}
	wire_reader_next(&s->reader);
	s->n_retries = 0;
	return err;
}

static void on_message(struct ev_loop *loop, ev_io *watch, int revents)
{
	struct server *s = watch->data;

	(void)loop;
	(void)revents;
	for (unsigned i = 0; i < MAX_MESSAGES; i++) {
		int ret = wire_read(&s->reader, s->sock);

		if (ret == 0)
			return;
		if (ret < 0)
			log_read_error(s, ret);
		else
			ret = handle_message(s);
		if (ret < 0) {
			lose_connection(s);
			return;
		}
	}
}

static void accept_failed(struct server *s, int err)
{
	/* The one who connected has gone again, or somebody else shares the socket with us. */
	if (err == EAGAIN || err == EINTR || err == ECONNABORTED)
		return;
	if (!s->outage_is_known)
		log_warn(err, "vhost-user: cannot accept a connection, trying again every %.0f ms",
			 ACCEPT_RETRY_SEC * 1e3);
	s->outage_is_known = true;
	/* The connection stays in the queue, and would wake us for ever. */
	ev_io_stop(s->loop, &s->accept_watch);
	retry_after(s, ACCEPT_RETRY_SEC);
}

static void on_connection(struct ev_loop *loop, ev_io *watch, int revents)
{
	struct server *s = watch->data;
	int sock = accept4(s->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)loop;
	(void)revents;
	if (sock < 0) {
		accept_failed(s, errno);
		return;
	}
	s->outage_is_known = false;
	if (s->sock >= 0) {
		log_warnx("vhost-user: a second frontend was turned away; each needs its own "
			  "daemon and socket");
		close(sock);
		return;
	}
	start_connection(s, sock);
}

static void try_connect(struct server *s)
{
	int sock = unix_connect(s->path);

	if (sock >= 0) {
		start_connection(s, sock);
		return;
	}
	if (!s->outage_is_known)
		log_warn(sock,
			 "vhost-user: cannot connect to %s; trying again until a frontend "
			 "listens there",
			 s->path);
	s->outage_is_known = true;
	reconnect_later(s);
}

static void on_retry(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct server *s = timer->data;

	(void)revents;
	if (s->mode == SERVER_CLIENT)
		try_connect(s);
	else
		ev_io_start(loop, &s->accept_watch);
}

/* Return: the value of a socket option, or a negative errno. */
static int socket_option(int fd, int option)
{
	int value;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -errno : value;
}

/* Return: whether it listens (1) or is connected (0), or a negative errno after a log line. */
static int check_fd(int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	int domain = socket_option(fd, SO_DOMAIN);
	int type = socket_option(fd, SO_TYPE);
	int is_listening = socket_option(fd, SO_ACCEPTCONN);

	if (domain != AF_UNIX || type != SOCK_STREAM || is_listening < 0) {
		log_errx("fd %d is no unix stream socket; hand in one that listens or is connected",
			 fd);
		return domain < 0 ? domain : -EINVAL;
	}
	if (!is_listening && getpeername(fd, (struct sockaddr *)&peer, &len) < 0) {
		int err = -errno;

		log_err(err, "fd %d neither listens nor is connected; do one of them before", fd);
		return err;
	}
	return is_listening;
}

static int set_flags(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
		int err = -errno;

		log_err(err, "fd %d cannot be made non-blocking; hand in another one", fd);
		return err;
	}
	return 0;
}

static void start_listening(struct server *s)
{
	s->mode = SERVER_LISTENING;
	ev_io_set(&s->accept_watch, s->listener.fd, EV_READ);
	ev_io_start(s->loop, &s->accept_watch);
}

static int open_fd(struct server *s, int fd)
{
	int is_listening = check_fd(fd);
	int err = is_listening < 0 ? is_listening : set_flags(fd);

	if (err < 0)
		return err;
	snprintf(s->description, sizeof(s->description), "using fd %d", fd);
	if (is_listening) {
		s->listener.fd = fd;
		start_listening(s);
	} else {
		s->mode = SERVER_ONE_CONNECTION;
		s->is_one_shot = true;
		start_connection(s, fd);
	}
	return 0;
}

static int open_client(struct server *s, const char *path)
{
	if (path[0] == '\0' || strlen(path) >= sizeof(s->path)) {
		log_errx("socket path '%s': must have 1 to %zu characters; choose another one",
			 path, sizeof(s->path) - 1);
		return path[0] == '\0' ? -EINVAL : -ENAMETOOLONG;
	}
	s->mode = SERVER_CLIENT;
	memcpy(s->path, path, strlen(path) + 1);
	snprintf(s->description, sizeof(s->description), "connecting to %s", path);
	try_connect(s);
	return 0;
}

static int open_listener(struct server *s, const struct server_config *cfg)
{
	int err = unix_listener_open(&s->listener, cfg->path, cfg->socket_mode, cfg->socket_group);

	if (err < 0)
		return err;
	snprintf(s->description, sizeof(s->description), "listening on %s", cfg->path);
	start_listening(s);
	return 0;
}

static void init_watches(struct server *s)
{
	ev_init(&s->accept_watch, on_connection);
	ev_init(&s->sock_watch, on_message);
	ev_init(&s->retry, on_retry);
	s->accept_watch.data = s->sock_watch.data = s->retry.data = s;
	/* That the old frontend has left is seen before its successor is turned away. */
	ev_set_priority(&s->sock_watch, 1);
}

int server_open(struct server **out, struct ev_loop *loop, const struct server_config *cfg,
		struct device *device, void (*on_end)(void *arg), void *arg)
{
	struct server *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		log_err(-ENOMEM, "vhost-user: no memory for the server");
		return -ENOMEM;
	}
	s->loop = loop;
	s->device = device;
	s->on_end = on_end;
	s->arg = arg;
	s->is_one_shot = cfg->is_one_shot;
	s->listener.fd = -1;
	s->sock = -1;
	init_watches(s);
	if (cfg->fd >= 0)
		err = open_fd(s, cfg->fd);
	else if (cfg->is_client)
		err = open_client(s, cfg->path);
	else
		err = open_listener(s, cfg);
	if (err < 0) {
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

void server_describe(const struct server *s, char *text, size_t size)
{
	snprintf(text, size, "%s", s->description);
}

bool server_is_connected(const struct server *s)
{
	return s->sock >= 0;
}

void server_drop(struct server *s, const char *reason)
{
	if (s->sock < 0)
		return;
	log_warnx("vhost-user: connection closed: %s", reason);
	lose_connection(s);
}

void server_close(struct server *s)
{
	if (!s)
		return;
	close_connection(s);
	stop_waiting(s);
	unix_listener_close(&s->listener);
	free(s);
}
