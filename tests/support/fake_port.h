/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port in the hands of a test: frames wait in it until they are taken, and what the guest sends
 * is copied when the port is done with it, which is when the test says. It insists on what port.h
 * promises: nothing is released that was not shown, headers are whole, lengths add up.
 */
#ifndef SUPPORT_FAKE_PORT_H
#define SUPPORT_FAKE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "net/vnet_hdr.h"
#include "port/port.h"

#define FAKE_MAX_FRAMES 1024
#define FAKE_MAX_SEGS	4
/* From this length on the next frame is large, after one that left by rx_into. */
#define FAKE_LARGE 4000

/* A frame that waits for the guest, or one that the guest has sent. */
struct fake_frame {
	vnet_hdr hdr;
	char *data;
	uint32_t len;
	struct iovec iov[1 + FAKE_MAX_SEGS];
};

struct fake_port {
	struct port_queue base;

	/* towards the guest: the test's frames n_released to n_pushed - 1 wait */
	struct fake_frame rx[FAKE_MAX_FRAMES];
	unsigned n_pushed, n_released, n_shown;
	unsigned n_direct; /* how many of them left by rx_into */
	unsigned n_segs;   /* each frame's data is shown in that many; 0: 1 */

	/* from the guest: n_reported <= n_finished <= n_taken */
	struct frame held[FAKE_MAX_FRAMES]; /* n_finished to n_taken - 1 */
	struct fake_frame sent[FAKE_MAX_FRAMES];
	unsigned n_taken, n_finished, n_reported;
	unsigned n_sent;     /* finished without those that were dropped */
	unsigned room;	     /* it takes that many more, and is full then */
	unsigned drop_every; /* every n-th that it takes is dropped; 0: none */
	bool holds;	     /* it is done with a frame by fake_port_finish() only */
	bool is_canceled;
};

/* rx_into is there only in the second one. */
extern const struct port_ops fake_port_ops, fake_port_direct_ops;

/* An empty port without end of room. */
void fake_port_init(struct fake_port *f);

void fake_port_fini(struct fake_port *f);

/* Have a frame wait for the guest. @h: NULL: an empty header */
void fake_port_push(struct fake_port *f, const vnet_hdr *h, uint32_t len, unsigned seed);

/* Return: frames that wait. */
unsigned fake_port_n_waiting(const struct fake_port *f);

/* Be done with the oldest `n` frames that it holds. */
void fake_port_finish(struct fake_port *f, unsigned n);

/* Return: the i-th frame that was sent; its data must be the pattern. */
const struct fake_frame *fake_port_sent(const struct fake_port *f, unsigned i, uint32_t len,
					unsigned seed);

/* Write, and insist on, the bytes of a frame: another `seed` gives other ones. */
void fake_pattern_fill(char *to, uint32_t len, unsigned seed);
void fake_pattern_check(const char *from, uint32_t len, unsigned seed);

#endif
