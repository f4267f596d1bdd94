/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a frontend may rely on: features, protocol features, the configuration space, messages in
 * any order, and packets that move afterwards, whatever memory and rings look like.
 */
#include <endian.h>
#include <string.h>

#include "support/system.h"

#define FEATURES_OF_ALL_PORTS                                                                      \
	(NIC_BIT(VIRTIO_F_VERSION_1) | NIC_BIT(VIRTIO_RING_F_INDIRECT_DESC) |                      \
	 NIC_BIT(VIRTIO_RING_F_EVENT_IDX) | NIC_BIT(VIRTIO_F_IN_ORDER) |                           \
	 NIC_BIT(VIRTIO_F_ANY_LAYOUT) | NIC_BIT(VIRTIO_F_NOTIFY_ON_EMPTY) |                        \
	 NIC_BIT(VIRTIO_NET_F_MRG_RXBUF) | NIC_BIT(VIRTIO_NET_F_GUEST_ANNOUNCE) |                  \
	 NIC_BIT(VIRTIO_NET_F_STATUS) | NIC_BIT(VIRTIO_NET_F_CTRL_VQ) |                            \
	 NIC_BIT(VIRTIO_F_RING_PACKED) | NIC_BIT(VHOST_USER_F_PROTOCOL_FEATURES))
#define PROTOCOL_FEATURES_OF_ONE_PAIR                                                              \
	(NIC_BIT(VHOST_USER_PROTOCOL_F_REPLY_ACK) | NIC_BIT(VHOST_USER_PROTOCOL_F_NET_MTU) |       \
	 NIC_BIT(VHOST_USER_PROTOCOL_F_RESET_DEVICE) | NIC_BIT(VHOST_USER_PROTOCOL_F_STATUS))

static void negotiate(uint64_t protocol_features)
{
	frontend_connect(&nic.fe, dut->path);
	frontend_negotiate(&nic.fe, NIC_FEATURES, protocol_features);
}

/* ---- what is offered ---- */

static void check_offer(uint64_t features, uint64_t protocol_features)
{
	frontend_connect(&nic.fe, dut->path);
	expect_eq(frontend_ask_u64(&nic.fe, VHOST_USER_GET_FEATURES), features);
	expect_eq(frontend_ask_u64(&nic.fe, VHOST_USER_GET_PROTOCOL_FEATURES), protocol_features);
	frontend_close(&nic.fe);
}

START_TEST(one_pair_offers_what_every_port_does)
{
	for (int i = 0; i < 2; i++) {
		system_start("--port=loopback");
		check_offer(FEATURES_OF_ALL_PORTS, PROTOCOL_FEATURES_OF_ONE_PAIR);
		daemon_stop(dut);
	}
}
END_TEST

START_TEST(several_pairs_offer_multiqueue)
{
	system_start("--port=null", "--queue-pairs=3");
	check_offer(FEATURES_OF_ALL_PORTS | NIC_BIT(VIRTIO_NET_F_MQ),
		    PROTOCOL_FEATURES_OF_ONE_PAIR | NIC_BIT(VHOST_USER_PROTOCOL_F_MQ));
	frontend_connect(&nic.fe, dut->path);
	expect_eq(frontend_ask_u64(&nic.fe, VHOST_USER_GET_QUEUE_NUM), 3);
}
END_TEST

START_TEST(mac_mtu_and_config_are_offered_when_configured)
{
	system_start("--port=null", "--set", "mac=52:54:00:12:34:56", "--set", "mtu=9000", "--set",
		     "offer-config=true");
	check_offer(FEATURES_OF_ALL_PORTS | NIC_BIT(VIRTIO_NET_F_MAC) | NIC_BIT(VIRTIO_NET_F_MTU),
		    PROTOCOL_FEATURES_OF_ONE_PAIR | NIC_BIT(VHOST_USER_PROTOCOL_F_CONFIG) |
			    NIC_BIT(VHOST_USER_PROTOCOL_F_BACKEND_REQ));
}
END_TEST

