/* SPDX-License-Identifier: BSD-2-Clause */
#include "vhost/device.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "vhost/config_space.h"

#define MIN_SPLIT_SIZE 2
#define MAX_RING_SIZE  32768
#define MIN_MTU	       68

/* A ring as the frontend has described it so far. */
struct ring {
	struct device_ring setup; /* `mem` and `features` are filled in at the start */
	bool has_size, has_addr, has_kick;
	bool is_started, is_enabled;
};

struct device {
	struct device_config cfg;
	const struct device_ops *ops;
	void *arg;

	/* of this frontend */
	uint64_t features;
	uint64_t protocol_features;
	uint8_t status;
	struct gmem *mem;
	int backend_fd; /* to ask the frontend by; -1 */
	int told_ring;	/* where it stands is in the reply that is about to be sent; -1: none */
	struct ring rings[DEVICE_MAX_RINGS];
};

static unsigned n_rings(const struct device *d)
{
	return 2 * d->cfg.n_pairs + 1;
}

static bool has_protocol_feature(const struct device *d, unsigned bit)
{
	return d->protocol_features & BIT_ULL(bit);
}

uint64_t device_features(const struct device *d)
{
	return d->features;
}

uint64_t device_protocol_features(const struct device *d)
{
	return d->protocol_features;
}

uint64_t device_features_offered(const struct device *d)
{
	uint64_t features = d->cfg.features | BIT_ULL(VHOST_USER_F_PROTOCOL_FEATURES);

	if (d->cfg.has_mac)
		features |= BIT_ULL(VIRTIO_NET_F_MAC);
	if (d->cfg.mtu)
		features |= BIT_ULL(VIRTIO_NET_F_MTU);
	return features;
}

static uint64_t protocol_features_offered(const struct device *d)
{
	uint64_t features =
		BIT_ULL(VHOST_USER_PROTOCOL_F_REPLY_ACK) | BIT_ULL(VHOST_USER_PROTOCOL_F_NET_MTU) |
		BIT_ULL(VHOST_USER_PROTOCOL_F_RESET_DEVICE) | BIT_ULL(VHOST_USER_PROTOCOL_F_STATUS);

	/* Frontends take one pair for granted; some refuse MQ without more. */
	if (d->cfg.n_pairs > 1)
		features |= BIT_ULL(VHOST_USER_PROTOCOL_F_MQ);
	if (d->cfg.offer_config)
		features |= BIT_ULL(VHOST_USER_PROTOCOL_F_CONFIG) |
			    BIT_ULL(VHOST_USER_PROTOCOL_F_BACKEND_REQ);
	return features;
}

/* ---- rings ---- */

/* Return: whether a ring may have that many entries with these features. */
static bool is_size_sound(uint64_t features, uint32_t size)
{
	if (size == 0 || size > MAX_RING_SIZE)
		return false;
	if (features & BIT_ULL(VIRTIO_F_RING_PACKED))
		return true;
	return size >= MIN_SPLIT_SIZE && (size & (size - 1)) == 0;
}

/* Start the ring, or translate a running one again, with the memory and features of now. */
static int ring_start(struct device *d, unsigned i)
{
	struct ring *r = &d->rings[i];
	int err;

	r->setup.mem = d->mem;
	/* A running ring keeps what it was started with. */
	if (!r->is_started)
		r->setup.features = d->features;
	/* The layout may have been chosen after the size. */
	if (!is_size_sound(r->setup.features, r->setup.size))
		return -EINVAL;
	if (!(d->features & BIT_ULL(VHOST_USER_F_PROTOCOL_FEATURES)) && !r->is_started) {
		r->is_enabled = true;
		d->ops->ring_enable(d->arg, i, true);
	}
	err = d->ops->ring_start(d->arg, i, &r->setup);
	/* Where it was when it lost its memory is what GET_VRING_BASE asks for. */
	if (err && r->is_started)
		r->setup.base = d->ops->ring_stop(d->arg, i);
	r->is_started = err == 0;
	return err;
}

