/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/conf.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void conf_write(struct conf_file *f, const char *text)
{
	size_t len = strlen(text);

	conf_close(f);
	f->fd = memfd_create("conf", MFD_CLOEXEC);
	ck_assert_int_ge(f->fd, 0);
	ck_assert_int_eq(write(f->fd, text, len), (ssize_t)len);
	snprintf(f->path, sizeof(f->path), "/proc/self/fd/%d", f->fd);
}

void conf_close(struct conf_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

void log_assert_none(const struct log_capture *c)
{
	ck_assert_uint_eq(log_capture_count(c, "\n"), 0);
}

void log_assert_one(struct log_capture *c, const char *const *words)
{
	ck_assert_uint_eq(log_capture_count(c, "\n"), 1);
	for (; *words; words++)
		ck_assert_msg(log_capture_count(c, *words) > 0, "not in the line: %s", *words);
	log_capture_stop(c);
	log_capture_start(c);
}

void log_assert_one_with(struct log_capture *c, const char *word)
{
	const char *words[] = {word, NULL};

	log_assert_one(c, words);
}
