/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a guest may write into a split ring and its descriptors, for libFuzzer; fuzz_ring.h tells what
 * is done with it. The avail ring flips.
 */
#include "fuzz_ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_ring ring = {.size = 8, .flip_at = FUZZ_AVAIL_AT, .flip_len = 24};

	if (size > 0)
		fuzz_ring_run(&ring, data, size);
	return 0;
}
