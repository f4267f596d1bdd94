/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internet checksums (RFC 1071) of frames that are about to leave, or have arrived, with an
 * unfinished one: the checksum field of TCP or UDP then holds the folded sum of the pseudo header,
 * and whoever finishes it adds up everything from the transport header on.
 *
 * Pure functions on segments; any thread; they neither read nor write outside of what they are given.
 */
#ifndef PORT_CSUM_H
#define PORT_CSUM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* Where a frame's transport checksum is, in bytes from its beginning. */
struct csum_place {
	uint16_t start;	 /* the transport header */
	uint16_t offset; /* the field, from there on */
	uint32_t len;	 /* bytes that it covers, from `start` on; what follows is padding */
	bool is_udp;
};

/*
 * Tell whether a frame carries an unfinished checksum: IPv4 or IPv6 (up to two VLAN tags, IPv6
 * extension headers but no fragment), TCP or UDP, and the field equals the pseudo header's sum. A
 * finished checksum equals it once in 65536 frames; finishing it again then changes nothing.
 * @data: the beginning of the frame, with `len` bytes there; the frame has `total`
 * Return: whether `place` was set.
 */
bool csum_is_unfinished(const uint8_t *data, uint32_t len, uint32_t total,
			struct csum_place *place);

/*
 * Finish a checksum, in place.
 * @iov: the frame, without a virtio-net header
 * @place: start + offset + 2 and start + len must lie inside of the frame
 */
void csum_finish(const struct iovec *iov, struct csum_place place);

#endif
