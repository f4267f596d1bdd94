/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/virtq.h"

#include <check.h>
#include <endian.h>
#include <errno.h>
#include <linux/virtio_config.h>

#include "support/ring.h"
#include "support/suite.h"

#define BUFFER_LEN 100

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

static void restart(void)
{
	struct virtq_setup s = ring_setup(&ring);

	expect_eq(virtq_start(&vq, &s), 0);
}

/* Start a queue on a fresh ring of shape `i`, which the device reads. */
static void start(int i, uint64_t features)
{
	struct ring_shape shape = ring_shape(i);

	ring_init(&ring, &guest, &shape, features);
	virtq_init(&vq, VIRTQ_DEVICE_READS);
	restart();
}

/* Offer `n` heads that share one buffer. Return: whether the device wants a kick. */
static bool offer(unsigned n)
{
	struct driver_seg seg = {.gpa = guest.guest.regions[3].gpa, .len = BUFFER_LEN};

	for (unsigned i = 0; i < n; i++)
		ring_offer(&ring, &seg, 1, 0);
	return driver_publish(&ring.drv);
}

/* Pop and complete `n` heads, which are there. */
static void complete(unsigned n)
{
	expect_eq(virtq_pop(&vq, n), n);
	for (unsigned i = 0; i < n; i++)
		virtq_complete(&vq, 0);
}

/* Take back `n` used elements; the driver checks their order. */
static void take(unsigned n)
{
	struct driver_used u;

	for (unsigned i = 0; i < n; i++)
		expect(driver_take(&ring.drv, &u));
	expect(!driver_take(&ring.drv, &u));
}

/* Offer, complete and take `n` heads, and decide about the call. */
static void pass(unsigned n)
{
	offer(n);
	complete(n);
	virtq_publish(&vq);
	virtq_called(&vq);
	take(n);
}

/* ---- heads ---- */

START_TEST(heads_come_in_avail_order_and_go_back_with_their_lengths)
{
	uint32_t size = ring_shape(_i).size;
	uint32_t n_total = size < 1024 ? 8 * size : size;
	struct driver_used u;

	start(_i, 0);
	for (uint32_t done = 0; done < n_total;) {
		uint16_t first = vq.last_avail;

		offer(size);
		for (unsigned n; (n = virtq_pop(&vq, 64)) > 0;)
			for (unsigned k = 0; k < n; k++) {
				const struct virtq_chain *c = virtq_chain_at(&vq, vq.used_idx);

				expect_eq(c->n_iov, 1);
				expect_eq(c->len, BUFFER_LEN);
				expect_eq(ring_gpa_of(&guest, c->iov->iov_base),
					  guest.guest.regions[3].gpa);
				virtq_complete(&vq, (uint16_t)(vq.used_idx - first) + 7u);
			}
		expect_eq(virtq_publish(&vq), size);
		for (uint32_t i = 0; i < size; i++, done++) {
			expect(driver_take(&ring.drv, &u));
			expect_eq(u.len, i + 7);
		}
	}
	expect_eq(vq.used_idx, (uint16_t)(ring_first(&ring) + n_total));
	expect(!vq.is_broken);
}
END_TEST

START_TEST(pop_takes_what_is_there_and_no_more_than_asked)
{
	start(_i, 0);
	expect_eq(virtq_pop(&vq, 64), 0);
	offer(2);
	expect_eq(virtq_n_avail(&vq), 2);
	expect_eq(virtq_pop(&vq, 1), 1);
	expect_eq(virtq_n_avail(&vq), 1);
	expect_eq(virtq_n_in_flight(&vq), 1);
	expect_eq(virtq_pop(&vq, 64), 1);
	expect_eq(virtq_pop(&vq, 64), 0);
	expect_eq(virtq_n_in_flight(&vq), 2);
}
END_TEST

START_TEST(completions_are_invisible_until_published_all_at_once)
{
	start(_i, 0);
	offer(2);
	complete(1);
	complete(1);
	expect_eq(virtq_n_unpublished(&vq), 2);
	expect_eq(driver_n_used(&ring.drv), 0);
	expect_eq(virtq_publish(&vq), 2);
	expect_eq(driver_n_used(&ring.drv), 2);
	expect_eq(virtq_publish(&vq), 0);
	take(2);
}
END_TEST

