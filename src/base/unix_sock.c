/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/unix_sock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"

#define LISTEN_BACKLOG 16
/* A stale file is removed and the bind repeated; somebody may be faster, but not for ever. */
#define MAX_BIND_TRIES 3
#define NO_GROUP       ((gid_t)-1)

static_assert(sizeof(((struct unix_listener *)0)->path) ==
		      sizeof(((struct sockaddr_un *)0)->sun_path),
	      "a path that fits into one fits into the other");

/* Return: 0, or -EINVAL or -ENAMETOOLONG when `path` cannot be the name of a socket. */
static int make_address(struct sockaddr_un *addr, const char *path)
{
	size_t len = strlen(path);

	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* An empty name would bind to an abstract address of the kernel's choice. */
	if (len == 0)
		return -EINVAL;
	if (len >= sizeof(addr->sun_path))
		return -ENAMETOOLONG;
	memcpy(addr->sun_path, path, len);
	return 0;
}

static int open_stream(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int connect_to(const struct sockaddr_un *addr)
{
	int fd = open_stream();

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

int unix_connect(const char *path)
{
	struct sockaddr_un addr;
	int err = make_address(&addr, path);

	return err < 0 ? err : connect_to(&addr);
}

/* Look up a group by its name, else by its number. Return: 0 or -ENOENT. */
static int find_group(const char *name, gid_t *gid)
{
	const struct group *group = getgrnam(name);
	unsigned long number;
	char *end;

	if (group) {
		*gid = group->gr_gid;
		return 0;
	}
	errno = 0;
	number = strtoul(name, &end, 10);
	if (name[0] < '0' || name[0] > '9' || *end != '\0' || errno != 0 || number >= NO_GROUP)
		return -ENOENT;
	*gid = (gid_t)number;
	return 0;
}

/* Bind so that the new file has no permission at all, until set_owner_and_mode() has run. */
static int bind_closed(int fd, const struct sockaddr_un *addr)
{
	mode_t mask = umask(0777);
	int err = bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ? -errno : 0;

	umask(mask);
	return err;
}

static bool is_same_file(const struct stat *st, dev_t dev, ino_t ino)
{
	return st->st_dev == dev && st->st_ino == ino;
}

/*
 * Find out whether anybody answers at the socket file.
 * Return: 0 when nobody does; -EADDRINUSE, or another negative errno when that cannot be told.
 */
static int probe_listener(const struct sockaddr_un *addr)
{
	int fd = connect_to(addr);

	if (fd >= 0) {
		close(fd);
		return -EADDRINUSE;
	}
	switch (fd) {
	case -ECONNREFUSED:
		return 0;
	case -EAGAIN:	  /* its backlog is full */
	case -EPROTOTYPE: /* it is in use, as another type of socket */
		return -EADDRINUSE;
	default:
		return fd;
	}
}

/*
 * Remove what lies at the path if it is a socket that nobody answers.
 * Return: 0 when the path is free now; or a negative errno after a log line.
 */
static int remove_stale(const struct sockaddr_un *addr)
{
	const char *path = addr->sun_path;
	struct stat before, now;
	int err;

	if (lstat(path, &before) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(before.st_mode)) {
		log_errx("%s: exists and is no socket; choose another path or remove it", path);
		return -EEXIST;
	}
	err = probe_listener(addr);
	if (err == -ENOENT)
		return 0;
	if (err == -EADDRINUSE) {
		log_errx("%s: another process listens there; stop it or choose another path", path);
		return err;
	}
	if (err < 0) {
		log_err(err, "%s: cannot tell whether the socket is in use; if not, remove it",
			path);
		return err;
	}
	/* Whoever replaced it in the meantime is alive. */
	if (lstat(path, &now) < 0 || !is_same_file(&now, before.st_dev, before.st_ino))
		return 0;
	if (unlink(path) < 0 && errno != ENOENT) {
		err = -errno;
		log_err(err, "%s: cannot remove the stale socket; remove it by hand", path);
		return err;
	}
	log_info("%s: removed a stale socket", path);
	return 0;
}

/* Bind, over a stale socket file if need be. Logs what goes wrong. */
static int bind_path(int fd, const struct sockaddr_un *addr)
{
	int err = -EADDRINUSE;

	for (int i = 0; i < MAX_BIND_TRIES && err == -EADDRINUSE; i++) {
		int stale_err;

		err = bind_closed(fd, addr);
		if (err != -EADDRINUSE)
			break;
		stale_err = remove_stale(addr);
		if (stale_err < 0)
			return stale_err;
	}
	if (err < 0)
		log_err(err, "%s: cannot make the socket; check its folder, or choose another path",
			addr->sun_path);
	return err;
}

/* Never follow a symbolic link that somebody put in the place of the socket. */
static int set_owner_and_mode(const char *path, mode_t mode, gid_t gid)
{
	int err = 0;

	if (gid != NO_GROUP && lchown(path, (uid_t)-1, gid) < 0) {
		err = -errno;
		log_err(err,
			"%s: cannot give the socket to group %u; run as root or as a member of it",
			path, (unsigned)gid);
	} else if (fchmodat(AT_FDCWD, path, mode & 0777, AT_SYMLINK_NOFOLLOW) < 0) {
		err = -errno;
		log_err(err, "%s: cannot set the socket's mode to %04o; check its file system",
			path, (unsigned)(mode & 0777));
	}
	return err;
}

static int remember_file(struct unix_listener *l, const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0) {
		int err = -errno;

		log_err(err, "%s: the socket vanished; is another process using the path?", path);
		return err;
	}
	memcpy(l->path, path, strlen(path) + 1);
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	return 0;
}

/* Bind, set up and listen; on error the caller closes `l`. */
static int start_listening(struct unix_listener *l, const struct sockaddr_un *addr, mode_t mode,
			   gid_t gid)
{
	const char *path = addr->sun_path;
	int err;

	l->fd = open_stream();
	if (l->fd < 0) {
		err = l->fd;
		log_err(err, "%s: cannot open a socket; check the limits of the process", path);
		return err;
	}
	err = bind_path(l->fd, addr);
	if (err < 0)
		return err;
	err = remember_file(l, path);
	if (err < 0)
		return err;
	err = set_owner_and_mode(path, mode, gid);
	if (err < 0)
		return err;
	if (listen(l->fd, LISTEN_BACKLOG) < 0) {
		err = -errno;
		log_err(err, "%s: cannot listen on the socket; choose another path", path);
	}
	return err;
}

int unix_listener_open(struct unix_listener *l, const char *path, mode_t mode, const char *group)
{
	gid_t gid = NO_GROUP;
	struct sockaddr_un addr;
	int err;

	*l = (struct unix_listener){.fd = -1};
	err = make_address(&addr, path);
	if (err < 0) {
		log_errx("socket path '%s': must have 1 to %zu characters; choose another one",
			 path, sizeof(addr.sun_path) - 1);
		return err;
	}
	if (group && group[0] != '\0' && find_group(group, &gid) < 0) {
		log_errx("%s: there is no group '%s'; create it or name another one", path, group);
		return -ENOENT;
	}
	err = start_listening(l, &addr, mode, gid);
	if (err < 0)
		unix_listener_close(l);
	return err;
}

void unix_listener_close(struct unix_listener *l)
{
	struct stat st;

	if (l->fd < 0)
		return;
	if (l->path[0] != '\0' && lstat(l->path, &st) == 0 && is_same_file(&st, l->dev, l->ino))
		unlink(l->path);
	close(l->fd);
	*l = (struct unix_listener){.fd = -1};
}
