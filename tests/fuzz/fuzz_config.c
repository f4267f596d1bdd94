/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration, for libFuzzer: up to the first zero byte the input is a file, each piece behind
 * it, up to the next zero byte, is a --set. What is refused is refused with one line; what is
 * accepted can be printed and read again, and is the same then.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "config.h"

#define MAX_SETS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static int write_memory(const char *text, size_t len, char *path, size_t path_size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	require(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	snprintf(path, path_size, "/proc/self/fd/%d", fd);
	return fd;
}

/* Load with stderr in memory. Return: config_load()'s, after a look at the number of lines. */
static int load(struct config *cfg, const struct config_overrides *over)
{
	char log[4096];
	int saved = dup(STDERR_FILENO), file = memfd_create("log", MFD_CLOEXEC);

	require(saved >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);

	int err = config_load(cfg, over);

	dup2(saved, STDERR_FILENO);
	close(saved);

	ssize_t len = pread(file, log, sizeof(log), 0);

	close(file);
	if (err)
		require(len > 1 && memchr(log, '\n', (size_t)len) == log + len - 1);
	else
		require(len == 0);
	return err;
}

static char *print(const struct config *cfg, size_t *size)
{
	char *text;
	FILE *out = open_memstream(&text, size);

	require(out != NULL);
	config_print(cfg, out);
	fclose(out);
	return text;
}

static void read_again(const struct config *cfg)
{
	struct config copy;
	size_t size, copy_size;
	char path[64], *text = print(cfg, &size);
	int fd = write_memory(text, size, path, sizeof(path));

	require(load(&copy, &(struct config_overrides){.file = path}) == 0);

	char *copy_text = print(&copy, &copy_size);

	require(size == copy_size && memcmp(text, copy_text, size) == 0);
	free(text);
	free(copy_text);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64], *input = calloc(1, size + 1), *piece;
	const char *sets[MAX_SETS];
	struct config_overrides over = {.file = path, .sets = sets};
	struct config cfg;

	require(input != NULL);
	if (size > 0)
		memcpy(input, data, size);

	int fd = write_memory(input, strlen(input), path, sizeof(path));

	for (piece = input + strlen(input) + 1; piece < input + size && over.n_sets < MAX_SETS;
	     piece += strlen(piece) + 1)
		sets[over.n_sets++] = piece;
	if (load(&cfg, &over) == 0)
		read_again(&cfg);
	over.port = "tap:vm0";
	if (load(&cfg, &over) == 0)
		read_again(&cfg);
	close(fd);
	free(input);
	return 0;
}
