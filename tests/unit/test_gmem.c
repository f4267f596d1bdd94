/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/gmem.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/fds.h"
#include "support/memfile.h"

#define PAGE	  4096ULL
#define HUGE_PAGE (2ULL << 20)
#define UVA	  0x7f0000000000ULL
#define FILE_NAME "gmem-test"

static struct log_capture lines;

static void setup(void)
{
	log_capture_start(&lines);
}

static void teardown(void)
{
	log_capture_stop(&lines);
	memfile_close_all();
}

static struct gmem *map(const struct gmem_region_desc *descs, unsigned n)
{
	struct gmem *mem = NULL;

	ck_assert_int_eq(gmem_new(&mem, descs, n), 0);
	ck_assert_ptr_nonnull(mem);
	ck_assert_uint_eq(mem->n_regions, n);
	return mem;
}

static uint64_t word_at(const struct gmem *mem, uint64_t gpa)
{
	uint64_t len = 8;
	const uint64_t *word = gmem_translate(mem, (gpa_t){gpa}, &len);

	ck_assert_ptr_nonnull(word);
	ck_assert_uint_eq(len, 8);
	return *word;
}

/* Whether a byte of ours can be read, asked of the kernel: no signal comes of it. */
static bool is_readable(const void *byte)
{
	int pipe_fds[2];
	bool ok;

	ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
	ok = write(pipe_fds[1], byte, 1) == 1;
	ck_assert(ok || errno == EFAULT);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return ok;
}

START_TEST(each_address_finds_its_region)
{
	struct gmem_region_desc descs[] = {
		{.gpa = 0x100000,
		 .uva = UVA,
		 .size = 4 * PAGE,
		 .fd = memfile_make(4 * PAGE, 1 << 20)},
		{.gpa = 0,
		 .uva = UVA + (1 << 30),
		 .size = 2 * PAGE,
		 .fd = memfile_make(2 * PAGE, 0)},
	};
	struct gmem *mem = map(descs, 2);
	uint64_t len = 3 * PAGE;

	ck_assert_uint_eq(mem->regions[0].gpa, 0);
	ck_assert_uint_eq(mem->regions[1].gpa, 0x100000);
	ck_assert_uint_eq(word_at(mem, 0), 0);
	ck_assert_uint_eq(word_at(mem, 2 * PAGE - 8), 2 * PAGE - 8);
	ck_assert_uint_eq(word_at(mem, 0x100000), 1 << 20);
	ck_assert_uint_eq(word_at(mem, 0x100000 + 3 * PAGE), (1 << 20) + 3 * PAGE);
	/* Cut at the region's end. */
	ck_assert_ptr_nonnull(gmem_translate(mem, (gpa_t){PAGE}, &len));
	ck_assert_uint_eq(len, PAGE);
	len = 1;
	ck_assert_ptr_null(gmem_translate(mem, (gpa_t){2 * PAGE}, &len));
	ck_assert_ptr_null(gmem_translate(mem, (gpa_t){0xfffff}, &len));
	ck_assert_ptr_null(gmem_translate(mem, (gpa_t){0x100000 + 4 * PAGE}, &len));
	ck_assert_ptr_null(gmem_translate(mem, (gpa_t){UINT64_MAX}, &len));
	gmem_put(mem);
}
END_TEST

START_TEST(memory_is_shared_both_ways)
{
	int fd = memfile_make(PAGE, 0);
	struct gmem_region_desc desc = {.uva = UVA, .size = PAGE, .fd = fd};
	struct gmem *mem = map(&desc, 1);
	uint64_t value = 42;

	ck_assert_int_eq(pwrite(fd, &value, 8, 16), 8);
	ck_assert_uint_eq(word_at(mem, 16), 42);
	memcpy(mem->regions[0].host + 24, &value, 8);
	value = 0;
	ck_assert_int_eq(pread(fd, &value, 8, 24), 8);
	ck_assert_uint_eq(value, 42);
	gmem_put(mem);
}
END_TEST

START_TEST(mmap_offset_need_not_be_a_multiple_of_a_page)
{
	static const uint64_t offsets[] = {0, 8, PAGE - 8, PAGE, 3 * PAGE + 0x230};
	struct gmem_region_desc desc = {
		.gpa = 0x1000,
		.uva = UVA,
		.size = 2 * PAGE,
		.mmap_offset = offsets[_i],
		.fd = memfile_make(offsets[_i] + 2 * PAGE, 0),
	};
	struct gmem *mem = map(&desc, 1);

	ck_assert_uint_eq(word_at(mem, 0x1000), offsets[_i]);
	ck_assert_uint_eq(word_at(mem, 0x1000 + 2 * PAGE - 8), offsets[_i] + 2 * PAGE - 8);
	gmem_put(mem);
}
END_TEST

