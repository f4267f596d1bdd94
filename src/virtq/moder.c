/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/moder.h"

#include "base/timer.h"

void moder_add(struct moder *m, uint32_t n, uint64_t now_ns)
{
	if (m->n_pending == 0)
		m->deadline_ns = now_ns + m->params.usecs * NS_PER_US;
	m->n_pending += n;
}

bool moder_due(const struct moder *m, uint64_t now_ns)
{
	return m->n_pending > 0 && (m->n_pending >= m->params.frames || now_ns >= m->deadline_ns);
}

void moder_clear(struct moder *m)
{
	m->n_pending = 0;
}

/* What is pending keeps its publish time. */
static void change_delay(struct moder *m, uint32_t usecs, uint32_t frames)
{
	if (m->n_pending > 0) {
		m->deadline_ns -= m->params.usecs * NS_PER_US;
		m->deadline_ns += usecs * NS_PER_US;
	}
	m->params.usecs = usecs;
	m->params.frames = frames;
}

void moder_learn(struct moder *m, uint32_t n, uint64_t now_ns)
{
	if (adapt_note(&m->adapt, n, now_ns))
		change_delay(m, adapt_level(&m->adapt)->usecs, adapt_level(&m->adapt)->frames);
}

void moder_set(struct moder *m, const struct moder_params *params)
{
	bool was_adaptive = m->params.is_adaptive;

	m->params.is_adaptive = params->is_adaptive;
	if (!params->is_adaptive) {
		change_delay(m, params->usecs, params->frames);
		return;
	}
	if (!was_adaptive)
		adapt_reset(&m->adapt);
	change_delay(m, adapt_level(&m->adapt)->usecs, adapt_level(&m->adapt)->frames);
}
