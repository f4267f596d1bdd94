/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/timer.h"
#include "net/turn.h"

/* ---- what wakes a worker ---- */

static void on_wake(struct ev_loop *loop, ev_async *watch, int events)
{
	(void)loop;
	(void)watch;
	(void)events;
}

static void on_kick(struct ev_loop *loop, ev_io *watch, int events)
{
	struct queue *q = watch->data;

	(void)events;
	if (queue_drain_kick(q) == 0)
		return;
	ev_io_stop(loop, watch);
	log_warnx("%s: the kick fd is no eventfd, or at its end: not waiting for it any more",
		  q->name);
}

static void on_port(struct ev_loop *loop, ev_io *watch, int events)
{
	struct worker *w = watch->data;

	(void)loop;
	if (events & EV_WRITE)
		w->pair.port->tx_full = false;
}

static void on_timer(struct ev_loop *loop, ev_io *watch, int events)
{
	struct worker *w = watch->data;
	uint64_t n_expired;
	ssize_t ignored = read(w->timer_fd, &n_expired, sizeof(n_expired));

	(void)loop;
	(void)events;
	(void)ignored;
	if (w->timer_ns != 0)
		lead_note(&w->lead, clock_now_ns() - w->timer_ns);
	w->timer_ns = 0;
}

/* ---- going to sleep ---- */

/* Ask for kicks where only a kick can bring work. Return: false when work came in the meantime. */
static bool arm_kicks(struct worker *w)
{
	if (virtq_is_live(&w->pair.tx.vq) && !w->pair.port->tx_full &&
	    virtq_kicks_on(&w->pair.tx.vq))
		return false;
	return !(virtq_is_live(&w->pair.rx.vq) && w->pair.rx.is_enabled && w->pair.rx_is_starved &&
		 virtq_kicks_on(&w->pair.rx.vq));
}

static void arm_port(struct worker *w)
{
	bool wants_frames =
		virtq_is_live(&w->pair.rx.vq) && w->pair.rx.is_enabled && !w->pair.rx_is_starved;
	bool wants_room = w->pair.port->tx_full && w->pair.port->retry_us == 0;
	int events = (wants_frames ? EV_READ : 0) | (wants_room ? EV_WRITE : 0);
	int fd = events ? w->pair.port->fd : -1;

	if (fd == w->port_watch_fd && (fd < 0 || events == w->port_watch_events))
		return;
	ev_io_stop(w->loop, &w->port_watch);
	w->port_watch_fd = fd;
	w->port_watch_events = events;
	if (fd < 0)
		return;
	ev_io_set(&w->port_watch, fd, events);
	ev_io_start(w->loop, &w->port_watch);
}

/* Return: when to be awake for the call that is put off, if one is; else UINT64_MAX. */
static uint64_t call_wake_ns(const struct worker *w, const struct moder *m)
{
	if (m->n_pending == 0)
		return UINT64_MAX;
	return lead_wake_ns(&w->lead, m->deadline_ns, m->params.usecs * NS_PER_US);
}

static uint64_t next_wake_ns(const struct worker *w)
{
	return min_of(call_wake_ns(w, &w->pair.rx.moder), call_wake_ns(w, &w->pair.tx.moder));
}

/* Whether a call is so near that it is not worth to sleep, or too late for that. */
static bool is_call_near(const struct worker *w)
{
	uint64_t ns = next_wake_ns(w);

	return ns != UINT64_MAX && clock_now_ns() >= ns;
}

static uint64_t next_deadline(const struct worker *w)
{
	uint64_t ns = next_wake_ns(w);

	if (w->pair.port->retry_us > 0)
		ns = min_of(ns, clock_now_ns() + w->pair.port->retry_us * NS_PER_US);
	return ns == UINT64_MAX ? 0 : ns;
}

static void arm_timer(struct worker *w)
{
	uint64_t ns = next_deadline(w);

	if (ns == w->timer_ns)
		return;
	if (ns == 0)
		timer_disarm(w->timer_fd);
	else
		timer_arm_at(w->timer_fd, ns);
	w->timer_ns = ns;
}

/* A frontend that gave no kick fd never kicks: its rings must be looked at. */
static bool must_poll(const struct worker *w)
{
	return (virtq_is_live(&w->pair.tx.vq) && w->pair.tx.kick_fd < 0) ||
	       (virtq_is_live(&w->pair.rx.vq) && w->pair.rx.kick_fd < 0 && w->pair.rx_is_starved);
}

/* Has a full port got room? A worker that is kept busy otherwise must ask, as it never sleeps. */
static void look_at_full_port(struct worker *w)
{
	if (w->pair.port->retry_us > 0) {
		w->pair.port->tx_full = false;
		return;
	}
	if (w->pair.port->fd < 0)
		return;
	arm_port(w);
	ev_run(w->loop, EVRUN_NOWAIT);
}

static void rest(struct worker *w)
{
	if (must_poll(w) || !arm_kicks(w))
		return;
	arm_port(w);
	arm_timer(w);
	ev_run(w->loop, EVRUN_ONCE);
	stat_add(&w->pair.stats, STAT_wakeups, 1);
}

/* ---- the thread ---- */

static bool is_park_wanted(const struct worker *w)
{
	return __atomic_load_n(&w->n_parks, __ATOMIC_ACQUIRE) > 0;
}

static void stay_parked(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->is_parked = true;
	pthread_cond_broadcast(&w->changed);
	while (is_park_wanted(w))
		pthread_cond_wait(&w->changed, &w->lock);
	w->is_parked = false;
	pthread_mutex_unlock(&w->lock);
}

