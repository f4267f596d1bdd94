/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames with one TCP or UDP segment, as a driver or a kernel hands them over when it leaves the
 * checksum to others, and the judgement whether it is finished. Written from the RFCs (1071, 768,
 * 9293, 8200), independent of the daemon's sources.
 */
#ifndef SUPPORT_SEGMENT_H
#define SUPPORT_SEGMENT_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

struct segment_kind {
	const char *name;
	bool is_ipv6, is_udp;
};

enum { SEGMENT_TCP4, SEGMENT_UDP4, SEGMENT_TCP6, SEGMENT_UDP6, SEGMENT_N_KINDS };

extern const struct segment_kind segment_kinds[SEGMENT_N_KINDS];

/*
 * Make a frame; its transport checksum is that of the pseudo header.
 * @len: of all of it
 * @seed: of the payload
 */
void segment_make(char *data, uint32_t len, const struct segment_kind *k, unsigned seed);

/* Where the transport header begins, and where its checksum is, counted from there. */
uint16_t segment_csum_start(const struct segment_kind *k);
uint16_t segment_csum_offset(const struct segment_kind *k);

/* Return: the header that says that the checksum is to be finished. */
struct virtio_net_hdr_v1 segment_hdr(const struct segment_kind *k);

/* Return: the checksum field. */
uint16_t segment_csum(const char *data, const struct segment_kind *k);

/* Finish the checksum. */
void segment_finish(char *data, uint32_t len, const struct segment_kind *k);

/* Return: whether a receiver would find it right. */
bool segment_is_finished(const char *data, uint32_t len, const struct segment_kind *k);

#endif
