/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration as a value: immutable once config_load() (config.h) has checked it as a whole.
 */
#ifndef CONFIG_TYPES_H
#define CONFIG_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "net/netdev.h"
#include "port/port.h"

struct config {
	unsigned n_pairs; /* 1..16 */
	bool has_mac;
	uint8_t mac[6];
	uint16_t mtu; /* 68..65535; 0: not configured */
	struct port_config port;
	struct netdev_pair_config pairs[DEVICE_MAX_PAIRS];
	enum log_level log_level;
	mode_t socket_mode;
	char socket_group[64]; /* "": the process's own */
	char state_path[256];  /* "": beside the socket */
	bool offer_config;
};

/* What the command line says that bears on the configuration; NULL or 0 where it says nothing. */
struct config_overrides {
	const char *file;	 /* --config */
	const char *const *sets; /* --set, in order: "KEY=VALUE" */
	unsigned n_sets;
	const char *port;      /* --port: "tap:vm0", "loopback", "null" */
	unsigned n_pairs;      /* --queue-pairs */
	const char *log_level; /* --log-level */
};

#endif
