/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/gmem.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"

/* Transparent huge pages need our address and the file offset to agree modulo this. */
#define RUN_ALIGN (2ULL << 20)
/* More than any address space holds; sums of a few of these cannot wrap. */
#define MAX_REGION_SIZE (1ULL << 56)
#define PROT_GUEST	(PROT_READ | PROT_WRITE)

/* A run: an address range of ours with a guard at either end and regions side by side between. */
struct gmem_mapping {
	void *start;
	size_t len; /* guards included */
};

/* How a region is to be mapped; all sizes are bytes. */
struct region_plan {
	const struct gmem_region_desc *desc;
	unsigned index;	      /* in the frontend's table, for log lines */
	uint64_t page_size;   /* of the file: a huge page's on hugetlbfs */
	uint64_t file_offset; /* of the mapping: the region's, rounded down to its page */
	uint64_t skip;	      /* from the start of the mapping to the region */
	uint64_t map_size;    /* skip and region, rounded up to whole pages */
	uint64_t run_offset;  /* of the mapping in its run */
	bool starts_run;      /* else it follows the one before it */
};

/*
 * What the SIGBUS handler knows: every page range that is mapped from a file of a frontend. Slots
 * are taken and freed by whoever makes and drops a table, and read by the handler in any thread,
 * hence atomics and no lock. `start` is the key: SLOT_FREE, SLOT_CLAIMED while the rest is being
 * written, else the address. The handler's thread holds a reference to the table that it touched,
 * so the slot that it looks for is stable; others may change under its eyes.
 */
struct loss_slot {
	uintptr_t start;
	uintptr_t end;
	uintptr_t page_size;
};
#define SLOT_FREE    0
#define SLOT_CLAIMED 1
#define N_LOSS_SLOTS 128

static struct loss_slot loss_slots[N_LOSS_SLOTS];
static int loss_fd = -1;

static uintptr_t load(const uintptr_t *value)
{
	return __atomic_load_n(value, __ATOMIC_ACQUIRE);
}

static void store(uintptr_t *value, uintptr_t new_value)
{
	__atomic_store_n(value, new_value, __ATOMIC_RELEASE);
}

static bool claim_slot(struct loss_slot *slot)
{
	uintptr_t expected = SLOT_FREE;

	return __atomic_compare_exchange_n(&slot->start, &expected, SLOT_CLAIMED, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Let the handler know of a mapping. Return: 0, or -ENOSPC when there are too many. */
static int register_mapping(const void *start, uint64_t size, uint64_t page_size)
{
	for (size_t i = 0; i < array_size(loss_slots); i++) {
		struct loss_slot *slot = &loss_slots[i];

		if (!claim_slot(slot))
			continue;
		store(&slot->end, (uintptr_t)start + size);
		store(&slot->page_size, page_size);
		store(&slot->start, (uintptr_t)start);
		return 0;
	}
	return -ENOSPC;
}

/* Forget the mappings within a range of addresses. */
static void unregister_mappings(const struct gmem_mapping *m)
{
	for (size_t i = 0; i < array_size(loss_slots); i++) {
		uintptr_t start = load(&loss_slots[i].start);

		if (start > SLOT_CLAIMED && start - (uintptr_t)m->start < m->len)
			store(&loss_slots[i].start, SLOT_FREE);
	}
}

/* Return: the page size at `addr`, or 0 when it is in no mapping of ours. */
static uintptr_t find_page_size(uintptr_t addr)
{
	for (size_t i = 0; i < array_size(loss_slots); i++) {
		const struct loss_slot *slot = &loss_slots[i];
		uintptr_t start = load(&slot->start);
		uintptr_t end = load(&slot->end);
		uintptr_t page_size = load(&slot->page_size);

		/* A slot that changed between the loads is not the one we are in. */
		if (start > SLOT_CLAIMED && addr >= start && addr < end &&
		    load(&slot->start) == start)
			return page_size;
	}
	return 0;
}

/*
 * The system call itself, as this runs in a signal handler and the sanitizers' mmap() is not made
 * for that. Two threads may replace the same page at once: either way it reads zeros.
 * Return: whether the page at `addr` was ours and reads zeros now.
 */
static bool replace_lost_page(uintptr_t addr)
{
	uintptr_t page_size = find_page_size(addr);

	if (page_size == 0)
		return false;
	return syscall(SYS_mmap, addr & ~(page_size - 1), page_size, PROT_GUEST,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != -1;
}

static void on_sigbus(int signo, siginfo_t *info, void *context)
{
	int saved_errno = errno;
	bool was_sent = info->si_code <= 0; /* by kill(): there is no address */

	(void)context;
	if (!was_sent && replace_lost_page((uintptr_t)info->si_addr)) {
		uint64_t one = 1;
		ssize_t ignored =
			write(__atomic_load_n(&loss_fd, __ATOMIC_RELAXED), &one, sizeof(one));

		(void)ignored; /* a full eventfd is readable, too */
	} else {
		/* Not our business: the access is repeated, and ends the process as it would have.
		 */
		signal(signo, SIG_DFL);
		if (was_sent)
			raise(signo);
	}
	errno = saved_errno;
}

int gmem_sigbus_install(int lost_fd)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};

	__atomic_store_n(&loss_fd, lost_fd, __ATOMIC_RELAXED);
	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

static uint64_t system_page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* @to: a power of two */
static uint64_t round_down(uint64_t value, uint64_t to)
{
	return value & ~(to - 1);
}

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return round_down(value + to - 1, to);
}

/* Log why a region is refused. Return: `err`. */
static int refuse(const struct region_plan *p, int err, const char *why)
{
	log_err(err,
		"guest memory: region %u (guest address 0x%" PRIx64 ", 0x%" PRIx64 " bytes) %s",
		p->index, p->desc->gpa, p->desc->size, why);
	return err;
}

static bool wraps(uint64_t start, uint64_t size)
{
	return size - 1 > UINT64_MAX - start;
}

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return b - a < a_size || a - b < b_size;
}

