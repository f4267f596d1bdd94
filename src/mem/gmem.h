/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guest memory: the table of regions that a frontend sent, mapped here.
 *
 * There are three worlds of addresses, and they never mix: guest-physical (`gpa_t`, in
 * descriptors), the frontend's own (`uva_t`, in SET_VRING_ADDR), and ours (plain pointers). A table
 * is built by the control thread, immutable from then on, and refcounted: each started virtqueue
 * holds a reference, so that old mappings go away when the last user lets go.
 *
 * Regions that are adjacent in the frontend's address space are mapped adjacent here where their
 * pages allow it, so a ring that crosses from one to the next is one span. Buffers are translated
 * piece by piece, so that they may cross between regions that are adjacent only to the guest.
 *
 * The memory is the guest's and the frontend's: it changes under our eyes, and its file may be
 * shortened. gmem_sigbus_install() makes an access to a vanished page read zeros from then on and
 * tell the control thread, which ends the connection; it never ends the process.
 */
#ifndef MEM_GMEM_H
#define MEM_GMEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

#define GMEM_MAX_REGIONS 8

typedef struct {
	uint64_t v;
} gpa_t;

typedef struct {
	uint64_t v;
} uva_t;

/* What a frontend says of one region. All numbers are a peer's: unchecked. */
struct gmem_region_desc {
	uint64_t gpa;
	uint64_t uva;
	uint64_t size;        /* bytes */
	uint64_t mmap_offset; /* bytes from the start of the file to the region */
	int fd;               /* stays the caller's; -1: none */
};

struct gmem_region {
	uint64_t gpa;
	uint64_t size;
	char *host; /* where the region's first byte is here */
	uint64_t uva;
};

struct gmem_mapping; /* what munmap() needs; private to gmem.c */

struct gmem {
	struct gmem_region regions[GMEM_MAX_REGIONS]; /* sorted by gpa */
	unsigned n_regions;
	unsigned refs; /* atomic */
	struct gmem_mapping *mappings;
	unsigned n_mappings;
};

/*
 * Map a table of regions.
 * @out: the table, with one reference for the caller
 * @n: 1..GMEM_MAX_REGIONS
 * Return: 0; -EINVAL when a region is empty, wraps, overlaps another one (in either address space),
 * or goes past the end of its file; -EBADF without a file; another negative errno when it cannot be
 * mapped. One log line says why. Nothing is left behind on error.
 */
int gmem_new(struct gmem **out, const struct gmem_region_desc *descs, unsigned n);

/* Take a reference. Any thread. Return: `mem`. */
struct gmem *gmem_get(struct gmem *mem);

/* Give a reference back; the last one unmaps everything. Any thread. NULL is accepted. */
void gmem_put(struct gmem *mem);

/*
 * Find `len` contiguous bytes at a frontend address: for rings.
 * Return: a pointer, or NULL when not all of it is mapped, contiguously here too. `len` > 0.
 */
void *gmem_uva_span(const struct gmem *mem, uva_t addr, uint64_t len);

/*
 * Copy `len` bytes that may lie in several regions out of guest memory.
 * Return: 0, or -EFAULT when they are not all mapped.
 */
int gmem_read(const struct gmem *mem, gpa_t addr, void *dst, uint64_t len);

/*
 * Survive the loss of guest memory: handle SIGBUS. Once per process, before any worker starts.
 * @lost_fd: an eventfd that is written when a page of a mapped region has vanished
 * Return: 0 or a negative errno.
 */
int gmem_sigbus_install(int lost_fd);

/*
 * Find the start of a guest-physical range; the hot path of every descriptor.
 * @len: in: bytes wanted, at least 1; out: how many of them are contiguous here, at least 1
 * Return: a pointer to the first byte, or NULL when it is not mapped.
 */
static inline void *gmem_translate(const struct gmem *mem, gpa_t addr, uint64_t *len)
{
	for (unsigned i = 0; i < mem->n_regions; i++) {
		const struct gmem_region *r = &mem->regions[i];
		uint64_t offset = addr.v - r->gpa;

		/* Below the region the difference wraps to a huge number. */
		if (likely(offset < r->size)) {
			*len = min_of(*len, r->size - offset);
			return r->host + offset;
		}
	}
	return NULL;
}

#endif
