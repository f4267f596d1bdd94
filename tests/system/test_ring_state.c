/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings that stop, start again, are enabled and disabled, and lose or change their memory: what is
 * counted, what waits, what is left alone.
 */
#include <endian.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "support/system.h"

#define FRAME_LEN 100u

static struct nic_frame frame;

static void queue_frames(unsigned pair, uint32_t first, unsigned n)
{
	char data[FRAME_LEN];

	for (unsigned i = 0; i < n; i++) {
		nic_make_frame(data, sizeof(data), first + i);
		nic_queue(&nic, pair, NULL, data, sizeof(data));
	}
}

static void send_frames(unsigned pair, uint32_t first, unsigned n)
{
	nic_reap(&nic, pair);
	queue_frames(pair, first, n);
	driver_kick(nic_tx(&nic, pair));
}

static void expect_frames(unsigned pair, uint32_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		nic_recv(&nic, pair, &frame, WAIT_LONG_MS);
		nic_check_frame(&frame, FRAME_LEN, first + i);
	}
}

static void start_ring(unsigned ring)
{
	frontend_set_vring_enable(&nic.fe, ring, true);
	driver_send_setup(&nic.rings[ring], &nic.fe);
}

/* ---- GET_VRING_BASE ---- */

START_TEST(base_counts_the_heads_that_came_back)
{
	system_start("--port=loopback");
	system_connect(&(struct nic_options){.base = 65534});
	nic_post(&nic, 0, 8, 2048);
	/* Eight go through; the others find no receive buffer and are held by the port. */
	send_frames(0, 0, 20);
	driver_wait_n(nic_rx(&nic, 0), 8, WAIT_LONG_MS);
	driver_wait_n(nic_tx(&nic, 0), 8, WAIT_LONG_MS);
	for (unsigned ring = 2; ring-- > 0;)
		for (unsigned i = 0; i < 2; i++) {
			uint32_t base = frontend_get_vring_base(&nic.fe, ring);

			expect_eq(driver_n_used(&nic.rings[ring]), 8);
			if (layout_is_packed)
				expect_eq(base, driver_base(&nic.rings[ring]));
			else
				expect_eq(base, (uint16_t)(65534 + 8));
		}
}
END_TEST

START_TEST(restart_continues_with_the_next_head)
{
	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 8, 2048);
	send_frames(0, 0, 20);
	driver_wait_n(nic_rx(&nic, 0), 8, WAIT_LONG_MS);
	for (unsigned ring = 0; ring < 2; ring++)
		frontend_get_vring_base(&nic.fe, ring);
	/* Nothing moves while the rings are stopped. */
	nic_post(&nic, 0, 4, 2048);
	driver_kick_always(nic_rx(&nic, 0));
	wait_pause_us(20000);
	expect_eq(driver_n_used(nic_rx(&nic, 0)), 8);
	start_ring(0);
	start_ring(1);
	expect_frames(0, 0, 20);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
}
END_TEST

START_TEST(frames_survive_many_stops_of_either_ring)
{
	unsigned n = wait_repeats("stops and starts", 300, 10000);
	uint32_t next_in = 0, next_out = 0;

	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 64, 2048);
	for (unsigned i = 0; i < n; i++) {
		send_frames(0, next_out, 16);
		next_out += 16;
		frontend_get_vring_base(&nic.fe, i % 2);
		start_ring(i % 2);
		while (nic_poll(&nic, 0, &frame))
			nic_check_frame(&frame, FRAME_LEN, next_in++);
		nic_reap(&nic, 0);
		while (next_out - next_in > 128)
			expect_frames(0, next_in++, 1);
	}
	expect_frames(0, next_in, next_out - next_in);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	nic_expect_nothing(&nic, 0);
}
END_TEST

static pthread_t flood;
static bool is_flooding;

static void *run_flood(void *arg)
{
	static struct nic_frame f;

	while (__atomic_load_n(&is_flooding, __ATOMIC_RELAXED)) {
		nic_poll(&nic, 0, &f);
		nic_reap(&nic, 0);
		if (nic_tx(&nic, 0)->n_free > 64)
			send_frames(0, 0, 32);
	}
	return arg;
}

/* Frames without end in both directions, on pair 0. */
static void start_flood(void)
{
	nic_post(&nic, 0, 200, 2048);
	is_flooding = true;
	expect_eq(pthread_create(&flood, NULL, run_flood, NULL), 0);
}

