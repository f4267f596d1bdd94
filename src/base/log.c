/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

static const struct {
	const char *name;
	int syslog_priority;
} levels[] = {
	[LOG_LEVEL_ERROR] = {"error", 3},
	[LOG_LEVEL_WARN] = {"warn", 4},
	[LOG_LEVEL_INFO] = {"info", 6},
	[LOG_LEVEL_DEBUG] = {"debug", 7},
};

static int max_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
	__atomic_store_n(&max_level, (int)level, __ATOMIC_RELAXED);
}

int log_level_parse(const char *name)
{
	for (size_t i = 0; i < array_size(levels); i++)
		if (strcmp(levels[i].name, name) == 0)
			return (int)i;
	return -EINVAL;
}

const char *log_level_name(enum log_level level)
{
	return levels[level].name;
}

static bool can_write(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLOUT);
}

LOG_PRINTF(3, 0) static void log_line(enum log_level level, int err, const char *fmt, va_list args)
{
	char line[1024];
	size_t len = 0;

	if ((int)level > __atomic_load_n(&max_level, __ATOMIC_RELAXED))
		return;
	/* systemd sets JOURNAL_STREAM and reads the priority from the front of the line. */
	if (getenv("JOURNAL_STREAM"))
		len = (size_t)snprintf(line, sizeof(line), "<%d>", levels[level].syslog_priority);
	len += (size_t)snprintf(line + len, sizeof(line) - len, "%s: ", levels[level].name);

	int body = vsnprintf(line + len, sizeof(line) - len, fmt, args);

	if (body > 0)
		len = min_of(len + (size_t)body, sizeof(line) - 2);
	if (err != 0) {
		char text[128];
		int tail = snprintf(line + len, sizeof(line) - len, ": %s",
				    strerror_r(abs(err), text, sizeof(text)));

		if (tail > 0)
			len = min_of(len + (size_t)tail, sizeof(line) - 2);
	}
	/* Names and values of others are in it: it stays one line whatever they are. */
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n';
	/* One write keeps lines of several threads apart; a lost log line has nobody to tell, and a
	 * reader that has stopped to read must not stop us. */
	ssize_t ignored = can_write(STDERR_FILENO) ? write(STDERR_FILENO, line, len) : 0;

	(void)ignored;
}

#define DEFINE_LOG_ERRNO(name, level)                                                              \
	void name(int err, const char *fmt, ...)                                                   \
	{                                                                                          \
		va_list args;                                                                      \
                                                                                                   \
		va_start(args, fmt);                                                               \
		log_line(level, err, fmt, args);                                                   \
		va_end(args);                                                                      \
	}

#define DEFINE_LOG(name, level)                                                                    \
	void name(const char *fmt, ...)                                                            \
	{                                                                                          \
		va_list args;                                                                      \
                                                                                                   \
		va_start(args, fmt);                                                               \
		log_line(level, 0, fmt, args);                                                     \
		va_end(args);                                                                      \
	}

DEFINE_LOG_ERRNO(log_err, LOG_LEVEL_ERROR)
DEFINE_LOG_ERRNO(log_warn, LOG_LEVEL_WARN)
DEFINE_LOG(log_errx, LOG_LEVEL_ERROR)
DEFINE_LOG(log_warnx, LOG_LEVEL_WARN)
DEFINE_LOG(log_info, LOG_LEVEL_INFO)
DEFINE_LOG(log_debug, LOG_LEVEL_DEBUG)
