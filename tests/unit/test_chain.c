/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/chain.h"

#include <check.h>
#include <linux/virtio_config.h>
#include <pthread.h>
#include <string.h>

#include "support/ring.h"
#include "support/suite.h"
#include "virtq/virtq.h"

#define HOLE (1ULL << 20)
#define NEXT VRING_DESC_F_NEXT

static struct ring_guest guest;
static struct ring ring;
static struct virtq vq;
static uint64_t buffer; /* guest-physical; 4096 bytes that chains may share */

/* Descriptors as a hostile driver writes them, in the ring's table or in an indirect one. Those of a
 * packed ring go into its slots when they are offered. */
static struct {
	uint64_t gpa; /* of the indirect one */
	uint32_t n;
	struct vring_desc slots[VIRTQ_MAX_SIZE];
} table;

static void setup(void)
{
	ring_guest_init(&guest, 0);
	ring = (struct ring){0};
	vq = (struct virtq){0};
}

static void setup_with_holes(void)
{
	setup();
	ring_guest_fini(&guest);
	ring_guest_init(&guest, HOLE);
}

static void teardown(void)
{
	virtq_stop(&vq);
	ring_fini(&ring);
	ring_guest_fini(&guest);
}

static void start_with(const struct ring_shape *shape, enum virtq_direction direction)
{
	struct virtq_setup s;

	ring_init(&ring, &guest, shape, 0);
	s = ring_setup(&ring);
	virtq_init(&vq, direction);
	expect_eq(virtq_start(&vq, &s), 0);
	buffer = guest_alloc(&guest.guest, 4096, 1);
	table.n = shape->size;
	if (shape->is_indirect)
		table.gpa = guest_alloc_odd(&guest.guest, 16 * (uint64_t)table.n);
}

static void start(int i)
{
	struct ring_shape shape = ring_shape(i);

	start_with(&shape, VIRTQ_DEVICE_READS);
}

/* ---- chains ---- */

/* As an indirect table holds it. */
static void write_entry(uint64_t gpa, const struct vring_desc *d)
{
	const struct vring_packed_desc packed = {d->addr, d->len, 0, d->flags};

	memcpy(guest_at(&guest.guest, gpa),
	       layout_is_packed ? (const void *)&packed : (const void *)d, sizeof(*d));
}

static void set(uint16_t i, uint64_t gpa, uint32_t len, uint16_t flags, uint16_t next)
{
	struct vring_desc d = {gpa, len, flags, next};

	table.slots[i] = d;
	if (ring.shape.is_indirect)
		write_entry(table.gpa + 16 * (uint64_t)i, &d);
	else if (!layout_is_packed)
		ring_write_desc(&ring, i, gpa, len, flags, next);
}

/* Return: entries up to the one without a next, in their order. */
static uint32_t count_entries(void)
{
	uint32_t n = 1;

	while (n < table.n && (table.slots[n - 1].flags & NEXT))
		n++;
	return n;
}

/* Offer one descriptor, at entry `i` of a split ring's table. */
static void offer_desc(uint16_t i, uint64_t gpa, uint32_t len, uint16_t flags, uint16_t next)
{
	const struct vring_desc descs[2] = {{gpa, len, flags, next}, {.addr = buffer, .len = 60}};

	if (layout_is_packed) {
		driver_add_descs(&ring.drv, descs, flags & NEXT ? 2 : 1);
		return;
	}
	ring_write_desc(&ring, i, gpa, len, flags, next);
	driver_add_raw(&ring.drv, i);
}

/* Offer the chain that begins at entry 0. */
static void offer_table(void)
{
	if (ring.shape.is_indirect)
		offer_desc(0, table.gpa, 16 * (layout_is_packed ? count_entries() : table.n),
			   VRING_DESC_F_INDIRECT, 0);
	else if (layout_is_packed)
		driver_add_descs(&ring.drv, table.slots, count_entries());
	else
		driver_add_raw(&ring.drv, 0);
}

static const struct virtq_chain *pop(void)
{
	driver_publish(&ring.drv);
	expect_eq(virtq_pop(&vq, 1), 1);
	return virtq_chain_at(&vq, vq.used_idx);
}

static void give_back(void)
{
	struct driver_used u;

	virtq_complete(&vq, 0);
	virtq_publish(&vq);
	expect(driver_take(&ring.drv, &u));
}

