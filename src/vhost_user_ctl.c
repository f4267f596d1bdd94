/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost-user-ctl: looks at a running vhost-user-xdp and tunes it, through its control socket. One
 * table of commands says what each takes and how its answer is shown.
 */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/timer.h"
#include "base/util.h"
#include "ctl_client.h"
#include "ctl_show.h"
#include "vhost-user-xdp/ctl.h"

#define EXIT_OK	    0
#define EXIT_DAEMON 1 /* it cannot be reached, or says no */
#define EXIT_USAGE  2 /* wrong whatever the daemon's state */

#define MAX_WORDS	  64
#define MIN_WATCH_SECONDS 0.1
#define MAX_WATCH_SECONDS 3600.0
#define WATCH_SECONDS	  1.0

struct command;

/* What the command line asks for. */
struct request {
	const char *ctl_path;
	const struct command *command;
	json_t *args; /* of the command; NULL: none */
	bool (*show)(json_t *data);
	double watch_seconds; /* 0: ask once */
};

struct command {
	const char *name;
	const char *synopsis;
	const char *help;
	bool (*show)(json_t *data);
	/* Take the words behind the command. Return: 0 or EXIT_USAGE. NULL: there must be none. */
	int (*take_words)(struct request *r, char *words[], int n);
};

/* ---- the command line ---- */

static int usage_error(const char *fmt, ...) LOG_PRINTF(1, 2);