static bool is_window_open(struct worker *w)
{
	return window_is_open(&w->window, w->pair.params.poll_usecs * NS_PER_US, clock_now_ns());
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	char name[16];

	snprintf(name, sizeof(name), "worker%u", w->index);
	prctl(PR_SET_NAME, name);
	/* Timers of 10 us are of no use with the kernel's usual slack of 50. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	for (;;) {
		/* It takes the event that asks to park, so the question comes after it. */
		if (unlikely(w->pair.port->tx_full))
			look_at_full_port(w);
		if (is_park_wanted(w)) {
			stay_parked(w);
			if (w->is_stopping)
				return NULL;
		}
		if (turn(&w->pair))
			window_note_work(&w->window);
		else if (!is_call_near(w) && !is_window_open(w))
			rest(w);
	}
}

void worker_park(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	__atomic_add_fetch(&w->n_parks, 1, __ATOMIC_RELEASE);
	if (!w->is_parked)
		ev_async_send(w->loop, &w->wake);
	while (!w->is_parked)
		pthread_cond_wait(&w->changed, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

void worker_unpark(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	__atomic_sub_fetch(&w->n_parks, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* ---- start and stop ---- */

/* The control thread takes all signals but those that an instruction of the worker causes. */
static int create_thread(struct worker *w, const pthread_attr_t *attr)
{
	sigset_t blocked, old;
	int err;

	sigfillset(&blocked);
	sigdelset(&blocked, SIGBUS);
	sigdelset(&blocked, SIGSEGV);
	sigdelset(&blocked, SIGFPE);
	sigdelset(&blocked, SIGILL);
	pthread_sigmask(SIG_SETMASK, &blocked, &old);
	err = pthread_create(&w->thread, attr, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	w->has_thread = err == 0;
	return -err;
}

static int start_thread(struct worker *w, int cpu)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int err;

	pthread_attr_init(&attr);
	if (cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET((unsigned)cpu, &cpus);
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	err = create_thread(w, &attr);
	pthread_attr_destroy(&attr);
	if (err == -EINVAL && cpu >= 0)
		log_err(err,
			"queue %u: cannot run on cpu %d: is it online, and allowed to this "
			"process?",
			w->index, cpu);
	else if (err)
		log_err(err, "queue %u: cannot start its worker thread", w->index);
	return err;
}

static int open_loop(struct worker *w)
{
	w->timer_fd = timer_open();
	if (w->timer_fd < 0)
		return w->timer_fd;
	/* Kick eventfds are the frontend's too, so closing ours would not take them out of an epoll set:
	 * a replaced one would go on to wake the worker. poll(2) keeps nothing; the fds are five. */
	w->loop = ev_loop_new(EVBACKEND_POLL | EVFLAG_NOENV);
	if (!w->loop)
		return -ENOMEM;
	ev_async_init(&w->wake, on_wake);
	ev_async_start(w->loop, &w->wake);
	ev_init(&w->port_watch, on_port);
	w->port_watch.data = w;
	ev_io_init(&w->timer_watch, on_timer, w->timer_fd, EV_READ);
	w->timer_watch.data = w;
	ev_io_start(w->loop, &w->timer_watch);
	return 0;
}

static void init_queues(struct worker *w)
{
	char name[16];

	snprintf(name, sizeof(name), "q%u.rx", w->index);
	queue_init(&w->pair.rx, VIRTQ_DEVICE_WRITES, name, &w->pair.stats);
	snprintf(name, sizeof(name), "q%u.tx", w->index);
	queue_init(&w->pair.tx, VIRTQ_DEVICE_READS, name, &w->pair.stats);
	moder_set(&w->pair.rx.moder, &w->pair.params.rx);
	moder_set(&w->pair.tx.moder, &w->pair.params.tx);
}

int worker_start(struct worker *w, unsigned index, struct port_queue *port,
		 const struct port_ops *ops, const struct pair_params *params, int cpu)
{
	int err;

	w->index = index;
	w->pair.port = port;
	w->pair.ops = ops;
	w->pair.params = *params;
	w->port_watch_fd = -1;
	port->stats = &w->pair.stats;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	init_queues(w);
	err = open_loop(w);
	if (err)
		log_err(err, "queue %u: cannot have an event loop", index);
	else
		err = start_thread(w, cpu);
	if (err)
		worker_stop(w);
	return err;
}

void worker_stop(struct worker *w)
{
	if (!w->pair.port)
		return;
	if (w->has_thread) {
		worker_park(w);
		queue_stop(&w->pair.tx);
		queue_stop(&w->pair.rx);
		w->is_stopping = true;
		worker_unpark(w);
		pthread_join(w->thread, NULL);
		w->has_thread = false;
	}
	if (w->loop)
		ev_loop_destroy(w->loop);
	if (w->timer_fd >= 0)
		close(w->timer_fd);
	queue_fini(&w->pair.rx);
	queue_fini(&w->pair.tx);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	w->loop = NULL;
	w->timer_fd = -1;
	w->pair.port = NULL;
}

int worker_set_kick_fd(struct worker *w, struct queue *q, int fd)
{
	bool was_watched = q->kick_fd >= 0;
	int err = queue_set_kick_fd(q, fd);

	if (err)
		return err;
	if (was_watched)
		ev_io_stop(w->loop, &q->kick_watch);
	if (fd < 0)
		return 0;
	ev_io_init(&q->kick_watch, on_kick, fd, EV_READ);
	q->kick_watch.data = q;
	ev_io_start(w->loop, &q->kick_watch);
	return 0;
}
