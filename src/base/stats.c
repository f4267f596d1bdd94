/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/stats.h"

static const struct {
	const char *name;
	const char *help;
} counters[] = {
#define X(name, help) [STAT_##name] = {#name, help},
	QUEUE_COUNTERS(X)
#undef X
};

uint64_t stat_read(const struct queue_stats *stats, enum queue_counter counter)
{
	return __atomic_load_n(&stats->value[counter], __ATOMIC_RELAXED);
}

const char *stat_name(enum queue_counter counter)
{
	return counters[counter].name;
}

const char *stat_help(enum queue_counter counter)
{
	return counters[counter].help;
}
