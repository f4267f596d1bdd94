/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that are cut, merged, too long, too short, unknown, or carry the wrong fds and numbers:
 * refused, or the connection ends; the process lives, leaks nothing and serves the next frontend.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/system.h"

static uint32_t random_state;

static uint32_t next_random(void)
{
	random_state = random_state * 1664525 + 1013904223;
	return random_state >> 8;
}

static void connect_and_negotiate(void)
{
	frontend_close(&nic.fe);
	frontend_connect(&nic.fe, dut->path);
	frontend_negotiate(&nic.fe, NIC_FEATURES, NIC_PROTOCOL_FEATURES);
}

static bool is_connected(void)
{
	json_t *status = daemon_ask(dut, "status", NULL);
	bool is = json_is_true(json_object_get(status, "connected"));

	json_decref(status);
	return is;
}

/* Let the daemon see the end of the last connection. Return: the fds that it has open then. */
static unsigned fds_at_rest(void)
{
	unsigned n, last = 0;

	wait_until(!is_connected(), WAIT_LONG_MS);
	/* The control connection that was asked on ends, too. */
	while ((n = daemon_n_fds(dut)) != last) {
		last = n;
		wait_pause_us(5000);
	}
	return n;
}

/* ---- bytes ---- */

/* Write a message into `to`. Return: its length. */
static size_t put_message(char *to, uint32_t request, uint32_t flags, const void *payload,
			  uint32_t size)
{
	struct vhost_user_header header = {.request = request, .flags = flags, .size = size};

	memcpy(to, &header, sizeof(header));
	if (size > 0)
		memcpy(to + sizeof(header), payload, size);
	return sizeof(header) + size;
}

START_TEST(message_may_come_byte_by_byte)
{
	char bytes[64];
	size_t len;

	system_start("--port=loopback");
	connect_and_negotiate();
	len = put_message(bytes, VHOST_USER_SET_VRING_NUM, 9, "\0\0\0\0\0\1\0\0", 8);
	for (int round = 0; round < 3; round++) {
		struct frontend_reply reply;

		for (size_t i = 0; i < len; i++) {
			expect(frontend_send_bytes(&nic.fe, &bytes[i], 1, NULL, 0));
			if (i % 5 == 0)
				wait_pause_us(300);
		}
		frontend_expect_reply(&nic.fe, VHOST_USER_SET_VRING_NUM, &reply);
		expect_eq(reply.payload.u64, 0);
	}
}
END_TEST

START_TEST(messages_may_come_merged_and_cut_anywhere)
{
	char bytes[12 * 64];
	size_t len = 0;

	system_start("--port=loopback");
	connect_and_negotiate();
	for (int i = 0; i < 20; i++) {
		len += put_message(bytes + len, VHOST_USER_GET_FEATURES, 1, NULL, 0);
		len += put_message(bytes + len, VHOST_USER_SET_OWNER, 9, NULL, 0);
	}
	for (size_t cut = 1; cut < len; cut += 7) {
		struct frontend_reply reply;

		expect(frontend_send_bytes(&nic.fe, bytes, cut, NULL, 0));
		if (cut % 3 == 0)
			wait_pause_us(200);
		expect(frontend_send_bytes(&nic.fe, bytes + cut, len - cut, NULL, 0));
		for (int i = 0; i < 20; i++) {
			frontend_expect_reply(&nic.fe, VHOST_USER_GET_FEATURES, &reply);
			frontend_expect_reply(&nic.fe, VHOST_USER_SET_OWNER, &reply);
			expect_eq(reply.payload.u64, 0);
		}
	}
}
END_TEST

START_TEST(fds_stay_with_their_message_when_messages_are_merged)
{
	char bytes[128];
	size_t first, len;
	uint64_t call = 0;

	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 8, 2048);
	/* The fd of the second message comes with its own first byte. */
	first = put_message(bytes, VHOST_USER_SET_OWNER, 1, NULL, 0);
	len = put_message(bytes + first, VHOST_USER_SET_VRING_CALL, 1, &call, 8);
	for (int i = 0; i < 50; i++) {
		expect(frontend_send_bytes(&nic.fe, bytes, first, NULL, 0));
		expect(frontend_send_bytes(&nic.fe, bytes + first, len, &nic_rx(&nic, 0)->call_fd,
					   1));
		frontend_sync(&nic.fe);
	}
	nic_ping(&nic, 0, 100, 1);
}
END_TEST

