/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Microsecond timers: a timerfd that the owner's event loop watches. libev's own timers are
 * rounded up to a millisecond by epoll, which is too late for interrupt coalescing.
 * Times are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef BASE_TIMER_H
#define BASE_TIMER_H

#include <stdint.h>

#define NS_PER_US  1000ULL
#define NS_PER_MS  1000000ULL
#define NS_PER_SEC 1000000000ULL

/* Return: the time now. */
uint64_t clock_now_ns(void);

/* Return: a disarmed, non-blocking timerfd that the caller closes, or a negative errno. */
int timer_open(void);

/* Arm the timer to fire once at `deadline_ns`; a time in the past fires at once. */
void timer_arm_at(int fd, uint64_t deadline_ns);

/* Stop the timer, and forget an expiry that has not been read. */
void timer_disarm(int fd);

#endif
