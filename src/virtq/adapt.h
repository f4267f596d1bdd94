/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which interrupt moderation pays (`coalesce { adaptive-rx }`): a climb over a few levels, from none to
 * long delays, led by the rate of completions alone. Traffic that comes anyway, like a stream or a
 * flood, keeps its rate when its interrupts are fewer: the climb goes on. Traffic that waits for the
 * answer, like one request after the other, gets slower with every delay: the step is taken back, and
 * the next one is tried only after twice as long. Every now and then a step down is tried, and kept if
 * the rate is higher there. A rate below that of a busy guest means no delay at all.
 *
 * Pure arithmetic: completions are counted in periods of a fixed length, the time is passed in. One for
 * each virtqueue, used by its worker.
 */
#ifndef VIRTQ_ADAPT_H
#define VIRTQ_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

/* A period, ns: some ms, in which a rate shows. */
#define ADAPT_PERIOD_NS (4ULL << 20)
/* Completions in a period below which nothing is delayed: 24000 in a second. */
#define ADAPT_MIN_COUNT 100
#define ADAPT_N_LEVELS	6

enum adapt_phase { ADAPT_STAYS, ADAPT_TRIES_UP, ADAPT_TRIES_DOWN };

struct adapt {
	enum adapt_phase phase;
	unsigned level;	    /* 0: no delay */
	uint64_t end_ns;    /* of this period; 0: none has begun */
	uint32_t count;	    /* completions in it */
	uint32_t reference; /* completions in the period before the step, or at rest */
	unsigned patience;  /* periods from a step that did not pay to the next one; 2^k */
	unsigned wait;	    /* periods until the next step up... */
	unsigned n_stays;   /* ...and since the last step down */
};

struct adapt_level {
	uint32_t usecs, frames;
};

/* Start anew, without delay. */
void adapt_reset(struct adapt *a);

/* Count `n` completions at `now_ns`. Return: whether the level has changed. */
bool adapt_note(struct adapt *a, uint32_t n, uint64_t now_ns);

/* Return: the delay to use now; both zero for none. */
const struct adapt_level *adapt_level(const struct adapt *a);

#endif
