/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets, processes and signals: how the daemon starts, whom it serves, how it ends and comes
 * back, and what it leaves behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/system.h"

#define FRAME_LEN 100u

static struct nic_frame frame;

/* Run a second daemon at the same path. */
static struct daemon_result run_second(const char *path_option)
{
	struct daemon second;
	struct daemon_result r;

	daemon_open(&second);
	r = daemon_run(&second, &(struct daemon_options){.has_no_socket = true,
							 .args = {path_option, "--port=null"}});
	daemon_close(&second);
	return r;
}

/* It failed because of the host's state: code 1, quickly, one line that names `what`. */
static void expect_refused(struct daemon_result r, const char *what)
{
	expect_eq(r.code, 1);
	expect_lt(r.ms, wait_scaled_ms(1000));
	expect_msg(r.n_lines == 1, "%u lines: %s", r.n_lines, r.err);
	expect_msg(strstr(r.err, what) != NULL, "'%s' is not named: %s", what, r.err);
	expect_eq(r.out[0], '\0');
	daemon_result_free(&r);
}

static void socket_option(char *option, size_t size)
{
	snprintf(option, size, "--socket-path=%s", dut->path);
}

/* ---- socket files ---- */

START_TEST(stale_socket_files_are_replaced)
{
	close(frontend_listen(dut->path));
	close(frontend_listen(dut->ctl));
	system_start("--port=loopback");
	system_check_service();
	daemon_counter(dut, 0, "kicks");
	system_check_end();
}
END_TEST

START_TEST(live_socket_is_refused_and_left_alone)
{
	char option[100];

	system_start("--port=loopback");
	socket_option(option, sizeof(option));
	expect_refused(run_second(option), dut->path);
	system_check_service();
	system_check_end();
}
END_TEST

START_TEST(regular_file_is_refused_and_left_alone)
{
	const char *path = _i ? dut->ctl : dut->path;
	char option[100], text[4] = "";
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	expect_eq(write(fd, "abc", 3), 3);
	socket_option(option, sizeof(option));
	expect_refused(run_second(option), path);
	expect_eq(pread(fd, text, 3, 0), 3);
	expect_eq(access(path, F_OK), 0);
	expect_eq(strcmp(text, "abc"), 0);
	expect_eq(access(_i ? dut->path : dut->ctl, F_OK), -1);
	close(fd);
}
END_TEST

START_TEST(folder_that_does_not_exist_is_named)
{
	expect_refused(run_second("--socket-path=/nonexistent/folder/s"), "/nonexistent/folder/s");
}
END_TEST

START_TEST(sockets_have_their_mode_whatever_the_umask)
{
	const char *const umasks[] = {"0777", "0000", "0027"};
	const char *const modes[] = {NULL, "0600", "0666"};
	const mode_t expected[] = {0660, 0600, 0666};
	char setting[32];
	struct stat st;

	snprintf(setting, sizeof(setting), "socket-mode=%s", modes[_i] ? modes[_i] : "0660");
	daemon_start(dut, &(struct daemon_options){
				  .umask = umasks[_i],
				  .args = {"--port=null", modes[_i] ? "--set" : NULL, setting},
			  });
	expect_eq(stat(dut->path, &st), 0);
	expect_eq(st.st_mode & 07777, expected[_i]);
	expect_eq(stat(dut->ctl, &st), 0);
	expect_eq(st.st_mode & 07777, 0600);
	system_check_end();
}
END_TEST

START_TEST(socket_has_the_configured_group)
{
	const struct group *group = getgrnam("daemon");
	struct stat st;

	expect(group);
	system_start("--port=null", "--set", "socket-group=daemon");
	expect_eq(stat(dut->path, &st), 0);
	expect_eq(st.st_gid, group->gr_gid);
	system_check_end();
}
END_TEST

START_TEST(socket_of_somebody_else_is_not_removed)
{
	int listener;

	system_start("--port=null");
	expect_eq(unlink(dut->path), 0);
	listener = frontend_listen(dut->path);
	kill(dut->pid, SIGTERM);
	expect_eq(daemon_wait_exit(dut, 2000), 0);
	expect_eq(access(dut->path, F_OK), 0);
	close(listener);
}
END_TEST

/* ---- who is served ---- */

START_TEST(second_frontend_is_closed_at_once)
{
	struct frontend second;

	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 8, 2048);
	for (unsigned i = 1; i <= 3; i++) {
		unsigned n_lines = daemon_log_count(dut, "\n");

		frontend_connect(&second, dut->path);
		frontend_expect_closed(&second);
		frontend_close(&second);
		expect_eq(daemon_log_count(dut, "\n"), n_lines + 1);
		nic_ping(&nic, 0, FRAME_LEN, i);
	}
}
END_TEST

