/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/window.h"

#include "base/util.h"

static void open_window(struct window *w, uint64_t poll_ns, uint64_t now_ns)
{
	uint64_t ns = poll_ns;

	w->is_trial = w->n_left == 0;
	if (w->is_trial)
		ns = max_of(ns, (uint64_t)WINDOW_TRIAL_NS * (1 + w->credit / WINDOW_LOSS));
	else
		w->n_left--;
	w->since_ns = now_ns;
	w->until_ns = now_ns + ns;
}

void window_note_work(struct window *w)
{
	if (likely(w->since_ns == 0))
		return;
	w->since_ns = 0;
	if (!w->is_trial)
		return;
	w->n_skips = 0;
	w->credit = min_of(w->credit + 1, (uint32_t)WINDOW_MAX_CREDIT);
}

/* The moment has brought nothing. */
static void pay_for_trial(struct window *w)
{
	if (w->credit >= WINDOW_LOSS) {
		w->credit -= WINDOW_LOSS;
		return;
	}
	w->credit = 0;
	w->n_skips = min_of(2 * w->n_skips + 1, (uint32_t)WINDOW_MAX_SKIPS);
	w->n_left = w->n_skips;
}

bool window_is_open(struct window *w, uint64_t poll_ns, uint64_t now_ns)
{
	if (w->since_ns == 0)
		open_window(w, poll_ns, now_ns);
	if (now_ns < w->until_ns)
		return true;
	w->since_ns = 0;
	if (w->is_trial)
		pay_for_trial(w);
	return false;
}
