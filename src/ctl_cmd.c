/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl_cmd.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/stats.h"
#include "base/util.h"
#include "config.h"
#include "net/netdev.h"
#include "vhost-user-xdp/ctl.h"
#include "vhost/device.h"
#include "vhost/server.h"

#define WHY_SIZE 384
/* More "KEY=VALUE" than there are keys: a later one overrides an earlier one. */
#define MAX_SET_ITEMS 64
#define MAX_ARGS      2

/* Why a request is refused; "": it is not, or there is no memory. */
struct refusal {
	char why[WHY_SIZE];
};

struct command {
	const char *name;
	/* Return: the answer's data; NULL when refused, or without memory. */
	json_t *(*run)(const struct ctl_targets *t, json_t *args, struct refusal *r);
	struct {
		const char *name;
		json_type type;
	} args[MAX_ARGS]; /* all can be left out */
};

static json_t *refuse(struct refusal *r, const char *fmt, ...) LOG_PRINTF(2, 3);

/* Return: NULL, for the caller to return. */
static json_t *refuse(struct refusal *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, args);
	va_end(args);
	return NULL;
}

/* Paths, names and what a client has sent need not be UTF-8, or are cut in the middle of it. */
static json_t *text_json(const char *text)
{
	char ascii[WHY_SIZE];
	json_t *json = json_string(text);
	size_t n = 0;

	if (json)
		return json;
	for (; text[n] && n + 1 < sizeof(ascii); n++)
		ascii[n] = (unsigned char)text[n] < 0x80 ? text[n] : '?';
	ascii[n] = '\0';
	return json_string(ascii);
}

static json_t *bits_json(uint64_t bits)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, bits);
	return json_string(text);
}

/* ---- status ---- */

static json_t *ring_state_json(struct netdev *n, unsigned ring)
{
	struct netdev_ring_info info;

	netdev_ring_info(n, ring, &info);
	return json_pack("{sb sb sb}", "started", info.is_started, "enabled", info.is_enabled,
			 "broken", info.is_broken);
}

static json_t *pairs_json(struct netdev *n)
{
	json_t *pairs = json_array();

	for (unsigned i = 0; i < netdev_n_pairs(n); i++) {
		json_t *rx = ring_state_json(n, 2 * i), *tx = ring_state_json(n, 2 * i + 1);

		json_array_append_new(pairs, json_pack("{so so}", "rx", rx, "tx", tx));
	}
	return pairs;
}

static json_t *run_status(const struct ctl_targets *t, json_t *args, struct refusal *r)
{
	char socket[256], port[128];

	(void)args;
	(void)r;
	server_describe(t->server, socket, sizeof(socket));
	netdev_describe_port(t->netdev, port, sizeof(port));
	return json_pack(
		"{ss so so sb si so so so so}", "version", VUX_VERSION, "socket", text_json(socket),
		"port", text_json(port), "connected", server_is_connected(t->server), "queue_pairs",
		(int)netdev_n_pairs(t->netdev), "features", bits_json(device_features(t->device)),
		"features_offered", bits_json(device_features_offered(t->device)),
		"protocol_features", bits_json(device_protocol_features(t->device)), "pairs",
		pairs_json(t->netdev));
}

/* ---- stats ---- */

static json_t *counters_json(const uint64_t *values)
{
	json_t *counters = json_object();

	for (int i = 0; i < N_QUEUE_COUNTERS; i++)
		json_object_set_new(counters, stat_name((enum queue_counter)i),
				    json_integer((json_int_t)values[i]));
	return counters;
}

/* The totals are sums of the very values that are shown. */
static json_t *run_stats(const struct ctl_targets *t, json_t *args, struct refusal *r)
{
	uint64_t total[N_QUEUE_COUNTERS] = {0};
	json_t *queues = json_array();

	(void)args;
	(void)r;
	netdev_refresh_stats(t->netdev);
	for (unsigned pair = 0; pair < netdev_n_pairs(t->netdev); pair++) {
		const struct queue_stats *stats = netdev_stats(t->netdev, pair);
		uint64_t values[N_QUEUE_COUNTERS];

		for (int i = 0; i < N_QUEUE_COUNTERS; i++) {
			values[i] = stat_read(stats, (enum queue_counter)i);
			total[i] += values[i];
		}
		json_array_append_new(queues, counters_json(values));
	}
	return json_pack("{so so}", "queues", queues, "total", counters_json(total));
}

/* ---- coalesce ---- */

/* The pairs that a command is about: from `first` up to and without `end`. */
struct pair_range {
	unsigned first, end;
};

static bool take_queue(const json_t *args, unsigned n_pairs, struct pair_range *range,
		       struct refusal *r)
{
	const json_t *queue = json_object_get(args, "queue");
	json_int_t i = json_integer_value(queue);

