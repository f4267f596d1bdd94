/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the driver does differently on a packed ring (virtio 1.2, 2.8). Private to driver.c; written
 * from the specification, as that is.
 *
 * Positions count chains, as on a split ring, so tests count alike. A place is where the ring goes
 * on, 0..2 * size - 1: the slot, plus `size` in laps whose wrap bit is 0.
 */
#ifndef SUPPORT_DRIVER_PACKED_H
#define SUPPORT_DRIVER_PACKED_H

#include "support/driver.h"

/* Write the ring's memory as if every slot before `base`, counted from the first lap's start, had
 * been used; all ids are free. */
void driver_packed_reset(struct driver_ring *r, uint16_t base);

/* Write a chain into the next slots. Only the first chain after driver_packed_publish() is hidden,
 * as the device does not look behind it. Return: its id. */
uint16_t driver_packed_add(struct driver_ring *r, const struct vring_desc *descs, unsigned n);

/* As those of driver.h. */
void driver_packed_ruin(struct driver_ring *r);
void driver_packed_mend(struct driver_ring *r);

/* Show the device what was added. Return: whether it wants a kick for it. */
bool driver_packed_publish(struct driver_ring *r);

uint16_t driver_packed_n_used(const struct driver_ring *r);

/* Take the next used element. Return: whether there was one. */
bool driver_packed_take(struct driver_ring *r, struct driver_used *u);

/* Return: what SET_VRING_BASE says when all that is used counts. */
uint32_t driver_packed_base(const struct driver_ring *r);

void driver_packed_set_used_event(struct driver_ring *r, uint16_t idx);
void driver_packed_set_calls(struct driver_ring *r, bool are_on);
bool driver_packed_wants_kick(const struct driver_ring *r);

#endif
