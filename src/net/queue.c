/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/timer.h"
#include "net/vnet_hdr.h"

void queue_init(struct queue *q, enum virtq_direction direction, const char *name,
		struct queue_stats *stats)
{
	virtq_init(&q->vq, direction);
	q->stats = stats;
	q->is_enabled = false;
	q->call_fd = q->err_fd = q->kick_fd = -1;
	snprintf(q->name, sizeof(q->name), "%s", name);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void queue_fini(struct queue *q)
{
	close_fd(&q->call_fd);
	close_fd(&q->err_fd);
	close_fd(&q->kick_fd);
}

/* A frontend's fd may block, or be no eventfd at all: a worker must not hang on it. The flag belongs
 * to the open file, which is the frontend's too, so is_ready() is asked before each use as well. */
static void set_nonblocking(int fd)
{
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static bool is_ready(int fd, short events)
{
	struct pollfd pfd = {.fd = fd, .events = events};

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & events);
}

/* A full counter has its reader's attention already, and a fd that takes no 8-byte write is its
 * owner's loss. */
static void notify(int fd)
{
	const uint64_t one = 1;
	ssize_t ignored = 0;

	if (fd >= 0 && is_ready(fd, POLLOUT))
		ignored = write(fd, &one, sizeof(one));
	(void)ignored;
}

static void call(struct queue *q)
{
	notify(q->call_fd);
	/* Frontends start a ring before they say where to call: the fd that comes gets this one. */
	q->is_call_owed = q->call_fd < 0;
	stat_add(q->stats, q->call_fd >= 0 ? STAT_calls : STAT_calls_suppressed, 1);
	moder_clear(&q->moder);
	virtq_called(&q->vq);
}

/* The guest looks by itself: nothing to tell it of. */
static void call_not(struct queue *q)
{
	stat_add(q->stats, STAT_calls_suppressed, 1);
	moder_clear(&q->moder);
	virtq_called(&q->vq);
}

void queue_publish(struct queue *q)
{
	uint16_t n = virtq_publish(&q->vq);

	if (n == 0)
		return;
	stat_add(q->stats, STAT_used_publishes, 1);
	if (q->moder.params.is_adaptive)
		moder_learn(&q->moder, n, clock_now_ns());
	if (!virtq_call_needed(&q->vq)) {
		call_not(q);
		return;
	}
	if (!moder_is_on(&q->moder)) {
		call(q);
		return;
	}

	uint64_t now_ns = clock_now_ns();

	moder_add(&q->moder, n, now_ns);
	if (moder_due(&q->moder, now_ns))
		call(q);
	else
		stat_add(q->stats, STAT_calls_coalesced, 1);
}

/* Decide again at the end of the delay: the guest may have begun to look by itself. */
static bool call_if_still_needed(struct queue *q)
{
	bool is_needed = virtq_call_needed(&q->vq);

	if (is_needed)
		call(q);
	else
		call_not(q);
	return is_needed;
}

bool queue_call_if_due(struct queue *q, uint64_t now_ns)
{
	if (!moder_due(&q->moder, now_ns) || !call_if_still_needed(q))
		return false;
	stat_add(q->stats, STAT_calls_timer, 1);
	return true;
}

bool queue_call_pending(struct queue *q)
{
	return q->moder.n_pending > 0 && call_if_still_needed(q);
}

/* Nothing may stay behind when the ring or its call fd changes. */
static void flush(struct queue *q)
{
	if (!virtq_is_live(&q->vq))
		return;
	queue_publish(q);
	queue_call_pending(q);
}

/* Say that the frontend's word was not taken for where the ring stands. */
static void log_position(const struct queue *q, uint32_t said)
{
	uint32_t base = virtq_base(&q->vq);

	if (q->vq.is_broken || virtq_stands_at(&q->vq, said))
		return;
	if (q->vq.is_packed)
		log_info("%s: resuming at slot %u, wrap bit %u; the frontend said slot %u, %u",
			 q->name, base & 0x7fff, base >> 15 & 1, said & 0x7fff, said >> 15 & 1);
	else
		log_info("%s: resuming at the ring's used index %u; the frontend said %u", q->name,
			 base, said);
}

int queue_start(struct queue *q, const struct virtq_setup *setup)
{
	bool was_started = q->vq.is_started;
	int err;

	flush(q);
	err = virtq_start(&q->vq, setup);
	if (err) {
		log_warn(err, "%s: the ring cannot start: its addresses or indices are wrong",
			 q->name);
		return err;
	}
	if (!was_started)
		log_position(q, setup->base);
	q->features = setup->features;
	q->hdr_len = vnet_hdr_len(setup->features);
	q->was_reported = false;
	moder_clear(&q->moder);
	/* A daemon before this one may have been killed between what it published and its call. */
	if (!virtq_is_at_start(&q->vq) || q->is_call_owed) {
		notify(q->call_fd);
		q->is_call_owed = q->call_fd < 0;
	}
	queue_report_broken(q);
	return 0;
}

uint32_t queue_stop(struct queue *q)
{
	flush(q);
	moder_clear(&q->moder);
	q->is_call_owed = false;
	return virtq_stop(&q->vq);
}

void queue_set_call_fd(struct queue *q, int fd)
{
	int old = q->call_fd;

	set_nonblocking(fd);
	q->call_fd = fd;
	flush(q);
	if (q->is_call_owed && fd >= 0) {
		notify(fd);
		q->is_call_owed = false;
		stat_add(q->stats, STAT_calls, 1);
	}
	close_fd(&old);
}

void queue_set_err_fd(struct queue *q, int fd)
{
	close_fd(&q->err_fd);
	set_nonblocking(fd);
	q->err_fd = fd;
}

/* Return: whether the kernel can wait for `fd`: a regular file is always ready, and would have its
 * watcher turn for ever. */
static bool can_wait_for(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	bool can = epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;

	close_fd(&epoll);
	return can;
}

int queue_set_kick_fd(struct queue *q, int fd)
{
	if (fd >= 0 && !can_wait_for(fd)) {
		close(fd);
		log_warnx("%s: the kick fd cannot be waited for: an eventfd is needed", q->name);
		return -EPERM;
	}
	close_fd(&q->kick_fd);
	set_nonblocking(fd);
	q->kick_fd = fd;
	return 0;
}

void queue_report_broken(struct queue *q)
{
	if (likely(!q->vq.is_broken) || q->was_reported)
		return;
	q->was_reported = true;
	moder_clear(&q->moder);
	stat_add(q->stats, STAT_ring_errors, 1);
	notify(q->err_fd);
	log_errx("%s: ring broken, queue stopped until the guest's driver sets it up again: %s",
		 q->name, q->vq.broken_why);
}

/* Read without waiting: another reader may have been faster. An eventfd can do that by itself; for what
 * cannot, ask before. */
static ssize_t read_at_once(int fd, void *data, size_t size)
{
	const struct iovec iov = {data, size};
	ssize_t len = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

	if (len >= 0 || errno != EOPNOTSUPP)
		return len;
	if (is_ready(fd, POLLIN | POLLHUP | POLLERR))
		return read(fd, data, size);
	errno = EAGAIN;
	return -1;
}

int queue_drain_kick(struct queue *q)
{
	uint64_t count;
	ssize_t len = read_at_once(q->kick_fd, &count, sizeof(count));

	if (len == (ssize_t)sizeof(count)) {
		stat_add(q->stats, STAT_kicks, 1);
		return 0;
	}
	return len < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -ENOTSUP;
}
