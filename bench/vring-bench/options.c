/* SPDX-License-Identifier: BSD-2-Clause */
#include "options.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: vring-bench [options] [--vs='OPTIONS']\n"
	"A driver thread and a device thread on one ring, in one process; the device is the "
	"daemon's own\n"
	"code on port null. Prints million packets per second.\n"
	"  --direction=rx|tx    towards the guest, or from it (default rx)\n"
	"  --ring=split|packed  layout (default split)\n"
	"  --size=N             entries, a power of two, 2 to 32768 (default 256)\n"
	"  --packet-size=N      bytes without the virtio-net header, 14 to 65000 (default 64)\n"
	"  --chain=N            descriptors for each packet, 1 to 16 (default 1)\n"
	"  --batch=N            packets for each burst of the device, 1 to 256 (default 64)\n"
	"  --publish=N          rx: used entries for each publish, 1 to 256 (default: the burst)\n"
	"  --pairs=N            queue pairs, each with threads of its own, 1 to 4 (default 1)\n"
	"  --event-idx --indirect --mergeable --in-order\n"
	"                       features of the ring\n"
	"  --shuffled           chains take the avail slots in a scattered order\n"
	"  --calls              the driver sleeps when it has nothing left, and wants a call\n"
	"  --floor              the same memory traffic without a protocol: the limit\n"
	"  --single             driver and device of a pair in turn in one thread\n"
	"  --packets=N          single: one round of so many packets, instead of a time, all "
	"pairs\n"
	"                       in one thread (for counting instructions)\n"
	"  --vs='OPTIONS'       compare with these in addition, in alternation; prints the ratio\n"
	"  --rounds=N --ms=N    measurements, and how long each is (default 5 and 500)\n"
	"  --csv                one line for each setting, with a header\n";

/* An option with a number, where it goes and its range. */
static const struct number {
	const char *name;
	size_t offset;
	unsigned min, max;
	bool is_power; /* of two */
} numbers[] = {
	{"size", offsetof(struct setting, size), 2, 32768, true},
	{"packet-size", offsetof(struct setting, packet), 14, VRING_MAX_PACKET, false},
	{"chain", offsetof(struct setting, chain), 1, 16, false},
	{"batch", offsetof(struct setting, batch), 1, 256, false},
	{"publish", offsetof(struct setting, publish), 1, 256, false},
	{"pairs", offsetof(struct setting, pairs), 1, VRING_MAX_PAIRS, false},
};

/* An option that is on or off. */
static const struct flag {
	const char *name;
	size_t offset;
} flags[] = {
	{"event-idx", offsetof(struct setting, has_event_idx)},
	{"indirect", offsetof(struct setting, is_indirect)},
	{"mergeable", offsetof(struct setting, is_mergeable)},
	{"in-order", offsetof(struct setting, is_in_order)},
	{"shuffled", offsetof(struct setting, is_shuffled)},
	{"calls", offsetof(struct setting, wants_calls)},
	{"floor", offsetof(struct setting, is_floor)},
};

#define N_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))
#define N_FLAGS	  (sizeof(flags) / sizeof(flags[0]))

__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, format);
	fputs("vring-bench: ", stderr);
	vfprintf(stderr, format, args);
	fputs(" (--help)\n", stderr);
	__builtin_va_end(args);
	exit(2);
}

static unsigned take_number(const char *name, const char *text, unsigned min, unsigned max,
			    bool is_power)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || n < min || n > max ||
	    (is_power && (n & (n - 1)) != 0))
		refuse("--%s must be a %s from %u to %u, not '%s'", name,
		       is_power ? "power of two" : "whole number", min, max, text);
	return (unsigned)n;
}

/* Return: whether `text` is the second of two words; refuses a third one. */
static bool take_choice(const char *name, const char *text, const char *first, const char *second)
{
	if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
		refuse("--%s must be %s or %s, not '%s'", name, first, second, text);
	return strcmp(text, second) == 0;
}

