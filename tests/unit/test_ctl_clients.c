/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of the control socket, good, slow and bad ones; what the commands say is test_ctl.c's.
 */
#include "ctl.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/util.h"
#include "support/ctl_fixture.h"
#include "support/wait.h"
#include "vhost-user-xdp/ctl.h"

#define MAX_CLIENTS 16
#define STATUS	    "{\"cmd\":\"status\"}"
#define STATS	    "{\"cmd\":\"stats\"}"
#define RINGS	    "{\"cmd\":\"rings\"}"

static int client;

static void setup(void)
{
	ctl_fixture_setup();
	client = ctl_dial();
}

static void teardown(void)
{
	close(client);
	ctl_fixture_teardown();
}

static void check_alive(int fd)
{
	json_decref(ctl_ask_data(fd, STATUS));
}

/* ---- lines ---- */

START_TEST(half_a_line_waits_and_holds_up_nobody)
{
	int other = ctl_dial();

	ck_assert(ctl_send(client, STATUS, 7));
	check_alive(other);
	ctl_expect_silence(client);
	ck_assert(ctl_send(client, STATUS + 7, strlen(STATUS) - 7));
	check_alive(other);
	ctl_expect_silence(client);
	ck_assert(ctl_send(client, "\n", 1));
	json_decref(ctl_take(client));
	close(other);
}
END_TEST

START_TEST(line_may_come_byte_by_byte)
{
	for (const char *p = STATS; *p; p++)
		ck_assert(ctl_send(client, p, 1));
	json_decref(ctl_ask(client, ""));
}
END_TEST

/* A status request of `len` bytes, its newline included. */
static char *padded_request(size_t len)
{
	char *request = malloc(len);

	ck_assert_ptr_nonnull(request);
	memset(request, ' ', len);
	memcpy(request, STATUS, strlen(STATUS));
	request[len - 1] = '\n';
	return request;
}

START_TEST(longest_line_is_answered)
{
	char *request = padded_request(CTL_MAX_LINE);
	json_t *answer;

	for (int i = 0; i < 3; i++) {
		ck_assert(ctl_send(client, request, CTL_MAX_LINE));
		answer = ctl_take(client);
		ck_assert(json_is_true(json_object_get(answer, "ok")));
		json_decref(answer);
	}
	free(request);
}
END_TEST

START_TEST(longer_line_is_refused_and_the_connection_closed)
{
	char *request = padded_request(4 * CTL_MAX_LINE);
	const char *error;
	json_t *answer;

	/* The server may hang up while we are still sending. */
	ctl_send(client, request, _i ? 4 * CTL_MAX_LINE : CTL_MAX_LINE + 1);
	answer = ctl_take(client);
	error = json_string_value(json_object_get(answer, "error"));
	ck_assert(error && strstr(error, "too long"));
	json_decref(answer);
	ctl_expect_closed(client);
	free(request);
}
END_TEST

START_TEST(requests_in_a_row_are_answered_in_order)
{
	static const char *const part[] = {"version", "total", "rings"};
	static const char three[] = STATUS "\n" STATS "\n" RINGS "\n";

	for (int i = 0; i < 50; i++)
		ck_assert(ctl_send(client, three, strlen(three)));
	for (size_t i = 0; i < 150; i++) {
		json_t *answer = ctl_take(client);

		ck_assert_ptr_nonnull(
			json_object_get(json_object_get(answer, "data"), part[i % 3]));
		json_decref(answer);
	}
}
END_TEST

/* ---- clients ---- */

START_TEST(answers_wait_for_a_slow_reader)
{
	/* More than the socket takes, less than what the server keeps. */
	const unsigned n = 500;

	for (unsigned i = 0; i < n; i++)
		ck_assert(ctl_send(client, STATS "\n", strlen(STATS) + 1));
	for (unsigned i = 0; i < n; i++) {
		json_t *answer = ctl_take(client);

		ck_assert(json_is_true(json_object_get(answer, "ok")));
		json_decref(answer);
	}
	check_alive(client);
}
END_TEST

START_TEST(client_that_never_reads_is_closed)
{
	int other = ctl_dial();
	bool is_open = true;

	for (unsigned i = 0; i < 100000 && is_open; i++) {
		is_open = ctl_send(client, STATS "\n", strlen(STATS) + 1);
		if (i % 100 == 0)
			check_alive(other);
	}
	ck_assert(!is_open);
	check_alive(other);
	ck_assert_uint_eq(log_capture_count(&cf.lines, "does not read its answers"), 1);
	close(other);
}
END_TEST

START_TEST(client_that_ends_its_side_gets_its_answers)
{
	for (int i = 0; i < 300; i++)
		ck_assert(ctl_send(client, STATS "\n", strlen(STATS) + 1));
	ck_assert(ctl_send(client, STATUS, strlen(STATUS)));
	shutdown(client, SHUT_WR);
	for (int i = 0; i < 300; i++)
		json_decref(ctl_take(client));
	ctl_expect_closed(client);
}
END_TEST