START_TEST(features_that_are_not_offered_are_refused)
{
	const unsigned bits[] = {0, 7, 33 /* access platform */, 40 /* ring reset */, 63};

	system_start("--port=loopback");
	negotiate(NIC_PROTOCOL_FEATURES);
	for (unsigned i = 0; i < 5; i++)
		expect_ne(frontend_ack_u64(&nic.fe, VHOST_USER_SET_FEATURES,
					   NIC_FEATURES | NIC_BIT(bits[i])),
			  0);
	expect_ne(frontend_ack_u64(&nic.fe, VHOST_USER_SET_PROTOCOL_FEATURES,
				   PROTOCOL_FEATURES_OF_ONE_PAIR | NIC_BIT(40)),
		  0);
	expect_eq(frontend_ack_u64(&nic.fe, VHOST_USER_SET_FEATURES, nic.fe.features), 0);
}
END_TEST

/* ---- configuration space ---- */

START_TEST(configuration_space_holds_what_is_configured)
{
	struct virtio_net_config config;

	system_start("--port=null", "--queue-pairs=2", "--set", "mac=52:54:00:12:34:56", "--set",
		     "mtu=1400", "--set", "offer-config=true");
	negotiate(~0ULL);
	memset(&config, 0xee, sizeof(config));
	expect(frontend_get_config(&nic.fe, 0, 12, &config));
	expect(memcmp(config.mac, "\x52\x54\x00\x12\x34\x56", 6) == 0);
	expect_eq(le16toh(config.status) & VIRTIO_NET_S_LINK_UP, VIRTIO_NET_S_LINK_UP);
	expect_eq(le16toh(config.max_virtqueue_pairs), 2);
	expect_eq(le16toh(config.mtu), 1400);
	/* Cloud Hypervisor asks for all of the structure at once; others for a field. */
	expect(frontend_get_config(&nic.fe, 0, sizeof(config), &config));
	expect_eq(le16toh(config.mtu), 1400);
	expect(frontend_get_config(&nic.fe, 10, 2, &config));
	expect(memcmp(&config, "\x78\x05", 2) == 0);
	expect(frontend_get_config(&nic.fe, 0, 256, (char[256]){0}));
}
END_TEST

START_TEST(parts_outside_the_configuration_space_are_an_empty_reply)
{
	char bytes[256];

	system_start("--port=null", "--set", "offer-config=true");
	negotiate(~0ULL);
	expect(!frontend_get_config(&nic.fe, 1, 256, bytes));
	expect(!frontend_get_config(&nic.fe, 256, 1, bytes));
	expect(!frontend_get_config(&nic.fe, 0xffffffff, 2, bytes));
	expect(frontend_get_config(&nic.fe, 0, 6, bytes));
}
END_TEST

START_TEST(configuration_space_is_read_only)
{
	system_start("--port=null", "--set", "offer-config=true");
	negotiate(~0ULL);
	expect_ne(frontend_ack_config(&nic.fe, 0, 6, 1, "abcdef"), 0);
	expect_ne(frontend_ack_config(&nic.fe, 250, 100, 1, (char[100]){0}), 0);
	expect_eq(frontend_ack_config(&nic.fe, 0, 6, VHOST_USER_CONFIG_LIVE_MIGRATION, "abcdef"),
		  0);
}
END_TEST

START_TEST(mtu_from_the_frontend_is_judged)
{
	const struct {
		uint64_t mtu;
		bool is_good;
	} cases[] = {{68, true},
		     {1500, true},
		     {65535, true},
		     {67, false},
		     {65536, false},
		     {0, false},
		     {1ULL << 32 | 1500, false}};

	system_start("--port=null");
	negotiate(NIC_PROTOCOL_FEATURES);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_eq(frontend_ack_u64(&nic.fe, VHOST_USER_NET_SET_MTU, cases[i].mtu) == 0,
			  cases[i].is_good);
}
END_TEST

/* ---- requests ---- */

START_TEST(unknown_requests_are_refused_or_ignored)
{
	const uint32_t requests[] = {0, 6, 7, 23, 26, 41, 99, 0xffffffff};

	system_start("--port=loopback");
	negotiate(NIC_PROTOCOL_FEATURES);
	for (unsigned i = 0; i < 8; i++) {
		expect_ne(frontend_ack(&nic.fe, requests[i], "12345678", 8, NULL, 0), 0);
		frontend_send(&nic.fe, requests[i], 1, "12345678", 8, NULL, 0);
		frontend_sync(&nic.fe);
	}
	frontend_expect_silence(&nic.fe);
}
END_TEST

