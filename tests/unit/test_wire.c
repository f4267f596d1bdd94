/* SPDX-License-Identifier: BSD-2-Clause */
#include "vhost/wire.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "support/fds.h"

#define HEADER_SIZE sizeof(struct vhost_user_header)
#define MAX_PAYLOAD sizeof(((union vhost_user_payload *)0)->bytes)
#define MAX_MESSAGE (HEADER_SIZE + MAX_PAYLOAD)

static int ours, theirs;
static struct wire_reader reader;

static void setup(void)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ours = pair[0];
	theirs = pair[1];
	reader = (struct wire_reader){.n_read = 0};
}

static void hang_up(void)
{
	if (theirs >= 0)
		close(theirs);
	theirs = -1;
}

static void teardown(void)
{
	wire_reader_next(&reader);
	hang_up();
	close(ours);
}

/* Send bytes, and `n_fds` new eventfds with the first of them. */
static void send_bytes(const void *bytes, size_t len, unsigned n_fds)
{
	int fds[16];
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fds))] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	ck_assert_uint_le(n_fds, array_size(fds));
	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = eventfd(i, 0);
	if (n_fds > 0) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);

		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	ck_assert_int_eq(sendmsg(theirs, &msg, MSG_NOSIGNAL), (ssize_t)len);
	for (unsigned i = 0; i < n_fds; i++)
		close(fds[i]);
}

/* Put a message into `bytes`; its payload counts up from `first`. Return: its length. */
static size_t make_message(char *bytes, uint32_t request, uint32_t size, uint8_t first)
{
	struct vhost_user_header header = {
		.request = request,
		.flags = VHOST_USER_VERSION,
		.size = size,
	};

	memcpy(bytes, &header, sizeof(header));
	for (uint32_t i = 0; i < size; i++)
		bytes[sizeof(header) + i] = (char)(first + i);
	return sizeof(header) + size;
}

static void send_message(uint32_t request, uint32_t size, unsigned n_fds)
{
	char bytes[MAX_MESSAGE];
	size_t len = make_message(bytes, request, size, 1);

	send_bytes(bytes, len, n_fds);
}

static void check_message(uint32_t request, uint32_t size, unsigned n_fds)
{
	ck_assert_uint_eq(reader.msg.header.request, request);
	ck_assert_uint_eq(reader.msg.header.size, size);
	ck_assert_uint_eq(reader.msg.n_fds, n_fds);
	for (uint32_t i = 0; i < size; i++)
		ck_assert_uint_eq(reader.msg.payload.bytes[i], (uint8_t)(1 + i));
	for (uint32_t i = size; i < MAX_PAYLOAD; i++)
		ck_assert_uint_eq(reader.msg.payload.bytes[i], 0);
}

/* The number that the i-th eventfd of send_bytes() was made with. */
static uint64_t read_eventfd(int fd)
{
	uint64_t value = 0;
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	if (poll(&pfd, 1, 0) == 1)
		ck_assert_int_eq(read(fd, &value, sizeof(value)), sizeof(value));
	return value;
}

START_TEST(nothing_sent_is_nothing_read)
{
	ck_assert_int_eq(wire_read(&reader, ours), 0);
	ck_assert_int_eq(wire_read(&reader, ours), 0);
}
END_TEST

START_TEST(whole_message_is_read)
{
	static const uint32_t sizes[] = {0, 1, 8, 40, 264, MAX_PAYLOAD};

	for (size_t i = 0; i < array_size(sizes); i++) {
		send_message(7, sizes[i], 0);
		ck_assert_int_eq(wire_read(&reader, ours), 1);
		check_message(7, sizes[i], 0);
		wire_reader_next(&reader);
		ck_assert_int_eq(wire_read(&reader, ours), 0);
	}
}
END_TEST

START_TEST(fds_come_with_any_byte_and_bytes_one_by_one)
{
	char bytes[MAX_MESSAGE];
	size_t len = make_message(bytes, 12, 8, 1);

	for (size_t i = 0; i < len; i++) {
		ck_assert_int_eq(wire_read(&reader, ours), 0);
		send_bytes(bytes + i, 1, i == (size_t)_i ? 2 : 0);
	}
	ck_assert_int_eq(wire_read(&reader, ours), 1);
	check_message(12, 8, 2);
	ck_assert_uint_eq(read_eventfd(reader.msg.fds[1]), 1);
}
END_TEST

