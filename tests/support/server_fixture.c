/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/server_fixture.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unix_sock.h"
#include "base/util.h"

struct server_fixture fx;

static char folder[] = "/tmp/vux-server-XXXXXX";

static int ring_start(void *arg, unsigned ring, const struct device_ring *r)
{
	(void)arg;
	(void)ring;
	(void)r;
	return 0;
}

static uint32_t ring_stop(void *arg, unsigned ring)
{
	(void)arg;
	(void)ring;
	return 0;
}

static void ring_forget(void *arg, unsigned ring)
{
	(void)arg;
	(void)ring;
}

static void ring_enable(void *arg, unsigned ring, bool is_enabled)
{
	(void)arg;
	(void)ring;
	(void)is_enabled;
}

static int ring_kick_fd(void *arg, unsigned ring, int fd)
{
	(void)arg;
	(void)ring;
	if (fd >= 0)
		close(fd);
	return 0;
}

static void ring_other_fd(void *arg, unsigned ring, int fd)
{
	ring_kick_fd(arg, ring, fd);
}

static int tell_features(void *arg, uint64_t features)
{
	(void)arg;
	fx.features_told = features;
	return 0;
}

static const struct device_ops ops = {
	.ring_start = ring_start,
	.ring_stop = ring_stop,
	.ring_forget = ring_forget,
	.ring_enable = ring_enable,
	.ring_kick_fd = ring_kick_fd,
	.ring_call_fd = ring_other_fd,
	.ring_err_fd = ring_other_fd,
	.features = tell_features,
};

void fixture_setup(void)
{
	struct device_config cfg = {.features = BIT_ULL(VIRTIO_F_VERSION_1), .n_pairs = 1};

	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(fx.path, sizeof(fx.path), "%s/s", folder);
	fx.loop = ev_loop_new(EVFLAG_AUTO);
	ck_assert_ptr_nonnull(fx.loop);
	fx.device = device_new(&cfg, &ops, NULL);
	ck_assert_ptr_nonnull(fx.device);
	fx.server = NULL;
	fx.n_ends = 0;
	fx.features_told = 0;
	log_capture_start(&fx.lines);
}

void fixture_teardown(void)
{
	log_capture_stop(&fx.lines);
	server_close(fx.server);
	device_free(fx.device);
	ev_loop_destroy(fx.loop);
	unlink(fx.path);
	ck_assert_int_eq(rmdir(folder), 0);
}

void fixture_on_end(void *arg)
{
	ck_assert_ptr_eq(arg, &fx.n_ends);
	fx.n_ends++;
}

int fixture_open(const struct server_config *cfg)
{
	return server_open(&fx.server, fx.loop, cfg, fx.device, fixture_on_end, &fx.n_ends);
}

void fixture_listen(bool is_one_shot)
{
	struct server_config cfg = {
		.path = fx.path,
		.fd = -1,
		.socket_mode = 0600,
		.is_one_shot = is_one_shot,
	};

	ck_assert_int_eq(fixture_open(&cfg), 0);
}

void fixture_connect(bool is_one_shot)
{
	struct server_config cfg = {
		.path = fx.path,
		.fd = -1,
		.is_client = true,
		.is_one_shot = is_one_shot,
	};

	ck_assert_int_eq(fixture_open(&cfg), 0);
}

static void note_timeout(struct ev_loop *l, ev_timer *timer, int revents)
{
	(void)l;
	(void)revents;
	*(bool *)timer->data = true;
}

unsigned fixture_count_wakeups(double seconds)
{
	bool is_over = false;
	ev_timer timer;
	unsigned n = 0;

	ev_timer_init(&timer, note_timeout, seconds, 0.);
	timer.data = &is_over;
	ev_now_update(fx.loop);
	ev_timer_start(fx.loop, &timer);
	for (;;) {
		ev_run(fx.loop, EVRUN_ONCE);
		if (is_over)
			return n;
		n++;
	}
}

int fixture_dial(void)
{
	int fd = unix_connect(fx.path);

	ck_assert_int_ge(fd, 0);
	return fd;
}

int fixture_dial_and_wait(void)
{
	int fd = fixture_dial();

	run_until(server_is_connected(fx.server));
	return fd;
}

bool fixture_is_readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

bool fixture_is_closed(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

void fixture_send(int fd, uint32_t request, const void *payload, uint32_t size)
{
	struct vhost_user_header header = {
		.request = request,
		.flags = VHOST_USER_VERSION,
		.size = size,
	};
	char bytes[sizeof(header) + sizeof(union vhost_user_payload)];

	memcpy(bytes, &header, sizeof(header));
	if (size > 0)
		memcpy(bytes + sizeof(header), payload, size);
	ck_assert_int_eq(send(fd, bytes, sizeof(header) + size, MSG_NOSIGNAL),
			 (ssize_t)(sizeof(header) + size));
}

void fixture_send_u64(int fd, uint32_t request, uint64_t value)
{
	fixture_send(fd, request, &value, sizeof(value));
}

uint64_t fixture_take_reply(int fd, uint32_t request)
{
	char bytes[sizeof(struct vhost_user_header) + sizeof(uint64_t)];
	struct vhost_user_header header;
	uint64_t value;

	ck_assert_int_eq(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), sizeof(bytes));
	memcpy(&header, bytes, sizeof(header));
	memcpy(&value, bytes + sizeof(header), sizeof(value));
	ck_assert_uint_eq(header.request, request);
	ck_assert_uint_eq(header.flags, 5);
	ck_assert_uint_eq(header.size, sizeof(value));
	return value;
}

void fixture_check_served(int fd)
{
	fixture_send(fd, VHOST_USER_GET_FEATURES, NULL, 0);
	run_until(fixture_is_readable(fd));
	ck_assert_uint_eq(fixture_take_reply(fd, VHOST_USER_GET_FEATURES),
			  device_features_offered(fx.device));
}
