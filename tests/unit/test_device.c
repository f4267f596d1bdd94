/* SPDX-License-Identifier: BSD-2-Clause */
#include "vhost/device.h"

#include <check.h>
#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "support/device_fixture.h"
#include "support/suite.h"

#define V1 BIT_ULL(VIRTIO_F_VERSION_1)
#define PF BIT_ULL(VHOST_USER_F_PROTOCOL_FEATURES)

/* Requests whose payload has one size. */
static const struct {
	uint32_t request, size;
	bool takes_fd, has_reply;
} fixed[] = {
	{VHOST_USER_GET_FEATURES, 0, false, true},
	{VHOST_USER_SET_FEATURES, 8, false, false},
	{VHOST_USER_SET_OWNER, 0, false, false},
	{VHOST_USER_RESET_OWNER, 0, false, false},
	{VHOST_USER_SET_VRING_NUM, 8, false, false},
	{VHOST_USER_SET_VRING_ADDR, 40, false, false},
	{VHOST_USER_SET_VRING_BASE, 8, false, false},
	{VHOST_USER_GET_VRING_BASE, 8, false, true},
	{VHOST_USER_SET_VRING_KICK, 8, true, false},
	{VHOST_USER_SET_VRING_CALL, 8, true, false},
	{VHOST_USER_SET_VRING_ERR, 8, true, false},
	{VHOST_USER_GET_PROTOCOL_FEATURES, 0, false, true},
	{VHOST_USER_SET_PROTOCOL_FEATURES, 8, false, false},
	{VHOST_USER_GET_QUEUE_NUM, 0, false, true},
	{VHOST_USER_SET_VRING_ENABLE, 8, false, false},
	{VHOST_USER_NET_SET_MTU, 8, false, false},
	{VHOST_USER_RESET_DEVICE, 0, false, false},
	{VHOST_USER_SET_STATUS, 8, false, false},
	{VHOST_USER_GET_STATUS, 0, false, true},
};
#define N_FIXED ((int)array_size(fixed))

/* A payload that every request of a size takes: ring 1, or the number 1, or bits that are known. */
static void fill_payload(uint8_t payload[64], uint32_t request)
{
	const uint64_t features = V1;
	const uint64_t mtu = 1500;
	const uint32_t state[] = {1, 256};

	memset(payload, 0, 64);
	payload[0] = 1;
	if (request == VHOST_USER_SET_FEATURES)
		memcpy(payload, &features, 8);
	if (request == VHOST_USER_NET_SET_MTU)
		memcpy(payload, &mtu, 8);
	if (request == VHOST_USER_SET_PROTOCOL_FEATURES)
		payload[0] = 1 << VHOST_USER_PROTOCOL_F_REPLY_ACK;
	if (request == VHOST_USER_SET_VRING_NUM)
		memcpy(payload, state, 8);
}

static int send_fixed(int i, uint32_t size, unsigned n_fds)
{
	int fds[VHOST_USER_MAX_FDS];
	uint8_t payload[64];

	for (unsigned k = 0; k < n_fds; k++)
		fds[k] = dx_eventfd();
	fill_payload(payload, fixed[i].request);
	return dx_send(fixed[i].request, payload, size, fds, n_fds);
}

static void ask_for_acks(void)
{
	dx_negotiate(V1, true);
	dx.flags |= VHOST_USER_NEED_REPLY;
	dx_forget();
}

/* ---- sizes and fds ---- */

START_TEST(each_request_of_the_right_shape_is_done)
{
	expect_eq(send_fixed(_i, fixed[_i].size, fixed[_i].takes_fd), 0);
	expect_eq(dx.reply.send, fixed[_i].has_reply);
	expect_eq(log_capture_count(&dx.lines, "refused"), 0);
}
END_TEST

START_TEST(payloads_of_a_wrong_size_are_refused_and_do_nothing)
{
	for (uint32_t size = 0; size <= 64; size++) {
		if (size == fixed[_i].size)
			continue;
		expect_lt(send_fixed(_i, size, fixed[_i].takes_fd), 0);
		expect(!dx.reply.send);
	}
	expect_eq(dx.n_ops, 0);
	/* One line for each, which names the request. */
	expect_eq(log_capture_count(&dx.lines, "refused"), 64);
	expect_eq(log_capture_count(&dx.lines, "\n"), 64);
}
END_TEST

