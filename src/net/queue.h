/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a queue pair: a virtqueue, the eventfds that belong to it, and its interrupt
 * moderation. Bursts use it in the worker; everything that changes it runs in the control thread
 * while that worker is parked.
 *
 * Here a decision becomes a system call: a call is an eventfd written, a broken ring is an err
 * eventfd written and one log line.
 */
#ifndef NET_QUEUE_H
#define NET_QUEUE_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/stats.h"
#include "virtq/moder.h"
#include "virtq/virtq.h"

struct queue {
	struct virtq vq;
	struct moder moder;
	struct queue_stats *stats;
	uint64_t features; /* negotiated when it was started */
	uint32_t hdr_len;  /* bytes of the guest's virtio-net header, by these features */
	bool is_enabled;
	bool was_reported; /* the log has a line on this broken ring */
	bool is_call_owed; /* a call was due while there was no fd for it */
	int call_fd;	   /* -1: the guest wants no calls */
	int err_fd;	   /* -1: none */
	int kick_fd;	   /* -1: the guest never kicks, the worker must look */
	ev_io kick_watch;  /* in the worker's loop while kick_fd >= 0 */
	char name[16];	   /* "q1.tx", for the log */
};

/* Prepare a stopped queue. @name: copied; @stats: the pair's */
void queue_init(struct queue *q, enum virtq_direction direction, const char *name,
		struct queue_stats *stats);

/* Close the fds of a stopped queue. */
void queue_fini(struct queue *q);

/*
 * Start the ring, or translate a running one's addresses again; what is pending is signalled first.
 * Where the frontend thinks that the ring stands is in `setup`; the ring itself knows better
 * (invariant 5).
 * Return: 0 or a negative errno (virtq_start), after a log line; the ring is stopped then.
 */
int queue_start(struct queue *q, const struct virtq_setup *setup);

/* Stop the ring; what is pending is signalled first. Return: the base to resume from. */
uint32_t queue_stop(struct queue *q);

/* Replace the call eventfd (-1: none), which is ours from now on; a pending or owed call goes to it. */
void queue_set_call_fd(struct queue *q, int fd);

/* Replace the err eventfd (-1: none), which is ours from now on. */
void queue_set_err_fd(struct queue *q, int fd);

/*
 * Replace the kick eventfd (-1: none), which is ours from now on. Its watch is the caller's.
 * Return: 0; -EPERM when it cannot be waited for, after a log line: it is closed, the old one stays.
 */
int queue_set_kick_fd(struct queue *q, int fd);

/* Publish what is complete, and call the guest or put it off. At the end of every burst. */
void queue_publish(struct queue *q);

/* Call the guest for what was put off, if its time has come. Return: whether a call was sent. */
bool queue_call_if_due(struct queue *q, uint64_t now_ns);

/* Call the guest now if anything is put off. Return: whether a call was sent. */
bool queue_call_pending(struct queue *q);

/* Write the err eventfd and a log line, once, if the ring has broken. */
void queue_report_broken(struct queue *q);

/* Read the kick eventfd empty. Return: 0; -ENOTSUP when it is none and must not be waited for. */
int queue_drain_kick(struct queue *q);

#endif
