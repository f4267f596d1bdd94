/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/wait.h"

#define READY_MS   5000
#define STOP_MS	   2000
#define PASSED_FD  3
#define MAX_OUTPUT 65536

/* ---- clean up whatever happens ---- */

static void remove_folder(const char *path)
{
	DIR *dir = opendir(path);

	if (!dir)
		return;
	for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	rmdir(path);
}

/*
 * A failed test's process ends at once, without teardown: a process of its own waits for that, in a
 * session of its own so that check's runner does not kill it along with the test. The daemon gets a
 * signal when the test dies.
 */
static void start_janitor(struct daemon *d)
{
	int life[2];
	char byte;

	expect_eq(pipe2(life, O_CLOEXEC), 0);
	d->janitor = fork();
	expect_ge(d->janitor, 0);
	if (d->janitor == 0) {
		setsid();
		dup2(life[0], STDIN_FILENO);
		/* Whoever waits for the end of one of the test's fds must not wait for this one. */
		close_range(1, ~0U, 0);
		while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
			;
		/* The daemon may still be dying, and making its sockets. */
		for (int i = 0; i < 100 && access(d->dir, F_OK) == 0; i++) {
			remove_folder(d->dir);
			wait_pause_us(10000);
		}
		_exit(0);
	}
	close(life[0]);
	d->life_fd = life[1];
}

static void end_janitor(struct daemon *d)
{
	close(d->life_fd);
	waitpid(d->janitor, NULL, 0);
}

static void forget_process(struct daemon *d)
{
	if (d->pidfd >= 0)
		close(d->pidfd);
	if (d->out_fd >= 0)
		close(d->out_fd);
	d->pidfd = d->out_fd = -1;
	d->pid = 0;
}

void daemon_kill(struct daemon *d)
{
	if (d->pid <= 0)
		return;
	kill(d->pid, SIGKILL);
	waitpid(d->pid, NULL, 0);
	forget_process(d);
}

void daemon_open(struct daemon *d)
{
	*d = (struct daemon){.pidfd = -1, .out_fd = -1, .err_fd = -1};
	strcpy(d->dir, "/tmp/vux-test-XXXXXX");
	expect(mkdtemp(d->dir));
	start_janitor(d);
	snprintf(d->path, sizeof(d->path), "%s/vu", d->dir);
	snprintf(d->ctl, sizeof(d->ctl), "%s/vu.ctl", d->dir);
	d->err_fd = memfd_create("stderr", MFD_CLOEXEC);
	expect_ge(d->err_fd, 0);
}

static void check_reports(const struct daemon *d)
{
	static const char *const marks[] = {"Sanitizer", "runtime error:"};

	for (unsigned i = 0; i < 2; i++) {
		if (daemon_log_count(d, marks[i]) == 0)
			continue;

		char *log = daemon_log(d);

		fprintf(stderr, "%s", log);
		free(log);
		ck_abort_msg("the daemon's sanitizer has reported something");
	}
}

void daemon_close(struct daemon *d)
{
	if (d->dir[0] == '\0')
		return;
	daemon_kill(d);
	end_janitor(d);
	d->dir[0] = '\0';
	check_reports(d);
	close(d->err_fd);
}

/* ---- start ---- */

static void deny_io_uring(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(125);
}

static void deny_caps(uint64_t caps)
{
	for (int i = 0; i < 64; i++)
		if ((caps >> i & 1) && prctl(PR_CAPBSET_DROP, i) < 0)
			_exit(125);
}

static void pass_fd(int fd)
{
	if (fd == PASSED_FD)
		fcntl(fd, F_SETFD, 0);
	else if (dup2(fd, PASSED_FD) < 0)
		_exit(125);
}

static void announce_fd(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
}

static void become_daemon(const struct daemon *d, const struct daemon_options *o, int out_fd)
{
	const char *program = getenv("VUX_DAEMON");
	char socket_option[96];
	char *argv[DAEMON_MAX_ARGS + 3];
	unsigned n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(out_fd, STDOUT_FILENO) < 0 || dup2(d->err_fd, STDERR_FILENO) < 0)
		_exit(125);
	if (o->netns && setns(o->netns->fd, CLONE_NEWNET) < 0)
		_exit(125);
	if (o->umask)
		umask((mode_t)strtol(o->umask, NULL, 8));
	snprintf(socket_option, sizeof(socket_option), "--socket-path=%s", d->path);
	argv[n++] = strdup(program);
	if (!o->has_no_socket)
		argv[n++] = socket_option;
	for (unsigned i = 0; i < DAEMON_MAX_ARGS && o->args[i]; i++)
		argv[n++] = strdup(o->args[i]);
	argv[n] = NULL;
	if (o->pass_fd > 0)
		pass_fd(o->pass_fd);
	if (o->is_activated)
		announce_fd();
	deny_caps(o->denied_caps);
	unsetenv("NOTIFY_SOCKET");
	if (o->is_io_uring_denied)
		deny_io_uring();
	execv(program, argv);
	_exit(126);
}