START_TEST(unpop_hands_back_the_newest_heads_and_their_room)
{
	uint32_t room;

	start(_i, 0);
	offer(2);
	expect_eq(virtq_pop(&vq, 1), 1);
	room = vq.iov_n_used;
	expect_eq(virtq_pop(&vq, 1), 1);
	virtq_unpop(&vq, (uint16_t)(vq.used_idx + 1));
	expect_eq(vq.iov_n_used, room);
	expect_eq(virtq_n_in_flight(&vq), 1);
	expect_eq(virtq_n_avail(&vq), 1);
	virtq_unpop(&vq, vq.last_avail);
	expect_eq(virtq_n_in_flight(&vq), 1);
	virtq_unpop(&vq, vq.used_idx);
	expect_eq(vq.iov_n_used, 0);
	expect_eq(virtq_n_avail(&vq), 2);
	complete(2);
	virtq_publish(&vq);
	take(2);
}
END_TEST

/* ---- rings that are wrong ---- */

static void expect_broken(void)
{
	expect(vq.is_broken);
	expect(vq.broken_why);
	expect(!virtq_is_live(&vq));
	/* For good: whatever the guest repairs, only a new start counts. */
	if (!ring.drv.is_packed)
		ring.drv.avail->idx = htole16(vq.avail_idx);
	expect_eq(virtq_pop(&vq, 64), 0);
	expect(vq.is_broken);
}

START_TEST(avail_index_that_jumps_breaks_the_queue)
{
	/* To one too many, much too far, and behind what was used already. */
	uint32_t size = ring_shape(_i).size;
	const uint32_t jumps[] = {size + 1, size + 1000, size + 32767, 65535};

	start(_i, 0);
	for (unsigned i = 0; i < array_size(jumps); i++) {
		pass(1);
		ring.drv.avail->idx = htole16((uint16_t)(vq.used_idx + jumps[i]));
		expect_eq(virtq_n_avail(&vq), 0);
		expect_broken();
		ring.drv.avail->idx = htole16(ring.drv.avail_idx);
		restart();
	}
}
END_TEST

START_TEST(avail_index_that_takes_back_what_was_offered_breaks_the_queue)
{
	start(_i, 0);
	offer(2);
	expect_eq(virtq_n_avail(&vq), 2);
	ring.drv.avail->idx = htole16((uint16_t)(ring.drv.avail_idx - 1));
	expect_eq(virtq_n_avail(&vq), 0);
	expect_broken();
}
END_TEST

START_TEST(all_of_the_ring_may_be_offered_while_nothing_is_back)
{
	start(_i, 0);
	pass(1);
	offer(ring.shape.size);
	expect_eq(virtq_n_avail(&vq), ring.shape.size);
	expect(!vq.is_broken);
	/* Completed and not published: the guest cannot know, but one more would be a lie. */
	complete(1);
	ring.drv.avail->idx = htole16((uint16_t)(ring.drv.avail_idx + 2));
	expect_eq(virtq_n_avail(&vq), 0);
	expect_broken();
}
END_TEST

START_TEST(wrong_head_breaks_the_ring_behind_the_good_ones)
{
	start(_i, 0);
	for (unsigned i = 0; i < 5; i++) {
		offer(1);
		driver_ruin(&ring.drv);
		expect_ge(virtq_n_avail(&vq), 1);
		expect_eq(virtq_pop(&vq, 64), 1);
		expect(vq.is_broken);
		virtq_complete(&vq, 0);
		virtq_publish(&vq);
		take(1);
		expect_broken();
		driver_mend(&ring.drv);
		restart();
	}
}
END_TEST

START_TEST(head_beyond_the_ring_is_wrong)
{
	uint16_t size = (uint16_t)ring_shape(_i).size;
	const uint16_t heads[] = {size, (uint16_t)(size + 1), 65535};

	start(_i, 0);
	for (unsigned i = 0; i < array_size(heads); i++) {
		offer(1);
		driver_add_raw(&ring.drv, heads[i]);
		driver_publish(&ring.drv);
		expect_eq(virtq_pop(&vq, 64), 1);
		expect(vq.is_broken);
		virtq_complete(&vq, 0);
		virtq_publish(&vq);
		take(1);
		expect_broken();
		/* The driver forgets the head that was none. */
		ring.drv.avail_idx--;
		driver_publish(&ring.drv);
		restart();
	}
}
END_TEST

