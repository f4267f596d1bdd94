/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/lines.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/netdev.h"
#include "net/worker.h"
#include "support/ring.h"
#include "support/suite.h"

#define N_PAIRS	 4
#define MAX_OWNS 64

/* ---- who has which cache lines ---- */

static struct {
	uintptr_t first, last;
	unsigned owner;
} owned[MAX_OWNS];
static unsigned n_owned;

static void set_up(void)
{
	n_owned = 0;
}

static void owns(unsigned owner, const void *p, size_t size)
{
	expect_lt(n_owned, MAX_OWNS);
	owned[n_owned].first = (uintptr_t)p / CACHELINE;
	owned[n_owned].last = ((uintptr_t)p + size - 1) / CACHELINE;
	owned[n_owned++].owner = owner;
}

/* Return: how many lines two owners have in common. */
static size_t count_shared(void)
{
	size_t n = 0;

	for (unsigned i = 0; i < n_owned; i++)
		for (unsigned j = 0; j < i; j++) {
			uintptr_t first = max_of(owned[i].first, owned[j].first);
			uintptr_t last = min_of(owned[i].last, owned[j].last);

			if (owned[i].owner != owned[j].owner && first <= last)
				n += last - first + 1;
		}
	return n;
}

START_TEST(shared_lines_are_found)
{
	char *p = lines_alloc(4, CACHELINE);

	owns(0, p, CACHELINE + 1);
	owns(1, p + CACHELINE + 1, 1);
	owns(1, p + 2 * CACHELINE, CACHELINE);
	owns(0, p + 3 * CACHELINE, CACHELINE);
	expect_eq(count_shared(), 1);
	free(p);
}
END_TEST

/* ---- memory ---- */

START_TEST(it_is_zero_and_alone_on_its_lines)
{
	char *blocks[32];

	for (unsigned i = 0; i < array_size(blocks); i++) {
		size_t size = 1 + i * 13;

		blocks[i] = lines_alloc(3, size);
		expect(blocks[i] != NULL);
		for (size_t at = 0; at < 3 * size; at++)
			expect_eq(blocks[i][at], 0);
		memset(blocks[i], 0xff, 3 * size);
		owns(i, blocks[i], 3 * size);
	}
	expect_eq(count_shared(), 0);
	for (unsigned i = 0; i < array_size(blocks); i++)
		free(blocks[i]);
}
END_TEST

START_TEST(sizes_that_overflow_are_refused)
{
	errno = 0;
	expect(lines_alloc(SIZE_MAX / 2, 3) == NULL);
	expect_eq(errno, ENOMEM);
	errno = 0;
	expect(lines_alloc(1, SIZE_MAX - 1) == NULL);
	expect_eq(errno, ENOMEM);
}
END_TEST

/* ---- queue pairs ---- */

/* A worker and its part of the port, whose size only the port knows: all up to the next one. */
static void pair_owns(const struct netdev *n, unsigned i)
{
	const char *stats = (const char *)netdev_stats(n, i);
	const struct worker *w = (const void *)(stats - offsetof(struct worker, pair.stats));

	owns(i, w, sizeof(*w));
	owns(i, w->pair.port, sizeof(*w->pair.port));
	if (i > 0)
		owns(i - 1, (const char *)w->pair.port - 1, 1);
}

static void check_pairs(const struct port_ops *ops)
{
	struct netdev_pair_config pairs[N_PAIRS];
	struct port_config port = {.ops = ops, .source_size = 60};
	struct netdev_config cfg = {.n_pairs = N_PAIRS, .port = &port, .pairs = pairs};
	struct ev_loop *loop = ev_loop_new(0);
	struct netdev *n;

	for (unsigned i = 0; i < N_PAIRS; i++)
		pairs[i] = (struct netdev_pair_config){.cpu = -1, .params.batch = 64};
	expect_eq(netdev_open(&n, &cfg, loop), 0);
	for (unsigned i = 0; i < N_PAIRS; i++)
		pair_owns(n, i);
	expect_eq(count_shared(), 0);
	netdev_close(n);
	ev_loop_destroy(loop);
}

START_TEST(pairs_share_no_line)
{
	check_pairs(_i == 0 ? &null_port : &loopback_port);
}
END_TEST

START_TEST(started_rings_share_no_line)
{
	struct ring_guest guest;
	struct ring rings[N_PAIRS];
	struct virtq vqs[N_PAIRS] = {0};

	ring_guest_init(&guest, 0);
	for (unsigned i = 0; i < N_PAIRS; i++) {
		struct ring_shape shape = ring_shape((int)i);
		struct virtq_setup setup;

		ring_init(&rings[i], &guest, &shape, 0);
		setup = ring_setup(&rings[i]);
		expect_eq(virtq_start(&vqs[i], &setup), 0);
		owns(i, vqs[i].chains, (vqs[i].mask + 1u) * sizeof(*vqs[i].chains));
		owns(i, vqs[i].iov_pool, vqs[i].iov_capacity * sizeof(*vqs[i].iov_pool));
	}
	expect_eq(count_shared(), 0);
	for (unsigned i = 0; i < N_PAIRS; i++) {
		virtq_stop(&vqs[i]);
		ring_fini(&rings[i]);
	}
	ring_guest_fini(&guest);
}
END_TEST

static void add_all(TCase *tc)
{
	tcase_add_test(tc, shared_lines_are_found);
	tcase_add_test(tc, it_is_zero_and_alone_on_its_lines);
	tcase_add_test(tc, sizes_that_overflow_are_refused);
	tcase_add_loop_test(tc, pairs_share_no_line, 0, 2);
	tcase_add_test(tc, started_rings_share_no_line);
}

int main(void)
{
	static const struct suite_case cases[] = {{"lines", set_up, NULL, add_all}};

	return suite_run("lines", cases, array_size(cases));
}
