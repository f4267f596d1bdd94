/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a test needs to know of its own process: are fds leaked, what has been logged?
 */
#ifndef SUPPORT_FDS_H
#define SUPPORT_FDS_H

#include <stdbool.h>

/* Return: the number of fds that this process has open. */
unsigned fds_count(void);

/* Return: whether fd has the close-on-exec, and the non-blocking flag. */
bool fds_is_cloexec(int fd);
bool fds_is_nonblocking(int fd);

/* stderr goes to a file in memory between start and stop. Zero-initialised is stopped. */
struct log_capture {
	int saved_stderr;
	int file;
	bool is_running;
};

void log_capture_start(struct log_capture *c);

/* Return: how many times `text` has been logged since the start. */
unsigned log_capture_count(const struct log_capture *c, const char *text);

/* Give stderr back; what was captured is gone. */
void log_capture_stop(struct log_capture *c);

#endif
