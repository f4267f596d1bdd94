/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the XDP program and the port that loads it (src/port/xdp_prog.c) both see. Read-only for the
 * program: it is set before it is loaded.
 */
#ifndef BPF_SHARED_H
#define BPF_SHARED_H

#define STEER_MAX_QUEUES 64

struct steer_config {
	unsigned char has_mac; /* only frames to `mac` are the guest's; else all are */
	unsigned char mac[6];
	unsigned long long
		owner; /* the process that loaded it (src/port/xdp_dispatch.h); 0: untold */
};

#endif
