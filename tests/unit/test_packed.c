/* SPDX-License-Identifier: BSD-2-Clause */
/* What a packed ring has that a split one has not; the rest is in test_virtq.c and test_chain.c. */
#include "virtq/packed.h"

#include <check.h>
#include <endian.h>
#include <linux/virtio_config.h>
#include <string.h>

#include "support/ring.h"
#include "support/suite.h"

#define AVAIL (1u << VRING_PACKED_DESC_F_AVAIL)
#define USED  (1u << VRING_PACKED_DESC_F_USED)
#define FRESH 0x80008000u

static struct ring_guest guest;
static struct ring ring;
static struct virtq vq;

static void setup(void)
{
	ring_guest_init(&guest, 0);
	ring = (struct ring){0};
	vq = (struct virtq){0};
}

static void teardown(void)
{
	virtq_stop(&vq);
	ring_fini(&ring);
	ring_guest_fini(&guest);
}

static void restart_at(uint32_t base)
{
	struct virtq_setup s = ring_setup(&ring);

	s.base = base;
	expect_eq(virtq_start(&vq, &s), 0);
}

static void start_with(const struct ring_shape *shape, enum virtq_direction direction)
{
	ring_init(&ring, &guest, shape, 0);
	virtq_init(&vq, direction);
	restart_at(ring.drv.first_base);
}

static void start(uint32_t size, uint16_t base, bool has_event_idx)
{
	struct ring_shape shape = {.size = size, .base = base, .has_event_idx = has_event_idx};

	start_with(&shape, VIRTQ_DEVICE_READS);
}

/* Offer a chain of `n` descriptors. */
static void offer(unsigned n)
{
	struct driver_seg segs[8];

	expect_le(n, 8);
	for (unsigned i = 0; i < n; i++)
		segs[i] = (struct driver_seg){
			.gpa = guest.guest.regions[3].gpa, .len = 60, .is_writable = vq.write_flag};
	driver_add(&ring.drv, segs, n, 0);
	driver_publish(&ring.drv);
}

static void complete(unsigned n)
{
	expect_eq(virtq_pop(&vq, n), n);
	for (unsigned i = 0; i < n; i++)
		virtq_complete(&vq, 0);
	virtq_publish(&vq);
}

static void take(unsigned n)
{
	struct driver_used u;

	for (unsigned i = 0; i < n; i++)
		expect(driver_take(&ring.drv, &u));
	expect(!driver_take(&ring.drv, &u));
}

static void pass(unsigned n_descs)
{
	offer(n_descs);
	complete(1);
	take(1);
}

static struct vring_packed_desc *desc(uint32_t slot)
{
	return &ring.drv.packed.desc[slot];
}

static uint32_t base_of(uint32_t slot, bool wrap)
{
	return (slot | (uint32_t)wrap << 15) * 0x10001u;
}

/* ---- used descriptors ---- */

START_TEST(a_used_descriptor_has_the_wrap_bit_of_its_lap_and_says_whether_it_was_written)
{
	struct ring_shape shape = {.size = 3};

	start_with(&shape, VIRTQ_DEVICE_WRITES);
	for (unsigned i = 0; i < 9; i++) {
		uint16_t lap = i / 3 % 2 ? 0 : AVAIL | USED;
		uint32_t len = i % 2 ? 60 : 0;

		offer(1);
		expect_eq(virtq_pop(&vq, 1), 1);
		virtq_complete(&vq, len);
		virtq_publish(&vq);
		expect_eq(le16toh(desc(i % 3)->flags), lap | (len ? VRING_DESC_F_WRITE : 0));
		expect_eq(le32toh(desc(i % 3)->len), len);
		take(1);
	}
}
END_TEST

START_TEST(a_chain_is_given_back_in_its_first_slot_alone)
{
	struct vring_packed_desc before[2];

	start(5, 0, false);
	for (unsigned i = 0; i < 10; i++) {
		uint32_t slot = ring.drv.packed.avail_at % 5;
		uint16_t id;

		offer(3);
		id = ring.drv.heads[(ring.drv.avail_idx - 1) & ring.drv.mask];
		before[0] = *desc((slot + 1) % 5);
		before[1] = *desc((slot + 2) % 5);
		complete(1);
		expect_eq(le16toh(desc(slot)->id), id);
		expect(memcmp(&before[0], desc((slot + 1) % 5), sizeof(before[0])) == 0);
		expect(memcmp(&before[1], desc((slot + 2) % 5), sizeof(before[1])) == 0);
		take(1);
	}
}
END_TEST

