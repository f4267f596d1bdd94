/* SPDX-License-Identifier: BSD-2-Clause */
/* One-shot, client mode, and sockets that are handed in: the rest is in test_server.c. */
#include "vhost/server.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unix_sock.h"
#include "base/util.h"
#include "support/fds.h"
#include "support/server_fixture.h"

START_TEST(one_shot_ends_when_its_frontend_leaves)
{
	int fd, late;

	fixture_listen(true);
	fd = fixture_dial_and_wait();
	fixture_check_served(fd);
	ck_assert_uint_eq(fx.n_ends, 0);
	close(fd);
	run_until(fx.n_ends == 1);
	late = fixture_dial();
	/* libev takes a stopped watch out of epoll only when it fires once more. */
	ck_assert_uint_le(fixture_count_wakeups(0.05), 1);
	ck_assert(!server_is_connected(fx.server));
	ck_assert_uint_eq(fx.n_ends, 1);
	close(late);
}
END_TEST

START_TEST(one_shot_ends_when_it_is_dropped)
{
	int fd;

	fixture_listen(true);
	fd = fixture_dial_and_wait();
	server_drop(fx.server, "test");
	ck_assert_uint_eq(fx.n_ends, 1);
	close(fd);
}
END_TEST

static void end_and_close(void *arg)
{
	fixture_on_end(arg);
	server_close(fx.server);
	fx.server = NULL;
}

START_TEST(server_may_be_closed_when_it_tells_its_end)
{
	struct server_config cfg = {.path = fx.path, .fd = -1, .is_one_shot = true};
	int fd;

	ck_assert_int_eq(
		server_open(&fx.server, fx.loop, &cfg, fx.device, end_and_close, &fx.n_ends), 0);
	fd = fixture_dial_and_wait();
	close(fd);
	run_until(fx.n_ends == 1);
	ck_assert_ptr_null(fx.server);
	ev_run(fx.loop, EVRUN_NOWAIT);
}
END_TEST

