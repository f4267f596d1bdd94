/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptor chains of every illegal shape come back once with length 0, are counted, and disturb
 * nobody; headers that ask for what is not negotiated change nothing.
 */
#include <endian.h>
#include <string.h>

#include "support/system.h"

#define FRAME_LEN 200u

static const struct guest_layout holed = {.n_regions = 2, .region_size = 1 << 20, .hole = 1 << 20};
static struct nic_frame frame;

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

/* ---- illegal chains ---- */

struct bad_chain {
	const char *name;
	/* Spoil a good chain of three direct members. @d: the table; @h: the members' places. A packed
	 * ring's members are put into its slots afterwards. */
	void (*spoil)(struct vring_desc *d, const uint16_t *h);
};

static void set_next(struct vring_desc *d, uint16_t from, uint16_t to)
{
	d[from].next = htole16(to);
	d[from].flags |= htole16(VRING_DESC_F_NEXT);
}

static void loop_to_itself(struct vring_desc *d, const uint16_t *h)
{
	set_next(d, h[0], h[0]);
}

static void loop_from_the_end(struct vring_desc *d, const uint16_t *h)
{
	set_next(d, h[2], h[0]);
}

static void next_is_outside(struct vring_desc *d, const uint16_t *h)
{
	set_next(d, h[1], 256);
}

static void next_is_far_outside(struct vring_desc *d, const uint16_t *h)
{
	set_next(d, h[1], 0xffff);
}

static void address_is_nowhere(struct vring_desc *d, const uint16_t *h)
{
	d[h[1]].addr = htole64(0x123);
}

static void address_wraps(struct vring_desc *d, const uint16_t *h)
{
	d[h[1]].addr = htole64(~0ULL - 8);
}

static void end_is_outside(struct vring_desc *d, const uint16_t *h)
{
	d[h[2]].addr = htole64(guest_edge(&nic.guest, nic.guest.n_regions - 1) - 8);
}

static void end_is_in_a_hole(struct vring_desc *d, const uint16_t *h)
{
	d[h[2]].addr = htole64(guest_edge(&nic.guest, 0) - 8);
}

static void member_is_writable(struct vring_desc *d, const uint16_t *h)
{
	d[h[1]].flags |= htole16(VRING_DESC_F_WRITE);
}

static void all_is_writable(struct vring_desc *d, const uint16_t *h)
{
	for (unsigned i = 0; i < 3; i++)
		d[h[i]].flags |= htole16(VRING_DESC_F_WRITE);
}

static void lengths_overflow(struct vring_desc *d, const uint16_t *h)
{
	for (unsigned i = 0; i < 3; i++)
		d[h[i]].len = htole32(0xfffffff0);
}

static void frame_is_too_long(struct vring_desc *d, const uint16_t *h)
{
	d[h[2]].addr = htole64(nic.guest.regions[0].gpa);
	d[h[2]].len = htole32(NIC_MAX_FRAME + 1);
}

static void nothing_but_header(struct vring_desc *d, const uint16_t *h)
{
	d[h[0]].flags &= (uint16_t)~htole16(VRING_DESC_F_NEXT);
	d[h[0]].len = htole32(12);
}

static void shorter_than_header(struct vring_desc *d, const uint16_t *h)
{
	d[h[0]].flags &= (uint16_t)~htole16(VRING_DESC_F_NEXT);
	d[h[0]].len = htole32(11);
}

static void no_byte_at_all(struct vring_desc *d, const uint16_t *h)
{
	for (unsigned i = 0; i < 3; i++)
		d[h[i]].len = 0;
}

static void shorter_than_ethernet(struct vring_desc *d, const uint16_t *h)
{
	d[h[0]].flags &= (uint16_t)~htole16(VRING_DESC_F_NEXT);
	d[h[0]].len = htole32(12 + 13);
}

static char *entry_of(const struct vring_desc *d, const uint16_t *h, unsigned i)
{
	return (char *)guest_at(&nic.guest, le64toh(d[h[0]].addr)) + 16 * i;
}