static void expect_segment(const struct virtq_chain *c, unsigned i, uint64_t gpa, uint64_t len)
{
	expect_lt(i, c->n_iov);
	expect_eq(ring_gpa_of(&guest, c->iov[i].iov_base), gpa);
	expect_eq(c->iov[i].iov_len, len);
}

/* What is offered is malformed: it comes as such, goes back, and the ring goes on. */
static void expect_malformed(void)
{
	const struct virtq_chain *c = pop();

	expect_eq(c->n_iov, 0);
	give_back();
	offer_desc(1, buffer, 60, vq.write_flag, 0);
	expect_segment(pop(), 0, buffer, 60);
	give_back();
	expect(!vq.is_broken);
}

static void expect_malformed_table(void)
{
	offer_table();
	expect_malformed();
}

START_TEST(a_chain_is_its_buffers_in_order)
{
	struct driver_seg segs[2];
	const uint32_t lens[] = {10, 1503};
	const struct virtq_chain *c;

	start(_i);
	for (unsigned round = 0; round < 8; round++) {
		ring_alloc_segs(&guest, segs, lens, 2, false);
		ring_offer(&ring, segs, 2, 0);
		c = pop();
		expect_eq(c->n_iov, 2);
		expect_eq(c->len, 1513);
		expect_eq(c->n_descs, ring.shape.is_indirect ? 1 : 2);
		expect_segment(c, 0, segs[0].gpa, 10);
		expect_segment(c, 1, segs[1].gpa, 1503);
		give_back();
	}
}
END_TEST

START_TEST(a_chain_of_exactly_ring_size_members_is_legal)
{
	uint32_t n = ring_shape(_i).size;
	const struct virtq_chain *c;

	start(_i);
	for (uint32_t i = 0; i < n; i++)
		set((uint16_t)i, buffer + i % 4000, 1 + i % 90, i + 1 < n ? NEXT : 0,
		    (uint16_t)(i + 1));
	offer_table();
	c = pop();
	expect_eq(c->n_iov, n);
	expect_eq(c->n_descs, ring.shape.is_indirect ? 1 : n);
	for (uint32_t i = 0; i < n; i++)
		expect_segment(c, i, buffer + i % 4000, 1 + i % 90);
	give_back();
}
END_TEST

START_TEST(members_of_no_bytes_are_passed_over)
{
	const struct virtq_chain *c;

	start(_i);
	set(0, buffer, 0, NEXT, 1);
	set(1, buffer + 5, 60, 0, 0);
	offer_table();
	c = pop();
	expect_eq(c->n_iov, 1);
	expect_eq(c->len, 60);
	expect_segment(c, 0, buffer + 5, 60);
	give_back();
	/* They need not even be mapped. */
	set(0, 0, 0, NEXT, 1);
	offer_table();
	expect_eq(pop()->n_iov, 1);
	give_back();
}
END_TEST

START_TEST(a_chain_without_a_byte_is_malformed)
{
	start(_i);
	set(0, buffer, 0, NEXT, 1);
	set(1, buffer, 0, 0, 0);
	expect_malformed_table();
}
END_TEST

START_TEST(a_loop_is_malformed)
{
	uint32_t n = ring_shape(_i).size;

	start(_i);
	set(0, buffer, 60, NEXT, 0);
	expect_malformed_table();
	set(0, buffer, 60, NEXT, 1);
	set(1, buffer, 60, NEXT, 0);
	expect_malformed_table();
	/* Without a byte, and so without a segment. */
	set(0, buffer, 0, NEXT, 0);
	expect_malformed_table();
	/* Through the whole table. */
	for (uint32_t i = 0; i < n; i++)
		set((uint16_t)i, buffer, 60, NEXT, (uint16_t)((i + 1) % n));
	expect_malformed_table();
}
END_TEST

START_TEST(a_next_beyond_its_table_is_malformed)
{
	uint16_t n = (uint16_t)ring_shape(_i).size;

	start(_i);
	set(0, buffer, 60, NEXT, n);
	expect_malformed_table();
	set(0, buffer, 60, NEXT, 65535);
	expect_malformed_table();
	if (!ring.shape.is_indirect)
		return;
	/* Within the ring's table, but not within the indirect one. */
	table.n = 1;
	set(0, buffer, 60, NEXT, 1);
	set(1, buffer, 60, 0, 0);
	expect_malformed_table();
}
END_TEST

