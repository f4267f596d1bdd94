/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One table of options says how each is called, what it takes, who takes it and what --help says.
 * getopt_long() is not used: it accepts any unambiguous beginning of an option's name, and cannot
 * be told not to.
 */
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/util.h"
#include "config_keys.h"

/* Longest path of a unix socket, without its NUL. */
#define MAX_SOCKET_PATH (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
#define CTL_SUFFIX	".ctl"

struct option_row {
	const char *name;
	const char *value_name; /* NULL: takes none */
	/* Return: 0; -EINVAL after a log line. */
	int (*take)(struct options *o, const struct option_row *row, const char *value);
	size_t offset; /* of the field in struct options */
	enum options_action action;
	bool is_repeatable;
	const char *help; /* lines */
};

static int take_text(struct options *o, const struct option_row *row, const char *value)
{
	*(const char **)(void *)((char *)o + row->offset) = value;
	return 0;
}

static int take_flag(struct options *o, const struct option_row *row, const char *value)
{
	(void)value;
	*(bool *)((char *)o + row->offset) = true;
	return 0;
}

static int take_action(struct options *o, const struct option_row *row, const char *value)
{
	(void)value;
	o->action = row->action;
	return 0;
}

static int take_number(const struct option_row *row, const char *value, long min, long max,
		       long *number)
{
	int err = config_parse_number(value, min, max, number);

	if (err)
		log_errx("--%s: must be a whole number from %ld to %ld, not '%.64s'", row->name,
			 min, max, value);
	return err;
}

static int take_fd(struct options *o, const struct option_row *row, const char *value)
{
	long number = -1;
	int err = take_number(row, value, 0, INT_MAX, &number);

	o->fd = (int)number;
	return err;
}

static int take_pairs(struct options *o, const struct option_row *row, const char *value)
{
	long number = 0;
	int err = take_number(row, value, 1, DEVICE_MAX_PAIRS, &number);

	o->overrides.n_pairs = (unsigned)number;
	return err;
}

static int take_set(struct options *o, const struct option_row *row, const char *value)
{
	if (o->overrides.n_sets == OPTIONS_MAX_SETS) {
		log_errx("--%s: given more than %d times: use a file and --config", row->name,
			 OPTIONS_MAX_SETS);
		return -EINVAL;
	}
	o->sets[o->overrides.n_sets++] = value;
	return 0;
}

static const struct option_row rows[] = {
	{.name = "socket-path",
	 .value_name = "PATH",
	 .take = take_text,
	 .offset = offsetof(struct options, socket_path),
	 .help = "unix socket to listen on; with --client, to connect to"},
	{.name = "client",
	 .take = take_flag,
	 .offset = offsetof(struct options, is_client),
	 .help = "connect to PATH, and again when the frontend restarts"},
	{.name = "fd",
	 .value_name = "N",
	 .take = take_fd,
	 .help = "use this open socket, listening or connected, and no path"},
	{.name = "config",
	 .value_name = "FILE",
	 .take = take_text,
	 .offset = offsetof(struct options, overrides.file),
	 .help = "read FILE, see vhost-user-xdp.conf(5)"},
	{.name = "port",
	 .value_name = "SPEC",
	 .take = take_text,
	 .offset = offsetof(struct options, overrides.port),
	 .help = "xdp:IFNAME, tap:IFNAME, loopback or null"},
	{.name = "queue-pairs",
	 .value_name = "N",
	 .take = take_pairs,
	 .help = "1 to 16 (default 1)"},
	{.name = "set",
	 .value_name = "KEY=VALUE",
	 .take = take_set,
	 .is_repeatable = true,
	 .help = "override one key of the file, as in port.ifname=vm0 or\n"
		 "queue.0.coalesce.rx-usecs=20; repeatable"},
	{.name = "ctl-path",
	 .value_name = "PATH",
	 .take = take_text,
	 .offset = offsetof(struct options, ctl_path),
	 .help = "control socket (default: socket path + \"" CTL_SUFFIX "\"; with --fd: none)"},
	{.name = "one-shot",
	 .take = take_flag,
	 .offset = offsetof(struct options, is_one_shot),
	 .help = "exit when the frontend disconnects"},
	{.name = "check-config",
	 .take = take_action,
	 .action = OPTIONS_CHECK_CONFIG,
	 .help = "print the effective configuration, or say what is wrong with it"},
	{.name = "print-capabilities",
	 .take = take_action,
	 .action = OPTIONS_PRINT_CAPABILITIES,
	 .help = "print JSON for management software; ignores all other options"},
	{.name = "log-level",
	 .value_name = "LEVEL",
	 .take = take_text,
	 .offset = offsetof(struct options, overrides.log_level),
	 .help = "error, warn, info or debug (default info)"},
	{.name = "version",
	 .take = take_action,
	 .action = OPTIONS_VERSION,
	 .help = "print the version"},
	{.name = "help", .take = take_action, .action = OPTIONS_HELP, .help = "print this text"},
};

/* Return: the row of "--NAME" or "--NAME=VALUE", or NULL. */
static const struct option_row *row_find(const char *word)
{
	if (strncmp(word, "--", 2) != 0)
		return NULL;

	size_t len = strcspn(word + 2, "=");

	for (size_t i = 0; i < array_size(rows); i++)
		if (strlen(rows[i].name) == len && strncmp(rows[i].name, word + 2, len) == 0)
			return &rows[i];
	return NULL;
}

static int refuse_word(const char *word)
{
	if (word[0] == '-')
		log_errx("%.64s: unknown option: see --help", word);
	else
		log_errx("'%.64s': unexpected argument: everything is given by options, see --help",
			 word);
	return -EINVAL;
}

