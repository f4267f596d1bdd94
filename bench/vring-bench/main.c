/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vring-bench: how fast is a ring? See --help, vring.h for the parts, doc/performance.md for figures.
 * Driver threads have core 1, device threads core 0; where one thread is both, each lane has the next
 * core. A measurement starts fresh lanes, lets them run for a moment, and then counts packets over the
 * time that it takes.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "base/timer.h"
#include "options.h"

#define MAX_ROUNDS 100
#define WARM_UP_MS 50

/* A queue pair: the two sides, and how to take a turn of each. */
struct lane {
	struct setting s;
	struct memory memory;
	struct driver *driver;
	struct device *device;
	struct floor_ring *floor;
	int call_fd;
	bool *is_over;
	unsigned cpu; /* of a thread that is both sides */
	pthread_t driver_thread, device_thread;
};

/* What a measurement found; per packet but for the rate. */
struct result {
	double mpps, ns, cycles, publishes, calls;
};

/* ---- lanes ---- */

static bool lane_open(struct lane *l, const struct setting *s, bool *is_over)
{
	/* Buffers with their surroundings, rings and tables. */
	uint64_t per_chain = (uint64_t)s->packet + 512 + 16ull * s->chain;

	*l = (struct lane){.s = *s, .is_over = is_over, .call_fd = -1};
	if (memory_init(&l->memory, (s->size * per_chain + (1u << 20)) & ~4095ull) < 0)
		return false;
	if (s->is_floor) {
		l->floor = floor_new(s, &l->memory);
		return l->floor != NULL;
	}
	if (s->wants_calls)
		l->call_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->driver = driver_new(s, &l->memory);
	if (!l->driver)
		return false;
	l->device = device_new(s, &l->memory, l->driver, l->call_fd);
	return l->device != NULL;
}

static void lane_close(struct lane *l)
{
	if (l->device)
		device_free(l->device);
	if (l->driver)
		driver_free(l->driver);
	if (l->floor)
		floor_free(l->floor);
	if (l->call_fd >= 0)
		close(l->call_fd);
	memory_fini(&l->memory);
}

static struct device_counts lane_counts(const struct lane *l)
{
	if (l->floor)
		return (struct device_counts){.packets = floor_packets(l->floor)};
	return device_counts(l->device);
}

static bool is_over(const struct lane *l)
{
	return __atomic_load_n(l->is_over, __ATOMIC_RELAXED);
}

