/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What only the split ring does (virtio 1.2, 2.7): where heads are found, how used entries and
 * suppression words are written. Private to `virtq`; the rules of chains are in chain.h, the
 * indices and their life in virtq.c.
 */
#ifndef VIRTQ_SPLIT_H
#define VIRTQ_SPLIT_H

#include "virtq/state.h"

/* Translate the ring's parts with their full extents. Return: 0, -EINVAL misaligned, -EFAULT. */
int split_map(struct virtq *vq, const struct virtq_setup *setup);

/* Return: the used index in the ring. */
uint16_t split_used_idx(const struct virtq *vq);

/* Return: the guest's avail index; what it covers may be read after the call. */
uint16_t split_avail_idx(const struct virtq *vq);

/* Pop `n` heads that are there, to positions last_avail on. Return: how many had room, 0..n. */
unsigned split_pop(struct virtq *vq, unsigned n);

void split_complete(struct virtq *vq, uint16_t pos, uint32_t head, uint32_t len);

/* The heads of the `n` chains from position `pos` on, with length 0. */
void split_complete_unwritten(struct virtq *vq, uint16_t pos, unsigned n);
void split_publish(struct virtq *vq);

/* Return: whether the guest wants a call for positions `from` (exclusive below) to `to`. */
bool split_call_wanted(const struct virtq *vq, uint16_t from, uint16_t to);

void split_kicks_off(struct virtq *vq);
void split_kicks_on(struct virtq *vq);

#endif
