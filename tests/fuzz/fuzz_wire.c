/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a frontend may write into its socket, for libFuzzer: the reader, and the device behind it,
 * whose rings are nobody's. The input is cut into pieces, each sent with some fds:
 *
 *      byte 0: bytes in the piece, 1..255 (0: 4096)    byte 1: fds with it, 0..15    the bytes
 *
 * Whatever comes, no fd is left open, and the device is as new after the disconnect.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "vhost/device.h"
#include "vhost/wire.h"

#define MEMORY_BYTES (1 << 20)
#define MAX_FDS	     15

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int memory = -1; /* stands for every fd: it can be mapped, and waited for by nobody */

static int ring_start(void *arg, unsigned ring, const struct device_ring *r)
{
	uint64_t n = r->size;

	(void)arg;
	assert(ring < DEVICE_MAX_RINGS && n >= 2 && n <= 32768 && (n & (n - 1)) == 0);
	return gmem_uva_span(r->mem, r->desc, 16 * n) ? 0 : -EINVAL;
}

static uint32_t ring_stop(void *arg, unsigned ring)
{
	(void)arg;
	return (uint16_t)ring;
}

static void ring_forget(void *arg, unsigned ring)
{
	(void)arg;
	(void)ring;
}

static void ring_enable(void *arg, unsigned ring, bool is_enabled)
{
	(void)arg;
	(void)ring;
	(void)is_enabled;
}

static int ring_kick_fd(void *arg, unsigned ring, int fd)
{
	(void)arg;
	assert(ring < DEVICE_MAX_RINGS);
	if (fd >= 0)
		close(fd);
	return 0;
}

static void ring_other_fd(void *arg, unsigned ring, int fd)
{
	ring_kick_fd(arg, ring, fd);
}

static int note_features(void *arg, uint64_t features)
{
	(void)arg;
	(void)features;
	return 0;
}

static const struct device_ops ops = {
	.ring_start = ring_start,
	.ring_stop = ring_stop,
	.ring_forget = ring_forget,
	.ring_enable = ring_enable,
	.ring_kick_fd = ring_kick_fd,
	.ring_call_fd = ring_other_fd,
	.ring_err_fd = ring_other_fd,
	.features = note_features,
};

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void send_piece(int sock, const uint8_t *bytes, size_t len, unsigned n_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MAX_FDS * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds > 0) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));

		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		for (unsigned i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &memory, sizeof(int));
	}
	sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Return: false when the connection is to end. */
static bool handle_all(struct device *device, struct wire_reader *reader, int sock)
{
	int ret;

	while ((ret = wire_read(reader, sock)) == 1) {
		struct device_reply reply;

		assert(reader->msg.n_fds <= VHOST_USER_MAX_FDS);
		assert(reader->msg.header.size <= sizeof(reader->msg.payload.bytes));
		if (device_handle(device, &reader->msg, &reply) < 0)
			return false;
		if (reply.send)
			wire_reply(sock, reader->msg.header.request, &reply.payload, reply.size);
		wire_reader_next(reader);
	}
	return ret == 0;
}

static void serve(struct device *device, const int socks[2], const uint8_t *data, size_t size)
{
	struct wire_reader reader = {.n_read = 0};
	bool goes_on = true;

	while (goes_on && size > 2) {
		size_t len = data[0] ? data[0] : 4096;
		unsigned n_fds = data[1] % (MAX_FDS + 1);

		data += 2;
		size -= 2;
		len = min_of(len, size);
		send_piece(socks[0], data, len, n_fds);
		data += len;
		size -= len;
		goes_on = handle_all(device, &reader, socks[1]);
	}
	device_disconnect(device);
	wire_reader_next(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct device_config cfg = {.features = 1ULL << 32, .n_pairs = 2, .offer_config = true};
	struct device *device = device_new(&cfg, &ops, NULL);
	unsigned before;
	int socks[2];

	assert(device);
	if (memory < 0) {
		log_set_level(LOG_LEVEL_ERROR);
		memory = memfd_create("fuzz", MFD_CLOEXEC);
		if (memory < 0 || ftruncate(memory, MEMORY_BYTES) < 0)
			abort();
	}
	before = count_fds();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) < 0)
		abort();
	serve(device, socks, data, size);
	assert(device_features(device) == 0 && device_protocol_features(device) == 0);
	close(socks[0]);
	close(socks[1]);
	assert(count_fds() == before);
	device_free(device);
	return 0;
}
