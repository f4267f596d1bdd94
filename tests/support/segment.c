/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/segment.h"

#include <arpa/inet.h>
#include <string.h>

#include "support/expect.h"

#define IP_AT 14u

const struct segment_kind segment_kinds[SEGMENT_N_KINDS] = {
	[SEGMENT_TCP4] = {"TCP/IPv4", false, false},
	[SEGMENT_UDP4] = {"UDP/IPv4", false, true},
	[SEGMENT_TCP6] = {"TCP/IPv6", true, false},
	[SEGMENT_UDP6] = {"UDP/IPv6", true, true},
};

static void put16(char *at, uint16_t value)
{
	uint16_t net = htons(value);

	memcpy(at, &net, sizeof(net));
}

static uint16_t get16(const char *at)
{
	uint16_t net;

	memcpy(&net, at, sizeof(net));
	return ntohs(net);
}

static uint32_t sum_words(const char *data, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i + 1 < len; i += 2)
		sum += get16(data + i);
	if (len % 2)
		sum += (uint32_t)(uint8_t)data[len - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

uint16_t segment_csum_start(const struct segment_kind *k)
{
	return IP_AT + (k->is_ipv6 ? 40 : 20);
}

uint16_t segment_csum_offset(const struct segment_kind *k)
{
	return k->is_udp ? 6 : 16;
}

static uint32_t pseudo_sum(const char *data, uint32_t len, const struct segment_kind *k)
{
	const uint32_t protocol = k->is_udp ? 17 : 6, l4_len = len - segment_csum_start(k);

	if (k->is_ipv6)
		return sum_words(data + IP_AT + 8, 32, protocol + l4_len);
	return sum_words(data + IP_AT + 12, 8, protocol + l4_len);
}

static void make_ipv4(char *ip, uint32_t len, const struct segment_kind *k)
{
	memcpy(ip, "\x45\0\0\0\0\1\x40\0\x40\0\0\0\x0a\0\0\1\x0a\0\0\2", 20);
	ip[9] = k->is_udp ? 17 : 6;
	put16(ip + 2, (uint16_t)len);
	put16(ip + 10, (uint16_t)~sum_words(ip, 20, 0));
}

static void make_ipv6(char *ip, uint32_t len, const struct segment_kind *k)
{
	memset(ip, 0, 40);
	ip[0] = 0x60;
	put16(ip + 4, (uint16_t)(len - 40));
	ip[6] = k->is_udp ? 17 : 6;
	ip[7] = 64;
	memcpy(ip + 8, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	memcpy(ip + 24, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2", 16);
}

void segment_make(char *data, uint32_t len, const struct segment_kind *k, unsigned seed)
{
	const uint32_t start = segment_csum_start(k), header_len = k->is_udp ? 8 : 20;
	char *l4 = data + start;

	expect_ge(len, start + header_len);
	memset(data, 0, start + header_len);
	memcpy(data,
	       k->is_ipv6 ? "\x02\0\0\0\0\2\x02\0\0\0\0\1\x86\xdd"
			  : "\x02\0\0\0\0\2\x02\0\0\0\0\1\x08\0",
	       14);
	if (k->is_ipv6)
		make_ipv6(data + IP_AT, len - IP_AT, k);
	else
		make_ipv4(data + IP_AT, len - IP_AT, k);
	if (k->is_udp) {
		memcpy(l4, "\x10\0\x10\1", 4);
		put16(l4 + 4, (uint16_t)(len - start));
	} else {
		memcpy(l4, "\x10\0\x10\1\0\0\0\1\0\0\0\0\x50\x18\xff\xff", 16);
	}
	for (uint32_t i = start + header_len; i < len; i++)
		data[i] = (char)(i * 7 + seed);
	put16(l4 + segment_csum_offset(k), (uint16_t)pseudo_sum(data, len, k));
}

struct virtio_net_hdr_v1 segment_hdr(const struct segment_kind *k)
{
	return (struct virtio_net_hdr_v1){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_start = segment_csum_start(k),
		.csum_offset = segment_csum_offset(k),
	};
}

uint16_t segment_csum(const char *data, const struct segment_kind *k)
{
	return get16(data + segment_csum_start(k) + segment_csum_offset(k));
}

/* What is summed up, the field included. */
static uint32_t whole_sum(const char *data, uint32_t len, const struct segment_kind *k)
{
	const uint32_t start = segment_csum_start(k);

	return sum_words(data + start, len - start, pseudo_sum(data, len, k));
}

void segment_finish(char *data, uint32_t len, const struct segment_kind *k)
{
	char *field = data + segment_csum_start(k) + segment_csum_offset(k);
	uint16_t csum;

	put16(field, 0);
	csum = (uint16_t)~whole_sum(data, len, k);
	/* Zero is "none" in UDP. */
	put16(field, k->is_udp && csum == 0 ? 0xffff : csum);
}

bool segment_is_finished(const char *data, uint32_t len, const struct segment_kind *k)
{
	if (len < segment_csum_start(k) + (k->is_udp ? 8u : 20u))
		return false;
	return whole_sum(data, len, k) == 0xffff && !(k->is_udp && segment_csum(data, k) == 0);
}
