/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_keys.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/copy.h"
#include "base/util.h"

/* How the values of a kind are read and written. `field` is what the key's offset points to. */
struct config_key_type {
	const char *expected; /* "must be ..."; NULL: a range of numbers */
	int (*parse)(const struct config_key *key, const char *text, void *field);
	/* Return: false when the field says "not configured". */
	bool (*format)(const struct config_key *key, const void *field, char *text, size_t size);
};

int config_parse_number(const char *text, long min, long max, long *number)
{
	/* A leading zero is octal in the file's syntax and decimal to most readers: neither. */
	if (!isdigit((unsigned char)text[0]) || (text[0] == '0' && text[1] != '\0'))
		return -EINVAL;

	char *end;

	errno = 0;
	*number = strtol(text, &end, 10);
	if (errno != 0 || *end != '\0' || *number < min || *number > max)
		return -EINVAL;
	return 0;
}

static void field_set_number(const struct config_key *key, void *field, long number)
{
	if (key->size == sizeof(uint16_t))
		*(uint16_t *)field = (uint16_t)number;
	else
		*(int *)field = (int)number;
}

static long field_get_number(const struct config_key *key, const void *field)
{
	return key->size == sizeof(uint16_t) ? *(const uint16_t *)field : *(const int *)field;
}

static int parse_number(const struct config_key *key, const char *text, void *field)
{
	long number;
	int err = config_parse_number(text, key->min, key->max, &number);

	if (!err)
		field_set_number(key, field, number);
	return err;
}

static bool format_number(const struct config_key *key, const void *field, char *text, size_t size)
{
	long number = field_get_number(key, field);

	snprintf(text, size, "%ld", number);
	return number >= key->min;
}

/* A number in a range, or zero: none. */
static int parse_number_or_zero(const struct config_key *key, const char *text, void *field)
{
	if (strcmp(text, "0") != 0)
		return parse_number(key, text, field);
	field_set_number(key, field, 0);
	return 0;
}

static bool format_number_or_zero(const struct config_key *key, const void *field, char *text,
				  size_t size)
{
	format_number(key, field, text, size);
	return true;
}

static int parse_mode(const struct config_key *key, const char *text, void *field)
{
	/* 440 without the zero would be a valid, surprising 0670. */
	if (text[0] != '0' || text[strspn(text, "01234567")] != '\0')
		return -EINVAL;

	errno = 0;

	long mode = strtol(text, NULL, 8);

	if (errno != 0 || mode < key->min || mode > key->max)
		return -EINVAL;
	field_set_number(key, field, mode);
	return 0;
}

static bool format_mode(const struct config_key *key, const void *field, char *text, size_t size)
{
	snprintf(text, size, "%#lo", (unsigned long)field_get_number(key, field));
	return true;
}

static int parse_bool(const struct config_key *key, const char *text, void *field)
{
	static const char *const names[] = {"false", "true", "no", "yes", "off", "on"};

	(void)key;
	for (size_t i = 0; i < array_size(names); i++) {
		if (strcasecmp(text, names[i]) == 0) {
			*(bool *)field = i % 2 == 1;
			return 0;
		}
	}
	return -EINVAL;
}

static bool format_bool(const struct config_key *key, const void *field, char *text, size_t size)
{
	(void)key;
	snprintf(text, size, "%s", *(const bool *)field ? "true" : "false");
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_mac(const struct config_key *key, const char *text, void *field)
{
	static const uint8_t zero[6];
	uint8_t mac[6];

	(void)key;
	if (strlen(text) != 17)
		return -EINVAL;
	for (int i = 0; i < 6; i++) {
		int high = hex_digit(text[3 * i]), low = hex_digit(text[3 * i + 1]);

		if (high < 0 || low < 0 || (i < 5 && text[3 * i + 2] != ':'))
			return -EINVAL;
		mac[i] = (uint8_t)(high << 4 | low);
	}
	if ((mac[0] & 1) || memcmp(mac, zero, sizeof(mac)) == 0)
		return -EINVAL;
	memcpy(field, mac, sizeof(mac));
	return 0;
}

static bool format_mac(const struct config_key *key, const void *field, char *text, size_t size)
{
	const uint8_t *mac = field;

	(void)key;
	snprintf(text, size, "\"%02x:%02x:%02x:%02x:%02x:%02x\"", mac[0], mac[1], mac[2], mac[3],
		 mac[4], mac[5]);
	return (mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]) != 0;
}

