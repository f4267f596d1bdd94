/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values come from the file, --set and the other options, each checked as it comes and kept as text
 * in a draft, the later over the earlier. Then the draft is laid out in a struct config, what is
 * global below what a queue section says, and judged as a whole.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "config_file.h"
#include "config_keys.h"

/* Where a value comes from: a line of the file, or an option. */
struct origin {
	const char *option; /* NULL: the file */
	const char *text;   /* the option's value, or the file's name */
	int line;
};

/* Room for an origin in a message. */
#define ORIGIN_SIZE 256

struct given {
	bool is_given;
	struct origin origin;
	char text[CONFIG_TEXT_SIZE];
};

struct draft {
	const char *file;
	struct given global[N_CONFIG_KEYS];
	struct given queue[DEVICE_MAX_PAIRS][N_CONFIG_KEYS];
	struct origin queue_origin[DEVICE_MAX_PAIRS]; /* of the section itself */
	bool queue_is_given[DEVICE_MAX_PAIRS];
	/* values go here to be checked, and are forgotten */
	struct config scratch;
	struct netdev_pair_config scratch_pair;
};

static const char *origin_format(const struct origin *o, char *text, size_t size)
{
	if (o->option)
		snprintf(text, size, "%s %.128s", o->option, o->text);
	else
		snprintf(text, size, "%s:%d", o->text, o->line);
	return text;
}

static int draft_refuse(const struct origin *o, const char *path, const char *why)
{
	char where[ORIGIN_SIZE];

	log_errx("%s: %s %s", origin_format(o, where, sizeof(where)), path, why);
	return -EINVAL;
}

static int draft_assign(struct draft *d, int queue, enum config_key_id id, const char *text,
			const struct origin *origin)
{
	struct given *g = queue < 0 ? &d->global[id] : &d->queue[queue][id];
	char why[CONFIG_WHY_SIZE], path[CONFIG_PATH_SIZE];

	if (config_key_store(id, &d->scratch, &d->scratch_pair, text, why, sizeof(why)) < 0) {
		config_key_path(id, queue, path, sizeof(path));
		return draft_refuse(origin, path, why);
	}
	g->is_given = true;
	g->origin = *origin;
	snprintf(g->text, sizeof(g->text), "%s", text);
	return 0;
}

static int draft_take_queue(void *arg, int queue, int line)
{
	struct draft *d = arg;

	d->queue_is_given[queue] = true;
	d->queue_origin[queue] = (struct origin){.text = d->file, .line = line};
	return 0;
}

static int draft_take_value(void *arg, int queue, enum config_key_id id, const char *text, int line)
{
	struct draft *d = arg;
	struct origin origin = {.text = d->file, .line = line};

	return draft_assign(d, queue, id, text, &origin);
}

static int draft_take_file(struct draft *d, const char *file)
{
	struct config_sink sink = {draft_take_queue, draft_take_value, d};

	d->file = file;
	return file ? config_file_read(file, &sink) : 0;
}

/* "KEY=VALUE" */
static int draft_take_set(struct draft *d, const char *set)
{
	struct origin origin = {.option = "--set", .text = set};
	size_t len = strcspn(set, "=");
	char path[CONFIG_PATH_SIZE];
	int queue;

	if (set[len] == '\0')
		return draft_refuse(&origin, "must be", "KEY=VALUE, such as --set batch=32");
	/* What does not fit is too long for any key. */
	snprintf(path, sizeof(path), "%.*s", (int)min_of(len, sizeof(path)), set);

	int id = config_key_find(path, &queue);

	if (id == -ERANGE)
		return draft_refuse(&origin, path, "names no queue pair: there are at most 16");
	if (id < 0)
		return draft_refuse(&origin, path, "is an unknown key: see vhost-user-xdp.conf(5)");
	return draft_assign(d, queue, (enum config_key_id)id, set + len + 1, &origin);
}

/* "TYPE" or "TYPE:IFNAME": replaces both of what was said before. */
static int draft_take_port(struct draft *d, const char *spec)
{
	struct origin origin = {.option = "--port", .text = spec};
	const char *colon = strchr(spec, ':');
	char type[CONFIG_TEXT_SIZE];

	snprintf(type, sizeof(type), "%.*s", (int)strcspn(spec, ":"), spec);
	d->global[KEY_PORT_IFNAME].is_given = false;

	int err = draft_assign(d, -1, KEY_PORT_TYPE, type, &origin);

	if (!err && colon)
		err = draft_assign(d, -1, KEY_PORT_IFNAME, colon + 1, &origin);
	return err;
}

