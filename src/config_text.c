/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"

/* No configuration is that long; a device file would never end. */
#define MAX_TEXT (1024 * 1024)
/* Deeper sections exist in no schema; libConfuse refuses them. */
#define MAX_DEPTH 8

struct scan {
	const char *file;
	char *p; /* the next character */
	int line;
	int depth;		  /* open braces */
	int open_line[MAX_DEPTH]; /* where each of them is */
};

static int scan_refuse(const struct scan *s, int line, const char *why)
{
	log_errx("%s:%d: %s", s->file, line, why);
	return -EINVAL;
}

static void scan_blank_line(struct scan *s)
{
	for (; *s->p && *s->p != '\n'; s->p++)
		*s->p = ' ';
}

static int scan_blank_block(struct scan *s)
{
	int start = s->line;
	char *end = strstr(s->p + 2, "*/");

	if (!end)
		return scan_refuse(s, start, "comment is not closed: add */");
	for (; s->p < end + 2; s->p++) {
		if (*s->p == '\n')
			s->line++;
		else
			*s->p = ' ';
	}
	return 0;
}

/* "${NAME}" or "${NAME:-text}", which libConfuse replaces from the environment. */
static int scan_variable(struct scan *s)
{
	size_t len = strcspn(s->p, "}\n");

	if (s->p[len] != '}')
		return scan_refuse(s, s->line, "'${' is not closed: add }");
	s->p += len + 1;
	return 0;
}

/* Step over a backslash and what it stands before. */
static int scan_escape(struct scan *s, char quote)
{
	if (quote == '"' && s->p[1] >= '0' && s->p[1] <= '9')
		return scan_refuse(s, s->line, "no value needs a backslash with digits: remove it");
	if (s->p[1] == '\n')
		s->line++;
	s->p += s->p[1] ? 2 : 1;
	return 0;
}

static int scan_string(struct scan *s)
{
	int start = s->line, err = 0;
	char quote = *s->p++;

	while (*s->p != quote && !err) {
		if (*s->p == '\0')
			return scan_refuse(s, start, "string is not closed: add a quote");
		if (*s->p == '\\') {
			err = scan_escape(s, quote);
		} else if (quote == '"' && s->p[0] == '$' && s->p[1] == '{') {
			err = scan_variable(s);
		} else {
			if (*s->p == '\n')
				s->line++;
			s->p++;
		}
	}
	s->p++;
	return err;
}

static void scan_brace(struct scan *s)
{
	if (*s->p == '{') {
		if (s->depth < MAX_DEPTH)
			s->open_line[s->depth] = s->line;
		s->depth++;
	} else if (s->depth > 0) {
		s->depth--;
	}
	s->p++;
}

/* Step over an unquoted word: a key, a number, a name. */
static int scan_word(struct scan *s)
{
	char *start = s->p;

	while ((unsigned char)*s->p > ' ' && *s->p != 0x7f && !strchr("#\"'={}()+,*", *s->p) &&
	       !(s->p[0] == '/' && s->p[1] == '*'))
		s->p++;
	if (s->p == start)
		return scan_refuse(s, s->line, "unexpected character: write KEY = VALUE");
	return 0;
}

static int scan_one(struct scan *s)
{
	switch (*s->p) {
	case '\n':
		s->line++;
		s->p++;
		return 0;
	case ' ':
	case '\t':
	case '\r':
	case '=':
	case '(':
	case ')':
	case ',':
		s->p++;
		return 0;
	case '#':
		scan_blank_line(s);
		return 0;
	case '"':
	case '\'':
		return scan_string(s);
	case '{':
	case '}':
		scan_brace(s);
		return 0;
	default:
		break;
	}
	if (strncmp(s->p, "//", 2) == 0) {
		scan_blank_line(s);
		return 0;
	}
	if (strncmp(s->p, "/*", 2) == 0)
		return scan_blank_block(s);
	if (strncmp(s->p, "${", 2) == 0)
		return scan_variable(s);
	return scan_word(s);
}

static int text_clean(char *text, size_t len, const char *file)
{
	struct scan s = {.file = file, .p = text, .line = 1};
	int err = 0;

	while (*s.p && !err)
		err = scan_one(&s);
	if (err)
		return err;
	if (s.p != text + len)
		return scan_refuse(&s, s.line, "zero byte: this is not a text file");
	if (s.depth > 0)
		return scan_refuse(&s, s.open_line[min_of(s.depth, MAX_DEPTH) - 1],
				   "section is not closed: add }");
	return 0;
}

/* Return: the number of bytes read, at most MAX_TEXT + 1; or -errno. */
static ssize_t text_read_all(int fd, char *text)
{
	size_t len = 0;

	while (len <= MAX_TEXT) {
		ssize_t n = read(fd, text + len, MAX_TEXT + 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

/* Return: the fd, or a negative errno after a log line. */
static int text_open(const char *file)
{
	struct stat st;
	/* A pipe could block us; and at a reload there would be nothing left to read in it. */
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		int err = -errno;

		log_err(err, "%s: cannot read the configuration, check --config", file);
		return err;
	}
	if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)))
		return fd;
	log_errx("%s: is no regular file: give one that can be read again to --config", file);
	close(fd);
	return -EINVAL;
}

int config_text_read(char **text, const char *file)
{
	int fd = text_open(file);

	if (fd < 0)
		return fd;

	char *buf = malloc(MAX_TEXT + 2);
	ssize_t len = buf ? text_read_all(fd, buf) : -ENOMEM;

	close(fd);
	if (len < 0) {
		log_err((int)len, "%s: cannot read the configuration", file);
	} else if (len > MAX_TEXT) {
		log_errx("%s: is larger than %d bytes: no configuration is", file, MAX_TEXT);
		len = -EFBIG;
	} else {
		buf[len] = '\0';
		len = text_clean(buf, (size_t)len, file);
	}
	if (len < 0) {
		free(buf);
		return (int)len;
	}
	*text = buf;
	return 0;
}