/* Return: EXIT_USAGE, for the caller to return. */
static int usage_error(const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fputs("vhost-user-ctl: ", stderr);
	ctl_show_text(stderr, text);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

static int take_watch(struct request *r, const char *seconds)
{
	char *end = NULL;

	r->watch_seconds = WATCH_SECONDS;
	if (!seconds)
		return 0;
	r->watch_seconds = strtod(seconds, &end);
	if (strspn(seconds, "0123456789.") == strlen(seconds) && *end == '\0' &&
	    r->watch_seconds >= MIN_WATCH_SECONDS && r->watch_seconds <= MAX_WATCH_SECONDS)
		return 0;
	return usage_error("stats --watch: must be a number of seconds from %g to %g, not '%.64s'",
			   MIN_WATCH_SECONDS, MAX_WATCH_SECONDS, seconds);
}

static int take_stats_words(struct request *r, char *words[], int n)
{
	if (n == 0)
		return 0;
	if (strcmp(words[0], "--json") == 0 && n == 1) {
		r->show = ctl_show_json;
		return 0;
	}
	if (strcmp(words[0], "--watch") == 0 && n <= 2)
		return take_watch(r, n == 2 ? words[1] : NULL);
	return usage_error("stats: does not take '%.64s' here: give --json, or --watch [SECONDS], "
			   "or nothing",
			   n == 1 ? words[0] : words[n - 1]);
}

static int take_queue_number(struct request *r, const char *word)
{
	size_t n_digits = word ? strspn(word, "0123456789") : 0;

	if (n_digits == 0 || n_digits > 4 || word[n_digits] != '\0')
		return usage_error("coalesce queue: must be followed by the number of a queue "
				   "pair, as in 'coalesce queue 0'");
	json_object_set_new(r->args, "queue", json_integer(atoi(word)));
	return 0;
}

static int take_settings(struct request *r, char *words[], int n)
{
	json_t *set = json_array();

	if (n == 0) {
		json_decref(set);
		return 0;
	}
	json_object_set_new(r->args, "set", set);
	for (int i = 0; i < n; i++) {
		if (!strchr(words[i], '='))
			return usage_error("coalesce: must be KEY=VALUE, not '%.64s': as in "
					   "rx-usecs=20 rx-frames=32",
					   words[i]);
		if (json_array_append_new(set, json_string(words[i])) < 0)
			return usage_error("coalesce: '%.64s' is no UTF-8 text", words[i]);
	}
	return 0;
}

static int take_coalesce_words(struct request *r, char *words[], int n)
{
	r->args = json_object();
	if (n > 0 && strcmp(words[0], "queue") == 0) {
		if (take_queue_number(r, n > 1 ? words[1] : NULL) != 0)
			return EXIT_USAGE;
		words += 2;
		n -= 2;
	}
	return take_settings(r, words, n);
}

/* clang-format off */
static const struct command commands[] = {
	{CTL_CMD_STATUS, "status", "version, socket, port, features, state of the rings",
		ctl_show_status, NULL},
	{CTL_CMD_STATS, "stats [--json | --watch [SECONDS]]",
		"all counters; as JSON; as rates, once a second or every SECONDS",
		ctl_show_stats, take_stats_words},
	{CTL_CMD_COALESCE, "coalesce [queue N] [KEY=VALUE ...]",
		"show interrupt coalescing, or set it: adaptive-rx, adaptive-tx,\n"
		"rx-usecs, rx-frames, tx-usecs, tx-frames, tx-at-rx; of all queue\n"
		"pairs or of pair N",
		ctl_show_coalesce, take_coalesce_words},
	{CTL_CMD_RINGS, "rings", "where each ring stands", ctl_show_rings, NULL},
	{CTL_CMD_RELOAD, "reload", "read the configuration again, as SIGHUP does", ctl_show_reload,
		NULL},
};
/* clang-format on */

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < array_size(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static void print_help(void)
{
	puts("Usage: vhost-user-ctl --ctl-path=PATH COMMAND [ARGUMENTS]\n"
	     "Look at a running vhost-user-xdp, and tune it.\n\n"
	     "  --ctl-path=PATH  the daemon's control socket: its socket path + \".ctl\", or what "
	     "its\n"
	     "                   own --ctl-path says\n"
	     "  --version        print the version\n"
	     "  --help           print this text\n");
	for (size_t i = 0; i < array_size(commands); i++) {
		const char *line = commands[i].help;

		printf("  %s\n", commands[i].synopsis);
		for (const char *end; (end = strchr(line, '\n')); line = end + 1)
			printf("      %.*s\n", (int)(end - line), line);
		printf("      %s\n", line);
	}
	puts("\nExit status: 0; 1 the daemon cannot be reached, or says no; 2 wrong usage. See\n"
	     "vhost-user-ctl(1).");
}

/*
 * Take one of our own options, which may stand anywhere, and its value from the next word if it is
 * there.
 * Return: 1 when it was one, 0 when it was none, -1 when it is wrong (said on stderr).
 */
static int take_option(struct request *r, char *argv[], int argc, int *i)
{
	static const char name[] = "--ctl-path";
	const size_t len = sizeof(name) - 1;
	const char *word = argv[*i], *path = NULL;

	if (strncmp(word, name, len) != 0 || (word[len] != '=' && word[len] != '\0'))
		return 0;
	if (word[len] == '=')
		path = word + len + 1;
	else if (*i + 1 < argc)
		path = argv[++*i];
	if (!path || *path == '\0')
		usage_error("--ctl-path: needs a value: --ctl-path=PATH");
	else if (r->ctl_path)
		usage_error("--ctl-path: given more than once: give it once");
	else if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		usage_error("--ctl-path: '%.128s' is longer than the %zu bytes of a socket's path",
			    path, sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	else
		r->ctl_path = path;
	return r->ctl_path == path && path ? 1 : -1;
}

static int take_words(struct request *r, char *words[], int n)
{
	if (n == 0)
		return usage_error("no command is given: see --help");
	r->command = find_command(words[0]);
	if (!r->command)
		return usage_error("'%.64s' is no %s: see --help", words[0],
				   words[0][0] == '-' ? "option" : "command");
	if (!r->ctl_path)
		return usage_error("no control socket is given: give --ctl-path=PATH");
	r->show = r->command->show;
	if (r->command->take_words)
		return r->command->take_words(r, words + 1, n - 1);
	if (n > 1)
		return usage_error("%s: takes no '%.64s'", r->command->name, words[1]);
	return 0;
}

/* Return: 0 or EXIT_USAGE. */
static int parse(struct request *r, int argc, char *argv[])
{
	char *words[MAX_WORDS];
	int n_words = 0;

	for (int i = 1; i < argc; i++) {
		int taken = take_option(r, argv, argc, &i);

		if (taken < 0)
			return EXIT_USAGE;
		if (taken > 0)
			continue;
		if (n_words == MAX_WORDS)
			return usage_error("too many arguments: %d at most", MAX_WORDS);
		words[n_words++] = argv[i];
	}
	return take_words(r, words, n_words);
}

/* ---- running ---- */

static int daemon_error(const struct request *r, const char *why)
{
	fputs("vhost-user-ctl: ", stderr);
	ctl_show_text(stderr, r->ctl_path);
	fputs(": ", stderr);
	ctl_show_text(stderr, why);
	fputc('\n', stderr);
	return EXIT_DAEMON;
}

static int not_understood(const struct request *r)
{
	return daemon_error(r, "the answer is not understood: is the daemon of another version?");
}

/* Return: 0, or EXIT_DAEMON when what was printed did not get where it should. */
static int flush_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_OK;
	fprintf(stderr, "vhost-user-ctl: cannot write the output: %s\n", strerror(errno));
	return EXIT_DAEMON;
}

static int ask_once(const struct request *r, struct ctl_client *c)
{
	json_t *data;
	bool is_understood;

	if (ctl_client_ask(c, r->command->name, r->args, &data) < 0)
		return daemon_error(r, c->why);
	is_understood = r->show(data);
	json_decref(data);
	return is_understood ? flush_output() : not_understood(r);
}

/* There is nothing to be undone. */
static void on_interrupt(int signo)
{
	(void)signo;
	_exit(EXIT_OK);
}

/* Sleep until the next full interval since `start_ns`: the beat does not drift. */
static void sleep_to_beat(uint64_t start_ns, double seconds)
{
	uint64_t interval_ns = (uint64_t)(seconds * (double)NS_PER_SEC);
	uint64_t n_beats = (clock_now_ns() - start_ns) / interval_ns + 1;
	uint64_t at_ns = start_ns + n_beats * interval_ns;
	struct timespec at = {.tv_sec = (time_t)(at_ns / NS_PER_SEC),
			      .tv_nsec = (long)(at_ns % NS_PER_SEC)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static int show_beat(const struct request *r, json_t *before, json_t *after, double seconds)
{
	bool is_terminal = isatty(STDOUT_FILENO);

	if (is_terminal)
		fputs("\033[H\033[2J", stdout);
	if (!ctl_show_rates(before, after, seconds))
		return not_understood(r);
	if (!is_terminal)
		putchar('\n');
	return flush_output();
}

/* Show rates until SIGINT, or an error. */
static int watch(const struct request *r, struct ctl_client *c)
{
	uint64_t start_ns = clock_now_ns(), before_ns = 0;
	json_t *before = NULL, *after = NULL;
	int status = EXIT_OK;

	signal(SIGINT, on_interrupt);
	while (status == EXIT_OK && ctl_client_ask(c, r->command->name, NULL, &after) == 0) {
		uint64_t now_ns = clock_now_ns();

		if (before)
			status = show_beat(r, before, after,
					   (double)(now_ns - before_ns) / (double)NS_PER_SEC);
		json_decref(before);
		before = after;
		after = NULL;
		before_ns = now_ns;
		if (status == EXIT_OK)
			sleep_to_beat(start_ns, r->watch_seconds);
	}
	json_decref(before);
	return status == EXIT_OK ? daemon_error(r, c->why) : status;
}

static int run(const struct request *r)
{
	struct ctl_client c;
	int status;

	if (ctl_client_open(&c, r->ctl_path) < 0)
		return daemon_error(r, c.why);
	status = r->watch_seconds > 0 ? watch(r, &c) : ask_once(r, &c);
	ctl_client_close(&c);
	return status;
}

int main(int argc, char *argv[])
{
	struct request r = {0};
	int status;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			print_help();
			return flush_output();
		}
		if (strcmp(argv[i], "--version") == 0) {
			puts("vhost-user-ctl " VUX_VERSION);
			return flush_output();
		}
	}
	status = parse(&r, argc, argv);
	if (status == EXIT_OK)
		status = run(&r);
	json_decref(r.args);
	return status;
}