static int accept_one(const struct unix_listener *l)
{
	int fd = -1;

	run_until((fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0);
	return fd;
}

START_TEST(client_connects_at_once)
{
	struct unix_listener l;
	char text[200];
	int fd;

	ck_assert_int_eq(unix_listener_open(&l, fx.path, 0600, NULL), 0);
	fixture_connect(false);
	ck_assert(server_is_connected(fx.server));
	server_describe(fx.server, text, sizeof(text));
	ck_assert_int_eq(strncmp(text, "connecting to ", 14), 0);
	ck_assert_str_eq(text + 14, fx.path);
	fd = accept_one(&l);
	fixture_check_served(fd);
	/* A connected client has no timer. */
	ck_assert_uint_eq(fixture_count_wakeups(0.3), 0);
	close(fd);
	unix_listener_close(&l);
}
END_TEST

START_TEST(client_waits_for_its_frontend_with_one_line)
{
	struct unix_listener l;
	uint64_t start;
	unsigned n;
	int fd;

	fixture_connect(false);
	ck_assert(!server_is_connected(fx.server));
	/* Ten quick tries, the first 100 ms after the open; and then one a second. */
	n = fixture_count_wakeups(0.55);
	ck_assert_uint_ge(n, 1);
	ck_assert_uint_le(n, 6);
	run_until(fixture_count_wakeups(0.25) == 0);
	ck_assert_uint_le(fixture_count_wakeups(1.0), 2);
	ck_assert_uint_eq(log_capture_count(&fx.lines, "cannot connect"), 1);
	ck_assert_uint_eq(log_capture_count(&fx.lines, "\n"), 1);

	ck_assert_int_eq(unix_listener_open(&l, fx.path, 0600, NULL), 0);
	start = clock_now_ns();
	run_until(server_is_connected(fx.server));
	ck_assert_uint_lt(clock_now_ns() - start, 2 * NS_PER_SEC);
	fd = accept_one(&l);
	fixture_check_served(fd);
	close(fd);
	unix_listener_close(&l);
}
END_TEST

START_TEST(client_connects_again_when_its_frontend_restarts)
{
	fixture_connect(false);
	for (unsigned i = 1; i <= 4; i++) {
		struct unix_listener l;
		int fd;

		/* Quick again after each success: all the waits together are more than ten tries. */
		ck_assert_uint_ge(fixture_count_wakeups(0.45), 2);
		ck_assert_int_eq(unix_listener_open(&l, fx.path, 0600, NULL), 0);
		fd = accept_one(&l);
		fixture_check_served(fd);
		unix_listener_close(&l);
		close(fd);
		run_until(!server_is_connected(fx.server));
		run_until(log_capture_count(&fx.lines, "cannot connect") == i + 1);
		ck_assert_uint_eq(log_capture_count(&fx.lines, "frontend disconnected"), i);
	}
	ck_assert_uint_eq(fx.n_ends, 0);
}
END_TEST

START_TEST(one_shot_client_ends_after_its_frontend)
{
	struct unix_listener l;
	int fd;

	ck_assert_int_eq(unix_listener_open(&l, fx.path, 0600, NULL), 0);
	fixture_connect(true);
	fd = accept_one(&l);
	close(fd);
	run_until(fx.n_ends == 1);
	ck_assert_uint_eq(fixture_count_wakeups(0.15), 0);
	unix_listener_close(&l);
}
END_TEST

START_TEST(client_path_that_cannot_be_is_an_error)
{
	char long_path[200];
	struct server_config cfg = {.path = long_path, .fd = -1, .is_client = true};

	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	ck_assert_int_eq(fixture_open(&cfg), -ENAMETOOLONG);
	long_path[0] = '\0';
	ck_assert_int_eq(fixture_open(&cfg), -EINVAL);
	ck_assert_uint_eq(log_capture_count(&fx.lines, "\n"), 2);
}
END_TEST

START_TEST(listening_fd_serves_many_and_keeps_its_file)
{
	struct unix_listener l;
	struct server_config cfg = {.is_one_shot = false};
	char text[32], wanted[32];

	ck_assert_int_eq(unix_listener_open(&l, fx.path, 0600, NULL), 0);
	cfg.fd = fcntl(l.fd, F_DUPFD, 3);
	ck_assert_int_eq(fixture_open(&cfg), 0);
	ck_assert(fds_is_cloexec(cfg.fd));
	server_describe(fx.server, text, sizeof(text));
	snprintf(wanted, sizeof(wanted), "using fd %d", cfg.fd);
	ck_assert_str_eq(text, wanted);
	for (int i = 0; i < 2; i++) {
		int fd = fixture_dial_and_wait();

		fixture_check_served(fd);
		close(fd);
		run_until(!server_is_connected(fx.server));
	}
	server_close(fx.server);
	fx.server = NULL;
	ck_assert_int_eq(access(fx.path, F_OK), 0);
	ck_assert_int_eq(fcntl(cfg.fd, F_GETFD), -1);
	ck_assert_uint_eq(fx.n_ends, 0);
	unix_listener_close(&l);
}
END_TEST

START_TEST(connected_fd_is_one_shot)
{
	struct server_config cfg = {.is_one_shot = false};
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cfg.fd = pair[0];
	ck_assert_int_eq(fixture_open(&cfg), 0);
	ck_assert(server_is_connected(fx.server));
	ck_assert(fds_is_cloexec(pair[0]));
	fixture_check_served(pair[1]);
	close(pair[1]);
	run_until(fx.n_ends == 1);
	ck_assert_int_eq(fcntl(pair[0], F_GETFD), -1);
}
END_TEST

START_TEST(fds_that_cannot_serve_are_refused_and_stay_the_callers)
{
	int pair[2];
	const struct {
		int fd, err;
	} cases[] = {
		{eventfd(0, EFD_CLOEXEC), -ENOTSOCK},
		{socket(AF_UNIX, SOCK_DGRAM, 0), -EINVAL},
		{socket(AF_INET, SOCK_STREAM, 0), -EINVAL},
		{socket(AF_UNIX, SOCK_STREAM, 0), -ENOTCONN},
		{socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0 ? pair[0] : -1, -EINVAL},
		{9999, -EBADF},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		struct server_config cfg = {.fd = cases[i].fd};

		ck_assert_int_eq(fixture_open(&cfg), cases[i].err);
		ck_assert_uint_eq(log_capture_count(&fx.lines, "\n"), i + 1);
		if (cases[i].fd != 9999)
			ck_assert_int_eq(close(cases[i].fd), 0);
	}
	close(pair[1]);
}
END_TEST

static void add_modes(TCase *tc)
{
	tcase_add_test(tc, one_shot_ends_when_its_frontend_leaves);
	tcase_add_test(tc, one_shot_ends_when_it_is_dropped);
	tcase_add_test(tc, server_may_be_closed_when_it_tells_its_end);
	tcase_add_test(tc, client_connects_at_once);
	tcase_add_test(tc, client_waits_for_its_frontend_with_one_line);
	tcase_add_test(tc, client_connects_again_when_its_frontend_restarts);
	tcase_add_test(tc, one_shot_client_ends_after_its_frontend);
	tcase_add_test(tc, client_path_that_cannot_be_is_an_error);
	tcase_add_test(tc, listening_fd_serves_many_and_keeps_its_file);
	tcase_add_test(tc, connected_fd_is_one_shot);
	tcase_add_test(tc, fds_that_cannot_serve_are_refused_and_stay_the_callers);
}

int main(void)
{
	Suite *suite = suite_create("server_modes");
	TCase *tc = tcase_create("server_modes");
	SRunner *runner;
	int n_failed;

	tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
	tcase_set_timeout(tc, 60);
	add_modes(tc);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
