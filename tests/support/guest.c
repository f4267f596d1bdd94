/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/guest.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/expect.h"

#define FIRST_GPA      0x140000000ULL
#define GPA_TO_UVA     0x2a0000000000ULL
#define FILE_PAD       0x10000ULL
#define DEFAULT_REGION (16ULL << 20)

static int make_memfd(uint64_t size)
{
	int fd = memfd_create("guest", MFD_CLOEXEC);

	expect_ge(fd, 0);
	expect_eq(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static void map_region(struct guest *g, unsigned i)
{
	const struct vhost_user_region *r = &g->regions[i];
	char *at = g->map + (r->gpa - g->regions[0].gpa);

	expect(mmap(at, r->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, g->fds[i],
		    (off_t)r->mmap_offset) == at);
}

static void lay_out(struct guest *g, const struct guest_layout *layout)
{
	unsigned n = layout->n_regions;

	for (unsigned i = 0; i < n; i++) {
		bool is_apart = layout->is_last_apart && i + 1 == n;
		uint64_t gpa = FIRST_GPA + i * (layout->region_size + layout->hole);

		g->regions[i] = (struct vhost_user_region){
			.gpa = gpa,
			.size = layout->region_size,
			.uva = gpa + GPA_TO_UVA,
			.mmap_offset =
				FILE_PAD + (is_apart ? 0 : (n - 1 - i) * layout->region_size),
		};
		g->fds[i] = is_apart ? g->memfd_apart : g->memfd;
	}
	g->n_regions = n;
}

void guest_init(struct guest *g, const struct guest_layout *layout)
{
	struct guest_layout l = layout ? *layout : (struct guest_layout){0};

	l.n_regions = l.n_regions ? l.n_regions : 2;
	l.region_size = l.region_size ? l.region_size : DEFAULT_REGION;
	*g = (struct guest){.memfd_apart = -1};
	g->memfd = make_memfd(FILE_PAD + l.n_regions * l.region_size);
	if (l.is_last_apart)
		g->memfd_apart = make_memfd(FILE_PAD + l.region_size);
	g->map_size = l.n_regions * (l.region_size + l.hole);
	g->map = mmap(NULL, g->map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		      0);
	expect(g->map != MAP_FAILED);
	lay_out(g, &l);
	for (unsigned i = 0; i < g->n_regions; i++)
		map_region(g, i);
	g->next = g->regions[0].gpa;
}

void guest_fini(struct guest *g)
{
	if (!g->map)
		return;
	munmap(g->map, g->map_size);
	close(g->memfd);
	if (g->memfd_apart >= 0)
		close(g->memfd_apart);
	*g = (struct guest){0};
}

void guest_fill_table(const struct guest *g, struct vhost_user_mem_table *table, int *fds)
{
	*table = (struct vhost_user_mem_table){.n_regions = g->n_regions};
	memcpy(table->regions, g->regions, g->n_regions * sizeof(g->regions[0]));
	memcpy(fds, g->fds, g->n_regions * sizeof(g->fds[0]));
}

void *guest_at(const struct guest *g, uint64_t gpa)
{
	return g->map + (gpa - g->regions[0].gpa);
}

uint64_t guest_uva(const struct guest *g, uint64_t gpa)
{
	(void)g;
	return gpa + GPA_TO_UVA;
}

/* Return: `gpa` rounded up, and moved behind the next edge if the range comes too near to one. */
static uint64_t place(const struct guest *g, uint64_t gpa, uint64_t len, uint64_t align)
{
	for (unsigned i = 0; i < g->n_regions; i++) {
		uint64_t at = (gpa + align - 1) / align * align;

		if (at + len + GUEST_EDGE <= guest_edge(g, i))
			return at;
		if (i + 1 < g->n_regions && gpa < g->regions[i + 1].gpa + GUEST_EDGE)
			gpa = g->regions[i + 1].gpa + GUEST_EDGE;
	}
	expect_msg(false, "the test's guest has no %llu bytes left", (unsigned long long)len);
	return 0;
}

uint64_t guest_alloc(struct guest *g, uint64_t len, uint64_t align)
{
	uint64_t at = place(g, g->next, len, align);

	g->next = at + len;
	return at;
}

uint64_t guest_alloc_odd(struct guest *g, uint64_t len)
{
	return guest_alloc(g, len + 1, 2) + 1;
}

uint64_t guest_edge(const struct guest *g, unsigned i)
{
	return g->regions[i].gpa + g->regions[i].size;
}
