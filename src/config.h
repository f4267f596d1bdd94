/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration: file, then --set, then the other options, checked as a whole and immutable
 * from then on. Control thread only. Everything that it names is in the form in which the rest of
 * the program uses it; no text or unit is left to be parsed.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdio.h>

#include "config_types.h"

/*
 * Read and check the configuration.
 * Return: 0; or -EINVAL (or -errno of the file) after one log line that says what, where (file:line
 * or option) and what to do. `cfg` is then undefined.
 */
int config_load(struct config *cfg, const struct config_overrides *over);

/*
 * Print the effective configuration in the file's own syntax: what it prints can be read again and
 * gives the same configuration.
 */
void config_print(const struct config *cfg, FILE *out);

/*
 * Compare for a reload: one warning names each key that differs and cannot change at run time.
 * What can change: coalesce, batch, poll (of all pairs) and log-level.
 */
void config_warn_fixed(const struct config *running, const struct config *wanted);

/*
 * Apply "KEY=VALUE" items of a live change, keys as in the coalesce section ("rx-usecs=20"), to
 * the parameters of one pair. "Both or neither" and the bounds are judged on the result.
 * @why: gets a text for the user when it is refused; `params` is then as before
 * Return: 0 or -EINVAL.
 */
int config_coalesce_apply(struct pair_params *params, const char *const *items, unsigned n_items,
			  char *why, size_t why_size);

#endif