static void set_inner_desc(const struct vring_desc *d, const uint16_t *h, unsigned i,
			   struct vring_desc inner)
{
	const struct vring_packed_desc packed = {inner.addr, inner.len, 0, inner.flags};

	memcpy(entry_of(d, h, i), layout_is_packed ? (const void *)&packed : (const void *)&inner,
	       16);
}

/* Make the chain's head an indirect descriptor of a table that starts like `d[h[0]]` says. */
static void make_indirect(struct vring_desc *d, const uint16_t *h, uint32_t len, uint16_t flags)
{
	struct vring_desc inner = d[h[0]];

	d[h[0]].addr = htole64(guest_alloc_odd(&nic.guest, 16 * 300));
	d[h[0]].len = htole32(len);
	d[h[0]].flags = htole16(VRING_DESC_F_INDIRECT | flags);
	inner.flags = htole16(VRING_DESC_F_NEXT);
	for (uint16_t i = 0; i < 300; i++) {
		inner.next = htole16((uint16_t)(i + 1));
		if (i == 2)
			inner.flags = 0;
		set_inner_desc(d, h, i, inner);
	}
}

static struct vring_desc inner_desc(const struct vring_desc *d, const uint16_t *h, unsigned i)
{
	struct vring_desc inner;

	memcpy(&inner, entry_of(d, h, i), 16);
	return inner;
}

static void table_is_empty(struct vring_desc *d, const uint16_t *h)
{
	make_indirect(d, h, 0, 0);
}

static void table_ends_in_an_entry(struct vring_desc *d, const uint16_t *h)
{
	make_indirect(d, h, 16 * 3 + 8, 0);
}

static void table_is_shorter_than_an_entry(struct vring_desc *d, const uint16_t *h)
{
	make_indirect(d, h, 15, 0);
}

static void table_is_longer_than_the_ring(struct vring_desc *d, const uint16_t *h)
{
	make_indirect(d, h, 16 * 257, 0);
}

static void table_is_huge(struct vring_desc *d, const uint16_t *h)
{
	make_indirect(d, h, 0xfffffff0, 0);
}

static void table_has_a_next(struct vring_desc *d, const uint16_t *h)
{
	make_indirect(d, h, 16 * 3, VRING_DESC_F_NEXT);
}

static void table_is_nowhere(struct vring_desc *d, const uint16_t *h)
{
	make_indirect(d, h, 16 * 3, 0);
	d[h[0]].addr = htole64(0x1000);
}

static void table_reaches_into_a_hole(struct vring_desc *d, const uint16_t *h)
{
	make_indirect(d, h, 16 * 3, 0);
	d[h[0]].addr = htole64(guest_edge(&nic.guest, 0) - 24);
}

static void table_is_nested(struct vring_desc *d, const uint16_t *h)
{
	struct vring_desc inner;

	make_indirect(d, h, 16 * 3, 0);
	inner.addr = d[h[0]].addr;
	inner.len = htole32(48);
	inner.flags = htole16(VRING_DESC_F_INDIRECT);
	inner.next = 0;
	set_inner_desc(d, h, 1, inner);
}

static void next_in_table_is_outside(struct vring_desc *d, const uint16_t *h)
{
	struct vring_desc inner;

	make_indirect(d, h, 16 * 3, 0);
	inner = inner_desc(d, h, 1);
	inner.next = htole16(3);
	set_inner_desc(d, h, 1, inner);
}

static void table_loops(struct vring_desc *d, const uint16_t *h)
{
	struct vring_desc inner;

	make_indirect(d, h, 16 * 3, 0);
	inner = inner_desc(d, h, 2);
	inner.next = 0;
	inner.flags = htole16(VRING_DESC_F_NEXT);
	set_inner_desc(d, h, 2, inner);
}

#define BAD(name)                                                                                  \
	{                                                                                          \
#name, name                                                                        \
	}