/* Write `from` as a string of the file, in which libConfuse expands what begins with '$'. */
static void quote_text(const char *from, char *text, size_t size)
{
	size_t n = 0;

	text[n++] = '"';
	for (; *from && n + 4 < size; from++) {
		if (strchr("\"\\$", *from))
			text[n++] = '\\';
		text[n++] = *from;
	}
	text[n++] = '"';
	text[n] = '\0';
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* The kernel's own rule for the names of interfaces, without '%': it would take "vm%d" for a
 * template, and find a number for it. */
static bool is_ifname_char(char c)
{
	return !is_control(c) && !strchr("/:% \xa0", c);
}

static int parse_ifname(const struct config_key *key, const char *text, void *field)
{
	size_t len = strlen(text);

	if ((long)len < key->min || len >= key->size || strcmp(text, ".") == 0 ||
	    strcmp(text, "..") == 0)
		return -EINVAL;
	for (const char *p = text; *p; p++)
		if (!is_ifname_char(*p))
			return -EINVAL;
	memcpy(field, text, len + 1);
	return 0;
}

static bool format_text(const struct config_key *key, const void *field, char *text, size_t size)
{
	quote_text(field, text, size);
	return (long)strlen(field) >= key->min;
}

static int parse_group(const struct config_key *key, const char *text, void *field)
{
	if (strlen(text) >= key->size)
		return -EINVAL;
	for (const char *p = text; *p; p++)
		if (is_control(*p) || *p == ':')
			return -EINVAL;
	strcpy(field, text);
	return 0;
}

/* Of a file; "": none is given. */
static int parse_path(const struct config_key *key, const char *text, void *field)
{
	size_t len = strlen(text);

	if (len >= key->size || (len > 0 && text[len - 1] == '/'))
		return -EINVAL;
	for (const char *p = text; *p; p++)
		if (is_control(*p))
			return -EINVAL;
	memcpy(field, text, len + 1);
	return 0;
}

static int parse_level(const struct config_key *key, const char *text, void *field)
{
	int level = log_level_parse(text);

	(void)key;
	if (level < 0)
		return -EINVAL;
	*(enum log_level *)field = (enum log_level)level;
	return 0;
}

static bool format_level(const struct config_key *key, const void *field, char *text, size_t size)
{
	(void)key;
	snprintf(text, size, "\"%s\"", log_level_name(*(const enum log_level *)field));
	return true;
}

static int parse_port(const struct config_key *key, const char *text, void *field)
{
	const struct port_ops *ops = port_find(text);

	(void)key;
	if (!ops)
		return -EINVAL;
	*(const struct port_ops **)field = ops;
	return 0;
}

static bool format_port(const struct config_key *key, const void *field, char *text, size_t size)
{
	const struct port_ops *ops = *(const struct port_ops *const *)field;

	(void)key;
	snprintf(text, size, "\"%s\"", ops ? ops->name : "");
	return ops != NULL;
}

/* One word of several; the field holds its number. */
static int parse_choice(const struct config_key *key, const char *text, void *field)
{
	for (int i = 0; key->choices[i]; i++) {
		if (strcmp(text, key->choices[i]) == 0) {
			field_set_number(key, field, i);
			return 0;
		}
	}
	return -EINVAL;
}

static bool format_choice(const struct config_key *key, const void *field, char *text, size_t size)
{
	snprintf(text, size, "\"%s\"", key->choices[field_get_number(key, field)]);
	return true;
}

static int parse_power_of_two(const struct config_key *key, const char *text, void *field)
{
	long number;
	int err = config_parse_number(text, key->min, key->max, &number);

	if (!err && (number & (number - 1)) != 0)
		err = -EINVAL;
	if (!err)
		field_set_number(key, field, number);
	return err;
}

/* Queues of an interface, "0,1,2": none of them twice. */
static int parse_queues(const struct config_key *key, const char *text, void *field)
{
	struct port_queue_list list = {0};
	uint64_t seen = 0;
	size_t len;

	for (;; text += len + 1) {
		char item[8];
		long queue;

		len = strcspn(text, ",");
		snprintf(item, sizeof(item), "%.*s", (int)min_of(len, sizeof(item)), text);
		if (config_parse_number(item, key->min, key->max, &queue) < 0 ||
		    (seen & BIT_ULL(queue)) || list.n == array_size(list.queue))
			return -EINVAL;
		seen |= BIT_ULL(queue);
		list.queue[list.n++] = (uint8_t)queue;
		if (text[len] == '\0')
			break;
	}
	memcpy(field, &list, sizeof(list));
	return 0;
}

static bool format_queues(const struct config_key *key, const void *field, char *text, size_t size)
{
	const struct port_queue_list *list = field;
	size_t len = (size_t)snprintf(text, size, "{");

	(void)key;
	for (unsigned i = 0; i < list->n; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%u", i > 0 ? ", " : "",
					list->queue[i]);
	snprintf(text + len, size - len, "}");
	return list->n > 0;
}

static const struct config_key_type type_number = {NULL, parse_number, format_number};
static const struct config_key_type type_number_or_zero = {NULL, parse_number_or_zero,
							   format_number_or_zero};
static const struct config_key_type type_mode = {
	"a file mode from 0 to 0777, octal with a leading 0", parse_mode, format_mode};
static const struct config_key_type type_bool = {"true or false", parse_bool, format_bool};
static const struct config_key_type type_mac = {
	"six hexadecimal pairs as in 52:54:00:12:34:56, a unicast address and not all zero",
	parse_mac, format_mac};
static const struct config_key_type type_ifname = {
	"the name of an interface, 1 to 15 characters without '/', ':' and white space",
	parse_ifname, format_text};
static const struct config_key_type type_group = {"the name of a group, at most 63 characters",
						  parse_group, format_text};
static const struct config_key_type type_path = {
	"the path of a file, at most 255 bytes and no control characters", parse_path, format_text};
static const struct config_key_type type_level = {"error, warn, info or debug", parse_level,
						  format_level};
static const struct config_key_type type_port = {"xdp, tap, loopback or null", parse_port,
						 format_port};
static const struct config_key_type type_choice = {NULL, parse_choice, format_choice};
static const struct config_key_type type_power_of_two = {NULL, parse_power_of_two, format_number};
static const struct config_key_type type_queues = {
	"queues of the interface from 0 to 63, at most 16 and none of them twice, as in {0, 1} "
	"(--set: 0,1)",
	parse_queues, format_queues};

static const char *const mode_choices[] = {"auto", "native", "generic", NULL};
static const char *const zero_copy_choices[] = {"auto", "on", "off", NULL};
static const char *const steer_choices[] = {"all", "mac", NULL};
static const char *const attach_choices[] = {"link", "dispatcher", NULL};

#define IN_CONFIG(member)                                                                          \
	.offset = offsetof(struct config, member), .size = sizeof(((struct config *)0)->member)
#define IN_PAIR(member)                                                                            \
	.is_per_pair = true, .offset = offsetof(struct netdev_pair_config, member),                \
	.size = sizeof(((struct netdev_pair_config *)0)->member)
#define USECS_KEY(key_name, member)                                                                \
	{                                                                                          \
		.section = "coalesce", .name = key_name, .type = &type_number,                     \
		.max = MODER_MAX_USECS, .is_live = true,                                           \
		.places = CONFIG_GLOBAL | CONFIG_IN_QUEUE, IN_PAIR(member)                         \
	}
#define FRAMES_KEY(key_name, member)                                                               \
	{                                                                                          \
		.section = "coalesce", .name = key_name, .type = &type_number,                     \
		.max = MODER_MAX_FRAMES, .is_live = true,                                          \
		.places = CONFIG_GLOBAL | CONFIG_IN_QUEUE, IN_PAIR(member)                         \
	}
#define ADAPTIVE_KEY(key_name, member)                                                             \
	{                                                                                          \
		.section = "coalesce", .name = key_name, .type = &type_bool, .is_live = true,      \
		.places = CONFIG_GLOBAL | CONFIG_IN_QUEUE, IN_PAIR(member)                         \
	}

/* clang-format off */
const struct config_key config_keys[N_CONFIG_KEYS] = {
	[KEY_QUEUE_PAIRS] = {.section = "", .name = "queue-pairs", .type = &type_number,
		.min = 1, .max = DEVICE_MAX_PAIRS, .places = CONFIG_GLOBAL, IN_CONFIG(n_pairs)},
	[KEY_MAC] = {.section = "", .name = "mac", .type = &type_mac,
		.places = CONFIG_GLOBAL, IN_CONFIG(mac)},
	[KEY_MTU] = {.section = "", .name = "mtu", .type = &type_number,
		.min = 68, .max = 65535, .places = CONFIG_GLOBAL, IN_CONFIG(mtu)},
	[KEY_BATCH] = {.section = "", .name = "batch", .type = &type_number,
		.min = PARAMS_MIN_BATCH, .max = PARAMS_MAX_BATCH, .is_live = true,
		.places = CONFIG_GLOBAL, IN_PAIR(params.batch)},
	[KEY_LOG_LEVEL] = {.section = "", .name = "log-level", .type = &type_level,
		.is_live = true, .places = CONFIG_GLOBAL, IN_CONFIG(log_level)},
	[KEY_SOCKET_MODE] = {.section = "", .name = "socket-mode", .type = &type_mode,
		.max = 0777, .places = CONFIG_GLOBAL, IN_CONFIG(socket_mode)},
	[KEY_SOCKET_GROUP] = {.section = "", .name = "socket-group", .type = &type_group,
		.places = CONFIG_GLOBAL, IN_CONFIG(socket_group)},
	[KEY_STATE_PATH] = {.section = "", .name = "state-path", .type = &type_path,
		.places = CONFIG_GLOBAL, IN_CONFIG(state_path)},
	[KEY_OFFER_CONFIG] = {.section = "", .name = "offer-config", .type = &type_bool,
		.places = CONFIG_GLOBAL, IN_CONFIG(offer_config)},
	[KEY_PORT_TYPE] = {.section = "port", .name = "type", .type = &type_port,
		.places = CONFIG_GLOBAL, IN_CONFIG(port.ops)},
	[KEY_PORT_IFNAME] = {.section = "port", .name = "ifname", .type = &type_ifname,
		.min = 1, .ports = {&tap_port, &xdp_port}, .places = CONFIG_GLOBAL, IN_CONFIG(port.ifname)},
	[KEY_PORT_FD] = {.section = "port", .name = "fd", .type = &type_number,
		.max = INT_MAX, .ports = {&tap_port}, .places = CONFIG_GLOBAL, IN_CONFIG(port.fd)},
	[KEY_PORT_BRIDGE] = {.section = "port", .name = "bridge", .type = &type_ifname,
		.ports = {&tap_port}, .places = CONFIG_GLOBAL, IN_CONFIG(port.bridge)},
	/* A tap of less than some hundred bytes never says that there is room again. */
	[KEY_PORT_SNDBUF] = {.section = "port", .name = "sndbuf", .type = &type_number_or_zero,
		.min = 2048, .max = INT_MAX, .ports = {&tap_port}, .places = CONFIG_GLOBAL, IN_CONFIG(port.sndbuf)},
	[KEY_PORT_CREATE] = {.section = "port", .name = "create", .type = &type_bool,
		.ports = {&tap_port}, .places = CONFIG_GLOBAL, IN_CONFIG(port.create)},
	[KEY_PORT_SOURCE_SIZE] = {.section = "port", .name = "source-size",
		.type = &type_number_or_zero, .min = 14, .max = FRAME_MAX_LEN, .ports = {&null_port},
		.places = CONFIG_GLOBAL, IN_CONFIG(port.source_size)},
	[KEY_PORT_QUEUES] = {.section = "port", .name = "queues", .type = &type_queues, .max = 63,
		.is_list = true, .ports = {&xdp_port}, .places = CONFIG_GLOBAL, IN_CONFIG(port.queues)},
	[KEY_PORT_MODE] = {.section = "port", .name = "mode", .type = &type_choice,
		.choices = mode_choices, .ports = {&xdp_port}, .places = CONFIG_GLOBAL, IN_CONFIG(port.mode)},
	[KEY_PORT_ZERO_COPY] = {.section = "port", .name = "zero-copy", .type = &type_choice,
		.choices = zero_copy_choices, .ports = {&xdp_port}, .places = CONFIG_GLOBAL,
		IN_CONFIG(port.zero_copy)},
	[KEY_PORT_FRAMES] = {.section = "port", .name = "frames", .type = &type_power_of_two,
		.min = 64, .max = 65536, .ports = {&xdp_port}, .places = CONFIG_GLOBAL, IN_CONFIG(port.frames)},
	[KEY_PORT_FRAME_SIZE] = {.section = "port", .name = "frame-size", .type = &type_power_of_two,
		.min = 2048, .max = 4096, .ports = {&xdp_port}, .places = CONFIG_GLOBAL,
		IN_CONFIG(port.frame_size)},
	[KEY_PORT_STEER] = {.section = "port", .name = "steer", .type = &type_choice,
		.choices = steer_choices, .ports = {&xdp_port}, .places = CONFIG_GLOBAL, IN_CONFIG(port.steer)},
	[KEY_PORT_ATTACH] = {.section = "port", .name = "attach", .type = &type_choice,
		.choices = attach_choices, .ports = {&xdp_port}, .places = CONFIG_GLOBAL,
		IN_CONFIG(port.attach)},
	[KEY_ADAPTIVE_RX] = ADAPTIVE_KEY("adaptive-rx", params.rx.is_adaptive),
	[KEY_ADAPTIVE_TX] = ADAPTIVE_KEY("adaptive-tx", params.tx.is_adaptive),
	[KEY_RX_USECS] = USECS_KEY("rx-usecs", params.rx.usecs),
	[KEY_RX_FRAMES] = FRAMES_KEY("rx-frames", params.rx.frames),
	[KEY_TX_USECS] = USECS_KEY("tx-usecs", params.tx.usecs),
	[KEY_TX_FRAMES] = FRAMES_KEY("tx-frames", params.tx.frames),
	[KEY_TX_AT_RX] = {.section = "coalesce", .name = "tx-at-rx", .type = &type_bool,
		.is_live = true, .places = CONFIG_GLOBAL | CONFIG_IN_QUEUE, IN_PAIR(params.tx_at_rx)},
	[KEY_POLL_USECS] = {.section = "poll", .name = "usecs", .type = &type_number,
		.max = PARAMS_MAX_POLL_USECS, .is_live = true, .places = CONFIG_GLOBAL,
		IN_PAIR(params.poll_usecs)},
	[KEY_COPY_BREAK] = {.section = "", .name = "copy-break", .type = &type_number_or_zero,
		.min = COPY_SHORT_MIN, .max = PARAMS_MAX_COPY_BREAK, .is_live = true,
		.places = CONFIG_GLOBAL, IN_PAIR(params.copy_break)},
	[KEY_CPU] = {.section = "", .name = "cpu", .type = &type_number,
		.max = 1023, .places = CONFIG_IN_QUEUE, IN_PAIR(cpu)},
};
/* clang-format on */
static_assert(sizeof(unsigned) == sizeof(int) && sizeof(mode_t) == sizeof(int) &&
		      sizeof(uint32_t) == sizeof(int),
	      "numbers are stored as int");

/* Split "queue.N.REST". Return: REST, or NULL when that is not how `path` begins. */
static const char *path_split_queue(const char *path, char *index, size_t size)
{
	if (strncmp(path, "queue.", 6) != 0)
		return NULL;
	path += 6;

	const char *dot = strchr(path, '.');

	if (!dot || (size_t)(dot - path) >= size)
		return NULL;
	memcpy(index, path, (size_t)(dot - path));
	index[dot - path] = '\0';
	return dot + 1;
}

static bool key_is_called(const struct config_key *key, const char *path)
{
	size_t len = strlen(key->section);

	if (len == 0)
		return strcmp(path, key->name) == 0;
	return strncmp(path, key->section, len) == 0 && path[len] == '.' &&
	       strcmp(path + len + 1, key->name) == 0;
}

int config_key_find(const char *path, int *queue)
{
	char index[8];
	const char *rest = path_split_queue(path, index, sizeof(index));
	unsigned place = rest ? CONFIG_IN_QUEUE : CONFIG_GLOBAL;
	long number = -1;

	if (rest && config_parse_number(index, 0, DEVICE_MAX_PAIRS - 1, &number) < 0)
		return -ERANGE;
	*queue = (int)number;
	for (int id = 0; id < N_CONFIG_KEYS; id++)
		if ((config_keys[id].places & place) &&
		    key_is_called(&config_keys[id], rest ? rest : path))
			return id;
	return -ENOENT;
}

bool config_key_fits(const struct config_key *key, const struct port_ops *port)
{
	return !key->ports[0] || key->ports[0] == port || key->ports[1] == port;
}

void config_key_path(enum config_key_id id, int queue, char *path, size_t size)
{
	const struct config_key *key = &config_keys[id];
	int n = queue < 0 ? 0 : snprintf(path, size, "queue.%d.", queue);

	snprintf(path + n, size - (size_t)n, "%s%s%s", key->section, key->section[0] ? "." : "",
		 key->name);
}

static void list_choices(const struct config_key *key, char *text, size_t size)
{
	size_t len = 0;

	for (int i = 0; key->choices[i]; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%s",
					i == 0		      ? ""
					: key->choices[i + 1] ? ", "
							      : " or ",
					key->choices[i]);
}

static void key_explain(const struct config_key *key, const char *text, char *why, size_t why_size)
{
	const char *zero = key->type == &type_number_or_zero ? "0 or " : "";
	const char *kind = key->type == &type_power_of_two ? "power of two" : "whole number";
	char choices[CONFIG_TEXT_SIZE];

	if (key->type->expected) {
		snprintf(why, why_size, "must be %s, not '%.64s'", key->type->expected, text);
	} else if (key->choices) {
		list_choices(key, choices, sizeof(choices));
		snprintf(why, why_size, "must be %s, not '%.64s'", choices, text);
	} else {
		snprintf(why, why_size, "must be %sa %s from %ld to %ld, not '%.64s'", zero, kind,
			 key->min, key->max, text);
	}
}

int config_key_store(enum config_key_id id, struct config *cfg, struct netdev_pair_config *pair,
		     const char *text, char *why, size_t why_size)
{
	const struct config_key *key = &config_keys[id];
	char *base = key->is_per_pair ? (char *)pair : (char *)cfg;

	if (key->type->parse(key, text, base + key->offset) < 0) {
		key_explain(key, text, why, why_size);
		return -EINVAL;
	}
	if (id == KEY_MAC)
		cfg->has_mac = true;
	return 0;
}

bool config_key_format(enum config_key_id id, const struct config *cfg,
		       const struct netdev_pair_config *pair, char *text, size_t size)
{
	const struct config_key *key = &config_keys[id];
	const char *base = key->is_per_pair ? (const char *)pair : (const char *)cfg;
	bool is_configured = key->type->format(key, base + key->offset, text, size);

	if (!is_configured)
		text[0] = '\0';
	return is_configured;
}

int config_check_moder(const struct moder_params *params, const char *direction, char *why,
		       size_t why_size)
{
	if ((params->usecs == 0) == (params->frames == 0))
		return 0;
	snprintf(why, why_size, "%s-usecs = %u with %s-frames = %u: set both above 0, or both to 0",
		 direction, params->usecs, direction, params->frames);
	return -EINVAL;
}
