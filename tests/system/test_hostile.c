/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings that are wrong as such, and guests that write into them while the daemon reads: one queue
 * stops and says so once, the others and the process go on.
 */
#include <endian.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "support/system.h"

#define FRAME_LEN 200u

static struct nic_frame frame;

static void start_two_pairs(void)
{
	system_start("--port=loopback", "--queue-pairs=2");
	system_connect(&(struct nic_options){.n_pairs = 2, .size = 64, .wants_acks = true});
	nic_post(&nic, 0, 32, 2048);
	nic_post(&nic, 1, 32, 2048);
	nic_ping(&nic, 0, FRAME_LEN, 1);
	nic_ping(&nic, 1, FRAME_LEN, 1);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
}

/* A ring in fresh memory takes the place of one that was ruined. */
static void replace_ring(unsigned ring)
{
	struct driver_ring *r = &nic.rings[ring];

	frontend_get_vring_base(&nic.fe, ring);
	driver_fini(r);
	driver_init(r, &nic.guest, ring, nic.options.size, 0, nic.features);
	driver_send_setup(r, &nic.fe);
	frontend_set_vring_enable(&nic.fe, ring, true);
}

/* ---- rings that break ---- */

static void avail_jumps_ahead(struct driver_ring *r)
{
	r->avail->idx = htole16((uint16_t)(r->avail_idx + r->size + 1));
}

static void avail_jumps_far_ahead(struct driver_ring *r)
{
	r->avail->idx = htole16((uint16_t)(r->avail_idx + 0x8000));
}

static void avail_goes_back(struct driver_ring *r)
{
	r->avail->idx = htole16((uint16_t)(r->avail_idx - 1));
}

static void head_is_outside(struct driver_ring *r)
{
	driver_add_raw(r, (uint16_t)r->size);
	driver_publish(r);
}

static void head_is_far_outside(struct driver_ring *r)
{
	driver_add_raw(r, 0xffff);
	driver_publish(r);
}

/* The first one is for both layouts. */
static void (*const ruin[])(struct driver_ring *) = {
	driver_ruin,	 avail_jumps_ahead, avail_jumps_far_ahead,
	avail_goes_back, head_is_outside,   head_is_far_outside,
};
#define N_RUINS ((int)(sizeof(ruin) / sizeof(ruin[0])))

/* Make the daemon look at a ring: at a receive ring it does so while frames come, and it reaches
 * what is wrong when all 32 buffers before it are used. */
static void provoke(unsigned ring)
{
	driver_kick_always(&nic.rings[ring]);
	for (unsigned i = 0; ring == 0 && nic_tx(&nic, 0)->n_free > 0 && i < 40; i++)
		nic_send(&nic, 0, (char[FRAME_LEN]){0}, FRAME_LEN);
}

/* Have all receive buffers of pair 0 used, and leave them where they are. */
static void use_up_buffers(void)
{
	const struct driver_ring *r = nic_rx(&nic, 0);
	uint16_t n = (uint16_t)(r->published_idx - r->last_used);

	for (unsigned i = 0; i < n; i++)
		nic_send(&nic, 0, (char[FRAME_LEN]){0}, FRAME_LEN);
	driver_wait_n(nic_rx(&nic, 0), n, WAIT_LONG_MS);
}

START_TEST(ruined_ring_stops_alone_and_says_so_once)
{
	unsigned ring = (unsigned)_i % 2;
	struct driver_ring *r = &nic.rings[ring];
	const char *name = ring ? "q0.tx" : "q0.rx";

	start_two_pairs();
	for (unsigned round = 1; round <= 3; round++) {
		/* What goes back must have been seen before: all that was offered is used up. */
		if (ring == 0 && ruin[_i / 2] == avail_goes_back)
			r->avail_idx = r->last_used;
		/* Nor may a slot come back that a chain without end goes through. */
		if (ring == 0 && layout_is_packed)
			use_up_buffers();
		ruin[_i / 2](r);
		provoke(ring);
		wait_until(daemon_log_count(dut, name) == round, WAIT_LONG_MS);
		provoke(ring);
		nic_ping(&nic, 1, FRAME_LEN, round);
		expect_eq(driver_take_errs(r), 1);
		expect_eq(daemon_log_count(dut, name), round);
		expect_ge(daemon_counter(dut, 0, "ring_errors"), round);
		replace_ring(0);
		replace_ring(1);
		nic.n_tx_bufs[0] = 0;
		nic_post(&nic, 0, 32, 2048);
		nic_ping(&nic, 0, FRAME_LEN, round);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	}
}
END_TEST

