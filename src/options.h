/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of vhost-user-xdp. Parsed once by main, before anything is opened or made.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>

#include "config.h"

#define OPTIONS_MAX_SETS 256

enum options_action {
	OPTIONS_RUN,
	OPTIONS_CHECK_CONFIG,
	OPTIONS_PRINT_CAPABILITIES,
	OPTIONS_VERSION,
	OPTIONS_HELP,
};

struct options {
	enum options_action action;
	const char *socket_path; /* NULL with `fd`, or when systemd hands the socket over */
	bool is_client;
	int fd; /* -1: none */
	bool is_one_shot;
	const char *ctl_path; /* NULL: not given */
	struct config_overrides overrides;
	const char *sets[OPTIONS_MAX_SETS];
};

/*
 * Parse the command line. Strings stay those of `argv`.
 * Return: 0; -EINVAL after one log line that names the option and the remedy.
 */
int options_parse(struct options *o, int argc, char *argv[]);

/* Print --help, --version or --print-capabilities to stdout. */
void options_print(enum options_action action);

#endif
