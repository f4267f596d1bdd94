/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines for the person who must act: what, where, what to do. To stderr, one write per line,
 * with the syslog priority in front when stderr is the journal. Any thread may log; nothing on the
 * fast path does. A line begins with the object it speaks of: "q1.tx: ...".
 *
 * The `_err` and `_warn` forms take a (positive or negative) errno value and append its text; the
 * `x` forms do not.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#define LOG_PRINTF(f, a) __attribute__((format(printf, f, a)))

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Set the highest level that is printed. Any thread; takes effect at once. */
void log_set_level(enum log_level level);

/*
 * Parse the name of a level ("error", "warn", "info", "debug").
 * Return: the level, or -EINVAL.
 */
int log_level_parse(const char *name);

/* Return: the name of `level`, as log_level_parse() takes it. */
const char *log_level_name(enum log_level level);

void log_err(int err, const char *fmt, ...) LOG_PRINTF(2, 3);
void log_errx(const char *fmt, ...) LOG_PRINTF(1, 2);
void log_warn(int err, const char *fmt, ...) LOG_PRINTF(2, 3);
void log_warnx(const char *fmt, ...) LOG_PRINTF(1, 2);
void log_info(const char *fmt, ...) LOG_PRINTF(1, 2);
void log_debug(const char *fmt, ...) LOG_PRINTF(1, 2);

#endif