void daemon_spawn(struct daemon *d, const struct daemon_options *options)
{
	int out[2];

	expect_msg(getenv("VUX_DAEMON"), "VUX_DAEMON must name the daemon's binary");
	expect_eq(d->pid, 0);
	expect_eq(ftruncate(d->err_fd, 0), 0);
	lseek(d->err_fd, 0, SEEK_SET);
	expect_eq(pipe2(out, O_CLOEXEC), 0);
	d->pid = fork();
	expect_ge(d->pid, 0);
	if (d->pid == 0)
		become_daemon(d, options, out[1]);
	close(out[1]);
	d->out_fd = out[0];
	d->pidfd = (int)syscall(SYS_pidfd_open, d->pid, 0);
	expect_ge(d->pidfd, 0);
	d->ready[0] = '\0';
}

/* Read its stdout up to a newline. Return: whether one came. */
static bool read_line(struct daemon *d, char *line, size_t size)
{
	for (size_t n = 0; n + 1 < size && wait_readable(d->out_fd, READY_MS); n++) {
		if (read(d->out_fd, &line[n], 1) != 1)
			return false;
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
	}
	return false;
}

void daemon_start(struct daemon *d, const struct daemon_options *options)
{
	daemon_spawn(d, options);
	if (!read_line(d, d->ready, sizeof(d->ready))) {
		char *log = daemon_log(d);

		daemon_kill(d);
		fprintf(stderr, "%s", log);
		free(log);
		ck_abort_msg("the daemon has not said that it is ready");
	}
	expect_msg(strncmp(d->ready, "ready: ", 7) == 0, "stdout: %s", d->ready);
}

/* ---- end ---- */

