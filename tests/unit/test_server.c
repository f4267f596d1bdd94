/* SPDX-License-Identifier: BSD-2-Clause */
#include "vhost/server.h"

#include <check.h>
#include <errno.h>
#include <linux/virtio_config.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "support/fds.h"
#include "support/server_fixture.h"

#define UNKNOWN_REQUEST 200

START_TEST(listening_server_serves_one_frontend_after_another)
{
	char text[200];

	fixture_listen(false);
	server_describe(fx.server, text, sizeof(text));
	ck_assert_int_eq(strncmp(text, "listening on ", 13), 0);
	ck_assert_str_eq(text + 13, fx.path);
	for (unsigned i = 1; i <= 3; i++) {
		int fd = fixture_dial_and_wait();

		ck_assert_uint_eq(log_capture_count(&fx.lines, "vhost-user: frontend connected"),
				  i);
		fixture_check_served(fd);
		fixture_check_served(fd);
		close(fd);
		run_until(!server_is_connected(fx.server));
		ck_assert_uint_eq(log_capture_count(&fx.lines, "frontend disconnected"), i);
	}
	ck_assert_uint_eq(log_capture_count(&fx.lines, "\n"), 6);
	ck_assert_uint_eq(fx.n_ends, 0);
}
END_TEST

START_TEST(device_forgets_a_frontend_that_left)
{
	uint64_t features = BIT_ULL(VIRTIO_F_VERSION_1);
	int fd;

	fixture_listen(false);
	fd = fixture_dial_and_wait();
	fixture_send_u64(fd, VHOST_USER_SET_FEATURES, features);
	run_until(device_features(fx.device) == features);
	ck_assert_uint_eq(fx.features_told, features);
	close(fd);
	run_until(!server_is_connected(fx.server));
	ck_assert_uint_eq(device_features(fx.device), 0);
	ck_assert_uint_eq(fx.features_told, 0);
}
END_TEST

START_TEST(second_frontend_is_turned_away_at_once)
{
	int first, second;

	fixture_listen(false);
	first = fixture_dial_and_wait();
	for (unsigned i = 1; i <= 3; i++) {
		second = fixture_dial();
		run_until(fixture_is_closed(second));
		close(second);
		ck_assert_uint_eq(log_capture_count(&fx.lines, "turned away"), i);
	}
	ck_assert(server_is_connected(fx.server));
	fixture_check_served(first);
	close(first);
}
END_TEST

START_TEST(frontend_that_follows_at_once_is_served)
{
	int first, second;

	fixture_listen(false);
	first = fixture_dial_and_wait();
	close(first);
	second = fixture_dial();
	run_until(log_capture_count(&fx.lines, "frontend connected") == 2);
	fixture_check_served(second);
	close(second);
	ck_assert_uint_eq(log_capture_count(&fx.lines, "turned away"), 0);
}
END_TEST

START_TEST(replies_sent_before_the_end_arrive)
{
	int fd;

	fixture_listen(false);
	fd = fixture_dial_and_wait();
	for (int i = 0; i < 5; i++)
		fixture_send(fd, VHOST_USER_GET_FEATURES, NULL, 0);
	shutdown(fd, SHUT_WR);
	run_until(!server_is_connected(fx.server));
	for (int i = 0; i < 5; i++)
		fixture_take_reply(fd, VHOST_USER_GET_FEATURES);
	close(fd);
}
END_TEST

/* What a bad frontend sends: a header, and as many bytes as fit behind it. */
static const struct vhost_user_header bad_headers[] = {
	{.request = VHOST_USER_GET_FEATURES, .flags = 0},
	{.request = VHOST_USER_GET_FEATURES, .flags = 2},
	{.request = VHOST_USER_GET_FEATURES, .flags = 1, .size = 269},
	{.request = VHOST_USER_SET_FEATURES, .flags = 1, .size = 0xffffffff},
};

START_TEST(bad_message_ends_the_connection_with_one_warning)
{
	unsigned before;
	int fd;

	fixture_listen(false);
	before = fds_count();
	for (unsigned i = 1; i <= 200; i++) {
		fd = fixture_dial();
		ck_assert_int_eq(send(fd, &bad_headers[_i], sizeof(bad_headers[_i]), 0),
				 sizeof(bad_headers[_i]));
		run_until(fixture_is_closed(fd));
		close(fd);
		ck_assert_uint_eq(log_capture_count(&fx.lines, "warn: "), i);
	}
	ck_assert(!server_is_connected(fx.server));
	ck_assert_uint_eq(fds_count(), before);
	fd = fixture_dial_and_wait();
	fixture_check_served(fd);
	close(fd);
}
END_TEST

