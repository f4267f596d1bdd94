/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vhost-user wire format: requests, payloads and bits, as QEMU's docs/interop/vhost-user.rst
 * gives them. Constants and layouts only; `src/vhost/wire.c` moves the bytes, `src/vhost/device.c`
 * gives them meaning. Integers are in host byte order on both sides of the socket.
 */
#ifndef VHOST_USER_XDP_VHOST_USER_H
#define VHOST_USER_XDP_VHOST_USER_H

#include <assert.h>
#include <stdint.h>

#define VHOST_USER_VERSION      0x1u
#define VHOST_USER_VERSION_MASK 0x3u
#define VHOST_USER_REPLY        0x4u
#define VHOST_USER_NEED_REPLY   0x8u

#define VHOST_USER_MAX_REGIONS     8
#define VHOST_USER_MAX_FDS         8
#define VHOST_USER_MAX_CONFIG_SIZE 256
/* The low byte of a KICK/CALL/ERR payload is the ring index; this bit says that no fd comes. */
#define VHOST_USER_VRING_INDEX_MASK 0xffu
#define VHOST_USER_VRING_NOFD       0x100u

enum vhost_user_request {
	VHOST_USER_GET_FEATURES = 1,
	VHOST_USER_SET_FEATURES = 2,
	VHOST_USER_SET_OWNER = 3,
	VHOST_USER_RESET_OWNER = 4,
	VHOST_USER_SET_MEM_TABLE = 5,
	VHOST_USER_SET_VRING_NUM = 8,
	VHOST_USER_SET_VRING_ADDR = 9,
	VHOST_USER_SET_VRING_BASE = 10,
	VHOST_USER_GET_VRING_BASE = 11,
	VHOST_USER_SET_VRING_KICK = 12,
	VHOST_USER_SET_VRING_CALL = 13,
	VHOST_USER_SET_VRING_ERR = 14,
	VHOST_USER_GET_PROTOCOL_FEATURES = 15,
	VHOST_USER_SET_PROTOCOL_FEATURES = 16,
	VHOST_USER_GET_QUEUE_NUM = 17,
	VHOST_USER_SET_VRING_ENABLE = 18,
	VHOST_USER_NET_SET_MTU = 20,
	VHOST_USER_SET_BACKEND_REQ_FD = 21,
	VHOST_USER_GET_CONFIG = 24,
	VHOST_USER_SET_CONFIG = 25,
	VHOST_USER_RESET_DEVICE = 34,
	VHOST_USER_SET_STATUS = 39,
	VHOST_USER_GET_STATUS = 40,
	VHOST_USER_REQUEST_MAX
};

/* What the backend asks, on a channel of its own. */
enum vhost_user_backend_request {
	VHOST_USER_BACKEND_CONFIG_CHANGE = 2,
};

enum vhost_user_protocol_bit {
	VHOST_USER_PROTOCOL_F_MQ = 0,
	VHOST_USER_PROTOCOL_F_REPLY_ACK = 3,
	VHOST_USER_PROTOCOL_F_NET_MTU = 4,
	VHOST_USER_PROTOCOL_F_BACKEND_REQ = 5,
	VHOST_USER_PROTOCOL_F_CONFIG = 9,
	VHOST_USER_PROTOCOL_F_RESET_DEVICE = 13,
	VHOST_USER_PROTOCOL_F_STATUS = 16,
};

/* Virtio feature bit that only the socket knows: protocol features can be negotiated. */
#define VHOST_USER_F_PROTOCOL_FEATURES 30

struct vhost_user_header {
	uint32_t request;
	uint32_t flags;
	uint32_t size; /* of the payload, bytes */
};
static_assert(sizeof(struct vhost_user_header) == 12, "wire size");

struct vhost_user_vring_state {
	uint32_t index;
	uint32_t num;
};
static_assert(sizeof(struct vhost_user_vring_state) == 8, "wire size");

struct vhost_user_vring_addr {
	uint32_t index;
	uint32_t flags;
	uint64_t desc_uva, used_uva, avail_uva; /* the frontend's own addresses */
	uint64_t log_gpa;
};
static_assert(sizeof(struct vhost_user_vring_addr) == 40, "wire size");

struct vhost_user_region {
	uint64_t gpa;
	uint64_t size;
	uint64_t uva;
	uint64_t mmap_offset;
};
static_assert(sizeof(struct vhost_user_region) == 32, "wire size");

struct vhost_user_mem_table {
	uint32_t n_regions;
	uint32_t padding;
	struct vhost_user_region regions[VHOST_USER_MAX_REGIONS];
};
static_assert(sizeof(struct vhost_user_mem_table) == 8 + 8 * 32, "wire size");

struct vhost_user_config {
	uint32_t offset;
	uint32_t size;
	uint32_t flags; /* bit 0: writable at any time, bit 1: live migration */
	uint8_t region[VHOST_USER_MAX_CONFIG_SIZE];
};
static_assert(sizeof(struct vhost_user_config) == 12 + 256, "wire size");
#define VHOST_USER_CONFIG_HEADER_SIZE    12u
#define VHOST_USER_CONFIG_LIVE_MIGRATION 0x2u

union vhost_user_payload {
	uint64_t u64;
	struct vhost_user_vring_state state;
	struct vhost_user_vring_addr addr;
	struct vhost_user_mem_table mem;
	struct vhost_user_config config;
	uint8_t bytes[sizeof(struct vhost_user_config)];
};

#endif
