/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/wait.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

uint64_t wait_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

unsigned wait_scaled_ms(unsigned ms)
{
	return ms * SLOWDOWN;
}

void wait_pause_us(unsigned us)
{
	struct timespec span = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};

	nanosleep(&span, NULL);
}

bool wait_readable(int fd, unsigned ms)
{
	uint64_t end = wait_now_ns() + wait_scaled_ms(ms) * 1000000ULL;
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	uint64_t now;

	while ((now = wait_now_ns()) < end) {
		int left_ms = (int)((end - now + 999999) / 1000000);
		int n = poll(&pfd, 1, left_ms);

		if (n > 0)
			return true;
		expect_msg(n == 0 || errno == EINTR, "poll: %s", strerror(errno));
	}
	return poll(&pfd, 1, 0) == 1;
}

bool wait_is_long(void)
{
	const char *value = getenv("VUX_LONG");

	return value && strcmp(value, "1") == 0;
}

unsigned wait_repeats(const char *what, unsigned reduced, unsigned full)
{
	if (wait_is_long())
		return full;
	printf("%s: reduced: %u of %u\n", what, reduced, full);
	fflush(stdout);
	return reduced;
}