START_TEST(broken_ring_survives_what_a_frontend_sends_next)
{
	unsigned n_logged;

	start_two_pairs();
	driver_ruin(nic_tx(&nic, 0));
	provoke(1);
	wait_until(daemon_log_count(dut, "q0.tx") == 1, WAIT_LONG_MS);
	n_logged = daemon_log_count(dut, "\n");
	frontend_set_vring_enable(&nic.fe, 1, false);
	frontend_set_vring_enable(&nic.fe, 1, true);
	driver_send_call(nic_tx(&nic, 0), &nic.fe);
	frontend_set_features(&nic.fe, nic.fe.features);
	nic_ping(&nic, 1, FRAME_LEN, 2);
	expect_eq(daemon_log_count(dut, "\n"), n_logged);
	frontend_close(&nic.fe);
	system_check_service();
}
END_TEST

START_TEST(used_ring_is_never_read_back)
{
	system_start("--port=loopback");
	system_connect(&(struct nic_options){.size = 64});
	nic_post(&nic, 0, 32, 2048);
	for (uint32_t i = 0; i < 100; i++) {
		struct driver_ring *r = nic_tx(&nic, 0);

		/* The guest scribbles over what is the device's: that is its own loss, once. */
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
		r->used->idx = htole16((uint16_t)(i * 7919));
		memset(r->used->ring, 0xa5, 64 * 8);
		nic_queue(&nic, 0, NULL, (char[FRAME_LEN]){0}, FRAME_LEN);
		driver_publish(r);
		driver_kick_always(r);
		nic_recv(&nic, 0, &frame, WAIT_LONG_MS);
		wait_until(le16toh(r->used->idx) == r->published_idx, WAIT_LONG_MS);
	}
}
END_TEST

START_TEST(indices_that_cannot_be_are_refused_at_the_start)
{
	uint64_t value = 1;
	struct driver_ring *r = nic_tx(&nic, 0);

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.size = 64, .wants_acks = true});
	nic_post(&nic, 0, 8, 2048);
	frontend_get_vring_base(&nic.fe, 1);
	r->avail->idx = htole16(65);
	/* Refused, or broken at once; nothing of it is sent. */
	if (frontend_ack(&nic.fe, VHOST_USER_SET_VRING_KICK, &value, 8, &r->kick_fd, 1) == 0)
		wait_until(daemon_log_count(dut, "q0.tx") >= 1, WAIT_LONG_MS);
	nic_expect_nothing(&nic, 0);
	replace_ring(1);
	nic_ping(&nic, 0, FRAME_LEN, 1);
}
END_TEST

/* ---- floods ---- */

struct flood {
	pthread_t thread;
	void (*step)(unsigned round);
	bool is_running, is_over;
	unsigned n_rounds;
};

