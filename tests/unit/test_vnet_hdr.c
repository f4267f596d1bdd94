/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/vnet_hdr.h"

#include <check.h>
#include <linux/virtio_config.h>
#include <string.h>

#include "base/util.h"
#include "support/expect.h"
#include "support/suite.h"

#define NEEDS_CSUM VIRTIO_NET_HDR_F_NEEDS_CSUM
#define DATA_VALID VIRTIO_NET_HDR_F_DATA_VALID
#define TCPV4	   VIRTIO_NET_HDR_GSO_TCPV4
#define TCPV6	   VIRTIO_NET_HDR_GSO_TCPV6
#define ECN	   VIRTIO_NET_HDR_GSO_ECN

#define FRAME_LEN 1500

/* The feature bits that matter in one direction. */
struct bits {
	unsigned csum, tso4, tso6, ecn;
};

static const struct bits tx_bits = {VIRTIO_NET_F_CSUM, VIRTIO_NET_F_HOST_TSO4,
				    VIRTIO_NET_F_HOST_TSO6, VIRTIO_NET_F_HOST_ECN};
static const struct bits rx_bits = {VIRTIO_NET_F_GUEST_CSUM, VIRTIO_NET_F_GUEST_TSO4,
				    VIRTIO_NET_F_GUEST_TSO6, VIRTIO_NET_F_GUEST_ECN};

/* Features by number, 0..15: every combination. */
static uint64_t features_of(const struct bits *bits, int i)
{
	return (i & 1 ? BIT_ULL(bits->csum) : 0) | (i & 2 ? BIT_ULL(bits->tso4) : 0) |
	       (i & 4 ? BIT_ULL(bits->tso6) : 0) | (i & 8 ? BIT_ULL(bits->ecn) : 0);
}

static bool has(uint64_t features, unsigned bit)
{
	return features & BIT_ULL(bit);
}

