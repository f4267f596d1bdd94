/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's configuration space, struct virtio_net_config (virtio 1.2, 5.1.4), as a frontend
 * reads it by GET_CONFIG. Pure functions of the configuration.
 */
#ifndef VHOST_CONFIG_SPACE_H
#define VHOST_CONFIG_SPACE_H

#include <stdbool.h>
#include <stdint.h>

/* Largest number of queue pairs, and of rings: two a pair and one control queue. */
#define DEVICE_MAX_PAIRS 16
#define DEVICE_MAX_RINGS (2 * DEVICE_MAX_PAIRS + 1)

/* What a device is configured to be. */
struct device_config {
	uint64_t features; /* virtio feature bits on offer, without PROTOCOL_FEATURES */
	unsigned n_pairs;  /* 1..DEVICE_MAX_PAIRS */
	bool has_mac;
	uint8_t mac[6];
	uint16_t mtu;	   /* 0: not configured */
	bool offer_config; /* offer the CONFIG protocol feature, and the channel to tell of changes */
	bool is_link_down; /* the port has no carrier */
};

/*
 * Copy a part of the space; what lies behind its fields reads as zeros.
 * @offset, @size: bytes, a peer's numbers
 * Return: 0; -EINVAL when the part is not within VHOST_USER_MAX_CONFIG_SIZE.
 */
int config_space_read(const struct device_config *cfg, uint32_t offset, uint32_t size,
		      uint8_t *dst);

#endif