static void pin(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((unsigned)cpu, &cpus);
	/* Where there is no such core it stays where it is. */
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

static void *driver_main(void *arg)
{
	struct lane *l = arg;

	pin(1);
	while (!is_over(l)) {
		if (l->floor)
			floor_driver_turn(l->floor);
		else if (driver_turn(l->driver) == 0)
			driver_wait(l->driver, l->call_fd);
	}
	return NULL;
}

static void *device_main(void *arg)
{
	struct lane *l = arg;

	pin(0);
	while (!is_over(l)) {
		if (l->floor)
			floor_device_turn(l->floor);
		else
			device_turn(l->device);
	}
	return NULL;
}

/* Both sides in turn. */
static void lane_turn(struct lane *l)
{
	if (l->floor) {
		floor_driver_turn(l->floor);
		floor_device_turn(l->floor);
	} else {
		driver_turn(l->driver);
		device_turn(l->device);
	}
}

static void *both_main(void *arg)
{
	struct lane *l = arg;

	pin(l->cpu);
	while (!is_over(l))
		lane_turn(l);
	return NULL;
}

/* ---- a measurement ---- */

static uint64_t read_cycles(void)
{
#ifdef __x86_64__
	return __rdtsc();
#else
	return 0;
#endif
}

static void sleep_ms(unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

static struct device_counts sum_counts(const struct lane *lanes, unsigned n)
{
	struct device_counts sum = {0};

	for (unsigned i = 0; i < n; i++) {
		struct device_counts c = lane_counts(&lanes[i]);

		sum.packets += c.packets;
		sum.publishes += c.publishes;
		sum.calls += c.calls;
	}
	return sum;
}

static struct result result_of(struct device_counts a, struct device_counts b, uint64_t ns,
			       uint64_t cycles)
{
	double packets = (double)(b.packets - a.packets);

	if (packets == 0) {
		fprintf(stderr, "vring-bench: no packet went through\n");
		exit(EXIT_FAILURE);
	}
	return (struct result){
		.mpps = packets * 1000 / (double)ns,
		.ns = (double)ns / packets,
		.cycles = (double)cycles / packets,
		.publishes = (double)(b.publishes - a.publishes) / packets,
		.calls = (double)(b.calls - a.calls) / packets,
	};
}

static void start_thread(pthread_t *thread, void *(*run)(void *arg), struct lane *l)
{
	if (pthread_create(thread, NULL, run, l) == 0)
		return;
	fprintf(stderr, "vring-bench: cannot start threads\n");
	exit(EXIT_FAILURE);
}

static void start_threads(struct lane *lanes, unsigned n, bool is_single)
{
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (unsigned i = 0; i < n; i++) {
		lanes[i].cpu = i % (unsigned)(n_cpus > 0 ? n_cpus : 1);
		start_thread(&lanes[i].driver_thread, is_single ? both_main : driver_main,
			     &lanes[i]);
		if (!is_single)
			start_thread(&lanes[i].device_thread, device_main, &lanes[i]);
	}
}

static void join_threads(struct lane *lanes, unsigned n, bool is_single)
{
	for (unsigned i = 0; i < n; i++) {
		pthread_join(lanes[i].driver_thread, NULL);
		if (!is_single)
			pthread_join(lanes[i].device_thread, NULL);
	}
}

/* Both sides in turn, in this thread, for a number of packets. */
static void run_packets(struct lane *lanes, unsigned n, uint64_t n_packets)
{
	while (sum_counts(lanes, n).packets < n_packets)
		for (unsigned i = 0; i < n; i++)
			lane_turn(&lanes[i]);
}

static struct result measure(const struct setting *s, const struct options *o)
{
	struct lane *lanes = aligned_alloc(64, VRING_MAX_PAIRS * ((sizeof(*lanes) + 63) / 64 * 64));
	struct device_counts before, after;
	uint64_t ns, cycles;
	bool is_done = false;

	for (unsigned i = 0; i < s->pairs; i++) {
		if (!lane_open(&lanes[i], s, &is_done)) {
			fprintf(stderr, "vring-bench: no memory for the ring and its buffers\n");
			exit(EXIT_FAILURE);
		}
	}
	if (o->packets == 0) {
		start_threads(lanes, s->pairs, o->is_single);
		sleep_ms(WARM_UP_MS);
	}
	before = sum_counts(lanes, s->pairs);
	ns = clock_now_ns();
	cycles = read_cycles();
	if (o->packets > 0)
		run_packets(lanes, s->pairs, o->packets);
	else
		sleep_ms(o->ms);
	after = sum_counts(lanes, s->pairs);
	ns = clock_now_ns() - ns;
	cycles = read_cycles() - cycles;
	__atomic_store_n(&is_done, true, __ATOMIC_RELAXED);
	if (o->packets == 0)
		join_threads(lanes, s->pairs, o->is_single);
	for (unsigned i = 0; i < s->pairs; i++)
		lane_close(&lanes[i]);
	free(lanes);
	return result_of(before, after, ns, cycles);
}

/* ---- the report ---- */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sort the values. Return: the median. */
static double median(double *values, unsigned n)
{
	qsort(values, n, sizeof(*values), compare_doubles);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Return: the median of one field over all rounds. */
static double median_of(const struct result *r, unsigned n, size_t offset)
{
	double values[MAX_ROUNDS];

	for (unsigned i = 0; i < n; i++)
		values[i] = *(const double *)(const void *)((const char *)&r[i] + offset);
	return median(values, n);
}

static void describe(const struct setting *s, char *text, size_t size)
{
	snprintf(text, size,
		 "%s %s %u, %u bytes, chain %u, batch %u, publish %u, pairs %u%s%s%s%s%s%s",
		 s->is_floor ? "floor" : (s->is_packed ? "packed" : "split"),
		 s->is_rx ? "rx" : "tx", s->size, s->packet, s->chain, s->batch,
		 s->publish ? s->publish : s->batch, s->pairs,
		 s->has_event_idx ? ", event-idx" : "", s->is_indirect ? ", indirect" : "",
		 s->is_mergeable ? ", mergeable" : "", s->is_in_order ? ", in-order" : "",
		 s->is_shuffled ? ", shuffled" : "", s->wants_calls ? ", calls" : "");
}

static void report(const struct setting *s, const struct result *r, const struct options *o)
{
	double rates[MAX_ROUNDS], mid;
	char text[200];

	for (unsigned i = 0; i < o->rounds; i++)
		rates[i] = r[i].mpps;
	mid = median(rates, o->rounds);
	describe(s, text, sizeof(text));
	for (char *comma = text; o->is_csv && (comma = strchr(comma, ',')) != NULL;)
		*comma = ';';
	printf(o->is_csv
		       ? "%s,%.3f,%.3f,%.3f,%.1f,%.0f,%.4f,%.4f\n"
		       : "%s:\n  %.2f Mpps (%.2f..%.2f), %.1f ns, %.0f cycles, %.4f publishes and "
			 "%.4f calls per packet\n",
	       text, mid, rates[0], rates[o->rounds - 1],
	       median_of(r, o->rounds, offsetof(struct result, ns)),
	       median_of(r, o->rounds, offsetof(struct result, cycles)),
	       median_of(r, o->rounds, offsetof(struct result, publishes)),
	       median_of(r, o->rounds, offsetof(struct result, calls)));
}

static void report_ratio(const struct result *a, const struct result *b, const struct options *o)
{
	double ratios[MAX_ROUNDS], mid;

	for (unsigned i = 0; i < o->rounds; i++)
		ratios[i] = a[i].mpps / b[i].mpps;
	mid = median(ratios, o->rounds);
	printf(o->is_csv ? "ratio,%.3f,%.3f,%.3f\n" : "ratio: %.2f (%.2f..%.2f)\n", mid, ratios[0],
	       ratios[o->rounds - 1]);
}

int main(int argc, char *argv[])
{
	static struct result results[MAX_ROUNDS], others[MAX_ROUNDS];
	struct options o;

	options_take(&o, argc, argv);
	for (unsigned i = 0; i < o.rounds; i++) {
		/* Who goes first changes from round to round. */
		if (i % 2 == 1 && o.has_other)
			others[i] = measure(&o.other, &o);
		results[i] = measure(&o.setting, &o);
		if (i % 2 == 0 && o.has_other)
			others[i] = measure(&o.other, &o);
	}
	if (o.is_csv)
		puts("setting,mpps,min,max,ns,cycles,publishes,calls");
	report(&o.setting, results, &o);
	if (o.has_other) {
		report(&o.other, others, &o);
		report_ratio(results, others, &o);
	}
	return EXIT_SUCCESS;
}