/* Readable for receive, writable for transmit; also as the last member, and as an empty one. */
START_TEST(a_buffer_of_the_wrong_direction_is_malformed)
{
	struct ring_shape shape = ring_shape(_i / 2);
	bool is_rx = _i % 2;
	uint16_t right = is_rx ? VRING_DESC_F_WRITE : 0;
	uint16_t wrong = is_rx ? 0 : VRING_DESC_F_WRITE;

	start_with(&shape, is_rx ? VIRTQ_DEVICE_WRITES : VIRTQ_DEVICE_READS);
	set(0, buffer, 60, wrong, 0);
	expect_malformed_table();
	set(0, buffer, 60, right | NEXT, 1);
	set(1, buffer, 60, wrong, 0);
	expect_malformed_table();
	set(0, buffer, 60, right | NEXT, 1);
	set(1, buffer, 0, wrong, 0);
	expect_malformed_table();
}
END_TEST

START_TEST(readable_buffers_come_before_writable_ones_where_both_may_be)
{
	struct ring_shape shape = ring_shape(_i);
	const struct virtq_chain *c;

	start_with(&shape, VIRTQ_DEVICE_DOES_BOTH);
	set(0, buffer, 2, NEXT, 1);
	set(1, buffer + 8, 1, VRING_DESC_F_WRITE, 0);
	offer_table();
	c = pop();
	expect_eq(c->n_iov, 2);
	expect_eq(c->n_readable, 1);
	give_back();
	set(0, buffer, 2, 0, 0);
	offer_table();
	c = pop();
	expect_eq(c->n_readable, 1);
	give_back();
	set(0, buffer, 2, VRING_DESC_F_WRITE, 0);
	offer_table();
	c = pop();
	expect_eq(c->n_iov, 1);
	expect_eq(c->n_readable, 0);
	give_back();
	set(0, buffer, 2, VRING_DESC_F_WRITE | NEXT, 1);
	set(1, buffer + 8, 1, 0, 0);
	expect_malformed_table();
}
END_TEST

/* ---- addresses ---- */

START_TEST(a_buffer_may_cross_to_adjacent_regions)
{
	const struct guest *g = &guest.guest;
	uint64_t size = g->regions[1].size;
	const struct virtq_chain *c;

	start(_i);
	set(0, guest_edge(g, 0) - 7, (uint32_t)size + 7 + 9, NEXT, 1);
	set(1, guest_edge(g, 2) - 1, 2, 0, 0);
	offer_table();
	c = pop();
	expect_eq(c->n_iov, 5);
	expect_eq(c->len, size + 18);
	expect_segment(c, 0, guest_edge(g, 0) - 7, 7);
	expect_segment(c, 1, guest_edge(g, 0), size);
	expect_segment(c, 2, guest_edge(g, 1), 9);
	expect_segment(c, 3, guest_edge(g, 2) - 1, 1);
	expect_segment(c, 4, guest_edge(g, 2), 1);
	give_back();
}
END_TEST

START_TEST(a_buffer_that_is_not_all_mapped_is_malformed)
{
	const struct guest *g = &guest.guest;
	const struct {
		uint64_t gpa;
		uint32_t len;
	} bad[] = {
		{0, 60},
		{UINT64_MAX, 1},
		{UINT64_MAX - 59, 61},
		{g->regions[0].gpa - 1, 1},
		{g->regions[0].gpa - 1, 60},
		{guest_edge(g, 0), 1},
		{guest_edge(g, 0) - 59, 60},
		{guest_edge(g, 1) - 60, 61},
		{guest_edge(g, 1) + HOLE - 1, 60},
		/* From one side of a hole to the other. */
		{guest_edge(g, 1) - 60, (uint32_t)HOLE + 120},
		{guest_edge(g, 3) - 60, 61},
		{g->regions[0].gpa, UINT32_MAX},
		{guest_uva(g, g->regions[0].gpa), 60},
	};

	start(_i);
	for (unsigned i = 0; i < array_size(bad); i++) {
		set(0, bad[i].gpa, bad[i].len, 0, 0);
		expect_malformed_table();
		set(0, buffer, 60, NEXT, 1);
		set(1, bad[i].gpa, bad[i].len, 0, 0);
		expect_malformed_table();
	}
}
END_TEST

