/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unix stream sockets with a path, for the vhost-user and the control socket. Control thread only.
 * A socket file that nobody answers is stale and is replaced; one that somebody answers, or a file
 * that is no socket, is refused and left alone.
 */
#ifndef BASE_UNIX_SOCK_H
#define BASE_UNIX_SOCK_H

#include <sys/types.h>

/* A listening socket and the file that it made. `fd` is -1 when there is none. */
struct unix_listener {
	int fd;
	char path[108];
	dev_t dev;
	ino_t ino;
};

/*
 * Bind and listen on `path`. The file gets `mode` and `group` (NULL or "": the process's) whatever
 * the umask is, and nobody can connect before it has them.
 * Return: 0; or a negative errno after a log line that says what to do, with nothing left behind:
 * -EADDRINUSE somebody listens there, -EEXIST the file is no socket, -ENAMETOOLONG, -ENOENT unknown
 * group or folder, others from the system.
 */
int unix_listener_open(struct unix_listener *l, const char *path, mode_t mode, const char *group);

/* Close, and remove the file if it is still the one that open made. Accepts an unopened one. */
void unix_listener_close(struct unix_listener *l);

/*
 * Connect to `path`. Non-blocking, close-on-exec.
 * Return: the fd, or a negative errno (no log line: the caller retries).
 */
int unix_connect(const char *path);

#endif