START_TEST(a_new_start_repairs_a_broken_queue)
{
	start(_i, 0);
	pass(1);
	driver_ruin(&ring.drv);
	expect_eq(virtq_pop(&vq, 1), 0);
	expect_broken();
	expect_eq(virtq_stop(&vq), driver_base(&ring.drv));
	driver_mend(&ring.drv);
	restart();
	expect(virtq_is_live(&vq));
	pass(2);
}
END_TEST

/* The guest writes the indices: what they say at a start is its fault, not the frontend's. */
START_TEST(indices_that_cannot_be_at_the_start_break_the_queue_then)
{
	start(_i, 0);
	virtq_stop(&vq);
	ring.drv.avail->idx = htole16((uint16_t)(ring.shape.base + ring.shape.size + 1));
	restart();
	expect_eq(virtq_n_avail(&vq), 0);
	expect_broken();
}
END_TEST

/* ---- start and stop ---- */

/* The frontend says in vain where the ring was when it was made. */
START_TEST(a_stopped_ring_goes_on_where_it_was)
{
	start(_i, 0);
	expect_eq(vq.used_idx, ring_first(&ring));
	expect_eq(virtq_base(&vq), ring.drv.first_base);
	expect_eq(virtq_is_at_start(&vq), vq.used_idx == 0);
	pass(2);
	expect_eq(virtq_stop(&vq), driver_base(&ring.drv));
	expect_eq(virtq_stop(&vq), driver_base(&ring.drv));
	restart();
	expect_eq(vq.used_idx, (uint16_t)(ring_first(&ring) + 2));
	expect_eq(virtq_base(&vq), driver_base(&ring.drv));
	pass(2);
}
END_TEST

START_TEST(stop_publishes_what_is_complete_and_forgets_what_is_in_flight)
{
	uint16_t second;

	start(_i, 0);
	offer(2);
	second = ring.drv.heads[(ring.drv.avail_idx - 1) & ring.drv.mask];
	expect_eq(virtq_pop(&vq, 2), 2);
	virtq_complete(&vq, 0);
	expect_eq(virtq_stop(&vq), driver_base(&ring.drv));
	expect(!virtq_is_live(&vq));
	take(1);
	restart();
	expect_eq(virtq_pop(&vq, 64), 1);
	expect_eq(virtq_chain_at(&vq, vq.used_idx)->head, second);
	virtq_complete(&vq, 0);
	virtq_publish(&vq);
	take(1);
}
END_TEST

START_TEST(started_again_while_running_it_keeps_its_position)
{
	struct ring_guest other;
	struct virtq_setup s;

	start(_i, 0);
	offer(2);
	expect_eq(virtq_pop(&vq, 2), 2);
	virtq_complete(&vq, 0);
	/* The same memory, mapped elsewhere; the old mapping goes. */
	ring_guest_init(&other, 0);
	s = ring_setup(&ring);
	expect_eq(virtq_start(&vq, &s), 0);
	expect_eq(guest.mem->refs, 2);
	take(1);
	expect_eq(virtq_pop(&vq, 64), 1);
	virtq_complete(&vq, 0);
	virtq_publish(&vq);
	take(1);
	ring_guest_fini(&other);
}
END_TEST

START_TEST(a_started_queue_keeps_its_memory_alive)
{
	struct gmem *mem = guest.mem;

	start(_i, 0);
	expect_eq(mem->refs, 2);
	/* The device has a new table, which nobody uses: the queue's is the last reference. */
	gmem_put(mem);
	pass(2);
	gmem_get(mem);
	virtq_stop(&vq);
	expect_eq(mem->refs, 1);
}
END_TEST

START_TEST(parts_that_are_misaligned_or_not_mapped_are_refused)
{
	struct ring_shape shape = ring_shape(_i);
	struct virtq_setup good;
	static const struct {
		unsigned part;
		uint64_t offset;
		int err;
	} cases[] = {
		{0, 8, -EINVAL},       {1, 1, -EINVAL},	      {2, 2, -EINVAL},
		{0, 1 << 30, -EFAULT}, {1, 1 << 30, -EFAULT}, {2, 1 << 30, -EFAULT},
	};

	ring_init(&ring, &guest, &shape, 0);
	good = ring_setup(&ring);
	virtq_init(&vq, VIRTQ_DEVICE_READS);
	for (unsigned i = 0; i < array_size(cases); i++) {
		struct virtq_setup s = good;
		uva_t *parts[] = {&s.desc, &s.avail, &s.used};

		parts[cases[i].part]->v += cases[i].offset;
		expect_eq(virtq_start(&vq, &s), cases[i].err);
		expect(!virtq_is_live(&vq));
		expect_eq(guest.mem->refs, 1);
	}
	expect_eq(virtq_start(&vq, &good), 0);
}
END_TEST