START_TEST(frontends_follow_one_another)
{
	system_start("--port=loopback");
	for (int i = 0; i < 30; i++)
		system_check_service();
	expect_eq(daemon_log_count(dut, "turned away"), 0);
	system_check_end();
}
END_TEST

START_TEST(ready_line_says_where_and_what_at_every_level)
{
	const char *const levels[] = {"error", "warn", "info", "debug"};
	char level[32], expected[160];

	snprintf(level, sizeof(level), "--log-level=%s", levels[_i]);
	system_start("--port=loopback", level);
	snprintf(expected, sizeof(expected), "ready: listening on %s, port loopback", dut->path);
	expect_msg(strcmp(dut->ready, expected) == 0, "%s", dut->ready);
	system_check_end();
}
END_TEST

START_TEST(one_shot_ends_with_its_frontend)
{
	system_start("--port=loopback", "--one-shot");
	nic_init(&nic, NULL);
	frontend_connect(&nic.fe, dut->path);
	nic_start(&nic);
	nic_post(&nic, 0, 8, 2048);
	nic_ping(&nic, 0, FRAME_LEN, 1);
	frontend_close(&nic.fe);
	expect_eq(daemon_wait_exit(dut, 2000), 0);
	expect_eq(access(dut->path, F_OK), -1);
	expect_eq(access(dut->ctl, F_OK), -1);
}
END_TEST

/* ---- sockets that are handed in ---- */

static void ping_over(struct nic *n)
{
	nic_start(n);
	nic_post(n, 0, 8, 2048);
	nic_ping(n, 0, FRAME_LEN, 1);
}

static void start_with_fd(int fd, bool is_activated)
{
	daemon_start(dut, &(struct daemon_options){
				  .has_no_socket = true,
				  .pass_fd = fd,
				  .is_activated = is_activated,
				  .args = {"--port=loopback", is_activated ? NULL : "--fd=3"},
			  });
	close(fd);
}

START_TEST(listening_fd_serves_one_frontend_after_another)
{
	start_with_fd(frontend_listen(dut->path), _i);
	expect(strstr(dut->ready, "fd 3"));
	for (int i = 0; i < 3; i++) {
		nic_init(&nic, NULL);
		frontend_connect(&nic.fe, dut->path);
		ping_over(&nic);
		nic_close(&nic);
	}
	/* It is not the daemon's to remove; and there is no control socket. */
	kill(dut->pid, SIGTERM);
	expect_eq(daemon_wait_exit(dut, 2000), 0);
	expect_eq(access(dut->path, F_OK), 0);
	expect_eq(access(dut->ctl, F_OK), -1);
}
END_TEST

START_TEST(connected_fd_is_served_until_its_end)
{
	int pair[2];

	expect_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	start_with_fd(pair[1], _i);
	nic_init(&nic, NULL);
	frontend_attach(&nic.fe, pair[0]);
	ping_over(&nic);
	expect_eq(daemon_wait_exit(dut, 50), -1);
	frontend_close(&nic.fe);
	expect_eq(daemon_wait_exit(dut, 2000), 0);
}
END_TEST

START_TEST(fd_that_is_no_socket_is_refused)
{
	struct daemon_result r = daemon_run(dut, &(struct daemon_options){
							 .has_no_socket = true,
							 .pass_fd = dut->err_fd,
							 .args = {"--port=null", "--fd=3"},
						 });

	expect_refused(r, "fd 3");
}
END_TEST

/* ---- client mode ---- */

START_TEST(client_connects_again_when_its_frontend_restarts)
{
	int listener;

	nic_init(&nic, NULL);
	/* Nobody listens at first. */
	system_start("--port=loopback", "--client");
	expect(strstr(dut->ready, "ready: connecting to "));
	for (int round = 0; round < 3; round++) {
		listener = frontend_listen(dut->path);
		frontend_accept(&nic.fe, listener, 3000);
		nic_start(&nic);
		if (round == 0)
			nic_post(&nic, 0, 8, 2048);
		for (uint32_t i = 0; i < 5; i++)
			nic_ping(&nic, 0, FRAME_LEN, i);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
		close(listener);
		nic_disconnect(&nic);
	}
	kill(dut->pid, SIGTERM);
	expect_eq(daemon_wait_exit(dut, 2000), 0);
	expect_eq(access(dut->ctl, F_OK), -1);
}
END_TEST

