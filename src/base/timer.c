/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/timer.h"

#include <assert.h>
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>

uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

int timer_open(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void timer_set(int fd, uint64_t deadline_ns)
{
	struct itimerspec spec = {
		.it_value.tv_sec = (time_t)(deadline_ns / NS_PER_SEC),
		.it_value.tv_nsec = (long)(deadline_ns % NS_PER_SEC),
	};
	int err = timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL);

	/* Only a wrong fd or a wrong value can fail, and both are ours. */
	assert(err == 0);
	(void)err;
}

void timer_arm_at(int fd, uint64_t deadline_ns)
{
	timer_set(fd, deadline_ns ? deadline_ns : 1);
}

void timer_disarm(int fd)
{
	timer_set(fd, 0);
}
