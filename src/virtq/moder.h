/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt moderation: when must the guest be told of completions that it waits for? Pure
 * arithmetic: no fd, no clock; the time is passed in. One for each virtqueue, used by its worker;
 * the parameters change only while the worker is parked.
 *
 * Invariant 4 of the contract: the deadline is that of the oldest completion that has not been
 * signalled, plus `usecs`; later completions never move it. `frames` completions end the wait
 * early. Both zero: every publish is due at once. With `is_adaptive` the two are chosen here, by the
 * rate of completions (adapt.h), and what was set for them rests.
 */
#ifndef VIRTQ_MODER_H
#define VIRTQ_MODER_H

#include <stdbool.h>
#include <stdint.h>

#include "virtq/adapt.h"

#define MODER_MAX_USECS	 10000
#define MODER_MAX_FRAMES 1024

struct moder_params {
	uint32_t usecs;	 /* 0..MODER_MAX_USECS */
	uint32_t frames; /* 0..MODER_MAX_FRAMES; zero exactly when `usecs` is */
	bool is_adaptive;
};

struct moder {
	struct moder_params params; /* in force: usecs and frames may be chosen ones */
	struct adapt adapt;	    /* of use with params.is_adaptive */
	uint32_t n_pending;	    /* completions that the guest has not been told of */
	uint64_t deadline_ns;	    /* valid while n_pending > 0 */
};

/* Learn from `n` > 0 completions that were published at `now_ns`, whether or not the guest wants to
 * hear of them. Adaptive only. */
void moder_learn(struct moder *m, uint32_t n, uint64_t now_ns);

/* Count `n` > 0 completions that were published at `now_ns` and that the guest wants to hear of. */
void moder_add(struct moder *m, uint32_t n, uint64_t now_ns);

/* Return: whether what is pending must be signalled at `now_ns`. Nothing pending: false. */
bool moder_due(const struct moder *m, uint64_t now_ns);

/* Nothing is pending any more: the call was sent, or the guest wants none. */
void moder_clear(struct moder *m);

/* Return: whether a wait is possible at all. */
static inline bool moder_is_on(const struct moder *m)
{
	return m->params.usecs != 0;
}

/* Take new parameters; what is pending is judged by them from its own publish time on. */
void moder_set(struct moder *m, const struct moder_params *params);

#endif
