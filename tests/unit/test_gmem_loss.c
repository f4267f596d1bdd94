/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens when the file behind guest memory gets shorter: see mem/gmem.h. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/gmem.h"
#include "support/memfile.h"

#define PAGE	  MEMFILE_PAGE
#define HUGE_PAGE MEMFILE_HUGE_PAGE
#define UVA	  0x7f0000000000ULL

static int lost_fd = -1;

static void setup(void)
{
	lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ck_assert_int_eq(gmem_sigbus_install(lost_fd), 0);
}

static void teardown(void)
{
	memfile_close_all();
	close(lost_fd);
}

static struct gmem *map(const struct gmem_region_desc *descs, unsigned n)
{
	struct gmem *mem = NULL;

	ck_assert_int_eq(gmem_new(&mem, descs, n), 0);
	return mem;
}

static uint64_t word_at(const struct gmem *mem, uint64_t gpa)
{
	uint64_t word;

	ck_assert_int_eq(gmem_read(mem, (gpa_t){gpa}, &word, sizeof(word)), 0);
	return word;
}

static bool was_told_of_loss(void)
{
	uint64_t value;

	return read(lost_fd, &value, sizeof(value)) == sizeof(value);
}

START_TEST(lost_page_reads_zeros_and_is_told)
{
	int fd = memfile_make(4 * PAGE, 1);
	struct gmem_region_desc desc = {.uva = UVA, .size = 4 * PAGE, .fd = fd};
	struct gmem *mem = map(&desc, 1);

	ck_assert_int_eq(ftruncate(fd, 2 * PAGE), 0);
	ck_assert_uint_eq(word_at(mem, PAGE), 1 + PAGE);
	ck_assert(!was_told_of_loss());
	errno = 77;
	ck_assert_uint_eq(word_at(mem, 2 * PAGE + 8), 0);
	ck_assert_int_eq(errno, 77);
	ck_assert(was_told_of_loss());
	/* Once per page; and what is written there goes nowhere, but does no harm. */
	memset(mem->regions[0].host + 2 * PAGE, 0xff, PAGE);
	ck_assert(!was_told_of_loss());
	memset(mem->regions[0].host + 3 * PAGE, 0xff, PAGE);
	ck_assert(was_told_of_loss());
	ck_assert_uint_eq(word_at(mem, 0), 1);
	gmem_put(mem);
	ck_assert_uint_eq(memfile_count_mappings(), 0);
}
END_TEST

static void *touch_all(void *arg)
{
	const struct gmem *mem = arg;
	uint64_t sum = 0;

	for (unsigned i = 0; i < mem->n_regions; i++)
		for (uint64_t off = 0; off < mem->regions[i].size; off += PAGE)
			sum += *(const volatile char *)(mem->regions[i].host + off);
	return (void *)(uintptr_t)sum;
}

START_TEST(worker_survives_the_loss_of_everything)
{
	struct gmem_region_desc descs[] = {
		{.gpa = 0, .uva = UVA, .size = 64 * PAGE, .fd = memfile_make(64 * PAGE, 1)},
		{.gpa = 64 * PAGE,
		 .uva = UVA + 64 * PAGE,
		 .size = 64 * PAGE,
		 .mmap_offset = 8,
		 .fd = memfile_make(65 * PAGE, 1)},
	};
	struct gmem *mem = map(descs, 2);
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(ftruncate(descs[i].fd, 0), 0);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, touch_all, mem), 0);
	for (unsigned i = 0; i < 2; i++) {
		void *sum;

		pthread_join(threads[i], &sum);
		ck_assert_ptr_null(sum);
	}
	ck_assert(was_told_of_loss());
	gmem_put(mem);
}
END_TEST

START_TEST(lost_huge_page_is_replaced_as_a_whole)
{
	int fd = memfile_make_huge(2 * HUGE_PAGE);
	struct gmem_region_desc desc = {.uva = UVA, .size = 2 * HUGE_PAGE, .fd = fd};
	struct gmem *mem;

	if (fd < 0)
		return;
	mem = map(&desc, 1);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_uint_eq(word_at(mem, HUGE_PAGE + 5 * PAGE), 0);
	ck_assert(was_told_of_loss());
	ck_assert_uint_eq(word_at(mem, HUGE_PAGE), 0);
	ck_assert_uint_eq(word_at(mem, 2 * HUGE_PAGE - 8), 0);
	ck_assert(!was_told_of_loss());
	ck_assert_uint_eq(word_at(mem, 0), 0);
	ck_assert(was_told_of_loss());
	gmem_put(mem);
	ck_assert_uint_eq(memfile_count_mappings(), 0);
}
END_TEST

/* Return: the signal that ended a child which runs `body`. */
static int signal_of_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* The mapping is somebody else's: of the file, but not by way of gmem. */
static void touch_unknown_lost_page(void)
{
	int fd = memfile_make(PAGE, 0);
	volatile char *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

	if (ftruncate(fd, 0) == 0)
		(void)*page;
}

static void touch_lost_page_of_a_table_that_is_gone(void)
{
	int fd = memfile_make(PAGE, 0);
	struct gmem_region_desc desc = {.uva = UVA, .size = PAGE, .fd = fd};
	struct gmem *mem = map(&desc, 1);
	char *host = mem->regions[0].host;

	gmem_put(mem);
	if (mmap(host, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == host &&
	    ftruncate(fd, 0) == 0)
		(void)*(volatile char *)host;
}

static void send_sigbus(void)
{
	kill(getpid(), SIGBUS);
}

START_TEST(other_bus_errors_end_the_process_as_before)
{
	ck_assert_int_eq(signal_of_child(touch_unknown_lost_page), SIGBUS);
	ck_assert_int_eq(signal_of_child(touch_lost_page_of_a_table_that_is_gone), SIGBUS);
	ck_assert_int_eq(signal_of_child(send_sigbus), SIGBUS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gmem_loss");
	TCase *tc = tcase_create("gmem_loss");
	SRunner *runner;
	int n_failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, lost_page_reads_zeros_and_is_told);
	tcase_add_test(tc, worker_survives_the_loss_of_everything);
	tcase_add_test(tc, lost_huge_page_is_replaced_as_a_whole);
	tcase_add_test(tc, other_bus_errors_end_the_process_as_before);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