static const struct bad_chain bad_chains[] = {
	BAD(address_is_nowhere),
	BAD(address_wraps),
	BAD(end_is_outside),
	BAD(end_is_in_a_hole),
	BAD(member_is_writable),
	BAD(all_is_writable),
	BAD(lengths_overflow),
	BAD(frame_is_too_long),
	BAD(nothing_but_header),
	BAD(shorter_than_header),
	BAD(no_byte_at_all),
	BAD(shorter_than_ethernet),
	BAD(table_is_empty),
	BAD(table_ends_in_an_entry),
	BAD(table_is_shorter_than_an_entry),
	BAD(table_is_longer_than_the_ring),
	BAD(table_is_huge),
	BAD(table_has_a_next),
	BAD(table_is_nowhere),
	BAD(table_reaches_into_a_hole),
	BAD(table_is_nested),
	/* Of links, which a packed ring has not. */
	BAD(loop_to_itself),
	BAD(loop_from_the_end),
	BAD(next_is_outside),
	BAD(next_is_far_outside),
	BAD(next_in_table_is_outside),
	BAD(table_loops),
};
#define N_BAD_CHAINS ((int)(sizeof(bad_chains) / sizeof(bad_chains[0])))
#define N_BAD_LINKS  6

static unsigned n_bad_chains(void)
{
	return (unsigned)N_BAD_CHAINS - (layout_is_packed ? N_BAD_LINKS : 0);
}

static void add_bad_packed(struct driver_ring *r, const struct bad_chain *bad,
			   const struct driver_seg *segs)
{
	static const uint16_t h[3] = {0, 1, 2};
	struct vring_desc d[3];
	unsigned n = 1;

	for (unsigned i = 0; i < 3; i++)
		d[i] = (struct vring_desc){
			.addr = htole64(segs[i].gpa),
			.len = htole32(segs[i].len),
			.flags = htole16((uint16_t)((segs[i].is_writable ? VRING_DESC_F_WRITE : 0) |
						    (i < 2 ? VRING_DESC_F_NEXT : 0))),
		};
	bad->spoil(d, h);
	while (n < 3 && (d[n - 1].flags & htole16(VRING_DESC_F_NEXT)))
		n++;
	driver_add_descs(r, d, n);
}

/* Restore the links of a chain, so that the driver finds its descriptors again. */
static void add_bad_chain(struct driver_ring *r, const struct bad_chain *bad, bool is_writable)
{
	struct driver_seg segs[3];
	uint16_t h[3];

	for (unsigned i = 0; i < 3; i++)
		segs[i] = (struct driver_seg){guest_alloc(&nic.guest, 400, 4), 400, is_writable};
	if (layout_is_packed) {
		add_bad_packed(r, bad, segs);
		return;
	}
	h[0] = driver_add(r, segs, 3, 0);
	h[1] = le16toh(r->desc[h[0]].next);
	h[2] = le16toh(r->desc[h[1]].next);
	bad->spoil(r->desc, h);
	/* The driver need not find them again: they are lost to it. */
	r->chains[h[0]].n_descs = 0;
}

START_TEST(bad_chain_is_dropped_and_counted)
{
	const struct bad_chain *bad = &bad_chains[_i];
	struct driver_ring *r = nic_tx(&nic, 0);

	start(&(struct nic_options){
		.layout = &holed, .features = _i % 2 ? NIC_FEATURES : NIC_FEATURES & ~NIC_BIT(29)});
	nic_post(&nic, 0, 16, 2048);
	nic_ping(&nic, 0, FRAME_LEN, 1);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	for (unsigned i = 1; i <= 5; i++) {
		add_bad_chain(r, bad, false);
		driver_kick(r);
		expect_sent_back();
		expect_eq(daemon_counter(dut, 0, "tx_malformed"), i);
		expect_eq(daemon_counter(dut, 0, "tx_dropped"), i);
		/* The ring goes on. */
		nic_ping(&nic, 0, FRAME_LEN, i);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	}
	expect_eq(daemon_counter(dut, 0, "ring_errors"), 0);
	expect_eq(driver_take_errs(r), 0);
	nic_expect_nothing(&nic, 0);
}
END_TEST