START_TEST(connection_may_end_anywhere_in_a_message)
{
	char bytes[64];
	size_t len = put_message(bytes, VHOST_USER_SET_FEATURES, 1, "12345678", 8);
	unsigned before;

	system_start("--port=loopback");
	before = fds_at_rest();
	for (size_t cut = 0; cut <= len; cut++) {
		frontend_connect(&nic.fe, dut->path);
		if (cut > 0)
			expect(frontend_send_bytes(&nic.fe, bytes, cut, &dut->err_fd, 1));
		frontend_close(&nic.fe);
	}
	wait_until(fds_at_rest() == before, WAIT_LONG_MS);
	system_check_service();
}
END_TEST

static const struct vhost_user_header bad_headers[] = {
	{VHOST_USER_GET_FEATURES, 0, 0},	  {VHOST_USER_GET_FEATURES, 2, 0},
	{VHOST_USER_GET_FEATURES, 3, 0},	  {VHOST_USER_GET_FEATURES, 1, 5000},
	{VHOST_USER_GET_FEATURES, 1, 0xffffffff}, {VHOST_USER_SET_FEATURES, 1, 0x80000008},
	{0xffffffff, 0xfffffffe, 0xffffffff},
};

START_TEST(header_that_cannot_be_ends_the_connection)
{
	system_start("--port=loopback");
	for (int i = 0; i < 20; i++) {
		frontend_connect(&nic.fe, dut->path);
		expect(frontend_send_bytes(&nic.fe, &bad_headers[_i], sizeof(bad_headers[_i]), NULL,
					   0));
		frontend_expect_closed(&nic.fe);
		frontend_close(&nic.fe);
	}
	system_check_service();
}
END_TEST

/* ---- sizes ---- */

static const struct {
	uint32_t request, size;
	bool has_own_reply;
} requests[] = {
	{VHOST_USER_GET_FEATURES, 0, true},
	{VHOST_USER_SET_FEATURES, 8, false},
	{VHOST_USER_SET_OWNER, 0, false},
	{VHOST_USER_RESET_OWNER, 0, false},
	{VHOST_USER_SET_MEM_TABLE, 40, false},
	{VHOST_USER_SET_VRING_NUM, 8, false},
	{VHOST_USER_SET_VRING_ADDR, 40, false},
	{VHOST_USER_SET_VRING_BASE, 8, false},
	{VHOST_USER_GET_VRING_BASE, 8, true},
	{VHOST_USER_SET_VRING_KICK, 8, false},
	{VHOST_USER_SET_VRING_CALL, 8, false},
	{VHOST_USER_SET_VRING_ERR, 8, false},
	{VHOST_USER_GET_PROTOCOL_FEATURES, 0, true},
	{VHOST_USER_SET_PROTOCOL_FEATURES, 8, false},
	{VHOST_USER_GET_QUEUE_NUM, 0, true},
	{VHOST_USER_SET_VRING_ENABLE, 8, false},
	{VHOST_USER_NET_SET_MTU, 8, false},
	{VHOST_USER_RESET_DEVICE, 0, false},
	{VHOST_USER_SET_STATUS, 8, false},
	{VHOST_USER_GET_STATUS, 0, true},
};
#define N_REQUESTS ((int)(sizeof(requests) / sizeof(requests[0])))

/* After a bad message with NEED_REPLY: a non-zero ack, or an orderly end. */
static void expect_refused(uint32_t request)
{
	struct frontend_reply reply;
	enum frontend_event event = frontend_wait(&nic.fe, &reply, 1000);

	expect_msg(event != FRONTEND_SILENCE, "request %u: neither ack nor end", request);
	if (event == FRONTEND_CLOSED) {
		connect_and_negotiate();
		return;
	}
	expect_eq(reply.header.request, request);
	expect_eq(reply.header.flags, 5);
	expect_eq(reply.header.size, 8);
	expect_msg(reply.payload.u64 != 0, "request %u was accepted", request);
}

START_TEST(payload_of_the_wrong_size_is_refused)
{
	char zeros[300] = {0};

	system_start("--port=loopback");
	connect_and_negotiate();
	for (uint32_t size = 0; size <= 268; size += size < 48 ? 1 : 20) {
		uint32_t request = requests[_i].request;
		bool is_table = request == VHOST_USER_SET_MEM_TABLE;

		if (size == requests[_i].size && !is_table)
			continue;
		frontend_send(&nic.fe, request, 9, zeros, size, NULL, 0);
		expect_refused(request);
	}
	frontend_sync(&nic.fe);
	frontend_close(&nic.fe);
	system_check_service();
}
END_TEST

/* ---- fds ---- */

