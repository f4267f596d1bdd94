/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/ctl_fixture.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/frontend.h"
#include "support/wait.h"
#include "vhost/server.h"

#define MAX_ANSWER 65536

struct ctl_fixture cf;

static char folder[] = "/tmp/vux-ctl-XXXXXX";

static int reload(void *arg, char *why, size_t why_size)
{
	ck_assert_ptr_eq(arg, &cf);
	__atomic_add_fetch(&cf.n_reloads, 1, __ATOMIC_RELAXED);
	snprintf(why, why_size, "no such thing as a \"file\"");
	return __atomic_load_n(&cf.reload_result, __ATOMIC_RELAXED);
}

static void on_stop(struct ev_loop *loop, ev_async *watch, int events)
{
	(void)watch;
	(void)events;
	ev_break(loop, EVBREAK_ALL);
}

static void *run_loop(void *arg)
{
	ev_run(arg, 0);
	return NULL;
}

static void start_thread(void)
{
	ck_assert_int_eq(pthread_create(&cf.thread, NULL, run_loop, cf.loop), 0);
}

static void stop_thread(void)
{
	ev_async_send(cf.loop, &cf.stop);
	ck_assert_int_eq(pthread_join(cf.thread, NULL), 0);
}

static void open_device(void)
{
	struct netdev_pair_config pairs[CTL_FIXTURE_PAIRS];
	struct port_config port = {.ops = &loopback_port, .fd = -1};
	struct netdev_config cfg = {.port = &port, .n_pairs = CTL_FIXTURE_PAIRS, .pairs = pairs};
	struct device_config device_cfg = {.n_pairs = CTL_FIXTURE_PAIRS};

	for (unsigned i = 0; i < CTL_FIXTURE_PAIRS; i++)
		pairs[i] = (struct netdev_pair_config){
			.params = {.batch = 64, .tx_at_rx = true},
			.cpu = -1,
		};
	ck_assert_int_eq(netdev_open(&cf.netdev, &cfg, cf.loop), 0);
	device_cfg.features = netdev_features(cf.netdev);
	cf.device = device_new(&device_cfg, &netdev_device_ops, cf.netdev);
	ck_assert_ptr_nonnull(cf.device);
}

static void on_end(void *arg)
{
	(void)arg;
}

static void open_sockets(void)
{
	struct server_config cfg = {.path = cf.socket_path, .fd = -1, .socket_mode = 0600};
	struct ctl_targets targets = {.reload = reload, .arg = &cf};

	ck_assert_int_eq(server_open(&cf.server, cf.loop, &cfg, cf.device, on_end, NULL), 0);
	targets.netdev = cf.netdev;
	targets.device = cf.device;
	targets.server = cf.server;
	ck_assert_int_eq(ctl_open(&cf.ctl, cf.loop, cf.ctl_path, &targets), 0);
}

void ctl_fixture_setup(void)
{
	memset(&cf, 0, sizeof(cf));
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(cf.socket_path, sizeof(cf.socket_path), "%s/s", folder);
	snprintf(cf.ctl_path, sizeof(cf.ctl_path), "%s/s.ctl", folder);
	log_capture_start(&cf.lines);
	cf.loop = ev_loop_new(EVFLAG_AUTO);
	ck_assert_ptr_nonnull(cf.loop);
	ev_async_init(&cf.stop, on_stop);
	ev_async_start(cf.loop, &cf.stop);
	open_device();
	open_sockets();
	start_thread();
}

void ctl_fixture_close_ctl(void)
{
	stop_thread();
	ctl_close(cf.ctl);
	cf.ctl = NULL;
	start_thread();
}

void ctl_fixture_teardown(void)
{
	stop_thread();
	log_capture_stop(&cf.lines);
	ctl_close(cf.ctl);
	server_close(cf.server);
	device_free(cf.device);
	netdev_close(cf.netdev);
	ev_loop_destroy(cf.loop);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* ---- clients ---- */

int ctl_dial(void)
{
	struct frontend f;

	frontend_connect(&f, cf.ctl_path);
	return f.sock;
}

bool ctl_send(int fd, const void *bytes, size_t len)
{
	const char *from = bytes;

	while (len > 0) {
		ssize_t n = send(fd, from, len, MSG_NOSIGNAL);

		if (n < 0) {
			ck_assert_msg(errno == EPIPE || errno == ECONNRESET, "send: %s",
				      strerror(errno));
			return false;
		}
		from += n;
		len -= (size_t)n;
	}
	return true;
}

/* Take what has come of a line, and nothing of the next one. Return: bytes. */
static size_t take_part(int fd, char *to, size_t room)
{
	ssize_t n;
	const char *newline;

	ck_assert_msg(wait_readable(fd, WAIT_LONG_MS), "no answer");
	n = recv(fd, to, room, MSG_PEEK);
	ck_assert_msg(n > 0, "closed in place of an answer");
	newline = memchr(to, '\n', (size_t)n);
	return (size_t)recv(fd, to, newline ? (size_t)(newline - to) + 1 : (size_t)n, MSG_WAITALL);
}

json_t *ctl_take(int fd)
{
	static char text[MAX_ANSWER];
	json_error_t error;
	json_t *answer;
	size_t n = 0;

	do {
		ck_assert_uint_lt(n, sizeof(text));
		n += take_part(fd, text + n, sizeof(text) - n);
	} while (text[n - 1] != '\n');
	answer = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(answer != NULL, "%s in %.*s", error.text, (int)n, text);
	return answer;
}

json_t *ctl_ask(int fd, const char *request)
{
	ck_assert(ctl_send(fd, request, strlen(request)));
	ck_assert(ctl_send(fd, "\n", 1));
	return ctl_take(fd);
}

json_t *ctl_ask_data(int fd, const char *request)
{
	json_t *answer = ctl_ask(fd, request);
	json_t *data = json_incref(json_object_get(answer, "data"));

	ck_assert_msg(json_is_true(json_object_get(answer, "ok")), "%s: refused: %s", request,
		      json_string_value(json_object_get(answer, "error")));
	ck_assert_ptr_nonnull(data);
	ck_assert_uint_eq(json_object_size(answer), 2);
	json_decref(answer);
	return data;
}

void ctl_ask_refused(int fd, const char *request, const char *part)
{
	json_t *answer = ctl_ask(fd, request);
	const char *error = json_string_value(json_object_get(answer, "error"));

	ck_assert_msg(json_is_false(json_object_get(answer, "ok")), "%s: not refused", request);
	ck_assert_msg(error && strstr(error, part), "%s: '%s' lacks '%s'", request, error, part);
	ck_assert_uint_eq(json_object_size(answer), 2);
	json_decref(answer);
}

void ctl_expect_closed(int fd)
{
	char byte;

	ck_assert_msg(wait_readable(fd, WAIT_LONG_MS), "the connection stays");
	ck_assert_int_le(recv(fd, &byte, 1, 0), 0);
}

void ctl_expect_silence(int fd)
{
	ck_assert(!wait_readable(fd, WAIT_QUIET_MS));
}