/* Also the teardown of a test that has failed: the guest's memory goes away next. */
static void end_flood(void)
{
	if (!is_flooding)
		return;
	__atomic_store_n(&is_flooding, false, __ATOMIC_RELAXED);
	pthread_join(flood, NULL);
}

START_TEST(requests_are_answered_under_endless_load)
{
	uint64_t start, worst = 0;

	system_start("--port=null", "--queue-pairs=2", "--set", "port.source-size=64");
	system_connect(&(struct nic_options){.n_pairs = 2});
	start_flood();
	for (int i = 0; i < 50; i++) {
		start = wait_now_ns();
		/* Both park a worker: the busy one by its parameters, the other one by its ring. */
		json_decref(daemon_ask(dut, "rings", NULL));
		frontend_get_vring_base(&nic.fe, 2 + (unsigned)i % 2);
		frontend_set_features(&nic.fe, nic.fe.features);
		start = wait_now_ns() - start;
		worst = start > worst ? start : worst;
	}
	end_flood();
	expect_lt(worst, 500 * 1000000ULL * wait_scaled_ms(1));
	expect_gt(daemon_counter(dut, 0, "rx_packets"), 100);
}
END_TEST

START_TEST(termination_is_prompt_under_endless_load)
{
	system_start("--port=null", "--set", "port.source-size=64");
	system_connect(NULL);
	start_flood();
	wait_until(daemon_counter(dut, 0, "rx_packets") > 100, WAIT_LONG_MS);
	kill(dut->pid, SIGTERM);
	expect_eq(daemon_wait_exit(dut, 2000), 0);
	end_flood();
}
END_TEST

/* ---- enable ---- */

START_TEST(rings_are_active_from_start_without_protocol_features)
{
	system_start("--port=loopback");
	system_connect(&(struct nic_options){.has_no_protocol = true});
	nic_post(&nic, 0, 8, 2048);
	nic_ping(&nic, 0, FRAME_LEN, 1);
}
END_TEST

START_TEST(disabled_ring_discards_what_is_sent_and_receives_nothing)
{
	system_start("--port=loopback", "--queue-pairs=2");
	system_connect(&(struct nic_options){.n_pairs = 2});
	for (unsigned ring = 0; ring < 2; ring++)
		frontend_set_vring_enable(&nic.fe, ring, false);
	frontend_sync(&nic.fe);
	nic_post(&nic, 0, 8, 2048);
	send_frames(0, 0, 5);
	/* Given back, but not sent. */
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	expect_eq(daemon_counter(dut, 0, "tx_dropped"), 5);
	expect_eq(daemon_counter(dut, 0, "tx_packets"), 0);
	for (unsigned ring = 0; ring < 2; ring++)
		frontend_set_vring_enable(&nic.fe, ring, true);
	frontend_sync(&nic.fe);
	nic_expect_nothing(&nic, 0);
	nic_ping(&nic, 0, FRAME_LEN, 7);
}
END_TEST

START_TEST(disabled_receive_ring_is_left_alone)
{
	system_start("--port=loopback");
	system_connect(NULL);
	frontend_set_vring_enable(&nic.fe, 0, false);
	frontend_sync(&nic.fe);
	nic_post(&nic, 0, 8, 2048);
	send_frames(0, 0, 5);
	nic_expect_nothing(&nic, 0);
	frontend_set_vring_enable(&nic.fe, 0, true);
	/* What the port has kept comes now, with no further kick. */
	for (uint32_t i = 0; i < 5; i++) {
		nic_recv(&nic, 0, &frame, WAIT_PROMPT_MS);
		nic_check_frame(&frame, FRAME_LEN, i);
	}
}
END_TEST