START_TEST(one_shot_client_ends_with_its_frontend)
{
	int listener = frontend_listen(dut->path);

	nic_init(&nic, NULL);
	system_start("--port=loopback", "--client", "--one-shot");
	frontend_accept(&nic.fe, listener, 3000);
	ping_over(&nic);
	frontend_close(&nic.fe);
	expect_eq(daemon_wait_exit(dut, 2000), 0);
	close(listener);
}
END_TEST

/* ---- coming back ---- */

struct stream {
	uint32_t next_out; /* the next frame to send */
	uint32_t next_in;  /* the next frame that has not been received yet */
	uint64_t n_doubles;
};

static void stream_send(struct stream *s, unsigned n)
{
	char data[FRAME_LEN];

	nic_reap(&nic, 0);
	while (n-- > 0 && nic_tx(&nic, 0)->n_free > 0) {
		nic_make_frame(data, sizeof(data), s->next_out++);
		nic_queue(&nic, 0, NULL, data, sizeof(data));
	}
	driver_kick(nic_tx(&nic, 0));
}

/* Take what has come: in order, none missing; a frame may come twice. */
static void stream_receive(struct stream *s)
{
	while (nic_poll(&nic, 0, &frame)) {
		uint32_t seq = nic_frame_seq(&frame);

		nic_check_frame(&frame, FRAME_LEN, seq);
		expect_msg(seq <= s->next_in, "frame %u is missing, %u came", s->next_in, seq);
		if (seq == s->next_in)
			s->next_in++;
		else
			s->n_doubles++;
	}
}

static void stream_finish(struct stream *s)
{
	wait_until((stream_receive(s), s->next_in == s->next_out), WAIT_LONG_MS);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
}

START_TEST(killed_daemon_comes_back_and_loses_nothing)
{
	unsigned n = wait_repeats("kills and restarts", 20, 500);
	struct stream s = {0};

	nic_init(&nic, &(struct nic_options){.base = 65000, .has_old_base = true});
	nic_post(&nic, 0, 128, 2048);
	for (unsigned round = 0; round < n; round++) {
		uint64_t n_doubles = s.n_doubles;

		system_start("--port=loopback");
		frontend_connect(&nic.fe, dut->path);
		/* A QEMU that was cut off says used->idx; of a packed ring, what it was told last. */
		nic_start(&nic);
		for (unsigned i = 0; i < 5 + round % 7; i++) {
			stream_send(&s, 1 + i * 5 % 32);
			stream_receive(&s);
			wait_pause_us(50 * (round % 5));
		}
		stream_send(&s, 64);
		/* No more frames twice than can have been in flight. */
		expect_le(s.n_doubles - n_doubles, 256);
		daemon_kill(dut);
		frontend_close(&nic.fe);
	}
	system_start("--port=loopback");
	frontend_connect(&nic.fe, dut->path);
	nic_start(&nic);
	stream_finish(&s);
	system_check_end();
}
END_TEST

/* A clean end tells the frontend nothing that it could use: the connection breaks. */
START_TEST(stopped_daemon_comes_back_and_loses_nothing)
{
	struct stream s = {0};

	nic_init(&nic, &(struct nic_options){.has_old_base = true});
	nic_post(&nic, 0, 128, 2048);
	for (unsigned round = 0; round < 5; round++) {
		system_start("--port=loopback");
		frontend_connect(&nic.fe, dut->path);
		nic_start(&nic);
		for (unsigned i = 0; i < 5; i++) {
			stream_send(&s, 32);
			stream_receive(&s);
		}
		system_check_end();
		frontend_close(&nic.fe);
	}
	system_start("--port=loopback");
	frontend_connect(&nic.fe, dut->path);
	nic_start(&nic);
	stream_finish(&s);
	system_check_end();
}
END_TEST

START_TEST(frontend_that_comes_back_loses_nothing_and_sees_nothing_twice)
{
	unsigned n = wait_repeats("reconnects", 50, 1000);
	struct stream s = {0};

	nic_init(&nic, &(struct nic_options){.has_old_base = true});
	nic_post(&nic, 0, 128, 2048);
	system_start("--port=loopback");
	for (unsigned round = 0; round < n; round++) {
		frontend_connect(&nic.fe, dut->path);
		nic_start(&nic);
		for (unsigned i = 0; i < 4; i++) {
			stream_send(&s, 16);
			stream_receive(&s);
		}
		frontend_close(&nic.fe);
	}
	frontend_connect(&nic.fe, dut->path);
	nic_start(&nic);
	stream_finish(&s);
	expect_eq(s.n_doubles, 0);
	system_check_end();
}
END_TEST

