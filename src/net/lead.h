/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much before its time a worker must ask to be woken, so that it is awake when the time comes. A
 * processor that has gone to sleep takes a while to come back, in a virtual machine more than a
 * delayed call may be late. The lead follows what the timer has been late of late, up to where three
 * of four times it was earlier than that; the rest of the way the worker looks on. It never looks on
 * for more than half of a delay: most of a short one would be gone with looking otherwise.
 *
 * Pure arithmetic: the time is passed in. Owned by the worker's thread.
 */
#ifndef NET_LEAD_H
#define NET_LEAD_H

#include <stdint.h>

#define LEAD_MAX_NS 60000u

struct lead {
	uint32_t ns; /* 0..LEAD_MAX_NS */
};

/* The timer woke the worker `late_ns` after the time that it was armed for. */
void lead_note(struct lead *l, uint64_t late_ns);

/* Return: when to be woken for a call at `deadline_ns` that was put off by `delay_ns`. */
uint64_t lead_wake_ns(const struct lead *l, uint64_t deadline_ns, uint64_t delay_ns);

#endif