/* The fixture sees to it that nothing is leaked. */
START_TEST(fds_that_do_not_belong_to_a_message_are_refused)
{
	for (unsigned n = 1; n <= VHOST_USER_MAX_FDS; n++) {
		if (n == 1 && fixed[_i].takes_fd)
			continue;
		expect_lt(send_fixed(_i, fixed[_i].size, n), 0);
	}
	expect_eq(dx.n_ops, 0);
}
END_TEST

static const uint32_t fd_requests[] = {VHOST_USER_SET_VRING_KICK, VHOST_USER_SET_VRING_CALL,
				       VHOST_USER_SET_VRING_ERR};

START_TEST(an_fd_comes_iff_the_message_says_so)
{
	uint32_t request = fd_requests[_i];
	enum dx_kind kind = DX_KICK + (enum dx_kind)_i;
	int fd = dx_eventfd();

	expect_lt(dx_send_fd(request, 3, -1), 0);
	expect_lt(dx_send_fd(request, 3 | VHOST_USER_VRING_NOFD, dx_eventfd()), 0);
	expect_eq(dx.n_ops, 0);
	expect_eq(dx_send_fd(request, 3, fd), 0);
	expect_eq(dx_last(kind, 3)->value, fd);
	expect_eq(dx_send_fd(request, 3 | VHOST_USER_VRING_NOFD, -1), 0);
	expect_eq(dx_last(kind, 3)->value, -1);
	expect_eq(dx_count(kind, 3), 2);
}
END_TEST

/* ---- ring indexes ---- */

START_TEST(a_ring_index_is_compared_at_full_width)
{
	/* Two pairs have rings 0 to 3, and a control queue. */
	static const uint32_t bad[] = {5,	6,	 255,	     256,	 257,
				       0x10000, 0x10001, 0x80000000, 0x80000001, UINT32_MAX};

	for (unsigned i = 0; i < array_size(bad); i++) {
		expect_lt(dx_send_state(VHOST_USER_SET_VRING_NUM, bad[i], 256), 0);
		expect_lt(dx_send_state(VHOST_USER_SET_VRING_BASE, bad[i], 0), 0);
		expect_lt(dx_send_state(VHOST_USER_GET_VRING_BASE, bad[i], 0), 0);
		expect(!dx.reply.send);
		expect_lt(dx_send_state(VHOST_USER_SET_VRING_ENABLE, bad[i], 1), 0);
		expect_lt(dx_send_addr(bad[i]), 0);
	}
	expect_eq(dx.n_ops, 0);
	for (uint32_t i = 0; i < 5; i++)
		expect_eq(dx_send_state(VHOST_USER_SET_VRING_ENABLE, i, 1), 0);
}
END_TEST

START_TEST(a_ring_index_of_an_fd_message_has_eight_bits_and_no_others)
{
	static const uint64_t bad[] = {
		5,
		255,
		0x200,
		0x201,
		1ULL << 16,
		1ULL << 31,
		1ULL << 32,
		1ULL << 32 | 1,
		1ULL << 63,
		UINT64_MAX,
		5 | VHOST_USER_VRING_NOFD,
		0x300,
	};

	for (unsigned i = 0; i < array_size(bad); i++) {
		bool has_fd = !(bad[i] & VHOST_USER_VRING_NOFD);

		expect_lt(dx_send_fd(fd_requests[_i], bad[i], has_fd ? dx_eventfd() : -1), 0);
	}
	expect_eq(dx.n_ops, 0);
}
END_TEST

START_TEST(the_largest_device_has_33_rings)
{
	dx.cfg.n_pairs = DEVICE_MAX_PAIRS;
	dx_renew();
	expect_eq(dx_send_mem(1), 0);
	dx_negotiate(V1, true);
	dx_start(0);
	dx_start(31);
	dx_start(32);
	expect_lt(dx_send_state(VHOST_USER_SET_VRING_NUM, 33, 256), 0);
	expect_lt(dx_send_fd(VHOST_USER_SET_VRING_KICK, 33, dx_eventfd()), 0);
}
END_TEST

/* ---- answers ---- */

