/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker: the thread that serves one queue pair. It takes turns (turn.h) while there is work,
 * looks on for a window (window.h), and then sleeps in its event loop until a kick, the port, the
 * coalescing timer or the control thread wakes it.
 *
 * Before it sleeps it arms only what can end the wait: kicks of a queue that has been worked off,
 * readability of the port while the guest has buffers, writability after the port was full, the
 * timer while a call is put off (invariant 7). The timer wakes it a little early (lead.h), and it
 * looks on until the call is due.
 *
 * The control thread parks a worker to change anything of it: the worker ends its turn, says that
 * it rests, and touches nothing until it is unparked. Parks nest.
 */
#ifndef NET_WORKER_H
#define NET_WORKER_H

#include <ev.h>
#include <pthread.h>
#include <stdbool.h>

#include "net/lead.h"
#include "net/pair.h"
#include "net/window.h"

struct worker {
	struct pair pair;
	struct window window;
	struct lead lead;

	/* the thread and its loop */
	unsigned index;
	pthread_t thread;
	bool has_thread;
	bool is_stopping; /* set while parked */
	struct ev_loop *loop;
	ev_async wake;
	ev_io port_watch;
	int port_watch_fd; /* what port_watch is set to; -1: not started */
	int port_watch_events;
	ev_io timer_watch;
	int timer_fd;
	uint64_t timer_ns; /* what the timer is armed for; 0: disarmed */

	/* parking; the lock guards all three */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned n_parks; /* atomic: the worker looks at it between turns */
	bool is_parked;
};

/*
 * Prepare a worker and start its thread, with its queues stopped.
 * @cpu: to pin the thread to; -1: none
 * Return: 0; or a negative errno after a log line, with nothing left behind.
 */
int worker_start(struct worker *w, unsigned index, struct port_queue *port,
		 const struct port_ops *ops, const struct pair_params *params, int cpu);

/* End the thread; stop the queues and close their fds. Accepts a worker that was never started. */
void worker_stop(struct worker *w);

/* Make the worker rest; returns when it does, within one turn. Control thread only. */
void worker_park(struct worker *w);

/* Let it go on. */
void worker_unpark(struct worker *w);

/* Give a queue its kick eventfd (-1: none). Parked. Return: 0, -EPERM when it cannot be waited for
 * (it is closed then, and the old one stays). */
int worker_set_kick_fd(struct worker *w, struct queue *q, int fd);

#endif