/* Start the ring if it is kicked off and nothing is missing: messages come in any order. */
static int ring_start_if_ready(struct device *d, unsigned i)
{
	const struct ring *r = &d->rings[i];

	if (r->is_started || !r->has_kick || !r->has_size || !r->has_addr || !d->mem)
		return 0;
	return ring_start(d, i);
}

static void ring_stop(struct device *d, unsigned i)
{
	struct ring *r = &d->rings[i];

	if (r->is_started)
		r->setup.base = d->ops->ring_stop(d->arg, i);
	r->is_started = false;
	r->has_kick = false;
	d->ops->ring_kick_fd(d->arg, i, -1);
	d->ops->ring_call_fd(d->arg, i, -1);
}

static void reset_rings(struct device *d)
{
	for (unsigned i = 0; i < n_rings(d); i++) {
		ring_stop(d, i);
		d->ops->ring_err_fd(d->arg, i, -1);
		d->ops->ring_enable(d->arg, i, false);
		d->rings[i] = (struct ring){0};
	}
}

static void reset(struct device *d)
{
	reset_rings(d);
	d->status = 0;
	d->features = 0;
	d->ops->features(d->arg, 0);
}

/* ---- messages: features and state ---- */

static int reply_u64(struct device_reply *reply, uint64_t value)
{
	reply->payload.u64 = value;
	reply->size = sizeof(value);
	return 0;
}

static int get_features(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	(void)msg;
	return reply_u64(reply, device_features_offered(d));
}

static int set_features(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	uint64_t features = msg->payload.u64;
	int err;

	(void)reply;
	if (features & ~device_features_offered(d))
		return -EINVAL;
	err = d->ops->features(d->arg, features);
	if (err == 0)
		d->features = features;
	return err;
}

static int get_protocol_features(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	(void)msg;
	return reply_u64(reply, protocol_features_offered(d));
}

static int set_protocol_features(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	(void)reply;
	if (msg->payload.u64 & ~protocol_features_offered(d))
		return -EINVAL;
	d->protocol_features = msg->payload.u64;
	return 0;
}

static int ignore(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	(void)d;
	(void)msg;
	(void)reply;
	return 0;
}

static int reset_device(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	(void)msg;
	(void)reply;
	reset(d);
	for (unsigned i = 0; i < n_rings(d); i++)
		d->ops->ring_forget(d->arg, i);
	return 0;
}

static int get_status(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	(void)msg;
	return reply_u64(reply, d->status);
}

static int set_status(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	(void)reply;
	if (msg->payload.u64 > UINT8_MAX)
		return -EINVAL;
	/* Zero resets nothing here: QEMU sends it before it asks for the rings' positions, and
	 * RESET_DEVICE when it means a reset. */
	d->status = (uint8_t)msg->payload.u64;
	return 0;
}

static int get_queue_num(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	(void)msg;
	return reply_u64(reply, d->cfg.n_pairs);
}

static int net_set_mtu(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	(void)d;
	(void)reply;
	return msg->payload.u64 >= MIN_MTU && msg->payload.u64 <= UINT16_MAX ? 0 : -EINVAL;
}

/* ---- messages: configuration space ---- */

/* Return: whether the payload is as long as it says. */
static bool config_is_whole(const struct wire_msg *msg)
{
	return msg->header.size >= VHOST_USER_CONFIG_HEADER_SIZE &&
	       msg->payload.config.size <= msg->header.size - VHOST_USER_CONFIG_HEADER_SIZE;
}

static int get_config(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	const struct vhost_user_config *config = &msg->payload.config;

	reply->payload = msg->payload;
	if (!config_is_whole(msg) || config_space_read(&d->cfg, config->offset, config->size,
						       reply->payload.config.region) != 0) {
		/* The frontend waits for a reply in any case; an empty one is the error. */
		reply->size = 0;
		return 0;
	}
	reply->size = msg->header.size;
	return 0;
}

static int set_config(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	(void)d;
	(void)reply;
	if (!config_is_whole(msg))
		return -EINVAL;
	/* No field is the driver's to write; a migration restores what is configured anyway. */
	return msg->payload.config.flags & VHOST_USER_CONFIG_LIVE_MIGRATION ? 0 : -EPERM;
}

