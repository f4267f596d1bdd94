/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network namespace of the test's own, known by a file descriptor only: it goes away with the
 * test and the daemon, whatever happens to them. IPv6 is off in it, so that the kernel sends
 * nothing by itself. Needs root; netns_is_possible() says so.
 */
#ifndef SUPPORT_NETNS_H
#define SUPPORT_NETNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct netns {
	int fd;	     /* -1: none */
	int home_fd; /* where the test itself lives */
};

/* Return: whether namespaces and taps can be made here; else a line has said why not. */
bool netns_is_possible(void);

void netns_open(struct netns *ns);
void netns_close(struct netns *ns);

/* Move the calling thread into the namespace, and back. */
void netns_enter(const struct netns *ns);
void netns_leave(const struct netns *ns);

/* Make a persistent tap, down. @n_queues: more than 1: multi-queue */
void netns_make_tap(const struct netns *ns, const char *name, unsigned n_queues);

/* Make a pair of virtual Ethernet interfaces, down, with `n_queues` each way. `far` is in the
 * namespace `far_ns`. */
void netns_make_veth(const struct netns *ns, const char *name, const struct netns *far_ns,
		     const char *far, unsigned n_queues);

/* Move an interface to another namespace; it is down there. */
void netns_move_link(const struct netns *ns, const char *name, const struct netns *to);

/* Return: the index of an interface; 0: there is none of that name. */
int netns_link_index(const struct netns *ns, const char *name);
bool netns_link_exists(const struct netns *ns, const char *name);
void netns_set_link_up(const struct netns *ns, const char *name, bool is_up);
/* Wait until an interface that is up carries frames: a tap's carrier comes with its first user, and
 * what is sent before the kernel has dealt with that, a little later, is dropped. */
void netns_wait_running(const struct netns *ns, const char *name);

void netns_set_mtu(const struct netns *ns, const char *name, int mtu);
void netns_delete_link(const struct netns *ns, const char *name);

/* Read the address of an interface. */
void netns_get_mac(const struct netns *ns, const char *name, uint8_t mac[6]);

/* Run a shell command (ip, tc) in the namespace; it must succeed. */
void netns_run(const struct netns *ns, const char *command);

/* Open a socket that lives in the namespace. Return: its fd. */
int netns_socket(const struct netns *ns, int domain, int type, int protocol);

/* Open a queue of a tap, which is made if it is missing. @flags: IFF_... besides IFF_TAP. */
int netns_open_tap(const struct netns *ns, const char *name, int flags);

/*
 * Open a non-blocking packet socket on an interface.
 * @has_vnet_hdr: a struct virtio_net_hdr (10 bytes) comes before each frame, both ways
 */
int netns_packet_socket(const struct netns *ns, const char *name, bool has_vnet_hdr);

/* Receive a frame that was not sent by this host itself, waiting up to `ms`. Return: its length (as
 * it was on the wire), or -1. */
ssize_t netns_receive(int sock, void *data, size_t cap, unsigned ms);

#endif