static int check_numbers(const struct region_plan *p, const struct gmem_region_desc *table)
{
	const struct gmem_region_desc *d = p->desc;

	if (d->size == 0)
		return refuse(p, -EINVAL, "is empty");
	if (wraps(d->gpa, d->size) || wraps(d->uva, d->size))
		return refuse(p, -EINVAL, "goes past the end of the address space");
	for (unsigned i = 0; i < p->index; i++) {
		const struct gmem_region_desc *other = &table[i];

		if (overlap(d->gpa, d->size, other->gpa, other->size))
			return refuse(p, -EINVAL, "overlaps another one in guest memory");
		if (overlap(d->uva, d->size, other->uva, other->size))
			return refuse(p, -EINVAL, "overlaps another one in the frontend's memory");
	}
	return 0;
}

/* Only a regular file (memfd, tmpfs, hugetlbfs) has an end that fstat() knows. */
static int check_extent(const struct region_plan *p)
{
	const struct gmem_region_desc *d = p->desc;
	uint64_t file_size = INT64_MAX;
	struct stat st;

	if (d->fd < 0)
		return refuse(p, -EBADF,
			      "comes without a file: have the frontend share its memory");
	if (fstat(d->fd, &st) < 0)
		return refuse(p, -errno, "has a file that cannot be used");
	if (S_ISREG(st.st_mode))
		file_size = (uint64_t)st.st_size;
	if (d->size > file_size || d->mmap_offset > file_size - d->size)
		return refuse(p, -EINVAL, "goes past the end of its file");
	if (d->size > MAX_REGION_SIZE)
		return refuse(p, -ENOMEM, "is larger than the address space");
	return 0;
}

/* hugetlbfs maps whole huge pages only: offset, address and length must be multiples of one. */
static int plan_pages(struct region_plan *p)
{
	struct statfs fs;

	if (fstatfs(p->desc->fd, &fs) < 0)
		return refuse(p, -errno, "has a file whose page size is unknown");
	p->page_size = system_page_size();
	if ((uint64_t)fs.f_type == HUGETLBFS_MAGIC)
		p->page_size = (uint64_t)fs.f_bsize;
	p->file_offset = round_down(p->desc->mmap_offset, p->page_size);
	p->skip = p->desc->mmap_offset - p->file_offset;
	p->map_size = round_up(p->skip + p->desc->size, p->page_size);
	return 0;
}

/*
 * Map and unmap one page. A file that refuses MAP_FIXED may leave a hole in the reservation, which
 * another thread's mapping could fill before it is unmapped; so have it refuse here.
 */