	*range = (struct pair_range){0, n_pairs};
	if (!queue)
		return true;
	if (i < 0 || i >= n_pairs) {
		refuse(r,
		       "coalesce: queue %" JSON_INTEGER_FORMAT " does not exist: there are %u, the "
		       "first is 0",
		       i, n_pairs);
		return false;
	}
	*range = (struct pair_range){(unsigned)i, (unsigned)i + 1};
	return true;
}

/* Collect the "KEY=VALUE" texts, which stay those of `args`. */
static bool take_items(const json_t *args, const char **items, unsigned *n_items, struct refusal *r)
{
	const json_t *set = json_object_get(args, "set");
	size_t n = json_array_size(set);

	if (n > MAX_SET_ITEMS) {
		refuse(r, "coalesce: \"set\" has %zu items: give %d at most", n, MAX_SET_ITEMS);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		items[i] = json_string_value(json_array_get(set, i));
		if (!items[i]) {
			refuse(r, "coalesce: \"set\" must hold strings: \"KEY=VALUE\"");
			return false;
		}
	}
	*n_items = (unsigned)n;
	return true;
}

/* Judge the change for each pair, with nothing changed yet; `params` gets the results. */
static bool plan_change(const struct netdev *n, struct pair_range range, const char *const *items,
			unsigned n_items, struct pair_params *params, struct refusal *r)
{
	char why[256];

	for (unsigned i = range.first; i < range.end; i++) {
		netdev_get_params(n, i, &params[i]);
		if (config_coalesce_apply(&params[i], items, n_items, why, sizeof(why)) < 0) {
			refuse(r, "coalesce: queue %u: %s; nothing was changed", i, why);
			return false;
		}
	}
	return true;
}

static json_t *coalesce_json(const struct pair_params *params, struct pair_range range)
{
	json_t *queues = json_array();

	for (unsigned i = range.first; i < range.end; i++) {
		const struct pair_params *p = &params[i];

		json_array_append_new(queues,
				      json_pack("{si sb sb si si si si sb}", "queue", (int)i,
						"adaptive-rx", p->rx.is_adaptive, "adaptive-tx",
						p->tx.is_adaptive, "rx-usecs", (int)p->rx.usecs,
						"rx-frames", (int)p->rx.frames, "tx-usecs",
						(int)p->tx.usecs, "tx-frames", (int)p->tx.frames,
						"tx-at-rx", p->tx_at_rx));
	}
	return json_pack("{so}", "queues", queues);
}

static json_t *run_coalesce(const struct ctl_targets *t, json_t *args, struct refusal *r)
{
	struct pair_params params[DEVICE_MAX_PAIRS];
	const char *items[MAX_SET_ITEMS];
	struct pair_range range;
	unsigned n_items;

	if (!take_queue(args, netdev_n_pairs(t->netdev), &range, r) ||
	    !take_items(args, items, &n_items, r) ||
	    !plan_change(t->netdev, range, items, n_items, params, r))
		return NULL;
	for (unsigned i = range.first; i < range.end && n_items > 0; i++)
		netdev_set_params(t->netdev, i, &params[i]);
	return coalesce_json(params, range);
}

/* ---- rings ---- */

static json_t *ring_json(struct netdev *n, unsigned ring)
{
	struct netdev_ring_info info;

	json_t *json;

	netdev_ring_info(n, ring, &info);
	json = json_pack("{si si ss sb sb sb ss si si si si si si si sb}", "ring", (int)ring,
			 "queue", (int)(ring / 2), "direction", ring % 2 ? "tx" : "rx", "started",
			 info.is_started, "enabled", info.is_enabled, "broken", info.is_broken,
			 "layout", info.is_packed ? "packed" : "split", "size", (int)info.size,
			 "avail_idx", info.avail.idx, "next_avail", info.next.idx, "used_idx",
			 info.used.idx, "in_flight", info.n_in_flight, "uncalled",
			 (int)info.n_uncalled, "call_usecs", (int)info.call_usecs, "kicks_on",
			 info.kicks_on);
	if (info.is_packed) {
		json_object_set_new(json, "avail_wrap", json_integer(info.avail.wrap));
		json_object_set_new(json, "next_wrap", json_integer(info.next.wrap));
		json_object_set_new(json, "used_wrap", json_integer(info.used.wrap));
	}
	return json;
}

/* The packet memory of each pair; an empty list for a port that has none. */
static json_t *umem_json(struct netdev *n)
{
	json_t *umem = json_array();
	struct port_memory m;

	for (unsigned i = 0; i < netdev_n_pairs(n); i++)
		if (netdev_port_memory(n, i, &m))
			json_array_append_new(umem, json_pack("{si si si si si si si}", "queue",
							      (int)i, "total", (int)m.total, "free",
							      (int)m.free, "fill", (int)m.fill,
							      "rx", (int)m.rx, "tx", (int)m.tx,
							      "completion", (int)m.completion));
	return umem;
}

static json_t *run_rings(const struct ctl_targets *t, json_t *args, struct refusal *r)
{
	json_t *rings = json_array();

	(void)args;
	(void)r;
	for (unsigned i = 0; i < 2 * netdev_n_pairs(t->netdev); i++)
		json_array_append_new(rings, ring_json(t->netdev, i));
	return json_pack("{so so}", "rings", rings, "umem", umem_json(t->netdev));
}

