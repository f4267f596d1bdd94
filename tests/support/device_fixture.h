/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A vhost-user device whose rings are a test's: what the device asks of their owner is recorded,
 * and answered as the test has set it up. Messages are handed over as the server would, whose
 * business it is to close the fds that nobody took.
 */
#ifndef SUPPORT_DEVICE_FIXTURE_H
#define SUPPORT_DEVICE_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "support/expect.h"
#include "support/fds.h"
#include "support/guest.h"
#include "vhost/device.h"

#define DX_MAX_OPS 512
/* What SET_VRING_ADDR says of ring i, as far as a device that never looks can tell. */
#define DX_DESC(i)  (0x10000ULL * ((i) + 1))
#define DX_AVAIL(i) (DX_DESC(i) + 0x4000)
#define DX_USED(i)  (DX_DESC(i) + 0x8000)

enum dx_kind {
	DX_START,
	DX_STOP,
	DX_FORGET,
	DX_ENABLE,
	DX_KICK,
	DX_CALL,
	DX_ERR,
	DX_FEATURES,
	DX_N_KINDS
};

struct dx_op {
	enum dx_kind kind;
	unsigned ring;
	int64_t value;		  /* fd, enabled, features */
	struct device_ring setup; /* DX_START */
};

/* A ring as its owner knows it. */
struct dx_ring {
	bool is_started, is_enabled;
	int fds[3];	   /* kick, call, err; -1: none */
	uint32_t position; /* what ring_stop answers */
	int start_err, kick_err;
};

struct device_fixture {
	struct device_config cfg;
	struct device *device;
	unsigned n_rings;
	struct dx_op ops[DX_MAX_OPS];
	unsigned n_ops;
	struct dx_ring rings[DEVICE_MAX_RINGS];
	int features_err;
	struct guest guest;
	struct log_capture lines;
	unsigned n_fds; /* before the test */

	uint32_t flags; /* of the messages that are sent */
	struct device_reply reply;
};

extern struct device_fixture dx;

/* Before and after each test: a device of two pairs, protocol features not negotiated. */
void dx_setup(void);
void dx_teardown(void);

/* Make it anew from dx.cfg. */
void dx_renew(void);

/* Forget what was recorded. */
void dx_forget(void);

/* Return: how many operations of a kind were recorded, of this ring (-1: any). */
unsigned dx_count(enum dx_kind kind, int ring);

/* Return: the last one recorded. */
const struct dx_op *dx_last(enum dx_kind kind, int ring);

/* ---- messages; each returns what device_handle() does, with its answer in dx.reply ---- */

/* The fds become the message's. A reply is sent at once. */
int dx_send(uint32_t request, const void *payload, uint32_t size, const int *fds, unsigned n_fds);

int dx_send_u64(uint32_t request, uint64_t value);
int dx_send_state(uint32_t request, uint32_t index, uint32_t num);
int dx_send_addr(uint32_t index);
/* @fd: -1: none */
int dx_send_fd(uint32_t request, uint64_t value, int fd);
/* The guest's table, by `n` of its regions. */
int dx_send_mem(unsigned n);

/* Return: a fresh eventfd. */
int dx_eventfd(void);

/* Negotiate, with REPLY_ACK and with the protocol features bit or without. */
void dx_negotiate(uint64_t features, bool has_protocol_features);

/* Everything for a ring but KICK; and that, too. */
void dx_set_up(uint32_t ring);
void dx_start(uint32_t ring);

/* The answer is an ack. Return: whether it says that the message was done. */
bool dx_is_acked(void);

#endif