START_TEST(more_bytes_than_32_bits_count_are_malformed)
{
	const struct guest *g = &guest.guest;
	struct ring_shape shape = {.size = 256, .is_indirect = _i};
	uint32_t all = (uint32_t)(guest_edge(g, 3) - g->regions[0].gpa);

	start_with(&shape, VIRTQ_DEVICE_READS);
	expect_eq(all, 1U << 24);
	for (uint16_t i = 0; i < 256; i++)
		set(i, g->regions[0].gpa, i < 255 ? all : all - 1, i < 255 ? NEXT : 0,
		    (uint16_t)(i + 1));
	offer_table();
	expect_eq(pop()->len, UINT32_MAX);
	give_back();
	set(255, g->regions[0].gpa, all, 0, 0);
	expect_malformed_table();
}
END_TEST

/* ---- indirect tables ---- */

static void start_indirect(int i)
{
	start(i | RING_SHAPE_INDIRECT);
}

/* Offer an indirect table by a descriptor of the test's own. */
static void offer_indirect(uint64_t gpa, uint32_t len, uint16_t flags)
{
	offer_desc(0, gpa, len, flags | VRING_DESC_F_INDIRECT, 1);
}

START_TEST(an_indirect_table_is_some_descriptors_and_ends_its_chain)
{
	uint32_t size = ring_shape(_i).size;
	const uint32_t bad[] = {
		0, 1, 8, 15, 17, 24, 16 * size + 8, 16 * size + 16, UINT32_MAX & ~15U};

	start_indirect(_i);
	set(0, buffer, 60, 0, 0);
	for (unsigned i = 0; i < array_size(bad); i++) {
		offer_indirect(table.gpa, bad[i], 0);
		expect_malformed();
	}
	offer_indirect(table.gpa, 16, NEXT);
	expect_malformed();
	offer_indirect(table.gpa, 16 * size, 0);
	expect_segment(pop(), 0, buffer, 60);
	give_back();
}
END_TEST

/* The write flag of the descriptor that names a table means nothing (virtio 1.2, 2.7.5.3.2). */
START_TEST(the_write_flag_of_an_indirect_descriptor_is_ignored)
{
	start_indirect(_i);
	set(0, buffer, 60, 0, 0);
	offer_indirect(table.gpa, 16, VRING_DESC_F_WRITE);
	expect_segment(pop(), 0, buffer, 60);
	give_back();
}
END_TEST

START_TEST(a_table_within_a_table_is_malformed)
{
	start_indirect(_i);
	set(0, table.gpa, 16, VRING_DESC_F_INDIRECT, 0);
	expect_malformed_table();
	set(0, buffer, 60, NEXT, 1);
	set(1, table.gpa, 16, VRING_DESC_F_INDIRECT, 0);
	expect_malformed_table();
}
END_TEST

START_TEST(an_indirect_table_that_was_not_negotiated_is_malformed)
{
	uint64_t gpa = guest_alloc(&guest.guest, 16, 16);
	struct vring_desc d = {.addr = gpa, .len = 60};

	start(_i & ~RING_SHAPE_INDIRECT);
	write_entry(gpa, &d);
	offer_indirect(gpa, 16, 0);
	expect_malformed();
}
END_TEST

START_TEST(direct_members_may_come_before_an_indirect_table)
{
	const struct virtq_chain *c;

	start_indirect(_i);
	set(0, buffer + 100, 60, NEXT, 1);
	set(1, buffer + 200, 70, 0, 0);
	ring_write_desc(&ring, 0, buffer, 12, NEXT, 1);
	ring_write_desc(&ring, 1, table.gpa, 32, VRING_DESC_F_INDIRECT, 0);
	driver_add_raw(&ring.drv, 0);
	c = pop();
	expect_eq(c->n_iov, 3);
	expect_eq(c->len, 142);
	expect_eq(c->n_descs, 2);
	expect_segment(c, 0, buffer, 12);
	expect_segment(c, 1, buffer + 100, 60);
	expect_segment(c, 2, buffer + 200, 70);
	give_back();
}
END_TEST

START_TEST(an_indirect_table_may_cross_to_an_adjacent_region)
{
	uint64_t edge = guest_edge(&guest.guest, 1);
	const struct virtq_chain *c;

	start_indirect(_i);
	/* The cut goes through a descriptor, and between two of them. */
	for (uint64_t before = 1; before <= 16; before++) {
		table.gpa = edge - before;
		table.n = 2;
		set(0, buffer, 60, NEXT, 1);
		set(1, buffer + 100, 70, 0, 0);
		offer_table();
		c = pop();
		expect_eq(c->n_iov, 2);
		expect_segment(c, 0, buffer, 60);
		expect_segment(c, 1, buffer + 100, 70);
		give_back();
	}
}
END_TEST

