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

void moder_set(struct moder *m, const struct moder_params *params)
{
	if (m->n_pending > 0) {
		m->deadline_ns -= m->params.usecs * NS_PER_US;
		m->deadline_ns += params->usecs * NS_PER_US;
	}
	m->params = *params;
}
