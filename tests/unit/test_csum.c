/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/csum.h"

#include <arpa/inet.h>
#include <check.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#include "base/util.h"
#include "support/expect.h"
#include "support/suite.h"

#define MAX_LEN 2000

/* A frame under construction, and where its parts are. */
struct sample {
	uint8_t data[MAX_LEN];
	uint32_t len, ip, transport;
	uint8_t protocol;
	bool is_ip6;
};

static struct sample sample;

/* ---- a slow and plain reference ---- */

static uint32_t add_words(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static uint16_t pseudo_sum(const struct sample *s)
{
	uint32_t len = s->len - s->transport;
	uint32_t sum = s->is_ip6 ? add_words(0, s->data + s->ip + 8, 32)
				 : add_words(0, s->data + s->ip + 12, 8);

	sum += s->protocol + len;
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Return: whether a receiver would accept the frame. */
static bool is_valid(const struct sample *s)
{
	return add_words(pseudo_sum(s), s->data + s->transport, s->len - s->transport) == 0xffff;
}

/* ---- samples ---- */

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint8_t *field(struct sample *s)
{
	return s->data + s->transport + (s->protocol == IPPROTO_TCP ? 16 : 6);
}

/* Make a frame with `n_tags` VLAN tags and `payload` bytes behind the transport header, whose
 * checksum is left to the network card. */
static void make_sample(struct sample *s, bool is_ip6, uint8_t protocol, unsigned n_tags,
			uint32_t payload)
{
	uint32_t at = 12, header = protocol == IPPROTO_TCP ? 20 : 8;

	*s = (struct sample){.is_ip6 = is_ip6, .protocol = protocol};
	for (uint32_t i = 0; i < MAX_LEN; i++)
		s->data[i] = (uint8_t)(i * 7 + payload);
	for (unsigned i = 0; i < n_tags; i++, at += 4)
		put16(s->data + at, i == 0 && n_tags > 1 ? ETH_P_8021AD : ETH_P_8021Q);
	put16(s->data + at, is_ip6 ? ETH_P_IPV6 : ETH_P_IP);
	s->ip = at + 2;
	s->transport = s->ip + (is_ip6 ? 40 : 20);
	s->len = s->transport + header + payload;
	if (is_ip6) {
		s->data[s->ip] = 0x60;
		put16(s->data + s->ip + 4, header + payload);
		s->data[s->ip + 6] = protocol;
	} else {
		s->data[s->ip] = 0x45;
		put16(s->data + s->ip + 2, 20 + header + payload);
		put16(s->data + s->ip + 6, 0);
		s->data[s->ip + 9] = protocol;
	}
	put16(field(s), pseudo_sum(s));
}

static bool is_unfinished(const struct sample *s, struct csum_place *place)
{
	return csum_is_unfinished(s->data, s->len, s->len, place);
}

/* Cut the frame into segments of `step` bytes. */
static void cut(struct sample *s, struct iovec *iov, uint32_t step)
{
	for (uint32_t at = 0; at < s->len; at += step)
		*iov++ = (struct iovec){s->data + at, min_of(step, s->len - at)};
}

/* ---- tests ---- */

static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP};
static const uint32_t payloads[] = {0, 1, 2, 3, 7, 64, 1001, 1400};

static void check_one(bool is_ip6, uint8_t protocol, unsigned n_tags, uint32_t payload)
{
	struct iovec iov[MAX_LEN];
	struct csum_place place;

	for (uint32_t step = 1; step < 2000; step = step * 3 + 1) {
		make_sample(&sample, is_ip6, protocol, n_tags, payload);
		expect(!is_valid(&sample) || payload == 0);
		expect(is_unfinished(&sample, &place));
		expect_eq(place.start, sample.transport);
		expect_eq(place.is_udp, protocol == IPPROTO_UDP);
		cut(&sample, iov, step);
		csum_finish(iov, place);
		expect(is_valid(&sample));
	}
}

START_TEST(unfinished_checksum_is_found_and_finished)
{
	for (unsigned p = 0; p < array_size(protocols); p++)
		for (unsigned tags = 0; tags <= 2; tags++)
			for (unsigned i = 0; i < array_size(payloads); i++)
				check_one(_i, protocols[p], tags, payloads[i]);
}
END_TEST

START_TEST(finished_checksum_is_left_alone)
{
	struct iovec iov = {sample.data, 0};
	struct csum_place place;

	for (unsigned i = 1; i < array_size(payloads); i++) {
		make_sample(&sample, _i, IPPROTO_UDP, 0, payloads[i]);
		expect(is_unfinished(&sample, &place));
		iov.iov_len = sample.len;
		csum_finish(&iov, place);
		expect(!is_unfinished(&sample, &place));
	}
}
END_TEST

START_TEST(zero_in_udp_is_written_as_all_ones)
{
	struct csum_place place;
	struct iovec iov = {sample.data, 0};
	uint8_t *last;

	make_sample(&sample, false, IPPROTO_UDP, 0, 2);
	last = sample.data + sample.len - 2;
	put16(last, 0);
	/* Make the whole sum ffff, the inverse of which is zero. */
	put16(last, 0xffff - add_words(0, sample.data + sample.transport, 10));
	iov.iov_len = sample.len;
	expect(is_unfinished(&sample, &place));
	csum_finish(&iov, place);
	expect_eq(field(&sample)[0], 0xff);
	expect_eq(field(&sample)[1], 0xff);
	expect(is_valid(&sample));
}
END_TEST

START_TEST(fragments_and_other_protocols_are_left_alone)
{
	struct csum_place place;

	make_sample(&sample, false, IPPROTO_UDP, 0, 100);
	put16(sample.data + sample.ip + 6, 0x2000);
	expect(!is_unfinished(&sample, &place));
	put16(sample.data + sample.ip + 6, 0x4000);
	expect(is_unfinished(&sample, &place));
	sample.data[sample.ip + 9] = IPPROTO_ICMP;
	expect(!is_unfinished(&sample, &place));
	put16(sample.data + sample.ip - 2, ETH_P_ARP);
	expect(!is_unfinished(&sample, &place));
}
END_TEST

START_TEST(frame_that_is_cut_anywhere_is_left_alone)
{
	struct csum_place place;

	for (int is_ip6 = 0; is_ip6 < 2; is_ip6++) {
		make_sample(&sample, is_ip6, IPPROTO_TCP, 1, 10);
		for (uint32_t len = 0; len < sample.len; len++)
			expect(!csum_is_unfinished(sample.data, len, len, &place));
	}
}
END_TEST

START_TEST(padding_behind_the_packet_is_no_part_of_it)
{
	struct iovec iov = {sample.data, 60};
	struct csum_place place;

	make_sample(&sample, false, IPPROTO_UDP, 0, 3);
	expect(csum_is_unfinished(sample.data, 60, 60, &place));
	csum_finish(&iov, place);
	expect(is_valid(&sample));
}
END_TEST

START_TEST(extension_headers_of_ip6_are_stepped_over)
{
	struct csum_place place;

	/* Turn the first eight bytes behind the IPv6 header into an options header. */
	make_sample(&sample, true, IPPROTO_UDP, 0, 108);
	sample.data[sample.ip + 6] = IPPROTO_DSTOPTS;
	sample.data[sample.transport] = IPPROTO_UDP;
	sample.data[sample.transport + 1] = 0;
	sample.transport += 8;
	put16(field(&sample), pseudo_sum(&sample));
	expect(is_unfinished(&sample, &place));
	expect_eq(place.start, sample.transport);
}
END_TEST

static void add_all(TCase *tc)
{
	tcase_add_loop_test(tc, unfinished_checksum_is_found_and_finished, 0, 2);
	tcase_add_loop_test(tc, finished_checksum_is_left_alone, 0, 2);
	tcase_add_test(tc, zero_in_udp_is_written_as_all_ones);
	tcase_add_test(tc, fragments_and_other_protocols_are_left_alone);
	tcase_add_test(tc, frame_that_is_cut_anywhere_is_left_alone);
	tcase_add_test(tc, padding_behind_the_packet_is_no_part_of_it);
	tcase_add_test(tc, extension_headers_of_ip6_are_stepped_over);
}

int main(void)
{
	static const struct suite_case cases[] = {{"csum", NULL, NULL, add_all}};

	return suite_run("csum", cases, array_size(cases));
}
