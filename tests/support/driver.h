/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's side of a virtqueue, split or packed (virtio 1.2, 2.7 and 2.8), written from the
 * specification and independent of the daemon's sources. It adds chains made of any segments, kicks when the device
 * asks for it, takes used elements and checks that they come in avail order, each once.
 *
 * The ring's own memory is open to tests: they may write anything into it. What the driver needs
 * to know of its chains it keeps for itself.
 */
#ifndef SUPPORT_DRIVER_H
#define SUPPORT_DRIVER_H

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/frontend.h"
#include "support/guest.h"

struct driver_seg {
	uint64_t gpa;
	uint32_t len;
	bool is_writable;
};

/* What the driver remembers of a chain that it has added, at its head (packed: its id). */
struct driver_chain {
	struct driver_seg *segs; /* its own copy */
	unsigned n_segs;
	unsigned room; /* segments that `segs` holds: kept from use to use */
	uint16_t n_descs;
	uint64_t cookie; /* the test's */
	bool is_out;
};

struct driver_packed {
	struct vring_packed_desc *desc;
	struct vring_packed_desc_event *driver, *device;
	uint32_t avail_at, published_at,
		used_at;       /* places (driver_packed.h) of the indices below */
	uint16_t hidden_flags; /* of the descriptor at published_at; 0: none */
};

struct driver_ring {
	struct guest *guest;
	unsigned index; /* as the frontend counts: 2 * pair is receive */
	uint32_t size;
	uint16_t mask; /* of positions: picks from `heads` */
	bool is_packed;
	bool has_event_idx;
	uint32_t first_base; /* what SET_VRING_BASE says of the empty ring */

	uint64_t desc_gpa, avail_gpa, used_gpa;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;

	struct driver_packed packed;

	/* of a packed ring, `desc` and so on are the same memory, and all count chains */
	uint16_t avail_idx;	/* added */
	uint16_t published_idx; /* shown to the device */
	uint16_t last_used;	/* taken back */
	uint16_t *next_free;	/* list of free descriptors; packed: of free ids */
	uint16_t first_free;
	uint32_t n_free; /* descriptors */
	uint16_t *heads; /* by position: what was made available there */
	struct driver_chain *chains;

	int kick_fd, call_fd, err_fd; /* eventfds */
	uint64_t n_kicks;	      /* written so far */
	bool is_order_free;	      /* do not insist on avail order */
};

/* A chain that came back. `chain` is valid until its head is added again. */
struct driver_used {
	uint16_t head;
	uint32_t len;
	const struct driver_chain *chain;
};

/*
 * Make an empty ring in guest memory.
 * @size: 2..32768, a power of two; packed: 1..32768
 * @base: where both indices start; packed: slots that have been used, counted from the first lap
 * @features: negotiated virtio bits; RING_PACKED makes it a packed one
 */
void driver_init(struct driver_ring *r, struct guest *g, unsigned index, uint32_t size,
		 uint16_t base, uint64_t features);

/* The same with its parts at given addresses. */
void driver_init_at(struct driver_ring *r, struct guest *g, unsigned index, uint32_t size,
		    uint16_t base, uint64_t features, uint64_t desc, uint64_t avail, uint64_t used);

void driver_fini(struct driver_ring *r);

/* Bytes of the three parts of a split ring, event words included. */
uint64_t driver_desc_len(uint32_t size);
uint64_t driver_avail_len(uint32_t size);
uint64_t driver_used_len(uint32_t size);

/* Return: what SET_VRING_BASE says when all counts that is used by now. */
uint32_t driver_base(const struct driver_ring *r);

/* ---- telling the backend ---- */

void driver_send_num(const struct driver_ring *r, struct frontend *f);
void driver_send_addr(const struct driver_ring *r, struct frontend *f);
void driver_send_base(const struct driver_ring *r, struct frontend *f);
void driver_send_call(const struct driver_ring *r, struct frontend *f);
void driver_send_kick(const struct driver_ring *r, struct frontend *f);

/* All of the above and the err fd; the ring is started then, not enabled. */
void driver_send_setup(const struct driver_ring *r, struct frontend *f);

/* ---- chains ---- */

/* Add a chain; the device does not see it yet. Return: its head. */
uint16_t driver_add(struct driver_ring *r, const struct driver_seg *segs, unsigned n,
		    uint64_t cookie);

/* The same through an indirect table, which the caller provides: 16 * n bytes at any address. */
uint16_t driver_add_indirect(struct driver_ring *r, const struct driver_seg *segs, unsigned n,
			     uint64_t cookie, uint64_t table_gpa);

/* Make any head number available in a split ring, as a hostile driver does; nothing is remembered
 * of it. */
void driver_add_raw(struct driver_ring *r, uint16_t head);

/* Write any descriptors, as one chain, into the next slots of a packed ring; only the flags that say
 * whose they are get added. Return: its id. */
uint16_t driver_add_descs(struct driver_ring *r, const struct vring_desc *descs, unsigned n);

/*
 * Offer a head that ruins the ring as such, behind those that are good: one beyond the ring; in a
 * packed one, a chain without end, which it is only while no slot before it comes back.
 */
void driver_ruin(struct driver_ring *r);

/* Take that back, for the next start. */
void driver_mend(struct driver_ring *r);

/* Show the device what was added. Return: whether it wants a kick for it. */
bool driver_publish(struct driver_ring *r);

/* Write the kick eventfd, wanted or not. */
void driver_kick_always(struct driver_ring *r);

/* Publish, and kick if that is wanted. Return: whether it was. */
bool driver_kick(struct driver_ring *r);

/* ---- coming back ---- */

/* Return: how many used elements wait. */
uint16_t driver_n_used(const struct driver_ring *r);

/* Take the next used element. Return: whether there was one. */
bool driver_take(struct driver_ring *r, struct driver_used *u);

/* Take the next used element, which must come within `ms`. */
void driver_wait(struct driver_ring *r, struct driver_used *u, unsigned ms);

/* Wait until `n` elements wait, without taking them. */
void driver_wait_n(struct driver_ring *r, uint16_t n, unsigned ms);

/* Copy what the device wrote into a chain, at most `cap` bytes. Return: how many. */
uint32_t driver_read(const struct driver_ring *r, const struct driver_used *u, void *dst,
		     uint32_t cap);

/* ---- interrupts ---- */

/* Ask for none. */
void driver_calls_off(struct driver_ring *r);

/* Ask for one at the next used element. Return: whether elements wait already. */
bool driver_calls_on(struct driver_ring *r);

/* With EVENT_IDX: ask for one when the used index passes `idx`; packed: within a lap of last_used. */
void driver_set_used_event(struct driver_ring *r, uint16_t idx);

/* Return: whether the device wants a kick for the next chain that it is shown. */
bool driver_kick_is_wanted(const struct driver_ring *r);

/* Take the calls that have come. Return: their number. */
uint64_t driver_take_calls(struct driver_ring *r);

/* Wait for a call and take it. Return: whether one came within `ms`. */
bool driver_wait_call(struct driver_ring *r, unsigned ms);

/* Return: how often the err eventfd was written since the last question. */
uint64_t driver_take_errs(struct driver_ring *r);

#endif