static int try_mapping(const struct region_plan *p)
{
	void *page = mmap(NULL, p->page_size, PROT_GUEST, MAP_SHARED | MAP_NORESERVE, p->desc->fd,
			  (off_t)p->file_offset);

	if (page == MAP_FAILED)
		return refuse(p, -errno, "cannot be mapped: its file must be shared read-write");
	munmap(page, p->page_size);
	return 0;
}

static int plan_region(struct region_plan *p, const struct gmem_region_desc *table)
{
	int err = check_numbers(p, table);

	if (err == 0)
		err = check_extent(p);
	if (err == 0)
		err = plan_pages(p);
	return err == 0 ? try_mapping(p) : err;
}

static int compare_uva(const void *a, const void *b)
{
	uint64_t left = ((const struct region_plan *)a)->desc->uva;
	uint64_t right = ((const struct region_plan *)b)->desc->uva;

	return (left > right) - (left < right);
}

static int compare_gpa(const void *a, const void *b)
{
	uint64_t left = ((const struct gmem_region *)a)->gpa;
	uint64_t right = ((const struct gmem_region *)b)->gpa;

	return (left > right) - (left < right);
}

/* Whether `p` can be mapped so that its first byte follows the last one of `prev`. */
static bool can_follow(const struct region_plan *prev, const struct region_plan *p)
{
	bool is_adjacent = prev->desc->uva + prev->desc->size == p->desc->uva;
	bool has_no_gap = prev->skip + prev->desc->size == prev->map_size && p->skip == 0;

	return is_adjacent && has_no_gap && (prev->run_offset + prev->map_size) % p->page_size == 0;
}

/* @plans: sorted by uva */
static void plan_runs(struct region_plan *plans, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct region_plan *p = &plans[i];

		p->starts_run = i == 0 || !can_follow(p - 1, p);
		if (p->starts_run)
			p->run_offset = p->file_offset % RUN_ALIGN;
		else
			p->run_offset = p[-1].run_offset + p[-1].map_size;
	}
}

static int plan_table(struct region_plan *plans, const struct gmem_region_desc *descs, unsigned n)
{
	if (n == 0 || n > GMEM_MAX_REGIONS) {
		log_warnx("guest memory: a table of %u regions refused; it may have 1 to %d", n,
			  GMEM_MAX_REGIONS);
		return -EINVAL;
	}
	for (unsigned i = 0; i < n; i++) {
		int err;

		plans[i] = (struct region_plan){.desc = &descs[i], .index = i};
		err = plan_region(&plans[i], descs);
		if (err < 0)
			return err;
	}
	qsort(plans, n, sizeof(plans[0]), compare_uva);
	plan_runs(plans, n);
	return 0;
}

/* Return: how many of the `n` plans are in the run that the first one starts. */
static unsigned run_length(const struct region_plan *plans, unsigned n)
{
	unsigned len = 1;

	while (len < n && !plans[len].starts_run)
		len++;
	return len;
}

/*
 * Reserve addresses for a run and its guards.
 * Return: the address from which the plans' `run_offset` counts, or NULL after a log line.
 */
