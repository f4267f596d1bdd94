/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target where there is no libFuzzer: on the files of its corpus, then on as many
 * inputs as asked for, each a mutation of one of these files. The same inputs in every run.
 * usage: fuzz_X CORPUS N_MUTATIONS
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INPUTS 256
#define MAX_BYTES  8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint8_t bytes[MAX_BYTES];
	size_t len;
};

static struct input inputs[MAX_INPUTS];
static unsigned n_inputs;

static uint32_t next_random(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

static void load_file(const char *folder, const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	if (!file || n_inputs == MAX_INPUTS)
		exit(2);
	inputs[n_inputs].len = fread(inputs[n_inputs].bytes, 1, MAX_BYTES, file);
	n_inputs++;
	fclose(file);
}

static void load_corpus(const char *folder)
{
	struct dirent *entry;
	DIR *dir = opendir(folder);

	if (!dir)
		exit(2);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			load_file(folder, entry->d_name);
	closedir(dir);
}

/* Change a few bytes, and sometimes the length. */
static void mutate(struct input *in)
{
	unsigned n_changes = 1 + next_random() % 8;

	if (next_random() % 4 == 0)
		in->len = 1 + next_random() % MAX_BYTES;
	for (unsigned i = 0; i < n_changes && in->len > 0; i++)
		in->bytes[next_random() % in->len] = (uint8_t)next_random();
}

int main(int argc, char *argv[])
{
	static struct input in;
	long n_mutations = argc == 3 ? atol(argv[2]) : -1;

	if (n_mutations < 0)
		return 2;
	load_corpus(argv[1]);
	if (n_inputs == 0)
		return 2;
	for (unsigned i = 0; i < n_inputs; i++)
		LLVMFuzzerTestOneInput(inputs[i].bytes, inputs[i].len);
	for (long i = 0; i < n_mutations; i++) {
		in = inputs[next_random() % n_inputs];
		mutate(&in);
		LLVMFuzzerTestOneInput(in.bytes, in.len);
	}
	printf("%u inputs of the corpus, %ld mutations\n", n_inputs, n_mutations);
	return 0;
}