START_TEST(address_and_file_offset_agree_for_huge_pages)
{
	struct gmem_region_desc desc = {
		.uva = UVA,
		.size = 4 * HUGE_PAGE,
		.mmap_offset = 0xc0000,
		.fd = memfile_make(5 * HUGE_PAGE, 0),
	};
	struct gmem *mem = map(&desc, 1);

	ck_assert_uint_eq((uintptr_t)mem->regions[0].host % HUGE_PAGE, 0xc0000);
	gmem_put(mem);
}
END_TEST

struct bad_region {
	const char *what;
	int err;
	struct gmem_region_desc desc; /* fd 0: a file of 4 pages */
};

#define GPA 0x100000
static const struct bad_region bad_regions[] = {
	{"empty", -EINVAL, {GPA, UVA, 0, 0, 0}},
	{"gpa wraps", -EINVAL, {UINT64_MAX - 4 * PAGE + 2, UVA, 4 * PAGE, 0, 0}},
	{"uva wraps", -EINVAL, {GPA, UINT64_MAX - PAGE + 1, 4 * PAGE, 0, 0}},
	{"size wraps", -EINVAL, {GPA, UVA, UINT64_MAX, 0, 0}},
	{"size is everything but gpa", -EINVAL, {GPA, 0, UINT64_MAX - GPA, 0, 0}},
	{"one byte past the end", -EINVAL, {GPA, UVA, 4 * PAGE + 1, 0, 0}},
	{"offset one byte too far", -EINVAL, {GPA, UVA, 4 * PAGE, 1, 0}},
	{"offset at the end", -EINVAL, {GPA, UVA, 4 * PAGE, 4 * PAGE, 0}},
	{"offset wraps to zero", -EINVAL, {GPA, UVA, 4 * PAGE, UINT64_MAX - 4 * PAGE + 1, 0}},
	{"offset huge", -EINVAL, {GPA, UVA, 4 * PAGE, UINT64_MAX, 0}},
	{"no file", -EBADF, {GPA, UVA, 4 * PAGE, 0, -1}},
};

static void fill_file(struct gmem_region_desc *desc, int fd)
{
	if (desc->fd == 0)
		desc->fd = fd;
}

START_TEST(bad_region_is_refused_with_one_line)
{
	struct gmem_region_desc desc = bad_regions[_i].desc;
	unsigned fds_before;
	struct gmem *mem = NULL;

	fill_file(&desc, memfile_make(4 * PAGE, 0));
	fds_before = fds_count();
	ck_assert_msg(gmem_new(&mem, &desc, 1) == bad_regions[_i].err, "%s", bad_regions[_i].what);
	ck_assert_ptr_null(mem);
	ck_assert_uint_eq(log_capture_count(&lines, "\n"), 1);
	ck_assert_uint_eq(log_capture_count(&lines, "region 0"), 1);
	ck_assert_uint_eq(memfile_count_mappings(), 0);
	ck_assert_uint_eq(fds_count(), fds_before);
}
END_TEST

START_TEST(bad_region_after_good_ones_leaves_nothing)
{
	struct gmem_region_desc descs[3] = {
		{.gpa = 0, .uva = UVA + 0x100000, .size = PAGE, .fd = memfile_make(PAGE, 0)},
		{.gpa = PAGE, .uva = UVA + 0x200000, .size = PAGE, .fd = memfile_make(PAGE, 0)},
	};
	struct gmem *mem = NULL;

	descs[2] = bad_regions[_i].desc;
	fill_file(&descs[2], memfile_make(4 * PAGE, 0));
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(gmem_new(&mem, descs, 3), bad_regions[_i].err);
	ck_assert_uint_eq(log_capture_count(&lines, "region 2"), 10);
	ck_assert_uint_eq(memfile_count_mappings(), 0);
}
END_TEST