/* Each part must be mapped to its end; the event words count when they are negotiated. */
START_TEST(parts_must_be_mapped_to_their_end)
{
	struct ring_shape shape = ring_shape(_i);
	uint64_t end = guest_uva(&guest.guest, guest_edge(&guest.guest, 3));
	uint64_t event = shape.has_event_idx ? 2 : 0;
	uint64_t split_lens[] = {16 * shape.size, 4 + 2 * shape.size + event,
				 4 + 8 * shape.size + event};
	uint64_t packed_lens[] = {16 * shape.size, 4, 4};
	const uint64_t *lens = layout_is_packed ? packed_lens : split_lens;
	const uint64_t aligns[] = {16, layout_is_packed ? 4 : 2, 4};

	shape.base = 0;
	ring_init(&ring, &guest, &shape, 0);
	virtq_init(&vq, VIRTQ_DEVICE_READS);
	for (unsigned i = 0; i < 3; i++) {
		struct virtq_setup s = ring_setup(&ring);
		uva_t *parts[] = {&s.desc, &s.avail, &s.used};

		parts[i]->v = (end - lens[i]) / aligns[i] * aligns[i];
		expect_eq(virtq_start(&vq, &s), 0);
		virtq_stop(&vq);
		parts[i]->v += aligns[i];
		expect_eq(virtq_start(&vq, &s), -EFAULT);
	}
}
END_TEST

START_TEST(a_ring_may_lie_across_adjacent_regions)
{
	struct ring_shape shape = ring_shape(_i);
	uint64_t edge[] = {guest_edge(&guest.guest, 0), guest_edge(&guest.guest, 1),
			   guest_edge(&guest.guest, 2)};
	struct virtq_setup s;

	ring_init(&ring, &guest, &shape, 0);
	driver_fini(&ring.drv);
	/* The parts of a packed ring besides the descriptors are too small for that. */
	driver_init_at(&ring.drv, &guest.guest, 0, shape.size, shape.base, ring.features,
		       edge[0] - 16, edge[1] - (layout_is_packed ? 4 : 6), edge[2] - 12);
	s = ring_setup(&ring);
	virtq_init(&vq, VIRTQ_DEVICE_READS);
	expect_eq(virtq_start(&vq, &s), 0);
	for (unsigned i = 0; i < 8; i++)
		pass(shape.size < 8 ? shape.size : 8);
}
END_TEST

/* ---- calls ---- */

/* Whether the used index `event` + 1 is reached on the way from `old` to `new`. */
static bool is_passed(uint16_t event, uint16_t old, uint16_t new)
{
	for (uint16_t i = old; i != new; i++)
		if (i == event)
			return true;
	return false;
}

/* How far ahead of what it has taken the guest may set its event: a packed ring's knows two laps. */
static int max_event(int most)
{
	return layout_is_packed ? (int)min_of((uint32_t)most, ring.shape.size - 1) : most;
}

START_TEST(with_event_idx_a_call_is_needed_iff_used_event_is_passed)
{
	start(_i | RING_SHAPE_EVENT_IDX, 0);
	pass(1);
	for (unsigned i = 0; i < 24; i++) {
		uint16_t old = ring.drv.last_used;
		unsigned n = 1 + i % (ring.shape.size < 5 ? ring.shape.size : 5);

		offer(n);
		complete(n);
		virtq_publish(&vq);
		for (int event = -max_event(3); event <= max_event(8); event++) {
			driver_set_used_event(&ring.drv, (uint16_t)(old + event));
			expect_eq(virtq_call_needed(&vq),
				  is_passed((uint16_t)(old + event), old, (uint16_t)(old + n)));
		}
		virtq_called(&vq);
		expect(!virtq_call_needed(&vq));
		take(n);
	}
}
END_TEST

