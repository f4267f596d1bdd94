/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can be set for each queue pair, and changes while it runs. Units end here: everything is
 * checked before it gets into these structs.
 */
#ifndef NET_PARAMS_H
#define NET_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "virtq/moder.h"

#define PARAMS_MIN_BATCH      1
#define PARAMS_MAX_BATCH      256
#define PARAMS_MAX_POLL_USECS 10000
#define PARAMS_MAX_COPY_BREAK 4096

struct pair_params {
	struct moder_params rx, tx; /* interrupt coalescing of each direction */
	bool tx_at_rx;		    /* pending TX completions ride on an RX interrupt */
	uint32_t batch;		    /* packets per burst, used entries per publish... */
	uint32_t publish;	    /* ...towards the guest so many, if not 0: for benchmarks */
	uint32_t poll_usecs;	    /* how long a worker looks before it sleeps */
	uint32_t copy_break;	    /* bytes: frames up to it are copied in line; 0: built-in */
};

#endif