/* ---- reload ---- */

static json_t *run_reload(const struct ctl_targets *t, json_t *args, struct refusal *r)
{
	char why[256] = "";

	(void)args;
	if (t->reload(t->arg, why, sizeof(why)) < 0)
		return refuse(r, "reload: %s", why);
	return json_object();
}

/* ---- requests ---- */

static const struct command commands[] = {
	{CTL_CMD_STATUS, run_status, {{0}}},
	{CTL_CMD_STATS, run_stats, {{0}}},
	{CTL_CMD_COALESCE, run_coalesce, {{"queue", JSON_INTEGER}, {"set", JSON_ARRAY}}},
	{CTL_CMD_RINGS, run_rings, {{0}}},
	{CTL_CMD_RELOAD, run_reload, {{0}}},
};

/* Return: NULL, with `problem` and the names of all commands as the reason. */
static const struct command *refuse_command(struct refusal *r, const char *problem,
					    const char *name)
{
	char names[128] = "";
	size_t len = 0;

	for (size_t i = 0; i < array_size(commands); i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
					commands[i].name);
	refuse(r, "%s%.64s: give one of %s", problem, name, names);
	return NULL;
}

static const char *type_text(json_type type)
{
	switch (type) {
	case JSON_INTEGER:
		return "an integer";
	case JSON_ARRAY:
		return "an array";
	default:
		return "something else";
	}
}

static bool check_arg(const struct command *cmd, const char *name, const json_t *value,
		      struct refusal *r)
{
	for (unsigned i = 0; i < MAX_ARGS && cmd->args[i].name; i++) {
		if (strcmp(cmd->args[i].name, name) != 0)
			continue;
		if (json_typeof(value) == cmd->args[i].type)
			return true;
		refuse(r, "%s: \"%s\" must be %s", cmd->name, name, type_text(cmd->args[i].type));
		return false;
	}
	if (!cmd->args[0].name)
		refuse(r, "%s: takes no arguments, and not '%.64s'", cmd->name, name);
	else
		refuse(r, "%s: unknown argument '%.64s': it takes \"%s\" and \"%s\"", cmd->name,
		       name, cmd->args[0].name, cmd->args[1].name);
	return false;
}

static bool check_args(const struct command *cmd, json_t *args, struct refusal *r)
{
	const char *name;
	json_t *value;

	if (args && !json_is_object(args)) {
		refuse(r, "%s: \"args\" must be an object", cmd->name);
		return false;
	}
	json_object_foreach(args, name, value)
		if (!check_arg(cmd, name, value, r))
			return false;
	return true;
}

static bool check_request(json_t *request, struct refusal *r)
{
	const char *name;
	json_t *value;

	if (!json_is_object(request)) {
		refuse(r, "the request must be an object: {\"cmd\":NAME,\"args\":{...}}");
		return false;
	}
	json_object_foreach(request, name, value) {
		if (strcmp(name, "cmd") == 0 || strcmp(name, "args") == 0)
			continue;
		refuse(r, "the request has an unknown key '%.64s': only \"cmd\" and \"args\" exist",
		       name);
		return false;
	}
	return true;
}

static const struct command *find_command(const json_t *cmd, struct refusal *r)
{
	const char *name = json_string_value(cmd);

	for (size_t i = 0; name && i < array_size(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	if (!cmd)
		return refuse_command(r, "the request has no \"cmd\"", "");
	if (!name)
		return refuse_command(r, "\"cmd\" must be a string", "");
	return refuse_command(r, "unknown command ", name);
}

static json_t *run_request(const struct ctl_targets *t, json_t *request, struct refusal *r)
{
	json_t *args = json_object_get(request, "args");
	const struct command *cmd;

	if (!check_request(request, r))
		return NULL;
	cmd = find_command(json_object_get(request, "cmd"), r);
	if (!cmd || !check_args(cmd, args, r))
		return NULL;
	return cmd->run(t, args, r);
}

/* Return: the text of `answer`, which is given away; NULL without memory. */
static char *answer_text(json_t *answer)
{
	char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;

	json_decref(answer);
	return text;
}

char *ctl_cmd_refusal(const char *why)
{
	return answer_text(json_pack("{sb so}", "ok", 0, "error", text_json(why)));
}

char *ctl_cmd_answer(const struct ctl_targets *targets, const char *line, size_t len)
{
	struct refusal r = {""};
	json_error_t error;
	json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
	json_t *data = NULL;

	if (request)
		data = run_request(targets, request, &r);
	else
		refuse(&r, "the request is not JSON: %s (byte %d)", error.text, error.position);
	json_decref(request);
	if (r.why[0] != '\0')
		return ctl_cmd_refusal(r.why);
	return answer_text(json_pack("{sb so}", "ok", 1, "data", data));
}
