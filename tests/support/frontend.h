/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frontend's side of vhost-user: connects or listens, sends every request, well-formed or not,
 * and judges what comes back. Independent of the daemon's sources; it shares the constants and
 * layouts of vhost_user.h with it, and nothing else.
 *
 * With `wants_acks`, and REPLY_ACK negotiated, every request that has no reply of its own asks for
 * an ack. Functions without a return value make the test fail when something else than success
 * comes; the frontend_ack_ forms return the ack.
 */
#ifndef SUPPORT_FRONTEND_H
#define SUPPORT_FRONTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/guest.h"
#include "vhost-user-xdp/vhost_user.h"

struct frontend {
	int sock; /* -1: closed */
	bool wants_acks;
	uint64_t features;	    /* as acknowledged */
	uint64_t protocol_features; /* as acknowledged */
};

struct frontend_reply {
	struct vhost_user_header header;
	union vhost_user_payload payload;
};

enum frontend_event { FRONTEND_REPLY, FRONTEND_CLOSED, FRONTEND_SILENCE };

/* ---- the socket ---- */

/* Connect to a listening backend. Return: 0, or -errno. */
int frontend_try_connect(struct frontend *f, const char *path);
void frontend_connect(struct frontend *f, const char *path);

/* Take over a connected socket. */
void frontend_attach(struct frontend *f, int sock);

/* Return: a socket that listens at `path`, for a backend that is the client. */
int frontend_listen(const char *path);

/* Take the next connection, which must come within `ms`. */
void frontend_accept(struct frontend *f, int listener, unsigned ms);

void frontend_close(struct frontend *f);

/* ---- bytes and messages ---- */

/* Send bytes, with fds attached to the first. Return: false when the backend has hung up. */
bool frontend_send_bytes(struct frontend *f, const void *bytes, size_t len, const int *fds,
			 unsigned n_fds);

/* Send one message with these flags. Return: as above. */
bool frontend_send(struct frontend *f, uint32_t request, uint32_t flags, const void *payload,
		   uint32_t size, const int *fds, unsigned n_fds);

/* Wait for a whole reply, for the end of the connection, or for the time to pass. */
enum frontend_event frontend_wait(struct frontend *f, struct frontend_reply *reply, unsigned ms);

/* Take the reply to `request`; flags must be exactly version 1 and reply. */
void frontend_expect_reply(struct frontend *f, uint32_t request, struct frontend_reply *reply);

/* The backend closes the connection within 1 s, and sends nothing before. */
void frontend_expect_closed(struct frontend *f);

/* Nothing comes for WAIT_QUIET_MS, and the connection stays. */
void frontend_expect_silence(struct frontend *f);

/* ---- requests in general ---- */

/* Send a request that has no reply of its own; with `wants_acks` the ack must be 0. */
void frontend_do(struct frontend *f, uint32_t request, const void *payload, uint32_t size,
		 const int *fds, unsigned n_fds);
void frontend_do_u64(struct frontend *f, uint32_t request, uint64_t value);

/* Send a request that asks for an ack. Return: the ack, the only reply. */
uint64_t frontend_ack(struct frontend *f, uint32_t request, const void *payload, uint32_t size,
		      const int *fds, unsigned n_fds);
uint64_t frontend_ack_u64(struct frontend *f, uint32_t request, uint64_t value);

/* Send a request without payload. Return: the number in its reply. */
uint64_t frontend_ask_u64(struct frontend *f, uint32_t request);

/* Wait until the backend has handled what was sent so far. */
void frontend_sync(struct frontend *f);

/* ---- each request ---- */

void frontend_set_features(struct frontend *f, uint64_t features);
void frontend_set_protocol_features(struct frontend *f, uint64_t features);
void frontend_set_mem_table(struct frontend *f, const struct guest *g);
uint64_t frontend_ack_mem_table(struct frontend *f, const struct vhost_user_mem_table *table,
				const int *fds, unsigned n_fds);
void frontend_set_vring_num(struct frontend *f, unsigned ring, uint32_t num);
void frontend_set_vring_addr(struct frontend *f, const struct vhost_user_vring_addr *addr);
void frontend_set_vring_base(struct frontend *f, unsigned ring, uint32_t base);
uint32_t frontend_get_vring_base(struct frontend *f, unsigned ring);
/* SET_VRING_KICK, _CALL or _ERR. @fd: -1: with the no-fd bit */
void frontend_set_vring_fd(struct frontend *f, uint32_t request, unsigned ring, int fd);
void frontend_set_vring_enable(struct frontend *f, unsigned ring, bool is_enabled);
/* GET_CONFIG: read a part of the configuration space. Return: whether the backend has it. */
bool frontend_get_config(struct frontend *f, uint32_t offset, uint32_t size, void *dst);
uint64_t frontend_ack_config(struct frontend *f, uint32_t offset, uint32_t size, uint32_t flags,
			     const void *src);

/*
 * Owner, features and protocol features.
 * @features: wanted; what is not offered is left out
 * @protocol_features: likewise; 0: the bit for them is not acknowledged either
 */
void frontend_negotiate(struct frontend *f, uint64_t features, uint64_t protocol_features);

#endif
