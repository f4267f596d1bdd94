/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory in whole cache lines: what one worker writes shares no line with what another one reads,
 * so no core waits for another's. Structures that lie in arrays by worker are `cacheline_align`
 * themselves.
 */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include <stddef.h>

/*
 * Zeroed memory for `n` objects of `size` bytes, alone on its cache lines.
 * Return: the memory, for free(); NULL with errno ENOMEM.
 */
void *lines_alloc(size_t n, size_t size);

#endif
