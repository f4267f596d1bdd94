/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands of the control socket: the text of one request in, the text of its answer out. One
 * table says what each command is called, which arguments it takes and who runs it. Control thread
 * only. Nothing here knows of sockets. A request that is refused has changed nothing.
 */
#ifndef CTL_CMD_H
#define CTL_CMD_H

#include <stddef.h>

struct device;
struct netdev;
struct server;

/* What the commands look at and act on; all borrowed, and outlive the ctl. */
struct ctl_targets {
	struct netdev *netdev;
	struct device *device;
	struct server *server;
	/* Read the configuration again, as for SIGHUP. Return: 0, or -errno with a text in `why`. */
	int (*reload)(void *arg, char *why, size_t why_size);
	void *arg;
};

/*
 * Answer a request.
 * @line: `len` bytes, whatever they are; the newline may be among them
 * Return: the answer, a line without its newline, which the caller frees; NULL without memory.
 */
char *ctl_cmd_answer(const struct ctl_targets *targets, const char *line, size_t len);

/* Return: an answer that says no, as above. @why: for the user, may hold any bytes */
char *ctl_cmd_refusal(const char *why);

#endif
