/* SPDX-License-Identifier: BSD-2-Clause */
#include "virtq/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "virtq/state.h"

#define PAGE	   4096u
#define MAGIC	   "vux-state 1\n"
#define RING_BYTES (PAGE + VIRTQ_MAX_SIZE * sizeof(struct journal_entry))

_Static_assert(sizeof(struct journal_mark) == sizeof(uint64_t), "a mark is one store");
_Static_assert(RING_BYTES % PAGE == 0, "records are pages of their own");

struct journal {
	char *map; /* a page with the magic, then a record for each ring */
	size_t size;
	unsigned n_rings;
	int fd; /* -1: in memory only */
	char *path;
};

static struct journal_ring *record_of(const struct journal *j, unsigned ring)
{
	return (struct journal_ring *)(void *)(j->map + PAGE + (size_t)ring * RING_BYTES);
}

/* ---- the file ---- */

/* Return: 0; -EEXIST when the file is something else; another negative errno. */
static int check_content(int fd)
{
	char magic[sizeof(MAGIC)] = MAGIC;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EEXIST;
	if (st.st_size == 0)
		return pwrite(fd, magic, sizeof(magic), 0) == sizeof(magic) ? 0 : -errno;
	memset(magic, 0, sizeof(magic));
	if (pread(fd, magic, sizeof(magic), 0) < 0)
		return -errno;
	return memcmp(magic, MAGIC, sizeof(magic)) == 0 ? 0 : -EEXIST;
}

/* Never shorter: there may be records of rings that this process does not have. */
static int make_room(int fd, size_t size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return (size_t)st.st_size >= size || ftruncate(fd, (off_t)size) == 0 ? 0 : -errno;
}

static int open_file(struct journal *j)
{
	const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int err;

	j->fd = open(j->path, flags, 0600);
	if (j->fd < 0)
		return errno == EISDIR || errno == ELOOP ? -EEXIST : -errno;
	if (flock(j->fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	err = check_content(j->fd);
	return err ? err : make_room(j->fd, j->size);
}

static int map(struct journal *j)
{
	int flags = j->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *p = mmap(NULL, j->size, PROT_READ | PROT_WRITE, flags, j->fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	j->map = p;
	return 0;
}

static void log_open_error(const char *path, int err)
{
	if (err == -EEXIST)
		log_errx("state-path: %s exists and is no state file; remove it, or give another "
			 "path",
			 path);
	else if (err == -EBUSY)
		log_errx("state-path: %s is used by another process; give each its own", path);
	else
		log_err(err,
			"state-path: cannot use %s; give a path on a tmpfs in a folder that exists",
			path);
}

/* ---- life ---- */

static void release(struct journal *j)
{
	if (j->map)
		munmap(j->map, j->size);
	if (j->fd >= 0)
		close(j->fd);
	free(j->path);
	free(j);
}

int journal_open(struct journal **out, const char *path, unsigned n_rings)
{
	struct journal *j = calloc(1, sizeof(*j));
	int err = 0;

	if (!j)
		return -ENOMEM;
	j->n_rings = n_rings;
	j->size = PAGE + (size_t)n_rings * RING_BYTES;
	j->fd = -1;
	if (path) {
		j->path = strdup(path);
		err = j->path ? open_file(j) : -ENOMEM;
	}
	if (err == 0)
		err = map(j);
	if (err) {
		log_open_error(path ? path : "memory", err);
		release(j);
		return err;
	}
	*out = j;
	return 0;
}

static bool is_empty(const struct journal *j)
{
	for (unsigned i = 0; i < j->n_rings; i++)
		if (record_of(j, i)->size != 0)
			return false;
	return true;
}

/* Return: whether the path still leads to our file. */
static bool is_ours(const struct journal *j)
{
	struct stat file, path;

	return fstat(j->fd, &file) == 0 && lstat(j->path, &path) == 0 &&
	       file.st_ino == path.st_ino && file.st_dev == path.st_dev;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	if (j->fd >= 0 && is_empty(j) && is_ours(j))
		unlink(j->path);
	release(j);
}

int journal_get(struct journal *j, unsigned ring, uint32_t size, struct journal_ring **r)
{
	off_t at = (off_t)(PAGE + (size_t)ring * RING_BYTES);
	off_t len = (off_t)(PAGE + 2 * (size_t)size * sizeof(struct journal_entry));

	*r = record_of(j, ring);
	if (len > (off_t)RING_BYTES)
		len = RING_BYTES;
	/* A page that the file system has no room for would be a SIGBUS later. */
	return j->fd < 0 ? 0 : -posix_fallocate(j->fd, at, len);
}

void journal_forget(struct journal *j, unsigned ring)
{
	__atomic_store_n(&record_of(j, ring)->size, 0, __ATOMIC_RELAXED);
}
