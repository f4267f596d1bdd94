/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a guest may write into a packed ring, and a frontend say of it, for libFuzzer; fuzz_ring.h
 * tells what is done with it. Four bytes in front are the base; the descriptors flip.
 */
#include <linux/virtio_config.h>
#include <string.h>

#include "base/util.h"
#include "fuzz_ring.h"

#define RING_SIZE 7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_ring ring = {
		.size = RING_SIZE,
		.features = BIT_ULL(VIRTIO_F_RING_PACKED),
		.flip_at = FUZZ_DESC_AT,
		.flip_len = RING_SIZE * 16,
	};

	if (size <= sizeof(ring.base))
		return 0;
	memcpy(&ring.base, data, sizeof(ring.base));
	fuzz_ring_run(&ring, data + sizeof(ring.base), size - sizeof(ring.base));
	return 0;
}
