/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon under test, as a process: $VUX_DAEMON with its sockets in a folder of the test's own.
 * It dies with the test that started it, and the folder goes too, whether the test passes, fails
 * or is killed.
 */
#ifndef SUPPORT_DAEMON_H
#define SUPPORT_DAEMON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/netns.h"

#define DAEMON_MAX_ARGS	   24
#define DAEMON_MAX_THREADS 64

struct daemon {
	pid_t pid; /* 0: not running */
	int pidfd;
	int out_fd;	 /* the read end of its stdout */
	int err_fd;	 /* a memfd: its stderr */
	char dir[32];	 /* of its own */
	char path[64];	 /* the vhost-user socket */
	char ctl[64];	 /* the control socket */
	char ready[256]; /* the ready line */
	pid_t janitor;	 /* removes the folder when the test is gone... */
	int life_fd;	 /* ...which is when this fd is closed */
};

struct daemon_options {
	const char *args[DAEMON_MAX_ARGS]; /* behind --socket-path=, up to the first NULL */
	bool has_no_socket;		   /* leave --socket-path= out */
	const struct netns *netns;	   /* NULL: the test's */
	bool is_io_uring_denied;	   /* io_uring_setup() gives EPERM */
	uint64_t denied_caps;		   /* bits of CAP_...: without them, for good */
	int pass_fd;			   /* > 0: becomes its fd 3 */
	bool is_activated;		   /* LISTEN_FDS says that fd 3 is a socket for it */
	const char *umask;		   /* octal; NULL: the test's */
};

/* What a run that ends by itself leaves. Free with daemon_result_free(). */
struct daemon_result {
	int code;	  /* exit code; -1: it did not end by itself, or not within `ms` */
	unsigned ms;	  /* how long it took */
	unsigned n_lines; /* on stderr */
	char *out, *err;
};

/* Make the folder. */
void daemon_open(struct daemon *d);

/* Start, and wait for the ready line. */
void daemon_start(struct daemon *d, const struct daemon_options *options);

/* Start, without waiting. */
void daemon_spawn(struct daemon *d, const struct daemon_options *options);

/* Run it until it ends by itself, at most 5 s. */
struct daemon_result daemon_run(struct daemon *d, const struct daemon_options *options);
void daemon_result_free(struct daemon_result *r);

/* Return: its exit code; -1 when it does not end within `ms`, or ends by a signal. */
int daemon_wait_exit(struct daemon *d, unsigned ms);

/* SIGTERM: it must end with code 0 within 2 s and leave no socket file. */
void daemon_stop(struct daemon *d);

/* SIGKILL; files stay. */
void daemon_kill(struct daemon *d);

/* Kill what still runs, remove the folder. Accepts a zero-initialised one. A sanitizer's report in
 * its log makes the test fail. */
void daemon_close(struct daemon *d);

/* ---- what it says ---- */

/* Return: its stderr so far, to be freed. */
char *daemon_log(const struct daemon *d);

/* Return: how often `text` is in it. */
unsigned daemon_log_count(const struct daemon *d, const char *text);

/*
 * Send one command to the control socket.
 * @args: a reference is taken over; NULL: none
 * Return: "data" of the answer, to be released; NULL when the answer is an error.
 */
json_t *daemon_ask(const struct daemon *d, const char *cmd, json_t *args);

/* Return: a counter of a queue pair. */
uint64_t daemon_counter(const struct daemon *d, unsigned pair, const char *name);

/* ---- what it is ---- */

/* Return: how many fds it has open, and how many mappings of memfds named "guest". */
unsigned daemon_n_fds(const struct daemon *d);
unsigned daemon_n_guest_maps(const struct daemon *d);

/* Voluntary context switches of each of its threads, main thread first. Return: their number. */
unsigned daemon_switches(const struct daemon *d, uint64_t *switches);

/* CPU time that it has used, milliseconds. */
uint64_t daemon_cpu_ms(const struct daemon *d);

/* Memory of its own that is resident (RssAnon), KiB. */
uint64_t daemon_memory_kib(const struct daemon *d);

#endif
