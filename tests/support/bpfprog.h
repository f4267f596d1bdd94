/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BPF programs on interfaces: those of somebody else than the daemon, and what can be seen of its
 * own from outside.
 */
#ifndef SUPPORT_BPFPROG_H
#define SUPPORT_BPFPROG_H

#include <stdbool.h>
#include <stdint.h>

#include "support/netns.h"

/* Return: the id of the XDP program on an interface, in whatever mode; 0: none, or no interface. */
uint32_t bpfprog_find(const struct netns *ns, const char *ifname);

/*
 * Put an XDP program named "foreign" on an interface, which passes everything.
 * @is_link: it stays as long as the fd that is returned is open; else until bpfprog_detach()
 * Return: a fd to be closed.
 */
int bpfprog_attach_foreign(const struct netns *ns, const char *ifname, bool is_link);

/* Take off what was attached without a link. */
void bpfprog_detach(const struct netns *ns, const char *ifname);

/*
 * Have the frames that leave by an interface follow their socket's options: SO_PRIORITY is the
 * number of the queue plus 1 (0: the kernel chooses), SO_MARK the VLAN tag that goes along outside
 * of the frame (0: none), as a VLAN device gives it to its interface.
 */
void bpfprog_follow_socket(const struct netns *ns, const char *ifname);

#endif
