/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How late a delayed call is: a guest that sends frames to a daemon with `coalesce.tx-usecs` set, and
 * looks at the used ring and at the call eventfd all the time.
 * usage: lateness SOCKET USECS SAMPLES RATE
 *        lateness - USECS SAMPLES 0         no daemon: the wake-up of this program by a timerfd
 * Frames go one at a time with a pause between, so that the daemon sleeps before each; or with RATE
 * not 0 so many a second, whatever is pending. USECS is what the daemon was told; its number of frames
 * must be out of reach.
 * Prints p50, p99, maximum in us, of the time from the end of the delay of the oldest completion
 * without a call to the call; then p99 counted from the kick for it instead of from its sight, which no
 * completion can be earlier than; and how many samples were left out. Those are the ones that this
 * program itself was late for: its processor was taken away when it should have looked.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "support/nic.h"
#include "support/wait.h"

#define FRAME_LEN   60
#define NS	    1000LL
#define AWAY_NS	    (5 * NS) /* between two looks: somebody else has run */
#define MAX_SAMPLES 1000000u
#define FEATURES    (NIC_FEATURES & ~NIC_BIT(VIRTIO_RING_F_EVENT_IDX))
/* A fault: the longest delay there can be is a hundredth of it. */
#define LOST_NS (1000000 * NS)

struct lateness {
	int64_t usecs, step_ns; /* the delay; between frames under load, 0: one at a time */
	int64_t next_ns;	/* when the next frame goes */
	int64_t kicked_ns;	/* the first kick for what is pending... */
	int64_t seen_ns;	/* ...and the first completion; 0: none pending */
	bool was_away;		/* when one of them was seen */
	float *late_us, *late_from_kick_us;
	unsigned n, wanted, n_left_out;
};

static struct nic nic;

static int64_t now_ns(void)
{
	return (int64_t)wait_now_ns();
}

/* Pauses of different lengths, so that nothing beats with the kernel's tick. */
static int64_t pause_ns(const struct lateness *l)
{
	return l->step_ns ? l->step_ns : l->usecs * NS + (100 + (l->n * 37) % 400) * NS;
}

static void send_frame(struct lateness *l)
{
	static const char data[FRAME_LEN];
	int64_t at_ns = now_ns();

	if (l->seen_ns == 0)
		l->kicked_ns = at_ns;
	nic_send(&nic, 0, data, sizeof(data));
	l->next_ns = (l->step_ns ? l->next_ns : at_ns) + pause_ns(l);
}

static void take_sample(struct lateness *l, int64_t at_ns)
{
	int64_t delay_ns = l->usecs * NS;

	if (l->was_away) {
		l->n_left_out++;
		return;
	}
	l->late_us[l->n] = (float)(at_ns - l->seen_ns - delay_ns) / NS;
	l->late_from_kick_us[l->n] = (float)(at_ns - l->kicked_ns - delay_ns) / NS;
	l->n++;
}

/* Look at ring and eventfd once. @is_late: this look is */
static void look(struct lateness *l, bool is_late)
{
	int64_t at_ns;

	if (nic_reap(&nic, 0) > 0 && l->seen_ns == 0) {
		l->seen_ns = now_ns();
		l->was_away = is_late;
	}
	if (driver_take_calls(nic_tx(&nic, 0)) == 0)
		return;
	at_ns = now_ns();
	l->was_away |= is_late;
	if (l->seen_ns != 0)
		take_sample(l, at_ns);
	/* What came since the first look may be called already, or not: it tells nothing. */
	nic_reap(&nic, 0);
	l->seen_ns = 0;
}

static bool is_time_to_send(const struct lateness *l, int64_t at_ns)
{
	const struct driver_ring *r = nic_tx(&nic, 0);
	bool is_one_out = l->seen_ns != 0 || r->published_idx != r->last_used;

	return at_ns >= l->next_ns && (l->step_ns || !is_one_out);
}

static void run(struct lateness *l)
{
	int64_t looked_ns = now_ns();

	l->next_ns = looked_ns;
	while (l->n < l->wanted) {
		int64_t at_ns = now_ns();
		bool is_late = at_ns - looked_ns > AWAY_NS;

		looked_ns = at_ns;
		look(l, is_late);
		expect_msg(l->seen_ns == 0 || at_ns - l->seen_ns < LOST_NS, "a call was lost");
		if (!is_time_to_send(l, at_ns))
			continue;
		send_frame(l);
		looked_ns = now_ns(); /* a kick takes its time */
	}
}

/* Sleep until a timer fires, as the daemon's workers do. */
static void sleep_until(int fd, int64_t at_ns)
{
	struct itimerspec spec = {
		.it_value = {.tv_sec = at_ns / (1000000 * NS), .tv_nsec = at_ns % (1000000 * NS)},
	};
	uint64_t n_expired;

	expect_eq(timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL), 0);
	expect(wait_readable(fd, WAIT_LONG_MS));
	expect_eq(read(fd, &n_expired, sizeof(n_expired)), sizeof(n_expired));
}

static void run_bare(struct lateness *l)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	prctl(PR_SET_TIMERSLACK, 1UL);
	for (; l->n < l->wanted; l->n++) {
		wait_pause_us((unsigned)(pause_ns(l) / NS));
		l->kicked_ns = now_ns();
		sleep_until(fd, l->kicked_ns + l->usecs * NS);
		l->late_us[l->n] = (float)(now_ns() - l->kicked_ns - l->usecs * NS) / NS;
		l->late_from_kick_us[l->n] = l->late_us[l->n];
	}
	close(fd);
}

static void run_with_daemon(struct lateness *l, const char *path)
{
	static const struct nic_options options = {.features = FEATURES};

	nic_open(&nic, path, &options);
	run(l);
	nic_close(&nic);
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static double percentile(float *samples, unsigned n, unsigned percent)
{
	qsort(samples, n, sizeof(samples[0]), compare);
	return (double)samples[(uint64_t)(n - 1) * percent / 100];
}

static void print(struct lateness *l)
{
	printf("%.1f %.1f %.1f %.1f %u\n", percentile(l->late_us, l->n, 50),
	       percentile(l->late_us, l->n, 99), percentile(l->late_us, l->n, 100),
	       percentile(l->late_from_kick_us, l->n, 99), l->n_left_out);
}

static void allocate(struct lateness *l)
{
	expect_msg(l->wanted > 0 && l->wanted <= MAX_SAMPLES, "1 to %u samples, please",
		   MAX_SAMPLES);
	l->late_us = calloc(l->wanted, sizeof(float));
	l->late_from_kick_us = calloc(l->wanted, sizeof(float));
	expect(l->late_us && l->late_from_kick_us);
}

int main(int argc, char *argv[])
{
	struct lateness l = {0};
	long rate;

	expect_as_program("lateness");
	if (argc != 5) {
		fprintf(stderr, "usage: lateness SOCKET USECS SAMPLES RATE\n");
		return 2;
	}
	l.usecs = atol(argv[2]);
	l.wanted = (unsigned)atol(argv[3]);
	rate = atol(argv[4]);
	l.step_ns = rate ? 1000000 * NS / rate : 0;
	allocate(&l);
	if (strcmp(argv[1], "-") == 0)
		run_bare(&l);
	else
		run_with_daemon(&l, argv[1]);
	print(&l);
	free(l.late_us);
	free(l.late_from_kick_us);
	return EXIT_SUCCESS;
}