START_TEST(bad_chains_among_good_ones_keep_their_place)
{
	struct driver_ring *r = nic_tx(&nic, 0);

	start(&(struct nic_options){.layout = &holed});
	nic_post(&nic, 0, 64, 2048);
	for (unsigned i = 0; i < n_bad_chains(); i++) {
		char data[FRAME_LEN];

		nic_make_frame(data, sizeof(data), i);
		nic_queue(&nic, 0, NULL, data, sizeof(data));
		add_bad_chain(r, &bad_chains[i], false);
	}
	driver_kick(r);
	for (unsigned i = 0; i < n_bad_chains(); i++) {
		nic_recv(&nic, 0, &frame, WAIT_LONG_MS);
		nic_check_frame(&frame, FRAME_LEN, i);
	}
	/* The driver checks the order. */
	for (unsigned i = 0; i < 2 * n_bad_chains(); i++)
		expect_sent_back();
}
END_TEST

static void readable_member(struct vring_desc *d, const uint16_t *h)
{
	d[h[1]].flags &= (uint16_t)~htole16(VRING_DESC_F_WRITE);
}

static void readable_chain(struct vring_desc *d, const uint16_t *h)
{
	for (unsigned i = 0; i < 3; i++)
		d[h[i]].flags &= (uint16_t)~htole16(VRING_DESC_F_WRITE);
}

static const struct bad_chain bad_buffers[] = {
	BAD(address_is_nowhere),
	BAD(address_wraps),
	BAD(end_is_outside),
	BAD(end_is_in_a_hole),
	BAD(lengths_overflow),
	BAD(no_byte_at_all),
	BAD(shorter_than_header),
	BAD(readable_member),
	BAD(readable_chain),
	BAD(table_is_empty),
	BAD(table_is_longer_than_the_ring),
	BAD(table_is_nowhere),
	BAD(table_has_a_next),
	/* Of links. */
	BAD(loop_to_itself),
	BAD(loop_from_the_end),
	BAD(next_is_outside),
};
#define N_BAD_BUFFERS	   ((int)(sizeof(bad_buffers) / sizeof(bad_buffers[0])))
#define N_BAD_BUFFER_LINKS 3

START_TEST(bad_receive_buffer_is_given_back_and_the_frame_takes_the_next)
{
	struct driver_ring *r = nic_rx(&nic, 0);
	char data[FRAME_LEN], got[12 + FRAME_LEN];
	struct driver_used u;

	start(&(struct nic_options){.layout = &holed});
	for (uint32_t i = 0; i < 5; i++) {
		struct driver_seg good = {guest_alloc(&nic.guest, 2048, 4), 2048, true};

		add_bad_chain(r, &bad_buffers[_i], true);
		driver_add(r, &good, 1, 0);
		driver_kick(r);
		nic_make_frame(data, sizeof(data), i);
		nic_send(&nic, 0, data, sizeof(data));
		driver_wait(r, &u, WAIT_LONG_MS);
		expect_eq(u.len, 0);
		driver_wait(r, &u, WAIT_LONG_MS);
		expect_eq(u.len, nic.hdr_len + FRAME_LEN);
		driver_read(r, &u, got, sizeof(got));
		expect(memcmp(got + nic.hdr_len, data, FRAME_LEN) == 0);
	}
	expect_ge(daemon_counter(dut, 0, "ring_errors"), 5);
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 0);
	expect_eq(driver_take_errs(r), 0);
}
END_TEST

START_TEST(indirect_is_bad_when_not_negotiated)
{
	struct driver_seg seg;

	start(&(struct nic_options){.features = NIC_BIT(VIRTIO_F_VERSION_1)});
	nic_post(&nic, 0, 8, 2048);
	seg = (struct driver_seg){guest_alloc(&nic.guest, 112, 4), 112, false};
	driver_add_indirect(nic_tx(&nic, 0), &seg, 1, 0, guest_alloc(&nic.guest, 16, 16));
	driver_kick(nic_tx(&nic, 0));
	expect_sent_back();
	expect_eq(daemon_counter(dut, 0, "tx_malformed"), 1);
	nic_ping(&nic, 0, FRAME_LEN, 1);
}
END_TEST

/* ---- headers ---- */