/*
 * Find the value of the option in argv[*i], there or in the next word.
 * Return: 0; -EINVAL after a log line.
 */
static int find_value(const struct option_row *row, char *argv[], int argc, int *i,
		      const char **value)
{
	const char *equals = strchr(argv[*i], '=');

	*value = NULL;
	if (!row->value_name) {
		if (!equals)
			return 0;
		log_errx("--%s: takes no value: remove what follows the name", row->name);
		return -EINVAL;
	}
	if (equals)
		*value = equals + 1;
	else if (*i + 1 < argc)
		*value = argv[++*i];
	if (*value && **value)
		return 0;
	log_errx("--%s: needs a value: --%s=%s", row->name, row->name, row->value_name);
	return -EINVAL;
}

/* Take the option in argv[*i] and its value, which may be the next word. */
static int take_word(struct options *o, char *argv[], int argc, int *i, unsigned *seen)
{
	const struct option_row *row = row_find(argv[*i]);
	const char *value;

	if (!row)
		return refuse_word(argv[*i]);

	unsigned bit = 1u << (row - rows);

	if ((*seen & bit) && !row->is_repeatable) {
		log_errx("--%s: given more than once: give it once", row->name);
		return -EINVAL;
	}
	*seen |= bit;

	int err = find_value(row, argv, argc, i, &value);

	return err ? err : row->take(o, row, value);
}

static int refuse_together(const char *one, const char *other, const char *remedy)
{
	log_errx("%s: does not go with %s: %s", one, other, remedy);
	return -EINVAL;
}

static int check_path(const char *option, const char *path, const char *suffix, const char *remedy)
{
	if (!path || strlen(path) + strlen(suffix) <= MAX_SOCKET_PATH)
		return 0;
	log_errx("%s: '%.128s%s' is longer than the %zu bytes of a socket's path: %s", option, path,
		 suffix, MAX_SOCKET_PATH, remedy);
	return -EINVAL;
}

static int check_paths(const struct options *o)
{
	int err = check_path("--socket-path", o->socket_path, "", "give a shorter one");

	if (!err)
		err = check_path("--ctl-path", o->ctl_path, "", "give a shorter one");
	if (!err && !o->ctl_path)
		err = check_path("control socket", o->socket_path, CTL_SUFFIX, "give --ctl-path");
	if (!err && o->socket_path && o->ctl_path && strcmp(o->socket_path, o->ctl_path) == 0)
		err = refuse_together("--ctl-path", "the same --socket-path",
				      "they are two sockets, give two paths");
	return err;
}

static int check_options(const struct options *o)
{
	if (o->fd >= 0 && o->socket_path)
		return refuse_together("--fd", "--socket-path", "give one of them");
	if (o->fd >= 0 && o->is_client)
		return refuse_together("--client", "--fd", "an open socket is not connected again");
	if (o->is_client && !o->socket_path) {
		log_errx("--client: needs the path to connect to: give --socket-path=PATH");
		return -EINVAL;
	}
	/* systemd may have brought the socket; main looks at it. */
	if (o->action == OPTIONS_RUN && o->fd < 0 && !o->socket_path && !getenv("LISTEN_FDS")) {
		log_errx("no socket is given: give --socket-path=PATH, or --fd=N");
		return -EINVAL;
	}
	return check_paths(o);
}

/* vhost-user's convention for this option: whatever else is there is ignored. */
static bool wants_capabilities(int argc, char *argv[])
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--print-capabilities") == 0)
			return true;
	return false;
}

int options_parse(struct options *o, int argc, char *argv[])
{
	unsigned seen = 0;
	int err = 0;

	*o = (struct options){.fd = -1};
	o->overrides.sets = o->sets;
	if (wants_capabilities(argc, argv)) {
		o->action = OPTIONS_PRINT_CAPABILITIES;
		return 0;
	}
	for (int i = 1; i < argc && !err; i++) {
		err = take_word(o, argv, argc, &i, &seen);
		if (o->action == OPTIONS_HELP || o->action == OPTIONS_VERSION)
			return err;
	}
	return err ? err : check_options(o);
}

static void print_help_row(const struct option_row *row)
{
	char left[32];
	const char *line = row->help;

	snprintf(left, sizeof(left), "--%s%s%s", row->name, row->value_name ? "=" : "",
		 row->value_name ? row->value_name : "");
	printf("  %-22s ", left);
	for (const char *end; (end = strchr(line, '\n')); line = end + 1)
		printf("%.*s\n%25s", (int)(end - line), line, "");
	printf("%s\n", line);
}

static void print_help(void)
{
	printf("Usage: vhost-user-xdp --socket-path=PATH [options]\n"
	       "Serve a VM's virtio-net device over vhost-user and move its packets to a "
	       "port.\n\n");
	for (size_t i = 0; i < array_size(rows); i++)
		print_help_row(&rows[i]);
	printf("\nExit status: 0 after SIGTERM, SIGINT or --one-shot; 2 an option, key or value is "
	       "wrong;\n1 all other failures. See vhost-user-xdp(8).\n");
}

void options_print(enum options_action action)
{
	switch (action) {
	case OPTIONS_VERSION:
		printf("vhost-user-xdp %s\n", VUX_VERSION);
		break;
	case OPTIONS_HELP:
		print_help();
		break;
	case OPTIONS_PRINT_CAPABILITIES:
		/* QEMU's vhost-user.json defines no features for this type. */
		printf("{\n  \"type\": \"net\",\n  \"features\": []\n}\n");
		break;
	case OPTIONS_RUN:
	case OPTIONS_CHECK_CONFIG:
		break;
	}
}