static void *run_flood(void *arg)
{
	struct flood *f = arg;

	while (!__atomic_load_n(&f->is_over, __ATOMIC_RELAXED)) {
		f->step(f->n_rounds);
		__atomic_add_fetch(&f->n_rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static struct flood flood;

static void start_flood(void (*step)(unsigned))
{
	flood = (struct flood){.step = step, .is_running = true};
	expect_eq(pthread_create(&flood.thread, NULL, run_flood, &flood), 0);
}

/* Also the teardown of a test that has failed: the guest's memory goes away next. */
static void end_flood(void)
{
	if (!flood.is_running)
		return;
	__atomic_store_n(&flood.is_over, true, __ATOMIC_RELAXED);
	pthread_join(flood.thread, NULL);
	flood.is_running = false;
}

/* Fill pair 0's transmit ring with chains that are too short. */
static void send_malformed(unsigned round)
{
	struct driver_ring *r = nic_tx(&nic, 0);
	struct driver_seg seg = {nic.guest.regions[0].gpa, round % 11, false};
	struct driver_used u;

	while (r->n_free > 0)
		driver_add(r, &seg, 1, 0);
	driver_kick(r);
	while (driver_take(r, &u))
		;
}

START_TEST(flood_of_malformed_chains_does_not_starve_another_queue)
{

	start_two_pairs();
	start_flood(send_malformed);
	for (uint32_t i = 0; i < 200; i++) {
		char data[FRAME_LEN];

		nic_make_frame(data, sizeof(data), i);
		nic_send(&nic, 1, data, sizeof(data));
		nic_recv(&nic, 1, &frame, 1000);
		nic_check_frame(&frame, FRAME_LEN, i);
	}
	end_flood();
	expect_gt(daemon_counter(dut, 0, "tx_malformed"), 1000);
	/* Nor is it a flood of log lines. */
	expect_lt(daemon_log_count(dut, "\n"), 10);
}
END_TEST

static void kick_pair_0(unsigned round)
{
	const uint64_t many = 1000;

	/* A full counter makes it fail, which is as good. */
	if (write(nic.rings[round % 2].kick_fd, &many, sizeof(many)) < 0)
		return;
}

START_TEST(flood_of_kicks_does_not_starve_another_queue)
{

	start_two_pairs();
	start_flood(kick_pair_0);
	for (uint32_t i = 0; i < 200; i++)
		nic_ping(&nic, 1, FRAME_LEN, i);
	expect_eq(frontend_ack_u64(&nic.fe, VHOST_USER_SET_FEATURES, nic.fe.features), 0);
	end_flood();
}
END_TEST

/* ---- rings that never run dry ---- */

/* Make every head of a ring a chain that loops through the whole table, and offer them all. */
static void offer_loops(struct driver_ring *r)
{
	for (uint32_t i = 0; i < r->size; i++) {
		r->desc[i] = (struct vring_desc){
			.addr = htole64(nic.guest.regions[0].gpa),
			.len = htole32(1),
			.flags = htole16(VRING_DESC_F_NEXT |
					 (r->index == 0 ? VRING_DESC_F_WRITE : 0)),
			.next = htole16((uint16_t)((i + 1) % r->size)),
		};
		driver_add_raw(r, (uint16_t)i);
	}
	driver_publish(r);
	driver_kick_always(r);
}

static struct driver_ring *refilled;

/* Offer each head again as soon as it comes back. */
static void refill(unsigned round)
{
	uint16_t used = le16toh(__atomic_load_n(&refilled->used->idx, __ATOMIC_ACQUIRE));

	(void)round;
	__atomic_store_n(&refilled->avail->idx, htole16((uint16_t)(used + refilled->size)),
			 __ATOMIC_RELEASE);
}

/* Ring 0, 1, and the control queue; a port with frames without end. */
START_TEST(bad_chains_without_end_do_not_hold_up_the_control_thread)
{
	static const struct guest_layout layout = {.region_size = 64 << 20};
	unsigned n = wait_repeats("messages beside chains without end", 4, 20);

	system_start("--port=null", "--set", "port.source-size=64");
	system_connect(&(struct nic_options){.layout = &layout, .wants_acks = true});
	refilled = &nic.rings[_i];
	frontend_get_vring_base(&nic.fe, (unsigned)_i);
	driver_fini(refilled);
	driver_init(refilled, &nic.guest, (unsigned)_i, 32768, 0, nic.features);
	frontend_set_vring_enable(&nic.fe, (unsigned)_i, true);
	offer_loops(refilled);
	start_flood(refill);
	driver_send_setup(refilled, &nic.fe);
	for (unsigned i = 0; i < n; i++) {
		frontend_set_features(&nic.fe, nic.fe.features);
		frontend_get_vring_base(&nic.fe, _i == 0 ? 1 : 0);
		daemon_counter(dut, 0, "ring_errors");
	}
	kill(dut->pid, SIGTERM);
	expect_eq(daemon_wait_exit(dut, 2000), 0);
	end_flood();
}
END_TEST

/* ---- scribbling while the daemon reads ---- */

static uint32_t random_state = 1;

static uint32_t next_random(void)
{
	random_state = random_state * 1664525 + 1013904223;
	return random_state >> 8;
}

/* Flip one field of the descriptor that the next chains use, between good and bad values. */
static void flip_fields(unsigned round)
{
	struct driver_ring *r = nic_tx(&nic, 0);
	volatile struct vring_desc *d = &r->desc[round % r->size];
	static const uint64_t addrs[] = {0, ~0ULL, 0x140000000ULL, 0x140ffffffULL};
	static const uint32_t lens[] = {0, 1, 11, 12, 2000, 0x10000, 0xffffffff};

	d->addr = addrs[round % 4];
	d->len = lens[round % 7];
	d->flags = (uint16_t)(round % 8);
	d->next = (uint16_t)(round * 7);
}

START_TEST(fields_that_change_while_they_are_read_do_no_harm)
{
	unsigned n = wait_repeats("rounds against a flipping thread", 20000, 1000000);
	struct driver_ring *r = nic_tx(&nic, 0);
	struct driver_used u;

	start_two_pairs();
	start_flood(flip_fields);
	for (unsigned i = 0; i < n; i++) {
		if ((uint16_t)(r->avail_idx - r->last_used) < r->size)
			driver_add_raw(r, (uint16_t)(i % r->size));
		driver_kick(r);
		while (driver_take(r, &u))
			expect_eq(u.len, 0);
	}
	end_flood();
	nic_ping(&nic, 1, FRAME_LEN, 1);
	expect_eq(daemon_counter(dut, 0, "ring_errors"), 0);
}
END_TEST

/* Write a random word somewhere into the parts of pair 0's rings that the driver owns. */
static void scribble(unsigned round)
{
	struct driver_ring *r = &nic.rings[round % 2];
	char *part = next_random() % 4 ? (char *)r->desc : (char *)r->avail;
	/* Of a packed ring that is 4 bytes, and room behind them. */
	uint64_t len =
		part == (char *)r->desc ? driver_desc_len(r->size) : driver_avail_len(r->size);
	uint32_t word = next_random() % 3 ? next_random() % 70 : next_random();

	memcpy(part + next_random() % (len - 4), &word, sizeof(word));
	driver_kick_always(r);
}

/* Rings of two queues may name the same buffers: races in guest memory, the guest's own. */
#ifdef __SANITIZE_THREAD__
#define GUEST_RACES_ARE_REPORTED true
#else
#define GUEST_RACES_ARE_REPORTED false
#endif

START_TEST(random_rings_do_no_harm)
{
	unsigned n = wait_repeats("random rings", 150, 10000);

	start_two_pairs();
	nic.guest.next += 16 << 20;
	for (unsigned i = 0; i < n; i++) {
		uint64_t next = nic.guest.next;

		/* Without the addresses of buffers: a few bits from them are those of pair 1. */
		replace_ring(0);
		replace_ring(1);
		for (unsigned k = 0; k < 200; k++)
			scribble(next_random());
		nic_ping(&nic, 1, FRAME_LEN, i);
		nic.guest.next = next;
	}
	replace_ring(0);
	replace_ring(1);
	nic.n_tx_bufs[0] = 0;
	nic_post(&nic, 0, 32, 2048);
	nic_ping(&nic, 0, FRAME_LEN, 7);
	system_check_end();
}
END_TEST

/* ---- memory that goes away ---- */

START_TEST(guest_memory_that_shrinks_ends_the_connection_only)
{
	system_start("--port=loopback", "--queue-pairs=2");
	for (unsigned round = 0; round < 3; round++) {
		system_connect(&(struct nic_options){.n_pairs = 2, .size = 64});
		nic_post(&nic, 0, 32, 2048);
		nic_ping(&nic, 0, FRAME_LEN, round);
		expect_eq(ftruncate(nic.guest.memfd, 0), 0);
		for (unsigned ring = 0; ring < 4; ring++)
			driver_kick_always(&nic.rings[ring]);
		frontend_expect_closed(&nic.fe);
		nic_close(&nic);
		wait_until(daemon_n_guest_maps(dut) == 0, WAIT_LONG_MS);
	}
	system_check_service();
	system_check_end();
}
END_TEST

static void add_rings(TCase *tc)
{
	tcase_add_checked_fixture(tc, NULL, end_flood);
	tcase_add_loop_test(tc, ruined_ring_stops_alone_and_says_so_once, 0, 2);
	tcase_add_test(tc, broken_ring_survives_what_a_frontend_sends_next);
	tcase_add_test(tc, flood_of_malformed_chains_does_not_starve_another_queue);
	if (GUEST_RACES_ARE_REPORTED)
		puts("skip: random rings: two queues share buffers, which ThreadSanitizer reports");
	else
		tcase_add_test(tc, random_rings_do_no_harm);
	tcase_add_test(tc, guest_memory_that_shrinks_ends_the_connection_only);
}

static void add_split(TCase *tc)
{
	tcase_add_loop_test(tc, ruined_ring_stops_alone_and_says_so_once, 2, 2 * N_RUINS);
	tcase_add_test(tc, used_ring_is_never_read_back);
	tcase_add_test(tc, indices_that_cannot_be_are_refused_at_the_start);
	tcase_add_test(tc, flood_of_kicks_does_not_starve_another_queue);
	tcase_add_loop_test(tc, bad_chains_without_end_do_not_hold_up_the_control_thread, 0, 3);
	tcase_add_test(tc, fields_that_change_while_they_are_read_do_no_harm);
}

int main(void)
{
	return system_main_rings("hostile", add_rings, add_split);
}