START_TEST(client_may_vanish_with_answers_outstanding)
{
	unsigned n_fds;

	check_alive(client);
	n_fds = fds_count();
	for (int i = 0; i < 20; i++) {
		int other = ctl_dial();

		for (int j = 0; j < 50 * (i % 3); j++)
			ck_assert(ctl_send(other, RINGS "\n", strlen(RINGS) + 1));
		ck_assert(ctl_send(other, STATUS, strlen(STATUS)));
		close(other);
	}
	wait_until(fds_count() == n_fds, WAIT_LONG_MS);
	check_alive(client);
}
END_TEST

START_TEST(client_beyond_the_limit_is_turned_away)
{
	int clients[MAX_CLIENTS - 1], other;
	json_t *answer;

	check_alive(client);
	for (size_t i = 0; i < array_size(clients); i++)
		check_alive(clients[i] = ctl_dial());
	for (int i = 0; i < 3; i++) {
		other = ctl_dial();
		answer = ctl_take(other);
		ck_assert(json_is_false(json_object_get(answer, "ok")));
		json_decref(answer);
		ctl_expect_closed(other);
		close(other);
	}
	ck_assert_uint_eq(log_capture_count(&cf.lines, "more are turned away"), 1);
	check_alive(client);
	close(clients[0]);
	check_alive(clients[0] = ctl_dial());
	for (size_t i = 0; i < array_size(clients); i++) {
		check_alive(clients[i]);
		close(clients[i]);
	}
}
END_TEST

START_TEST(no_fd_is_no_end)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int waiting = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), lowest = dup(waiting);
	struct rlimit old, none;

	ck_assert_int_ge(lowest, 0);
	close(lowest);
	check_alive(client);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = old.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	strcpy(addr.sun_path, cf.ctl_path);
	ck_assert_int_eq(connect(waiting, (struct sockaddr *)&addr, sizeof(addr)), 0);
	wait_until(log_capture_count(&cf.lines, "cannot accept a client") == 1, WAIT_LONG_MS);
	check_alive(client);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	check_alive(waiting);
	close(waiting);
}
END_TEST

START_TEST(fds_sent_along_are_closed)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {(char[]){STATUS "\n"}, strlen(STATUS) + 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	unsigned n_fds;

	check_alive(client);
	n_fds = fds_count();
	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS,
			      .cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(c), &client, sizeof(int));
	ck_assert_int_gt(sendmsg(client, &msg, MSG_NOSIGNAL), 0);
	json_decref(ctl_take(client));
	check_alive(client);
	ck_assert_uint_eq(fds_count(), n_fds);
}
END_TEST

/* ---- the socket ---- */

START_TEST(socket_is_for_its_owner_only)
{
	struct stat st;

	ck_assert_int_eq(lstat(cf.ctl_path, &st), 0);
	ck_assert(S_ISSOCK(st.st_mode));
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
}
END_TEST

START_TEST(close_ends_clients_and_removes_the_file)
{
	check_alive(client);
	ck_assert(ctl_send(client, "{", 1));
	ctl_fixture_close_ctl();
	ctl_expect_closed(client);
	ck_assert_int_eq(access(cf.ctl_path, F_OK), -1);
	ctl_close(NULL);
}
END_TEST

START_TEST(path_in_use_is_refused)
{
	struct ctl_targets targets = {0};
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct ctl *second = NULL;

	ck_assert_int_eq(ctl_open(&second, loop, cf.ctl_path, &targets), -EADDRINUSE);
	ck_assert_ptr_null(second);
	ck_assert_int_eq(ctl_open(&second, loop, cf.socket_path, &targets), -EADDRINUSE);
	ck_assert_int_eq(ctl_open(&second, loop, "/no/such/folder/s", &targets), -ENOENT);
	ev_loop_destroy(loop);
	check_alive(client);
}
END_TEST

static void add(TCase *c, const TTest *const tests[], size_t n)
{
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 120);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(c, tests[i]);
}

static TCase *clients_case(void)
{
	const TTest *const tests[] = {
		half_a_line_waits_and_holds_up_nobody,
		line_may_come_byte_by_byte,
		longest_line_is_answered,
		requests_in_a_row_are_answered_in_order,
		answers_wait_for_a_slow_reader,
		client_that_never_reads_is_closed,
		client_that_ends_its_side_gets_its_answers,
		client_may_vanish_with_answers_outstanding,
		client_beyond_the_limit_is_turned_away,
		no_fd_is_no_end,
		fds_sent_along_are_closed,
		socket_is_for_its_owner_only,
		close_ends_clients_and_removes_the_file,
		path_in_use_is_refused,
	};
	TCase *c = tcase_create("clients");

	add(c, tests, array_size(tests));
	tcase_add_loop_test(c, longer_line_is_refused_and_the_connection_closed, 0, 2);
	return c;
}

int main(void)
{
	Suite *s = suite_create("ctl clients");
	SRunner *runner;
	int n_failed;

	suite_add_tcase(s, clients_case());
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