START_TEST(with_event_idx_one_call_is_always_needed_after_a_start)
{
	start(_i | RING_SHAPE_EVENT_IDX, 0);
	for (unsigned i = 0; i < 2; i++) {
		driver_set_used_event(&ring.drv, (uint16_t)(ring.drv.last_used + max_event(32767)));
		offer(1);
		complete(1);
		virtq_publish(&vq);
		expect(virtq_call_needed(&vq));
		/* Until it has been decided. */
		expect(virtq_call_needed(&vq));
		virtq_called(&vq);
		take(1);
		pass(1);
		expect(!virtq_call_needed(&vq));
		virtq_stop(&vq);
		restart();
	}
}
END_TEST

/* Also over several laps of a small ring. */
START_TEST(a_call_that_is_put_off_counts_all_publishes_since_the_last)
{
	start(_i | RING_SHAPE_EVENT_IDX, 0);
	pass(1);
	driver_set_used_event(&ring.drv, ring.drv.last_used);
	for (unsigned i = 0; i < 11; i++) {
		offer(1);
		complete(1);
		virtq_publish(&vq);
		take(1);
		expect(virtq_call_needed(&vq));
	}
	virtq_called(&vq);
	expect(!virtq_call_needed(&vq));
}
END_TEST

START_TEST(without_event_idx_the_flag_decides)
{
	start(_i & ~RING_SHAPE_EVENT_IDX, 0);
	for (unsigned i = 0; i < 3; i++) {
		offer(1);
		complete(1);
		virtq_publish(&vq);
		driver_calls_off(&ring.drv);
		expect(!virtq_call_needed(&vq));
		driver_calls_on(&ring.drv);
		expect(virtq_call_needed(&vq));
		virtq_called(&vq);
		take(1);
	}
}
END_TEST

START_TEST(notify_on_empty_calls_when_all_is_used_whatever_the_guest_says)
{
	start(_i, BIT_ULL(VIRTIO_F_NOTIFY_ON_EMPTY));
	pass(1);
	driver_calls_off(&ring.drv);
	offer(2);
	complete(1);
	virtq_publish(&vq);
	expect(!virtq_call_needed(&vq));
	complete(1);
	virtq_publish(&vq);
	expect(virtq_call_needed(&vq));
	virtq_called(&vq);
	take(2);
	pass(1);
	/* The guest has offered more in the meantime. */
	offer(1);
	complete(1);
	virtq_publish(&vq);
	take(1);
	offer(1);
	expect(!virtq_call_needed(&vq));
}
END_TEST

/* ---- kicks ---- */

START_TEST(with_kicks_on_the_first_offer_wants_a_kick)
{
	start(_i, 0);
	for (unsigned i = 0; i < 10; i++) {
		expect(!virtq_kicks_on(&vq));
		expect(vq.kicks_are_on);
		expect(offer(1));
		complete(1);
		virtq_publish(&vq);
		take(1);
	}
}
END_TEST

START_TEST(with_kicks_off_no_offer_wants_a_kick)
{
	start(_i, 0);
	expect(!virtq_kicks_on(&vq));
	expect(offer(1));
	virtq_kicks_off(&vq);
	virtq_kicks_off(&vq);
	for (unsigned i = 0; i < 10; i++) {
		complete(1);
		virtq_publish(&vq);
		take(1);
		expect(!offer(1));
	}
}
END_TEST

/* The guest offers while kicks are off, and after the device has looked for the last time. */
START_TEST(kicks_on_tells_of_what_came_since_the_last_look)
{
	start(_i, 0);
	virtq_kicks_on(&vq);
	offer(1);
	virtq_kicks_off(&vq);
	complete(1);
	virtq_publish(&vq);
	take(1);
	expect_eq(virtq_pop(&vq, 64), 0);
	offer(1);
	expect(virtq_kicks_on(&vq));
	expect_eq(virtq_n_avail(&vq), 1);
	expect(!virtq_kicks_on(&vq));
	expect(offer(1));
}
END_TEST

/* What waits unpopped was seen: it needs no second look, and the next offer needs a kick. */
START_TEST(kicks_on_counts_from_what_was_seen_not_from_what_was_popped)
{
	start(_i, 0);
	offer(1);
	expect_eq(virtq_n_avail(&vq), 1);
	expect(!virtq_kicks_on(&vq));
	expect(offer(1));
	expect_eq(virtq_pop(&vq, 64), 2);
}
END_TEST