static int draft_take_pairs(struct draft *d, unsigned n_pairs)
{
	char text[16];
	struct origin origin = {.option = "--queue-pairs", .text = text};

	snprintf(text, sizeof(text), "%u", n_pairs);

	int err = draft_assign(d, -1, KEY_QUEUE_PAIRS, text, &origin);

	/* `text` goes away. */
	d->global[KEY_QUEUE_PAIRS].origin.text = d->global[KEY_QUEUE_PAIRS].text;
	return err;
}

static int draft_take_all(struct draft *d, const struct config_overrides *over)
{
	int err = draft_take_file(d, over->file);

	for (unsigned i = 0; i < over->n_sets && !err; i++)
		err = draft_take_set(d, over->sets[i]);
	if (!err && over->port)
		err = draft_take_port(d, over->port);
	if (!err && over->n_pairs > 0)
		err = draft_take_pairs(d, over->n_pairs);
	if (!err && over->log_level) {
		struct origin origin = {.option = "--log-level", .text = over->log_level};

		err = draft_assign(d, -1, KEY_LOG_LEVEL, over->log_level, &origin);
	}
	return err;
}

static void config_set_defaults(struct config *cfg)
{
	*cfg = (struct config){
		.n_pairs = 1,
		.port = {.fd = -1, .create = true, .frames = 4096, .frame_size = 2048},
		.log_level = LOG_LEVEL_INFO,
		.socket_mode = 0660,
	};
	for (unsigned i = 0; i < DEVICE_MAX_PAIRS; i++)
		cfg->pairs[i] = (struct netdev_pair_config){
			.params = {.tx_at_rx = true, .batch = 64},
			.cpu = -1,
		};
}

/* Store what is given; its text was accepted before. */
static void given_apply(const struct given *g, enum config_key_id id, struct config *cfg,
			struct netdev_pair_config *pair)
{
	char why[CONFIG_WHY_SIZE];

	if (g->is_given)
		config_key_store(id, cfg, pair, g->text, why, sizeof(why));
}

/* Every pair gets what is global, those that do not exist too: a reload may look at them. */
static void draft_lay_out(const struct draft *d, struct config *cfg)
{
	config_set_defaults(cfg);
	for (int i = 0; i < N_CONFIG_KEYS; i++) {
		enum config_key_id id = (enum config_key_id)i;

		for (unsigned pair = 0; pair < DEVICE_MAX_PAIRS; pair++) {
			given_apply(&d->global[id], id, cfg, &cfg->pairs[pair]);
			given_apply(&d->queue[pair][id], id, cfg, &cfg->pairs[pair]);
		}
	}
}

/* Return: where queue section or queue key `queue` stands first, or NULL when there is none. */
static const struct origin *draft_find_queue(const struct draft *d, unsigned queue)
{
	for (int id = 0; id < N_CONFIG_KEYS; id++)
		if (d->queue[queue][id].is_given)
			return &d->queue[queue][id].origin;
	return d->queue_is_given[queue] ? &d->queue_origin[queue] : NULL;
}

static int draft_check_queues(const struct draft *d, const struct config *cfg)
{
	char where[ORIGIN_SIZE];

	for (unsigned i = cfg->n_pairs; i < DEVICE_MAX_PAIRS; i++) {
		const struct origin *o = draft_find_queue(d, i);

		if (!o)
			continue;
		log_errx("%s: queue %u does not exist: queue-pairs is %u, the first queue is 0",
			 origin_format(o, where, sizeof(where)), i, cfg->n_pairs);
		return -EINVAL;
	}
	return 0;
}

/* Return: where one of the two keys was given, for the queue itself rather than for all. */
static const struct origin *draft_find_moder(const struct draft *d, unsigned queue,
					     enum config_key_id usecs, enum config_key_id frames)
{
	const struct given *candidates[] = {&d->queue[queue][usecs], &d->queue[queue][frames],
					    &d->global[usecs], &d->global[frames]};

