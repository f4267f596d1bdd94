/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuzz_ring.h"

#include <assert.h>
#include <linux/virtio_config.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "virtq/journal.h"
#include "virtq/virtq.h"

#define REGION_BYTES 4096

static char *guest; /* two regions, adjacent for the guest, apart in our memory */
static struct gmem *mem;
static struct journal *journal;

static void map_guest(void)
{
	int fd = memfd_create("guest", MFD_CLOEXEC);
	struct gmem_region_desc regions[] = {
		{FUZZ_GPA, FUZZ_UVA, REGION_BYTES, 0, fd},
		{FUZZ_GPA + REGION_BYTES, FUZZ_UVA + 16 * REGION_BYTES, REGION_BYTES, REGION_BYTES,
		 fd},
	};

	if (fd < 0 || ftruncate(fd, 2 * REGION_BYTES) < 0)
		abort();
	guest = mmap(NULL, 2 * REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (guest == MAP_FAILED || gmem_new(&mem, regions, array_size(regions)) < 0 ||
	    journal_open(&journal, NULL, 1) < 0)
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

static void check_chain(const struct virtq *vq, const struct virtq_chain *c)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < c->n_iov; i++) {
		assert(c->iov[i].iov_len > 0 && is_in_guest(&c->iov[i]));
		len += c->iov[i].iov_len;
	}
	assert(c->n_iov == 0 || len == c->len);
	assert(vq->is_packed || c->head < vq->size);
	assert(c->n_descs <= vq->size);
}

/* One burst of a device that gives the last head back. */
static void burst(struct virtq *vq)
{
	uint16_t first = vq->last_avail;
	unsigned n_avail = virtq_n_avail(vq);
	unsigned n = virtq_pop(vq, vq->size);

	assert(n_avail <= vq->size && n <= vq->size);
	for (unsigned i = 0; i < n; i++)
		check_chain(vq, virtq_chain_at(vq, (uint16_t)(first + i)));
	if (n > 1)
		virtq_unpop(vq, (uint16_t)(first + n - 1));
	while (virtq_n_in_flight(vq) > 0)
		virtq_complete(vq, virtq_chain_at(vq, vq->used_idx)->len);
	assert(virtq_publish(vq) <= vq->size);
	if (virtq_call_needed(vq))
		virtq_called(vq);
	virtq_kicks_off(vq);
	if (!vq->is_broken)
		virtq_kicks_on(vq);
}

static void start(struct virtq *vq, const struct fuzz_ring *r, uint8_t choice)
{
	struct virtq_setup setup = {
		.size = r->size,
		.desc = {FUZZ_UVA + FUZZ_DESC_AT},
		.avail = {FUZZ_UVA + FUZZ_AVAIL_AT},
		.used = {FUZZ_UVA + FUZZ_USED_AT},
		.mem = mem,
		.features = r->features,
		.base = r->base,
	};

	if (choice & 1)
		setup.features |= BIT_ULL(VIRTIO_RING_F_EVENT_IDX);
	if (choice & 2)
		setup.features |= BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC);
	if (choice & 4)
		setup.features |= BIT_ULL(VIRTIO_F_NOTIFY_ON_EMPTY);
	journal_forget(journal, 0);
	journal_get(journal, 0, r->size, &setup.journal);
	virtq_init(vq, (enum virtq_direction)((choice >> 3) % 3));
	virtq_start(vq, &setup);
}

void fuzz_ring_run(const struct fuzz_ring *r, const uint8_t *data, size_t size)
{
	struct virtq vq;

	if (!guest)
		map_guest();
	memset(guest, 0, 2 * REGION_BYTES);
	memcpy(guest, data + 1, min_of(size - 1, (size_t)2 * REGION_BYTES));
	start(&vq, r, data[0]);
	for (size_t at = 1; virtq_is_live(&vq) && at < size; at += 64) {
		burst(&vq);
		memcpy(guest + r->flip_at, data + at, min_of(size - at, r->flip_len));
	}
	virtq_stop(&vq);
}
