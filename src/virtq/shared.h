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

static inline void shared_write_used(struct vring_used_elem *dst, uint32_t id, uint32_t len)
{
	__atomic_store_n(&dst->id, htole32(id), __ATOMIC_RELAXED);
	__atomic_store_n(&dst->len, htole32(len), __ATOMIC_RELAXED);
}

#endif