START_TEST(an_indirect_table_that_is_not_mapped_is_malformed)
{
	uint64_t edge = guest_edge(&guest.guest, 1);

	start_indirect(_i);
	offer_indirect(0, 16, 0);
	expect_malformed();
	offer_indirect(edge, 16, 0);
	expect_malformed();
	offer_indirect(UINT64_MAX - 15, 32, 0);
	expect_malformed();
	/* The first descriptor is there, the second one is cut, or missing. */
	table.gpa = edge - 16;
	set(0, buffer, 60, NEXT, 1);
	offer_indirect(edge - 16, 32, 0);
	expect_malformed();
	offer_indirect(edge - 8, 16, 0);
	expect_malformed();
}
END_TEST

/* ---- many segments ---- */

#define N_SEGS 64

/* Offer `n` chains of N_SEGS members each, which share one table. */
static void offer_long_chains(unsigned n)
{
	for (uint16_t i = 0; i < N_SEGS; i++)
		set(i, buffer + i, i + 1u, i + 1 < N_SEGS ? NEXT : 0, (uint16_t)(i + 1));
	for (uint16_t i = 0; i < n; i++)
		offer_desc(i, table.gpa, 16 * N_SEGS, VRING_DESC_F_INDIRECT, 0);
	driver_publish(&ring.drv);
}

/* What is popped and not completed keeps its segments, whatever its owner does to iov[-1]. */
static void check_in_flight(void)
{
	for (uint16_t pos = vq.used_idx; pos != vq.last_avail; pos++)
		virtq_chain_at(&vq, pos)->iov[-1] = (struct iovec){NULL, 12345};
	for (uint16_t pos = vq.used_idx; pos != vq.last_avail; pos++) {
		const struct virtq_chain *c = virtq_chain_at(&vq, pos);

		expect_eq(c->n_iov, N_SEGS);
		for (unsigned i = 0; i < N_SEGS; i++)
			expect_segment(c, i, buffer + i, i + 1);
	}
}

START_TEST(chains_that_find_no_room_wait_until_others_are_done)
{
	struct ring_shape shape = {.size = 256, .base = 65530, .is_indirect = true};
	uint16_t first = shape.base;
	unsigned n_done = 0;

	start_with(&shape, VIRTQ_DEVICE_READS);
	offer_long_chains(256);
	while (n_done < 256) {
		unsigned room = virtq_pop(&vq, 256);

		expect(room > 0 && room < 256);
		expect_eq(virtq_pop(&vq, 256), 0);
		check_in_flight();
		for (; room > 0; room--, n_done++) {
			expect_eq(virtq_chain_at(&vq, vq.used_idx)->head,
				  ring.drv.heads[(first + n_done) & ring.drv.mask]);
			virtq_complete(&vq, 0);
		}
	}
	expect_eq(n_done, 256);
}
END_TEST

START_TEST(unpopped_chains_leave_room_for_those_that_come_instead)
{
	struct ring_shape shape = {.size = 256, .is_indirect = true};
	unsigned room;

	start_with(&shape, VIRTQ_DEVICE_READS);
	offer_long_chains(256);
	room = virtq_pop(&vq, 256);
	expect_gt(room, 3);
	for (unsigned i = 0; i < 10; i++) {
		virtq_unpop(&vq, (uint16_t)(vq.last_avail - 3));
		expect_eq(virtq_pop(&vq, 256), 3);
		check_in_flight();
	}
}
END_TEST

START_TEST(malformed_chains_keep_no_room)
{
	struct ring_shape shape = {.size = 256, .is_indirect = true};

	start_with(&shape, VIRTQ_DEVICE_READS);
	offer_long_chains(256);
	set(N_SEGS - 1, 0, 1, 0, 0);
	expect_eq(virtq_pop(&vq, 256), 256);
}
END_TEST

