/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket: a JSON line in, a JSON line out (include/vhost-user-xdp/ctl.h). Control
 * thread only, never blocks: a client that sends half a line, or does not read, holds up nobody,
 * and one whose answers pile up is closed. Owns its socket, its clients and their watches.
 */
#ifndef CTL_H
#define CTL_H

#include "ctl_cmd.h"

struct ctl;
struct ev_loop;

/*
 * Listen on `path`, mode 0600.
 * Return: 0; or a negative errno after one log line.
 */
int ctl_open(struct ctl **out, struct ev_loop *loop, const char *path,
	     const struct ctl_targets *targets);

/* Close every client and the socket; removes its file. NULL is accepted. */
void ctl_close(struct ctl *c);

#endif
