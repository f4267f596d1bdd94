/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a network interface is and can do, asked by ethtool's and the interface's ioctls. Control
 * thread only; keeps no state.
 */
#ifndef PORT_XDP_DEV_H
#define PORT_XDP_DEV_H

#include <stdbool.h>
#include <stdint.h>

struct xdp_dev_info {
	char driver[32]; /* "": it does not say */
	int ifindex;
	unsigned n_queues; /* receive queues; 0: it does not say */
	unsigned n_tx_queues;
	unsigned mtu; /* bytes */
	bool is_up, has_carrier;
	bool defers_interrupts; /* for those who poll it */
	bool strips_vlan;	/* takes the tag out of received frames */
	bool can_keep_vlan;	/* that can be turned off */
};

/* Return: 0; -ENODEV there is no such interface; or another negative errno. */
int xdp_dev_query(const char *ifname, struct xdp_dev_info *info);

/*
 * Have the interface let through what is for the guest, whose address is hardly its own: the frames
 * to one more address and all multicast, or all frames (promiscuous).
 * @mac: the address; NULL: all
 * Return: a fd that holds this for as long as it is open; or a negative errno.
 */
int xdp_dev_listen(int ifindex, const uint8_t *mac);

/* Have the interface take VLAN tags out of received frames, or leave them. Return: 0 or -errno. */
int xdp_dev_strip_vlan(const char *ifname, bool is_on);

#endif