START_TEST(every_request_with_an_ack_gets_exactly_one)
{
	system_start("--port=loopback");
	system_connect(&(struct nic_options){.wants_acks = true});
	nic_post(&nic, 0, 8, 2048);
	nic_ping(&nic, 0, 60, 1);
	expect_eq(frontend_ack(&nic.fe, VHOST_USER_SET_OWNER, NULL, 0, NULL, 0), 0);
	frontend_set_vring_fd(&nic.fe, VHOST_USER_SET_VRING_ERR, 0, -1);
	/* These have a reply of their own, and no ack behind it. */
	frontend_send(&nic.fe, VHOST_USER_GET_STATUS, 9, NULL, 0, NULL, 0);
	frontend_expect_reply(&nic.fe, VHOST_USER_GET_STATUS, &(struct frontend_reply){0});
	frontend_expect_silence(&nic.fe);
	nic_ping(&nic, 0, 60, 2);
}
END_TEST

START_TEST(need_reply_without_reply_ack_gets_none)
{
	system_start("--port=loopback");
	frontend_connect(&nic.fe, dut->path);
	frontend_send(&nic.fe, VHOST_USER_SET_OWNER, 9, NULL, 0, NULL, 0);
	frontend_expect_silence(&nic.fe);
}
END_TEST

START_TEST(status_is_kept_and_zero_resets)
{
	system_start("--port=loopback");
	system_connect(&(struct nic_options){.wants_acks = true});
	frontend_do_u64(&nic.fe, VHOST_USER_SET_STATUS, 0xf);
	expect_eq(frontend_ask_u64(&nic.fe, VHOST_USER_GET_STATUS), 0xf);
	expect_ne(frontend_ack_u64(&nic.fe, VHOST_USER_SET_STATUS, 0x100), 0);
	frontend_do_u64(&nic.fe, VHOST_USER_SET_STATUS, 0);
	expect_eq(frontend_ask_u64(&nic.fe, VHOST_USER_GET_STATUS), 0);
}
END_TEST

/* Enabled first: what waits in a ring that starts disabled is discarded. */
static void start_rings_again(void)
{
	frontend_set_features(&nic.fe, nic.fe.features);
	for (unsigned i = 0; i < 2; i++) {
		frontend_set_vring_enable(&nic.fe, i, true);
		driver_send_setup(&nic.rings[i], &nic.fe);
	}
}

START_TEST(reset_device_forgets_rings_and_keeps_memory)
{
	system_start("--port=loopback");
	system_connect(&(struct nic_options){.wants_acks = _i});
	nic_post(&nic, 0, 8, 2048);
	nic_ping(&nic, 0, 60, 1);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	frontend_do(&nic.fe, VHOST_USER_RESET_DEVICE, NULL, 0, NULL, 0);
	/* Answered only when asked for. */
	frontend_expect_silence(&nic.fe);
	nic_queue(&nic, 0, NULL, (char[60]){0}, 60);
	driver_publish(nic_tx(&nic, 0));
	driver_kick_always(nic_tx(&nic, 0));
	nic_expect_nothing(&nic, 0);
	expect_eq(driver_n_used(nic_tx(&nic, 0)), 0);
	start_rings_again();
	nic_recv(&nic, 0, &(struct nic_frame){0}, WAIT_PROMPT_MS);
	nic_ping(&nic, 0, 60, 2);
}
END_TEST

START_TEST(guest_reboots_on_one_connection)
{
	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 8, 2048);
	for (uint32_t i = 0; i < 5; i++) {
		nic_ping(&nic, 0, 60, i);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
		for (unsigned ring = 0; ring < 2; ring++) {
			frontend_get_vring_base(&nic.fe, ring);
			frontend_set_vring_enable(&nic.fe, ring, false);
		}
		frontend_set_features(&nic.fe, 0);
		start_rings_again();
		frontend_set_features(&nic.fe,
				      nic.features | NIC_BIT(VHOST_USER_F_PROTOCOL_FEATURES));
		for (unsigned ring = 0; ring < 2; ring++) {
			frontend_get_vring_base(&nic.fe, ring);
			driver_send_setup(&nic.rings[ring], &nic.fe);
			frontend_set_vring_enable(&nic.fe, ring, true);
		}
	}
	nic_ping(&nic, 0, 60, 99);
}
END_TEST

/* ---- order ---- */

#define N_STEPS 6