/* The driver goes along the ring: it must not get to see a used one whose batch is not complete. */
START_TEST(nothing_of_a_batch_is_visible_before_its_first)
{
	start(257, 250, false);
	for (unsigned i = 0; i < 20; i++)
		offer(1 + i % 3);
	expect_eq(virtq_pop(&vq, 64), 20);
	for (unsigned i = 0; i < 20; i++) {
		virtq_complete(&vq, 0);
		expect_eq(driver_n_used(&ring.drv), 0);
	}
	expect_eq(virtq_publish(&vq), 20);
	expect_eq(driver_n_used(&ring.drv), 20);
	take(20);
}
END_TEST

/* ---- heads ---- */

START_TEST(looking_ahead_is_bounded_and_reaches_all_in_the_end)
{
	uint16_t seen;

	start(1000, 0, false);
	for (unsigned i = 0; i < 1000; i++)
		offer(1);
	seen = virtq_n_avail(&vq);
	expect_eq(seen, PACKED_LOOK_AHEAD);
	/* Each further look tells of at least one more. */
	for (unsigned i = 0; i < 10; i++)
		expect_eq(virtq_n_avail(&vq), seen + i + 1);
	/* Whoever pops gets what there is, and keeps it in view when it is handed back. */
	expect_eq(virtq_pop(&vq, 600), 600);
	virtq_unpop(&vq, vq.used_idx);
	expect_ge(virtq_n_avail(&vq), 600);
	expect_eq(virtq_pop(&vq, 1000), 1000);
	expect_eq(virtq_n_avail(&vq), 0);
}
END_TEST

START_TEST(a_head_that_is_taken_back_after_it_was_seen_breaks_the_queue)
{
	start(5, _i, false);
	offer(1);
	offer(1);
	expect_eq(virtq_n_avail(&vq), 2);
	desc((uint32_t)(_i + 1) % 5)->flags = htole16(_i + 1 < 5 ? 0 : AVAIL | USED);
	expect_eq(virtq_pop(&vq, 64), 1);
	expect(vq.is_broken);
	expect_eq(virtq_pop(&vq, 64), 0);
}
END_TEST

START_TEST(unpopped_chains_come_again_whatever_their_length)
{
	start(7, 5, false);
	for (unsigned round = 0; round < 9; round++) {
		offer(2);
		offer(1);
		offer(3);
		for (unsigned n = 0; n <= 3; n++) {
			expect_eq(virtq_pop(&vq, 64), 3);
			virtq_unpop(&vq, (uint16_t)(vq.used_idx + n));
			expect_eq(virtq_n_avail(&vq), 3 - n);
			expect_eq(virtq_pop(&vq, 64), 3 - n);
			expect_eq(virtq_chain_at(&vq, (uint16_t)(vq.used_idx + 2))->n_descs, 3);
			virtq_unpop(&vq, vq.used_idx);
		}
		complete(3);
		take(3);
	}
}
END_TEST

/* ---- event suppression ---- */

START_TEST(kicks_are_asked_for_by_flags_or_at_a_place)
{
	const struct vring_packed_desc_event *e;

	start(5, 0, _i);
	e = ring.drv.packed.device;
	for (unsigned i = 0; i < 23; i++) {
		uint32_t place = i % 10;

		virtq_kicks_off(&vq);
		expect_eq(le16toh(e->flags), VRING_PACKED_EVENT_FLAG_DISABLE);
		expect(!virtq_kicks_on(&vq));
		if (_i) {
			expect_eq(le16toh(e->flags), VRING_PACKED_EVENT_FLAG_DESC);
			expect_eq(le16toh(e->off_wrap), place % 5 | (place < 5 ? 0x8000 : 0));
		} else {
			expect_eq(le16toh(e->flags), VRING_PACKED_EVENT_FLAG_ENABLE);
		}
		pass(1);
	}
}
END_TEST

static void set_driver_event(uint16_t flags, uint16_t off_wrap)
{
	ring.drv.packed.driver->flags = htole16(flags);
	ring.drv.packed.driver->off_wrap = htole16(off_wrap);
}

