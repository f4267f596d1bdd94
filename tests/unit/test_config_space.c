/* SPDX-License-Identifier: BSD-2-Clause */
#include "vhost/config_space.h"

#include <check.h>
#include <errno.h>
#include <linux/virtio_net.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "support/expect.h"
#include "support/suite.h"
#include "vhost-user-xdp/vhost_user.h"

#define SIZE VHOST_USER_MAX_CONFIG_SIZE

static const struct device_config config = {
	.n_pairs = 3,
	.has_mac = true,
	.mac = {0x52, 0x54, 0x00, 0x12, 0x34, 0x56},
	.mtu = 0x2328,
};

/* The space as virtio 1.2, 5.1.4 lays it out, byte by byte. */
static uint8_t byte_at(uint32_t i)
{
	static const uint8_t fields[] = {0x52,
					 0x54,
					 0x00,
					 0x12,
					 0x34,
					 0x56, /* mac */
					 VIRTIO_NET_S_LINK_UP,
					 0, /* status */
					 3,
					 0, /* pairs */
					 0x28,
					 0x23}; /* mtu */

	return i < sizeof(fields) ? fields[i] : 0;
}

START_TEST(each_part_is_what_the_specification_says)
{
	for (uint32_t offset = 0; offset <= SIZE; offset++)
		for (uint32_t size = 0; offset + size <= SIZE; size++) {
			uint8_t bytes[SIZE + 1];

			memset(bytes, 0x77, sizeof(bytes));
			expect_eq(config_space_read(&config, offset, size, bytes), 0);
			for (uint32_t i = 0; i < size; i++)
				expect_eq(bytes[i], byte_at(offset + i));
			expect_eq(bytes[size], 0x77);
		}
}
END_TEST

START_TEST(a_part_beyond_the_end_is_refused_and_nothing_is_written)
{
	static const uint32_t bad[][2] = {
		{0, SIZE + 1},	 {1, SIZE},
		{SIZE, 1},	 {SIZE + 1, 0},
		{UINT32_MAX, 0}, {UINT32_MAX, 1},
		{1, UINT32_MAX}, {UINT32_MAX, UINT32_MAX},
		{0, UINT32_MAX}, {1U << 31, 1U << 31},
	};
	uint8_t byte = 0x77;

	for (unsigned i = 0; i < array_size(bad); i++)
		expect_eq(config_space_read(&config, bad[i][0], bad[i][1], &byte), -EINVAL);
	expect_eq(byte, 0x77);
}
END_TEST

START_TEST(what_is_not_configured_reads_as_zeros)
{
	static const struct device_config plain = {.n_pairs = 16};
	struct virtio_net_config net;

	expect_eq(config_space_read(&plain, 0, sizeof(net), (uint8_t *)&net), 0);
	expect_eq(memcmp(net.mac, "\0\0\0\0\0\0", 6), 0);
	expect_eq(net.mtu, 0);
	expect_eq(net.max_virtqueue_pairs, 16);
	expect_eq(net.status, VIRTIO_NET_S_LINK_UP);
	expect_eq(net.speed, 0);
}
END_TEST

static void add_space(TCase *tc)
{
	tcase_add_test(tc, each_part_is_what_the_specification_says);
	tcase_add_test(tc, a_part_beyond_the_end_is_refused_and_nothing_is_written);
	tcase_add_test(tc, what_is_not_configured_reads_as_zeros);
}

int main(void)
{
	static const struct suite_case cases[] = {{"space", NULL, NULL, add_space}};

	return suite_run("config_space", cases, array_size(cases));
}
