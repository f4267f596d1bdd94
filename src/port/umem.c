/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/umem.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/lines.h"
#include "base/util.h"

#define HUGE_PAGE_BYTES (2ULL << 20)

enum umem_owner { OWNER_FREE, OWNER_FILL, OWNER_SEND };

static void *map(uint64_t size, int flags)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
		       0);

	return p == MAP_FAILED ? NULL : p;
}

static int map_area(struct umem *u)
{
	uint64_t huge_size = (u->size + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;

	u->area = map(huge_size, MAP_HUGETLB | MAP_POPULATE);
	u->is_huge = u->area != NULL;
	if (u->is_huge)
		u->size = huge_size;
	else
		u->area = map(u->size, 0);
	return u->area ? 0 : -ENOMEM;
}

int umem_init(struct umem *u, uint32_t n_frames, uint32_t frame_size)
{
	*u = (struct umem){
		.size = (uint64_t)n_frames * frame_size,
		.frame_size = frame_size,
		.frame_shift = (uint32_t)__builtin_ctz(frame_size),
		.n_frames = n_frames,
	};
	u->free = lines_alloc(n_frames, sizeof(*u->free));
	u->owner = lines_alloc(n_frames, sizeof(*u->owner));
	if (!u->free || !u->owner || map_area(u) != 0) {
		umem_fini(u);
		return -ENOMEM;
	}
	umem_reset(u);
	return 0;
}

void umem_fini(struct umem *u)
{
	if (u->area)
		munmap(u->area, u->size);
	free(u->free);
	free(u->owner);
	*u = (struct umem){0};
}

void umem_reset(struct umem *u)
{
	for (uint32_t i = 0; i < u->n_frames; i++)
		u->free[i] = (uint64_t)i * u->frame_size;
	memset(u->owner, OWNER_FREE, u->n_frames);
	u->n_free_rx = u->n_free_tx = u->n_frames / 2;
	u->n_filled = u->n_sending = 0;
}

/* Move a frame from one owner to another. Return: its address. */
static uint64_t pass_on(struct umem *u, uint64_t addr, enum umem_owner from, enum umem_owner to)
{
	uint64_t i = addr >> u->frame_shift;

	assert(i < u->n_frames && u->owner[i] == from);
	u->owner[i] = (uint8_t)to;
	return i << u->frame_shift;
}

uint64_t umem_take_rx(struct umem *u)
{
	assert(u->n_free_rx > 0);
	u->n_filled++;
	return pass_on(u, u->free[--u->n_free_rx], OWNER_FREE, OWNER_FILL);
}

uint64_t umem_take_tx(struct umem *u)
{
	assert(u->n_free_tx > 0);
	u->n_sending++;
	return pass_on(u, u->free[u->n_frames / 2 + --u->n_free_tx], OWNER_FREE, OWNER_SEND);
}

void umem_give_rx(struct umem *u, uint64_t addr)
{
	u->free[u->n_free_rx++] = pass_on(u, addr, OWNER_FILL, OWNER_FREE);
	u->n_filled--;
}

void umem_give_tx(struct umem *u, uint64_t addr)
{
	u->free[u->n_frames / 2 + u->n_free_tx++] = pass_on(u, addr, OWNER_SEND, OWNER_FREE);
	u->n_sending--;
}
