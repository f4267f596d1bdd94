/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How vhost-user-ctl shows the data of answers to a person, on stdout. The data comes from another
 * process, perhaps of another version: what does not look as expected is refused, not guessed.
 */
#ifndef CTL_SHOW_H
#define CTL_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Print text of others on one line: control characters become '?'. */
void ctl_show_text(FILE *out, const char *text);

/* Each prints the data of one command. Return: false when it is not the data of that command. */
bool ctl_show_status(json_t *data);
bool ctl_show_stats(json_t *data);
bool ctl_show_coalesce(json_t *data);
bool ctl_show_rings(json_t *data);
bool ctl_show_reload(json_t *data);

/* Print the data as it is. */
bool ctl_show_json(json_t *data);

/*
 * Print the rates between two answers to `stats`, as a table with a line for each queue.
 * @seconds: between the two
 */
bool ctl_show_rates(json_t *before, json_t *after, double seconds);

#endif
