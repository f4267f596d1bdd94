/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/tap_io.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"

static void warn_once(int err, const char *why)
{
	static bool was_warned;

	/* Queues are opened one after the other, by the control thread. */
	if (!was_warned)
		log_warn(err, "tap: %s: using plain reads and writes", why);
	was_warned = true;
}

/* Before Linux 6.4 a tap does not know of NOWAIT operations, without which io_uring would wait for
 * it in threads of the kernel's, one frame each and in no order. */
static bool can_nowait(int fd)
{
	char byte = 0;
	struct iovec iov = {&byte, sizeof(byte)};

	/* Too short for a frame, so nothing is sent, whatever the answer is. */
	return pwritev2(fd, &iov, 1, -1, RWF_NOWAIT) >= 0 || errno != EOPNOTSUPP;
}

void tap_io_init(struct tap_io *io, int fd, bool is_ordered)
{
	int err;

	io->fd = fd;
	io->is_ordered = is_ordered;
	io->has_ring = false;
	if (!can_nowait(fd)) {
		warn_once(EOPNOTSUPP, "no io_uring on taps before Linux 6.4");
		return;
	}
	err = io_uring_queue_init(TAP_IO_MAX_OPS, &io->ring, IORING_SETUP_SUBMIT_ALL);
	if (err)
		warn_once(err,
			  "no io_uring here (kernel.io_uring_disabled, or a container's filter)");
	io->has_ring = err == 0;
}

void tap_io_fini(struct tap_io *io)
{
	if (io->has_ring)
		io_uring_queue_exit(&io->ring);
	io->has_ring = false;
}

/* Submit what is prepared, `n` operations, and let each result find its op. */
static void run(struct tap_io *io, struct tap_op *ops, unsigned n)
{
	struct io_uring_cqe *cqe;
	unsigned head, n_done = 0;

	while (n_done < n) {
		int ret = io_uring_submit_and_wait(&io->ring, n - n_done);

		if (ret < 0 && ret != -EINTR && ret != -EAGAIN && ret != -EBUSY)
			break;

		unsigned n_seen = 0;

		io_uring_for_each_cqe(&io->ring, head, cqe)
		{
			ops[io_uring_cqe_get_data64(cqe)].res = cqe->res;
			n_seen++;
		}
		io_uring_cq_advance(&io->ring, n_seen);
		n_done += n_seen;
	}
}

static void read_ring(struct tap_io *io, struct tap_op *ops, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&io->ring);

		io_uring_prep_read(sqe, io->fd, ops[i].iov->iov_base, (unsigned)ops[i].iov->iov_len,
				   0);
		sqe->rw_flags = RWF_NOWAIT;
		io_uring_sqe_set_data64(sqe, i);
		ops[i].res = -ECANCELED;
	}
	run(io, ops, n);
}

static void read_plain(struct tap_io *io, struct tap_op *ops, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ops[i].res = -ECANCELED;
	for (unsigned i = 0; i < n; i++) {
		ssize_t len = readv(io->fd, ops[i].iov, 1);

		ops[i].res = len < 0 ? -errno : (int)len;
		if (len < 0)
			break;
	}
}

unsigned tap_io_read(struct tap_io *io, struct tap_op *ops, unsigned n)
{
	unsigned n_read = 0;

	if (io->has_ring)
		read_ring(io, ops, n);
	else
		read_plain(io, ops, n);
	for (unsigned i = 0; i < n; i++)
		n_read += ops[i].res >= 0;
	return n_read;
}

static void write_ring(struct tap_io *io, struct tap_op *ops, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&io->ring);

		io_uring_prep_writev(sqe, io->fd, ops[i].iov, ops[i].n_iov, 0);
		if (io->is_ordered && i + 1 < n)
			sqe->flags |= IOSQE_IO_LINK;
		sqe->rw_flags = RWF_NOWAIT;
		io_uring_sqe_set_data64(sqe, i);
		ops[i].res = -ECANCELED;
	}
	run(io, ops, n);
}

static void write_plain(struct tap_io *io, struct tap_op *ops, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ops[i].res = -ECANCELED;
	for (unsigned i = 0; i < n; i++) {
		ssize_t len = writev(io->fd, ops[i].iov, (int)ops[i].n_iov);

		ops[i].res = len < 0 ? -errno : (int)len;
		if (len < 0)
			break;
	}
}

void tap_io_write(struct tap_io *io, struct tap_op *ops, unsigned n)
{
	if (io->has_ring)
		write_ring(io, ops, n);
	else
		write_plain(io, ops, n);
}