START_TEST(an_ack_is_sent_once_and_says_whether_it_was_done)
{
	ask_for_acks();
	expect_eq(send_fixed(_i, fixed[_i].size, fixed[_i].takes_fd), 0);
	expect(dx.reply.send);
	if (!fixed[_i].has_reply)
		expect(dx_is_acked());
	/* What has an answer of its own is never acked; without one the connection ends. */
	expect_eq(send_fixed(_i, fixed[_i].size + 1, fixed[_i].takes_fd) < 0, fixed[_i].has_reply);
	expect_eq(dx.reply.send, !fixed[_i].has_reply);
	if (!fixed[_i].has_reply)
		expect(!dx_is_acked());
}
END_TEST

START_TEST(without_being_asked_no_ack_is_sent)
{
	/* Negotiated, but not asked for. */
	dx_negotiate(V1, true);
	expect(!dx.reply.send);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, 0, 256), 0);
	expect(!dx.reply.send);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, 0, 3), -EINVAL);
	expect(!dx.reply.send);
	/* Asked for, but not negotiated. */
	dx_renew();
	dx.flags |= VHOST_USER_NEED_REPLY;
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, 0, 256), 0);
	expect(!dx.reply.send);
	expect_eq(dx_send_state(VHOST_USER_SET_VRING_NUM, 0, 3), -EINVAL);
	expect(!dx.reply.send);
}
END_TEST

START_TEST(unknown_requests_are_ignored_or_acked_as_failed)
{
	static const uint32_t unknown[] = {0,  6,  7,  19, 22,	23,  26,       27,	  28, 29,
					   30, 31, 32, 33, 35,	36,  37,       38,	  41, 42,
					   43, 44, 45, 99, 255, 256, 1U << 31, UINT32_MAX};
	uint8_t payload[16] = {0};

	for (unsigned i = 0; i < array_size(unknown); i++) {
		int fd = dx_eventfd();

		expect_eq(dx_send(unknown[i], payload, sizeof(payload), &fd, 1), 0);
		expect(!dx.reply.send);
	}
	ask_for_acks();
	for (unsigned i = 0; i < array_size(unknown); i++) {
		int fd = dx_eventfd();

		expect_eq(dx_send(unknown[i], payload, sizeof(payload), &fd, 1), 0);
		expect(!dx_is_acked());
	}
	expect_eq(dx.n_ops, 0);
}
END_TEST

/* ---- features ---- */

static uint64_t ask(uint32_t request)
{
	expect_eq(dx_send(request, NULL, 0, NULL, 0), 0);
	expect(dx.reply.send);
	expect_eq(dx.reply.size, 8);
	return dx.reply.payload.u64;
}

START_TEST(features_on_offer_follow_the_configuration)
{
	expect_eq(ask(VHOST_USER_GET_FEATURES), V1 | PF);
	dx.cfg.has_mac = true;
	dx_renew();
	expect_eq(ask(VHOST_USER_GET_FEATURES), V1 | PF | BIT_ULL(VIRTIO_NET_F_MAC));
	dx.cfg.mtu = 1500;
	dx_renew();
	expect_eq(ask(VHOST_USER_GET_FEATURES),
		  V1 | PF | BIT_ULL(VIRTIO_NET_F_MAC) | BIT_ULL(VIRTIO_NET_F_MTU));
	expect_eq(device_features_offered(dx.device), ask(VHOST_USER_GET_FEATURES));
	expect_eq(device_features(dx.device), 0);
}
END_TEST

START_TEST(only_offered_features_can_be_accepted)
{
	expect_eq(dx_send_u64(VHOST_USER_SET_FEATURES, V1), 0);
	expect_eq(device_features(dx.device), V1);
	expect_eq(dx_last(DX_FEATURES, -1)->value, (int64_t)V1);
	for (unsigned bit = 0; bit < 64; bit++) {
		if (BIT_ULL(bit) & (V1 | PF))
			continue;
		expect_eq(dx_send_u64(VHOST_USER_SET_FEATURES, V1 | BIT_ULL(bit)), -EINVAL);
	}
	expect_eq(device_features(dx.device), V1);
	expect_eq(dx_count(DX_FEATURES, -1), 1);
	expect_eq(dx_send_u64(VHOST_USER_SET_FEATURES, PF), 0);
	expect_eq(device_features(dx.device), PF);
}
END_TEST