START_TEST(end_in_the_middle_of_a_message_is_a_warning)
{
	struct vhost_user_header header = {.request = 2, .flags = 1, .size = 8};
	int fd;

	fixture_listen(false);
	fd = fixture_dial_and_wait();
	ck_assert_int_eq(send(fd, &header, sizeof(header), 0), sizeof(header));
	close(fd);
	run_until(!server_is_connected(fx.server));
	ck_assert_uint_eq(log_capture_count(&fx.lines, "in the middle of a message"), 1);
	ck_assert_uint_eq(log_capture_count(&fx.lines, "\n"), 2);
}
END_TEST

/* Send a message without payload, and `n` copies of the socket as its fds. */
static void send_with_fds(int sock, uint32_t request, unsigned n)
{
	struct vhost_user_header header = {.request = request, .flags = VHOST_USER_VERSION};
	struct iovec iov = {.iov_base = &header, .iov_len = sizeof(header)};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {0};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (unsigned i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &sock, sizeof(int));
	ck_assert_int_eq(sendmsg(sock, &msg, MSG_NOSIGNAL), sizeof(header));
}

START_TEST(fds_that_nobody_asked_for_do_not_leak)
{
	unsigned before;

	fixture_listen(false);
	before = fds_count();
	for (int i = 0; i < 300; i++) {
		int fd = fixture_dial();

		send_with_fds(fd, UNKNOWN_REQUEST, 1 + (unsigned)i % 8);
		send_with_fds(fd, UNKNOWN_REQUEST, 8);
		fixture_check_served(fd);
		/* Refused by the device, refused by the wire, or left on the way. */
		send_with_fds(fd, VHOST_USER_SET_OWNER, 1 + (unsigned)i % 9);
		if (i % 2)
			run_until(!server_is_connected(fx.server));
		close(fd);
		run_until(!server_is_connected(fx.server));
		ck_assert_uint_eq(fds_count(), before);
	}
}
END_TEST

START_TEST(message_that_the_device_refuses_ends_the_connection)
{
	struct vhost_user_vring_state state = {.index = 99, .num = 256};
	int fd;

	fixture_listen(false);
	fd = fixture_dial_and_wait();
	fixture_send(fd, VHOST_USER_SET_VRING_NUM, &state, sizeof(state));
	run_until(fixture_is_closed(fd));
	ck_assert(!server_is_connected(fx.server));
	/* The device has said why; that is enough. */
	ck_assert_uint_eq(log_capture_count(&fx.lines, "\n"), 2);
	ck_assert_uint_eq(log_capture_count(&fx.lines, "SET_VRING_NUM"), 1);
	close(fd);
}
END_TEST

START_TEST(flood_of_messages_does_not_hold_up_the_loop)
{
	int fd;

	fixture_listen(false);
	fd = fixture_dial_and_wait();
	for (int i = 0; i < 150; i++)
		fixture_send_u64(fd, VHOST_USER_SET_FEATURES, 0);
	fixture_send(fd, VHOST_USER_GET_FEATURES, NULL, 0);
	/* Each run is one look at all watches; 151 messages take more than two. */
	ev_run(fx.loop, EVRUN_NOWAIT);
	ev_run(fx.loop, EVRUN_NOWAIT);
	ck_assert(!fixture_is_readable(fd));
	run_until(fixture_is_readable(fd));
	fixture_take_reply(fd, VHOST_USER_GET_FEATURES);
	close(fd);
}
END_TEST

