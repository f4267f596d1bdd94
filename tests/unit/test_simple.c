/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The batch path of pop against a plain judgement of each descriptor, for descriptors of all kinds in
 * one ring: heads in a row and scattered, and every one of them wrong in some way, or none.
 */
#include "virtq/simple.h"

#include <check.h>
#include <linux/virtio_config.h>
#include <stdlib.h>

#include "support/ring.h"
#include "support/suite.h"
#include "virtq/virtq.h"

#define HOLE   (1ULL << 20)
#define SIZE   256
#define ROUNDS 300

static struct ring_guest guest;
static struct ring ring;
static struct virtq vq;

static void setup(void)
{
	static const struct ring_shape shape = {.size = SIZE, .base = 65530};
	struct virtq_setup s;

	ring_guest_init(&guest, HOLE);
	ring_init(&ring, &guest, &shape, 0);
	s = ring_setup(&ring);
	virtq_init(&vq, VIRTQ_DEVICE_WRITES);
	vq.used_idx = shape.base;
	expect_eq(virtq_start(&vq, &s), 0);
}

static void teardown(void)
{
	virtq_stop(&vq);
	ring_fini(&ring);
	ring_guest_fini(&guest);
}

/* ---- descriptors ---- */

struct sample {
	uint64_t addr;
	uint32_t len;
	uint16_t flags;
};

/* Return: one that is right, or wrong in one of the ways that there are. */
static struct sample make_sample(unsigned kind)
{
	const struct vhost_user_region *r = &guest.guest.regions[(unsigned)random() % 4];
	struct sample s = {.addr = r->gpa + (uint64_t)random() % (r->size - 8192),
			   .len = 1 + (uint32_t)random() % 4096,
			   .flags = VRING_DESC_F_WRITE};

	switch (kind) {
	case 0:
		s.len = 0;
		break;
	case 1:
		s.flags = 0;
		break;
	case 2:
		s.addr = r->gpa + r->size - s.len + 1;
		break; /* one byte beyond */
	case 3:
		s.addr = r->gpa + r->size;
		break; /* in the hole */
	case 4:
		s.addr = r->gpa - 1;
		break; /* before it */
	case 5:
		s.addr = UINT64_MAX - (uint64_t)random() % 64;
		break;
	case 6:
		s.len = UINT32_MAX;
		break;
	case 7:
		s.addr ^= 1ULL << 63;
		break;
	case 8:
		s.addr = r->gpa + r->size - s.len;
		break; /* the last bytes: right */
	case 9:
		s.flags |= VRING_DESC_F_INDIRECT;
		break;
	case 10:
		s.addr = r->gpa, s.len = (uint32_t)r->size;
		break; /* a whole region: right */
	default:
		break;
	}
	return s;
}

static bool is_right(const struct sample *s)
{
	if (s->flags != VRING_DESC_F_WRITE || s->len == 0)
		return false;
	for (unsigned i = 0; i < guest.guest.n_regions; i++) {
		const struct vhost_user_region *r = &guest.guest.regions[i];

		if (s->addr >= r->gpa && s->addr - r->gpa < r->size)
			return s->len <= r->size - (s->addr - r->gpa);
	}
	return false;
}

/* ---- the test ---- */

static void expect_chain(uint16_t pos, uint16_t head, const struct sample *s)
{
	const struct virtq_chain *c = virtq_chain_at(&vq, pos);

	expect_eq(c->head, head);
	expect_eq(c->mark, 0);
	if (!is_right(s)) {
		expect_eq(c->n_iov, 0);
		return;
	}
	expect_eq(c->n_iov, 1);
	expect_eq(c->n_descs, 1);
	expect_eq(c->n_readable, 0);
	expect_eq(c->len, s->len);
	expect_eq(c->iov->iov_len, s->len);
	expect_eq(ring_gpa_of(&guest, c->iov->iov_base), s->addr);
}

static void pop_and_compare(unsigned n, unsigned stride, unsigned one_in)
{
	struct sample samples[SIZE];
	uint16_t heads[SIZE], first = vq.last_avail;

	for (unsigned i = 0; i < n; i++) {
		bool is_odd = one_in > 0 && (unsigned)random() % one_in == 0;

		samples[i] = make_sample(is_odd ? (unsigned)random() % 11 : 100);
		heads[i] = (uint16_t)((first + i * stride) % SIZE);
		ring_write_desc(&ring, heads[i], samples[i].addr, samples[i].len, samples[i].flags,
				0);
		driver_add_raw(&ring.drv, heads[i]);
	}
	driver_publish(&ring.drv);
	for (unsigned done = 0; done < n;)
		done += virtq_pop(&vq, n - done);
	for (unsigned i = 0; i < n; i++) {
		expect_chain((uint16_t)(first + i), heads[i], &samples[i]);
		virtq_complete(&vq, 0);
	}
	virtq_publish(&vq);
}

START_TEST(batches_are_judged_as_single_ones_are)
{
	static const unsigned strides[] = {1, 37}, one_in[] = {0, 1, 4, 16};

	srandom(1 + (unsigned)_i);
	for (unsigned i = 0; i < ROUNDS; i++)
		pop_and_compare(1 + (unsigned)random() % 64, strides[_i % 2], one_in[_i / 2]);
	expect(!vq.is_broken);
}
END_TEST

START_TEST(a_head_beyond_the_ring_amid_a_batch_breaks_it_after_those_before)
{
	for (unsigned i = 0; i < 8; i++) {
		struct sample s = make_sample(100);

		ring_write_desc(&ring, (uint16_t)i, s.addr, s.len, s.flags, 0);
		driver_add_raw(&ring.drv, i == 5 ? SIZE : (uint16_t)i);
	}
	driver_publish(&ring.drv);
	expect_eq(virtq_pop(&vq, 8), 5);
	expect(vq.is_broken);
}
END_TEST

static void add_all(TCase *tc)
{
	tcase_add_loop_test(tc, batches_are_judged_as_single_ones_are, 0, 8);
	tcase_add_test(tc, a_head_beyond_the_ring_amid_a_batch_breaks_it_after_those_before);
}

int main(void)
{
	static const struct suite_case cases[] = {{"simple", setup, teardown, add_all}};

	return suite_run("simple", cases, array_size(cases));
}