/* Twice the ring's size in members, each in two regions: no queue must wait for that for ever. */
START_TEST(a_chain_that_no_pool_can_hold_is_malformed)
{
	struct ring_shape shape = {.size = 32768, .is_indirect = true};
	uint64_t edge = guest_edge(&guest.guest, 0);

	start_with(&shape, VIRTQ_DEVICE_READS);
	for (uint32_t i = 0; i < 32768; i++) {
		set((uint16_t)i, edge - 1, 2, i < 32767 ? NEXT : 0, (uint16_t)(i + 1));
		ring_write_desc(&ring, (uint16_t)i, edge - 1, 2, NEXT, (uint16_t)(i + 1));
	}
	ring_write_desc(&ring, 32767, table.gpa, 16 * 32768, VRING_DESC_F_INDIRECT, 0);
	driver_add_raw(&ring.drv, 0);
	expect_malformed();
}
END_TEST

/* ---- packed rings ---- */

static void expect_ring_broken(void)
{
	driver_publish(&ring.drv);
	expect_eq(virtq_pop(&vq, 64), 0);
	expect(vq.is_broken);
	expect(vq.broken_why);
}

START_TEST(a_packed_chain_without_end_breaks_the_ring)
{
	start(_i & ~RING_SHAPE_INDIRECT);
	for (uint32_t i = 0; i < table.n; i++)
		set((uint16_t)i, buffer, i % 2 ? 60 : 0, NEXT, 0);
	offer_table();
	expect_ring_broken();
}
END_TEST

START_TEST(a_packed_chain_that_reaches_into_what_is_in_flight_breaks_the_ring)
{
	start(_i & ~RING_SHAPE_INDIRECT);
	offer_desc(0, buffer, 60, 0, 0);
	expect_segment(pop(), 0, buffer, 60);
	/* All slots but that one: the next one after these is ours. */
	table.n--;
	for (uint32_t i = 0; i < table.n; i++)
		set((uint16_t)i, buffer, 60, NEXT, 0);
	offer_table();
	expect_ring_broken();
	/* It was ours until it was published, not until it was complete. */
	virtq_complete(&vq, 0);
	expect_eq(virtq_pop(&vq, 64), 0);
}
END_TEST

/* What is wrong may come first; the next chain is behind the last one all the same. */
START_TEST(a_malformed_packed_chain_takes_all_of_its_slots)
{
	start(_i & ~RING_SHAPE_INDIRECT);
	for (uint32_t bad = 0; bad < 2; bad++) {
		for (uint32_t i = 0; i < table.n; i++)
			set((uint16_t)i, i == bad ? 0 : buffer, 60, i + 1 < table.n ? NEXT : 0, 0);
		offer_table();
		driver_publish(&ring.drv);
		expect_eq(virtq_pop(&vq, 64), 1);
		expect_eq(virtq_chain_at(&vq, vq.used_idx)->n_descs, table.n);
		virtq_unpop(&vq, vq.used_idx);
		expect_malformed();
	}
}
END_TEST

START_TEST(the_id_of_a_packed_chain_is_its_last_ones)
{
	start(_i & ~RING_SHAPE_INDIRECT);
	for (unsigned round = 0; round < 7; round++) {
		set(0, buffer, 60, NEXT, 0);
		set(1, buffer, 60, 0, 0);
		offer_table();
		/* The driver writes another id into the first one, and checks what comes back. */
		expect_eq(pop()->head, ring.drv.heads[(ring.drv.avail_idx - 1) & ring.drv.mask]);
		give_back();
	}
}
END_TEST

START_TEST(all_entries_of_a_packed_table_count)
{
	const struct virtq_chain *c;

	start(_i | RING_SHAPE_INDIRECT);
	/* Neither a missing nor a superfluous next matters. */
	set(0, buffer, 60, 0, 0);
	set(1, buffer + 100, 70, NEXT, 0);
	offer_indirect(table.gpa, 32, 0);
	c = pop();
	expect_eq(c->n_iov, 2);
	expect_eq(c->n_descs, 1);
	expect_segment(c, 0, buffer, 60);
	expect_segment(c, 1, buffer + 100, 70);
	give_back();
}
END_TEST

START_TEST(an_indirect_table_is_alone_in_a_packed_chain)
{
	start_indirect(_i);
	set(0, buffer + 100, 60, 0, 0);
	for (unsigned first = 0; first < 2; first++) {
		struct vring_desc descs[2] = {{.addr = buffer, .len = 60, .flags = NEXT},
					      {.addr = buffer, .len = 60}};

		descs[first].addr = table.gpa;
		descs[first].len = 16;
		descs[first].flags |= VRING_DESC_F_INDIRECT;
		driver_add_descs(&ring.drv, descs, 2);
		expect_malformed();
	}
}
END_TEST

