/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control queue (virtio 1.2, 5.1.6.5), should a frontend set up ring index 2 * pairs: QEMU,
 * Cloud Hypervisor and DPDK serve it themselves. Control thread only; no packets. Answers OK to
 * ANNOUNCE_ACK and to VQ_PAIRS_SET in range, ERR to everything else.
 */
#ifndef NET_CTRL_VQ_H
#define NET_CTRL_VQ_H

#include <stdint.h>

#include "virtq/virtq.h"

struct ctrl_vq;
struct ev_loop;

/* @n_pairs: the upper limit of VQ_PAIRS_SET. Return: 0 or -ENOMEM. */
int ctrl_vq_new(struct ctrl_vq **out, struct ev_loop *loop, unsigned n_pairs);

/* Stop it and close its fds. NULL is accepted. */
void ctrl_vq_free(struct ctrl_vq *c);

/* As the device_ops of the same names. */
int ctrl_vq_start(struct ctrl_vq *c, const struct virtq_setup *setup);
uint32_t ctrl_vq_stop(struct ctrl_vq *c);
int ctrl_vq_set_kick_fd(struct ctrl_vq *c, int fd);
void ctrl_vq_set_call_fd(struct ctrl_vq *c, int fd);

#endif