START_TEST(features_that_the_port_cannot_follow_are_refused)
{
	expect_eq(dx_send_u64(VHOST_USER_SET_FEATURES, PF), 0);
	dx.features_err = -EIO;
	expect_eq(dx_send_u64(VHOST_USER_SET_FEATURES, V1), -EIO);
	expect_eq(device_features(dx.device), PF);
}
END_TEST

START_TEST(protocol_features_on_offer_follow_the_configuration)
{
	uint64_t always =
		BIT_ULL(VHOST_USER_PROTOCOL_F_REPLY_ACK) | BIT_ULL(VHOST_USER_PROTOCOL_F_NET_MTU) |
		BIT_ULL(VHOST_USER_PROTOCOL_F_RESET_DEVICE) | BIT_ULL(VHOST_USER_PROTOCOL_F_STATUS);

	expect_eq(ask(VHOST_USER_GET_PROTOCOL_FEATURES),
		  always | BIT_ULL(VHOST_USER_PROTOCOL_F_MQ));
	/* QEMU and Cloud Hypervisor refuse MQ with one pair. */
	dx.cfg.n_pairs = 1;
	dx_renew();
	expect_eq(ask(VHOST_USER_GET_PROTOCOL_FEATURES), always);
	dx.cfg.offer_config = true;
	dx_renew();
	expect_eq(ask(VHOST_USER_GET_PROTOCOL_FEATURES),
		  always | BIT_ULL(VHOST_USER_PROTOCOL_F_CONFIG) |
			  BIT_ULL(VHOST_USER_PROTOCOL_F_BACKEND_REQ));
}
END_TEST

/* ---- the link's state ---- */

/* Give the device a channel. Return: our end. */
static int give_channel(void)
{
	int ends[2];

	expect_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	expect_eq(dx_send(VHOST_USER_SET_BACKEND_REQ_FD, NULL, 0, &ends[1], 1), 0);
	return ends[0];
}

