/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptor chains of every legal shape carry their bytes, wherever they lie in guest memory, and
 * frames that do not fit are dropped whole. Split ring.
 */
#include <endian.h>
#include <string.h>

#include "support/system.h"

#define FRAME_LEN   200u
#define MAX_MEMBERS 256

static struct nic_frame frame;
static uint32_t next_seq;

static void start(const struct nic_options *options)
{
	system_start("--port=loopback");
	system_connect(options);
}

/* Take the next used element of the transmit ring: length 0. */
static void expect_sent_back(void)
{
	struct driver_used u;

	driver_wait(nic_tx(&nic, 0), &u, WAIT_LONG_MS);
	expect_eq(u.len, 0);
}

/* ---- legal chains ---- */

/* Where a chain's bytes are cut into members; 0 ends the list, the rest is one member. */
struct cut {
	const char *name;
	uint32_t lens[16];
};

static const struct cut cuts[] = {
	{"all in one", {0}},
	{"header apart", {12}},
	{"header in two", {5, 7}},
	{"header byte by byte", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	{"header and some data, data", {20, 40}},
	{"a piece of header, the rest with data", {3}},
	{"header, Ethernet header, rest in three", {12, 14, 1, 100}},
	{"data byte by byte at first", {12, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	{"header with one byte of data", {13, 1, 1}},
};
#define N_CUTS (sizeof(cuts) / sizeof(cuts[0]))

/* Cut `len` bytes into members at fresh odd addresses, far apart. Return: how many. */
static unsigned make_members(struct driver_seg *segs, const struct cut *cut, uint32_t len,
			     bool is_writable)
{
	unsigned n = 0;

	for (unsigned i = 0; len > 0; i++) {
		uint32_t want = i < 16 && cut->lens[i] ? cut->lens[i] : len;
		uint32_t n_bytes = want < len ? want : len;

		segs[n++] = (struct driver_seg){
			.gpa = guest_alloc_odd(&nic.guest, n_bytes),
			.len = n_bytes,
			.is_writable = is_writable,
		};
		len -= n_bytes;
	}
	return n;
}

/* Write header (zeros) and frame `seq` into the members. */
static void fill_members(const struct driver_seg *segs, unsigned n, uint32_t len, uint32_t seq)
{
	static char bytes[12 + NIC_MAX_FRAME];
	uint32_t at = 0;

	memset(bytes, 0, nic.hdr_len);
	nic_make_frame(bytes + nic.hdr_len, len, seq);
	for (unsigned i = 0; i < n && at < nic.hdr_len + len; i++) {
		memcpy(guest_at(&nic.guest, segs[i].gpa), bytes + at, segs[i].len);
		at += segs[i].len;
	}
}

static void add_chain(struct driver_ring *r, const struct driver_seg *segs, unsigned n,
		      bool is_indirect)
{
	/* Indirect tables may have any alignment. */
	if (is_indirect)
		driver_add_indirect(r, segs, n, 0, guest_alloc_odd(&nic.guest, 16 * n));
	else
		driver_add(r, segs, n, 0);
}

/* Send a frame in these members and receive it in ordinary buffers. */
static void send_members(const struct driver_seg *segs, unsigned n, bool is_indirect)
{
	uint32_t seq = next_seq++;

	fill_members(segs, n, FRAME_LEN, seq);
	add_chain(nic_tx(&nic, 0), segs, n, is_indirect);
	driver_kick(nic_tx(&nic, 0));
	nic_recv(&nic, 0, &frame, WAIT_LONG_MS);
	nic_check_frame(&frame, FRAME_LEN, seq);
	expect_sent_back();
}

START_TEST(sent_frames_may_be_cut_anywhere)
{
	struct driver_seg segs[MAX_MEMBERS];

	start(&(struct nic_options){.base = 65520});
	nic_post(&nic, 0, 32, 2048);
	for (unsigned i = 0; i < N_CUTS; i++) {
		unsigned n = make_members(segs, &cuts[i], nic.hdr_len + FRAME_LEN, false);

		send_members(segs, n, false);
		send_members(segs, n, true);
	}
}
END_TEST

START_TEST(receive_buffers_may_be_cut_anywhere)
{
	bool is_mergeable = _i % 2;
	struct driver_seg segs[MAX_MEMBERS];
	char data[12 + FRAME_LEN], sent[FRAME_LEN];
	struct driver_used u;

	start(&(struct nic_options){.features = is_mergeable ? NIC_FEATURES
							     : NIC_FEATURES & ~NIC_BIT(15)});
	for (unsigned i = 0; i < 2 * N_CUTS; i++) {
		struct driver_ring *r = nic_rx(&nic, 0);
		unsigned n = make_members(segs, &cuts[i / 2], nic.hdr_len + 1526, true);
		uint32_t seq = next_seq++;

		add_chain(r, segs, n, i % 2);
		driver_kick(r);
		nic_make_frame(sent, FRAME_LEN, seq);
		nic_send(&nic, 0, sent, FRAME_LEN);
		driver_wait(r, &u, WAIT_LONG_MS);
		expect_eq(u.len, nic.hdr_len + FRAME_LEN);
		expect_eq(driver_read(r, &u, data, sizeof(data)), nic.hdr_len + FRAME_LEN);
		expect(memcmp(data + nic.hdr_len, sent, FRAME_LEN) == 0);
		/* num_buffers is 1, the rest of the header 0. */
		expect(memcmp(data, "\0\0\0\0\0\0\0\0\0\0\1", 12) == 0);
	}
}
END_TEST

START_TEST(empty_members_are_skipped)
{
	struct driver_seg segs[MAX_MEMBERS], cut[MAX_MEMBERS];

	start(NULL);
	nic_post(&nic, 0, 32, 2048);
	for (unsigned i = 0; i < N_CUTS; i++) {
		unsigned n = make_members(cut, &cuts[i], nic.hdr_len + FRAME_LEN, false);

		for (unsigned k = 0; k <= 2 * n; k++)
			segs[k] = k % 2 ? cut[k / 2] : (struct driver_seg){.gpa = cut[0].gpa};
		send_members(segs, 2 * n + 1, false);
		send_members(segs, 2 * n + 1, true);
	}
}
END_TEST

/* Cut the frame into exactly `n` members. */
static void make_exactly(struct driver_seg *segs, unsigned n, uint32_t total)
{
	uint64_t at = guest_alloc_odd(&nic.guest, total);

	for (unsigned i = 0; i < n; i++) {
		uint32_t len = i + 1 < n ? (total - 1) / n : total - (n - 1) * ((total - 1) / n);

		segs[i] = (struct driver_seg){.gpa = at, .len = len};
		at += len;
	}
}

START_TEST(chain_may_have_as_many_members_as_the_ring)
{
	const uint32_t sizes[] = {2, 8, 64, 128};
	struct driver_seg segs[MAX_MEMBERS];

	start(&(struct nic_options){.size = sizes[_i]});
	nic_post(&nic, 0, 2, 2048);
	for (int i = 0; i < 5; i++) {
		make_exactly(segs, sizes[_i], nic.hdr_len + FRAME_LEN);
		send_members(segs, sizes[_i], false);
		send_members(segs, sizes[_i], true);
	}
}
END_TEST

START_TEST(direct_chain_may_end_in_an_indirect_table)
{
	struct driver_ring *r = nic_tx(&nic, 0);
	struct driver_seg segs[3] = {0};
	uint64_t table;
	struct vring_desc *d;
	uint16_t head, last;
	uint32_t seq = 5;

	start(NULL);
	nic_post(&nic, 0, 8, 2048);
	table = guest_alloc(&nic.guest, 16, 16);
	make_exactly(segs, 3, nic.hdr_len + FRAME_LEN);
	fill_members(segs, 3, FRAME_LEN, seq);
	head = driver_add(r, segs, 3, 0);
	/* virtio 1.2, 2.7.5.3.2: INDIRECT comes after the last direct NEXT. */
	last = le16toh(r->desc[le16toh(r->desc[head].next)].next);
	d = guest_at(&nic.guest, table);
	*d = r->desc[last];
	r->desc[last] = (struct vring_desc){.addr = htole64(table),
					    .len = htole32(16),
					    .flags = htole16(VRING_DESC_F_INDIRECT)};
	driver_kick(r);
	nic_recv(&nic, 0, &frame, WAIT_LONG_MS);
	nic_check_frame(&frame, FRAME_LEN, seq);
}
END_TEST

START_TEST(frames_up_to_the_largest_are_carried_whole)
{
	const uint32_t lens[] = {18, 60, 1514, 4096, 65535, NIC_MAX_FRAME};

	start(&(struct nic_options){.tx_buf_len = 66000,
				    .layout = &(struct guest_layout){.region_size = 64 << 20}});
	nic_post(&nic, 0, 256, 1024);
	for (unsigned round = 0; round < 4; round++)
		for (unsigned i = 0; i < 6; i++)
			nic_ping(&nic, 0, lens[i], i);
}
END_TEST

/* ---- across regions ---- */

static const struct guest_layout two_regions = {.n_regions = 2, .region_size = 1 << 20};

START_TEST(buffers_cross_from_one_region_to_the_next)
{
	uint64_t edge;

	start(&(struct nic_options){.layout = &two_regions});
	nic_post(&nic, 0, 32, 2048);
	edge = guest_edge(&nic.guest, 0);
	/* The edge lies in the header, between it and the data, in the data, at the ends. */
	for (uint32_t before = 0; before <= nic.hdr_len + FRAME_LEN; before++) {
		struct driver_seg seg = {.gpa = edge - before, .len = nic.hdr_len + FRAME_LEN};

		send_members(&seg, 1, before % 2);
	}
}
END_TEST

START_TEST(receive_buffers_cross_from_one_region_to_the_next)
{
	char data[12 + FRAME_LEN], sent[FRAME_LEN];
	struct driver_used u;
	uint64_t edge;

	start(&(struct nic_options){.layout = &two_regions});
	edge = guest_edge(&nic.guest, 0);
	for (uint32_t before = 0; before <= nic.hdr_len + FRAME_LEN; before += 7) {
		struct driver_seg seg = {.gpa = edge - before, .len = 2048, .is_writable = true};
		uint32_t seq = next_seq++;

		memset(guest_at(&nic.guest, edge - 4096), 0, 8192);
		driver_add(nic_rx(&nic, 0), &seg, 1, 0);
		driver_kick(nic_rx(&nic, 0));
		nic_make_frame(sent, FRAME_LEN, seq);
		nic_send(&nic, 0, sent, FRAME_LEN);
		driver_wait(nic_rx(&nic, 0), &u, WAIT_LONG_MS);
		driver_read(nic_rx(&nic, 0), &u, data, sizeof(data));
		expect(memcmp(data + nic.hdr_len, sent, FRAME_LEN) == 0);
	}
}
END_TEST

START_TEST(indirect_tables_cross_from_one_region_to_the_next)
{
	struct driver_seg segs[4];
	uint64_t edge;

	start(&(struct nic_options){.layout = &two_regions});
	nic_post(&nic, 0, 32, 2048);
	edge = guest_edge(&nic.guest, 0);
	for (uint32_t before = 1; before < 64; before++) {
		uint32_t seq = next_seq++;

		make_exactly(segs, 4, nic.hdr_len + FRAME_LEN);
		fill_members(segs, 4, FRAME_LEN, seq);
		driver_add_indirect(nic_tx(&nic, 0), segs, 4, 0, edge - before);
		driver_kick(nic_tx(&nic, 0));
		nic_recv(&nic, 0, &frame, WAIT_LONG_MS);
		nic_check_frame(&frame, FRAME_LEN, seq);
		expect_sent_back();
	}
}
END_TEST

START_TEST(rings_cross_from_one_region_to_the_next)
{
	struct driver_ring *r = nic_tx(&nic, 0);
	uint64_t edge, spare, parts[3];

	start(&(struct nic_options){
		.layout = &two_regions, .is_left_stopped = true, .size = 64, .base = 65500});
	edge = guest_edge(&nic.guest, 0);
	for (unsigned i = 0; i < 2; i++)
		driver_fini(&nic.rings[i]);
	spare = guest_alloc(&nic.guest, 4096, 4096);
	for (unsigned i = 0; i < 3; i++)
		parts[i] = (unsigned)_i == i ? edge - (i == 0 ? 16 * 7 : 4 * 9) : spare + 1280 * i;
	driver_init(nic_rx(&nic, 0), &nic.guest, 0, 64, 0, nic.features);
	driver_init_at(r, &nic.guest, 1, 64, 65500, nic.features, parts[0], parts[1], parts[2]);
	for (unsigned i = 0; i < 2; i++) {
		driver_send_setup(&nic.rings[i], &nic.fe);
		frontend_set_vring_enable(&nic.fe, i, true);
	}
	frontend_sync(&nic.fe);
	nic_post(&nic, 0, 32, 2048);
	for (uint32_t i = 0; i < 200; i++)
		nic_ping(&nic, 0, FRAME_LEN, i);
}
END_TEST

static const struct guest_layout holed = {.n_regions = 2, .region_size = 1 << 20, .hole = 1 << 20};

START_TEST(ring_that_reaches_into_a_hole_is_refused)
{
	struct driver_ring *r = nic_tx(&nic, 0);
	struct vhost_user_vring_addr addr = {.index = 1};
	uint64_t value = 1, acks, edge;
	uint64_t *parts[] = {&addr.desc_uva, &addr.avail_uva, &addr.used_uva};

	start(&(struct nic_options){.layout = &holed, .is_left_stopped = true, .wants_acks = true});
	edge = guest_edge(&nic.guest, 0);
	addr.desc_uva = guest_uva(&nic.guest, r->desc_gpa);
	addr.avail_uva = guest_uva(&nic.guest, r->avail_gpa);
	addr.used_uva = guest_uva(&nic.guest, r->used_gpa);
	*parts[_i] = guest_uva(&nic.guest, edge - 64);
	acks = frontend_ack(&nic.fe, VHOST_USER_SET_VRING_ADDR, &addr, sizeof(addr), NULL, 0);
	acks |= frontend_ack(&nic.fe, VHOST_USER_SET_VRING_KICK, &value, 8, &r->kick_fd, 1);
	expect_ne(acks, 0);
	system_check_service();
}
END_TEST

/* ---- sizes ---- */

START_TEST(rings_of_any_size_carry_frames)
{
	static const uint32_t sizes[2][4] = {{2, 64, 1024, 32768}, {1, 3, 257, 32768}};
	uint32_t size = sizes[layout_is_packed][_i], n = size < 100 ? 100 : size + size / 2;
	uint32_t n_ahead = size < 50 ? size : 50;
	char data[FRAME_LEN];

	start(&(struct nic_options){.size = size,
				    .base = 65530,
				    .layout = &(struct guest_layout){.region_size = 64 << 20}});
	nic_post(&nic, 0, n_ahead, 1024);
	for (uint32_t i = 0; i < n; i += n_ahead) {
		nic_reap(&nic, 0);
		for (uint32_t k = i; k < i + n_ahead; k++) {
			nic_make_frame(data, sizeof(data), k);
			nic_queue(&nic, 0, NULL, data, sizeof(data));
		}
		driver_kick(nic_tx(&nic, 0));
		for (uint32_t k = i; k < i + n_ahead; k++) {
			nic_recv(&nic, 0, &frame, WAIT_LONG_MS);
			nic_check_frame(&frame, FRAME_LEN, k);
		}
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	}
}
END_TEST

/* ---- frames that do not fit ---- */

START_TEST(frame_that_no_buffer_holds_is_dropped_whole)
{
	static char data[1500];
	bool is_mergeable = _i;

	start(&(struct nic_options){
		.size = 4, .features = is_mergeable ? NIC_FEATURES : NIC_BIT(VIRTIO_F_VERSION_1)});
	/* The whole ring holds less than the frame, or no single buffer does. */
	nic_post(&nic, 0, 4, is_mergeable ? 300 : 1024);
	nic_make_frame(data, sizeof(data), 1);
	nic_send(&nic, 0, data, sizeof(data));
	wait_until(daemon_counter(dut, 0, "rx_oversize") == 1, WAIT_LONG_MS);
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 1);
	/* Nothing blocks the queue, and nothing was cut. */
	nic_expect_nothing(&nic, 0);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	nic_ping(&nic, 0, FRAME_LEN, 2);
}
END_TEST

static void add_rings(TCase *tc)
{
	tcase_add_test(tc, sent_frames_may_be_cut_anywhere);
	tcase_add_loop_test(tc, receive_buffers_may_be_cut_anywhere, 0, 2);
	tcase_add_test(tc, empty_members_are_skipped);
	tcase_add_loop_test(tc, chain_may_have_as_many_members_as_the_ring, 0, 4);
	tcase_add_test(tc, frames_up_to_the_largest_are_carried_whole);
	tcase_add_test(tc, buffers_cross_from_one_region_to_the_next);
	tcase_add_test(tc, receive_buffers_cross_from_one_region_to_the_next);
	tcase_add_test(tc, indirect_tables_cross_from_one_region_to_the_next);
	tcase_add_loop_test(tc, rings_cross_from_one_region_to_the_next, 0, 3);
	tcase_add_loop_test(tc, ring_that_reaches_into_a_hole_is_refused, 0, 1);
	tcase_add_loop_test(tc, frame_that_no_buffer_holds_is_dropped_whole, 0, 2);
	tcase_add_loop_test(tc, rings_of_any_size_carry_frames, 0, 4);
}

static void add_split(TCase *tc)
{
	tcase_add_test(tc, direct_chain_may_end_in_an_indirect_table);
	tcase_add_loop_test(tc, ring_that_reaches_into_a_hole_is_refused, 1, 3);
}

int main(void)
{
	return system_main_rings("descriptors", add_rings, add_split);
}
