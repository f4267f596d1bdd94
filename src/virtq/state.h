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
	uint32_t size;		 /* entries, 2..VIRTQ_MAX_SIZE, a power of two */
	uva_t desc, avail, used; /* as the frontend sees them */
	struct gmem *mem;	 /* a reference is taken */
	uint64_t features;	 /* negotiated virtio bits */
};

/* A popped chain. */
struct virtq_chain {
	struct iovec *iov;   /* its segments in our memory; iov[-1] is free for the owner's use */
	uint32_t n_iov;	     /* 0: malformed */
	uint32_t n_readable; /* VIRTQ_DEVICE_DOES_BOTH only: how many of them the device reads */
	uint32_t len;	     /* bytes in all segments */
	uint16_t head;
	uint16_t n_descs;    /* entries of the descriptor table that it occupies */
	uint8_t scratch[12]; /* the owner's: a header in our own memory */
	uint8_t mark;	     /* the owner's; 0 when popped */
};

struct virtq {
	/* hot: read and written in every burst */
	struct vring_desc *desc;
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
	bool has_event_idx, has_indirect, has_notify_on_empty;
	bool kicks_are_on;
	bool call_once; /* since the start no call has been decided: the next one is sent */
	bool is_broken, is_started;

	/* cold */
	const char *broken_why; /* what is wrong with the ring, when is_broken */
	uint32_t size;
	struct gmem *mem;
};

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
