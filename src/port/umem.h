/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet memory of one AF_XDP socket, and who owns each of its frames. Allocated once, by the
 * control thread; frames change hands in the worker alone. Nothing here knows of rings or sockets.
 *
 * Half of the frames are for receive, half for transmit, so neither can starve the other. A frame
 * is free (here), with the kernel for receive (`filled`: in the fill ring, in the driver, or in the
 * RX ring), or with the kernel for transmit (`sending`: in the TX ring, in the driver, or in the
 * completion ring). It has exactly one owner: free + filled + sending = all, always; giving a frame
 * that its taker does not have is our own mistake, and asserted.
 */
#ifndef PORT_UMEM_H
#define PORT_UMEM_H

#include <stdbool.h>
#include <stdint.h>

struct umem {
	char *area;
	uint64_t size;	     /* bytes */
	uint32_t frame_size; /* bytes, a power of two: 1 << frame_shift */
	uint32_t frame_shift;
	uint32_t n_frames;
	bool is_huge; /* in huge pages */

	/* the worker's */
	uint64_t *free; /* addresses: receive from the front, transmit from the middle on */
	uint8_t *owner; /* enum umem_owner of each frame */
	uint32_t n_free_rx, n_free_tx;
	uint32_t n_filled, n_sending;
};

/*
 * Allocate memory, in huge pages if there are some.
 * @n_frames: a multiple of 2
 * @frame_size: bytes, a power of two
 * Return: 0 or -ENOMEM.
 */
int umem_init(struct umem *u, uint32_t n_frames, uint32_t frame_size);

/* Free it. Accepts what umem_init() has not touched or has failed for, if all zero. */
void umem_fini(struct umem *u);

/* All frames are free again: the socket that had them is gone. */
void umem_reset(struct umem *u);

/* Take a free frame for the fill ring, or the TX ring. There must be one. Return: its address. */
uint64_t umem_take_rx(struct umem *u);
uint64_t umem_take_tx(struct umem *u);

/* Give back the frame that `addr` lies in, which the kernel has returned. */
void umem_give_rx(struct umem *u, uint64_t addr);
void umem_give_tx(struct umem *u, uint64_t addr);

/* Return: where an address lies in our memory. */
static inline char *umem_at(const struct umem *u, uint64_t addr)
{
	return u->area + addr;
}

#endif
