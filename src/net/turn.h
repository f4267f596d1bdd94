/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One turn of a queue pair, and its two bursts: the whole path of a packet.
 *
 *    guest's TX ring -> tx_burst() -> port        port -> rx_burst() -> guest's RX ring
 *
 * Called by the worker's thread only, between parks. Nothing here blocks, allocates, locks or
 * logs; the port is called once per burst.
 */
#ifndef NET_TURN_H
#define NET_TURN_H

#include <stdbool.h>

struct pair;

/* Take one turn. Return: whether there was work, or more is known to wait: turn again. */
bool turn(struct pair *p);

/*
 * Send at most a batch of the guest's frames, and give back those that the port is done with.
 * Return: heads that moved on: taken by the port, dropped or completed.
 */
unsigned tx_burst(struct pair *p);

/* Give back what the port is done with, before the TX ring stops. Parked, or in a turn.
 * Return: heads completed. */
unsigned tx_complete(struct pair *p);

/*
 * Move at most a batch of the port's frames into guest buffers.
 * Return: frames that left the port, delivered or dropped.
 */
unsigned rx_burst(struct pair *p);

#endif