	for (size_t i = 0; i < array_size(candidates); i++)
		if (candidates[i]->is_given)
			return &candidates[i]->origin;
	return NULL;
}

static int draft_check_moder(const struct draft *d, const struct config *cfg, unsigned queue,
			     bool is_rx)
{
	const struct pair_params *params = &cfg->pairs[queue].params;
	char why[CONFIG_WHY_SIZE], path[CONFIG_PATH_SIZE];

	if (config_check_moder(is_rx ? &params->rx : &params->tx, is_rx ? "rx" : "tx", why,
			       sizeof(why)) == 0)
		return 0;
	snprintf(path, sizeof(path), "queue %u has coalesce", queue);
	return draft_refuse(draft_find_moder(d, queue, is_rx ? KEY_RX_USECS : KEY_TX_USECS,
					     is_rx ? KEY_RX_FRAMES : KEY_TX_FRAMES),
			    path, why);
}

static int draft_check_coalesce(const struct draft *d, const struct config *cfg)
{
	int err = 0;

	for (unsigned i = 0; i < cfg->n_pairs && !err; i++) {
		err = draft_check_moder(d, cfg, i, true);
		if (!err)
			err = draft_check_moder(d, cfg, i, false);
	}
	return err;
}

static int draft_check_tap(const struct draft *d, const struct config *cfg)
{
	const struct given *ifname = &d->global[KEY_PORT_IFNAME], *fd = &d->global[KEY_PORT_FD];

	if (!ifname->is_given && !fd->is_given)
		return draft_refuse(&d->global[KEY_PORT_TYPE].origin, "port.type",
				    "tap needs port.ifname (--port=tap:IFNAME) or port.fd");
	if (ifname->is_given && fd->is_given)
		return draft_refuse(&fd->origin, "port.fd",
				    "and port.ifname exclude each other: give one of them");
	if (fd->is_given && cfg->n_pairs > 1)
		return draft_refuse(&fd->origin, "port.fd",
				    "is one queue of a tap, for queue-pairs = 1 only: give "
				    "port.ifname instead");
	return 0;
}

static int draft_check_xdp(const struct draft *d, const struct config *cfg)
{
	const struct given *queues = &d->global[KEY_PORT_QUEUES];
	char why[CONFIG_WHY_SIZE];

	if (!d->global[KEY_PORT_IFNAME].is_given)
		return draft_refuse(&d->global[KEY_PORT_TYPE].origin, "port.type",
				    "xdp needs port.ifname (--port=xdp:IFNAME)");
	if (queues->is_given && cfg->port.queues.n != cfg->n_pairs) {
		snprintf(why, sizeof(why),
			 "lists %u queues, and queue-pairs is %u: list one for each pair",
			 cfg->port.queues.n, cfg->n_pairs);
		return draft_refuse(&queues->origin, "port.queues", why);
	}
	if (cfg->port.steer == PORT_STEER_MAC && !cfg->has_mac)
		return draft_refuse(&d->global[KEY_PORT_STEER].origin, "port.steer",
				    "\"mac\" needs the key mac: the guest's address");
	return 0;
}

static int draft_refuse_no_port(const struct draft *d)
{
	for (int id = 0; id < N_CONFIG_KEYS; id++) {
		char path[CONFIG_PATH_SIZE];

		if (!d->global[id].is_given || strcmp(config_keys[id].section, "port") != 0)
			continue;
		config_key_path((enum config_key_id)id, -1, path, sizeof(path));
		return draft_refuse(
			&d->global[id].origin, path,
			"is given, but no port.type: it is one of xdp, tap, loopback, null");
	}
	log_errx("%s: no port is given: give --port=tap:IFNAME or xdp:IFNAME, or port { type = ... "
		 "} in the file",
		 d->file ? d->file : "options");
	return -EINVAL;
}

static int draft_check_port(const struct draft *d, const struct config *cfg)
{
	if (!cfg->port.ops)
		return draft_refuse_no_port(d);
	for (int id = 0; id < N_CONFIG_KEYS; id++) {
		const struct config_key *key = &config_keys[id];
		char path[CONFIG_PATH_SIZE], why[CONFIG_WHY_SIZE];

		if (!d->global[id].is_given || config_key_fits(key, cfg->port.ops))
			continue;
		config_key_path((enum config_key_id)id, -1, path, sizeof(path));
		snprintf(why, sizeof(why), "is for port type %s, and port.type is %s: remove it",
			 key->ports[0]->name, cfg->port.ops->name);
		return draft_refuse(&d->global[id].origin, path, why);
	}
	if (cfg->port.ops == &tap_port)
		return draft_check_tap(d, cfg);
	return cfg->port.ops == &xdp_port ? draft_check_xdp(d, cfg) : 0;
}

