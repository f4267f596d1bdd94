/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_file.h"

#include <confuse.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "config_text.h"

/* All keys, the sections and the end mark. */
#define MAX_OPTS (N_CONFIG_KEYS + 5)

/* A value as it is kept until all are read: libConfuse itself would forget the line. */
struct file_value {
	int line;
	char text[];
};

static const char *const sections[] = {"port", "coalesce", "poll"};

/* libConfuse hands its error function nothing of ours, and to sections inside no file name. */
static struct {
	const char *file;
	bool is_logged; /* an error in it */
} current;

/* One line for each failure, of which libConfuse reports the first. */
__attribute__((format(printf, 2, 0))) static void on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
	bool is_inside = strcmp(cfg->name, "root") != 0;
	char text[256];

	if (current.is_logged)
		return;
	current.is_logged = true;
	/* What users do wrong most often deserves the words of our manual. */
	if (strcmp(fmt, "no such option '%s'") == 0)
		snprintf(text, sizeof(text), "unknown key '%.64s'", va_arg(ap, const char *));
	else if (strcmp(fmt, "found duplicate title '%s'") == 0)
		snprintf(text, sizeof(text), "queue %.64s has a section already",
			 va_arg(ap, const char *));
	else
		vsnprintf(text, sizeof(text), fmt, ap);
	log_errx("%s:%d: %s%s%s: see vhost-user-xdp.conf(5)", current.file, cfg->line, text,
		 is_inside ? " in section " : "", is_inside ? cfg->name : "");
}

static int value_new(cfg_t *cfg, cfg_opt_t *opt, const char *text, void *result)
{
	size_t size = strlen(text) + 1;
	struct file_value *v = malloc(sizeof(*v) + size);

	(void)opt;
	if (!v)
		return -1;
	v->line = cfg->line;
	memcpy(v->text, text, size);
	*(struct file_value **)result = v;
	return 0;
}

static bool key_stands_in(const struct config_key *key, const char *section, unsigned place)
{
	return (key->places & place) && strcmp(key->section, section) == 0;
}

/* Write the keys of a section into `opts`. Return: behind the last one. */
static cfg_opt_t *opts_add_keys(cfg_opt_t *opts, const char *section, unsigned place)
{
	for (int id = 0; id < N_CONFIG_KEYS; id++) {
		const struct config_key *key = &config_keys[id];

		if (key_stands_in(key, section, place))
			*opts++ = (cfg_opt_t)CFG_PTR_CB(key->name, NULL,
							key->is_list ? CFGF_LIST : CFGF_NODEFAULT,
							value_new, free);
	}
	*opts = (cfg_opt_t)CFG_END();
	return opts;
}

/* Return: the parser with our schema, or NULL without memory. */
static cfg_t *parser_new(void)
{
	cfg_opt_t root[MAX_OPTS], inner[array_size(sections)][MAX_OPTS];
	cfg_opt_t queue[MAX_OPTS], coalesce[MAX_OPTS];
	cfg_opt_t *end = opts_add_keys(root, "", CONFIG_GLOBAL);

	for (size_t i = 0; i < array_size(sections); i++) {
		opts_add_keys(inner[i], sections[i], CONFIG_GLOBAL);
		*end++ = (cfg_opt_t)CFG_SEC(sections[i], inner[i], CFGF_NONE);
	}
	opts_add_keys(coalesce, "coalesce", CONFIG_IN_QUEUE);

	cfg_opt_t *queue_end = opts_add_keys(queue, "", CONFIG_IN_QUEUE);

	*queue_end++ = (cfg_opt_t)CFG_SEC("coalesce", coalesce, CFGF_NONE);
	*queue_end = (cfg_opt_t)CFG_END();
	*end++ = (cfg_opt_t)CFG_SEC("queue", queue, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES);
	*end = (cfg_opt_t)CFG_END();

	cfg_t *cfg = cfg_init(root, CFGF_NONE);

	if (cfg)
		cfg_set_error_function(cfg, on_error);
	return cfg;
}

