/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair without its worker: the test calls the bursts itself. On one side the guest's two
 * rings, on the other side a port. After each test the contract's sums are checked: what left the
 * port was delivered or dropped, what left the guest was sent or dropped.
 */
#ifndef SUPPORT_BURSTS_H
#define SUPPORT_BURSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/pair.h"
#include "net/turn.h"
#include "support/fake_port.h"
#include "support/fds.h"
#include "support/ring.h"

struct bursts {
	struct ring_guest guest;
	struct ring rx, tx; /* the driver's sides */
	struct fake_port fake;
	struct port port; /* a real one; without operations: the fake is used */
	struct pair *pair;
	struct log_capture lines;
};

extern struct bursts bx;

/* Before and after each test. */
void bursts_setup(void);
void bursts_teardown(void);

/* Start and enable both rings, of shape `shape`, with the fake port. */
void bursts_start(int shape, uint64_t features);

/* The same with a real port. */
void bursts_start_port(int shape, uint64_t features, const struct port_config *cfg);

/* Stop a ring as the device does, and start it again. */
void bursts_stop_rx(void);
void bursts_stop_tx(void);
void bursts_restart_rx(void);
void bursts_restart_tx(void);

uint64_t bursts_stat(enum queue_counter which);

/* ---- the guest ---- */

/*
 * Offer a frame to be sent, for the device to see: header, then `len` bytes of pattern `seed`.
 * @h: NULL: an empty header
 * @cuts: lengths of the first buffers; one more takes the rest
 */
void bursts_send(const vnet_hdr *h, uint32_t len, unsigned seed, const uint32_t *cuts,
		 unsigned n_cuts);

/* Take back one head that was sent, whose length must be 0. Return: whether there was one. */
bool bursts_take_sent(void);

/* Take back exactly `n` heads that were sent. */
void bursts_take_sent_n(unsigned n);

/* Offer `n` receive chains of one buffer each. */
void bursts_offer(uint32_t len, unsigned n);

/* Offer one receive chain of several buffers. */
void bursts_offer_lens(const uint32_t *lens, unsigned n);

/* Take a frame that was received, in as many chains as its header says; it must be the pattern.
 * Return: its header. */
vnet_hdr bursts_receive(uint32_t len, unsigned seed);

/* Nothing has been received that was not taken. */
void bursts_expect_quiet(void);

/* Take the next receive chain, which must come back empty. */
void bursts_receive_empty(void);

#endif
