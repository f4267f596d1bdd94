/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/csum.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"

#define VLAN_TAG_LEN	4
#define MAX_VLAN_TAGS	2
#define MAX_EXT_HEADERS 8
#define IP_FRAGMENT	0x3fff /* more fragments, or not the first one */

/* ---- sums ---- */

/* The carries come back at the bottom; four times are enough for any 64-bit sum. */
static uint16_t fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* The sum of `len` bytes as 16-bit words in memory's own order; an odd last byte is padded. */
static uint64_t sum_bytes(const uint8_t *p, size_t len)
{
	uint64_t sum = 0;
	uint32_t words;
	uint16_t last = 0;

	for (; len >= sizeof(words); len -= sizeof(words), p += sizeof(words)) {
		memcpy(&words, p, sizeof(words));
		sum += words;
	}
	if (len >= sizeof(last)) {
		memcpy(&last, p, sizeof(last));
		sum += last;
		len -= sizeof(last);
		p += sizeof(last);
		last = 0;
	}
	memcpy(&last, p, len);
	return sum + last;
}

/* Bytes that begin at an odd place of the whole count with their halves exchanged. */
static uint16_t swap_if(uint16_t sum, bool is_odd)
{
	return is_odd ? (uint16_t)(sum << 8 | sum >> 8) : sum;
}

static uint16_t sum_range(const struct iovec *iov, size_t skip, size_t left)
{
	uint64_t sum = 0;
	size_t done = 0;

	for (; left > 0; iov++) {
		size_t cut = min_of(skip, iov->iov_len);
		size_t len = min_of(left, iov->iov_len - cut);
		const uint8_t *p = iov->iov_base;

		skip -= cut;
		left -= len;
		sum += swap_if(fold(sum_bytes(p + cut, len)), done % 2 == 1);
		done += len;
	}
	return fold(sum);
}

static void write_at(const struct iovec *iov, size_t at, uint16_t value)
{
	const char *from = (const char *)&value;
	size_t left = sizeof(value);

	for (; left > 0; iov++) {
		size_t cut = min_of(at, iov->iov_len);
		size_t n = min_of(left, iov->iov_len - cut);

		at -= cut;
		memcpy((char *)iov->iov_base + cut, from, n);
		from += n;
		left -= n;
	}
}

void csum_finish(const struct iovec *iov, struct csum_place place)
{
	/* The field's own content belongs to the sum: it is that of the pseudo header. */
	uint16_t csum = (uint16_t)~sum_range(iov, place.start, place.len);

	/* Zero in UDP means that there is no checksum. */
	if (csum == 0 && place.is_udp)
		csum = 0xffff;
	write_at(iov, (size_t)place.start + place.offset, csum);
}

/* ---- looking at a frame ---- */

struct transport {
	uint32_t start;
	uint8_t protocol;
	uint64_t pseudo; /* the pseudo header's sum, without the length */
	uint32_t len;	 /* transport header and data */
};

static uint16_t load_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool parse_ip4(const uint8_t *data, uint32_t len, uint32_t at, struct transport *t)
{
	struct iphdr ip;

	if (len < at + sizeof(ip))
		return false;
	memcpy(&ip, data + at, sizeof(ip));
	if (ip.version != 4 || ip.ihl < 5 || (ntohs(ip.frag_off) & IP_FRAGMENT) ||
	    ntohs(ip.tot_len) < ip.ihl * 4u)
		return false;
	t->start = at + ip.ihl * 4u;
	t->protocol = ip.protocol;
	t->len = ntohs(ip.tot_len) - ip.ihl * 4u;
	t->pseudo = sum_bytes(data + at + offsetof(struct iphdr, saddr), 8);
	return true;
}

static bool is_extension(uint8_t protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
	       protocol == IPPROTO_DSTOPTS;
}

static bool parse_ip6(const uint8_t *data, uint32_t len, uint32_t at, struct transport *t)
{
	struct ip6_hdr ip;
	uint32_t end;

	if (len < at + sizeof(ip))
		return false;
	memcpy(&ip, data + at, sizeof(ip));
	if ((ip.ip6_vfc >> 4) != 6)
		return false;
	t->start = at + (uint32_t)sizeof(ip);
	t->protocol = ip.ip6_nxt;
	end = t->start + ntohs(ip.ip6_plen);
	for (int i = 0; i < MAX_EXT_HEADERS && is_extension(t->protocol); i++) {
		/* A routing header changes the address that the sum is made with: leave it alone. */
		if (t->protocol == IPPROTO_ROUTING || len < t->start + 2)
			return false;
		t->protocol = data[t->start];
		t->start += (data[t->start + 1] + 1u) * 8;
	}
	if (t->start > end)
		return false;
	t->len = end - t->start;
	t->pseudo = sum_bytes(data + at + offsetof(struct ip6_hdr, ip6_src), 32);
	return true;
}

static bool find_transport(const uint8_t *data, uint32_t len, struct transport *t)
{
	uint32_t at = 2 * ETH_ALEN;

	for (int i = 0; i <= MAX_VLAN_TAGS && len >= at + 2; i++) {
		switch (load_be16(data + at)) {
		case ETH_P_8021Q:
		case ETH_P_8021AD:
			at += VLAN_TAG_LEN;
			continue;
		case ETH_P_IP:
			return parse_ip4(data, len, at + 2, t);
		case ETH_P_IPV6:
			return parse_ip6(data, len, at + 2, t);
		default:
			return false;
		}
	}
	return false;
}

/* Return: where the field is in the transport header; 0: this protocol has none. */
static uint16_t field_offset(uint8_t protocol)
{
	switch (protocol) {
	case IPPROTO_TCP:
		return offsetof(struct tcphdr, check);
	case IPPROTO_UDP:
		return offsetof(struct udphdr, check);
	default:
		return 0;
	}
}

bool csum_is_unfinished(const uint8_t *data, uint32_t len, uint32_t total, struct csum_place *place)
{
	struct transport t;
	uint16_t offset, field;

	if (!find_transport(data, len, &t))
		return false;
	offset = field_offset(t.protocol);
	if (offset == 0 || t.len < offset + sizeof(field) ||
	    len < t.start + offset + sizeof(field) || t.start + t.len > total)
		return false;
	memcpy(&field, data + t.start + offset, sizeof(field));
	if (field != fold(t.pseudo + htons(t.protocol) + htons((uint16_t)t.len)))
		return false;
	*place = (struct csum_place){
		.start = (uint16_t)t.start,
		.offset = offset,
		.len = t.len,
		.is_udp = t.protocol == IPPROTO_UDP,
	};
	return true;
}
