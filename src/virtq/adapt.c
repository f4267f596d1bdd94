/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/adapt.h"

#include "base/util.h"

#define MAX_PATIENCE 256
/* Periods at one level after which a lower one is tried. */
#define STAYS_BEFORE_DOWN 128

/* Frames: a quarter of a ring of 256, so that a guest without buffers is no consequence. */
static const struct adapt_level levels[ADAPT_N_LEVELS] = {
	{0, 0}, {8, 64}, {16, 64}, {32, 64}, {64, 64}, {128, 64},
};

void adapt_reset(struct adapt *a)
{
	*a = (struct adapt){.patience = 1, .wait = 1};
}

const struct adapt_level *adapt_level(const struct adapt *a)
{
	return &levels[a->level];
}

/* A rate this much lower is no accident: an eighth at least. */
static bool is_worse(uint32_t count, uint32_t reference)
{
	return count < reference - reference / 8;
}

static void rest(struct adapt *a, unsigned wait)
{
	a->phase = ADAPT_STAYS;
	a->wait = wait;
}

static void lose_patience(struct adapt *a)
{
	a->patience = min_of(2 * a->patience, MAX_PATIENCE + 0u);
}

static void judge_step_up(struct adapt *a)
{
	if (is_worse(a->count, a->reference)) {
		a->level--;
		lose_patience(a);
		rest(a, a->patience);
		return;
	}
	a->patience = 1;
	rest(a, 1);
}

static void judge_step_down(struct adapt *a)
{
	if (is_worse(a->reference, a->count)) {
		/* The delay had slowed it down: none of the kind for a good while. */
		a->patience = MAX_PATIENCE;
		rest(a, MAX_PATIENCE);
		return;
	}
	a->level++;
	rest(a, a->patience);
}

static void stay_or_step(struct adapt *a)
{
	/* Half of the rate is another load: learn anew. */
	if (a->count < a->reference / 2) {
		adapt_reset(a);
		return;
	}
	a->reference = a->count;
	if (a->level > 0 && ++a->n_stays >= STAYS_BEFORE_DOWN) {
		a->n_stays = 0;
		a->level--;
		a->phase = ADAPT_TRIES_DOWN;
		return;
	}
	if (a->wait > 0)
		a->wait--;
	if (a->wait > 0 || a->level + 1 == ADAPT_N_LEVELS)
		return;
	a->level++;
	a->phase = ADAPT_TRIES_UP;
}

/* Too few to be worth a delay, perhaps because of one. What has not paid is not forgotten over a pause. */
static void give_up(struct adapt *a)
{
	if (a->phase == ADAPT_TRIES_UP)
		lose_patience(a);
	a->level = 0;
	rest(a, a->patience);
}

static void end_period(struct adapt *a)
{
	if (a->count < ADAPT_MIN_COUNT) {
		give_up(a);
		return;
	}
	switch (a->phase) {
	case ADAPT_STAYS:
		stay_or_step(a);
		return;
	case ADAPT_TRIES_UP:
		judge_step_up(a);
		return;
	case ADAPT_TRIES_DOWN:
		judge_step_down(a);
		return;
	}
}

bool adapt_note(struct adapt *a, uint32_t n, uint64_t now_ns)
{
	unsigned before = a->level;

	if (likely(now_ns < a->end_ns)) {
		a->count += n;
		return false;
	}
	/* Nothing was counted for a whole period beyond this one: a pause, whatever was before. */
	if (now_ns - a->end_ns >= ADAPT_PERIOD_NS)
		a->count = 0;
	if (a->end_ns != 0)
		end_period(a);
	a->end_ns = now_ns + ADAPT_PERIOD_NS;
	a->count = n;
	return a->level != before;
}
