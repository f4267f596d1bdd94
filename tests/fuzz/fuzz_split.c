/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a guest may write into a split ring and its descriptors, for libFuzzer. The first byte
 * chooses features and direction, the rest is laid over guest memory, rings included, and between
 * the device's steps more of it is laid over the avail ring.
 *
 * Whatever is there: each segment that a chain hands out lies in guest memory, no more heads are
 * completed than were popped, and what is published is in order.
 */
#include <assert.h>
#include <linux/virtio_config.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "virtq/virtq.h"

#define RING_SIZE    8
#define REGION_BYTES 4096
#define GPA	     0x10000
#define UVA	     0x7f0000000000
#define DESC_AT	     0
#define AVAIL_AT     256
#define USED_AT	     512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *guest; /* two regions, adjacent for the guest, apart in our memory */
static struct gmem *mem;

static void map_guest(void)
{
	int fd = memfd_create("guest", MFD_CLOEXEC);
	struct gmem_region_desc regions[] = {
		{GPA, UVA, REGION_BYTES, 0, fd},
		{GPA + REGION_BYTES, UVA + 16 * REGION_BYTES, REGION_BYTES, REGION_BYTES, fd},
	};

	if (fd < 0 || ftruncate(fd, 2 * REGION_BYTES) < 0)
		abort();
	guest = mmap(NULL, 2 * REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (guest == MAP_FAILED || gmem_new(&mem, regions, array_size(regions)) < 0)
		abort();
	close(fd);
}

static bool is_in_guest(const struct iovec *iov)
{
	for (unsigned i = 0; i < mem->n_regions; i++) {
		const struct gmem_region *r = &mem->regions[i];
		uint64_t offset = (uint64_t)((const char *)iov->iov_base - r->host);

		if (offset < r->size && iov->iov_len <= r->size - offset)
			return true;
	}
	return false;
}

static void check_chain(const struct virtq_chain *c)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < c->n_iov; i++) {
		assert(c->iov[i].iov_len > 0 && is_in_guest(&c->iov[i]));
		len += c->iov[i].iov_len;
	}
	assert(c->n_iov == 0 || len == c->len);
	assert(c->head < RING_SIZE);
}

/* One burst of a device that gives the last head back. */
static void burst(struct virtq *vq)
{
	uint16_t first = vq->last_avail;
	unsigned n = virtq_pop(vq, RING_SIZE);

	for (unsigned i = 0; i < n; i++)
		check_chain(virtq_chain_at(vq, (uint16_t)(first + i)));
	if (n > 1)
		virtq_unpop(vq, (uint16_t)(first + n - 1));
	while (virtq_n_in_flight(vq) > 0)
		virtq_complete(vq, virtq_chain_at(vq, vq->used_idx)->len);
	assert(virtq_publish(vq) <= RING_SIZE);
	if (virtq_call_needed(vq))
		virtq_called(vq);
	virtq_kicks_off(vq);
	if (!vq->is_broken)
		virtq_kicks_on(vq);
}

static void start(struct virtq *vq, uint8_t choice)
{
	struct virtq_setup setup = {
		.size = RING_SIZE,
		.desc = {UVA + DESC_AT},
		.avail = {UVA + AVAIL_AT},
		.used = {UVA + USED_AT},
		.mem = mem,
	};

	if (choice & 1)
		setup.features |= BIT_ULL(VIRTIO_RING_F_EVENT_IDX);
	if (choice & 2)
		setup.features |= BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC);
	if (choice & 4)
		setup.features |= BIT_ULL(VIRTIO_F_NOTIFY_ON_EMPTY);
	virtq_init(vq, (enum virtq_direction)((choice >> 3) % 3));
	virtq_start(vq, &setup);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct virtq vq;

	if (!guest)
		map_guest();
	if (size < 1)
		return 0;
	memset(guest, 0, 2 * REGION_BYTES);
	memcpy(guest, data + 1, min_of(size - 1, (size_t)2 * REGION_BYTES));
	start(&vq, data[0]);
	for (size_t at = 1; virtq_is_live(&vq) && at < size; at += 64) {
		burst(&vq);
		memcpy(guest + AVAIL_AT, data + at, min_of(size - at, (size_t)24));
	}
	virtq_stop(&vq);
	return 0;
}