START_TEST(packed_chains_go_across_the_end_of_the_ring)
{
	uint32_t n = ring_shape(_i).size;
	uint32_t len = n < 3 ? n : 3;

	start(_i & ~RING_SHAPE_INDIRECT);
	for (unsigned round = 0; round < 16; round++) {
		for (uint32_t i = 0; i < len; i++)
			set((uint16_t)i, buffer + 10 * i, i + 1, i + 1 < len ? NEXT : 0, 0);
		offer_table();
		expect_eq(pop()->n_descs, len);
		for (uint32_t i = 0; i < len; i++)
			expect_segment(virtq_chain_at(&vq, vq.used_idx), i, buffer + 10 * i, i + 1);
		give_back();
		/* Sooner or later each slot is the first one. */
		offer_desc(0, buffer, 60, 0, 0);
		pop();
		give_back();
	}
}
END_TEST

START_TEST(a_packed_ring_may_have_one_slot)
{
	struct ring_shape shape = {.size = 1};

	start_with(&shape, VIRTQ_DEVICE_READS);
	for (unsigned i = 0; i < 5; i++) {
		offer_desc(0, buffer + i, 60, 0, 0);
		expect_segment(pop(), 0, buffer + i, 60);
		expect_eq(virtq_pop(&vq, 64), 0);
		give_back();
	}
	set(0, buffer, 60, NEXT, 0);
	offer_table();
	expect_ring_broken();
}
END_TEST

#ifndef __SANITIZE_THREAD__ /* the race is the point */
/* ---- a guest that changes descriptors under our eyes ---- */

static bool is_flipping;

static void expect_in_guest(const struct virtq_chain *c)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < c->n_iov; i++) {
		ring_gpa_of(&guest, c->iov[i].iov_base);
		ring_gpa_of(&guest, (char *)c->iov[i].iov_base + c->iov[i].iov_len - 1);
		len += c->iov[i].iov_len;
	}
	expect(c->n_iov == 0 || len == c->len);
}

static void *flip(void *arg)
{
	volatile struct vring_desc *d = arg;

	while (__atomic_load_n(&is_flipping, __ATOMIC_RELAXED)) {
		d->len = UINT32_MAX;
		d->addr = 8;
		d->flags = VRING_DESC_F_INDIRECT;
		d->next = 65535;
		d->flags = NEXT;
		d->next = 0;
		d->addr = buffer;
		d->len = 60;
		d->flags = 0;
	}
	return NULL;
}

