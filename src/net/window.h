/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a worker goes on looking for work before it sleeps: as long as `poll { usecs }` says,
 * and in any case for a moment, unless that has not paid of late. Sleeping and being woken costs
 * the worker some microseconds, and the guest a kick; a guest that is about to send its next burst
 * is better waited for. Moments that brought work earn credit, and with it longer ones; those that
 * brought none cost four times as much. Without credit, twice as many sleeps follow each vain moment
 * without one as did before, so an idle or slow guest costs next to nothing.
 *
 * Pure arithmetic: the time is passed in. Owned by the worker's thread.
 */
#ifndef NET_WINDOW_H
#define NET_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct window {
	uint64_t since_ns; /* of the first look that found nothing; 0: the last one found work */
	uint64_t until_ns;
	bool is_trial;	  /* this window holds the moment that must pay */
	uint32_t credit;  /* 0..WINDOW_MAX_CREDIT */
	uint32_t n_skips; /* sleeps without a trial that the last vain one led to; 2^k - 1 */
	uint32_t n_left;  /* sleeps until the next trial */
};

/* The moment without credit, in ns; as much again for each four of credit. */
#define WINDOW_TRIAL_NS	  5000
#define WINDOW_MAX_CREDIT 16
#define WINDOW_LOSS	  4
/* The most sleeps without a moment. */
#define WINDOW_MAX_SKIPS 63

/* A look found work. */
void window_note_work(struct window *w);

/*
 * A look found nothing.
 * @poll_ns: the configured window
 * Return: whether to look again; false: sleep, the next look opens a new window.
 */
bool window_is_open(struct window *w, uint64_t poll_ns, uint64_t now_ns);

#endif