START_TEST(toggling_enable_loses_no_buffer)
{
	unsigned n = wait_repeats("enable toggles", 500, 10000);
	uint32_t sent = 0, received = 0;

	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 64, 2048);
	for (unsigned i = 0; i < n; i++) {
		send_frames(0, sent, 4);
		sent += 4;
		frontend_set_vring_enable(&nic.fe, i / 2 % 2, i % 2);
		/* Both are enabled in every second round: what is held moves on then. */
		while (i % 2 && (nic_reap(&nic, 0), nic_tx(&nic, 0)->n_free < 128))
			received += nic_poll(&nic, 0, &frame);
	}
	for (unsigned ring = 0; ring < 2; ring++)
		frontend_set_vring_enable(&nic.fe, ring, true);
	wait_until((received += nic_poll(&nic, 0, &frame), nic_reap(&nic, 0),
		    nic_tx(&nic, 0)->n_free == 256),
		   WAIT_LONG_MS);
	while (nic_poll(&nic, 0, &frame))
		received++;
	expect_eq(received + daemon_counter(dut, 0, "tx_dropped"), sent);
	expect_eq(daemon_counter(dut, 0, "rx_packets"), received);
	/* Every receive buffer is still in use: a whole ring of frames fits. */
	send_frames(0, 0, 64);
	expect_frames(0, 0, 64);
}
END_TEST

START_TEST(frames_are_not_mixed_between_pairs_when_one_is_disabled)
{
	system_start("--port=loopback", "--queue-pairs=2");
	system_connect(&(struct nic_options){.n_pairs = 2});
	nic_post(&nic, 0, 8, 2048);
	nic_post(&nic, 1, 8, 2048);
	frontend_set_vring_enable(&nic.fe, 2, false);
	frontend_sync(&nic.fe);
	send_frames(1, 5, 3);
	nic_ping(&nic, 0, FRAME_LEN, 1);
	nic_expect_nothing(&nic, 0);
	expect_eq(driver_n_used(nic_rx(&nic, 1)), 0);
}
END_TEST

/* ---- fds ---- */

START_TEST(rings_without_kick_fd_are_polled)
{
	system_start("--port=loopback");
	system_connect(NULL);
	for (unsigned ring = 0; ring < 2; ring++)
		frontend_set_vring_fd(&nic.fe, VHOST_USER_SET_VRING_KICK, ring, -1);
	frontend_sync(&nic.fe);
	nic.rx_buf_len[0] = 2048;
	for (uint32_t i = 0; i < 20; i++) {
		struct driver_seg seg = {guest_alloc(&nic.guest, 2048, 4), 2048, true};

		/* Also a refill after the ring has run dry is seen without a kick. */
		driver_add(nic_rx(&nic, 0), &seg, 1, seg.gpa);
		driver_publish(nic_rx(&nic, 0));
		queue_frames(0, i, 1);
		driver_publish(nic_tx(&nic, 0));
		driver_wait_n(nic_rx(&nic, 0), 1, WAIT_PROMPT_MS);
		expect(nic_poll(&nic, 0, &frame));
		nic_check_frame(&frame, FRAME_LEN, i);
	}
}
END_TEST

START_TEST(rings_without_call_fd_go_on_without_interrupts)
{
	system_start("--port=loopback");
	system_connect(NULL);
	for (unsigned ring = 0; ring < 2; ring++) {
		frontend_set_vring_fd(&nic.fe, VHOST_USER_SET_VRING_CALL, ring, -1);
		frontend_sync(&nic.fe);
		driver_take_calls(&nic.rings[ring]);
	}
	nic_post(&nic, 0, 8, 2048);
	for (uint32_t i = 0; i < 20; i++) {
		driver_calls_on(nic_rx(&nic, 0));
		nic_ping(&nic, 0, FRAME_LEN, i);
	}
	expect_eq(driver_take_calls(nic_rx(&nic, 0)), 0);
}
END_TEST

START_TEST(kick_fd_can_be_replaced_on_a_running_ring)
{
	unsigned n_fds;

	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 8, 2048);
	nic_ping(&nic, 0, FRAME_LEN, 0);
	n_fds = daemon_n_fds(dut);
	for (uint32_t i = 0; i < 20; i++) {
		for (unsigned ring = 0; ring < 2; ring++)
			driver_send_kick(&nic.rings[ring], &nic.fe);
		frontend_sync(&nic.fe);
		nic_ping(&nic, 0, FRAME_LEN, i);
	}
	wait_until(daemon_n_fds(dut) == n_fds, WAIT_LONG_MS);
}
END_TEST

/* ---- memory ---- */

static uint64_t table_ack(const struct vhost_user_mem_table *table, const int *fds, unsigned n_fds)
{
	return frontend_ack_mem_table(&nic.fe, table, fds, n_fds);
}

