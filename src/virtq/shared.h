/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only loads and stores of ring memory. It belongs to the guest as much as to us: every field
 * is read once into a local, which is then checked and used; the compiler is kept from reading it
 * a second time. Ring memory is little-endian (virtio 1.2, 2.7); so is a legacy guest's here, as
 * the daemon runs on the guest's own architecture.
 */
#ifndef VIRTQ_SHARED_H
#define VIRTQ_SHARED_H

#include <endian.h>
#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t shared_load16(const uint16_t *p)
{
	return le16toh(__atomic_load_n(p, __ATOMIC_RELAXED));
}

/* Partner: the driver's write barrier before it moves the avail index. */
static inline uint16_t shared_load16_acquire(const uint16_t *p)
{
	return le16toh(__atomic_load_n(p, __ATOMIC_ACQUIRE));
}

static inline void shared_store16(uint16_t *p, uint16_t v)
{
	__atomic_store_n(p, htole16(v), __ATOMIC_RELAXED);
}

/* Partner: the driver's read barrier after it has seen the used index. */
static inline void shared_store16_release(uint16_t *p, uint16_t v)
{
	__atomic_store_n(p, htole16(v), __ATOMIC_RELEASE);
}

/*
 * Order our store of an index or event word before our load of the other side's. Partner: the
 * driver's full barrier between its index and its look at our suppression word.
 */
static inline void shared_full_barrier(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Two fields of a packed ring that are written and read at once. */
typedef uint64_t __attribute__((may_alias)) shared_tail;  /* of a descriptor: len, id, flags */
typedef uint32_t __attribute__((may_alias)) shared_event; /* a suppression structure */

/* Copy one descriptor; `src` may have any alignment (indirect tables do). */
static inline void shared_read_desc(struct vring_desc *dst, const void *src)
{
	memcpy(dst, src, sizeof(*dst));
	/* From here on the guest may have changed it; the copy is all that counts. */
	__asm__ volatile("" : : : "memory");
	dst->addr = le64toh(dst->addr);
	dst->len = le32toh(dst->len);
	dst->flags = le16toh(dst->flags);
	dst->next = le16toh(dst->next);
}

/* Fill in what the second half of a packed ring's descriptor says; `next` gets the buffer's id. */
static inline void shared_split_tail(struct vring_desc *dst, uint64_t tail)
{
	dst->len = (uint32_t)tail;
	dst->next = (uint16_t)(tail >> 32);
	dst->flags = (uint16_t)(tail >> 48);
}

/* The same for a packed ring's descriptor; `next` gets the buffer's id. */
static inline void shared_read_packed(struct vring_desc *dst, const void *src)
{
	uint64_t raw[2];

	memcpy(raw, src, sizeof(raw));
	__asm__ volatile("" : : : "memory");
	dst->addr = le64toh(raw[0]);
	shared_split_tail(dst, le64toh(raw[1]));
}

/*
 * Look whether a descriptor of a packed ring has `wanted` of the flags in `mask`, and copy it then.
 * Partner: the driver's write barrier before the flags of a chain's first descriptor.
 */
static inline bool shared_poll_packed(struct vring_desc *dst, const struct vring_packed_desc *src,
				      uint16_t mask, uint16_t wanted)
{
	const shared_tail *tail = (const shared_tail *)&src->len;

	shared_split_tail(dst, le64toh(__atomic_load_n(tail, __ATOMIC_ACQUIRE)));
	if ((dst->flags & mask) != wanted)
		return false;
	dst->addr = le64toh(__atomic_load_n(&src->addr, __ATOMIC_RELAXED));
	return true;
}

/*
 * Copy a descriptor of a packed ring as it is, whosever it is: the address, and the word of length, id
 * and flags, which is read first. Partner: as above.
 * Return: the id.
 */
static inline uint16_t shared_copy_packed(uint64_t dst[2], const struct vring_packed_desc *src)
{
	dst[1] = __atomic_load_n((const shared_tail *)&src->len, __ATOMIC_ACQUIRE);
	dst[0] = __atomic_load_n(&src->addr, __ATOMIC_RELAXED);
	return (uint16_t)(le64toh(dst[1]) >> 32);
}

/*
 * Give a descriptor of a packed ring back. With `is_release` all that was written before is seen by
 * who sees it; partner: the driver's read barrier behind its look at the flags.
 */
static inline void shared_write_packed_used(struct vring_packed_desc *dst, uint16_t id,
					    uint32_t len, uint16_t flags, bool is_release)
{
	uint64_t tail = len | (uint64_t)id << 32 | (uint64_t)flags << 48;
	shared_tail *at = (shared_tail *)&dst->len;

	if (is_release)
		__atomic_store_n(at, htole64(tail), __ATOMIC_RELEASE);
	else
		__atomic_store_n(at, htole64(tail), __ATOMIC_RELAXED);
}

static inline struct vring_packed_desc_event
shared_read_event(const struct vring_packed_desc_event *src)
{
	uint32_t raw = le32toh(__atomic_load_n((const shared_event *)src, __ATOMIC_RELAXED));

	return (struct vring_packed_desc_event){(uint16_t)raw, (uint16_t)(raw >> 16)};
}

static inline void shared_write_event(struct vring_packed_desc_event *dst, uint16_t off_wrap,
				      uint16_t flags)
{
	__atomic_store_n((shared_event *)dst, htole32(off_wrap | (uint32_t)flags << 16),
			 __ATOMIC_RELAXED);
}

static inline void shared_write_used(struct vring_used_elem *dst, uint32_t id, uint32_t len)
{
	const uint64_t both = htole64(id | (uint64_t)len << 32);

	/* One store; nobody looks before the index is moved. */
	memcpy(dst, &both, sizeof(both));
}

#endif