START_TEST(base_that_is_not_the_used_index_is_overruled)
{
	struct stream s = {0};

	nic_init(&nic, NULL);
	nic_post(&nic, 0, 128, 2048);
	system_start("--port=loopback");
	frontend_connect(&nic.fe, dut->path);
	nic_start(&nic);
	stream_send(&s, 50);
	stream_finish(&s);
	nic_disconnect(&nic);
	wait_until(daemon_log_count(dut, "frontend disconnected") == 1, WAIT_LONG_MS);
	/* What has been sent before the restart, and avail->idx as the base. */
	stream_send(&s, 20);
	frontend_connect(&nic.fe, dut->path);
	frontend_negotiate(&nic.fe, nic.features, NIC_PROTOCOL_FEATURES);
	frontend_set_mem_table(&nic.fe, &nic.guest);
	for (unsigned ring = 0; ring < 2; ring++) {
		const struct driver_ring *r = &nic.rings[ring];

		frontend_set_vring_enable(&nic.fe, ring, true);
		driver_send_num(r, &nic.fe);
		frontend_set_vring_base(&nic.fe, ring,
					layout_is_packed ? r->first_base : r->published_idx);
		driver_send_addr(r, &nic.fe);
		driver_send_call(r, &nic.fe);
		driver_send_kick(r, &nic.fe);
	}
	stream_finish(&s);
	expect_ge(daemon_log_count(dut, layout_is_packed ? "resuming at slot" : "used index"), 1);
}
END_TEST

/* ---- the end, in every state ---- */

static void reach_state(int state)
{
	switch (state) {
	case 0:
		system_start("--port=loopback");
		return;
	case 1:
		system_start("--port=loopback", "--client");
		return;
	case 2:
		system_start("--port=loopback");
		frontend_connect(&nic.fe, dut->path);
		return;
	case 3: /* half a message */
		system_start("--port=loopback");
		frontend_connect(&nic.fe, dut->path);
		frontend_send_bytes(&nic.fe, "\2\0\0\0\1\0\0\0\x08", 9, NULL, 0);
		return;
	case 4: /* a frontend that does not read its replies */
		system_start("--port=loopback");
		frontend_connect(&nic.fe, dut->path);
		for (int i = 0; i < 1000; i++)
			frontend_send(&nic.fe, VHOST_USER_GET_FEATURES, 1, NULL, 0, NULL, 0);
		return;
	case 5: /* running, with frames that wait for buffers */
		system_start("--port=loopback");
		system_connect(NULL);
		nic_send(&nic, 0, (char[FRAME_LEN]){0}, FRAME_LEN);
		return;
	case 6:
		system_start("--port=loopback", "--queue-pairs=16", "--set", "poll.usecs=10000");
		system_connect(&(struct nic_options){.n_pairs = 16, .size = 16});
		return;
	default: /* polled rings */
		system_start("--port=loopback");
		system_connect(&(struct nic_options){.is_left_stopped = true});
		for (unsigned ring = 0; ring < 2; ring++) {
			frontend_set_vring_enable(&nic.fe, ring, true);
			frontend_set_vring_fd(&nic.fe, VHOST_USER_SET_VRING_KICK, ring, -1);
		}
	}
}

START_TEST(signal_ends_the_daemon_in_every_state)
{
	int signals[] = {SIGTERM, SIGINT};

	for (int i = 0; i < 2; i++) {
		reach_state(_i);
		kill(dut->pid, signals[i]);
		expect_eq(daemon_wait_exit(dut, 2000), 0);
		expect_eq(access(dut->path, F_OK), -1);
		expect_eq(access(dut->ctl, F_OK), -1);
		frontend_close(&nic.fe);
		nic_close(&nic);
	}
}
END_TEST

/* ---- the control plane and packets ---- */