/* Take an option of a setting. Return: whether it was one. */
static bool take_setting(struct setting *s, const char *name, const char *text)
{
	for (size_t i = 0; i < N_NUMBERS; i++) {
		const struct number *n = &numbers[i];

		if (strcmp(name, n->name) != 0)
			continue;
		*(unsigned *)(void *)((char *)s + n->offset) =
			take_number(name, text, n->min, n->max, n->is_power);
		return true;
	}
	for (size_t i = 0; i < N_FLAGS; i++) {
		if (strcmp(name, flags[i].name) != 0)
			continue;
		*(bool *)((char *)s + flags[i].offset) = true;
		return true;
	}
	if (strcmp(name, "direction") == 0)
		s->is_rx = !take_choice(name, text, "rx", "tx");
	else if (strcmp(name, "ring") == 0)
		s->is_packed = take_choice(name, text, "split", "packed");
	else
		return false;
	return true;
}

static void check(const struct setting *s)
{
	if (s->is_packed && s->is_shuffled)
		refuse("--shuffled is for split rings: a packed one has no avail slots");
	if (s->is_packed && s->is_floor)
		refuse("--floor is the traffic of a split ring");
	if (s->chain > s->size)
		refuse("--chain=%u does not fit into a ring of %u", s->chain, s->size);
	if (s->is_floor && s->chain > 1)
		refuse("--floor has one descriptor for each packet, not --chain=%u", s->chain);
}

/* The words behind --vs, which stand for a second command line. */
static void take_other(struct options *o, const char *text)
{
	char *words = strdup(text), *save = NULL;

	o->has_other = true;
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		char *value = strchr(w, '=');

		if (value)
			*value++ = '\0';
		if (strncmp(w, "--", 2) != 0 || !take_setting(&o->other, w + 2, value ? value : ""))
			refuse("--vs: '%s' is no option of a ring", w);
	}
	free(words);
}

/* The table of getopt, made of the tables above. */
static const struct option *long_options(void)
{
	static struct option all[N_NUMBERS + N_FLAGS + 10];
	size_t n = 0;

	for (size_t i = 0; i < N_NUMBERS; i++)
		all[n++] = (struct option){numbers[i].name, required_argument, NULL, 0};
	for (size_t i = 0; i < N_FLAGS; i++)
		all[n++] = (struct option){flags[i].name, no_argument, NULL, 0};
	all[n++] = (struct option){"direction", required_argument, NULL, 0};
	all[n++] = (struct option){"ring", required_argument, NULL, 0};
	all[n++] = (struct option){"vs", required_argument, NULL, 'v'};
	all[n++] = (struct option){"rounds", required_argument, NULL, 'r'};
	all[n++] = (struct option){"ms", required_argument, NULL, 'm'};
	all[n++] = (struct option){"packets", required_argument, NULL, 'p'};
	all[n++] = (struct option){"single", no_argument, NULL, 's'};
	all[n++] = (struct option){"csv", no_argument, NULL, 'c'};
	all[n++] = (struct option){"help", no_argument, NULL, 'h'};
	return all;
}

void options_take(struct options *o, int argc, char *argv[])
{
	const struct option *all = long_options();
	const char *vs = NULL;
	int c, i = 0;

	*o = (struct options){.rounds = 5, .ms = 500};
	o->setting = (struct setting){
		.is_rx = true, .size = 256, .packet = 64, .chain = 1, .batch = 64, .pairs = 1};
	while ((c = getopt_long(argc, argv, "", all, &i)) != -1) {
		switch (c) {
		case 0:
			take_setting(&o->setting, all[i].name, optarg ? optarg : "");
			break;
		case 'v':
			vs = optarg;
			break;
		case 'r':
			o->rounds = take_number("rounds", optarg, 1, 100, false);
			break;
		case 'm':
			o->ms = take_number("ms", optarg, 10, 60000, false);
			break;
		case 'p':
			o->packets = take_number("packets", optarg, 1000, 1000000000, false);
			o->rounds = 1;
			break;
		case 's':
			o->is_single = true;
			break;
		case 'c':
			o->is_csv = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(EXIT_SUCCESS);
		default:
			exit(2);
		}
	}
	if (optind < argc)
		refuse("'%s' is no option", argv[optind]);
	if (o->packets > 0 && !o->is_single)
		refuse("--packets goes with --single");
	o->other = o->setting;
	if (vs)
		take_other(o, vs);
	check(&o->setting);
	check(&o->other);
}
