/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of vring-bench share: the settings of one measurement, the guest's side of a ring
 * (driver.c, and a file for each layout), the device (device.c: the product's own bursts on port null), and the floor
 * (floor.c: the same memory traffic without a protocol). A setting is measured by lanes: a driver and a
 * device for each queue pair, in two threads, or in turn in one (--single).
 */
#ifndef VRING_BENCH_VRING_H
#define VRING_BENCH_VRING_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/gmem.h"
#include "virtq/virtq.h"

#define VRING_MAX_PAIRS	 4
#define VRING_MAX_PACKET 65000u
#define VRING_HDR_LEN	 12u

struct setting {
	bool is_rx; /* towards the guest */
	bool is_packed, has_event_idx, is_indirect, is_mergeable, is_in_order, is_shuffled;
	bool wants_calls; /* the driver asks for an interrupt whenever it has nothing left */
	bool is_floor;
	unsigned size;	  /* of the ring */
	unsigned packet;  /* bytes, without the header */
	unsigned chain;	  /* descriptors for each packet */
	unsigned batch;	  /* the device's burst */
	unsigned publish; /* used entries for each publish, towards the guest; 0: the burst */
	unsigned pairs;
};

/* Memory that the guest and the device see; guest-physical addresses begin at VRING_GPA. */
#define VRING_GPA 0x100000u

struct memory {
	char *map;
	uint64_t size, used;
	struct gmem *gmem; /* the device's view */
	int fd;
};

/* Return: 0 or a negative errno. */
int memory_init(struct memory *m, uint64_t size);
void memory_fini(struct memory *m);

/* Return: fresh bytes, zeroed, on a line of their own. */
void *memory_take(struct memory *m, uint64_t len);

/* Return: the guest-physical address of a byte. */
static inline uint64_t memory_gpa(const struct memory *m, const void *p)
{
	return VRING_GPA + (uint64_t)((const char *)p - m->map);
}

/* ---- the guest's side ---- */

struct driver;

/* Make a ring with buffers for it. Return: NULL without memory. */
struct driver *driver_new(const struct setting *s, struct memory *m);
void driver_free(struct driver *d);
void driver_describe(const struct driver *d, struct virtq_setup *setup);

/* Offer what there is, take back what is done. Return: packets taken back. */
unsigned driver_turn(struct driver *d);

/* Wait for the call that the last driver_turn() asked for, if it did. @call_fd: an eventfd */
void driver_wait(struct driver *d, int call_fd);

/* ---- the device ---- */

struct device;

/* Return: NULL after a line on stderr. @call_fd: -1: the driver wants no calls */
struct device *device_new(const struct setting *s, struct memory *m, const struct driver *d,
			  int call_fd);
void device_free(struct device *d);

/* Return: whether anything was done. */
bool device_turn(struct device *d);

struct device_counts {
	uint64_t packets, publishes, calls;
};

struct device_counts device_counts(const struct device *d);

/* ---- the floor ---- */

struct floor_ring;

struct floor_ring *floor_new(const struct setting *s, struct memory *m);
void floor_free(struct floor_ring *f);
unsigned floor_driver_turn(struct floor_ring *f);
bool floor_device_turn(struct floor_ring *f);

/* Return: packets that went through, as the device counts. */
uint64_t floor_packets(const struct floor_ring *f);

#endif