START_TEST(message_cut_in_two_is_put_together)
{
	char bytes[MAX_MESSAGE];
	size_t len = make_message(bytes, 5, 40, 1);

	send_bytes(bytes, (size_t)_i, 1);
	ck_assert_int_eq(wire_read(&reader, ours), 0);
	send_bytes(bytes + _i, len - (size_t)_i, 1);
	ck_assert_int_eq(wire_read(&reader, ours), 1);
	check_message(5, 40, 2);
}
END_TEST

START_TEST(merged_messages_are_taken_apart)
{
	char bytes[3 * MAX_MESSAGE];
	size_t len = make_message(bytes, 1, 0, 1);

	len += make_message(bytes + len, 2, 8, 1);
	len += make_message(bytes + len, 3, 268, 1);
	send_bytes(bytes, len, 0);
	for (uint32_t request = 1; request <= 3; request++) {
		static const uint32_t sizes[] = {0, 8, 268};

		ck_assert_int_eq(wire_read(&reader, ours), 1);
		check_message(request, sizes[request - 1], 0);
		wire_reader_next(&reader);
	}
	ck_assert_int_eq(wire_read(&reader, ours), 0);
}
END_TEST

START_TEST(fds_stay_with_their_message)
{
	send_message(12, 8, 1);
	send_message(13, 8, 0);
	send_message(5, 40, 8);
	ck_assert_int_eq(wire_read(&reader, ours), 1);
	check_message(12, 8, 1);
	wire_reader_next(&reader);
	ck_assert_int_eq(wire_read(&reader, ours), 1);
	check_message(13, 8, 0);
	wire_reader_next(&reader);
	ck_assert_int_eq(wire_read(&reader, ours), 1);
	check_message(5, 40, 8);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_uint_eq(read_eventfd(reader.msg.fds[i]), i);
}
END_TEST

START_TEST(fds_are_not_inherited)
{
	send_message(12, 8, 2);
	ck_assert_int_eq(wire_read(&reader, ours), 1);
	ck_assert(fds_is_cloexec(reader.msg.fds[0]));
	ck_assert(fds_is_cloexec(reader.msg.fds[1]));
}
END_TEST

START_TEST(what_is_left_of_a_longer_message_is_not_seen)
{
	send_message(5, 268, 0);
	ck_assert_int_eq(wire_read(&reader, ours), 1);
	wire_reader_next(&reader);
	send_message(2, 3, 0);
	ck_assert_int_eq(wire_read(&reader, ours), 1);
	check_message(2, 3, 0);
}
END_TEST

START_TEST(end_of_file_is_a_reset)
{
	hang_up();
	ck_assert_int_eq(wire_read(&reader, ours), -ECONNRESET);
	ck_assert_uint_eq(reader.n_read, 0);
}
END_TEST

START_TEST(end_of_file_after_a_message_comes_after_it)
{
	send_message(3, 0, 0);
	hang_up();
	ck_assert_int_eq(wire_read(&reader, ours), 1);
	wire_reader_next(&reader);
	ck_assert_int_eq(wire_read(&reader, ours), -ECONNRESET);
}
END_TEST

START_TEST(cut_message_is_a_reset_and_leaks_nothing)
{
	char bytes[MAX_MESSAGE];
	unsigned before;

	make_message(bytes, 12, 8, 1);
	send_bytes(bytes, (size_t)_i, 1);
	hang_up();
	before = fds_count();
	ck_assert_int_eq(wire_read(&reader, ours), -ECONNRESET);
	ck_assert_uint_eq(fds_count(), before);
}
END_TEST

START_TEST(wrong_version_is_an_error)
{
	static const uint32_t flags[] = {0, 2, 3, 0xfffffffc};
	struct vhost_user_header header = {.request = 1, .flags = flags[_i]};

	send_bytes(&header, sizeof(header), 1);
	ck_assert_int_eq(wire_read(&reader, ours), -EPROTO);
}
END_TEST

