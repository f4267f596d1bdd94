/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost-user messages as bytes and file descriptors: header, payload and fds in, header and payload
 * out. Nothing about meaning. Control thread only; never blocks: the socket is non-blocking, and a
 * message may arrive one byte at a time or several at once.
 *
 * A message owns the fds that came with it. Whoever takes one puts -1 in its place;
 * wire_msg_close_fds() closes those that nobody took.
 */
#ifndef VHOST_WIRE_H
#define VHOST_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "vhost-user-xdp/vhost_user.h"

struct wire_msg {
	struct vhost_user_header header;
	union vhost_user_payload payload;
	int fds[VHOST_USER_MAX_FDS];
	unsigned n_fds;
};

/* A message on its way in. Zero-initialised is empty. */
struct wire_reader {
	struct wire_msg msg;
	size_t n_read; /* bytes of header and payload that are here */
};

/*
 * Read on. To be called until it returns something else than 1.
 * Return: 1 when `r->msg` holds a whole message, to be handled and then given to
 * wire_reader_next(); 0 when more bytes must come first; -ECONNRESET at end of file; -EPROTO when
 * the version is wrong or the payload is larger than any message's; -EMFILE when more fds came than
 * a message can carry or this process can hold; another negative errno from the socket. After a
 * negative value the stream cannot be read further.
 */
int wire_read(struct wire_reader *r, int sock);

/* Close what is left of the message and make room for the next. Also right in the middle of one. */
void wire_reader_next(struct wire_reader *r);

/* Take the i-th fd out of the message. Return: the fd, now the caller's, or -1 if there is none. */
int wire_msg_take_fd(struct wire_msg *msg, unsigned i);

/* Close the fds that nobody took. */
void wire_msg_close_fds(struct wire_msg *msg);

/*
 * Send a reply: flags are exactly version 1 and the reply bit, whatever was asked.
 * @size: bytes of `payload`, at most its size
 * Return: 0; -EAGAIN when the peer does not read its socket; another negative errno.
 */
int wire_reply(int sock, uint32_t request, const union vhost_user_payload *payload, uint32_t size);

/* Send a request of ours without a payload, on the backend's channel. Return: 0 or a negative errno. */
int wire_request(int sock, uint32_t request);

#endif