START_TEST(regions_may_end_where_the_address_space_does)
{
	struct gmem_region_desc desc = {
		.gpa = UINT64_MAX - PAGE + 1,
		.uva = UINT64_MAX - PAGE + 1,
		.size = PAGE,
		.fd = memfile_make(PAGE, 0),
	};
	struct gmem *mem = map(&desc, 1);
	uint64_t word;

	ck_assert_uint_eq(word_at(mem, UINT64_MAX - 7), PAGE - 8);
	ck_assert_int_eq(gmem_read(mem, (gpa_t){UINT64_MAX - 7}, &word, 8), 0);
	ck_assert_int_eq(gmem_read(mem, (gpa_t){UINT64_MAX - 6}, &word, 8), -EFAULT);
	ck_assert_ptr_nonnull(gmem_uva_span(mem, (uva_t){UINT64_MAX - 7}, 8));
	ck_assert_ptr_null(gmem_uva_span(mem, (uva_t){UINT64_MAX - 7}, 9));
	ck_assert_ptr_null(gmem_uva_span(mem, (uva_t){UINT64_MAX - 7}, UINT64_MAX));
	gmem_put(mem);
}
END_TEST

START_TEST(overlaps_are_refused)
{
	/* Where the second region lies relative to the first, which has 4 pages. */
	static const struct {
		int64_t gpa, uva;
		uint64_t size;
	} second[] = {
		{0, 0x100000, 4 * PAGE},
		{0x100000, 0, 4 * PAGE},
		{4 * PAGE - 1, 0x100000, 1},
		{0x100000, 4 * PAGE - 1, 1},
		{-1, 0x100000, 2},
		{0x100000, -1, 2},
		{-0x1000, 0x100000, 6 * PAGE},
		{0x100000, -0x1000, 6 * PAGE},
		{PAGE, 0x100000, PAGE},
		{0x100000, PAGE, PAGE},
	};
	struct gmem_region_desc descs[2] = {
		{.gpa = 0x100000, .uva = UVA, .size = 4 * PAGE, .fd = memfile_make(8 * PAGE, 0)},
	};
	struct gmem *mem = NULL;

	descs[1] = (struct gmem_region_desc){
		.gpa = descs[0].gpa + (uint64_t)second[_i].gpa,
		.uva = descs[0].uva + (uint64_t)second[_i].uva,
		.size = second[_i].size,
		.fd = descs[0].fd,
	};
	ck_assert_int_eq(gmem_new(&mem, descs, 2), -EINVAL);
	ck_assert_uint_eq(log_capture_count(&lines, "overlaps"), 1);
	ck_assert_uint_eq(memfile_count_mappings(), 0);
}
END_TEST

START_TEST(number_of_regions_is_bounded)
{
	struct gmem_region_desc descs[GMEM_MAX_REGIONS + 1];
	struct gmem *mem = NULL;

	for (unsigned i = 0; i <= GMEM_MAX_REGIONS; i++)
		descs[i] = (struct gmem_region_desc){
			.gpa = i * PAGE,
			.uva = UVA + i * PAGE,
			.size = PAGE,
			.fd = memfile_make(PAGE, i * PAGE),
		};
	ck_assert_int_eq(gmem_new(&mem, descs, 0), -EINVAL);
	ck_assert_int_eq(gmem_new(&mem, descs, GMEM_MAX_REGIONS + 1), -EINVAL);
	mem = map(descs, GMEM_MAX_REGIONS);
	ck_assert_ptr_nonnull(gmem_uva_span(mem, (uva_t){UVA}, GMEM_MAX_REGIONS * PAGE));
	gmem_put(mem);
}
END_TEST

