/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frontend library itself, against a device of a few lines and a socket that says what it was
 * told before: what the system tests conclude is worth as much as this.
 */
#include <endian.h>
#include <fcntl.h>
#include <linux/virtio_config.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fds.h"
#include "support/nic.h"
#include "support/wait.h"

#define DRIVER_TEST_FEATURES NIC_BIT(VIRTIO_RING_F_EVENT_IDX)

static struct nic nic;
static struct frontend fe;
static int peer = -1;

static void setup(void)
{
	int pair[2];

	expect_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	frontend_attach(&fe, pair[0]);
	peer = pair[1];
}

static void teardown(void)
{
	nic_close(&nic);
	frontend_close(&fe);
	if (peer >= 0)
		close(peer);
	peer = -1;
}

/* ---- guest ---- */

START_TEST(addresses_of_a_byte_are_all_different)
{
	struct guest g;

	guest_init(&g, &(struct guest_layout){.n_regions = (unsigned)_i, .is_last_apart = true});
	expect_eq(g.n_regions, (unsigned)_i);
	for (unsigned i = 0; i < g.n_regions; i++) {
		const struct vhost_user_region *r = &g.regions[i];
		uint64_t host = (uint64_t)(uintptr_t)guest_at(&g, r->gpa);

		expect_ne(r->gpa, r->uva);
		expect_ne(r->gpa, host);
		expect_ne(r->uva, host);
		expect_ne(r->mmap_offset, 0);
		expect_eq(guest_uva(&g, r->gpa + 5), r->uva + 5);
		if (i > 0)
			expect_eq(r->gpa, guest_edge(&g, i - 1));
	}
	if (_i > 1)
		expect_ne(g.fds[0], g.fds[_i - 1]);
	guest_fini(&g);
}
END_TEST

START_TEST(file_of_a_region_holds_its_bytes)
{
	struct guest g;

	guest_init(&g, &(struct guest_layout){.n_regions = 3, .hole = 1 << 20});
	for (unsigned i = 0; i < 3; i++) {
		const struct vhost_user_region *r = &g.regions[i];
		char *at = guest_at(&g, guest_edge(&g, i) - 3);
		char bytes[3];

		memcpy(at, "abc", 3);
		at[0] = (char)('a' + i);
		expect_eq(pread(g.fds[i], bytes, 3, (off_t)(r->mmap_offset + r->size - 3)), 3);
		expect_eq(bytes[0], 'a' + (int)i);
	}
	guest_fini(&g);
}
END_TEST

START_TEST(allocations_stay_away_from_edges)
{
	struct guest g;
	uint64_t last = 0;

	guest_init(&g, &(struct guest_layout){.n_regions = 2, .region_size = 1 << 20});
	for (int i = 0; i < 20; i++) {
		uint64_t at = guest_alloc(&g, 60000, 4096);
		uint64_t edge = guest_edge(&g, 0);

		expect_eq(at % 4096, 0);
		expect_ge(at, last);
		expect(at + 60000 + GUEST_EDGE <= edge || at >= edge + GUEST_EDGE);
		last = at + 60000;
	}
	expect_eq(guest_alloc_odd(&g, 10) % 2, 1);
	guest_fini(&g);
}
END_TEST

/* ---- driver, against a small device ---- */

/* Complete the next `n` heads; the device has read `at` so far. @len: what it says it wrote */
static void serve(struct driver_ring *r, uint16_t *at, unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < n; i++, ++*at) {
		uint16_t slot = *at & (uint16_t)(r->size - 1);

		expect_ne((uint16_t)(le16toh(r->avail->idx) - *at), 0);
		r->used->ring[slot].id = htole32(le16toh(r->avail->ring[slot]));
		r->used->ring[slot].len = htole32(len);
		r->used->idx = htole16((uint16_t)(*at + 1));
	}
}

static void add_chain(struct driver_ring *r, uint64_t buf, unsigned n, bool is_indirect,
		      uint64_t table, uint64_t cookie)
{
	struct driver_seg segs[4];

	for (unsigned i = 0; i < n; i++)
		segs[i] = (struct driver_seg){.gpa = buf + i, .len = i + 1};
	if (is_indirect)
		driver_add_indirect(r, segs, n, cookie, table);
	else
		driver_add(r, segs, n, cookie);
}

static const uint32_t sizes[] = {2, 4, 256, 32768};

START_TEST(chains_come_back_in_order_across_the_wrap_of_the_indices)
{
	uint32_t size = sizes[_i / 2];
	unsigned n_descs = size > 2 ? 3 : 2;
	struct driver_ring *r;
	struct driver_used u;
	uint16_t at = 65500;

	nic_init(&nic, &(struct nic_options){.size = size, .base = at});
	r = nic_tx(&nic, 0);
	for (uint64_t cookie = 0; cookie < 3 * (uint64_t)size + 100; cookie++) {
		add_chain(r, nic.guest.next, n_descs, _i % 2, nic.guest.next + 101, cookie);
		driver_publish(r);
		serve(r, &at, 1, 7);
		expect(driver_take(r, &u));
		expect_eq(u.chain->cookie, cookie);
		expect_eq(u.chain->n_segs, n_descs);
		expect_eq(u.len, 7);
		expect(!driver_take(r, &u));
	}
	expect_eq(r->n_free, size);
}
END_TEST

