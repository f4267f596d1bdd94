/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/lead.h"

#include "base/util.h"

/* Up three times as fast as down: at rest where one of four is later. */
#define STEP_UP_NS   1500u
#define STEP_DOWN_NS 500u

void lead_note(struct lead *l, uint64_t late_ns)
{
	if (late_ns > l->ns)
		l->ns = min_of(l->ns + STEP_UP_NS, LEAD_MAX_NS);
	else
		l->ns -= min_of(l->ns, STEP_DOWN_NS);
}

uint64_t lead_wake_ns(const struct lead *l, uint64_t deadline_ns, uint64_t delay_ns)
{
	return deadline_ns - min_of((uint64_t)l->ns, delay_ns / 2);
}