START_TEST(memory_table_can_be_sent_again_on_running_rings)
{
	unsigned n = wait_repeats("memory tables", 200, 10000);
	uint32_t next_in = 0, next_out = 0;
	unsigned n_maps, n_fds;

	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 64, 2048);
	n_maps = daemon_n_guest_maps(dut);
	n_fds = daemon_n_fds(dut);
	for (unsigned i = 0; i < n; i++) {
		send_frames(0, next_out, 8);
		next_out += 8;
		frontend_set_mem_table(&nic.fe, &nic.guest);
		expect_frames(0, next_in, 8);
		next_in += 8;
	}
	frontend_sync(&nic.fe);
	expect_eq(daemon_n_guest_maps(dut), n_maps);
	expect_eq(daemon_n_fds(dut), n_fds);
}
END_TEST

START_TEST(rings_move_with_their_memory)
{
	struct vhost_user_mem_table table;
	int fds[VHOST_USER_MAX_REGIONS];
	uint64_t delta = 1ULL << 40;

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.wants_acks = true});
	nic_post(&nic, 0, 8, 2048);
	nic_ping(&nic, 0, FRAME_LEN, 1);
	/* The frontend sees its memory elsewhere from now on; guest addresses stay. */
	guest_fill_table(&nic.guest, &table, fds);
	for (unsigned i = 0; i < table.n_regions; i++)
		table.regions[i].uva += delta;
	expect_eq(table_ack(&table, fds, table.n_regions), 0);
	for (unsigned ring = 0; ring < 2; ring++) {
		const struct driver_ring *r = &nic.rings[ring];
		struct vhost_user_vring_addr addr = {
			.index = ring,
			.desc_uva = guest_uva(&nic.guest, r->desc_gpa) + delta,
			.avail_uva = guest_uva(&nic.guest, r->avail_gpa) + delta,
			.used_uva = guest_uva(&nic.guest, r->used_gpa) + delta,
		};

		frontend_get_vring_base(&nic.fe, ring);
		frontend_set_vring_addr(&nic.fe, &addr);
		frontend_set_vring_enable(&nic.fe, ring, true);
		driver_send_call(r, &nic.fe);
		driver_send_kick(r, &nic.fe);
	}
	nic_ping(&nic, 0, FRAME_LEN, 2);
}
END_TEST

START_TEST(ring_whose_memory_is_gone_stops_and_can_start_again)
{
	struct vhost_user_mem_table table;
	int fds[VHOST_USER_MAX_REGIONS];

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.wants_acks = true});
	nic_post(&nic, 0, 8, 2048);
	nic_ping(&nic, 0, FRAME_LEN, 1);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	/* Rings and buffers are in region 0. */
	guest_fill_table(&nic.guest, &table, fds);
	table.n_regions = 1;
	table.regions[0] = table.regions[1];
	frontend_ack(&nic.fe, VHOST_USER_SET_MEM_TABLE, &table, 8 + 32, &fds[1], 1);
	send_frames(0, 2, 1);
	nic_expect_nothing(&nic, 0);
	expect_eq(driver_n_used(nic_tx(&nic, 0)), 0);
	frontend_set_mem_table(&nic.fe, &nic.guest);
	for (unsigned ring = 0; ring < 2; ring++) {
		frontend_get_vring_base(&nic.fe, ring);
		start_ring(ring);
	}
	expect_frames(0, 2, 1);
	nic_ping(&nic, 0, FRAME_LEN, 3);
}
END_TEST

START_TEST(buffers_in_memory_that_is_gone_are_dropped)
{
	struct driver_used u;
	struct vhost_user_mem_table table;
	int fds[VHOST_USER_MAX_REGIONS];
	struct driver_seg seg;

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.wants_acks = true});
	nic_post(&nic, 0, 8, 2048);
	seg = (struct driver_seg){.gpa = nic.guest.regions[1].gpa + 4096, .len = 100};
	guest_fill_table(&nic.guest, &table, fds);
	expect_eq(frontend_ack(&nic.fe, VHOST_USER_SET_MEM_TABLE,
			       &(struct vhost_user_mem_table){.n_regions = 1,
							      .regions = {table.regions[0]}},
			       8 + 32, fds, 1),
		  0);
	driver_add(nic_tx(&nic, 0), &seg, 1, 0);
	driver_kick(nic_tx(&nic, 0));
	driver_wait(nic_tx(&nic, 0), &u, WAIT_LONG_MS);
	expect_eq(u.len, 0);
	expect_eq(daemon_counter(dut, 0, "tx_malformed"), 1);
	nic_ping(&nic, 0, FRAME_LEN, 3);
}
END_TEST

