/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a virtqueue consists of, for those who work on it: virtq.c, the ring layouts and the walk
 * along chains here; the bursts through virtq.h, which explains the indices.
 */
#ifndef VIRTQ_STATE_H
#define VIRTQ_STATE_H

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "mem/gmem.h"

#define VIRTQ_MAX_SIZE 32768

/* What the device does with the buffers: writes them for receive (`rx`), reads them for transmit;
 * a control queue's chains have readable ones first, then writable ones (virtio 1.2, 2.7.4). */
enum virtq_direction { VIRTQ_DEVICE_READS, VIRTQ_DEVICE_WRITES, VIRTQ_DEVICE_DOES_BOTH };

struct virtq_setup {
	uint32_t
		size; /* entries, 1..VIRTQ_MAX_SIZE; a power of two, unless it is a packed ring's */
	/* As the frontend sees them; of a packed ring, avail and used are the driver's and the device's
	 * event suppression structures. */
	uva_t desc, avail, used;
	struct gmem *mem;	      /* a reference is taken */
	uint64_t features;	      /* negotiated virtio bits */
	uint32_t base;		      /* where the frontend thinks that a packed ring stands */
	struct journal_ring *journal; /* a packed ring's; it stays the caller's */
};

/* A popped chain. */
struct virtq_chain {
	struct iovec *iov;   /* its segments in our memory; iov[-1] is free for the owner's use */
	uint32_t n_iov;	     /* 0: malformed */
	uint32_t n_readable; /* VIRTQ_DEVICE_DOES_BOTH only: how many of them the device reads */
	uint32_t len;	     /* bytes in all segments */
	uint16_t head;	     /* what names it in the used ring: in a packed ring, the buffer's id */
	uint16_t n_descs;    /* entries of the descriptor table that it occupies */
	uint8_t scratch[12]; /* the owner's: a header in our own memory */
	uint8_t mark;	     /* the owner's; 0 when popped */
};

/*
 * A packed ring (virtio 1.2, 2.8). A *place* is a slot together with the wrap bit of the lap that it
 * is meant in: slots of laps with wrap bit 1 are 0..size - 1, of those with 0, size..2 * size - 1.
 */
struct packed_ring {
	struct vring_packed_desc *desc;
	struct vring_packed_desc_event *driver, *device;
	struct journal_ring *journal;
	uint32_t size;
	uint32_t avail_at;  /* place of the next head to pop, last_avail */
	uint32_t seen_at;   /* place of the next head that has not been seen, avail_idx */
	uint32_t used_at;   /* place of the next used descriptor, published_idx */
	uint32_t called_at; /* place of the first used descriptor since the last call, called_idx */
	uint32_t n_uncalled; /* slots published since then, at most two laps */
};

struct virtq {
	/* hot: read and written in every burst */
	struct vring_desc *desc; /* these three: a split ring's */
	struct vring_avail *avail;
	struct vring_used *used;
	struct virtq_chain *chains; /* [position & mask] */
	struct iovec *iov_pool;
	uint32_t iov_capacity, iov_n_used;
	uint16_t mask;
	uint16_t avail_idx;	/* the guest's, as last read */
	uint16_t last_avail;	/* next head to pop */
	uint16_t used_idx;	/* next head to complete */
	uint16_t published_idx; /* what the guest sees */
	uint16_t called_idx;	/* what the guest has been told of */
	uint16_t write_flag;	/* VRING_DESC_F_WRITE when the device writes */
	bool does_both;		/* the chains decide, VIRTQ_DEVICE_DOES_BOTH */
	bool is_packed;
	bool has_event_idx, has_indirect, has_notify_on_empty;
	bool kicks_are_on;
	bool call_once; /* since the start no call has been decided: the next one is sent */
	bool is_broken, is_started;
	struct packed_ring packed;

	/* cold */
	const char *broken_why; /* what is wrong with the ring, when is_broken */
	uint32_t size;
	struct gmem *mem;
};

/*
 * Translate a part of a ring with its full extent.
 * @err: gets -EINVAL misaligned, -EFAULT not mapped
 * Return: the part, or NULL.
 */
void *virtq_map_part(const struct gmem *mem, uva_t at, uint64_t len, uint64_t align, int *err);

/* Mark the queue broken. @why: a constant text. The first reason stays. */
static inline void virtq_break(struct virtq *vq, const char *why)
{
	if (vq->is_broken)
		return;
	vq->is_broken = true;
	vq->broken_why = why;
}

/* Return: whether bursts may touch the queue. */
static inline bool virtq_is_live(const struct virtq *vq)
{
	return vq->is_started && !vq->is_broken;
}

/* Return: the chain at a popped position. */
static inline struct virtq_chain *virtq_chain_at(const struct virtq *vq, uint16_t pos)
{
	return &vq->chains[pos & vq->mask];
}

/* Return: heads popped and not completed. */
static inline uint16_t virtq_n_in_flight(const struct virtq *vq)
{
	return (uint16_t)(vq->last_avail - vq->used_idx);
}

/* Return: heads completed and not published. */
static inline uint16_t virtq_n_unpublished(const struct virtq *vq)
{
	return (uint16_t)(vq->used_idx - vq->published_idx);
}

#endif
