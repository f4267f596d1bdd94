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
#define cacheline_align __attribute__((aligned(64)))

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

#define BIT_ULL(n) (1ULL << (n))

#endif
