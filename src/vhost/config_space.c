/* SPDX-License-Identifier: BSD-2-Clause */
#include "vhost/config_space.h"

#include <endian.h>
#include <errno.h>
#include <linux/virtio_net.h>
#include <string.h>

#include "vhost-user-xdp/vhost_user.h"

int config_space_read(const struct device_config *cfg, uint32_t offset, uint32_t size, uint8_t *dst)
{
	uint8_t space[VHOST_USER_MAX_CONFIG_SIZE] = {0};
	struct virtio_net_config net = {
		.status = htole16(cfg->is_link_down ? 0 : VIRTIO_NET_S_LINK_UP),
		.max_virtqueue_pairs = htole16((uint16_t)cfg->n_pairs),
		.mtu = htole16(cfg->mtu),
	};

	if (size > sizeof(space) || offset > sizeof(space) - size)
		return -EINVAL;
	memcpy(net.mac, cfg->mac, sizeof(net.mac));
	memcpy(space, &net, sizeof(net));
	memcpy(dst, space + offset, size);
	return 0;
}