START_TEST(fds_that_a_message_does_not_take_are_closed)
{
	unsigned n = wait_repeats("messages with stray fds", 1000, 10000), before;
	int fds[32];

	system_start("--port=loopback");
	before = fds_at_rest();
	for (unsigned i = 0; i < 32; i++)
		fds[i] = dut->err_fd;
	connect_and_negotiate();
	for (unsigned i = 0; i < n; i++) {
		uint32_t request = requests[i % (unsigned)N_REQUESTS].request;
		uint32_t size = requests[i % (unsigned)N_REQUESTS].size;
		unsigned n_fds = 1 + next_random() % 31;

		if (request == VHOST_USER_SET_VRING_KICK || request == VHOST_USER_SET_VRING_CALL ||
		    request == VHOST_USER_SET_VRING_ERR)
			n_fds++; /* one too many */
		if (i % 7 == 0)	 /* an unknown request */
			request = 1000 + i;
		frontend_send(&nic.fe, request, 9, (char[64]){0}, size, fds, n_fds);
		expect_refused(request);
	}
	frontend_close(&nic.fe);
	wait_until(fds_at_rest() == before, WAIT_LONG_MS);
	system_check_service();
}
END_TEST

START_TEST(ring_fds_that_are_missing_or_too_many_are_refused)
{
	const uint32_t with_fd[] = {VHOST_USER_SET_VRING_KICK, VHOST_USER_SET_VRING_CALL,
				    VHOST_USER_SET_VRING_ERR};
	int fds[2];

	system_start("--port=loopback");
	connect_and_negotiate();
	fds[0] = fds[1] = dut->err_fd;
	for (unsigned i = 0; i < 3; i++) {
		frontend_send(&nic.fe, with_fd[i], 9, &(uint64_t){0}, 8, NULL, 0);
		expect_refused(with_fd[i]);
		frontend_send(&nic.fe, with_fd[i], 9, &(uint64_t){0}, 8, fds, 2);
		expect_refused(with_fd[i]);
		/* The no-fd bit, and an fd all the same. */
		frontend_send(&nic.fe, with_fd[i], 9, &(uint64_t){0x100}, 8, fds, 1);
		expect_refused(with_fd[i]);
	}
}
END_TEST

/* ---- numbers ---- */

START_TEST(ring_index_is_checked_at_full_width)
{
	const uint32_t with_state[] = {VHOST_USER_SET_VRING_NUM, VHOST_USER_SET_VRING_BASE,
				       VHOST_USER_SET_VRING_ENABLE};
	const uint32_t with_fd[] = {VHOST_USER_SET_VRING_KICK, VHOST_USER_SET_VRING_CALL,
				    VHOST_USER_SET_VRING_ERR};
	/* One pair has rings 0 and 1, and the control queue 2. */
	const uint32_t indices[] = {3, 4, 32, 255, 256, 257, 0x10000, 0x80000000, 0xffffffff};

	system_start("--port=loopback");
	connect_and_negotiate();
	for (unsigned i = 0; i < sizeof(indices) / sizeof(indices[0]); i++) {
		struct vhost_user_vring_state state = {.index = indices[i], .num = 1};
		struct vhost_user_vring_addr addr = {.index = indices[i]};
		uint64_t no_fd = 0x100 | indices[i], wide = 0x100 | (uint64_t)indices[i] << 32;

		for (unsigned k = 0; k < 3; k++) {
			state.num = k == 0 ? 256 : 1;
			frontend_send(&nic.fe, with_state[k], 9, &state, 8, NULL, 0);
			expect_refused(with_state[k]);
			if ((no_fd & ~0x100ULL) > 2) {
				frontend_send(&nic.fe, with_fd[k], 9, &no_fd, 8, NULL, 0);
				expect_refused(with_fd[k]);
			}
			frontend_send(&nic.fe, with_fd[k], 9, &wide, 8, NULL, 0);
			expect_refused(with_fd[k]);
		}
		frontend_send(&nic.fe, VHOST_USER_SET_VRING_ADDR, 9, &addr, sizeof(addr), NULL, 0);
		expect_refused(VHOST_USER_SET_VRING_ADDR);
		frontend_send(&nic.fe, VHOST_USER_GET_VRING_BASE, 1, &state, 8, NULL, 0);
		frontend_expect_closed(&nic.fe);
		connect_and_negotiate();
	}
	frontend_close(&nic.fe);
	system_check_service();
}
END_TEST

