/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One shared region, mapped once for the guest's side and once for the device's.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vring.h"

int memory_init(struct memory *m, uint64_t size)
{
	struct gmem_region_desc desc = {.gpa = VRING_GPA, .size = size};

	*m = (struct memory){.size = size, .fd = memfd_create("vring-bench", MFD_CLOEXEC)};
	if (m->fd < 0 || ftruncate(m->fd, (off_t)size) < 0)
		return -errno;
	m->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (m->map == MAP_FAILED)
		return -errno;
	desc.uva = (uint64_t)(uintptr_t)m->map;
	desc.fd = m->fd;
	return gmem_new(&m->gmem, &desc, 1);
}

void memory_fini(struct memory *m)
{
	if (m->gmem)
		gmem_put(m->gmem);
	if (m->map && m->map != MAP_FAILED)
		munmap(m->map, m->size);
	if (m->fd >= 0)
		close(m->fd);
}

void *memory_take(struct memory *m, uint64_t len)
{
	uint64_t at = (m->used + 63) / 64 * 64;

	if (at + len > m->size)
		return NULL;
	m->used = at + len;
	return m->map + at;
}