START_TEST(flags_beside_the_version_are_the_devices_business)
{
	struct vhost_user_header header = {.request = 1, .flags = 0xfffffffd};

	send_bytes(&header, sizeof(header), 0);
	ck_assert_int_eq(wire_read(&reader, ours), 1);
	ck_assert_uint_eq(reader.msg.header.flags, 0xfffffffd);
}
END_TEST

START_TEST(payload_larger_than_any_is_an_error)
{
	static const uint32_t sizes[] = {MAX_PAYLOAD + 1, 0x7fffffff, 0xfffffff4, 0xffffffff};
	struct vhost_user_header header = {
		.request = 1,
		.flags = VHOST_USER_VERSION,
		.size = sizes[_i],
	};
	unsigned before = fds_count();

	send_bytes(&header, sizeof(header), 3);
	ck_assert_int_eq(wire_read(&reader, ours), -EPROTO);
	ck_assert_uint_eq(fds_count(), before);
}
END_TEST

START_TEST(too_many_fds_at_once_are_an_error_and_closed)
{
	char bytes[MAX_MESSAGE];
	size_t len = make_message(bytes, 5, 8, 1);
	unsigned before = fds_count();

	send_bytes(bytes, len, VHOST_USER_MAX_FDS + 1);
	ck_assert_int_eq(wire_read(&reader, ours), -EMFILE);
	ck_assert_uint_eq(fds_count(), before);
}
END_TEST

START_TEST(too_many_fds_over_one_message_are_an_error_and_closed)
{
	char bytes[MAX_MESSAGE];
	size_t len = make_message(bytes, 5, 8, 1);
	unsigned before = fds_count();

	send_bytes(bytes, HEADER_SIZE, 5);
	send_bytes(bytes + HEADER_SIZE, len - HEADER_SIZE, 4);
	ck_assert_int_eq(wire_read(&reader, ours), -EMFILE);
	ck_assert_uint_eq(fds_count(), before);
}
END_TEST

START_TEST(fds_beyond_the_limit_of_the_process_are_an_error_and_closed)
{
	unsigned before = fds_count();
	struct rlimit limit, low;
	int ret, top;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	send_message(5, 8, 4);
	top = dup(ours);
	close(top);
	/* Room for two more. */
	low = (struct rlimit){.rlim_cur = (rlim_t)top + 2, .rlim_max = limit.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	ret = wire_read(&reader, ours);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(ret, -EMFILE);
	ck_assert_uint_eq(fds_count(), before);
}
END_TEST

START_TEST(fd_that_was_taken_is_the_takers)
{
	unsigned before = fds_count();
	int fd;

	send_message(12, 8, 3);
	ck_assert_int_eq(wire_read(&reader, ours), 1);
	fd = wire_msg_take_fd(&reader.msg, 1);
	ck_assert_uint_eq(read_eventfd(fd), 1);
	ck_assert_int_eq(wire_msg_take_fd(&reader.msg, 1), -1);
	ck_assert_int_eq(wire_msg_take_fd(&reader.msg, 3), -1);
	ck_assert_int_eq(wire_msg_take_fd(&reader.msg, 0xffffffff), -1);
	wire_reader_next(&reader);
	ck_assert_uint_eq(fds_count(), before + 1);
	close(fd);
}
END_TEST

START_TEST(reader_can_be_emptied_in_the_middle_of_a_message)
{
	char bytes[MAX_MESSAGE];
	unsigned before = fds_count();

	make_message(bytes, 12, 8, 1);
	send_bytes(bytes, HEADER_SIZE + 4, 2);
	ck_assert_int_eq(wire_read(&reader, ours), 0);
	ck_assert_uint_eq(fds_count(), before + 2);
	wire_reader_next(&reader);
	wire_reader_next(&reader);
	ck_assert_uint_eq(fds_count(), before);
}
END_TEST

START_TEST(fds_that_nobody_wants_do_not_leak)
{
	unsigned before = fds_count();

	for (int i = 0; i < 10000; i++) {
		send_message(1, 0, 8);
		ck_assert_int_eq(wire_read(&reader, ours), 1);
		wire_reader_next(&reader);
	}
	ck_assert_uint_eq(fds_count(), before);
}
END_TEST

START_TEST(socket_error_is_passed_on)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	ck_assert_int_eq(wire_read(&reader, -1), -EBADF);
	ck_assert_int_eq(wire_read(&reader, fd), -ENOTSOCK);
	close(fd);
}
END_TEST