START_TEST(ring_size_is_checked_at_full_width)
{
	const uint32_t bad[] = {0, 1, 3, 100, 257, 32767, 65536, 0x10100, 0x80000000, 0xffffffff};
	const uint32_t good[] = {2, 4, 256, 32768};

	system_start("--port=loopback");
	connect_and_negotiate();
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct vhost_user_vring_state state = {.index = 0, .num = bad[i]};

		frontend_send(&nic.fe, VHOST_USER_SET_VRING_NUM, 9, &state, 8, NULL, 0);
		expect_refused(VHOST_USER_SET_VRING_NUM);
	}
	nic.fe.wants_acks = true;
	for (unsigned i = 0; i < 4; i++)
		frontend_set_vring_num(&nic.fe, 0, good[i]);
	for (unsigned i = 0; i < 2; i++) {
		struct vhost_user_vring_state base = {.index = 0, .num = i ? 0x10000 : 0xffffffff};
		struct vhost_user_vring_state enable = {.index = 0, .num = 2 + i};

		frontend_send(&nic.fe, VHOST_USER_SET_VRING_BASE, 9, &base, 8, NULL, 0);
		expect_refused(VHOST_USER_SET_VRING_BASE);
		frontend_send(&nic.fe, VHOST_USER_SET_VRING_ENABLE, 9, &enable, 8, NULL, 0);
		expect_refused(VHOST_USER_SET_VRING_ENABLE);
	}
}
END_TEST

/* ---- anything ---- */

static void send_anything(void)
{
	uint32_t payload[67];
	uint32_t n_fds = next_random() % 6 ? next_random() % 3 : next_random() % 20;
	int fds[20];
	uint32_t request = next_random() % 45, size;
	uint32_t flags = next_random() % 30 ? 1 | (next_random() % 2 ? 8 : 0) : next_random();

	for (unsigned i = 0; i < 67; i++)
		payload[i] = next_random() % 3 ? next_random() % 5 : next_random() << 8;
	for (unsigned i = 0; i < 20; i++)
		fds[i] = next_random() % 2 ? nic.guest.memfd : nic.rings[i % 2].call_fd;
	size = next_random() % 4 ? 8 : next_random() % 268;
	for (int i = 0; i < N_REQUESTS; i++)
		if (requests[i].request == request && next_random() % 4)
			size = requests[i].size;
	frontend_send(&nic.fe, request, flags, payload, size, fds, n_fds);
}

static void drain_replies(void)
{
	char bytes[4096];

	while (recv(nic.fe.sock, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

START_TEST(random_messages_do_no_harm)
{
	unsigned n = wait_repeats("random messages", 4000, 1000000), before;

	system_start("--port=loopback", "--queue-pairs=2", "--set", "offer-config=true");
	before = fds_at_rest();
	random_state = (uint32_t)_i;
	nic_init(&nic, NULL);
	for (unsigned i = 0; i < n; i++) {
		if (nic.fe.sock < 0 && i % 3) {
			frontend_connect(&nic.fe, dut->path);
			frontend_negotiate(&nic.fe, NIC_FEATURES, NIC_PROTOCOL_FEATURES);
			frontend_set_mem_table(&nic.fe, &nic.guest);
		} else if (nic.fe.sock < 0) {
			frontend_connect(&nic.fe, dut->path);
		}
		send_anything();
		drain_replies();
		if (next_random() % 100 == 0 ||
		    recv(nic.fe.sock, &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
			frontend_close(&nic.fe);
	}
	frontend_close(&nic.fe);
	nic_close(&nic);
	wait_until(fds_at_rest() == before, WAIT_LONG_MS);
	expect_eq(daemon_n_guest_maps(dut), 0);
	system_check_service();
	system_check_end();
}
END_TEST

START_TEST(random_bytes_do_no_harm)
{
	char bytes[200];

	system_start("--port=loopback");
	random_state = 99;
	for (int i = 0; i < 300; i++) {
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (char)next_random();
		frontend_connect(&nic.fe, dut->path);
		frontend_send_bytes(&nic.fe, bytes, 1 + next_random() % 199, NULL, 0);
		frontend_close(&nic.fe);
	}
	system_check_service();
	system_check_end();
}
END_TEST

static void add_all(TCase *tc)
{
	tcase_add_test(tc, message_may_come_byte_by_byte);
	tcase_add_test(tc, messages_may_come_merged_and_cut_anywhere);
	tcase_add_test(tc, fds_stay_with_their_message_when_messages_are_merged);
	tcase_add_test(tc, connection_may_end_anywhere_in_a_message);
	tcase_add_loop_test(tc, header_that_cannot_be_ends_the_connection, 0, 7);
	tcase_add_loop_test(tc, payload_of_the_wrong_size_is_refused, 0, N_REQUESTS);
	tcase_add_test(tc, fds_that_a_message_does_not_take_are_closed);
	tcase_add_test(tc, ring_fds_that_are_missing_or_too_many_are_refused);
	tcase_add_test(tc, ring_index_is_checked_at_full_width);
	tcase_add_test(tc, ring_size_is_checked_at_full_width);
	tcase_add_loop_test(tc, random_messages_do_no_harm, 0, 4);
	tcase_add_test(tc, random_bytes_do_no_harm);
}

int main(void)
{
	return system_main("protocol_fuzz", add_all);
}
