/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt moderation: when must the guest be told of completions that it waits for? Pure
 * arithmetic: no fd, no clock; the time is passed in. One for each virtqueue, used by its worker;
 * the parameters change only while the worker is parked.
 *
 * Invariant 4 of the contract: the deadline is that of the oldest completion that has not been
 * signalled, plus `usecs`; later completions never move it. `frames` completions end the wait
 * early. Both zero: every publish is due at once.
 */
#ifndef VIRTQ_MODER_H
#define VIRTQ_MODER_H

#include <stdbool.h>
#include <stdint.h>

#define MODER_MAX_USECS	 10000
#define MODER_MAX_FRAMES 1024

struct moder_params {
	uint32_t usecs;	 /* 0..MODER_MAX_USECS */
	uint32_t frames; /* 0..MODER_MAX_FRAMES; zero exactly when `usecs` is */
};

struct moder {
	struct moder_params params;
	uint32_t n_pending;   /* completions that the guest has not been told of */
	uint64_t deadline_ns; /* valid while n_pending > 0 */
};

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