/* ---- bad tables ---- */

#define PAGE 4096ULL

static void spoil_table(struct vhost_user_mem_table *t, unsigned kind)
{
	struct vhost_user_region *r = t->regions;

	switch (kind) {
	case 0:
		r[1].size = 0;
		break;
	case 1:
		r[1].size = r[1].gpa = ~0ULL - PAGE + 1; /* wraps in the guest's addresses */
		break;
	case 2:
		r[1].uva = ~0ULL - PAGE + 1; /* wraps in the frontend's */
		break;
	case 3:
		r[1].gpa = r[0].gpa + r[0].size - 1;
		break;
	case 4:
		r[1].uva = r[0].uva + r[0].size - PAGE;
		break;
	case 5:
		r[0].mmap_offset += PAGE * 17; /* past the end of the file */
		r[0].mmap_offset += r[1].size;
		break;
	case 6:
		r[0].mmap_offset = ~0ULL - PAGE + 1;
		break;
	case 7:
		r[0].size = 1ULL << 62;
		break;
	case 8:
		t->n_regions = 0;
		break;
	case 9:
		t->n_regions = 9;
		break;
	case 10:
		t->n_regions = 0xffffffff;
		break;
	default:
		r[0] = r[1];
	}
}

#define N_BAD_TABLES 12

START_TEST(bad_memory_table_leaves_all_of_the_old_one)
{
	struct vhost_user_mem_table table;
	int fds[VHOST_USER_MAX_REGIONS];
	unsigned n_maps, n_fds;

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.wants_acks = true});
	nic_post(&nic, 0, 8, 2048);
	n_maps = daemon_n_guest_maps(dut);
	n_fds = daemon_n_fds(dut);
	for (unsigned kind = 0; kind < N_BAD_TABLES; kind++) {
		guest_fill_table(&nic.guest, &table, fds);
		spoil_table(&table, kind);
		expect_msg(table_ack(&table, fds, 2) != 0, "bad table %u was accepted", kind);
		nic_ping(&nic, 0, FRAME_LEN, kind);
		frontend_sync(&nic.fe);
		expect_eq(daemon_n_guest_maps(dut), n_maps);
		expect_eq(daemon_n_fds(dut), n_fds);
	}
}
END_TEST

START_TEST(memory_table_with_the_wrong_fds_is_refused)
{
	struct vhost_user_mem_table table;
	int fds[VHOST_USER_MAX_REGIONS + 1];
	unsigned n_fds;

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.wants_acks = true});
	nic_post(&nic, 0, 8, 2048);
	guest_fill_table(&nic.guest, &table, fds);
	n_fds = daemon_n_fds(dut);
	expect_ne(table_ack(&table, fds, 0), 0);
	expect_ne(table_ack(&table, fds, 1), 0);
	fds[2] = fds[0];
	expect_ne(table_ack(&table, fds, 3), 0);
	/* Shorter than it says. */
	expect_ne(frontend_ack(&nic.fe, VHOST_USER_SET_MEM_TABLE, &table, 8 + 32, fds, 2), 0);
	/* Not a file of memory at all. */
	fds[1] = nic.rings[0].kick_fd;
	expect_ne(table_ack(&table, fds, 2), 0);
	frontend_sync(&nic.fe);
	expect_eq(daemon_n_fds(dut), n_fds);
	nic_ping(&nic, 0, FRAME_LEN, 1);
}
END_TEST

START_TEST(bad_memory_table_without_ack_ends_the_connection)
{
	struct vhost_user_mem_table table;
	int fds[VHOST_USER_MAX_REGIONS];

	system_start("--port=loopback");
	system_connect(NULL);
	guest_fill_table(&nic.guest, &table, fds);
	table.regions[0].size = 0;
	frontend_send(&nic.fe, VHOST_USER_SET_MEM_TABLE, 1, &table, sizeof(table), fds, 2);
	frontend_expect_closed(&nic.fe);
	system_check_service();
}
END_TEST

/* ---- running rings are described again ---- */

