/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest's network interface: a tap in the namespace in which the program runs, one queue for each
 * queue pair. Opened once, by the main thread. It goes away with the process unless it was there
 * before.
 */
#ifndef VGUEST_GUEST_TAP_H
#define VGUEST_GUEST_TAP_H

#include <stdint.h>

/* Each frame is preceded by the virtio-net header as the rings have it. */
#define GUEST_TAP_HDR_LEN 12

/*
 * Open the tap and set it up; the kernel leaves to the device what `features` say it does: unfinished
 * checksums and large segments.
 * @name: made if there is none
 * @features: as negotiated; what the device takes from the guest counts
 * @fds: gets n_queues non-blocking fds
 */
void guest_tap_open(const char *name, uint64_t features, unsigned n_queues, int *fds);

#endif