START_TEST(full_ring_uses_every_descriptor_once)
{
	struct driver_ring *r;
	struct driver_used u;
	uint16_t at = 0;
	bool seen[64] = {false};

	nic_init(&nic, &(struct nic_options){.size = 64});
	r = nic_tx(&nic, 0);
	for (unsigned i = 0; i < 64; i++)
		add_chain(r, nic.guest.next, 1, false, 0, i);
	expect_eq(r->n_free, 0);
	driver_publish(r);
	for (unsigned i = 0; i < 64; i++) {
		expect(!seen[r->heads[i]]);
		seen[r->heads[i]] = true;
	}
	serve(r, &at, 64, 0);
	expect_eq(driver_n_used(r), 64);
	while (driver_take(r, &u))
		;
	expect_eq(r->n_free, 64);
}
END_TEST

START_TEST(kicks_follow_what_the_device_asks_for)
{
	struct driver_ring *r;

	nic_init(&nic, &(struct nic_options){.features = DRIVER_TEST_FEATURES, .size = 16});
	r = nic_tx(&nic, 0);
	add_chain(r, nic.guest.next, 1, false, 0, 0);
	expect(driver_kick(r));
	add_chain(r, nic.guest.next, 1, false, 0, 0);
	expect(!driver_kick(r));
	r->used->ring[16].id = htole32(2); /* avail_event */
	add_chain(r, nic.guest.next, 1, false, 0, 0);
	expect(driver_kick(r));
	expect_eq(r->n_kicks, 2);
	r->has_event_idx = false;
	add_chain(r, nic.guest.next, 1, false, 0, 0);
	expect(driver_publish(r));
	r->used->flags = htole16(VRING_USED_F_NO_NOTIFY);
	expect(!driver_publish(r));
}
END_TEST

START_TEST(calls_are_asked_for_where_the_device_looks)
{
	struct driver_ring *r;

	nic_init(&nic, &(struct nic_options){.features = DRIVER_TEST_FEATURES, .size = 16});
	r = nic_tx(&nic, 0);
	driver_set_used_event(r, 0x1234);
	expect_eq(le16toh(*(uint16_t *)guest_at(&nic.guest, r->avail_gpa + 4 + 32)), 0x1234);
	expect(!driver_calls_on(r));
	expect_eq(le16toh(r->avail->ring[16]), 0);
	driver_calls_off(r);
	expect_eq(le16toh(r->avail->ring[16]), 0xffff);
	r->has_event_idx = false;
	driver_calls_off(r);
	expect_eq(le16toh(r->avail->flags), VRING_AVAIL_F_NO_INTERRUPT);
	expect(!driver_wait_call(r, 1));
	expect_eq(write(r->call_fd, &(uint64_t){3}, 8), 8);
	expect_eq(driver_take_calls(r), 3);
}
END_TEST

START_TEST(merged_buffers_become_one_frame)
{
	static char data[3000];
	static struct nic_frame f;
	struct driver_ring *r;
	uint16_t at = 0;

	nic_init(&nic, NULL);
	r = nic_rx(&nic, 0);
	nic_post(&nic, 0, 4, 1024);
	nic_make_frame(data, sizeof(data), 9);
	for (unsigned i = 0, done = 0; i < 3; i++) {
		char *to = guest_at(&nic.guest, le64toh(r->desc[r->heads[i]].addr));
		unsigned skip = i == 0 ? 12 : 0;
		unsigned len = i == 2 ? (unsigned)sizeof(data) - done : 1024 - skip;

		if (i == 0)
			((struct virtio_net_hdr_v1 *)(void *)to)->num_buffers = htole16(3);
		memcpy(to + skip, data + done, len);
		done += len;
		serve(r, &at, 1, skip + len);
	}
	expect(nic_poll(&nic, 0, &f));
	expect_eq(f.n_buffers, 3);
	nic_check_frame(&f, sizeof(data), 9);
	expect(!nic_poll(&nic, 0, &f));
	expect_eq((uint16_t)(r->published_idx - r->last_used), 4);
}
END_TEST

/* ---- frontend, against a socket ---- */

static void say(uint32_t request, uint32_t flags, const void *payload, uint32_t size)
{
	struct vhost_user_header header = {.request = request, .flags = flags, .size = size};

	expect_eq(send(peer, &header, sizeof(header), 0), sizeof(header));
	expect_eq(send(peer, payload, size, 0), size);
}

static void say_u64(uint32_t request, uint64_t value)
{
	say(request, 5, &value, sizeof(value));
}