START_TEST(features_and_addresses_can_be_sent_again_while_running)
{
	unsigned n = wait_repeats("rounds of features and addresses", 200, 1000);
	uint32_t next_in = 0, next_out = 0;

	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 64, 2048);
	for (unsigned i = 0; i < n; i++) {
		send_frames(0, next_out, 16);
		next_out += 16;
		frontend_set_features(&nic.fe, nic.fe.features);
		for (unsigned ring = 0; ring < 2; ring++)
			driver_send_addr(&nic.rings[ring], &nic.fe);
		expect_frames(0, next_in, 16);
		next_in += 16;
	}
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
}
END_TEST

START_TEST(ring_outside_of_memory_is_refused)
{
	const struct driver_ring *r = &nic.rings[0];
	const uint64_t nowhere[] = {0, 1ULL << 46, ~0ULL - 63};
	struct vhost_user_vring_addr good, bad;

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.wants_acks = true, .is_left_stopped = true});
	good = (struct vhost_user_vring_addr){
		.index = 0,
		.desc_uva = guest_uva(&nic.guest, r->desc_gpa),
		.avail_uva = guest_uva(&nic.guest, r->avail_gpa),
		.used_uva = guest_uva(&nic.guest, r->used_gpa),
	};
	for (unsigned part = 0; part < 3; part++) {
		for (unsigned i = 0; i < 5; i++) {
			uint64_t end = nic.guest.regions[1].uva + nic.guest.regions[1].size;
			/* The other parts of a packed ring are small. */
			uint64_t room = layout_is_packed && part > 0 ? 0 : 16;
			uint64_t at = i < 3    ? nowhere[i]
				      : i == 3 ? end - room
					       : (&good.desc_uva)[part] + 1;
			uint64_t value = 0;
			uint64_t acks;

			bad = good;
			(&bad.desc_uva)[part] = at;
			acks = frontend_ack(&nic.fe, VHOST_USER_SET_VRING_ADDR, &bad, sizeof(bad),
					    NULL, 0);
			acks |= frontend_ack(&nic.fe, VHOST_USER_SET_VRING_KICK, &value, 8,
					     &r->kick_fd, 1);
			expect_msg(acks != 0, "part %u at 0x%llx was accepted", part,
				   (unsigned long long)at);
			frontend_get_vring_base(&nic.fe, 0);
		}
	}
	for (unsigned ring = 0; ring < 2; ring++)
		start_ring(ring);
	nic_post(&nic, 0, 8, 2048);
	nic_ping(&nic, 0, FRAME_LEN, 1);
}
END_TEST

static void add_rings(TCase *tc)
{
	tcase_add_checked_fixture(tc, NULL, end_flood);
	tcase_add_test(tc, base_counts_the_heads_that_came_back);
	tcase_add_test(tc, restart_continues_with_the_next_head);
	tcase_add_test(tc, frames_survive_many_stops_of_either_ring);
	tcase_add_test(tc, requests_are_answered_under_endless_load);
	tcase_add_test(tc, termination_is_prompt_under_endless_load);
	tcase_add_test(tc, disabled_ring_discards_what_is_sent_and_receives_nothing);
	tcase_add_test(tc, disabled_receive_ring_is_left_alone);
	tcase_add_test(tc, toggling_enable_loses_no_buffer);
	tcase_add_test(tc, rings_without_kick_fd_are_polled);
	tcase_add_test(tc, rings_without_call_fd_go_on_without_interrupts);
	tcase_add_test(tc, memory_table_can_be_sent_again_on_running_rings);
	tcase_add_test(tc, rings_move_with_their_memory);
	tcase_add_test(tc, ring_whose_memory_is_gone_stops_and_can_start_again);
	tcase_add_test(tc, buffers_in_memory_that_is_gone_are_dropped);
	tcase_add_test(tc, features_and_addresses_can_be_sent_again_while_running);
	tcase_add_test(tc, ring_outside_of_memory_is_refused);
}

static void add_others(TCase *tc)
{
	tcase_add_test(tc, rings_are_active_from_start_without_protocol_features);
	tcase_add_test(tc, frames_are_not_mixed_between_pairs_when_one_is_disabled);
	tcase_add_test(tc, kick_fd_can_be_replaced_on_a_running_ring);
	tcase_add_test(tc, bad_memory_table_leaves_all_of_the_old_one);
	tcase_add_test(tc, memory_table_with_the_wrong_fds_is_refused);
	tcase_add_test(tc, bad_memory_table_without_ack_ends_the_connection);
}

int main(void)
{
	return system_main_rings("ring_state", add_rings, add_others);
}