START_TEST(whatever_a_second_thread_writes_a_segment_is_in_guest_memory)
{
	struct ring_shape shape = {.size = 2, .is_indirect = true};
	pthread_t thread;

	start_with(&shape, VIRTQ_DEVICE_READS);
	is_flipping = true;
	expect_eq(pthread_create(&thread, NULL, flip, ring.drv.desc), 0);
	for (unsigned i = 0; i < 20000; i++) {
		driver_add_raw(&ring.drv, 0);
		expect_in_guest(pop());
		give_back();
	}
	__atomic_store_n(&is_flipping, false, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}
END_TEST
/* Anything into a descriptor of a packed ring, now and then as if it were offered. */
static void *flip_packed(void *arg)
{
	volatile struct vring_packed_desc *d = arg;

	for (uint32_t i = 0; __atomic_load_n(&is_flipping, __ATOMIC_RELAXED); i++) {
		d[i % 4].len = i % 3 ? 60 : UINT32_MAX;
		d[i % 4].addr = i % 5 ? buffer : 8;
		d[i % 4].id = (uint16_t)i;
		d[i % 4].flags = (uint16_t)(i % 8 | (i & 8) << 4 | (i & 16) << 11);
	}
	return NULL;
}

START_TEST(whatever_a_second_thread_writes_into_a_packed_ring_does_no_harm)
{
	struct ring_shape shape = {.size = 4, .is_indirect = true};
	unsigned n_popped = 0;
	pthread_t thread;

	start_with(&shape, VIRTQ_DEVICE_READS);
	is_flipping = true;
	expect_eq(pthread_create(&thread, NULL, flip_packed, ring.drv.packed.desc), 0);
	for (unsigned round = 0; round < 20000 || n_popped == 0; round++) {
		unsigned n;

		/* A start would find nothing that fits; the checks must not depend on one. */
		vq.is_broken = false;
		virtq_n_avail(&vq);
		n = virtq_pop(&vq, 1 + round % 4);
		expect_le(n, 4);
		for (unsigned i = 0; i < n; i++)
			expect_in_guest(virtq_chain_at(&vq, (uint16_t)(vq.used_idx + i)));
		while (virtq_n_in_flight(&vq) > 0)
			virtq_complete(&vq, 0);
		virtq_publish(&vq);
		n_popped += n;
	}
	__atomic_store_n(&is_flipping, false, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}
END_TEST
#endif

static void add_chains(TCase *tc)
{
	add_for_small_shapes(tc, a_chain_is_its_buffers_in_order);
	add_for_all_shapes(tc, a_chain_of_exactly_ring_size_members_is_legal);
	add_for_small_shapes(tc, members_of_no_bytes_are_passed_over);
	add_for_small_shapes(tc, a_chain_without_a_byte_is_malformed);
	tcase_add_loop_test(tc, a_buffer_of_the_wrong_direction_is_malformed, 0,
			    2 * RING_N_SMALL_SHAPES);
	add_for_small_shapes(tc, readable_buffers_come_before_writable_ones_where_both_may_be);
	add_for_small_shapes(tc, a_buffer_may_cross_to_adjacent_regions);
	tcase_add_loop_test(tc, more_bytes_than_32_bits_count_are_malformed, 0, 2);
	tcase_add_test(tc, chains_that_find_no_room_wait_until_others_are_done);
	tcase_add_test(tc, unpopped_chains_leave_room_for_those_that_come_instead);
	tcase_add_test(tc, malformed_chains_keep_no_room);
}

static void add_split(TCase *tc)
{
	add_for_all_shapes(tc, a_loop_is_malformed);
	add_for_all_shapes(tc, a_next_beyond_its_table_is_malformed);
	add_for_small_shapes(tc, direct_members_may_come_before_an_indirect_table);
	tcase_add_test(tc, a_chain_that_no_pool_can_hold_is_malformed);
#ifndef __SANITIZE_THREAD__
	tcase_add_test(tc, whatever_a_second_thread_writes_a_segment_is_in_guest_memory);
#endif
}

static void add_packed(TCase *tc)
{
	add_for_all_shapes(tc, a_packed_chain_without_end_breaks_the_ring);
	add_for_all_shapes(tc, a_packed_chain_that_reaches_into_what_is_in_flight_breaks_the_ring);
	add_for_small_shapes(tc, a_malformed_packed_chain_takes_all_of_its_slots);
	add_for_small_shapes(tc, the_id_of_a_packed_chain_is_its_last_ones);
	add_for_small_shapes(tc, all_entries_of_a_packed_table_count);
	add_for_small_shapes(tc, an_indirect_table_is_alone_in_a_packed_chain);
	add_for_all_shapes(tc, packed_chains_go_across_the_end_of_the_ring);
	tcase_add_test(tc, a_packed_ring_may_have_one_slot);
#ifndef __SANITIZE_THREAD__
	tcase_add_test(tc, whatever_a_second_thread_writes_into_a_packed_ring_does_no_harm);
#endif
}

static void add_indirect(TCase *tc)
{
	add_for_all_shapes(tc, an_indirect_table_is_some_descriptors_and_ends_its_chain);
	add_for_small_shapes(tc, the_write_flag_of_an_indirect_descriptor_is_ignored);
	add_for_small_shapes(tc, a_table_within_a_table_is_malformed);
	add_for_small_shapes(tc, an_indirect_table_that_was_not_negotiated_is_malformed);
	add_for_small_shapes(tc, an_indirect_table_may_cross_to_an_adjacent_region);
}

static void add_holes(TCase *tc)
{
	add_for_small_shapes(tc, a_buffer_that_is_not_all_mapped_is_malformed);
	add_for_small_shapes(tc, an_indirect_table_that_is_not_mapped_is_malformed);
}

int main(void)
{
	static const struct suite_ring_case cases[] = {
		{{"chains", setup, teardown, add_chains}, LAYOUT_BOTH},
		{{"links", setup, teardown, add_split}, LAYOUT_SPLIT},
		{{"slots", setup, teardown, add_packed}, LAYOUT_PACKED},
		{{"indirect tables", setup, teardown, add_indirect}, LAYOUT_BOTH},
		{{"holes", setup_with_holes, teardown, add_holes}, LAYOUT_BOTH},
	};

	return suite_run_rings("chain", cases, array_size(cases));
}
