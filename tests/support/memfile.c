/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/memfile.h"

#include <check.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_NAME "vux-memfile"

static int files[MEMFILE_MAX];
static unsigned n_files;

static int make(uint64_t size, unsigned flags)
{
	int fd = memfd_create(FILE_NAME, MFD_CLOEXEC | flags);

	if (fd < 0)
		return -1;
	ck_assert_uint_lt(n_files, MEMFILE_MAX);
	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
	files[n_files++] = fd;
	return fd;
}

int memfile_make(uint64_t size, uint64_t tag)
{
	int fd = make(size, MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	for (uint64_t off = 0; off + 8 <= size && off < 64 * MEMFILE_PAGE; off += 8) {
		uint64_t word = tag + off;

		ck_assert_int_eq(pwrite(fd, &word, 8, (off_t)off), 8);
	}
	return fd;
}

int memfile_make_huge(uint64_t size)
{
	int fd = make(size, MFD_HUGETLB | MFD_HUGE_2MB);

	if (fd < 0)
		printf("no huge pages of 2 MiB: their cases are left out\n");
	return fd;
}

void memfile_close_all(void)
{
	while (n_files > 0)
		close(files[--n_files]);
}

unsigned memfile_count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, FILE_NAME) != NULL;
	fclose(maps);
	return n;
}