int daemon_wait_exit(struct daemon *d, unsigned ms)
{
	int status;

	if (!wait_readable(d->pidfd, ms))
		return -1;
	expect_eq(waitpid(d->pid, &status, 0), d->pid);
	forget_process(d);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void daemon_stop(struct daemon *d)
{
	int code;

	expect_gt(d->pid, 0);
	expect_eq(kill(d->pid, SIGTERM), 0);
	code = daemon_wait_exit(d, STOP_MS);
	expect_msg(code == 0, "SIGTERM: exit code %d (-1: no end within %u ms)", code, STOP_MS);
	expect_msg(access(d->path, F_OK) < 0, "the vhost-user socket's file is left");
	expect_msg(access(d->ctl, F_OK) < 0, "the control socket's file is left");
}

static char *read_all(int fd)
{
	char *text = calloc(1, MAX_OUTPUT);
	size_t n = 0;
	ssize_t len;

	expect(text);
	while (n + 1 < MAX_OUTPUT && (len = read(fd, text + n, MAX_OUTPUT - 1 - n)) > 0)
		n += (size_t)len;
	return text;
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

struct daemon_result daemon_run(struct daemon *d, const struct daemon_options *options)
{
	struct daemon_result r;
	uint64_t start = wait_now_ns();
	int out;

	daemon_spawn(d, options);
	out = dup(d->out_fd);
	r.code = daemon_wait_exit(d, WAIT_LONG_MS);
	r.ms = (unsigned)((wait_now_ns() - start) / 1000000);
	daemon_kill(d);
	r.out = read_all(out);
	close(out);
	r.err = daemon_log(d);
	r.n_lines = count_lines(r.err);
	return r;
}

void daemon_result_free(struct daemon_result *r)
{
	free(r->out);
	free(r->err);
}

/* ---- what it says ---- */

char *daemon_log(const struct daemon *d)
{
	struct stat st;
	char *log;

	expect_eq(fstat(d->err_fd, &st), 0);
	log = calloc(1, (size_t)st.st_size + 1);
	expect(log);
	expect_eq(pread(d->err_fd, log, (size_t)st.st_size, 0), st.st_size);
	return log;
}

unsigned daemon_log_count(const struct daemon *d, const char *text)
{
	char *log = daemon_log(d);
	unsigned n = 0;

	for (const char *hit = strstr(log, text); hit; hit = strstr(hit + 1, text))
		n++;
	free(log);
	return n;
}

static int connect_ctl(const struct daemon *d)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	expect_ge(fd, 0);
	memcpy(addr.sun_path, d->ctl, strlen(d->ctl) + 1);
	expect_msg(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0, "connect to %s: %s",
		   d->ctl, strerror(errno));
	return fd;
}

static json_t *read_answer(int fd)
{
	char *text = malloc(MAX_OUTPUT);
	json_error_t error;
	json_t *answer;
	size_t n = 0;

	expect(text);
	do {
		expect_msg(n < MAX_OUTPUT && wait_readable(fd, WAIT_LONG_MS),
			   "the control socket does not answer");

		ssize_t len = read(fd, text + n, MAX_OUTPUT - n);

		expect_msg(len > 0, "the control socket was closed");
		n += (size_t)len;
	} while (text[n - 1] != '\n');
	answer = json_loadb(text, n, 0, &error);
	expect_msg(answer != NULL, "control socket: %s in %.*s", error.text, (int)n, text);
	free(text);
	return answer;
}

json_t *daemon_ask(const struct daemon *d, const char *cmd, json_t *args)
{
	json_t *request = json_pack("{s:s}", "cmd", cmd);
	int fd = connect_ctl(d);
	json_t *answer, *data = NULL;
	char *text;

	if (args)
		json_object_set_new(request, "args", args);
	text = json_dumps(request, JSON_COMPACT);
	expect_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
	expect_eq(send(fd, "\n", 1, MSG_NOSIGNAL), 1);
	answer = read_answer(fd);
	if (json_is_true(json_object_get(answer, "ok")))
		data = json_incref(json_object_get(answer, "data"));
	else
		expect(json_is_string(json_object_get(answer, "error")));
	json_decref(answer);
	json_decref(request);
	free(text);
	close(fd);
	return data;
}

/* Return: the value of the first member of that name, however deep. Borrowed. */
static json_t *find_member(json_t *value, const char *name)
{
	json_t *found = json_object_get(value, name), *member;
	const char *key;
	size_t i;

	if (found)
		return found;
	json_object_foreach(value, key, member)
		if ((found = find_member(member, name)))
			return found;
	json_array_foreach(value, i, member)
		if ((found = find_member(member, name)))
			return found;
	return NULL;
}

uint64_t daemon_counter(const struct daemon *d, unsigned pair, const char *name)
{
	json_t *data = daemon_ask(d, "stats", NULL);
	json_t *counter = find_member(json_array_get(find_member(data, "queues"), pair), name);
	uint64_t value = (uint64_t)json_integer_value(counter);

	expect_msg(json_is_integer(counter), "stats: no counter %s of queue pair %u", name, pair);
	json_decref(data);
	return value;
}

/* ---- what it is ---- */

/* Open /proc/PID/NAME. */
static FILE *open_proc(const struct daemon *d, const char *name)
{
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/%s", d->pid, name);
	file = fopen(path, "re");
	expect_msg(file != NULL, "%s: %s", path, strerror(errno));
	return file;
}

static DIR *open_proc_dir(const struct daemon *d, const char *name)
{
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/%s", d->pid, name);
	dir = opendir(path);
	expect(dir);
	return dir;
}

unsigned daemon_n_fds(const struct daemon *d)
{
	DIR *dir = open_proc_dir(d, "fd");
	unsigned n = 0;

	for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

unsigned daemon_n_guest_maps(const struct daemon *d)
{
	FILE *maps = open_proc(d, "maps");
	char line[512];
	unsigned n = 0;

	while (fgets(line, sizeof(line), maps))
		n += strstr(line, "/memfd:guest") != NULL;
	fclose(maps);
	return n;
}

/* A thread may end (libraries start some for a moment) between being listed and being looked at. */
#define NO_SUCH_TASK UINT64_MAX

static uint64_t switches_of(const struct daemon *d, const char *task)
{
	static const char key[] = "voluntary_ctxt_switches:";
	char path[340], line[256];
	uint64_t n = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", d->pid, task);
	status = fopen(path, "re");
	if (!status)
		return NO_SUCH_TASK;
	while (fgets(line, sizeof(line), status))
		if (strncmp(line, key, sizeof(key) - 1) == 0)
			n = strtoull(line + sizeof(key) - 1, NULL, 10);
	fclose(status);
	return n;
}

unsigned daemon_switches(const struct daemon *d, uint64_t *switches)
{
	DIR *dir = open_proc_dir(d, "task");
	unsigned n = 0;

	for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (entry->d_name[0] == '.')
			continue;
		expect_lt(n, DAEMON_MAX_THREADS);
		switches[n] = switches_of(d, entry->d_name);
		n += switches[n] != NO_SUCH_TASK;
	}
	closedir(dir);
	return n;
}

uint64_t daemon_cpu_ms(const struct daemon *d)
{
	FILE *stat = open_proc(d, "stat");
	unsigned long user = 0, system = 0;
	char line[1024] = "";
	const char *at;

	expect(fgets(line, sizeof(line), stat));
	fclose(stat);
	at = strrchr(line, ')');
	expect(at);
	expect_eq(sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			 &system),
		  2);
	return (user + system) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

uint64_t daemon_memory_kib(const struct daemon *d)
{
	FILE *status = open_proc(d, "status");
	unsigned long kib = 0;
	char line[256];

	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "RssAnon: %lu kB", &kib) == 1)
			break;
	fclose(status);
	expect_gt(kib, 0);
	return kib;
}