START_TEST(files_that_cannot_be_shared_memory_are_refused)
{
	struct gmem_region_desc desc = {.uva = UVA, .size = PAGE};
	char name[64];
	struct gmem *mem = NULL;

	desc.fd = eventfd(0, EFD_CLOEXEC);
	ck_assert_int_eq(gmem_new(&mem, &desc, 1), -ENODEV);
	close(desc.fd);
	ck_assert_int_eq(gmem_new(&mem, &desc, 1), -EBADF);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", memfile_make(PAGE, 0));
	desc.fd = open(name, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(gmem_new(&mem, &desc, 1), -EACCES);
	close(desc.fd);
	ck_assert_uint_eq(memfile_count_mappings(), 0);
}
END_TEST

START_TEST(file_with_a_write_seal_is_refused)
{
	struct gmem_region_desc desc = {.uva = UVA, .size = PAGE};
	struct gmem *mem = NULL;

	desc.fd = memfile_make(PAGE, 0);
	ck_assert_int_eq(fcntl(desc.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	ck_assert_int_eq(gmem_new(&mem, &desc, 1), -EPERM);
	ck_assert_uint_eq(memfile_count_mappings(), 0);
}
END_TEST

START_TEST(neighbours_of_the_frontend_are_neighbours_here)
{
	struct gmem_region_desc descs[] = {
		{.gpa = 0x1000,
		 .uva = UVA + 2 * PAGE,
		 .size = PAGE,
		 .fd = memfile_make(PAGE, 0x2000)},
		{.gpa = 0x9000, .uva = UVA, .size = 2 * PAGE, .fd = memfile_make(2 * PAGE, 0)},
		{.gpa = 0x4000,
		 .uva = UVA + 4 * PAGE,
		 .size = PAGE,
		 .fd = memfile_make(PAGE, 0x4000)},
	};
	struct gmem *mem = map(descs, 3);
	const uint64_t *words = gmem_uva_span(mem, (uva_t){UVA}, 3 * PAGE);

	ck_assert_ptr_nonnull(words);
	for (uint64_t i = 0; i < 3 * PAGE / 8; i++)
		ck_assert_uint_eq(words[i], i * 8);
	/* There is a hole at page 3. */
	ck_assert_ptr_null(gmem_uva_span(mem, (uva_t){UVA}, 3 * PAGE + 1));
	ck_assert_ptr_null(gmem_uva_span(mem, (uva_t){UVA}, 5 * PAGE));
	ck_assert_ptr_null(gmem_uva_span(mem, (uva_t){UVA + 3 * PAGE}, 1));
	ck_assert_ptr_null(gmem_uva_span(mem, (uva_t){UVA - 1}, 1));
	ck_assert_ptr_null(gmem_uva_span(mem, (uva_t){UVA}, UINT64_MAX));
	ck_assert_ptr_nonnull(gmem_uva_span(mem, (uva_t){UVA + 5 * PAGE - 1}, 1));
	ck_assert_ptr_null(gmem_uva_span(mem, (uva_t){UVA + 5 * PAGE - 1}, 2));
	gmem_put(mem);
}
END_TEST

START_TEST(neighbours_that_do_not_fill_their_pages_are_kept_apart)
{
	struct gmem_region_desc descs[] = {
		{.gpa = 0, .uva = UVA, .size = PAGE + 8, .fd = memfile_make(2 * PAGE, 0)},
		{.gpa = PAGE + 8,
		 .uva = UVA + PAGE + 8,
		 .size = PAGE,
		 .fd = memfile_make(PAGE, 1 << 20)},
	};
	struct gmem *mem = map(descs, 2);
	uint64_t words[2] = {0};

	ck_assert_ptr_nonnull(gmem_uva_span(mem, (uva_t){UVA}, PAGE + 8));
	ck_assert_ptr_null(gmem_uva_span(mem, (uva_t){UVA}, PAGE + 9));
	/* To the guest they are one, and reading goes on in the next. */
	ck_assert_int_eq(gmem_read(mem, (gpa_t){PAGE}, words, sizeof(words)), 0);
	ck_assert_uint_eq(words[0], PAGE);
	ck_assert_uint_eq(words[1], 1 << 20);
	gmem_put(mem);
}
END_TEST

START_TEST(each_run_has_a_guard_at_either_end)
{
	struct gmem_region_desc descs[] = {
		{.gpa = 0, .uva = UVA, .size = 2 * PAGE, .fd = memfile_make(2 * PAGE, 0)},
		{.gpa = 2 * PAGE,
		 .uva = UVA + (1 << 30),
		 .size = PAGE,
		 .fd = memfile_make(PAGE, 0)},
	};
	struct gmem *mem = map(descs, 2);

	for (unsigned i = 0; i < 2; i++) {
		const struct gmem_region *r = &mem->regions[i];

		ck_assert(is_readable(r->host));
		ck_assert(is_readable(r->host + r->size - 1));
		ck_assert(!is_readable(r->host - 1));
		ck_assert(!is_readable(r->host - PAGE));
		ck_assert(!is_readable(r->host + r->size));
		ck_assert(!is_readable(r->host + r->size + PAGE - 1));
	}
	gmem_put(mem);
}
END_TEST

START_TEST(read_crosses_regions_and_stops_at_holes)
{
	struct gmem_region_desc descs[] = {
		{.gpa = 0, .uva = UVA, .size = PAGE, .fd = memfile_make(PAGE, 0)},
		{.gpa = PAGE, .uva = UVA + (2 << 20), .size = PAGE, .fd = memfile_make(PAGE, PAGE)},
		{.gpa = 2 * PAGE,
		 .uva = UVA + (1 << 20),
		 .size = PAGE,
		 .fd = memfile_make(PAGE, 2 * PAGE)},
	};
	struct gmem *mem = map(descs, 3);
	static uint64_t words[3 * PAGE / 8];

	ck_assert_int_eq(gmem_read(mem, (gpa_t){0}, words, sizeof(words)), 0);
	for (uint64_t i = 0; i < sizeof(words) / 8; i++)
		ck_assert_uint_eq(words[i], i * 8);
	ck_assert_int_eq(gmem_read(mem, (gpa_t){8}, words, sizeof(words)), -EFAULT);
	ck_assert_int_eq(gmem_read(mem, (gpa_t){3 * PAGE}, words, 1), -EFAULT);
	ck_assert_int_eq(gmem_read(mem, (gpa_t){3 * PAGE}, words, 0), 0);
	gmem_put(mem);
}
END_TEST

START_TEST(last_reference_unmaps)
{
	struct gmem_region_desc desc = {.uva = UVA, .size = PAGE, .fd = memfile_make(PAGE, 0)};
	struct gmem *mem = map(&desc, 1);

	ck_assert_ptr_eq(gmem_get(mem), mem);
	gmem_put(mem);
	ck_assert_uint_eq(memfile_count_mappings(), 1);
	ck_assert_uint_eq(word_at(mem, 8), 8);
	gmem_put(mem);
	ck_assert_uint_eq(memfile_count_mappings(), 0);
	gmem_put(NULL);
}
END_TEST

static void *get_and_put(void *arg)
{
	struct gmem *mem = arg;

	for (int i = 0; i < 20000; i++)
		gmem_put(gmem_get(mem));
	gmem_put(mem);
	return NULL;
}

START_TEST(references_are_counted_in_any_thread)
{
	struct gmem_region_desc desc = {.uva = UVA, .size = PAGE, .fd = memfile_make(PAGE, 0)};
	struct gmem *mem = map(&desc, 1);
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, get_and_put, gmem_get(mem)), 0);
	gmem_put(mem);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(memfile_count_mappings(), 0);
}
END_TEST

START_TEST(files_are_not_kept_open)
{
	int fd = memfile_make(PAGE, 0);
	struct gmem_region_desc desc = {.uva = UVA, .size = PAGE, .fd = dup(fd)};
	unsigned before = fds_count();
	struct gmem *mem = map(&desc, 1);

	ck_assert_uint_eq(fds_count(), before);
	close(desc.fd);
	ck_assert_uint_eq(word_at(mem, 8), 8);
	gmem_put(mem);
	ck_assert_uint_eq(fds_count(), before - 1);
}
END_TEST

START_TEST(too_many_live_tables_are_refused_until_some_go)
{
	struct gmem_region_desc descs[GMEM_MAX_REGIONS];
	struct gmem *tables[64];
	unsigned n = 0;
	int err = 0;

	for (unsigned i = 0; i < GMEM_MAX_REGIONS; i++)
		descs[i] = (struct gmem_region_desc){
			.gpa = i * PAGE,
			.uva = UVA + i * PAGE,
			.size = PAGE,
			.fd = memfile_make(PAGE, 0),
		};
	/* One table of 3 regions, so that the limit strikes in the middle of a table. */
	tables[n++] = map(descs, 3);
	while (n < 64 && (err = gmem_new(&tables[n], descs, GMEM_MAX_REGIONS)) == 0)
		n++;
	ck_assert_int_eq(err, -ENOMEM);
	ck_assert_uint_gt(n, 4);
	ck_assert_uint_eq(memfile_count_mappings(), 3 + (n - 1) * GMEM_MAX_REGIONS);
	gmem_put(tables[--n]);
	tables[n++] = map(descs, GMEM_MAX_REGIONS);
	while (n > 0)
		gmem_put(tables[--n]);
	ck_assert_uint_eq(memfile_count_mappings(), 0);
}
END_TEST

START_TEST(repeats_leak_no_mapping)
{
	struct gmem_region_desc descs[] = {
		{.gpa = 0, .uva = UVA, .size = 2 * PAGE, .fd = memfile_make(2 * PAGE, 0)},
		{.gpa = 2 * PAGE, .uva = UVA + 2 * PAGE, .size = PAGE, .fd = memfile_make(PAGE, 0)},
	};
	unsigned before = fds_count();

	for (int i = 0; i < 10000; i++)
		gmem_put(map(descs, 2));
	ck_assert_uint_eq(memfile_count_mappings(), 0);
	ck_assert_uint_eq(fds_count(), before);
}
END_TEST

START_TEST(huge_pages_are_mapped_from_their_start)
{
	struct gmem_region_desc desc = {
		.gpa = 0x1000,
		.uva = UVA,
		.size = HUGE_PAGE,
		.mmap_offset = HUGE_PAGE + 0x3008,
		.fd = memfile_make_huge(4 * HUGE_PAGE),
	};
	struct gmem *mem;

	if (desc.fd < 0)
		return;
	mem = map(&desc, 1);
	ck_assert_uint_eq((uintptr_t)mem->regions[0].host % HUGE_PAGE, 0x3008);
	gmem_put(mem);
	ck_assert_uint_eq(memfile_count_mappings(), 0);
	desc.size = 3 * HUGE_PAGE;
	ck_assert_int_eq(gmem_new(&mem, &desc, 1), -EINVAL);
}
END_TEST

START_TEST(huge_and_small_pages_are_neighbours_where_they_can_be)
{
	struct gmem_region_desc descs[] = {
		{.gpa = 0, .uva = UVA, .size = HUGE_PAGE, .fd = memfile_make(HUGE_PAGE, 0)},
		{.gpa = HUGE_PAGE,
		 .uva = UVA + HUGE_PAGE,
		 .size = HUGE_PAGE + PAGE,
		 .fd = memfile_make_huge(2 * HUGE_PAGE)},
		{.gpa = 2 * HUGE_PAGE + PAGE,
		 .uva = UVA + 2 * HUGE_PAGE + PAGE,
		 .size = PAGE,
		 .fd = memfile_make(PAGE, 0)},
	};
	struct gmem *mem;

	if (descs[1].fd < 0)
		return;
	mem = map(descs, 3);
	ck_assert_ptr_nonnull(gmem_uva_span(mem, (uva_t){UVA}, 2 * HUGE_PAGE + PAGE));
	/* The second one's last huge page goes on where the third one would have to begin. */
	ck_assert_ptr_null(gmem_uva_span(mem, (uva_t){UVA}, 2 * HUGE_PAGE + PAGE + 1));
	gmem_put(mem);
}
END_TEST

static void add_tables(TCase *tc)
{
	int n_bad = (int)array_size(bad_regions);

	tcase_add_test(tc, each_address_finds_its_region);
	tcase_add_test(tc, memory_is_shared_both_ways);
	tcase_add_loop_test(tc, mmap_offset_need_not_be_a_multiple_of_a_page, 0, 5);
	tcase_add_test(tc, address_and_file_offset_agree_for_huge_pages);
	tcase_add_loop_test(tc, bad_region_is_refused_with_one_line, 0, n_bad);
	tcase_add_loop_test(tc, bad_region_after_good_ones_leaves_nothing, 0, n_bad);
	tcase_add_test(tc, regions_may_end_where_the_address_space_does);
	tcase_add_loop_test(tc, overlaps_are_refused, 0, 10);
	tcase_add_test(tc, number_of_regions_is_bounded);
	tcase_add_test(tc, files_that_cannot_be_shared_memory_are_refused);
	tcase_add_test(tc, file_with_a_write_seal_is_refused);
	tcase_add_test(tc, too_many_live_tables_are_refused_until_some_go);
	tcase_add_test(tc, repeats_leak_no_mapping);
	tcase_add_test(tc, files_are_not_kept_open);
	tcase_add_test(tc, last_reference_unmaps);
	tcase_add_test(tc, references_are_counted_in_any_thread);
}

static void add_layout(TCase *tc)
{
	tcase_add_test(tc, neighbours_of_the_frontend_are_neighbours_here);
	tcase_add_test(tc, neighbours_that_do_not_fill_their_pages_are_kept_apart);
	tcase_add_test(tc, each_run_has_a_guard_at_either_end);
	tcase_add_test(tc, read_crosses_regions_and_stops_at_holes);
	tcase_add_test(tc, huge_pages_are_mapped_from_their_start);
	tcase_add_test(tc, huge_and_small_pages_are_neighbours_where_they_can_be);
}

int main(void)
{
	Suite *suite = suite_create("gmem");
	TCase *tc = tcase_create("gmem");
	SRunner *runner;
	int n_failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	add_tables(tc);
	add_layout(tc);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