/* ---- messages: memory ---- */

static int set_mem_table(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	const struct vhost_user_mem_table *table = &msg->payload.mem;
	struct gmem_region_desc descs[VHOST_USER_MAX_REGIONS];
	uint32_t n = table->n_regions;
	struct gmem *old = d->mem;
	int err;

	(void)reply;
	if (n == 0 || n > VHOST_USER_MAX_REGIONS || msg->n_fds != n ||
	    msg->header.size < offsetof(struct vhost_user_mem_table, regions[n]))
		return -EINVAL;
	for (unsigned i = 0; i < n; i++)
		descs[i] = (struct gmem_region_desc){
			.gpa = table->regions[i].gpa,
			.uva = table->regions[i].uva,
			.size = table->regions[i].size,
			.mmap_offset = table->regions[i].mmap_offset,
			.fd = msg->fds[i],
		};
	err = gmem_new(&d->mem, descs, n);
	if (err) {
		d->mem = old;
		return err;
	}
	for (unsigned i = 0; i < n_rings(d); i++) {
		/* A ring that the new table does not hold stops; the others go on. */
		if (d->rings[i].is_started)
			ring_start(d, i);
		else
			ring_start_if_ready(d, i);
	}
	gmem_put(old);
	return 0;
}

/* ---- messages: rings ---- */

static int set_vring_num(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	const struct vhost_user_vring_state *state = &msg->payload.state;
	struct ring *r;

	(void)reply;
	if (state->index >= n_rings(d) || !is_size_sound(d->features, state->num))
		return -EINVAL;
	r = &d->rings[state->index];
	if (r->is_started && r->setup.size != state->num)
		return -EBUSY;
	r->setup.size = state->num;
	r->has_size = true;
	return ring_start_if_ready(d, state->index);
}

static int set_vring_addr(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	const struct vhost_user_vring_addr *addr = &msg->payload.addr;
	struct ring *r;

	(void)reply;
	if (addr->index >= n_rings(d))
		return -EINVAL;
	r = &d->rings[addr->index];
	r->setup.desc.v = addr->desc_uva;
	r->setup.avail.v = addr->avail_uva;
	r->setup.used.v = addr->used_uva;
	r->has_addr = true;
	return r->is_started ? ring_start(d, addr->index) : ring_start_if_ready(d, addr->index);
}

static int set_vring_base(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	const struct vhost_user_vring_state *state = &msg->payload.state;
	bool is_packed = d->features & BIT_ULL(VIRTIO_F_RING_PACKED);

	(void)reply;
	if (state->index >= n_rings(d) || (!is_packed && state->num > UINT16_MAX))
		return -EINVAL;
	d->rings[state->index].setup.base = state->num;
	return 0;
}

static int get_vring_base(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	uint32_t i = msg->payload.state.index;

	if (i >= n_rings(d))
		return -EINVAL;
	ring_stop(d, i);
	reply->payload.state = (struct vhost_user_vring_state){i, d->rings[i].setup.base};
	reply->size = sizeof(reply->payload.state);
	d->told_ring = (int)i;
	return 0;
}

static int set_vring_enable(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	const struct vhost_user_vring_state *state = &msg->payload.state;

	(void)reply;
	if (state->index >= n_rings(d) || state->num > 1)
		return -EINVAL;
	d->rings[state->index].is_enabled = state->num == 1;
	d->ops->ring_enable(d->arg, state->index, state->num == 1);
	return 0;
}

/*
 * Take ring index and fd out of a KICK, CALL or ERR message.
 * @fd: gets the fd, now the caller's, or -1 when the message says that none comes
 * Return: 0, or -EINVAL when index, bits or fd do not fit together.
 */
static int take_vring_fd(const struct device *d, struct wire_msg *msg, unsigned *i, int *fd)
{
	uint64_t value = msg->payload.u64;
	unsigned n_expected = value & VHOST_USER_VRING_NOFD ? 0 : 1;

	if (value & ~(uint64_t)(VHOST_USER_VRING_INDEX_MASK | VHOST_USER_VRING_NOFD))
		return -EINVAL;
	*i = (unsigned)(value & VHOST_USER_VRING_INDEX_MASK);
	if (*i >= n_rings(d) || msg->n_fds != n_expected)
		return -EINVAL;
	*fd = n_expected ? wire_msg_take_fd(msg, 0) : -1;
	return 0;
}

