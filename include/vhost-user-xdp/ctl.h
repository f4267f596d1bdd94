/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control protocol: one JSON object per line in each direction, over a unix stream socket.
 *
 *   -> {"cmd":NAME,"args":{...}}
 *   <- {"ok":true,"data":...}  or  {"ok":false,"error":TEXT}
 *
 * `args` may be left out. Requests on one connection are answered in order.
 */
#ifndef VHOST_USER_XDP_CTL_H
#define VHOST_USER_XDP_CTL_H

/* Longest line of a request, bytes with its newline. A longer one ends the connection. */
#define CTL_MAX_LINE 65536

#define CTL_CMD_STATUS   "status"
#define CTL_CMD_STATS    "stats"
#define CTL_CMD_COALESCE "coalesce"
#define CTL_CMD_RINGS    "rings"
#define CTL_CMD_RELOAD   "reload"

#endif
