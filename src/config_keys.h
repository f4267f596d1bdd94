/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of the configuration: one table says how each is called, where it may stand, what it may
 * be and which field holds it. A key's text becomes a value here and nowhere else, so the file,
 * --set, the options and a live change all judge alike. Private to the config*.c and options.c;
 * control thread only.
 */
#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "config_types.h"

enum config_key_id {
	KEY_QUEUE_PAIRS,
	KEY_MAC,
	KEY_MTU,
	KEY_BATCH,
	KEY_LOG_LEVEL,
	KEY_SOCKET_MODE,
	KEY_SOCKET_GROUP,
	KEY_STATE_PATH,
	KEY_OFFER_CONFIG,
	KEY_PORT_TYPE,
	KEY_PORT_IFNAME,
	KEY_PORT_FD,
	KEY_PORT_BRIDGE,
	KEY_PORT_SNDBUF,
	KEY_PORT_CREATE,
	KEY_PORT_SOURCE_SIZE,
	KEY_PORT_QUEUES,
	KEY_PORT_MODE,
	KEY_PORT_ZERO_COPY,
	KEY_PORT_FRAMES,
	KEY_PORT_FRAME_SIZE,
	KEY_PORT_STEER,
	KEY_PORT_ATTACH,
	KEY_ADAPTIVE_RX,
	KEY_ADAPTIVE_TX,
	KEY_RX_USECS,
	KEY_RX_FRAMES,
	KEY_TX_USECS,
	KEY_TX_FRAMES,
	KEY_TX_AT_RX,
	KEY_POLL_USECS,
	KEY_COPY_BREAK,
	KEY_CPU,
	N_CONFIG_KEYS
};

/* Where a key may stand: outside of the queue sections, inside of one, or both. */
enum config_place { CONFIG_GLOBAL = 1, CONFIG_IN_QUEUE = 2 };

/* Longest text of a value, with its NUL. */
#define CONFIG_TEXT_SIZE 256
/* Room for a value as the file writes it: in quotes, each character behind a backslash. */
#define CONFIG_FORMAT_SIZE (2 * CONFIG_TEXT_SIZE + 4)
/* Room for a key's dotted path. */
#define CONFIG_PATH_SIZE 48
/* Room for why a value is refused. */
#define CONFIG_WHY_SIZE 256

struct config_key_type;

struct config_key {
	const char *section; /* "": none; within "queue N" the section inside of it */
	const char *name;
	const struct config_key_type *type;
	long min, max;			 /* numbers and lengths */
	const struct port_ops *ports[2]; /* the only port types that know it; none: all */
	const char *const *choices;	 /* the words that it can be, up to a NULL */
	bool is_list;			 /* values in braces */
	size_t offset, size; /* the field, in struct config or struct netdev_pair_config */
	bool is_per_pair;    /* in struct netdev_pair_config */
	bool is_live;	     /* can change at run time */
	unsigned places;     /* enum config_place */
};

extern const struct config_key config_keys[N_CONFIG_KEYS];

/*
 * Find a key by its dotted path ("port.ifname", "queue.0.coalesce.rx-usecs").
 * @queue: gets the index of the queue pair, -1: the key is a global one
 * Return: the key; -ENOENT unknown; -ERANGE no such queue can exist.
 */
int config_key_find(const char *path, int *queue);

/* Return: whether a key means something to a type of port. */
bool config_key_fits(const struct config_key *key, const struct port_ops *port);

/* Write the dotted path of a key; `queue` as above, `size` >= CONFIG_PATH_SIZE. */
void config_key_path(enum config_key_id id, int queue, char *path, size_t size);

/*
 * Check the text of a value and store it: in `cfg`, or in `pair` when the key is a pair's.
 * @why: gets the rest of a sentence that begins with the key
 * Return: 0; -EINVAL with nothing stored.
 */
int config_key_store(enum config_key_id id, struct config *cfg, struct netdev_pair_config *pair,
		     const char *text, char *why, size_t why_size);

/*
 * Write a value as the file would have it.
 * @size: >= CONFIG_FORMAT_SIZE
 * Return: false when it is not configured and has no default; the text is then empty.
 */
bool config_key_format(enum config_key_id id, const struct config *cfg,
		       const struct netdev_pair_config *pair, char *text, size_t size);

/*
 * Parse a decimal number, digits only, without a leading zero.
 * Return: 0; -EINVAL when it is no such number or outside of `min` to `max`, which are >= 0.
 */
int config_parse_number(const char *text, long min, long max, long *number);

/*
 * Judge interrupt coalescing of one direction: usecs and frames are both zero or both not.
 * @direction: "rx" or "tx", for `why`
 * Return: 0; -EINVAL with `why`.
 */
int config_check_moder(const struct moder_params *params, const char *direction, char *why,
		       size_t why_size);

#endif
