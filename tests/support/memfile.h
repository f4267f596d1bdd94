/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files in memory that stand for a guest's memory, as a frontend would send them. The files of a
 * test are closed together at its end.
 */
#ifndef SUPPORT_MEMFILE_H
#define SUPPORT_MEMFILE_H

#include <stdint.h>

#define MEMFILE_PAGE	  4096ULL
#define MEMFILE_HUGE_PAGE (2ULL << 20)
#define MEMFILE_MAX	  64

/* Return: the fd of a file whose first 64 pages hold 64-bit words: their own offset plus `tag`. */
int memfile_make(uint64_t size, uint64_t tag);

/* Return: the fd of a file of huge pages, or -1 after a line that says that there are none. */
int memfile_make_huge(uint64_t size);

/* Close what was made. */
void memfile_close_all(void);

/* Return: how many mappings of such files this process has. */
unsigned memfile_count_mappings(void);

#endif
