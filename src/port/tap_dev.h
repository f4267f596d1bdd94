/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ioctls of a tap interface: open, adopt, settings. Control thread only; keeps no state.
 */
#ifndef PORT_TAP_DEV_H
#define PORT_TAP_DEV_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct tap_dev_request {
	const char *ifname;
	const char *bridge; /* put the interface into this one; "": none */
	uint32_t sndbuf;    /* bytes, 0: the kernel's */
	bool may_create;    /* make a missing interface, and set it up */
	unsigned n_queues;
	/* out */
	char name[IFNAMSIZ];
	bool was_created;
};

/*
 * Open `n_queues` queues of the interface, non-blocking, with a header of FRAME_HDR_LEN.
 * @fds: gets them
 * Return: 0; or a negative errno after one log line that says what to do, with nothing left behind.
 */
int tap_dev_open(struct tap_dev_request *req, int *fds);

/* Return: 0 when tap_dev_open() can have the interface now; else a negative errno, without a word. */
int tap_dev_try(const struct tap_dev_request *req);

/* As tap_dev_open(), for one queue that somebody else has opened; `fd` is the caller's, fds[0] a copy of it. */
int tap_dev_adopt(struct tap_dev_request *req, int fd, int *fds);

/* Return: whether the interface behind `fd` exists. */
bool tap_dev_is_alive(int fd);

/* Return: whether a write can find the tap full: its send buffer is limited. */
bool tap_dev_has_limit(int fd);

/* Return: the TUN_F_ bits for negotiated virtio-net features, in a combination that exists. */
unsigned tap_dev_offloads(uint64_t features);

/* Set them, for the whole device. Return: 0 or a negative errno. */
int tap_dev_set_offloads(int fd, unsigned offloads);

/* Let the kernel steer flows to this queue of a multi-queue tap, or not. Return: 0 or -errno. */
int tap_dev_attach_queue(int fd, bool is_attached);

#endif
