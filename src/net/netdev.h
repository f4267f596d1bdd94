/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network device: one port, one worker for each queue pair, and the vhost-user device's hands
 * on them (`netdev_device_ops`). Control thread only: whatever touches a worker's queues parks it
 * first and unparks it afterwards, so a queue's memory, fds and parameters never change under a
 * burst. Parking takes at most one turn.
 */
#ifndef NET_NETDEV_H
#define NET_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/stats.h"
#include "net/params.h"
#include "port/port.h"
#include "vhost/device.h"
#include "virtq/virtq.h"

struct ev_loop;
struct netdev;

struct netdev_pair_config {
	struct pair_params params;
	int cpu; /* -1: not pinned */
};

struct netdev_config {
	const struct port_config *port;
	unsigned n_pairs;
	const struct netdev_pair_config *pairs;
};

/* A ring as `vhost-user-ctl rings` shows it. */
struct netdev_ring_info {
	bool is_started, is_enabled, is_broken, is_packed;
	uint32_t size;		  /* entries; 0 before the first start */
	struct virtq_index avail; /* the guest's, as last seen */
	struct virtq_index next;  /* the next head to take */
	struct virtq_index used;  /* the next used entry to publish */
	uint16_t n_in_flight;	  /* heads taken and not yet in the used ring */
	uint32_t n_uncalled;	  /* completions that the guest has not been told of */
	uint32_t call_usecs;	  /* how long they may wait, as it is now */
	bool kicks_on;
};

/* The operations that the vhost-user device needs; their `arg` is the netdev. */
extern const struct device_ops netdev_device_ops;

/*
 * Open the port, start the workers.
 * @loop: the control thread's
 * Return: 0; or a negative errno after one log line, with nothing left behind.
 */
int netdev_open(struct netdev **out, const struct netdev_config *cfg, struct ev_loop *loop);

/*
 * Keep where packed rings stand in the file at `path`, for a process that comes after this one, and
 * go on where that file says. Before any frontend is served. Until then, and without, it is kept in
 * memory, for a frontend that connects again.
 * Return: 0; or a negative errno after one log line.
 */
int netdev_use_state_file(struct netdev *n, const char *path);

/* Nobody will ask any more where rings stand: the state file goes with this process. */
void netdev_forget_rings(struct netdev *n);

/* Have `on_link` told of the port's link: now, and whenever it changes. Control thread. */
void netdev_watch_link(struct netdev *n, void (*on_link)(void *arg, bool is_up), void *arg);

/* Stop the workers, close the port. NULL is accepted. */
void netdev_close(struct netdev *n);

/* Return: the virtio-net feature bits that device and port offer, for struct device_config. */
uint64_t netdev_features(const struct netdev *n);

/* "tap:vm0 (created)", for the ready line and `status`. */
void netdev_describe_port(const struct netdev *n, char *text, size_t size);

/* Return: the number of queue pairs. */
unsigned netdev_n_pairs(const struct netdev *n);

/* Return: the counters of a pair, to be read with stat_read(). */
const struct queue_stats *netdev_stats(const struct netdev *n, unsigned pair);

/* Copy the parameters that a pair runs with. */
void netdev_get_params(const struct netdev *n, unsigned pair, struct pair_params *params);

/* Give a pair new parameters; they hold from its next turn on. */
void netdev_set_params(struct netdev *n, unsigned pair, const struct pair_params *params);

/* Look at ring 2 * pair (rx) or 2 * pair + 1 (tx). Parks the pair's worker for the moment. */
void netdev_ring_info(struct netdev *n, unsigned ring, struct netdev_ring_info *info);

/*
 * Look at the packet memory that the port has for a pair. Parks its worker for the moment.
 * Return: whether it has any.
 */
bool netdev_port_memory(struct netdev *n, unsigned pair, struct port_memory *m);

/* Bring the counters up to date that the kernel keeps for the port. */
void netdev_refresh_stats(struct netdev *n);

#endif