/* Take one message as a backend would. @fd: gets the first fd, or -1 */
static struct frontend_reply hear(int *fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
	struct frontend_reply m = {0};
	struct iovec iov = {&m.header, sizeof(m.header)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;

	*fd = -1;
	expect_eq(recvmsg(peer, &msg, MSG_CMSG_CLOEXEC), sizeof(m.header));
	c = CMSG_FIRSTHDR(&msg);
	if (c)
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	if (m.header.size > 0)
		expect_eq(recv(peer, &m.payload, m.header.size, 0), m.header.size);
	return m;
}

START_TEST(requests_are_what_the_specification_says)
{
	struct frontend_reply m;
	int fd;

	say_u64(VHOST_USER_GET_FEATURES, 0x123);
	expect_eq(frontend_ask_u64(&fe, VHOST_USER_GET_FEATURES), 0x123);
	m = hear(&fd);
	expect_eq(m.header.flags, 1);
	expect_eq(m.header.size, 0);
	frontend_set_vring_num(&fe, 3, 512);
	m = hear(&fd);
	expect_eq(m.header.request, VHOST_USER_SET_VRING_NUM);
	expect_eq(m.header.size, 8);
	expect_eq(m.payload.state.index, 3);
	expect_eq(m.payload.state.num, 512);
	frontend_set_vring_fd(&fe, VHOST_USER_SET_VRING_CALL, 1, -1);
	m = hear(&fd);
	expect_eq(m.payload.u64, 0x101);
	expect_eq(fd, -1);
	frontend_set_vring_fd(&fe, VHOST_USER_SET_VRING_KICK, 1, peer);
	m = hear(&fd);
	expect_eq(m.payload.u64, 1);
	expect_ge(fd, 0);
	close(fd);
}
END_TEST

START_TEST(acks_are_asked_for_when_they_are_negotiated)
{
	struct frontend_reply m;
	int fd;

	fe.wants_acks = true;
	frontend_set_protocol_features(&fe, NIC_BIT(VHOST_USER_PROTOCOL_F_REPLY_ACK));
	m = hear(&fd);
	expect_eq(m.header.flags, 1);
	say_u64(VHOST_USER_SET_FEATURES, 0);
	frontend_set_features(&fe, 7);
	m = hear(&fd);
	expect_eq(m.header.flags, 9);
	expect_eq(m.payload.u64, 7);
	say_u64(VHOST_USER_SET_FEATURES, 1);
	expect_eq(frontend_ack_u64(&fe, VHOST_USER_SET_FEATURES, 1), 1);
}
END_TEST

START_TEST(memory_table_carries_each_region_and_its_fd)
{
	struct frontend_reply m;
	struct stat mine, theirs;
	struct guest g;
	int fd;

	guest_init(&g, &(struct guest_layout){.n_regions = 1});
	frontend_set_mem_table(&fe, &g);
	m = hear(&fd);
	expect_eq(m.header.size, 8 + 32);
	expect_eq(m.payload.mem.n_regions, 1);
	expect(memcmp(&m.payload.mem.regions[0], &g.regions[0], sizeof(g.regions[0])) == 0);
	expect_eq(fstat(fd, &theirs) | fstat(g.fds[0], &mine), 0);
	expect_eq(mine.st_ino, theirs.st_ino);
	close(fd);
	guest_fini(&g);
}
END_TEST

START_TEST(end_of_the_connection_and_silence_are_told_apart)
{
	struct frontend_reply reply;

	frontend_expect_silence(&fe);
	expect_eq(frontend_wait(&fe, &reply, 1), FRONTEND_SILENCE);
	close(peer);
	peer = -1;
	frontend_expect_closed(&fe);
	expect(!frontend_send(&fe, VHOST_USER_SET_OWNER, 1, NULL, 0, NULL, 0));
}
END_TEST

START_TEST(nothing_leaks)
{
	unsigned before = fds_count();

	for (int i = 0; i < 3; i++) {
		nic_init(&nic, &(struct nic_options){.n_pairs = 2});
		nic_close(&nic);
	}
	expect_eq(fds_count(), before);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("support");
	TCase *tc = tcase_create("support");
	SRunner *runner;
	int n_failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, addresses_of_a_byte_are_all_different, 1, 9);
	tcase_add_test(tc, file_of_a_region_holds_its_bytes);
	tcase_add_test(tc, allocations_stay_away_from_edges);
	tcase_add_loop_test(tc, chains_come_back_in_order_across_the_wrap_of_the_indices, 0, 8);
	tcase_add_test(tc, full_ring_uses_every_descriptor_once);
	tcase_add_test(tc, kicks_follow_what_the_device_asks_for);
	tcase_add_test(tc, calls_are_asked_for_where_the_device_looks);
	tcase_add_test(tc, merged_buffers_become_one_frame);
	tcase_add_test(tc, requests_are_what_the_specification_says);
	tcase_add_test(tc, acks_are_asked_for_when_they_are_negotiated);
	tcase_add_test(tc, memory_table_carries_each_region_and_its_fd);
	tcase_add_test(tc, end_of_the_connection_and_silence_are_told_apart);
	tcase_add_test(tc, nothing_leaks);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