static void send_step(unsigned step, unsigned ring)
{
	const struct driver_ring *r = &nic.rings[ring];

	switch (step) {
	case 0:
		driver_send_num(r, &nic.fe);
		break;
	case 1:
		driver_send_addr(r, &nic.fe);
		break;
	case 2:
		driver_send_base(r, &nic.fe);
		break;
	case 3:
		driver_send_kick(r, &nic.fe);
		break;
	case 4:
		driver_send_call(r, &nic.fe);
		break;
	default:
		frontend_set_vring_enable(&nic.fe, ring, true);
	}
}

/* Write the n-th permutation of 0..N_STEPS-1. */
static void permute(unsigned n, unsigned *order)
{
	unsigned left[N_STEPS];

	for (unsigned i = 0; i < N_STEPS; i++)
		left[i] = i;
	for (unsigned i = 0; i < N_STEPS; i++) {
		unsigned n_left = N_STEPS - i, pick = n % n_left;

		order[i] = left[pick];
		left[pick] = left[n_left - 1];
		n /= n_left;
	}
}

START_TEST(ring_messages_come_in_any_order_before_and_after_memory)
{
	unsigned order[N_STEPS], n = wait_repeats("orders of messages", 90, 720);

	system_start("--port=loopback");
	for (unsigned i = 0; i < n; i++) {
		bool is_memory_last = i % 2;

		permute(i * (720 / n) + i % (720 / n), order);
		nic_init(&nic, &(struct nic_options){.size = 16});
		frontend_connect(&nic.fe, dut->path);
		frontend_negotiate(&nic.fe, nic.features, NIC_PROTOCOL_FEATURES);
		nic.fe.wants_acks = i % 3 == 0;
		if (!is_memory_last)
			frontend_set_mem_table(&nic.fe, &nic.guest);
		for (unsigned step = 0; step < N_STEPS; step++)
			for (unsigned ring = 0; ring < 2; ring++)
				send_step(order[step], ring);
		if (is_memory_last)
			frontend_set_mem_table(&nic.fe, &nic.guest);
		/* What is sent between start and ENABLE would be discarded. */
		frontend_sync(&nic.fe);
		nic_post(&nic, 0, 8, 2048);
		nic_ping(&nic, 0, 60, i);
		nic_close(&nic);
		wait_until(frontend_try_connect(&nic.fe, dut->path) == 0, WAIT_LONG_MS);
		frontend_close(&nic.fe);
	}
}
END_TEST

/* ---- packets ---- */

static void ping_lengths(unsigned n)
{
	for (uint32_t i = 0; i < n; i++)
		nic_ping(&nic, 0, 18 + i * 67 % 1497, i);
}

static const uint64_t header_features[] = {
	NIC_FEATURES,
	NIC_BIT(VIRTIO_F_VERSION_1),
	NIC_BIT(VIRTIO_NET_F_MRG_RXBUF),
	NIC_BIT(VIRTIO_RING_F_INDIRECT_DESC), /* a legacy driver: 10 bytes of header */
	NIC_FEATURES | NIC_BIT(VIRTIO_F_IN_ORDER) | NIC_BIT(VIRTIO_F_NOTIFY_ON_EMPTY),
};

START_TEST(frames_survive_whatever_the_header_looks_like)
{
	system_start("--port=loopback");
	system_connect(&(struct nic_options){.features = header_features[_i / 2],
					     .is_indirect = false,
					     .has_no_protocol = _i % 2});
	nic_post(&nic, 0, 100, 2048);
	ping_lengths(300);
}
END_TEST

START_TEST(frames_survive_indirect_descriptors)
{
	system_start("--port=loopback");
	system_connect(&(struct nic_options){.is_indirect = true});
	nic_post(&nic, 0, 100, 2048);
	ping_lengths(300);
}
END_TEST

START_TEST(frames_are_merged_from_small_buffers)
{
	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 200, 64);
	ping_lengths(300);
}
END_TEST

