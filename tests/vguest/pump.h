/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One queue pair of the guest: a thread that moves frames between a queue of the guest's tap and the
 * two rings, as a network driver does, and sleeps when there is nothing to move.
 *
 * A turn: take back what the device has sent; read frames from the tap straight into transmit buffers
 * and offer each at once; write received frames straight from their buffers to the tap, which runs the
 * guest's network stack on them, and offer the buffers again. Interrupts ("calls") are off while there
 * are turns with work, as in NAPI. Then they are turned on, the rings are looked at once more, and the
 * thread sleeps until a call, the tap or the end. For transmitted frames a call is asked for after
 * three quarters of what is on its way, as Linux does; at the first one while there is no free buffer,
 * and then the tap is left alone: its queue is the guest's, and fills as a real one does.
 *
 * The thread owns both rings and the buffers. The main thread starts and ends it, reads its counters,
 * and connects to a new backend beside it: the rings' memory and eventfds stay what they are.
 * Nothing blocks but poll().
 */
#ifndef VGUEST_PUMP_H
#define VGUEST_PUMP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/nic.h"

/* Counters of a pump, as the daemon's are called where they mean the same. */
#define PUMP_COUNTERS(X)                                                                           \
	X(tx_packets) /* read from the tap and offered */                                          \
	X(tx_bytes)   /* without the virtio-net header, as all bytes */                            \
	X(tx_waits)   /* times that no transmit buffer was free */                                 \
	X(rx_packets) /* written to the tap */                                                     \
	X(rx_bytes)                                                                                \
	X(rx_dropped) /* refused by the tap */                                                     \
	X(kicks)      /* sent */                                                                   \
	X(calls)      /* received, of both rings */                                                \
	X(sleeps)

#define PUMP_MEMBER(name) uint64_t name;
/* Written by the pump's thread, read by any; whole, but not all of one instant. */
struct pump_counters {
	PUMP_COUNTERS(PUMP_MEMBER)
};

struct pump {
	struct nic *nic;
	struct driver_ring *rx, *tx;
	int tap_fd;
	bool is_busy;	     /* looks all the time and never sleeps */
	int stop_fd;	     /* eventfd: the end */
	bool is_stopping;    /* the same for one who looks all the time; atomic */
	uint64_t *free_bufs; /* transmit buffers, guest-physical; the one used last is on top */
	unsigned n_free_bufs;
	uint32_t rx_buf_len;
	bool was_full; /* the last look at the tap found no transmit buffer */
	pthread_t thread;
	struct pump_counters counters;
};

/* Return: bytes of guest memory that the buffers of a pair take, rings of `size`. */
uint64_t pump_memory(uint32_t size);

/* Make the buffers of a pair, and offer those for receiving. @nic: made, perhaps not started yet */
void pump_init(struct pump *p, struct nic *nic, unsigned pair, int tap_fd, bool is_busy);

void pump_start(struct pump *p);

/* Ends the thread. Rings, buffers and the tap's fd stay. */
void pump_stop(struct pump *p);

#endif