static struct virtio_net_hdr_v1 bad_header(int kind)
{
	struct virtio_net_hdr_v1 h = {0};

	switch (kind) {
	case 0:
		h.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		h.csum_start = htole16(0xffff);
		h.csum_offset = htole16(0xffff);
		break;
	case 1:
		h.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		h.csum_start = htole16(FRAME_LEN - 1);
		break;
	case 2:
		h.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
		break;
	case 3:
		h.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
		h.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		h.gso_size = htole16(1);
		h.hdr_len = htole16(0xffff);
		break;
	case 4:
		h.gso_type = 0x7f;
		h.gso_size = htole16(100);
		break;
	case 5:
		h.gso_type = 5; /* UDP_L4 */
		h.gso_size = htole16(100);
		break;
	case 6:
		h.gso_type = VIRTIO_NET_HDR_GSO_ECN;
		break;
	default:
		memset(&h, 0xff, sizeof(h));
	}
	return h;
}

#define N_BAD_HEADERS 8

/* No offload is negotiated: a frame that asks for one is dropped, or carried without it. */
START_TEST(headers_ask_in_vain_for_what_is_not_negotiated)
{
	struct virtio_net_hdr_v1 h = bad_header(_i);
	uint64_t n_dropped;
	char data[FRAME_LEN];

	start(NULL);
	nic_post(&nic, 0, 8, 2048);
	nic_make_frame(data, sizeof(data), 1);
	nic_queue(&nic, 0, &h, data, sizeof(data));
	driver_kick(nic_tx(&nic, 0));
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	n_dropped = daemon_counter(dut, 0, "tx_dropped");
	if (n_dropped == 0) {
		nic_recv(&nic, 0, &frame, WAIT_LONG_MS);
		nic_check_frame(&frame, FRAME_LEN, 1);
		expect(memcmp(&frame.hdr, (char[10]){0}, 10) == 0);
	}
	nic_expect_nothing(&nic, 0);
	nic_ping(&nic, 0, FRAME_LEN, 2);
}
END_TEST

START_TEST(harmless_header_fields_are_ignored)
{
	/* hdr_len and num_buffers mean nothing without an offload. */
	struct virtio_net_hdr_v1 h = {.hdr_len = htole16(54), .num_buffers = htole16(7)};
	char data[FRAME_LEN];

	start(NULL);
	nic_post(&nic, 0, 8, 2048);
	nic_make_frame(data, sizeof(data), 1);
	nic_queue(&nic, 0, &h, data, sizeof(data));
	driver_kick(nic_tx(&nic, 0));
	nic_recv(&nic, 0, &frame, WAIT_LONG_MS);
	nic_check_frame(&frame, FRAME_LEN, 1);
	expect(memcmp(&frame.hdr, (char[10]){0}, 10) == 0);
}
END_TEST

static void add_rings(TCase *tc)
{
	tcase_add_loop_test(tc, bad_chain_is_dropped_and_counted, 0, N_BAD_CHAINS - N_BAD_LINKS);
	tcase_add_test(tc, bad_chains_among_good_ones_keep_their_place);
	tcase_add_loop_test(tc, bad_receive_buffer_is_given_back_and_the_frame_takes_the_next, 0,
			    N_BAD_BUFFERS - N_BAD_BUFFER_LINKS);
	tcase_add_test(tc, indirect_is_bad_when_not_negotiated);
}

static void add_split(TCase *tc)
{
	tcase_add_loop_test(tc, bad_chain_is_dropped_and_counted, N_BAD_CHAINS - N_BAD_LINKS,
			    N_BAD_CHAINS);
	tcase_add_loop_test(tc, bad_receive_buffer_is_given_back_and_the_frame_takes_the_next,
			    N_BAD_BUFFERS - N_BAD_BUFFER_LINKS, N_BAD_BUFFERS);
	tcase_add_loop_test(tc, headers_ask_in_vain_for_what_is_not_negotiated, 0, N_BAD_HEADERS);
	tcase_add_test(tc, harmless_header_fields_are_ignored);
}

int main(void)
{
	return system_main_rings("malformed", add_rings, add_split);
}