START_TEST(guest_memory_may_be_any_regions)
{
	struct guest_layout layout = {
		.n_regions = 1 + (unsigned)_i / 4,
		.region_size = 4 << 20,
		.hole = _i % 2 ? 2 << 20 : 0,
		.is_last_apart = _i % 4 / 2,
	};

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.layout = &layout});
	/* Some buffers in every region. */
	nic.rx_buf_len[0] = 2048;
	for (unsigned i = 0; i < layout.n_regions; i++) {
		nic.guest.next = nic.guest.regions[i].gpa + (1 << 20);
		nic_post(&nic, 0, 8, 2048);
	}
	for (uint32_t i = 0; i < 100; i++) {
		nic.guest.next = nic.guest.regions[i % layout.n_regions].gpa + (2 << 20);
		nic.n_tx_bufs[0] = 0;
		nic_ping(&nic, 0, 1000, i);
		nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	}
}
END_TEST

static const uint32_t ring_sizes[] = {2, 4, 8, 256, 1024, 32768};

START_TEST(rings_may_have_any_size_and_wrap)
{
	uint32_t size = ring_sizes[_i / 2];

	system_start("--port=loopback");
	system_connect(&(struct nic_options){
		.size = size, .base = 65530, .is_indirect = _i % 2, .features = NIC_FEATURES});
	nic_post(&nic, 0, size > 64 ? 64 : size, 2048);
	ping_lengths(200);
}
END_TEST

START_TEST(whole_ring_of_frames_at_once)
{
	static struct nic_frame f;
	char data[200];

	system_start("--port=loopback");
	system_connect(&(struct nic_options){.size = 1024, .base = 65000});
	nic_post(&nic, 0, 1024, 2048);
	for (uint32_t i = 0; i < 1024; i++) {
		nic_make_frame(data, sizeof(data), i);
		nic_queue(&nic, 0, NULL, data, sizeof(data));
	}
	driver_kick(nic_tx(&nic, 0));
	for (uint32_t i = 0; i < 1024; i++) {
		nic_recv(&nic, 0, &f, WAIT_LONG_MS);
		nic_check_frame(&f, sizeof(data), i);
	}
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
}
END_TEST

START_TEST(each_pair_carries_its_own_frames)
{
	system_start("--port=loopback", "--queue-pairs=16");
	system_connect(
		&(struct nic_options){.n_pairs = 16,
				      .size = 64,
				      .layout = &(struct guest_layout){.region_size = 64 << 20}});
	for (unsigned pair = 0; pair < 16; pair++)
		nic_post(&nic, pair, 8, 2048);
	for (uint32_t i = 0; i < 20; i++)
		for (unsigned pair = 0; pair < 16; pair++)
			nic_ping(&nic, pair, 100, i * 16 + pair);
	for (unsigned pair = 0; pair < 16; pair++)
		expect_eq(daemon_counter(dut, pair, "rx_packets"), 20);
}
END_TEST

START_TEST(counters_count_frames_without_their_header)
{
	system_start("--port=loopback");
	system_connect(NULL);
	nic_post(&nic, 0, 32, 2048);
	for (uint32_t i = 0; i < 10; i++)
		nic_ping(&nic, 0, 100, i);
	nic_wait_sent(&nic, 0, WAIT_LONG_MS);
	expect_eq(daemon_counter(dut, 0, "tx_packets"), 10);
	expect_eq(daemon_counter(dut, 0, "tx_bytes"), 1000);
	expect_eq(daemon_counter(dut, 0, "rx_packets"), 10);
	expect_eq(daemon_counter(dut, 0, "rx_bytes"), 1000);
	expect_eq(daemon_counter(dut, 0, "tx_dropped") + daemon_counter(dut, 0, "rx_dropped"), 0);
	expect_ge(daemon_counter(dut, 0, "kicks"), 1);
}
END_TEST

START_TEST(null_port_offers_frames_of_its_source_size)
{
	static struct nic_frame f;
	const uint32_t sizes[] = {64, 1514, 65549};
	char key[40];

	snprintf(key, sizeof(key), "port.source-size=%u", sizes[_i]);
	system_start("--port=null", "--set", key);
	system_connect(&(struct nic_options){.size = 512});
	nic_post(&nic, 0, 512, 2048);
	for (int i = 0; i < 2000; i++) {
		nic_recv(&nic, 0, &f, WAIT_LONG_MS);
		expect_eq(f.len, sizes[_i]);
		expect(memcmp(&f.hdr, (char[10]){0}, 10) == 0);
	}
}
END_TEST

/* ---- the control queue ---- */

