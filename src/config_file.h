/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration file: libConfuse takes its syntax apart, by a schema that is made from the
 * table of keys. What the values mean, and whether they fit together, is not judged here. Control
 * thread only; reads one file, keeps nothing.
 */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include "config_keys.h"

/* Where what stands in the file goes. `line` is for messages. A negative return ends the reading.
 */
struct config_sink {
	/* There is a section for this queue pair, with or without keys; called before them. */
	int (*queue)(void *arg, int queue, int line);
	/* A key has this text. @queue: -1: a global one. */
	int (*value)(void *arg, int queue, enum config_key_id id, const char *text, int line);
	void *arg;
};

/*
 * Read a file and hand its values over, in the order of the table of keys.
 * Return: 0; what the sink returned; or a negative errno after one log line.
 */
int config_file_read(const char *file, const struct config_sink *sink);

#endif
