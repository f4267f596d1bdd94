/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bursts of reads and writes on a tap: one io_uring submission for a whole burst, or plain read
 * and writev where the host forbids io_uring. Used by the worker of one queue; never blocks: every
 * operation is of the NOWAIT kind and has ended when the burst returns, so nothing is outstanding
 * between bursts and no buffer is in use when a queue stops.
 *
 * Writes stay in order: while the tap can say EAGAIN (`is_ordered`, a limited send buffer) they are
 * linked, so that the first failure keeps back all that follow.
 */
#ifndef PORT_TAP_IO_H
#define PORT_TAP_IO_H

#include <liburing.h>
#include <stdbool.h>
#include <sys/uio.h>

struct tap_io {
	struct io_uring ring;
	bool has_ring;
	bool is_ordered;
	int fd; /* the tap; the caller's */
};

struct tap_op {
	const struct iovec *iov;
	unsigned n_iov;
	int res; /* out: bytes, or a negative errno; -ECANCELED: not tried */
};

/* Largest number of operations in a burst. */
#define TAP_IO_MAX_OPS 256

/* Prepare for `fd`. Falls back to plain calls, with one warning per process, without io_uring. */
void tap_io_init(struct tap_io *io, int fd, bool is_ordered);

/* Release the ring. Accepts one that has none. */
void tap_io_fini(struct tap_io *io);

/*
 * Read one frame into each op, in their order. An op that found none (-EAGAIN) does not keep the
 * next one from finding one that has come in the meantime: look at all of them.
 * Return: how many ops hold a frame.
 */
unsigned tap_io_read(struct tap_io *io, struct tap_op *ops, unsigned n);

/* Write the ops; each one's `res` says what became of it. */
void tap_io_write(struct tap_io *io, struct tap_op *ops, unsigned n);

#endif