static int set_vring_kick(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	unsigned i;
	int fd;
	int err = take_vring_fd(d, msg, &i, &fd);

	(void)reply;
	if (err == 0)
		err = d->ops->ring_kick_fd(d->arg, i, fd);
	if (err)
		return err;
	d->rings[i].has_kick = true;
	return ring_start_if_ready(d, i);
}

static int set_vring_call(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	unsigned i;
	int fd;
	int err = take_vring_fd(d, msg, &i, &fd);

	(void)reply;
	if (err == 0)
		d->ops->ring_call_fd(d->arg, i, fd);
	return err;
}

static int set_vring_err(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	unsigned i;
	int fd;
	int err = take_vring_fd(d, msg, &i, &fd);

	(void)reply;
	if (err == 0)
		d->ops->ring_err_fd(d->arg, i, fd);
	return err;
}

/* ---- messages: the backend's channel ---- */

static void close_backend_fd(struct device *d)
{
	if (d->backend_fd >= 0)
		close(d->backend_fd);
	d->backend_fd = -1;
}

static int set_backend_req_fd(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	(void)reply;
	if (msg->n_fds != 1)
		return -EINVAL;
	close_backend_fd(d);
	d->backend_fd = wire_msg_take_fd(msg, 0);
	return 0;
}

void device_set_link(struct device *d, bool is_up)
{
	int err;

	if (d->cfg.is_link_down == !is_up)
		return;
	d->cfg.is_link_down = !is_up;
	if (d->backend_fd < 0 || !has_protocol_feature(d, VHOST_USER_PROTOCOL_F_CONFIG))
		return;
	err = wire_request(d->backend_fd, VHOST_USER_BACKEND_CONFIG_CHANGE);
	if (err)
		log_warn(err, "vhost-user: cannot tell the frontend that the link is %s",
			 is_up ? "up" : "down");
}

/* ---- the table ---- */

#define SIZE_IS_CHECKED_BY_HANDLER UINT32_MAX

struct message {
	const char *name;
	int (*handle)(struct device *d, struct wire_msg *msg, struct device_reply *reply);
	uint32_t size; /* of the payload, exactly */
	uint8_t max_fds;
	bool has_reply; /* answered by its own reply, never by an ack */
};

#define U64   sizeof(uint64_t)
#define STATE sizeof(struct vhost_user_vring_state)
#define ADDR  sizeof(struct vhost_user_vring_addr)
#define ANY   SIZE_IS_CHECKED_BY_HANDLER

