/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The effective configuration in the file's own syntax. A struct config knows only what each pair
 * has; what most pairs have becomes the global section, and a queue section says what differs.
 */
#include <string.h>

#include "config.h"
#include "config_keys.h"

/* Return: whether a pair has what pair `other` has, for one key. */
static bool pairs_agree(const struct config *cfg, enum config_key_id id, unsigned pair,
			unsigned other)
{
	char text[CONFIG_FORMAT_SIZE], other_text[CONFIG_FORMAT_SIZE];

	config_key_format(id, cfg, &cfg->pairs[pair], text, sizeof(text));
	config_key_format(id, cfg, &cfg->pairs[other], other_text, sizeof(other_text));
	return strcmp(text, other_text) == 0;
}

/* Return: the first pair that has what most pairs have. */
static unsigned typical_pair(const struct config *cfg, enum config_key_id id)
{
	unsigned best = 0, n_best = 0;

	for (unsigned pair = 0; pair < cfg->n_pairs; pair++) {
		unsigned n = 0;

		for (unsigned other = 0; other < cfg->n_pairs; other++)
			n += pairs_agree(cfg, id, pair, other);
		if (n > n_best) {
			best = pair;
			n_best = n;
		}
	}
	return best;
}

static void print_key(const struct config *cfg, enum config_key_id id, unsigned pair,
		      const char *indent, FILE *out)
{
	char text[CONFIG_FORMAT_SIZE];

	if (config_key_format(id, cfg, &cfg->pairs[pair], text, sizeof(text)))
		fprintf(out, "%s%s = %s\n", indent, config_keys[id].name, text);
}

static void print_global(const struct config *cfg, const char *section, FILE *out)
{
	bool has_title = section[0] != '\0';

	if (has_title)
		fprintf(out, "%s {\n", section);
	for (int i = 0; i < N_CONFIG_KEYS; i++) {
		enum config_key_id id = (enum config_key_id)i;
		const struct config_key *key = &config_keys[id];

		if (!(key->places & CONFIG_GLOBAL) || strcmp(key->section, section) != 0 ||
		    !config_key_fits(key, cfg->port.ops))
			continue;
		print_key(cfg, id, typical_pair(cfg, id), has_title ? "\t" : "", out);
	}
	if (has_title)
		fprintf(out, "}\n");
}

/* Return: whether a key belongs into the pair's own section. */
static bool queue_key_is_own(const struct config *cfg, enum config_key_id id, unsigned pair)
{
	char text[CONFIG_FORMAT_SIZE];

	if (!(config_keys[id].places & CONFIG_IN_QUEUE))
		return false;
	if (!(config_keys[id].places & CONFIG_GLOBAL))
		return config_key_format(id, cfg, &cfg->pairs[pair], text, sizeof(text));
	return !pairs_agree(cfg, id, pair, typical_pair(cfg, id));
}

/* Print what is the pair's own in a section ("": outside of one) of its queue section. */
static void print_queue_part(const struct config *cfg, unsigned pair, const char *section,
			     FILE *out)
{
	bool is_open = false;

	for (int i = 0; i < N_CONFIG_KEYS; i++) {
		enum config_key_id id = (enum config_key_id)i;

		if (strcmp(config_keys[id].section, section) != 0 ||
		    !queue_key_is_own(cfg, id, pair))
			continue;
		if (section[0] && !is_open)
			fprintf(out, "\t%s {\n", section);
		is_open = true;
		print_key(cfg, id, pair, section[0] ? "\t\t" : "\t", out);
	}
	if (section[0] && is_open)
		fprintf(out, "\t}\n");
}

static void print_queue(const struct config *cfg, unsigned pair, FILE *out)
{
	bool has_own = false;

	for (int id = 0; id < N_CONFIG_KEYS; id++)
		has_own = has_own || queue_key_is_own(cfg, (enum config_key_id)id, pair);
	if (!has_own)
		return;
	fprintf(out, "queue %u {\n", pair);
	print_queue_part(cfg, pair, "", out);
	print_queue_part(cfg, pair, "coalesce", out);
	fprintf(out, "}\n");
}

void config_print(const struct config *cfg, FILE *out)
{
	print_global(cfg, "", out);
	print_global(cfg, "port", out);
	print_global(cfg, "coalesce", out);
	print_global(cfg, "poll", out);
	for (unsigned pair = 0; pair < cfg->n_pairs; pair++)
		print_queue(cfg, pair, out);
}
