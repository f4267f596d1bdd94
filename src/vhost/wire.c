/* SPDX-License-Identifier: BSD-2-Clause */
#include "vhost/wire.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

/* The largest message's; the union is padded beyond it. */
#define MAX_PAYLOAD sizeof(((union vhost_user_payload *)0)->bytes)

/* Room for the control message of one recvmsg(), aligned as the kernel writes it. */
union fd_buffer {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * VHOST_USER_MAX_FDS)];
};

int wire_msg_take_fd(struct wire_msg *msg, unsigned i)
{
	int fd = -1;

	if (i < msg->n_fds) {
		fd = msg->fds[i];
		msg->fds[i] = -1;
	}
	return fd;
}

void wire_msg_close_fds(struct wire_msg *msg)
{
	for (unsigned i = 0; i < msg->n_fds; i++) {
		int fd = wire_msg_take_fd(msg, i);

		if (fd >= 0)
			close(fd);
	}
	msg->n_fds = 0;
}

void wire_reader_next(struct wire_reader *r)
{
	wire_msg_close_fds(&r->msg);
	memset(r, 0, sizeof(*r));
}

/* Give an fd to the message, or close it. Return: 0, or -EMFILE when the message is full. */
static int keep_fd(struct wire_msg *msg, int fd)
{
	if (msg->n_fds == VHOST_USER_MAX_FDS) {
		close(fd);
		return -EMFILE;
	}
	msg->fds[msg->n_fds++] = fd;
	return 0;
}

/* Take over every fd that came with these bytes, also those that are too many. */
static int keep_fds(struct wire_msg *msg, struct msghdr *hdr)
{
	int err = (hdr->msg_flags & MSG_CTRUNC) ? -EMFILE : 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(hdr); c; c = CMSG_NXTHDR(hdr, c)) {
		size_t len = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t off = 0; off + sizeof(int) <= len; off += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + off, sizeof(fd));
			if (keep_fd(msg, fd) < 0)
				err = -EMFILE;
		}
	}
	return err;
}

/*
 * Receive up to `len` > 0 bytes of the message, and the fds that come with them.
 * Return: bytes received, or a negative errno; -EAGAIN when there are none now.
 */
static ssize_t receive(struct wire_msg *msg, int sock, void *dst, size_t len)
{
	union fd_buffer control;
	struct iovec iov = {.iov_base = dst, .iov_len = len};
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;
	int err;

	do {
		n = recvmsg(sock, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	err = keep_fds(msg, &hdr);
	if (err < 0)
		return err;
	return n > 0 ? n : -ECONNRESET;
}

static int check_header(const struct vhost_user_header *header)
{
	if ((header->flags & VHOST_USER_VERSION_MASK) != VHOST_USER_VERSION)
		return -EPROTO;
	return header->size > MAX_PAYLOAD ? -EPROTO : 0;
}

/* Where the next byte goes, and how many make the current part whole. 0: the message is. */
static size_t next_part(struct wire_reader *r, void **dst)
{
	size_t n_header = sizeof(r->msg.header);

	if (r->n_read < n_header) {
		*dst = (char *)&r->msg.header + r->n_read;
		return n_header - r->n_read;
	}
	*dst = r->msg.payload.bytes + (r->n_read - n_header);
	return n_header + r->msg.header.size - r->n_read;
}

/*
 * The header is read alone first: its size says how far the message goes, and never a byte more is
 * read, so that the fds of the next message stay with the next message.
 */
static int read_on(struct wire_reader *r, int sock)
{
	size_t missing;
	void *dst;

	while ((missing = next_part(r, &dst)) > 0) {
		ssize_t n = receive(&r->msg, sock, dst, missing);
		int err;

		if (n < 0)
			return n == -EAGAIN ? 0 : (int)n;
		r->n_read += (size_t)n;
		if (r->n_read != sizeof(r->msg.header))
			continue;
		err = check_header(&r->msg.header);
		if (err < 0)
			return err;
	}
	return 1;
}

int wire_read(struct wire_reader *r, int sock)
{
	int ret = read_on(r, sock);

	if (ret < 0)
		wire_msg_close_fds(&r->msg);
	return ret;
}

/* Send one message. Return: 0 or a negative errno. */
static int send_message(int sock, const struct vhost_user_header *header, const void *payload)
{
	char bytes[sizeof(*header) + MAX_PAYLOAD];
	size_t len = sizeof(*header) + header->size;
	ssize_t n;

	assert(header->size <= MAX_PAYLOAD);
	memcpy(bytes, header, sizeof(*header));
	memcpy(bytes + sizeof(*header), payload, header->size);
	do {
		n = send(sock, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* The rest of a cut message would have to wait for a peer that is not reading. */
	return (size_t)n == len ? 0 : -EAGAIN;
}

int wire_reply(int sock, uint32_t request, const union vhost_user_payload *payload, uint32_t size)
{
	const struct vhost_user_header header = {
		.request = request,
		.flags = VHOST_USER_VERSION | VHOST_USER_REPLY,
		.size = size,
	};

	return send_message(sock, &header, payload);
}

int wire_request(int sock, uint32_t request)
{
	const struct vhost_user_header header = {.request = request, .flags = VHOST_USER_VERSION};

	return send_message(sock, &header, "");
}