START_TEST(reply_has_version_and_reply_bit_and_nothing_else)
{
	union vhost_user_payload payload = {.u64 = 0x1122334455667788};
	struct {
		struct vhost_user_header header;
		uint8_t payload[MAX_PAYLOAD + 1];
	} got;

	ck_assert_int_eq(wire_reply(ours, 15, &payload, 8), 0);
	ck_assert_int_eq(recv(theirs, &got, sizeof(got), MSG_DONTWAIT), 12 + 8);
	ck_assert_uint_eq(got.header.request, 15);
	ck_assert_uint_eq(got.header.flags, 5);
	ck_assert_uint_eq(got.header.size, 8);
	ck_assert_mem_eq(got.payload, &payload, 8);

	ck_assert_int_eq(wire_reply(ours, 24, &payload, MAX_PAYLOAD), 0);
	ck_assert_int_eq(recv(theirs, &got, sizeof(got), MSG_DONTWAIT), MAX_MESSAGE);
	ck_assert_int_eq(wire_reply(ours, 24, &payload, 0), 0);
	ck_assert_int_eq(recv(theirs, &got, sizeof(got), MSG_DONTWAIT), HEADER_SIZE);
}
END_TEST

START_TEST(reply_to_a_peer_that_does_not_read_fails_at_last)
{
	union vhost_user_payload payload = {.u64 = 1};
	int err = 0;

	for (int i = 0; i < 1000000 && err == 0; i++)
		err = wire_reply(ours, 1, &payload, MAX_PAYLOAD);
	ck_assert_int_eq(err, -EAGAIN);
}
END_TEST

START_TEST(reply_to_nobody_fails_without_a_signal)
{
	union vhost_user_payload payload = {.u64 = 1};

	hang_up();
	ck_assert_int_eq(wire_reply(ours, 1, &payload, 8), -EPIPE);
}
END_TEST

static void add_reading(TCase *tc)
{
	tcase_add_test(tc, nothing_sent_is_nothing_read);
	tcase_add_test(tc, whole_message_is_read);
	tcase_add_loop_test(tc, fds_come_with_any_byte_and_bytes_one_by_one, 0, HEADER_SIZE + 8);
	tcase_add_loop_test(tc, message_cut_in_two_is_put_together, 1, HEADER_SIZE + 40);
	tcase_add_test(tc, merged_messages_are_taken_apart);
	tcase_add_test(tc, fds_stay_with_their_message);
	tcase_add_test(tc, fds_are_not_inherited);
	tcase_add_test(tc, what_is_left_of_a_longer_message_is_not_seen);
	tcase_add_test(tc, end_of_file_is_a_reset);
	tcase_add_test(tc, end_of_file_after_a_message_comes_after_it);
	tcase_add_loop_test(tc, cut_message_is_a_reset_and_leaks_nothing, 1, HEADER_SIZE + 8);
	tcase_add_loop_test(tc, wrong_version_is_an_error, 0, 4);
	tcase_add_test(tc, flags_beside_the_version_are_the_devices_business);
	tcase_add_loop_test(tc, payload_larger_than_any_is_an_error, 0, 4);
	tcase_add_test(tc, too_many_fds_at_once_are_an_error_and_closed);
	tcase_add_test(tc, too_many_fds_over_one_message_are_an_error_and_closed);
	tcase_add_test(tc, fds_beyond_the_limit_of_the_process_are_an_error_and_closed);
	tcase_add_test(tc, fd_that_was_taken_is_the_takers);
	tcase_add_test(tc, reader_can_be_emptied_in_the_middle_of_a_message);
	tcase_add_test(tc, fds_that_nobody_wants_do_not_leak);
	tcase_add_test(tc, socket_error_is_passed_on);
}

int main(void)
{
	Suite *suite = suite_create("wire");
	TCase *tc = tcase_create("wire");
	SRunner *runner;
	int n_failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	add_reading(tc);
	tcase_add_test(tc, reply_has_version_and_reply_bit_and_nothing_else);
	tcase_add_test(tc, reply_to_a_peer_that_does_not_read_fails_at_last);
	tcase_add_test(tc, reply_to_nobody_fails_without_a_signal);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
