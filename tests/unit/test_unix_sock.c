/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/unix_sock.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "support/fds.h"

static char folder[] = "/tmp/vux-sock-XXXXXX";
static char path[64];
static struct unix_listener listener;
static struct log_capture lines;

static void setup(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	listener = (struct unix_listener){.fd = -1};
	log_capture_start(&lines);
}

static void teardown(void)
{
	log_capture_stop(&lines);
	unix_listener_close(&listener);
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

static int open_default(struct unix_listener *l)
{
	return unix_listener_open(l, path, 0600, NULL);
}

/* Bind a socket of our own to `path`, as another process would. */
static int bind_other(int type)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	strcpy(addr.sun_path, path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void make_stale(void)
{
	close(bind_other(SOCK_STREAM));
}

static ino_t inode(void)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_ino : 0;
}

static const mode_t masks[] = {0, 022, 077, 0777};

START_TEST(mode_is_as_asked_whatever_the_umask)
{
	static const mode_t modes[] = {0600, 0660, 0666, 0, 0777};
	mode_t old = umask(masks[_i]);

	for (size_t i = 0; i < array_size(modes); i++) {
		struct stat st;

		ck_assert_int_eq(unix_listener_open(&listener, path, modes[i], ""), 0);
		ck_assert_int_eq(lstat(path, &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, modes[i]);
		unix_listener_close(&listener);
	}
	ck_assert_uint_eq(umask(old), masks[_i]);
}
END_TEST

START_TEST(group_is_taken_by_name)
{
	const struct group *group = getgrgid(getegid());
	struct stat st;

	ck_assert_ptr_nonnull(group);
	ck_assert_int_eq(unix_listener_open(&listener, path, 0660, group->gr_name), 0);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert_uint_eq(st.st_gid, getegid());
}
END_TEST

START_TEST(group_is_taken_by_number)
{
	gid_t gid = geteuid() == 0 ? 54321 : getegid();
	char text[16];
	struct stat st;

	snprintf(text, sizeof(text), "%u", (unsigned)gid);
	ck_assert_int_eq(unix_listener_open(&listener, path, 0660, text), 0);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert_uint_eq(st.st_gid, gid);
	ck_assert_uint_eq(st.st_mode & 07777, 0660);
}
END_TEST

START_TEST(unknown_group_is_refused_before_anything_is_made)
{
	static const char *const groups[] = {"no-such-group",	     "12x", "-1", "4294967295",
					     "99999999999999999999", " 5"};

	make_stale();
	for (size_t i = 0; i < array_size(groups); i++) {
		ino_t before = inode();

		ck_assert_int_eq(unix_listener_open(&listener, path, 0600, groups[i]), -ENOENT);
		ck_assert_int_eq(listener.fd, -1);
		ck_assert_uint_eq(inode(), before);
	}
	ck_assert_uint_eq(log_capture_count(&lines, "no group"), array_size(groups));
}
END_TEST

START_TEST(listener_is_nonblocking_and_not_inherited)
{
	ck_assert_int_eq(open_default(&listener), 0);
	ck_assert(fds_is_cloexec(listener.fd));
	ck_assert(fds_is_nonblocking(listener.fd));
	ck_assert_int_eq(accept(listener.fd, NULL, NULL), -1);
	ck_assert_int_eq(errno, EAGAIN);
}
END_TEST

START_TEST(connection_is_nonblocking_and_not_inherited)
{
	int fd;

	ck_assert_int_eq(open_default(&listener), 0);
	fd = unix_connect(path);
	ck_assert_int_ge(fd, 0);
	ck_assert(fds_is_cloexec(fd));
	ck_assert(fds_is_nonblocking(fd));
	close(fd);
}
END_TEST

START_TEST(connect_says_why_it_failed)
{
	char long_path[200];

	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	ck_assert_int_eq(unix_connect(path), -ENOENT);
	ck_assert_int_eq(unix_connect(""), -EINVAL);
	ck_assert_int_eq(unix_connect(long_path), -ENAMETOOLONG);
	make_stale();
	ck_assert_int_eq(unix_connect(path), -ECONNREFUSED);
	ck_assert_uint_eq(log_capture_count(&lines, "\n"), 0);
}
END_TEST

START_TEST(stale_socket_is_replaced)
{
	int fd;

	make_stale();
	ck_assert_int_eq(open_default(&listener), 0);
	fd = unix_connect(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}
END_TEST

START_TEST(live_socket_is_refused_and_left_alone)
{
	struct unix_listener second;
	ino_t before;
	int fd;

	ck_assert_int_eq(open_default(&listener), 0);
	before = inode();
	ck_assert_int_eq(open_default(&second), -EADDRINUSE);
	ck_assert_int_eq(second.fd, -1);
	ck_assert_uint_eq(log_capture_count(&lines, "another process listens there"), 1);
	ck_assert_uint_eq(log_capture_count(&lines, "\n"), 1);
	ck_assert_uint_eq(inode(), before);
	fd = unix_connect(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}
END_TEST

START_TEST(live_socket_with_a_full_queue_is_refused)
{
	int fds[64];
	unsigned n = 0;

	ck_assert_int_eq(open_default(&listener), 0);
	while (n < array_size(fds) && (fds[n] = unix_connect(path)) >= 0)
		n++;
	ck_assert_uint_lt(n, array_size(fds));
	ck_assert_int_eq(fds[n], -EAGAIN);

	struct unix_listener second;

	ck_assert_int_eq(open_default(&second), -EADDRINUSE);
	while (n > 0)
		close(fds[--n]);
}
END_TEST

START_TEST(live_socket_of_another_type_is_refused)
{
	int fd = bind_other(SOCK_DGRAM);

	ck_assert_int_eq(open_default(&listener), -EADDRINUSE);
	ck_assert_uint_ne(inode(), 0);
	close(fd);
}
END_TEST

START_TEST(regular_file_is_refused_and_left_alone)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	struct stat st;

	ck_assert_int_eq(write(fd, "data", 4), 4);
	close(fd);
	ck_assert_int_eq(open_default(&listener), -EEXIST);
	ck_assert_uint_eq(log_capture_count(&lines, "is no socket"), 1);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_size, 4);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
}
END_TEST

START_TEST(folder_and_symbolic_links_are_refused)
{
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(open_default(&listener), -EEXIST);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(symlink("nowhere", path), 0);
	ck_assert_int_eq(open_default(&listener), -EEXIST);
	ck_assert_uint_ne(inode(), 0);
}
END_TEST

START_TEST(bad_paths_are_refused_with_one_line)
{
	char long_path[109];

	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	ck_assert_int_eq(unix_listener_open(&listener, long_path, 0600, NULL), -ENAMETOOLONG);
	ck_assert_int_eq(unix_listener_open(&listener, "", 0600, NULL), -EINVAL);
	ck_assert_int_eq(unix_listener_open(&listener, "/tmp/no-such-folder/s", 0600, NULL),
			 -ENOENT);
	ck_assert_uint_eq(log_capture_count(&lines, "\n"), 3);
}
END_TEST

START_TEST(longest_path_works)
{
	char long_path[108];
	size_t len = (size_t)snprintf(long_path, sizeof(long_path), "%s/", folder);

	memset(long_path + len, 'x', sizeof(long_path) - 1 - len);
	long_path[sizeof(long_path) - 1] = '\0';
	ck_assert_int_eq(unix_listener_open(&listener, long_path, 0600, NULL), 0);
	unix_listener_close(&listener);
	ck_assert_int_eq(access(long_path, F_OK), -1);
}
END_TEST

START_TEST(close_removes_the_file)
{
	ck_assert_int_eq(open_default(&listener), 0);
	unix_listener_close(&listener);
	ck_assert_uint_eq(inode(), 0);
	ck_assert_int_eq(listener.fd, -1);
	unix_listener_close(&listener);
}
END_TEST

START_TEST(close_leaves_the_file_of_a_successor)
{
	struct unix_listener second;

	ck_assert_int_eq(open_default(&listener), 0);
	/* The old file stays under another name, so that its inode is not used again. */
	char aside[80];

	snprintf(aside, sizeof(aside), "%s.old", path);
	ck_assert_int_eq(rename(path, aside), 0);
	ck_assert_int_eq(open_default(&second), 0);
	unix_listener_close(&listener);
	ck_assert_uint_ne(inode(), 0);
	unix_listener_close(&second);
	ck_assert_uint_eq(inode(), 0);
	unlink(aside);
}
END_TEST

START_TEST(repeats_leak_no_fd)
{
	unsigned before = fds_count();

	for (int i = 0; i < 1000; i++) {
		struct unix_listener second;

		make_stale();
		ck_assert_int_eq(open_default(&listener), 0);
		ck_assert_int_eq(open_default(&second), -EADDRINUSE);
		ck_assert_int_eq(unix_listener_open(&second, folder, 0600, NULL), -EEXIST);
		ck_assert_int_eq(unix_listener_open(&second, path, 0600, "no-group"), -ENOENT);
		unix_listener_close(&listener);
		ck_assert_int_eq(unix_connect(path), -ENOENT);
	}
	ck_assert_uint_eq(fds_count(), before);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unix_sock");
	TCase *tc = tcase_create("unix_sock");
	SRunner *runner;
	int n_failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, mode_is_as_asked_whatever_the_umask, 0, array_size(masks));
	tcase_add_test(tc, group_is_taken_by_name);
	tcase_add_test(tc, group_is_taken_by_number);
	tcase_add_test(tc, unknown_group_is_refused_before_anything_is_made);
	tcase_add_test(tc, listener_is_nonblocking_and_not_inherited);
	tcase_add_test(tc, connection_is_nonblocking_and_not_inherited);
	tcase_add_test(tc, connect_says_why_it_failed);
	tcase_add_test(tc, stale_socket_is_replaced);
	tcase_add_test(tc, live_socket_is_refused_and_left_alone);
	tcase_add_test(tc, live_socket_with_a_full_queue_is_refused);
	tcase_add_test(tc, live_socket_of_another_type_is_refused);
	tcase_add_test(tc, regular_file_is_refused_and_left_alone);
	tcase_add_test(tc, folder_and_symbolic_links_are_refused);
	tcase_add_test(tc, bad_paths_are_refused_with_one_line);
	tcase_add_test(tc, longest_path_works);
	tcase_add_test(tc, close_removes_the_file);
	tcase_add_test(tc, close_leaves_the_file_of_a_successor);
	tcase_add_test(tc, repeats_leak_no_fd);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
