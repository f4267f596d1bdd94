/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few helpers that every folder needs. No state, no thread, nothing that blocks.
 */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <stddef.h>
#include <stdint.h>

#define array_size(a)	(sizeof(a) / sizeof((a)[0]))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define CACHELINE	64
#define cacheline_align __attribute__((aligned(CACHELINE)))

#define min_of(a, b)                                                                               \
	({                                                                                         \
		__typeof__(a) min_a = (a);                                                         \
		__typeof__(b) min_b = (b);                                                         \
		min_a < min_b ? min_a : min_b;                                                     \
	})
#define max_of(a, b)                                                                               \
	({                                                                                         \
		__typeof__(a) max_a = (a);                                                         \
		__typeof__(b) max_b = (b);                                                         \
		max_a > max_b ? max_a : max_b;                                                     \
	})

/* The object of which `ptr` is the member. */
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Fetch a cache line that is going to be written: into this core's possession at once, not shared
 * first. GCC leaves that to -m options that would exclude processors which just ignore it. */
static inline void prefetch_for_write(const void *p)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

#define BIT_ULL(n) (1ULL << (n))

#endif
