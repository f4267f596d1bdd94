/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of the control socket, for vhost-user-ctl: connect, ask, wait for the answer, for
 * as long as CTL_CLIENT_TIMEOUT_SEC and no longer. One thread, blocks.
 */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include <jansson.h>
#include <stddef.h>

#define CTL_CLIENT_TIMEOUT_SEC 5

/* Why something failed, for the user: the rest of a line that begins with the socket's path. */
#define CTL_CLIENT_WHY_SIZE 512

struct ctl_client {
	int fd; /* -1: none */
	char why[CTL_CLIENT_WHY_SIZE];
};

/* Return: 0; or a negative errno with `why`, and nothing to close. */
int ctl_client_open(struct ctl_client *c, const char *path);

/*
 * Send a request and wait for its answer.
 * @args: of the command; NULL: none
 * @data: the answer's, a reference for the caller
 * Return: 0; or a negative errno with `why`: -EREMOTEIO the daemon says no, -ETIMEDOUT it says
 * nothing, -EPROTO it says something else, others from the system.
 */
int ctl_client_ask(struct ctl_client *c, const char *cmd, json_t *args, json_t **data);

/* Accepts a closed one. */
void ctl_client_close(struct ctl_client *c);

#endif