/* What the features say of a kind of segmentation, TCP being the only one that can be negotiated. */
static bool is_gso_allowed(const struct bits *bits, uint64_t features, unsigned gso_type)
{
	bool is_v4 = gso_type == TCPV4 || gso_type == (TCPV4 | ECN);
	bool is_v6 = gso_type == TCPV6 || gso_type == (TCPV6 | ECN);

	if (gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return true;
	if (gso_type & ECN && !has(features, bits->ecn))
		return false;
	return (is_v4 && has(features, bits->tso4)) || (is_v6 && has(features, bits->tso6));
}

/* A header whose checksum is within the frame. */
static vnet_hdr header_of(unsigned flags, unsigned gso_type)
{
	return (vnet_hdr){
		.flags = (uint8_t)flags,
		.gso_type = (uint8_t)gso_type,
		.hdr_len = 54,
		.gso_size = 1448,
		.csum_start = 34,
		.csum_offset = 16,
		.num_buffers = 0xffff,
	};
}

START_TEST(the_header_has_twelve_bytes_with_version_1_or_mergeable_buffers)
{
	expect_eq(vnet_hdr_len(0), 10);
	expect_eq(vnet_hdr_len(BIT_ULL(VIRTIO_F_ANY_LAYOUT) | BIT_ULL(VIRTIO_NET_F_CSUM)), 10);
	expect_eq(vnet_hdr_len(BIT_ULL(VIRTIO_NET_F_MRG_RXBUF)), 12);
	expect_eq(vnet_hdr_len(BIT_ULL(VIRTIO_F_VERSION_1)), 12);
	expect_eq(vnet_hdr_len(BIT_ULL(VIRTIO_F_VERSION_1) | BIT_ULL(VIRTIO_NET_F_MRG_RXBUF)), 12);
}
END_TEST

/* ---- from the guest ---- */

START_TEST(from_the_guest_only_what_is_negotiated_passes)
{
	uint64_t features = features_of(&tx_bits, _i);

	for (unsigned flags = 0; flags < 8; flags++)
		for (unsigned gso_type = 0; gso_type < 256; gso_type++) {
			vnet_hdr h = header_of(flags, gso_type);
			bool needs_csum = flags & NEEDS_CSUM;
			bool is_gso = gso_type != VIRTIO_NET_HDR_GSO_NONE;
			bool is_good = (!needs_csum || has(features, tx_bits.csum)) &&
				       (!is_gso || needs_csum) &&
				       is_gso_allowed(&tx_bits, features, gso_type);

			expect_eq(vnet_hdr_tx_check(&h, FRAME_LEN, features), is_good);
			if (!is_good)
				continue;
			expect_eq(h.flags, flags & NEEDS_CSUM);
			expect_eq(h.gso_type, gso_type);
			expect_eq(h.num_buffers, 0);
			expect_eq(h.gso_size, is_gso ? 1448 : 0);
			expect_eq(h.csum_start, needs_csum ? 34 : 0);
			expect_eq(h.csum_offset, needs_csum ? 16 : 0);
		}
}
END_TEST

START_TEST(a_header_that_asks_for_nothing_is_cleared)
{
	static const vnet_hdr zero;
	vnet_hdr h = header_of(DATA_VALID, VIRTIO_NET_HDR_GSO_NONE);

	h.hdr_len = 0xffff;
	h.csum_start = 0xffff;
	h.csum_offset = 0xffff;
	expect(vnet_hdr_tx_check(&h, 60, UINT64_MAX));
	expect_eq(memcmp(&h, &zero, sizeof(h)), 0);
}
END_TEST

START_TEST(a_checksum_field_beyond_the_frame_is_malformed)
{
	static const struct {
		uint16_t start, offset;
		uint32_t frame_len;
		bool is_good;
	} cases[] = {
		{34, 16, 52, true},
		{34, 16, 51, false},
		{0, 0, 14, true},
		{58, 0, 60, true},
		{59, 0, 60, false},
		{0, 59, 60, false},
		{0xffff, 0, 1500, false},
		{0, 0xffff, 1500, false},
		{0xffff, 0xffff, 1500, false},
		{0xfffe, 2, 1500, false},
		{0xffff, 0x1, 65553, true},
		{0xffff, 0x10, 65552, false},
		{0xffff, 0x10, 65553, true},
	};

	for (unsigned i = 0; i < array_size(cases); i++) {
		vnet_hdr h = header_of(NEEDS_CSUM, VIRTIO_NET_HDR_GSO_NONE);

		h.csum_start = cases[i].start;
		h.csum_offset = cases[i].offset;
		expect_msg(vnet_hdr_tx_check(&h, cases[i].frame_len, BIT_ULL(VIRTIO_NET_F_CSUM)) ==
				   cases[i].is_good,
			   "case %u", i);
		h = header_of(NEEDS_CSUM, TCPV4);
		h.csum_start = cases[i].start;
		h.csum_offset = cases[i].offset;
		expect_msg(vnet_hdr_tx_check(&h, cases[i].frame_len, UINT64_MAX) ==
				   cases[i].is_good,
			   "case %u with segmentation", i);
	}
}
END_TEST

START_TEST(segments_of_no_size_are_malformed)
{
	vnet_hdr h = header_of(NEEDS_CSUM, TCPV4);

	h.gso_size = 0;
	expect(!vnet_hdr_tx_check(&h, FRAME_LEN, UINT64_MAX));
	h.gso_size = 1;
	expect(vnet_hdr_tx_check(&h, FRAME_LEN, UINT64_MAX));
	h.gso_size = 0xffff;
	expect(vnet_hdr_tx_check(&h, FRAME_LEN, UINT64_MAX));
}
END_TEST

START_TEST(a_header_length_beyond_the_frame_is_cut)
{
	vnet_hdr h = header_of(NEEDS_CSUM, TCPV4);

	h.hdr_len = 0xffff;
	expect(vnet_hdr_tx_check(&h, FRAME_LEN, UINT64_MAX));
	expect_le(h.hdr_len, FRAME_LEN);
	h = header_of(NEEDS_CSUM, TCPV4);
	expect(vnet_hdr_tx_check(&h, FRAME_LEN, UINT64_MAX));
	expect_eq(h.hdr_len, 54);
	h.hdr_len = 0xffff;
	expect(vnet_hdr_tx_check(&h, 70000, UINT64_MAX));
	expect_eq(h.hdr_len, 0xffff);
}
END_TEST

/* ---- towards the guest ---- */

START_TEST(towards_the_guest_only_what_is_negotiated_passes)
{
	uint64_t features = features_of(&rx_bits, _i);
	bool has_csum = has(features, rx_bits.csum);

	for (unsigned flags = 0; flags < 4; flags++)
		for (unsigned gso_type = 0; gso_type < 256; gso_type++) {
			vnet_hdr h = header_of(flags, gso_type);
			bool is_good = (has_csum || !(flags & NEEDS_CSUM)) &&
				       is_gso_allowed(&rx_bits, features, gso_type);

			expect_eq(vnet_hdr_rx_check(&h, features), is_good);
			if (!is_good)
				continue;
			expect_eq(h.flags, has_csum ? flags : flags & ~(unsigned)DATA_VALID);
			expect_eq(h.gso_type, gso_type);
			expect_eq(h.csum_start, 34);
			expect_eq(h.csum_offset, 16);
		}
}
END_TEST

/* The bits of the two directions are different ones. */
START_TEST(features_of_the_other_direction_allow_nothing)
{
	vnet_hdr h = header_of(NEEDS_CSUM, VIRTIO_NET_HDR_GSO_NONE);

	expect(!vnet_hdr_tx_check(&h, FRAME_LEN, features_of(&rx_bits, 15)));
	expect(!vnet_hdr_rx_check(&h, features_of(&tx_bits, 15)));
	h = header_of(NEEDS_CSUM, TCPV4);
	expect(!vnet_hdr_tx_check(&h, FRAME_LEN,
				  features_of(&rx_bits, 15) | BIT_ULL(VIRTIO_NET_F_CSUM)));
	expect(!vnet_hdr_rx_check(&h,
				  features_of(&tx_bits, 15) | BIT_ULL(VIRTIO_NET_F_GUEST_CSUM)));
}
END_TEST

static void add_headers(TCase *tc)
{
	tcase_add_test(tc, the_header_has_twelve_bytes_with_version_1_or_mergeable_buffers);
	tcase_add_loop_test(tc, from_the_guest_only_what_is_negotiated_passes, 0, 16);
	tcase_add_test(tc, a_header_that_asks_for_nothing_is_cleared);
	tcase_add_test(tc, a_checksum_field_beyond_the_frame_is_malformed);
	tcase_add_test(tc, segments_of_no_size_are_malformed);
	tcase_add_test(tc, a_header_length_beyond_the_frame_is_cut);
	tcase_add_loop_test(tc, towards_the_guest_only_what_is_negotiated_passes, 0, 16);
	tcase_add_test(tc, features_of_the_other_direction_allow_nothing);
}

int main(void)
{
	static const struct suite_case cases[] = {{"headers", NULL, NULL, add_headers}};

	return suite_run("vnet_hdr", cases, array_size(cases));
}
