/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A virtqueue, device side, split or packed (virtio 1.2, 2.7 and 2.8). One worker uses it; start, stop and the change of
 * its memory happen while that worker is parked. Nothing blocks, allocates or logs between start
 * and stop. It knows nothing of sockets, eventfds or ports: "call" and "kick" are answers here,
 * not system calls.
 *
 *          used_idx            last_avail           avail_idx
 *             |                    |                    |
 *   completed |  popped, in flight | offered, untouched | the guest's to fill
 *   ----------+--------------------+--------------------+-----------
 *
 * The three indices are ours; ring memory is only ever told of them. Heads are completed in the
 * order in which they were popped, whatever the port does, so one position counts for both rings:
 * `used_idx` alone says where to go on after a stop, a crash or a new memory table (invariant 5),
 * and what is in flight is forgotten by moving `last_avail` back.
 *
 * In a packed ring they count chains too. Its memory holds none of them: packed.h tells where its
 * heads are, and journal.h where the position is kept instead.
 *
 * virtq_pop() takes heads, walks and checks their chains, and keeps each in `chains` at its
 * position. A malformed chain is popped as one with n_iov = 0: its owner completes it with length
 * 0 and goes on. A ring that is wrong as such (index jumps, head out of range) breaks the queue:
 * `is_broken` stays set until the next start, and nothing is popped any more.
 *
 * Completed heads become visible to the guest by virtq_publish(), all at once (invariant 3).
 */
#ifndef VIRTQ_VIRTQ_H
#define VIRTQ_VIRTQ_H

#include "virtq/state.h"

/* Prepare a stopped queue. */
void virtq_init(struct virtq *vq, enum virtq_direction direction);

/*
 * Start at the used index that is in the ring, or where packed_resume() finds that a packed one
 * stands, else it is broken: what was in flight before is offered again.
 * Also translates the addresses of a started queue again (new memory table): what was in flight is
 * forgotten, the position is kept.
 * Return: 0; -EFAULT when a part of the ring is not mapped, -EINVAL when it is misaligned, -ENOMEM.
 * On error the queue is stopped, and its position is what it was.
 */
int virtq_start(struct virtq *vq, const struct virtq_setup *setup);

/* Publish what is complete, forget what is in flight, let go of the memory. Accepts a stopped one.
 * Return: the base to resume from. */
uint32_t virtq_stop(struct virtq *vq);

/* Return: where the ring stands, as frontends put it: the used index; slot and wrap bit, in both
 * halves, for a packed ring. */
uint32_t virtq_base(const struct virtq *vq);

/* An index into the ring, as its guest knows it: of a packed ring, a slot and the lap's wrap bit. */
struct virtq_index {
	uint16_t idx;
	bool wrap;
};

/* Tell the indices that are drawn above, for those who look at the ring; `used` is what is published. */
void virtq_indices(const struct virtq *vq, struct virtq_index *used, struct virtq_index *next,
		   struct virtq_index *avail);

/* Return: whether that is what a frontend means by `base`. */
bool virtq_stands_at(const struct virtq *vq, uint32_t base);

/* Return: whether the ring may well have never been used. */
bool virtq_is_at_start(const struct virtq *vq);

/*
 * Look how far the guest has got (virtio 1.2, 2.7.6).
 * Return: the number of heads that can be popped, 0..size, of a packed ring not always all of them;
 * 0 when the queue breaks on it.
 */
uint16_t virtq_n_avail(struct virtq *vq);

/*
 * Pop at most `max` heads (virtio 1.2, 2.7.5); they are at positions last_avail - n to last_avail.
 * Return: how many, n; fewer than there are when the segments of what is in flight fill the pool.
 */
unsigned virtq_pop(struct virtq *vq, unsigned max);

/* Hand the newest heads back, down to position `pos`. */
void virtq_unpop(struct virtq *vq, uint16_t pos);

/* Complete the oldest popped head. @len: bytes that the device wrote (virtio 1.2, 2.7.8). */
void virtq_complete(struct virtq *vq, uint32_t len);

/* Complete the `n` oldest popped heads, to which the device wrote nothing. */
void virtq_complete_unwritten(struct virtq *vq, unsigned n);

/* Show the guest all that is complete. Return: how many heads that is, 0..size. */
uint16_t virtq_publish(struct virtq *vq);

/*
 * Ask whether the guest wants a call for what is published since virtq_called()
 * (virtio 1.2, 2.7.7). With EVENT_IDX always true once after a start.
 */
bool virtq_call_needed(struct virtq *vq);

/* The call was sent, or it was decided that the guest needs none. */
void virtq_called(struct virtq *vq);

/* Ask the guest not to kick (virtio 1.2, 2.7.10). A kick may still come. */
void virtq_kicks_off(struct virtq *vq);

/*
 * Ask the guest to kick when it offers more than is seen by now.
 * Return: true when it has offered more in the meantime: look again instead of sleeping.
 */
bool virtq_kicks_on(struct virtq *vq);

#endif