static uint8_t send_command(struct driver_ring *r, const void *command, uint32_t len)
{
	uint64_t at = guest_alloc(&nic.guest, len + 1, 4);
	struct driver_seg segs[3] = {
		{.gpa = at, .len = 2},
		{.gpa = at + 2, .len = len - 2},
		{.gpa = at + len, .len = 1, .is_writable = true},
	};
	char *bytes = guest_at(&nic.guest, at);
	struct driver_used u;

	memcpy(bytes, command, len);
	bytes[len] = 0x55;
	if (len == 2)
		segs[1] = segs[2];
	driver_add(r, segs, len == 2 ? 2 : 3, 0);
	driver_kick(r);
	driver_wait(r, &u, WAIT_LONG_MS);
	expect_eq(u.len, 1);
	return (uint8_t)bytes[len];
}

START_TEST(control_queue_is_answered)
{
	struct driver_ring *r = &nic.rings[2 * 2];

	system_start("--port=loopback", "--queue-pairs=2");
	system_connect(&(struct nic_options){.n_pairs = 2});
	driver_init(r, &nic.guest, 4, 64, 0, nic.features);
	driver_send_setup(r, &nic.fe);
	frontend_set_vring_enable(&nic.fe, 4, true);
	expect_eq(send_command(r, "\3\0", 2), VIRTIO_NET_OK);
	expect_eq(send_command(r, "\4\0\1\0", 4), VIRTIO_NET_OK);
	expect_eq(send_command(r, "\4\0\2\0", 4), VIRTIO_NET_OK);
	expect_eq(send_command(r, "\4\0\0\0", 4), VIRTIO_NET_ERR);
	expect_eq(send_command(r, "\4\0\3\0", 4), VIRTIO_NET_ERR);
	expect_eq(send_command(r, "\1\0\1", 3), VIRTIO_NET_ERR);
	expect_eq(send_command(r, "\x77\x77", 2), VIRTIO_NET_ERR);
	expect(driver_wait_call(r, WAIT_PROMPT_MS));
	expect_eq(frontend_get_vring_base(&nic.fe, 4), 7);
	nic_post(&nic, 1, 8, 2048);
	nic_ping(&nic, 1, 60, 1);
}
END_TEST

static void add_offers(TCase *tc)
{
	tcase_add_test(tc, one_pair_offers_what_every_port_does);
	tcase_add_test(tc, several_pairs_offer_multiqueue);
	tcase_add_test(tc, mac_mtu_and_config_are_offered_when_configured);
	tcase_add_test(tc, features_that_are_not_offered_are_refused);
	tcase_add_test(tc, configuration_space_holds_what_is_configured);
	tcase_add_test(tc, parts_outside_the_configuration_space_are_an_empty_reply);
	tcase_add_test(tc, configuration_space_is_read_only);
	tcase_add_test(tc, mtu_from_the_frontend_is_judged);
}

static void add_requests(TCase *tc)
{
	tcase_add_test(tc, unknown_requests_are_refused_or_ignored);
	tcase_add_test(tc, every_request_with_an_ack_gets_exactly_one);
	tcase_add_test(tc, need_reply_without_reply_ack_gets_none);
	tcase_add_test(tc, status_is_kept_and_zero_resets);
	tcase_add_loop_test(tc, reset_device_forgets_rings_and_keeps_memory, 0, 2);
	tcase_add_test(tc, guest_reboots_on_one_connection);
	tcase_add_test(tc, ring_messages_come_in_any_order_before_and_after_memory);
	tcase_add_test(tc, control_queue_is_answered);
}

static void add_all(TCase *tc)
{
	add_offers(tc);
	add_requests(tc);
	tcase_add_loop_test(tc, frames_survive_whatever_the_header_looks_like, 0, 10);
	tcase_add_test(tc, frames_survive_indirect_descriptors);
	tcase_add_test(tc, frames_are_merged_from_small_buffers);
	tcase_add_loop_test(tc, guest_memory_may_be_any_regions, 0, 32);
	tcase_add_loop_test(tc, rings_may_have_any_size_and_wrap, 0, 12);
	tcase_add_test(tc, whole_ring_of_frames_at_once);
	tcase_add_test(tc, each_pair_carries_its_own_frames);
	tcase_add_test(tc, counters_count_frames_without_their_header);
	tcase_add_loop_test(tc, null_port_offers_frames_of_its_source_size, 0, 3);
}

int main(void)
{
	return system_main("handshake", add_all);
}
