/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of vring-bench.
 */
#ifndef VRING_BENCH_OPTIONS_H
#define VRING_BENCH_OPTIONS_H

#include "vring.h"

struct options {
	struct setting setting, other;
	bool has_other; /* --vs: the two are compared in alternation */
	bool is_single, is_csv;
	unsigned rounds, ms;
	unsigned packets; /* single: so many, instead of a time; 0: no */
};

/* Take the command line. Ends the process for --help and, with a line on stderr, for what is wrong. */
void options_take(struct options *o, int argc, char *argv[]);

#endif
