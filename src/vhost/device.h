/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vhost-user device: the table of messages, what is negotiated, and the state of each ring as
 * the frontend has set it up. Control thread only. It owns the memory table, and the kick, call and
 * err fds until a ring takes them; it knows nothing of threads or packets: what touches a running
 * ring goes through `struct device_ops`, whose owner parks the worker around it.
 *
 * States of a ring (vhost-user, "Ring states"):
 *
 *      NUM, ADDR, BASE in any order          KICK (fd or no-fd bit)
 *    stopped ------------------------> set up ----------------------> started
 *       ^                                                              |
 *       +------------- GET_VRING_BASE, RESET_DEVICE, disconnect -------+
 *
 * Enabled is a second, independent bit: ENABLE sets and clears it; without the protocol features
 * a ring is enabled from its start.
 */
#ifndef VHOST_DEVICE_H
#define VHOST_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/gmem.h"
#include "vhost/config_space.h"
#include "vhost/wire.h"

struct device;

/* A ring that is to be started, as the frontend described it. Sizes and base are checked. */
struct device_ring {
	uint32_t size;		 /* entries: 2..32768, a power of two; 1..32768 with RING_PACKED */
	uva_t desc, avail, used; /* where the frontend sees its parts */
	uint32_t base;		 /* SET_VRING_BASE */
	struct gmem *mem;	 /* borrowed */
	uint64_t features;	 /* negotiated */
};

/* What the owner of the rings does for the device. `ring` is an index, 0..2 * n_pairs. */
struct device_ops {
	/*
	 * Start a stopped ring, or translate the addresses of a running one again.
	 * Return: 0, or a negative errno: the message is refused, and a running ring stops.
	 */
	int (*ring_start)(void *arg, unsigned ring, const struct device_ring *r);
	/*
	 * Stop a ring: what is pending is signalled, nothing touches its memory after the return.
	 * Also asked of one that has just stopped because it could not be translated again.
	 * Return: the base to resume from, heads that reached the used ring counted only, as
	 * GET_VRING_BASE puts it.
	 */
	uint32_t (*ring_stop)(void *arg, unsigned ring);
	/* The frontend knows where a stopped ring stands, or wants it to begin anew. */
	void (*ring_forget)(void *arg, unsigned ring);
	void (*ring_enable)(void *arg, unsigned ring, bool is_enabled);
	/*
	 * Hand a new eventfd to the ring, started or not, which owns it from then on; -1: none.
	 * A pending call goes to the new call fd; the old one is closed.
	 * Return: 0, or a negative errno when a kick fd cannot be waited for (it is closed).
	 */
	int (*ring_kick_fd)(void *arg, unsigned ring, int fd);
	void (*ring_call_fd)(void *arg, unsigned ring, int fd);
	void (*ring_err_fd)(void *arg, unsigned ring, int fd);
	/* The negotiated features changed; 0 when the frontend is gone. Return: 0 or -errno. */
	int (*features)(void *arg, uint64_t features);
};

/* What device_handle() wants sent, and done. */
struct device_reply {
	bool send;
	union vhost_user_payload payload;
	uint32_t size;
};

/* Return: a device without a frontend, or NULL without memory. */
struct device *device_new(const struct device_config *cfg, const struct device_ops *ops, void *arg);

/* Forget the frontend if there is one, and free the device. NULL is accepted. */
void device_free(struct device *d);

/*
 * Handle one whole message; its fds are taken from it, or left for the caller to close.
 * @reply: what to send back, if anything
 * Return: 0; or a negative errno when the connection must end (a log line has said why).
 */
int device_handle(struct device *d, struct wire_msg *msg, struct device_reply *reply);

/* The reply of the last device_handle() has been sent. */
void device_replied(struct device *d);

/*
 * The port's link has changed. A frontend that reads the configuration space from here is told, if
 * it has given us a channel for that; others decide the link's state themselves.
 */
void device_set_link(struct device *d, bool is_up);

/* The frontend has gone: stop every ring, let go of memory, fds and features. */
void device_disconnect(struct device *d);

/* Return: the virtio feature bits that are negotiated; 0 without a frontend. */
uint64_t device_features(const struct device *d);

/* Return: the virtio feature bits on offer, protocol features bit included. */
uint64_t device_features_offered(const struct device *d);

/* Return: the protocol feature bits that are negotiated. */
uint64_t device_protocol_features(const struct device *d);

#endif