static int connect_ctl(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(addr.sun_path, dut->ctl, strlen(dut->ctl) + 1);
	expect_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

START_TEST(slow_control_clients_delay_nobody)
{
	static const char request[] = "{\"cmd\":\"stats\"}\n";
	int clients[6];

	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 8, 2048);
	for (unsigned i = 0; i < 6; i++)
		clients[i] = connect_ctl();
	for (unsigned i = 0; i < 3; i++) /* half a request */
		expect_eq(send(clients[i], request, 5 + i, 0), 5 + i);
	for (unsigned i = 3; i < 6; i++) /* never read */
		for (int k = 0; k < 2000; k++)
			if (send(clients[i], request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
				break;
	for (uint32_t i = 0; i < 100; i++) {
		uint64_t start = wait_now_ns();

		nic_ping(&nic, 0, FRAME_LEN, i);
		expect_lt(wait_now_ns() - start, wait_scaled_ms(500) * 1000000ULL);
	}
	frontend_sync(&nic.fe);
	daemon_counter(dut, 0, "rx_packets");
	system_check_end();
	for (unsigned i = 0; i < 6; i++)
		close(clients[i]);
}
END_TEST

static void write_config(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

	expect_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static int64_t tx_usecs(void)
{
	json_t *data = daemon_ask(dut, "coalesce", NULL);
	json_t *queue = json_array_get(json_object_get(data, "queues"), 0);
	int64_t usecs = json_integer_value(json_object_get(queue, "tx-usecs"));

	json_decref(data);
	return usecs;
}

START_TEST(reload_applies_what_can_change_and_names_what_cannot)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/conf", dut->dir);
	write_config(path, "port { type = \"loopback\" }\nmtu = 1500\n");
	system_start("--config", path);
	system_connect(NULL);
	nic_post(&nic, 0, 8, 2048);
	nic_ping(&nic, 0, FRAME_LEN, 1);
	write_config(path, "port { type = \"loopback\" }\nmtu = 9000\n"
			   "coalesce { tx-usecs = 50 tx-frames = 7 }\n");
	kill(dut->pid, SIGHUP);
	wait_until(tx_usecs() == 50, WAIT_LONG_MS);
	expect_eq(daemon_log_count(dut, "mtu"), 1);
	/* A wrong file changes nothing. */
	write_config(path,
		     "port { type = \"loopback\" }\ncoalesce { tx-usecs = 0 tx-frames = 7 }\n");
	kill(dut->pid, SIGHUP);
	wait_until(daemon_log_count(dut, "tx-") >= 1, WAIT_LONG_MS);
	expect_eq(tx_usecs(), 50);
	nic_ping(&nic, 0, FRAME_LEN, 2);
	expect_eq(daemon_log_count(dut, "disconnected"), 1); /* the one that asked for features */
}
END_TEST

static void add_sockets(TCase *tc)
{
	tcase_add_test(tc, stale_socket_files_are_replaced);
	tcase_add_test(tc, live_socket_is_refused_and_left_alone);
	tcase_add_loop_test(tc, regular_file_is_refused_and_left_alone, 0, 2);
	tcase_add_test(tc, folder_that_does_not_exist_is_named);
	tcase_add_loop_test(tc, sockets_have_their_mode_whatever_the_umask, 0, 3);
	tcase_add_test(tc, socket_has_the_configured_group);
	tcase_add_test(tc, socket_of_somebody_else_is_not_removed);
	tcase_add_test(tc, second_frontend_is_closed_at_once);
	tcase_add_test(tc, frontends_follow_one_another);
	tcase_add_loop_test(tc, ready_line_says_where_and_what_at_every_level, 0, 4);
	tcase_add_loop_test(tc, listening_fd_serves_one_frontend_after_another, 0, 2);
	tcase_add_loop_test(tc, connected_fd_is_served_until_its_end, 0, 2);
	tcase_add_test(tc, fd_that_is_no_socket_is_refused);
}

static void add_rings(TCase *tc)
{
	tcase_add_test(tc, one_shot_ends_with_its_frontend);
	tcase_add_test(tc, client_connects_again_when_its_frontend_restarts);
	tcase_add_test(tc, killed_daemon_comes_back_and_loses_nothing);
	tcase_add_test(tc, stopped_daemon_comes_back_and_loses_nothing);
	tcase_add_test(tc, frontend_that_comes_back_loses_nothing_and_sees_nothing_twice);
	tcase_add_test(tc, base_that_is_not_the_used_index_is_overruled);
}

static void add_others(TCase *tc)
{
	add_sockets(tc);
	tcase_add_test(tc, one_shot_client_ends_with_its_frontend);
	tcase_add_loop_test(tc, signal_ends_the_daemon_in_every_state, 0, 8);
	tcase_add_test(tc, slow_control_clients_delay_nobody);
	tcase_add_test(tc, reload_applies_what_can_change_and_names_what_cannot);
}

int main(void)
{
	return system_main_rings("lifecycle", add_rings, add_others);
}
