/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/simple.h"

#include <endian.h>

/* One function for each kind of vector unit, chosen when the program starts. The sanitizers are not
 * ready by then. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&      \
	!defined(VUX_NO_CLONES)
#define VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTOR_CLONES
#endif

/*
 * Judge all of them. The sign bits of all conditions are gathered instead of branched upon: an offset
 * beyond 2^63, or beyond the region; an end beyond it; no length; wrong flags.
 * @offsets: of their buffers in the region
 * @faults: the sign bit says that this is no simple one
 * Return: all faults together.
 */
VECTOR_CLONES static uint64_t judge(const uint64_t *restrict word, const struct simple_rules *rules,
				    const struct gmem_region *r, uint64_t *restrict offsets,
				    uint64_t *restrict faults)
{
	const uint64_t mask = rules->mask, want = rules->want, gpa = r->gpa, size = r->size;
	uint64_t all = 0;

	for (unsigned i = 0; i < SIMPLE_BATCH; i++) {
		uint64_t offset = le64toh(word[2 * i]) - gpa;
		uint64_t info = le64toh(word[2 * i + 1]);
		uint64_t len = info & UINT32_MAX;
		uint64_t others = (info ^ want) & mask;

		offsets[i] = offset;
		faults[i] = offset | (size - offset) | (size - offset - len) | (len - 1) | others |
			    -others;
		all |= faults[i];
	}
	return all;
}

static const struct gmem_region *region_of(const struct gmem *mem, uint64_t gpa)
{
	for (unsigned i = 0; i < mem->n_regions; i++)
		if (gpa - mem->regions[i].gpa < mem->regions[i].size)
			return &mem->regions[i];
	return NULL;
}

/* Return: how many come before the first that is no simple one. */
static unsigned count_simple(const uint64_t *faults, unsigned n)
{
	unsigned i = 0;

	while (i < n && faults[i] >> 63 == 0)
		i++;
	return i;
}

unsigned simple_take(struct virtq *vq, uint16_t pos, const struct simple_descs *d,
		     const uint16_t *heads, unsigned n, const struct simple_rules *rules)
{
	const struct gmem_region *r = region_of(vq->mem, le64toh(d->word[0]));
	uint64_t offsets[SIMPLE_BATCH], faults[SIMPLE_BATCH];

	if (unlikely(!r || vq->iov_capacity - vq->iov_n_used < 2 * SIMPLE_BATCH))
		return 0;
	/* Those beyond the last are none. */
	if (unlikely(judge(d->word, rules, r, offsets, faults) >> 63))
		n = count_simple(faults, n);
	for (unsigned i = 0; i < n; i++) {
		struct virtq_chain *c = virtq_chain_at(vq, (uint16_t)(pos + i));
		/* iov[-1] is the owner's. */
		struct iovec *iov = &vq->iov_pool[vq->iov_n_used + 2 * i + 1];
		uint32_t len = (uint32_t)le64toh(d->word[2 * i + 1]);

		*iov = (struct iovec){r->host + offsets[i], len};
		c->iov = iov;
		c->n_iov = 1;
		c->n_readable = 0;
		c->len = len;
		c->head = heads[i];
		c->n_descs = 1;
		c->mark = 0;
	}
	vq->iov_n_used += 2 * n;
	return n;
}
