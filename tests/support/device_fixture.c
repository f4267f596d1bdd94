/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/device_fixture.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct device_fixture dx;

/* ---- the owner of the rings ---- */

static struct dx_op *record(enum dx_kind kind, unsigned ring, int64_t value)
{
	struct dx_op *op = &dx.ops[dx.n_ops++];

	expect_le(dx.n_ops, DX_MAX_OPS);
	expect_lt(ring, dx.n_rings);
	*op = (struct dx_op){.kind = kind, .ring = ring, .value = value};
	return op;
}

static int ring_start(void *arg, unsigned ring, const struct device_ring *r)
{
	struct dx_ring *dr = &dx.rings[ring];

	expect(arg == &dx);
	record(DX_START, ring, 0)->setup = *r;
	expect(r->size >= 1 && r->size <= 32768);
	if (!(r->features & 1ULL << VIRTIO_F_RING_PACKED))
		expect(r->size >= 2 && (r->size & (r->size - 1)) == 0);
	expect(r->mem && r->mem->refs == 1);
	dr->is_started = dr->start_err == 0;
	return dr->start_err;
}

static uint32_t ring_stop(void *arg, unsigned ring)
{
	expect(arg == &dx);
	record(DX_STOP, ring, 0);
	dx.rings[ring].is_started = false;
	return dx.rings[ring].position;
}

static void ring_forget(void *arg, unsigned ring)
{
	expect(arg == &dx);
	expect(!dx.rings[ring].is_started);
	record(DX_FORGET, ring, 0);
}

static void ring_enable(void *arg, unsigned ring, bool is_enabled)
{
	expect(arg == &dx);
	record(DX_ENABLE, ring, is_enabled);
	dx.rings[ring].is_enabled = is_enabled;
}

static void take_fd(enum dx_kind kind, unsigned ring, int fd)
{
	int *old = &dx.rings[ring].fds[kind - DX_KICK];

	record(kind, ring, fd);
	if (*old >= 0)
		close(*old);
	*old = fd;
}

static int ring_kick_fd(void *arg, unsigned ring, int fd)
{
	expect(arg == &dx);
	if (fd >= 0 && dx.rings[ring].kick_err) {
		close(fd);
		return dx.rings[ring].kick_err;
	}
	take_fd(DX_KICK, ring, fd);
	return 0;
}

static void ring_call_fd(void *arg, unsigned ring, int fd)
{
	expect(arg == &dx);
	take_fd(DX_CALL, ring, fd);
}

static void ring_err_fd(void *arg, unsigned ring, int fd)
{
	expect(arg == &dx);
	take_fd(DX_ERR, ring, fd);
}

static int features(void *arg, uint64_t value)
{
	expect(arg == &dx);
	record(DX_FEATURES, 0, (int64_t)value);
	return value ? dx.features_err : 0;
}

static const struct device_ops ops = {
	.ring_start = ring_start,
	.ring_stop = ring_stop,
	.ring_forget = ring_forget,
	.ring_enable = ring_enable,
	.ring_kick_fd = ring_kick_fd,
	.ring_call_fd = ring_call_fd,
	.ring_err_fd = ring_err_fd,
	.features = features,
};

/* ---- life ---- */

void dx_setup(void)
{
	struct guest_layout layout = {.n_regions = 8, .region_size = 1 << 16, .hole = 1 << 16};

	memset(&dx, 0, sizeof(dx));
	for (unsigned i = 0; i < DEVICE_MAX_RINGS; i++)
		dx.rings[i] = (struct dx_ring){.fds = {-1, -1, -1}, .position = (uint16_t)(7 * i)};
	dx.n_fds = fds_count();
	log_capture_start(&dx.lines);
	guest_init(&dx.guest, &layout);
	dx.flags = VHOST_USER_VERSION;
	dx.cfg = (struct device_config){.features = 1ULL << VIRTIO_F_VERSION_1, .n_pairs = 2};
	dx_renew();
}

void dx_renew(void)
{
	device_free(dx.device);
	dx.n_rings = 2 * dx.cfg.n_pairs + 1;
	dx.device = device_new(&dx.cfg, &ops, &dx);
	expect(dx.device);
	dx_forget();
}

/* Whatever the test has done, the device leaves nothing behind. */
void dx_teardown(void)
{
	device_free(dx.device);
	for (unsigned i = 0; i < DEVICE_MAX_RINGS; i++) {
		expect(!dx.rings[i].is_started);
		for (unsigned k = 0; k < 3; k++)
			expect_eq(dx.rings[i].fds[k], -1);
	}
	guest_fini(&dx.guest);
	log_capture_stop(&dx.lines);
	expect_eq(fds_count(), dx.n_fds);
}