static char *reserve_run(struct gmem_mapping *m, const struct region_plan *run, unsigned n)
{
	uint64_t guard = system_page_size();
	uint64_t align = RUN_ALIGN;
	uint64_t size = run[n - 1].run_offset + run[n - 1].map_size;
	char *start;

	for (unsigned i = 0; i < n; i++)
		align = max_of(align, run[i].page_size);
	m->len = guard + align + size + guard;
	start = mmap(NULL, m->len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (start == MAP_FAILED) {
		refuse(run, -errno, "finds no room in the address space");
		return NULL;
	}
	m->start = start;
	return start + (round_up((uintptr_t)start + guard, align) - (uintptr_t)start);
}

static int map_region(struct gmem_region *r, const struct region_plan *p, char *base)
{
	char *at = base + p->run_offset;

	if (mmap(at, p->map_size, PROT_GUEST, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, p->desc->fd,
		 (off_t)p->file_offset) == MAP_FAILED)
		return refuse(p, -errno, "cannot be mapped");
	/* Guest memory has no place in a core file; a kernel that disagrees does no harm. */
	madvise(at, p->map_size, MADV_DONTDUMP);
	if (register_mapping(at, p->map_size, p->page_size) < 0)
		return refuse(p, -ENOMEM, "is one too many: older tables are still in use");
	*r = (struct gmem_region){
		.gpa = p->desc->gpa,
		.size = p->desc->size,
		.host = at + p->skip,
		.uva = p->desc->uva,
	};
	return 0;
}

static int map_run(struct gmem *mem, const struct region_plan *run, unsigned n)
{
	char *base = reserve_run(&mem->mappings[mem->n_mappings], run, n);
	int err = 0;

	if (!base)
		return -ENOMEM;
	mem->n_mappings++;
	for (unsigned i = 0; i < n && err == 0; i++) {
		err = map_region(&mem->regions[mem->n_regions], &run[i], base);
		if (err == 0)
			mem->n_regions++;
	}
	return err;
}

static int map_table(struct gmem *mem, const struct region_plan *plans, unsigned n)
{
	unsigned len;

	for (unsigned i = 0; i < n; i += len) {
		int err;

		len = run_length(plans + i, n - i);
		err = map_run(mem, plans + i, len);
		if (err < 0)
			return err;
	}
	qsort(mem->regions, mem->n_regions, sizeof(mem->regions[0]), compare_gpa);
	return 0;
}

static void gmem_free(struct gmem *mem)
{
	for (unsigned i = 0; i < mem->n_mappings; i++) {
		/* Before the addresses can be anybody else's. */
		unregister_mappings(&mem->mappings[i]);
		munmap(mem->mappings[i].start, mem->mappings[i].len);
	}
	free(mem->mappings);
	free(mem);
}

static struct gmem *gmem_alloc(unsigned n)
{
	struct gmem *mem = calloc(1, sizeof(*mem));

	if (!mem)
		return NULL;
	mem->refs = 1;
	mem->mappings = calloc(n, sizeof(mem->mappings[0]));
	if (!mem->mappings) {
		free(mem);
		return NULL;
	}
	return mem;
}

int gmem_new(struct gmem **out, const struct gmem_region_desc *descs, unsigned n)
{
	struct region_plan plans[GMEM_MAX_REGIONS];
	struct gmem *mem;
	int err = plan_table(plans, descs, n);

	if (err < 0)
		return err;
	mem = gmem_alloc(n);
	if (!mem) {
		log_err(-ENOMEM, "guest memory: no memory for its table");
		return -ENOMEM;
	}
	err = map_table(mem, plans, n);
	if (err < 0) {
		gmem_free(mem);
		return err;
	}
	*out = mem;
	return 0;
}

struct gmem *gmem_get(struct gmem *mem)
{
	__atomic_fetch_add(&mem->refs, 1, __ATOMIC_RELAXED);
	return mem;
}

void gmem_put(struct gmem *mem)
{
	/* Release our accesses; acquire, in the last one, those of all the others. */
	if (mem && __atomic_fetch_sub(&mem->refs, 1, __ATOMIC_ACQ_REL) == 1)
		gmem_free(mem);
}

static const struct gmem_region *find_uva(const struct gmem *mem, uint64_t uva)
{
	for (unsigned i = 0; i < mem->n_regions; i++)
		if (uva - mem->regions[i].uva < mem->regions[i].size)
			return &mem->regions[i];
	return NULL;
}

void *gmem_uva_span(const struct gmem *mem, uva_t addr, uint64_t len)
{
	const struct gmem_region *r = find_uva(mem, addr.v);
	uint64_t n_here;
	char *start;

	if (!r)
		return NULL;
	start = r->host + (addr.v - r->uva);
	n_here = r->size - (addr.v - r->uva);
	while (len > n_here) {
		const struct gmem_region *next = find_uva(mem, r->uva + r->size);

		/* The guards keep regions apart that are in different runs. */
		if (!next || next->host != r->host + r->size)
			return NULL;
		len -= n_here;
		n_here = next->size;
		r = next;
	}
	return start;
}

int gmem_read(const struct gmem *mem, gpa_t addr, void *dst, uint64_t len)
{
	char *to = dst;

	if (len > 0 && wraps(addr.v, len))
		return -EFAULT;
	while (len > 0) {
		uint64_t n = len;
		const void *from = gmem_translate(mem, addr, &n);

		if (!from)
			return -EFAULT;
		memcpy(to, from, n);
		to += n;
		addr.v += n;
		len -= n;
	}
	return 0;
}