static const struct message messages[VHOST_USER_REQUEST_MAX] = {
	[VHOST_USER_GET_FEATURES] = {"GET_FEATURES", get_features, 0, 0, true},
	[VHOST_USER_SET_FEATURES] = {"SET_FEATURES", set_features, U64, 0, false},
	[VHOST_USER_SET_OWNER] = {"SET_OWNER", ignore, 0, 0, false},
	[VHOST_USER_RESET_OWNER] = {"RESET_OWNER", ignore, 0, 0, false},
	[VHOST_USER_SET_MEM_TABLE] = {"SET_MEM_TABLE", set_mem_table, ANY, VHOST_USER_MAX_FDS,
				      false},
	[VHOST_USER_SET_VRING_NUM] = {"SET_VRING_NUM", set_vring_num, STATE, 0, false},
	[VHOST_USER_SET_VRING_ADDR] = {"SET_VRING_ADDR", set_vring_addr, ADDR, 0, false},
	[VHOST_USER_SET_VRING_BASE] = {"SET_VRING_BASE", set_vring_base, STATE, 0, false},
	[VHOST_USER_GET_VRING_BASE] = {"GET_VRING_BASE", get_vring_base, STATE, 0, true},
	[VHOST_USER_SET_VRING_KICK] = {"SET_VRING_KICK", set_vring_kick, U64, 1, false},
	[VHOST_USER_SET_VRING_CALL] = {"SET_VRING_CALL", set_vring_call, U64, 1, false},
	[VHOST_USER_SET_VRING_ERR] = {"SET_VRING_ERR", set_vring_err, U64, 1, false},
	[VHOST_USER_GET_PROTOCOL_FEATURES] = {"GET_PROTOCOL_FEATURES", get_protocol_features, 0, 0,
					      true},
	[VHOST_USER_SET_PROTOCOL_FEATURES] = {"SET_PROTOCOL_FEATURES", set_protocol_features, U64,
					      0, false},
	[VHOST_USER_GET_QUEUE_NUM] = {"GET_QUEUE_NUM", get_queue_num, 0, 0, true},
	[VHOST_USER_SET_VRING_ENABLE] = {"SET_VRING_ENABLE", set_vring_enable, STATE, 0, false},
	[VHOST_USER_NET_SET_MTU] = {"NET_SET_MTU", net_set_mtu, U64, 0, false},
	[VHOST_USER_SET_BACKEND_REQ_FD] = {"SET_BACKEND_REQ_FD", set_backend_req_fd, 0, 1, false},
	[VHOST_USER_GET_CONFIG] = {"GET_CONFIG", get_config, ANY, 0, true},
	[VHOST_USER_SET_CONFIG] = {"SET_CONFIG", set_config, ANY, 0, false},
	[VHOST_USER_RESET_DEVICE] = {"RESET_DEVICE", reset_device, 0, 0, false},
	[VHOST_USER_SET_STATUS] = {"SET_STATUS", set_status, U64, 0, false},
	[VHOST_USER_GET_STATUS] = {"GET_STATUS", get_status, 0, 0, true},
};

static const struct message *find_message(uint32_t request)
{
	if (request >= array_size(messages) || !messages[request].handle)
		return NULL;
	return &messages[request];
}

static int check_and_handle(struct device *d, const struct message *m, struct wire_msg *msg,
			    struct device_reply *reply)
{
	if (m->size != ANY && msg->header.size != m->size)
		return -EMSGSIZE;
	if (msg->n_fds > m->max_fds)
		return -EINVAL;
	return m->handle(d, msg, reply);
}

int device_handle(struct device *d, struct wire_msg *msg, struct device_reply *reply)
{
	const struct message *m = find_message(msg->header.request);
	bool is_ack_wanted;
	int err;

	memset(reply, 0, sizeof(*reply));
	d->told_ring = -1;
	err = m ? check_and_handle(d, m, msg, reply) : -EOPNOTSUPP;
	if (!m)
		log_debug("vhost-user: unknown request %u", msg->header.request);
	else if (err)
		log_warn(err, "vhost-user: %s refused", m->name);
	if (m && m->has_reply) {
		reply->send = err == 0;
		return err;
	}
	is_ack_wanted = (msg->header.flags & VHOST_USER_NEED_REPLY) &&
			has_protocol_feature(d, VHOST_USER_PROTOCOL_F_REPLY_ACK);
	if (is_ack_wanted) {
		reply->send = true;
		return reply_u64(reply, err != 0);
	}
	/* Without an ack the end of the connection is how the frontend learns of a refusal. */
	return m ? err : 0;
}

void device_replied(struct device *d)
{
	if (d->told_ring >= 0)
		d->ops->ring_forget(d->arg, (unsigned)d->told_ring);
	d->told_ring = -1;
}

/* ---- life ---- */

struct device *device_new(const struct device_config *cfg, const struct device_ops *ops, void *arg)
{
	struct device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->cfg = *cfg;
	d->ops = ops;
	d->arg = arg;
	d->backend_fd = -1;
	d->told_ring = -1;
	return d;
}

void device_disconnect(struct device *d)
{
	reset(d);
	d->protocol_features = 0;
	close_backend_fd(d);
	gmem_put(d->mem);
	d->mem = NULL;
}

void device_free(struct device *d)
{
	if (!d)
		return;
	device_disconnect(d);
	free(d);
}