START_TEST(words_that_are_not_negotiated_are_never_written)
{
	uint16_t *avail_event;

	start(_i, 0);
	avail_event = (uint16_t *)(void *)&ring.drv.used->ring[ring.shape.size];
	*avail_event = 0xabcd;
	pass(2);
	virtq_kicks_off(&vq);
	if (ring.shape.has_event_idx) {
		expect_eq(ring.drv.used->flags, 0);
		virtq_kicks_on(&vq);
		expect_eq(ring.drv.used->flags, 0);
		expect_eq(le16toh(*avail_event), vq.avail_idx);
	} else {
		expect_eq(le16toh(ring.drv.used->flags), VRING_USED_F_NO_NOTIFY);
		virtq_kicks_on(&vq);
		expect_eq(ring.drv.used->flags, 0);
		expect_eq(*avail_event, 0xabcd);
	}
}
END_TEST

static void add_heads(TCase *tc)
{
	add_for_all_shapes(tc, heads_come_in_avail_order_and_go_back_with_their_lengths);
	add_for_small_shapes(tc, pop_takes_what_is_there_and_no_more_than_asked);
	add_for_small_shapes(tc, completions_are_invisible_until_published_all_at_once);
	add_for_small_shapes(tc, unpop_hands_back_the_newest_heads_and_their_room);
	add_for_all_shapes(tc, wrong_head_breaks_the_ring_behind_the_good_ones);
	add_for_small_shapes(tc, a_new_start_repairs_a_broken_queue);
}

static void add_split(TCase *tc)
{
	add_for_all_shapes(tc, avail_index_that_jumps_breaks_the_queue);
	add_for_all_shapes(tc, avail_index_that_takes_back_what_was_offered_breaks_the_queue);
	add_for_all_shapes(tc, all_of_the_ring_may_be_offered_while_nothing_is_back);
	add_for_all_shapes(tc, head_beyond_the_ring_is_wrong);
	add_for_all_shapes(tc, indices_that_cannot_be_at_the_start_break_the_queue_then);
	add_for_all_shapes(tc, words_that_are_not_negotiated_are_never_written);
}

static void add_life(TCase *tc)
{
	add_for_small_shapes(tc, a_stopped_ring_goes_on_where_it_was);
	add_for_small_shapes(tc, stop_publishes_what_is_complete_and_forgets_what_is_in_flight);
	add_for_small_shapes(tc, started_again_while_running_it_keeps_its_position);
	add_for_small_shapes(tc, a_started_queue_keeps_its_memory_alive);
	add_for_all_shapes(tc, parts_that_are_misaligned_or_not_mapped_are_refused);
	add_for_all_shapes(tc, parts_must_be_mapped_to_their_end);
	add_for_all_shapes(tc, a_ring_may_lie_across_adjacent_regions);
}

static void add_signals(TCase *tc)
{
	add_for_all_shapes(tc, with_event_idx_a_call_is_needed_iff_used_event_is_passed);
	add_for_small_shapes(tc, with_event_idx_one_call_is_always_needed_after_a_start);
	add_for_small_shapes(tc, a_call_that_is_put_off_counts_all_publishes_since_the_last);
	add_for_small_shapes(tc, without_event_idx_the_flag_decides);
	add_for_small_shapes(tc, notify_on_empty_calls_when_all_is_used_whatever_the_guest_says);
	add_for_small_shapes(tc, with_kicks_on_the_first_offer_wants_a_kick);
	add_for_all_shapes(tc, with_kicks_off_no_offer_wants_a_kick);
	add_for_small_shapes(tc, kicks_on_tells_of_what_came_since_the_last_look);
	add_for_small_shapes(tc, kicks_on_counts_from_what_was_seen_not_from_what_was_popped);
}

int main(void)
{
	static const struct suite_ring_case cases[] = {
		{{"heads", setup, teardown, add_heads}, LAYOUT_BOTH},
		{{"indices", setup, teardown, add_split}, LAYOUT_SPLIT},
		{{"start and stop", setup, teardown, add_life}, LAYOUT_BOTH},
		{{"calls and kicks", setup, teardown, add_signals}, LAYOUT_BOTH},
	};

	return suite_run_rings("virtq", cases, array_size(cases));
}
