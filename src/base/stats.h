/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of a queue pair. One thread writes (the pair's worker), any thread reads; each value is
 * a relaxed atomic, so a reader sees every counter whole but not all of them at one instant.
 * The list below is the only place where a counter is named: the enum, the control protocol and the
 * man page follow it. `rx` is towards the guest, `tx` from it.
 *
 * Bytes count the frame without the virtio-net header. rx_dropped and tx_dropped are totals that
 * include rx_oversize and tx_malformed; rx_no_buffer and tx_port_full count waits, in which nothing
 * is lost.
 */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include <stdint.h>

#include "base/util.h"

#define QUEUE_COUNTERS(X)                                                                          \
	X(rx_packets, "frames delivered to the guest")                                             \
	X(rx_bytes, "bytes of these frames")                                                       \
	X(rx_batches, "bursts that delivered at least one frame")                                  \
	X(rx_no_buffer, "times that frames waited for guest buffers")                              \
	X(rx_oversize, "frames dropped: larger than all the buffers that the guest can offer")     \
	X(rx_dropped, "frames dropped towards the guest, whatever the reason")                     \
	X(tx_packets, "frames taken from the guest and sent by the port")                          \
	X(tx_bytes, "bytes of these frames")                                                       \
	X(tx_batches, "bursts that sent at least one frame")                                       \
	X(tx_dropped, "frames dropped from the guest, whatever the reason")                        \
	X(tx_malformed, "frames dropped: bad descriptor chain or virtio-net header")               \
	X(tx_port_full, "times that the port took no more and the guest's frames waited")          \
	X(used_publishes, "updates of a used index")                                               \
	X(calls, "interrupts sent to the guest")                                                   \
	X(calls_suppressed, "interrupts not sent because the guest had asked for none")            \
	X(calls_coalesced, "publishes whose interrupt was put off by coalescing")                  \
	X(calls_timer, "interrupts sent because the coalescing time was over")                     \
	X(kicks, "kicks received from the guest")                                                  \
	X(wakeups, "times that the worker woke from sleep")                                        \
	X(ring_errors, "faults found in a ring: bad receive chains, and rings stopped as broken")  \
	X(tap_eagain, "times that the tap took no more frames for now")                            \
	X(xdp_fill_empty,                                                                          \
	  "times that the kernel had no memory for a received frame, and dropped it")              \
	X(xdp_rx_ring_full, "frames that the kernel dropped: the socket's RX ring was full")       \
	X(xdp_rx_invalid, "receive buffers that the kernel refused")                               \
	X(xdp_rx_dropped, "frames that the kernel dropped: too large, or no memory for them")      \
	X(xdp_tx_invalid, "frames that the kernel refused to send")

enum queue_counter {
#define X(name, help) STAT_##name,
	QUEUE_COUNTERS(X)
#undef X
		N_QUEUE_COUNTERS
};

struct queue_stats {
	uint64_t value[N_QUEUE_COUNTERS];
} cacheline_align;

/* Add `n` to a counter. Only the thread that owns `stats` may call it. */
static inline void stat_add(struct queue_stats *stats, enum queue_counter counter, uint64_t n)
{
	uint64_t *value = &stats->value[counter];

	__atomic_store_n(value, __atomic_load_n(value, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

/* Return: the value of a counter. Any thread. */
uint64_t stat_read(const struct queue_stats *stats, enum queue_counter counter);

/* Return: the name of a counter, as `vhost-user-ctl stats` prints it. */
const char *stat_name(enum queue_counter counter);

/* Return: one line that says what a counter counts. */
const char *stat_help(enum queue_counter counter);

#endif