START_TEST(frontend_that_does_not_read_is_dropped)
{
	struct vhost_user_header header = {.request = VHOST_USER_GET_FEATURES, .flags = 1};
	int fd;

	fixture_listen(false);
	fd = fixture_dial_and_wait();
	for (int i = 0; i < 1000000 && server_is_connected(fx.server); i++)
		if (send(fd, &header, sizeof(header), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			ev_run(fx.loop, EVRUN_NOWAIT);
	ck_assert(!server_is_connected(fx.server));
	ck_assert_uint_eq(log_capture_count(&fx.lines, "does not read its replies"), 1);
	ck_assert_uint_eq(log_capture_count(&fx.lines, "\n"), 2);
	close(fd);
	fd = fixture_dial_and_wait();
	fixture_check_served(fd);
	close(fd);
}
END_TEST

START_TEST(drop_ends_the_connection_with_the_reason)
{
	int fd;

	fixture_listen(false);
	server_drop(fx.server, "there is none");
	ck_assert_uint_eq(log_capture_count(&fx.lines, "\n"), 0);
	fd = fixture_dial_and_wait();
	fixture_send_u64(fd, VHOST_USER_SET_FEATURES, BIT_ULL(VIRTIO_F_VERSION_1));
	run_until(device_features(fx.device) != 0);
	server_drop(fx.server, "guest memory has vanished");
	ck_assert(!server_is_connected(fx.server));
	ck_assert(fixture_is_closed(fd));
	ck_assert_uint_eq(device_features(fx.device), 0);
	ck_assert_uint_eq(log_capture_count(&fx.lines, "guest memory has vanished"), 1);
	close(fd);
	fd = fixture_dial_and_wait();
	fixture_check_served(fd);
	close(fd);
}
END_TEST

START_TEST(close_removes_the_socket_and_ends_the_connection)
{
	unsigned before = fds_count();
	int fd;

	fixture_listen(false);
	fd = fixture_dial_and_wait();
	server_close(fx.server);
	fx.server = NULL;
	ck_assert(fixture_is_closed(fd));
	close(fd);
	ck_assert_int_eq(access(fx.path, F_OK), -1);
	ck_assert_uint_eq(fx.n_ends, 0);
	/* The loop's own fds stay: its epoll and what that opened on first use. */
	ev_loop_destroy(fx.loop);
	fx.loop = ev_loop_new(EVFLAG_AUTO);
	ck_assert_uint_eq(fds_count(), before);
	server_close(NULL);
}
END_TEST

START_TEST(socket_has_its_mode_and_taken_paths_are_errors)
{
	struct server_config cfg = {.path = fx.path, .fd = -1, .socket_mode = 0640};
	struct server *second = NULL;
	unsigned before;
	struct stat st;

	ck_assert_int_eq(fixture_open(&cfg), 0);
	ck_assert_int_eq(stat(fx.path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	before = fds_count();
	ck_assert_int_eq(server_open(&second, fx.loop, &cfg, fx.device, fixture_on_end, NULL),
			 -EADDRINUSE);
	cfg.socket_group = "no-such-group";
	ck_assert_int_eq(server_open(&second, fx.loop, &cfg, fx.device, fixture_on_end, NULL),
			 -ENOENT);
	ck_assert_uint_eq(log_capture_count(&fx.lines, "\n"), 2);
	ck_assert_uint_eq(fds_count(), before);
}
END_TEST

START_TEST(server_without_work_does_not_wake_up)
{
	int fd;

	fixture_listen(false);
	ck_assert_uint_eq(fixture_count_wakeups(0.15), 0);
	fd = fixture_dial_and_wait();
	ck_assert_uint_eq(fixture_count_wakeups(0.15), 0);
	close(fd);
}
END_TEST

START_TEST(lack_of_fds_is_told_once_and_waited_out)
{
	struct rlimit limit, low;
	int fd, top;
	unsigned n;

	fixture_listen(false);
	ev_run(fx.loop, EVRUN_NOWAIT);
	fd = fixture_dial();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	top = dup(fd);
	close(top);
	low = (struct rlimit){.rlim_cur = (rlim_t)top, .rlim_max = limit.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	n = fixture_count_wakeups(0.45);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	/* Every 100 ms the timer, the accept that fails, and libev's late removal of its watch. */
	ck_assert_uint_le(n, 20);
	ck_assert(!server_is_connected(fx.server));
	ck_assert_uint_eq(log_capture_count(&fx.lines, "cannot accept"), 1);
	run_until(server_is_connected(fx.server));
	fixture_check_served(fd);
	close(fd);
}
END_TEST

static void add_listening(TCase *tc)
{
	tcase_add_test(tc, listening_server_serves_one_frontend_after_another);
	tcase_add_test(tc, device_forgets_a_frontend_that_left);
	tcase_add_test(tc, second_frontend_is_turned_away_at_once);
	tcase_add_test(tc, frontend_that_follows_at_once_is_served);
	tcase_add_test(tc, close_removes_the_socket_and_ends_the_connection);
	tcase_add_test(tc, socket_has_its_mode_and_taken_paths_are_errors);
	tcase_add_test(tc, server_without_work_does_not_wake_up);
	tcase_add_test(tc, lack_of_fds_is_told_once_and_waited_out);
}

static void add_bad_frontends(TCase *tc)
{
	tcase_add_test(tc, replies_sent_before_the_end_arrive);
	tcase_add_loop_test(tc, bad_message_ends_the_connection_with_one_warning, 0, 4);
	tcase_add_test(tc, end_in_the_middle_of_a_message_is_a_warning);
	tcase_add_test(tc, fds_that_nobody_asked_for_do_not_leak);
	tcase_add_test(tc, message_that_the_device_refuses_ends_the_connection);
	tcase_add_test(tc, flood_of_messages_does_not_hold_up_the_loop);
	tcase_add_test(tc, frontend_that_does_not_read_is_dropped);
	tcase_add_test(tc, drop_ends_the_connection_with_the_reason);
}

int main(void)
{
	Suite *suite = suite_create("server");
	TCase *tc = tcase_create("server");
	SRunner *runner;
	int n_failed;

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	add_listening(tc);
	add_bad_frontends(tc);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