/* Return: 0; or a negative errno after a log line. */
static int parser_run(cfg_t *cfg, char *text)
{
	size_t len = strlen(text);

	if (len == 0)
		return 0;

	FILE *f = fmemopen(text, len, "r");

	if (!f) {
		int err = -errno;

		log_err(err, "%s: cannot read the configuration", current.file);
		return err;
	}

	int result = cfg_parse_fp(cfg, f);

	fclose(f);
	if (result == CFG_SUCCESS)
		return 0;
	/* It is silent about some, such as an empty key. */
	if (!current.is_logged)
		log_errx("%s:%d: syntax error: see vhost-user-xdp.conf(5)", current.file,
			 cfg->line);
	return -EINVAL;
}

/* Hand over a key; several values in braces, as the text that --set would have for them. */
static int hand_over_key(cfg_t *sec, int queue, enum config_key_id id,
			 const struct config_sink *sink)
{
	const char *name = config_keys[id].name;
	unsigned n = cfg_size(sec, name);
	char text[4 * CONFIG_TEXT_SIZE] = "";
	size_t len = 0;

	if (n == 0)
		return 0;
	for (unsigned i = 0; i < n && len < sizeof(text); i++) {
		const struct file_value *v = cfg_opt_getnptr(cfg_getopt(sec, name), i);

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? "," : "",
					v->text);
	}

	const struct file_value *first = cfg_opt_getnptr(cfg_getopt(sec, name), 0);

	return sink->value(sink->arg, queue, id, n == 1 ? first->text : text, first->line);
}

static int hand_over_keys(cfg_t *cfg, const char *section, int queue,
			  const struct config_sink *sink)
{
	unsigned place = queue < 0 ? CONFIG_GLOBAL : CONFIG_IN_QUEUE;
	cfg_t *sec = section[0] ? cfg_getsec(cfg, section) : cfg;
	int err = 0;

	for (int id = 0; id < N_CONFIG_KEYS && !err; id++)
		if (key_stands_in(&config_keys[id], section, place))
			err = hand_over_key(sec, queue, (enum config_key_id)id, sink);
	return err;
}

static int hand_over_queue(cfg_t *sec, const struct config_sink *sink)
{
	long queue;

	if (config_parse_number(cfg_title(sec), 0, DEVICE_MAX_PAIRS - 1, &queue) < 0) {
		log_errx("%s:%d: queue '%.64s' must be a number from 0 to %d", current.file,
			 sec->line, cfg_title(sec), DEVICE_MAX_PAIRS - 1);
		return -EINVAL;
	}

	int err = sink->queue(sink->arg, (int)queue, sec->line);

	if (!err)
		err = hand_over_keys(sec, "", (int)queue, sink);
	if (!err)
		err = hand_over_keys(sec, "coalesce", (int)queue, sink);
	return err;
}

static int hand_over(cfg_t *cfg, const struct config_sink *sink)
{
	int err = hand_over_keys(cfg, "", -1, sink);

	for (size_t i = 0; i < array_size(sections) && !err; i++)
		err = hand_over_keys(cfg, sections[i], -1, sink);
	for (unsigned i = 0; i < cfg_size(cfg, "queue") && !err; i++)
		err = hand_over_queue(cfg_getnsec(cfg, "queue", i), sink);
	return err;
}

int config_file_read(const char *file, const struct config_sink *sink)
{
	char *text = NULL;
	int err = config_text_read(&text, file);

	if (err)
		return err;
	current.file = file;
	current.is_logged = false;

	cfg_t *cfg = parser_new();

	if (cfg) {
		err = parser_run(cfg, text);
		if (!err)
			err = hand_over(cfg, sink);
		cfg_free(cfg);
	} else {
		err = -ENOMEM;
		log_err(err, "%s: cannot read the configuration", file);
	}
	free(text);
	return err;
}