void dx_forget(void)
{
	dx.n_ops = 0;
}

static bool is_wanted(const struct dx_op *op, enum dx_kind kind, int ring)
{
	return op->kind == kind && (ring < 0 || op->ring == (unsigned)ring);
}

unsigned dx_count(enum dx_kind kind, int ring)
{
	unsigned n = 0;

	for (unsigned i = 0; i < dx.n_ops; i++)
		n += is_wanted(&dx.ops[i], kind, ring);
	return n;
}

const struct dx_op *dx_last(enum dx_kind kind, int ring)
{
	for (unsigned i = dx.n_ops; i > 0; i--)
		if (is_wanted(&dx.ops[i - 1], kind, ring))
			return &dx.ops[i - 1];
	ck_abort_msg("no operation of kind %d", kind);
	return NULL;
}

/* ---- messages ---- */

int dx_send(uint32_t request, const void *payload, uint32_t size, const int *fds, unsigned n_fds)
{
	struct wire_msg msg = {
		.header = {.request = request, .flags = dx.flags, .size = size},
		.n_fds = n_fds,
	};
	int err;

	/* What lies behind the payload was another message's. */
	memset(&msg.payload, 0xa5, sizeof(msg.payload));
	expect_le(size, sizeof(msg.payload));
	expect_le(n_fds, VHOST_USER_MAX_FDS);
	if (size > 0)
		memcpy(&msg.payload, payload, size);
	for (unsigned i = 0; i < n_fds; i++)
		msg.fds[i] = fds[i];
	err = device_handle(dx.device, &msg, &dx.reply);
	if (err == 0 && dx.reply.send)
		device_replied(dx.device);
	wire_msg_close_fds(&msg);
	return err;
}

int dx_send_u64(uint32_t request, uint64_t value)
{
	return dx_send(request, &value, sizeof(value), NULL, 0);
}

int dx_send_state(uint32_t request, uint32_t index, uint32_t num)
{
	struct vhost_user_vring_state state = {index, num};

	return dx_send(request, &state, sizeof(state), NULL, 0);
}

int dx_send_addr(uint32_t index)
{
	struct vhost_user_vring_addr addr = {
		.index = index,
		.desc_uva = DX_DESC(index),
		.avail_uva = DX_AVAIL(index),
		.used_uva = DX_USED(index),
	};

	return dx_send(VHOST_USER_SET_VRING_ADDR, &addr, sizeof(addr), NULL, 0);
}

int dx_send_fd(uint32_t request, uint64_t value, int fd)
{
	return dx_send(request, &value, sizeof(value), &fd, fd >= 0);
}

int dx_send_mem(unsigned n)
{
	struct vhost_user_mem_table table;
	int fds[VHOST_USER_MAX_REGIONS];

	guest_fill_table(&dx.guest, &table, fds);
	table.n_regions = n;
	for (unsigned i = 0; i < n; i++)
		fds[i] = dup(fds[i]);
	return dx_send(VHOST_USER_SET_MEM_TABLE, &table, 8 + 32 * n, fds, n);
}

int dx_eventfd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	expect_ge(fd, 0);
	return fd;
}

void dx_negotiate(uint64_t bits, bool has_protocol_features)
{
	if (has_protocol_features)
		bits |= 1ULL << VHOST_USER_F_PROTOCOL_FEATURES;
	expect_eq(dx_send_u64(VHOST_USER_SET_PROTOCOL_FEATURES,
			      1ULL << VHOST_USER_PROTOCOL_F_REPLY_ACK),
		  0);
	expect_eq(dx_send_u64(VHOST_USER_SET_FEATURES, bits), 0);
}

void dx_set_up(uint32_t ring)
{
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, ring, 256), 0);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_BASE, ring, 0), 0);
	expect_eq(dx_send_addr(ring), 0);
	expect_eq(dx_send_fd(VHOST_USER_SET_VRING_CALL, ring, dx_eventfd()), 0);
	expect_eq(dx_send_fd(VHOST_USER_SET_VRING_ERR, ring, dx_eventfd()), 0);
}

void dx_start(uint32_t ring)
{
	dx_set_up(ring);
	expect_eq(dx_send_fd(VHOST_USER_SET_VRING_KICK, ring, dx_eventfd()), 0);
	expect(dx.rings[ring].is_started);
}

bool dx_is_acked(void)
{
	expect(dx.reply.send);
	expect_eq(dx.reply.size, sizeof(uint64_t));
	return dx.reply.payload.u64 == 0;
}
