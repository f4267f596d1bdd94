/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost-user-ctl as a process, against a control socket in this one, or against something that
 * only looks like one.
 */
#include "ctl.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unix_sock.h"
#include "base/util.h"
#include "support/ctl_fixture.h"
#include "support/nic.h"
#include "support/wait.h"

#define MAX_ARGS   12
#define MAX_OUTPUT 65536

extern char **environ;

/* A run of the tool. */
struct tool {
	pid_t pid;
	int out_fd, err_fd;
	size_t out_len, err_len;
	char out[MAX_OUTPUT], err[MAX_OUTPUT];
	int code; /* -1: ended by a signal */
};

static struct tool tool;
static struct nic nic;

/* ---- running it ---- */

/* Start it with stdout and stderr as given, and what else is open here closed. */
static void spawn(struct tool *t, const char *const *words, int out_fd, int err_fd)
{
	char *argv[MAX_ARGS + 2] = {getenv("VUX_CTL")};
	posix_spawn_file_actions_t actions;

	for (size_t i = 0; words[i]; i++) {
		ck_assert_uint_lt(i, MAX_ARGS);
		argv[i + 1] = strdup(words[i]);
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, err_fd, STDERR_FILENO);
	ck_assert_int_eq(posix_spawn(&t->pid, argv[0], &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	for (size_t i = 1; argv[i]; i++)
		free(argv[i]);
}

static void tool_start(struct tool *t, const char *const *words)
{
	int out[2], err[2];

	memset(t, 0, sizeof(*t));
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(err, O_CLOEXEC), 0);
	spawn(t, words, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	t->out_fd = out[0];
	t->err_fd = err[0];
}

/* Read what has come. Return: false at the end. */
static bool take(int fd, char *text, size_t *len)
{
	ssize_t n = read(fd, text + *len, MAX_OUTPUT - 1 - *len);

	if (n > 0)
		*len += (size_t)n;
	return n > 0;
}

/* Read until `text` is in the output, at least `n` times. */
static void tool_wait_output(struct tool *t, const char *text, unsigned n)
{
	for (;;) {
		unsigned n_seen = 0;

		for (const char *p = t->out; (p = strstr(p, text)); p++)
			n_seen++;
		if (n_seen >= n)
			return;
		ck_assert_msg(wait_readable(t->out_fd, 2 * WAIT_LONG_MS), "no '%s' in: %s", text,
			      t->out);
		ck_assert_msg(take(t->out_fd, t->out, &t->out_len), "ended without '%s'", text);
	}
}

/* Read the rest, and wait for the end. */
static void tool_finish(struct tool *t)
{
	int status;

	while (wait_readable(t->out_fd, 2 * WAIT_LONG_MS) && take(t->out_fd, t->out, &t->out_len))
		;
	while (wait_readable(t->err_fd, 2 * WAIT_LONG_MS) && take(t->err_fd, t->err, &t->err_len))
		;
	close(t->out_fd);
	close(t->err_fd);
	ck_assert_int_eq(waitpid(t->pid, &status, 0), t->pid);
	t->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void tool_run(const char *const *words)
{
	tool_start(&tool, words);
	tool_finish(&tool);
}

/* Run with --ctl-path and these words. */
static void ask(const char *const *words)
{
	const char *all[MAX_ARGS] = {"--ctl-path", cf.ctl_path};

	for (size_t i = 0; words[i]; i++)
		all[i + 2] = words[i];
	tool_run(all);
}

#define ASK(...) ask((const char *const[]){__VA_ARGS__, NULL})
#define RUN(...) tool_run((const char *const[]){__VA_ARGS__, NULL})

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void check_ok(void)
{
	ck_assert_msg(tool.code == 0, "code %d: %s", tool.code, tool.err);
	ck_assert_str_eq(tool.err, "");
}

static void check_out(const char *part)
{
	ck_assert_msg(strstr(tool.out, part) != NULL, "no '%s' in: %s", part, tool.out);
}

/* It must have failed with one line on stderr that has `part` in it. */
static void check_failed(int code, const char *part)
{
	ck_assert_msg(tool.code == code, "code %d: %s", tool.code, tool.err);
	ck_assert_uint_eq(count_lines(tool.err), 1);
	ck_assert_int_eq(strncmp(tool.err, "vhost-user-ctl: ", 16), 0);
	ck_assert_msg(strstr(tool.err, part) != NULL, "no '%s' in: %s", part, tool.err);
}

/* ---- commands ---- */

static void open_guest(void)
{
	struct nic_options options = {.n_pairs = CTL_FIXTURE_PAIRS, .size = 64};

	nic_open(&nic, cf.socket_path, &options);
	for (unsigned i = 0; i < CTL_FIXTURE_PAIRS; i++)
		nic_post(&nic, i, 16, 2048);
}

static void teardown(void)
{
	nic_close(&nic);
	memset(&nic, 0, sizeof(nic));
	ctl_fixture_teardown();
}

START_TEST(status_is_shown)
{
	open_guest();
	ASK("status");
	check_ok();
	check_out("version:            ");
	check_out("socket:             listening on /tmp/");
	check_out("port:               loopback\n");
	check_out("frontend:           connected\n");
	check_out("queue pairs:        2\n");
	check_out("features:           0x");
	check_out("q1.tx:              started, enabled\n");
	ck_assert_uint_eq(count_lines(tool.out), 8 + 2 * CTL_FIXTURE_PAIRS);
}
END_TEST

START_TEST(stats_are_shown_one_counter_a_line)
{
	open_guest();
	nic_ping(&nic, 1, 100, 1);
	ASK("stats");
	check_ok();
	check_out("q0 rx_packets: 0\n");
	check_out("q1 rx_packets: 1\n");
	check_out("total rx_packets: 1\n");
	check_out("total tap_eagain: 0\n");
	ck_assert_uint_eq(count_lines(tool.out), (CTL_FIXTURE_PAIRS + 1) * N_QUEUE_COUNTERS);
}
END_TEST

START_TEST(stats_as_json_are_the_data)
{
	json_t *data;

	ASK("stats", "--json");
	check_ok();
	data = json_loads(tool.out, 0, NULL);
	ck_assert_uint_eq(json_array_size(json_object_get(data, "queues")), CTL_FIXTURE_PAIRS);
	ck_assert_uint_eq(json_object_size(json_object_get(data, "total")), N_QUEUE_COUNTERS);
	json_decref(data);
}
END_TEST

START_TEST(rings_are_shown)
{
	open_guest();
	nic_ping(&nic, 0, 100, 1);
	ASK("rings");
	check_ok();
	check_out("q0.rx   started yes     split     64       1");
	check_out("q1.tx   started yes     split     64        0");
	ck_assert_uint_eq(count_lines(tool.out), 1 + 2 * CTL_FIXTURE_PAIRS);
}
END_TEST

START_TEST(coalesce_shows_and_sets)
{
	ASK("coalesce", "rx-usecs=20", "rx-frames=32");
	check_ok();
	check_out("q0           20         32         0          0      true        false        "
		  "false\n");
	check_out("q1           20         32         0          0      true        false        "
		  "false\n");
	ASK("coalesce", "queue", "1", "tx-usecs=5", "tx-frames=6", "tx-at-rx=false",
	    "adaptive-tx=true");
	check_ok();
	check_out("q1           20         32         5          6     false        false         "
		  "true\n");
	ck_assert_uint_eq(count_lines(tool.out), 2);
	ASK("coalesce", "queue", "0");
	check_ok();
	check_out("q0           20         32         0          0      true        false        "
		  "false\n");
	ASK("coalesce");
	ck_assert_uint_eq(count_lines(tool.out), 1 + CTL_FIXTURE_PAIRS);
}
END_TEST

START_TEST(refusals_of_the_daemon_are_passed_on)
{
	ASK("coalesce", "rx-usecs=20");
	check_failed(1, "coalesce: queue 0: rx-usecs = 20 with rx-frames = 0");
	ck_assert_str_eq(tool.out, "");
	ASK("coalesce", "queue", "2");
	check_failed(1, "queue 2 does not exist");
	ASK("coalesce", "batch=1");
	check_failed(1, "'batch=1'");
	ASK("coalesce", "rx-usecs=1\n2");
	check_failed(1, "'1?2'");
	__atomic_store_n(&cf.reload_result, -EINVAL, __ATOMIC_RELAXED);
	ASK("reload");
	check_failed(1, "reload: no such thing");
}
END_TEST

START_TEST(reload_is_asked_for)
{
	ASK("reload");
	check_ok();
	check_out("configuration reloaded\n");
	ck_assert_uint_eq(__atomic_load_n(&cf.n_reloads, __ATOMIC_RELAXED), 1);
}
END_TEST

/* ---- watching ---- */

/* Have it show a few blocks, with traffic, and end it. */
static void watch_some(void)
{
	open_guest();
	tool_wait_output(&tool, "drops/s", 1);
	for (uint32_t i = 0; i < 20; i++)
		nic_ping(&nic, 1, 1000, i);
	tool_wait_output(&tool, "drops/s", 3);
	ck_assert_int_eq(kill(tool.pid, SIGINT), 0);
}

START_TEST(watch_prints_blocks_into_a_pipe)
{
	const char *line;

	tool_start(&tool, (const char *const[]){"--ctl-path", cf.ctl_path, "stats", "--watch",
						"0.2", NULL});
	watch_some();
	tool_finish(&tool);
	check_ok();
	ck_assert_ptr_null(strchr(tool.out, '\033'));
	check_out("\n\n");
	check_out("queue    pkt/s   Mbit/s batch    pkt/s   Mbit/s batch  calls/s wakeups/s "
		  "drops/s\n");
	/* The second queue had traffic, so had the total; the first had none. */
	for (line = tool.out; (line = strstr(line, "\nq1 ")); line++)
		if (strtol(line + 4, NULL, 10) > 0)
			break;
	ck_assert_ptr_nonnull(line);
	ck_assert_ptr_nonnull(strstr(line, "\ntotal "));
	ck_assert_int_gt(strtol(strstr(line, "\ntotal ") + 7, NULL, 10), 0);
	for (line = tool.out; (line = strstr(line, "\nq0 ")); line++)
		ck_assert_int_eq(strtol(line + 4, NULL, 10), 0);
}
END_TEST

START_TEST(watch_redraws_on_a_terminal)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave, err[2];

	ck_assert_int_ge(terminal, 0);
	ck_assert_int_eq(grantpt(terminal), 0);
	ck_assert_int_eq(unlockpt(terminal), 0);
	slave = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	ck_assert_int_ge(slave, 0);
	memset(&tool, 0, sizeof(tool));
	ck_assert_int_eq(pipe2(err, O_CLOEXEC), 0);
	spawn(&tool,
	      (const char *const[]){"stats", "--watch", "0.2", "--ctl-path", cf.ctl_path, NULL},
	      slave, err[1]);
	close(slave);
	close(err[1]);
	tool.out_fd = terminal;
	tool.err_fd = err[0];
	watch_some();
	tool_finish(&tool);
	check_ok();
	ck_assert_int_eq(strncmp(tool.out, "\033[H\033[2J", 7), 0);
	ck_assert_ptr_nonnull(strstr(tool.out + 7, "\033[H\033[2J"));
}
END_TEST

START_TEST(watch_ends_with_the_daemon)
{
	tool_start(&tool, (const char *const[]){"--ctl-path", cf.ctl_path, "stats", "--watch",
						"0.1", NULL});
	tool_wait_output(&tool, "drops/s", 1);
	ctl_fixture_close_ctl();
	tool_finish(&tool);
	check_failed(1, "the connection was closed");
}
END_TEST

/* ---- wrong usage ---- */

static const struct {
	const char *words[MAX_ARGS];
	const char *part;
} wrong[] = {
	{{NULL}, "no command is given"},
	{{"--ctl-path=/x"}, "no command is given"},
	{{"status"}, "give --ctl-path=PATH"},
	{{"--ctl-path"}, "--ctl-path: needs a value"},
	{{"--ctl-path=", "status"}, "--ctl-path: needs a value"},
	{{"--ctl-path=/x", "--ctl-path=/y", "status"}, "more than once"},
	{{"--ctl-path=/x", "--ctl-path=/x", "status"}, "more than once"},
	{{"--ctl-pat=/x", "status"}, "'--ctl-pat=/x' is no option"},
	{{"--ctl-path=/x", "Status"}, "'Status' is no command"},
	{{"--ctl-path=/x", "dr\nain"}, "'dr?ain' is no command"},
	{{"--ctl-path=/x", "status", "now"}, "status: takes no 'now'"},
	{{"--ctl-path=/x", "rings", "0"}, "rings: takes no '0'"},
	{{"--ctl-path=/x", "reload", "-f"}, "reload: takes no '-f'"},
	{{"--ctl-path=/x", "stats", "json"}, "does not take 'json'"},
	{{"--ctl-path=/x", "stats", "--json", "--watch"}, "does not take '--watch'"},
	{{"--ctl-path=/x", "stats", "--watch", "--json"}, "must be a number of seconds"},
	{{"--ctl-path=/x", "stats", "--watch", "0"}, "must be a number of seconds"},
	{{"--ctl-path=/x", "stats", "--watch", "3601"}, "must be a number of seconds"},
	{{"--ctl-path=/x", "stats", "--watch", "nan"}, "must be a number of seconds"},
	{{"--ctl-path=/x", "stats", "--watch", ""}, "must be a number of seconds"},
	{{"--ctl-path=/x", "stats", "--watch", "1", "2"}, "does not take '2'"},
	{{"--ctl-path=/x", "coalesce", "queue"}, "coalesce queue: must be followed"},
	{{"--ctl-path=/x", "coalesce", "queue", "x"}, "coalesce queue: must be followed"},
	{{"--ctl-path=/x", "coalesce", "queue", "-1"}, "coalesce queue: must be followed"},
	{{"--ctl-path=/x", "coalesce", "queue", "99999"}, "coalesce queue: must be followed"},
	{{"--ctl-path=/x", "coalesce", "rx-usecs"}, "coalesce: must be KEY=VALUE"},
	{{"--ctl-path=/x", "coalesce", "rx-usecs=1", "queue", "0"}, "coalesce: must be KEY=VALUE"},
	{{"--ctl-path=/x", "coalesce", "rx-usecs=\xff"}, "is no UTF-8 text"},
	{{"--ctl-path=/"
	  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	  "xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
	  "status"},
	 "is longer than the 107 bytes"},
};

START_TEST(wrong_usage_is_one_line_and_code_2)
{
	tool_run(wrong[_i].words);
	check_failed(2, wrong[_i].part);
	ck_assert_str_eq(tool.out, "");
}
END_TEST

START_TEST(help_and_version_are_printed)
{
	RUN("--help");
	check_ok();
	check_out("Usage: vhost-user-ctl --ctl-path=PATH COMMAND");
	check_out("coalesce [queue N] [KEY=VALUE ...]");
	RUN("--ctl-path=/x", "stats", "--version");
	check_ok();
	check_out("vhost-user-ctl ");
	ck_assert_uint_eq(count_lines(tool.out), 1);
}
END_TEST

START_TEST(output_that_goes_nowhere_is_an_error)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), err[2];

	ck_assert_int_ge(full, 0);
	memset(&tool, 0, sizeof(tool));
	ck_assert_int_eq(pipe2(err, O_CLOEXEC), 0);
	spawn(&tool, (const char *const[]){"--ctl-path", cf.ctl_path, "stats", NULL}, full, err[1]);
	close(err[1]);
	tool.out_fd = full;
	tool.err_fd = err[0];
	tool_finish(&tool);
	check_failed(1, "cannot write the output");
}
END_TEST