/* Return: whether one message says that the configuration has changed. */
static bool is_told(int fd)
{
	struct vhost_user_header h;

	return recv(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
	       h.request == VHOST_USER_BACKEND_CONFIG_CHANGE && h.flags == VHOST_USER_VERSION &&
	       h.size == 0;
}

static void negotiate_config(void)
{
	dx.cfg.offer_config = true;
	dx_renew();
	expect_eq(dx_send_u64(VHOST_USER_SET_PROTOCOL_FEATURES,
			      BIT_ULL(VHOST_USER_PROTOCOL_F_CONFIG) |
				      BIT_ULL(VHOST_USER_PROTOCOL_F_BACKEND_REQ)),
		  0);
}

START_TEST(change_of_the_link_is_told_on_the_channel)
{
	int fd;

	negotiate_config();
	fd = give_channel();
	device_set_link(dx.device, true);
	expect(!is_told(fd));
	device_set_link(dx.device, false);
	expect(is_told(fd));
	device_set_link(dx.device, false);
	expect(!is_told(fd));
	expect_eq(dx_send(VHOST_USER_RESET_DEVICE, NULL, 0, NULL, 0), 0);
	device_set_link(dx.device, true);
	expect(is_told(fd));
	close(fd);
}
END_TEST

START_TEST(link_changes_without_a_channel_or_its_reader)
{
	int fd;

	negotiate_config();
	device_set_link(dx.device, false);
	fd = give_channel();
	close(fd);
	device_set_link(dx.device, true);
	fd = give_channel();
	device_disconnect(dx.device);
	expect_eq(recv(fd, &(char){0}, 1, 0), 0);
	close(fd);
}
END_TEST

START_TEST(channel_needs_a_descriptor)
{
	expect_eq(dx_send(VHOST_USER_SET_BACKEND_REQ_FD, NULL, 0, NULL, 0), -EINVAL);
}
END_TEST

START_TEST(only_offered_protocol_features_can_be_accepted)
{
	uint64_t offered = ask(VHOST_USER_GET_PROTOCOL_FEATURES);

	expect_eq(dx_send_u64(VHOST_USER_SET_PROTOCOL_FEATURES, offered), 0);
	expect_eq(device_protocol_features(dx.device), offered);
	for (unsigned bit = 0; bit < 64; bit++)
		expect_eq(dx_send_u64(VHOST_USER_SET_PROTOCOL_FEATURES, BIT_ULL(bit)),
			  offered & BIT_ULL(bit) ? 0 : -EINVAL);
}
END_TEST

START_TEST(the_number_of_queues_is_that_of_pairs)
{
	for (unsigned n = 1; n <= DEVICE_MAX_PAIRS; n++) {
		dx.cfg.n_pairs = n;
		dx_renew();
		expect_eq(ask(VHOST_USER_GET_QUEUE_NUM), n);
	}
}
END_TEST

START_TEST(the_status_is_kept_and_has_eight_bits)
{
	expect_eq(ask(VHOST_USER_GET_STATUS), 0);
	expect_eq(dx_send_u64(VHOST_USER_SET_STATUS, 0x0f), 0);
	expect_eq(ask(VHOST_USER_GET_STATUS), 0x0f);
	expect_eq(dx_send_u64(VHOST_USER_SET_STATUS, 0x100), -EINVAL);
	expect_eq(dx_send_u64(VHOST_USER_SET_STATUS, 1ULL << 32), -EINVAL);
	expect_eq(ask(VHOST_USER_GET_STATUS), 0x0f);
	expect_eq(dx_send_u64(VHOST_USER_SET_STATUS, 0), 0);
	expect_eq(ask(VHOST_USER_GET_STATUS), 0);
}
END_TEST

START_TEST(an_mtu_is_what_ethernet_can_have)
{
	static const uint64_t good[] = {68, 1500, 9000, 65535};
	static const uint64_t bad[] = {0, 67, 65536, 1ULL << 32, (1ULL << 32) + 1500, UINT64_MAX};

	for (unsigned i = 0; i < array_size(good); i++)
		expect_eq(dx_send_u64(VHOST_USER_NET_SET_MTU, good[i]), 0);
	for (unsigned i = 0; i < array_size(bad); i++)
		expect_eq(dx_send_u64(VHOST_USER_NET_SET_MTU, bad[i]), -EINVAL);
}
END_TEST

/* ---- configuration space ---- */

static int send_config(uint32_t request, uint32_t offset, uint32_t size, uint32_t flags,
		       uint32_t n_bytes)
{
	struct vhost_user_config config = {.offset = offset, .size = size, .flags = flags};

	memset(config.region, 0x55, sizeof(config.region));
	return dx_send(request, &config, VHOST_USER_CONFIG_HEADER_SIZE + n_bytes, NULL, 0);
}

START_TEST(the_configuration_space_is_read_in_any_part)
{
	const struct vhost_user_config *config = &dx.reply.payload.config;
	const uint32_t all = sizeof(struct virtio_net_config);
	struct virtio_net_config net;

	dx.cfg.has_mac = true;
	memcpy(dx.cfg.mac, "\x52\x54\x00\x12\x34\x56", 6);
	dx.cfg.mtu = 9000;
	dx_renew();
	expect_eq(send_config(VHOST_USER_GET_CONFIG, 0, all, 1, all), 0);
	expect(dx.reply.send);
	expect_eq(dx.reply.size, VHOST_USER_CONFIG_HEADER_SIZE + all);
	expect_eq(config->offset, 0);
	expect_eq(config->size, all);
	memcpy(&net, config->region, all);
	expect_eq(memcmp(net.mac, dx.cfg.mac, 6), 0);
	expect_eq(net.status, VIRTIO_NET_S_LINK_UP);
	expect_eq(net.max_virtqueue_pairs, 2);
	expect_eq(net.mtu, 9000);
	expect_eq(send_config(VHOST_USER_GET_CONFIG, 3, 2, 0, 2), 0);
	expect_eq(dx.reply.size, VHOST_USER_CONFIG_HEADER_SIZE + 2);
	expect_eq(memcmp(config->region, dx.cfg.mac + 3, 2), 0);
	expect_eq(send_config(VHOST_USER_GET_CONFIG, 0, 256, 0, 256), 0);
	expect_eq(dx.reply.size, VHOST_USER_CONFIG_HEADER_SIZE + 256);
}
END_TEST

/* The frontend waits for an answer in any case. */
START_TEST(a_part_beyond_the_configuration_space_gets_an_empty_answer)
{
	static const struct {
		uint32_t offset, size, n_bytes;
	} bad[] = {
		{256, 1, 1},	    {255, 2, 2},	{0, 257, 256}, {UINT32_MAX, 1, 1},
		{1, UINT32_MAX, 8}, {UINT32_MAX, 2, 2}, {0, 10, 9},    {0, UINT32_MAX - 11, 0},
	};

	for (unsigned i = 0; i < array_size(bad); i++) {
		expect_eq(send_config(VHOST_USER_GET_CONFIG, bad[i].offset, bad[i].size, 0,
				      bad[i].n_bytes),
			  0);
		expect(dx.reply.send);
		expect_eq(dx.reply.size, 0);
	}
	for (uint32_t size = 0; size < VHOST_USER_CONFIG_HEADER_SIZE; size++) {
		uint8_t payload[VHOST_USER_CONFIG_HEADER_SIZE] = {0};

		expect_eq(dx_send(VHOST_USER_GET_CONFIG, payload, size, NULL, 0), 0);
		expect_eq(dx.reply.size, 0);
	}
}
END_TEST

START_TEST(the_configuration_space_is_written_by_a_migration_only)
{
	expect_lt(send_config(VHOST_USER_SET_CONFIG, 0, 6, 0, 6), 0);
	expect_lt(send_config(VHOST_USER_SET_CONFIG, 0, 6, 1, 6), 0);
	expect_eq(send_config(VHOST_USER_SET_CONFIG, 0, 6, VHOST_USER_CONFIG_LIVE_MIGRATION, 6), 0);
	expect(!dx.reply.send);
	expect_lt(send_config(VHOST_USER_SET_CONFIG, 0, 7, VHOST_USER_CONFIG_LIVE_MIGRATION, 6), 0);
	expect_lt(dx_send(VHOST_USER_SET_CONFIG, "12345678901", 11, NULL, 0), 0);
}
END_TEST

static void add_shapes(TCase *tc)
{
	tcase_add_loop_test(tc, each_request_of_the_right_shape_is_done, 0, N_FIXED);
	tcase_add_loop_test(tc, payloads_of_a_wrong_size_are_refused_and_do_nothing, 0, N_FIXED);
	tcase_add_loop_test(tc, fds_that_do_not_belong_to_a_message_are_refused, 0, N_FIXED);
	tcase_add_loop_test(tc, an_fd_comes_iff_the_message_says_so, 0, 3);
	tcase_add_test(tc, a_ring_index_is_compared_at_full_width);
	tcase_add_loop_test(tc, a_ring_index_of_an_fd_message_has_eight_bits_and_no_others, 0, 3);
	tcase_add_test(tc, the_largest_device_has_33_rings);
}

static void add_answers(TCase *tc)
{
	tcase_add_loop_test(tc, an_ack_is_sent_once_and_says_whether_it_was_done, 0, N_FIXED);
	tcase_add_test(tc, without_being_asked_no_ack_is_sent);
	tcase_add_test(tc, unknown_requests_are_ignored_or_acked_as_failed);
}

static void add_features(TCase *tc)
{
	tcase_add_test(tc, features_on_offer_follow_the_configuration);
	tcase_add_test(tc, only_offered_features_can_be_accepted);
	tcase_add_test(tc, features_that_the_port_cannot_follow_are_refused);
	tcase_add_test(tc, protocol_features_on_offer_follow_the_configuration);
	tcase_add_test(tc, change_of_the_link_is_told_on_the_channel);
	tcase_add_test(tc, link_changes_without_a_channel_or_its_reader);
	tcase_add_test(tc, channel_needs_a_descriptor);
	tcase_add_test(tc, only_offered_protocol_features_can_be_accepted);
	tcase_add_test(tc, the_number_of_queues_is_that_of_pairs);
	tcase_add_test(tc, the_status_is_kept_and_has_eight_bits);
	tcase_add_test(tc, an_mtu_is_what_ethernet_can_have);
	tcase_add_test(tc, the_configuration_space_is_read_in_any_part);
	tcase_add_test(tc, a_part_beyond_the_configuration_space_gets_an_empty_answer);
	tcase_add_test(tc, the_configuration_space_is_written_by_a_migration_only);
}

int main(void)
{
	static const struct suite_case cases[] = {
		{"shapes", dx_setup, dx_teardown, add_shapes},
		{"answers", dx_setup, dx_teardown, add_answers},
		{"features", dx_setup, dx_teardown, add_features},
	};

	return suite_run("device", cases, array_size(cases));
}