int config_load(struct config *cfg, const struct config_overrides *over)
{
	struct draft *d = calloc(1, sizeof(*d));

	if (!d) {
		log_err(ENOMEM, "configuration: cannot be read");
		return -ENOMEM;
	}

	int err = draft_take_all(d, over);

	if (!err) {
		draft_lay_out(d, cfg);
		memcpy(cfg->port.mac, cfg->mac, sizeof(cfg->port.mac));
		cfg->port.poll_usecs = cfg->pairs[0].params.poll_usecs;
		err = draft_check_queues(d, cfg);
	}
	if (!err)
		err = draft_check_port(d, cfg);
	if (!err)
		err = draft_check_coalesce(d, cfg);
	free(d);
	return err;
}

/* Return: whether a key's values differ, for a pair or as a whole. */
static bool key_differs(enum config_key_id id, const struct config *a, const struct config *b,
			unsigned pair)
{
	char text_a[CONFIG_FORMAT_SIZE], text_b[CONFIG_FORMAT_SIZE];

	config_key_format(id, a, &a->pairs[pair], text_a, sizeof(text_a));
	config_key_format(id, b, &b->pairs[pair], text_b, sizeof(text_b));
	return strcmp(text_a, text_b) != 0;
}

void config_warn_fixed(const struct config *running, const struct config *wanted)
{
	unsigned n_pairs = min_of(running->n_pairs, wanted->n_pairs);
	char list[800] = "";
	size_t len = 0;

	for (int i = 0; i < N_CONFIG_KEYS; i++) {
		enum config_key_id id = (enum config_key_id)i;
		bool is_per_pair = config_keys[id].is_per_pair;

		for (unsigned pair = 0; pair < (is_per_pair ? n_pairs : 1); pair++) {
			char path[CONFIG_PATH_SIZE];

			if (config_keys[id].is_live || !key_differs(id, running, wanted, pair))
				continue;
			config_key_path(id, is_per_pair ? (int)pair : -1, path, sizeof(path));
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
						len ? ", " : "", path);
		}
	}
	if (len > 0)
		log_warnx("configuration: %s cannot change at run time and stay as they were: "
			  "restart to apply",
			  list);
}

static int coalesce_apply_one(struct netdev_pair_config *pair, const char *item, char *why,
			      size_t why_size)
{
	size_t len = strcspn(item, "=");
	char path[CONFIG_PATH_SIZE], reason[CONFIG_WHY_SIZE];
	int queue, id;

	snprintf(path, sizeof(path), "coalesce.%.*s", (int)min_of(len, sizeof(path)), item);
	id = config_key_find(path, &queue);
	if (id < 0 || item[len] == '\0') {
		snprintf(why, why_size,
			 "'%.64s' must be KEY=VALUE, with the key adaptive-rx, adaptive-tx, "
			 "rx-usecs, "
			 "rx-frames, tx-usecs, tx-frames or tx-at-rx",
			 item);
		return -EINVAL;
	}
	if (config_key_store((enum config_key_id)id, NULL, pair, item + len + 1, reason,
			     sizeof(reason)) == 0)
		return 0;
	snprintf(why, why_size, "%s %s", config_keys[id].name, reason);
	return -EINVAL;
}

int config_coalesce_apply(struct pair_params *params, const char *const *items, unsigned n_items,
			  char *why, size_t why_size)
{
	struct netdev_pair_config pair = {.params = *params};
	int err = 0;

	for (unsigned i = 0; i < n_items && !err; i++)
		err = coalesce_apply_one(&pair, items[i], why, why_size);
	if (!err)
		err = config_check_moder(&pair.params.rx, "rx", why, why_size);
	if (!err)
		err = config_check_moder(&pair.params.tx, "tx", why, why_size);
	if (!err)
		*params = pair.params;
	return err;
}
