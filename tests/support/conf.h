/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file in memory for what reads one by its path, and the one line that must be logged when
 * something is refused.
 */
#ifndef SUPPORT_CONF_H
#define SUPPORT_CONF_H

#include "support/fds.h"

struct conf_file {
	int fd;	       /* -1: none */
	char path[64]; /* valid until it is closed or written again */
};

/* Make `text` the content; accepts a file that holds something. */
void conf_write(struct conf_file *f, const char *text);

/* Accepts a file that was never written. */
void conf_close(struct conf_file *f);

/* Nothing was logged. */
void log_assert_none(const struct log_capture *c);

/* One line was logged, and all of the words, up to a NULL, are in it; then count anew. */
void log_assert_one(struct log_capture *c, const char *const *words);

/* The same with one word. */
void log_assert_one_with(struct log_capture *c, const char *word);

#endif
