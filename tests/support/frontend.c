/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/frontend.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/wait.h"

#define MAX_SENT_FDS 32
#define CLOSE_MS     1000

/* ---- the socket ---- */

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	expect_lt(strlen(path), sizeof(addr.sun_path));
	memcpy(addr.sun_path, path, strlen(path) + 1);
	return addr;
}

void frontend_attach(struct frontend *f, int sock)
{
	*f = (struct frontend){.sock = sock};
}

int frontend_try_connect(struct frontend *f, const char *path)
{
	struct sockaddr_un addr = address_of(path);
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	expect_ge(sock, 0);
	if (connect(sock, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		int err = -errno;

		close(sock);
		f->sock = -1;
		return err;
	}
	frontend_attach(f, sock);
	return 0;
}

void frontend_connect(struct frontend *f, const char *path)
{
	int err = frontend_try_connect(f, path);

	expect_msg(err == 0, "connect to %s: %s", path, strerror(-err));
}

int frontend_listen(const char *path)
{
	struct sockaddr_un addr = address_of(path);
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	expect_ge(sock, 0);
	unlink(path);
	expect_eq(bind(sock, (struct sockaddr *)&addr, sizeof(addr)), 0);
	expect_eq(listen(sock, 4), 0);
	return sock;
}

void frontend_accept(struct frontend *f, int listener, unsigned ms)
{
	expect_msg(wait_readable(listener, ms), "the backend does not connect");
	frontend_attach(f, accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	expect_ge(f->sock, 0);
}

void frontend_close(struct frontend *f)
{
	if (f->sock >= 0)
		close(f->sock);
	f->sock = -1;
}

/* ---- bytes and messages ---- */

static void attach_fds(struct msghdr *msg, char *control, const int *fds, unsigned n_fds)
{
	struct cmsghdr *c;

	expect_le(n_fds, MAX_SENT_FDS);
	msg->msg_control = control;
	msg->msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
}

bool frontend_send_bytes(struct frontend *f, const void *bytes, size_t len, const int *fds,
			 unsigned n_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MAX_SENT_FDS * sizeof(int))] = {0};
	struct iovec iov = {.iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	memcpy(&iov.iov_base, &bytes, sizeof(bytes));
	if (n_fds > 0)
		attach_fds(&msg, control, fds, n_fds);
	while (iov.iov_len > 0) {
		ssize_t n = sendmsg(f->sock, &msg, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return false;
		expect_msg(n > 0, "sendmsg: %s", strerror(errno));
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		msg.msg_controllen = 0;
	}
	return true;
}

bool frontend_send(struct frontend *f, uint32_t request, uint32_t flags, const void *payload,
		   uint32_t size, const int *fds, unsigned n_fds)
{
	struct vhost_user_header header = {.request = request, .flags = flags, .size = size};
	char bytes[sizeof(header) + 1024];

	expect_le(size, sizeof(bytes) - sizeof(header));
	memcpy(bytes, &header, sizeof(header));
	if (size > 0)
		memcpy(bytes + sizeof(header), payload, size);
	return frontend_send_bytes(f, bytes, sizeof(header) + size, fds, n_fds);
}

/* Read exactly `len` bytes. Return: 1; 0 at the end of the stream; -1 when the time is over. */
static int read_exactly(struct frontend *f, void *dst, size_t len, unsigned ms)
{
	for (size_t at = 0; at < len;) {
		if (!wait_readable(f->sock, ms))
			return -1;

		ssize_t n = recv(f->sock, (char *)dst + at, len - at, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return 0;
		if (n > 0)
			at += (size_t)n;
	}
	return 1;
}

enum frontend_event frontend_wait(struct frontend *f, struct frontend_reply *reply, unsigned ms)
{
	int ret = read_exactly(f, &reply->header, sizeof(reply->header), ms);

	if (ret <= 0)
		return ret == 0 ? FRONTEND_CLOSED : FRONTEND_SILENCE;
	expect_le(reply->header.size, sizeof(reply->payload));
	if (reply->header.size > 0)
		expect_eq(read_exactly(f, &reply->payload, reply->header.size, WAIT_LONG_MS), 1);
	return FRONTEND_REPLY;
}

void frontend_expect_reply(struct frontend *f, uint32_t request, struct frontend_reply *reply)
{
	enum frontend_event event = frontend_wait(f, reply, WAIT_LONG_MS);

	expect_msg(event == FRONTEND_REPLY, "request %u: %s instead of a reply", request,
		   event == FRONTEND_CLOSED ? "the connection was closed" : "silence");
	expect_eq(reply->header.request, request);
	expect_eq(reply->header.flags, VHOST_USER_VERSION | VHOST_USER_REPLY);
}

void frontend_expect_closed(struct frontend *f)
{
	struct frontend_reply reply;
	enum frontend_event event = frontend_wait(f, &reply, CLOSE_MS);

	expect_msg(event == FRONTEND_CLOSED, "the connection stays; %s",
		   event == FRONTEND_REPLY ? "a reply came" : "no reply came");
}

void frontend_expect_silence(struct frontend *f)
{
	expect_msg(!wait_readable(f->sock, WAIT_QUIET_MS), "a reply, or the end, came unasked");
}

/* ---- requests in general ---- */

static bool acks_are_on(const struct frontend *f)
{
	return f->wants_acks && (f->protocol_features & (1ULL << VHOST_USER_PROTOCOL_F_REPLY_ACK));
}

uint64_t frontend_ack(struct frontend *f, uint32_t request, const void *payload, uint32_t size,
		      const int *fds, unsigned n_fds)
{
	struct frontend_reply reply;

	frontend_send(f, request, VHOST_USER_VERSION | VHOST_USER_NEED_REPLY, payload, size, fds,
		      n_fds);
	frontend_expect_reply(f, request, &reply);
	expect_eq(reply.header.size, sizeof(uint64_t));
	return reply.payload.u64;
}

uint64_t frontend_ack_u64(struct frontend *f, uint32_t request, uint64_t value)
{
	return frontend_ack(f, request, &value, sizeof(value), NULL, 0);
}

void frontend_do(struct frontend *f, uint32_t request, const void *payload, uint32_t size,
		 const int *fds, unsigned n_fds)
{
	uint64_t ack = 0;

	if (acks_are_on(f))
		ack = frontend_ack(f, request, payload, size, fds, n_fds);
	else
		expect_msg(frontend_send(f, request, VHOST_USER_VERSION, payload, size, fds, n_fds),
			   "request %u: the backend has hung up", request);
	expect_msg(ack == 0, "request %u: refused", request);
}

void frontend_do_u64(struct frontend *f, uint32_t request, uint64_t value)
{
	frontend_do(f, request, &value, sizeof(value), NULL, 0);
}

uint64_t frontend_ask_u64(struct frontend *f, uint32_t request)
{
	struct frontend_reply reply;

	expect_msg(frontend_send(f, request, VHOST_USER_VERSION, NULL, 0, NULL, 0),
		   "request %u: the backend has hung up", request);
	frontend_expect_reply(f, request, &reply);
	expect_eq(reply.header.size, sizeof(uint64_t));
	return reply.payload.u64;
}

void frontend_sync(struct frontend *f)
{
	frontend_ask_u64(f, VHOST_USER_GET_FEATURES);
}

/* ---- each request ---- */

void frontend_set_features(struct frontend *f, uint64_t features)
{
	frontend_do_u64(f, VHOST_USER_SET_FEATURES, features);
	f->features = features;
}

void frontend_set_protocol_features(struct frontend *f, uint64_t features)
{
	/* Whether acks may be asked for is decided by this very message: it asks for none. */
	f->protocol_features = 0;
	frontend_do_u64(f, VHOST_USER_SET_PROTOCOL_FEATURES, features);
	f->protocol_features = features;
}

void frontend_set_mem_table(struct frontend *f, const struct guest *g)
{
	struct vhost_user_mem_table table;
	int fds[VHOST_USER_MAX_REGIONS];

	guest_fill_table(g, &table, fds);
	frontend_do(f, VHOST_USER_SET_MEM_TABLE, &table,
		    (uint32_t)offsetof(struct vhost_user_mem_table, regions[table.n_regions]), fds,
		    table.n_regions);
}

uint64_t frontend_ack_mem_table(struct frontend *f, const struct vhost_user_mem_table *table,
				const int *fds, unsigned n_fds)
{
	return frontend_ack(f, VHOST_USER_SET_MEM_TABLE, table, sizeof(*table), fds, n_fds);
}

static void do_state(struct frontend *f, uint32_t request, unsigned ring, uint32_t num)
{
	struct vhost_user_vring_state state = {.index = ring, .num = num};

	frontend_do(f, request, &state, sizeof(state), NULL, 0);
}

void frontend_set_vring_num(struct frontend *f, unsigned ring, uint32_t num)
{
	do_state(f, VHOST_USER_SET_VRING_NUM, ring, num);
}

void frontend_set_vring_addr(struct frontend *f, const struct vhost_user_vring_addr *addr)
{
	frontend_do(f, VHOST_USER_SET_VRING_ADDR, addr, sizeof(*addr), NULL, 0);
}

void frontend_set_vring_base(struct frontend *f, unsigned ring, uint32_t base)
{
	do_state(f, VHOST_USER_SET_VRING_BASE, ring, base);
}

uint32_t frontend_get_vring_base(struct frontend *f, unsigned ring)
{
	struct vhost_user_vring_state state = {.index = ring};
	struct frontend_reply reply;

	expect(frontend_send(f, VHOST_USER_GET_VRING_BASE, VHOST_USER_VERSION, &state,
			     sizeof(state), NULL, 0));
	frontend_expect_reply(f, VHOST_USER_GET_VRING_BASE, &reply);
	expect_eq(reply.header.size, sizeof(reply.payload.state));
	expect_eq(reply.payload.state.index, ring);
	return reply.payload.state.num;
}

void frontend_set_vring_fd(struct frontend *f, uint32_t request, unsigned ring, int fd)
{
	uint64_t value = ring | (fd < 0 ? VHOST_USER_VRING_NOFD : 0);

	frontend_do(f, request, &value, sizeof(value), &fd, fd < 0 ? 0 : 1);
}

void frontend_set_vring_enable(struct frontend *f, unsigned ring, bool is_enabled)
{
	do_state(f, VHOST_USER_SET_VRING_ENABLE, ring, is_enabled);
}

bool frontend_get_config(struct frontend *f, uint32_t offset, uint32_t size, void *dst)
{
	struct vhost_user_config config = {.offset = offset, .size = size};
	uint32_t len = VHOST_USER_CONFIG_HEADER_SIZE + size;
	struct frontend_reply reply;

	expect_le(size, sizeof(config.region));
	expect(frontend_send(f, VHOST_USER_GET_CONFIG, VHOST_USER_VERSION, &config, len, NULL, 0));
	frontend_expect_reply(f, VHOST_USER_GET_CONFIG, &reply);
	if (reply.header.size == 0)
		return false;
	expect_eq(reply.header.size, len);
	expect_eq(reply.payload.config.offset, offset);
	expect_eq(reply.payload.config.size, size);
	memcpy(dst, reply.payload.config.region, size);
	return true;
}

uint64_t frontend_ack_config(struct frontend *f, uint32_t offset, uint32_t size, uint32_t flags,
			     const void *src)
{
	struct vhost_user_config config = {.offset = offset, .size = size, .flags = flags};

	memcpy(config.region, src, size);
	return frontend_ack(f, VHOST_USER_SET_CONFIG, &config, VHOST_USER_CONFIG_HEADER_SIZE + size,
			    NULL, 0);
}

void frontend_negotiate(struct frontend *f, uint64_t features, uint64_t protocol_features)
{
	const uint64_t bit = 1ULL << VHOST_USER_F_PROTOCOL_FEATURES;
	uint64_t offered = frontend_ask_u64(f, VHOST_USER_GET_FEATURES);

	expect_msg(offered & bit, "no protocol features are offered");
	features &= offered & ~bit;
	frontend_do(f, VHOST_USER_SET_OWNER, NULL, 0, NULL, 0);
	if (protocol_features) {
		protocol_features &= frontend_ask_u64(f, VHOST_USER_GET_PROTOCOL_FEATURES);
		frontend_set_protocol_features(f, protocol_features);
		features |= bit;
	}
	frontend_set_features(f, features);
}