START_TEST(odd_event_words_of_the_guest_get_it_calls)
{
	start(5, 0, _i);
	pass(1);
	virtq_called(&vq);
	offer(1);
	complete(1);
	/* Not negotiated, or not defined; a slot that there is not. */
	set_driver_event(3, 0);
	expect(virtq_call_needed(&vq));
	set_driver_event(0xffff, 0xffff);
	expect(virtq_call_needed(&vq));
	set_driver_event(VRING_PACKED_EVENT_FLAG_DESC, 5);
	expect(virtq_call_needed(&vq));
	set_driver_event(VRING_PACKED_EVENT_FLAG_DESC, 0xffff);
	expect(virtq_call_needed(&vq));
	set_driver_event(VRING_PACKED_EVENT_FLAG_DESC, 3);
	expect_eq(virtq_call_needed(&vq), !_i);
	set_driver_event(VRING_PACKED_EVENT_FLAG_DISABLE, 0);
	expect(!virtq_call_needed(&vq));
}
END_TEST

/* ---- where a ring stands ---- */

START_TEST(the_base_is_slot_and_wrap_bit_in_both_halves)
{
	start(3, 0, false);
	for (unsigned i = 0; i < 14; i++) {
		expect_eq(virtq_base(&vq), base_of(i % 3, i / 3 % 2 == 0));
		expect(virtq_stands_at(&vq, base_of(i % 3, i / 3 % 2 == 0)));
		/* Some frontends know the avail half only. */
		expect(virtq_stands_at(&vq, base_of(i % 3, i / 3 % 2 == 0) & 0xffff));
		expect(!virtq_stands_at(&vq, base_of((i + 1) % 3, (i + 1) / 3 % 2 == 0)));
		pass(1);
	}
	/* Two laps on, it is where it began. */
	expect_eq(virtq_base(&vq), base_of(2, true));
}
END_TEST

/* Let the ring run, and forget its record, as when a frontend has been told where it stands. */
static uint32_t stop_and_forget(void)
{
	uint32_t base = virtq_stop(&vq);

	journal_forget(ring.journal, 0);
	return base;
}

START_TEST(without_a_record_the_frontends_word_counts)
{
	start(5, 0, false);
	for (unsigned i = 0; i < 25; i++) {
		uint32_t base;

		pass(1 + i % 3);
		offer(2);
		base = stop_and_forget();
		restart_at(i % 2 ? base : base & 0xffff);
		expect(!vq.is_broken);
		expect_eq(virtq_base(&vq), base);
		complete(1);
		take(1);
	}
}
END_TEST

START_TEST(a_frontends_word_that_cannot_be_breaks_the_queue)
{
	/* It stands at slot 2 of the second lap; that is 12 of these. */
	const uint32_t wrong[] = {base_of(0, true),	 base_of(1, true),
				  base_of(2, true),	 base_of(3, true),
				  base_of(4, true),	 base_of(0, false),
				  base_of(1, false),	 base_of(5, false),
				  base_of(0x7fff, true), 0};

	start(5, 0, false);
	for (unsigned i = 0; i < 7; i++)
		pass(1);
	offer(1);
	expect_eq(stop_and_forget(), base_of(2, false));
	for (unsigned i = 0; i < array_size(wrong); i++) {
		restart_at(wrong[i]);
		expect(vq.is_broken);
		expect(strstr(vq.broken_why, "not known"));
		virtq_stop(&vq);
	}
	restart_at(base_of(2, false));
	complete(1);
	take(1);
}
END_TEST

START_TEST(a_record_counts_more_than_the_frontends_word)
{
	start(5, 0, false);
	for (unsigned i = 0; i < 23; i++) {
		uint32_t base;

		pass(1 + i % 2);
		offer(1);
		base = virtq_stop(&vq);
		/* Without the record, some of these would do. */
		restart_at(base_of(i % 5, i % 2));
		expect(!vq.is_broken);
		expect_eq(virtq_base(&vq), base);
		complete(1);
		take(1);
	}
}
END_TEST

START_TEST(a_guest_that_starts_anew_is_served_from_the_start)
{
	const uint32_t bases[] = {FRESH, 0x8000, 0, base_of(2, true), base_of(2, false)};
	struct ring_shape shape = {.size = 3};

	ring_init(&ring, &guest, &shape, 0);
	virtq_init(&vq, VIRTQ_DEVICE_READS);
	for (unsigned i = 0; i < 4 * array_size(bases); i++) {
		unsigned n = i % 4;

		/* The record is that of the guest before, the frontend's word anything. */
		ring_reset(&ring);
		for (unsigned k = 0; k < n; k++)
			offer(1);
		restart_at(bases[i / 4]);
		expect_eq(virtq_base(&vq), FRESH);
		expect(virtq_is_at_start(&vq));
		if (n > 0)
			complete(n);
		take(n);
		for (unsigned k = 0; k < i; k++)
			pass(1 + k % 3);
		virtq_stop(&vq);
	}
}
END_TEST