/* ---- other daemons ---- */

/* A listening socket of the test's own. */
struct impostor {
	struct unix_listener listener;
	char folder[32];
	char path[64];
};

static struct impostor imp;

static void impostor_setup(void)
{
	strcpy(imp.folder, "/tmp/vux-imp-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(imp.folder));
	snprintf(imp.path, sizeof(imp.path), "%s/c", imp.folder);
	ck_assert_int_eq(unix_listener_open(&imp.listener, imp.path, 0600, NULL), 0);
}

static void impostor_teardown(void)
{
	unix_listener_close(&imp.listener);
	unlink(imp.path);
	rmdir(imp.folder);
}

/* Run `words` against the impostor, which says `answer` and hangs up. */
static void ask_impostor(const char *const *words, const char *answer)
{
	const char *all[MAX_ARGS] = {"--ctl-path", imp.path};
	char request[512];
	int sock;

	for (size_t i = 0; words[i]; i++)
		all[i + 2] = words[i];
	tool_start(&tool, all);
	ck_assert(wait_readable(imp.listener.fd, WAIT_LONG_MS));
	sock = accept4(imp.listener.fd, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(sock, 0);
	ck_assert_int_gt(recv(sock, request, sizeof(request), 0), 0);
	ck_assert_int_eq(send(sock, answer, strlen(answer), MSG_NOSIGNAL), (ssize_t)strlen(answer));
	close(sock);
	tool_finish(&tool);
}

#define ASK_IMPOSTOR(answer, ...) ask_impostor((const char *const[]){__VA_ARGS__, NULL}, answer)

START_TEST(strange_answers_are_refused)
{
	static const char *const answers[] = {
		"hello\n",
		"\n",
		"[]\n",
		"{}\n",
		"{\"ok\":true}\n",
		"{\"ok\":1,\"data\":{}}\n",
		"{\"ok\":false}\n",
		"{\"ok\":false,\"error\":7}\n",
		"{\"ok\":true,\"data\":{}}\n",
		"{\"ok\":true,\"data\":null}\n",
		"{\"ok\":true,\"data\":[]}\n{\"ok\":true,\"data\":[]}\n",
	};
	static const char *const commands[] = {"status", "stats", "coalesce", "rings"};

	for (size_t i = 0; i < array_size(answers); i++)
		for (size_t j = 0; j < array_size(commands); j++) {
			ASK_IMPOSTOR(answers[i], commands[j]);
			check_failed(1, "is not understood");
		}
	ASK_IMPOSTOR("{\"ok\":true,\"data\":{\"queues\":[{\"queue\":0}]}}\n", "coalesce");
	check_failed(1, "is not understood");
	ASK_IMPOSTOR("{\"ok\":true,\"data\":{\"rings\":[7]}}\n", "rings");
	check_failed(1, "is not understood");
	ASK_IMPOSTOR("{\"ok\":true,\"data\":7}\n", "reload");
	check_failed(1, "is not understood");
}
END_TEST

START_TEST(end_without_an_answer_is_an_error)
{
	ASK_IMPOSTOR("", "status");
	check_failed(1, "the connection was closed");
	ASK_IMPOSTOR("{\"ok\":tr", "status");
	check_failed(1, "the connection was closed");
	ASK_IMPOSTOR("{\"ok\":false,\"error\":\"two\\nlines \\u001b[2J\"}\n", "status");
	check_failed(1, "two?lines ?[2J");
}
END_TEST

START_TEST(answer_without_end_is_refused)
{
	char *answer = malloc(5u << 20);

	ck_assert_ptr_nonnull(answer);
	memset(answer, '[', 5u << 20);
	tool_start(&tool, (const char *const[]){"--ctl-path", imp.path, "status", NULL});
	ck_assert(wait_readable(imp.listener.fd, WAIT_LONG_MS));

	int sock = accept4(imp.listener.fd, NULL, NULL, SOCK_CLOEXEC);

	send(sock, answer, 5u << 20, MSG_NOSIGNAL);
	tool_finish(&tool);
	check_failed(1, "is not understood");
	close(sock);
	free(answer);
}
END_TEST

START_TEST(nobody_there_is_an_error)
{
	RUN("--ctl-path=/no/such/socket", "status");
	check_failed(1, "/no/such/socket: no such socket");
	/* A socket file that nobody answers. */
	close(imp.listener.fd);
	RUN("--ctl-path", imp.path, "status");
	check_failed(1, "nobody listens there");
	imp.listener.fd = -1;
}
END_TEST

/* One is connected and gets no answer; the other one does not even get connected. */
START_TEST(silence_ends_after_5_seconds)
{
	static struct tool other;
	int crowd[64];
	size_t n = 0;
	uint64_t start_ns = wait_now_ns(), ms;

	tool_start(&tool, (const char *const[]){"--ctl-path", imp.path, "status", NULL});
	ck_assert(wait_readable(imp.listener.fd, WAIT_LONG_MS));
	while (n < array_size(crowd) && (crowd[n] = unix_connect(imp.path)) >= 0)
		n++;
	ck_assert_uint_lt(n, array_size(crowd));
	tool_start(&other, (const char *const[]){"--ctl-path", imp.path, "status", NULL});
	tool_finish(&tool);
	ms = (wait_now_ns() - start_ns) / 1000000;
	check_failed(1, "has not answered for 5 s");
	ck_assert_uint_ge(ms, 5000);
	ck_assert_uint_le(ms, 5000 + wait_scaled_ms(1000));
	tool_finish(&other);
	ck_assert_int_eq(other.code, 1);
	ck_assert_ptr_nonnull(strstr(other.err, "has accepted no connection for 5 s"));
	while (n > 0)
		close(crowd[--n]);
}
END_TEST

static TCase *daemon_case(void)
{
	TCase *c = tcase_create("commands");

	tcase_add_checked_fixture(c, ctl_fixture_setup, teardown);
	tcase_set_timeout(c, 120);
	tcase_add_test(c, status_is_shown);
	tcase_add_test(c, stats_are_shown_one_counter_a_line);
	tcase_add_test(c, stats_as_json_are_the_data);
	tcase_add_test(c, rings_are_shown);
	tcase_add_test(c, coalesce_shows_and_sets);
	tcase_add_test(c, refusals_of_the_daemon_are_passed_on);
	tcase_add_test(c, reload_is_asked_for);
	tcase_add_test(c, watch_prints_blocks_into_a_pipe);
	tcase_add_test(c, watch_redraws_on_a_terminal);
	tcase_add_test(c, watch_ends_with_the_daemon);
	tcase_add_test(c, output_that_goes_nowhere_is_an_error);
	return c;
}

static TCase *impostor_case(void)
{
	TCase *c = tcase_create("other daemons");

	tcase_add_checked_fixture(c, impostor_setup, impostor_teardown);
	tcase_set_timeout(c, 120);
	tcase_add_test(c, strange_answers_are_refused);
	tcase_add_test(c, end_without_an_answer_is_an_error);
	tcase_add_test(c, answer_without_end_is_refused);
	tcase_add_test(c, nobody_there_is_an_error);
	tcase_add_test(c, silence_ends_after_5_seconds);
	return c;
}

static TCase *usage_case(void)
{
	TCase *c = tcase_create("usage");

	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, wrong_usage_is_one_line_and_code_2, 0, (int)array_size(wrong));
	tcase_add_test(c, help_and_version_are_printed);
	return c;
}

int main(void)
{
	Suite *suite = suite_create("vhost-user-ctl");
	SRunner *runner;
	int n_failed;

	if (!getenv("VUX_CTL")) {
		printf("skipped: VUX_CTL does not name the vhost-user-ctl to be tested\n");
		return 77;
	}
	suite_add_tcase(suite, daemon_case());
	suite_add_tcase(suite, impostor_case());
	suite_add_tcase(suite, usage_case());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
