/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/fds.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Only there under a sanitizer, whose reports must not vanish in a captured log. */
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

static void send_reports_to(int fd)
{
	if (__sanitizer_set_report_fd)
		__sanitizer_set_report_fd((void *)(intptr_t)fd);
}

unsigned fds_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n - 1; /* without the folder's own */
}

bool fds_is_cloexec(int fd)
{
	return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

bool fds_is_nonblocking(int fd)
{
	return fcntl(fd, F_GETFL) & O_NONBLOCK;
}

void log_capture_start(struct log_capture *c)
{
	c->saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	c->file = memfd_create("log", MFD_CLOEXEC);
	ck_assert_int_ge(c->saved_stderr, 0);
	ck_assert_int_ge(c->file, 0);
	ck_assert_int_eq(dup2(c->file, STDERR_FILENO), STDERR_FILENO);
	send_reports_to(c->saved_stderr);
	c->is_running = true;
}

unsigned log_capture_count(const struct log_capture *c, const char *text)
{
	unsigned n = 0;
	struct stat st;
	char *log;

	ck_assert_int_eq(fstat(c->file, &st), 0);
	log = calloc(1, (size_t)st.st_size + 1);
	ck_assert_ptr_nonnull(log);
	ck_assert_int_eq(pread(c->file, log, (size_t)st.st_size, 0), st.st_size);
	for (const char *hit = strstr(log, text); hit; hit = strstr(hit + 1, text))
		n++;
	free(log);
	return n;
}

void log_capture_stop(struct log_capture *c)
{
	if (!c->is_running)
		return;
	dup2(c->saved_stderr, STDERR_FILENO);
	send_reports_to(STDERR_FILENO);
	close(c->saved_stderr);
	close(c->file);
	c->is_running = false;
}