/* A ring of another guest, whose position is another one: neither does the record fit, nor is it
 * written over, as long as nobody knows better. */
START_TEST(a_record_of_another_ring_is_not_believed)
{
	uint32_t base;

	start(5, 0, false);
	for (unsigned i = 0; i < 7; i++)
		pass(1);
	virtq_stop(&vq);
	ring_reset(&ring);
	virtq_init(&vq, VIRTQ_DEVICE_READS);
	restart_at(FRESH);
	pass(1);
	base = virtq_stop(&vq);
	/* The record of seven chains over the memory of one. */
	ring_record(&ring)->done =
		(struct journal_mark){.pos = 7, .place = 7, .last = 6, .has_last = 1};
	ring_record(&ring)->intended = 7;
	restart_at(base_of(2, true));
	expect(vq.is_broken);
	virtq_stop(&vq);
	expect_eq(ring_record(&ring)->done.place, 7);
	restart_at(base);
	expect(!vq.is_broken);
	pass(1);
}
END_TEST

START_TEST(a_record_of_a_ring_of_another_size_is_not_believed)
{
	start(5, 0, false);
	pass(1);
	virtq_stop(&vq);
	ring_record(&ring)->size = 6;
	restart_at(FRESH);
	expect(vq.is_broken);
	virtq_stop(&vq);
	restart_at(base_of(1, true));
	pass(1);
}
END_TEST

/* The file is in a folder of the daemon's user, but may be damaged all the same. */
START_TEST(a_damaged_record_does_no_harm)
{
	uint32_t seed = 1;
	uint32_t base;

	start(5, 0, false);
	pass(2);
	base = virtq_stop(&vq);
	for (unsigned i = 0; i < 5000; i++) {
		unsigned char *record = (void *)ring_record(&ring);
		struct journal_ring copy = *ring_record(&ring);

		for (unsigned k = 0; k < 1 + i % 12; k++) {
			seed = seed * 1664525 + 1013904223;
			record[(seed >> 8) % (sizeof(copy) + 64)] = (unsigned char)(seed >> 24);
		}
		ring_record(&ring)->size = 5;
		restart_at(base);
		expect(vq.is_broken || vq.packed.used_at < 10);
		virtq_pop(&vq, 64);
		virtq_stop(&vq);
		*ring_record(&ring) = copy;
	}
}
END_TEST

static void add_heads(TCase *tc)
{
	tcase_add_test(
		tc, a_used_descriptor_has_the_wrap_bit_of_its_lap_and_says_whether_it_was_written);
	tcase_add_test(tc, a_chain_is_given_back_in_its_first_slot_alone);
	tcase_add_test(tc, nothing_of_a_batch_is_visible_before_its_first);
	tcase_add_test(tc, looking_ahead_is_bounded_and_reaches_all_in_the_end);
	tcase_add_loop_test(tc, a_head_that_is_taken_back_after_it_was_seen_breaks_the_queue, 1, 4);
	tcase_add_test(tc, unpopped_chains_come_again_whatever_their_length);
	tcase_add_loop_test(tc, kicks_are_asked_for_by_flags_or_at_a_place, 0, 2);
	tcase_add_loop_test(tc, odd_event_words_of_the_guest_get_it_calls, 0, 2);
}

static void add_places(TCase *tc)
{
	tcase_add_test(tc, the_base_is_slot_and_wrap_bit_in_both_halves);
	tcase_add_test(tc, without_a_record_the_frontends_word_counts);
	tcase_add_test(tc, a_frontends_word_that_cannot_be_breaks_the_queue);
	tcase_add_test(tc, a_record_counts_more_than_the_frontends_word);
	tcase_add_test(tc, a_guest_that_starts_anew_is_served_from_the_start);
	tcase_add_test(tc, a_record_of_another_ring_is_not_believed);
	tcase_add_test(tc, a_record_of_a_ring_of_another_size_is_not_believed);
	tcase_add_test(tc, a_damaged_record_does_no_harm);
}

int main(void)
{
	static const struct suite_ring_case cases[] = {
		{{"heads", setup, teardown, add_heads}, LAYOUT_PACKED},
		{{"places", setup, teardown, add_places}, LAYOUT_PACKED},
	};

	return suite_run_rings("packed", cases, array_size(cases));
}
