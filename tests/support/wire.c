/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/wire.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct wire wire = {.packet = -1};

void wire_init(void)
{
	wire.packet = -1;
}

void wire_close(void)
{
	if (wire.packet >= 0)
		close(wire.packet);
	wire.packet = -1;
}

void wire_listen(const struct netns *ns, const char *ifname, bool has_vnet_hdr)
{
	wire_close();
	wire.packet = netns_packet_socket(ns, ifname, has_vnet_hdr);
}

void wire_send(uint32_t len, uint32_t seq)
{
	static char data[NIC_MAX_FRAME];

	nic_make_frame(data, len, seq);
	expect_msg(send(wire.packet, data, len, 0) == (ssize_t)len, "send: %s", strerror(errno));
}

void wire_send_from_guest(uint32_t len, uint32_t seq)
{
	static char data[NIC_MAX_FRAME];

	nic_make_frame(data, len, seq);
	nic_send(&nic, 0, data, len);
}

void wire_expect(uint32_t len, uint32_t seq)
{
	struct nic_frame *f = &wire.frame;
	ssize_t n = netns_receive(wire.packet, f->data, sizeof(f->data), WAIT_LONG_MS);

	expect_msg(n >= 0, "frame %u does not come out of the port", seq);
	f->len = (uint32_t)n;
	nic_check_frame(f, len, seq);
}

void wire_expect_at_guest(uint32_t len, uint32_t seq, unsigned ms)
{
	nic_recv(&nic, 0, &wire.frame, ms);
	nic_check_frame(&wire.frame, len, seq);
}

void wire_check_both_ways(uint32_t seq)
{
	wire_send_from_guest(FRAME_LEN, seq);
	wire_expect(FRAME_LEN, seq);
	wire_send(FRAME_LEN, seq);
	wire_expect_at_guest(FRAME_LEN, seq, WAIT_LONG_MS);
}

/* ---- many frames ---- */

static void queue_some(uint32_t n, uint32_t *out, uint32_t in, uint32_t window)
{
	char data[FRAME_LEN];

	nic_reap(&nic, 0);
	for (int i = 0; i < 64 && *out < n && nic_tx(&nic, 0)->n_free > 0 && *out - in < window;
	     i++) {
		nic_make_frame(data, sizeof(data), (*out)++);
		nic_queue(&nic, 0, NULL, data, sizeof(data));
	}
	driver_kick(nic_tx(&nic, 0));
}

void wire_exchange(uint32_t n, uint32_t window)
{
	uint32_t out = 0, in = 0, to_guest = 0, at_guest = 0, seen = 0;
	uint64_t seen_ns = wait_now_ns();

	while (in < n || at_guest < n) {
		if (in + at_guest != seen)
			seen_ns = wait_now_ns();
		seen = in + at_guest;
		expect_msg(wait_now_ns() - seen_ns < wait_scaled_ms(WAIT_LONG_MS) * 1000000ULL,
			   "lost: frame %u of %u from the guest, or frame %u of %u to it", in, out,
			   at_guest, to_guest);
		queue_some(n, &out, in, window);
		for (int i = 0; i < 64 && to_guest < n && to_guest - at_guest < window; i++)
			wire_send(FRAME_LEN, to_guest++);
		while (in < out && netns_receive(wire.packet, wire.frame.data,
						 sizeof(wire.frame.data), 0) >= 0) {
			wire.frame.len = FRAME_LEN;
			nic_check_frame(&wire.frame, FRAME_LEN, in++);
		}
		while (nic_poll(&nic, 0, &wire.frame))
			nic_check_frame(&wire.frame, FRAME_LEN, at_guest++);
	}
	expect_eq(daemon_counter(dut, 0, "tx_packets"), n);
	expect_eq(daemon_counter(dut, 0, "rx_packets"), n);
	expect_eq(daemon_counter(dut, 0, "rx_dropped") + daemon_counter(dut, 0, "tx_dropped"), 0);
}

struct flow {
	uint32_t n, window;
	uint32_t n_seen; /* by the guest; atomic */
};

static void *send_flow(void *arg)
{
	struct flow *flow = arg;
	uint32_t n_sent = 0;

	while (n_sent < flow->n) {
		if (n_sent - __atomic_load_n(&flow->n_seen, __ATOMIC_RELAXED) < flow->window)
			wire_send(FRAME_LEN, n_sent++);
		else
			wait_pause_us(20);
	}
	return NULL;
}

void wire_flow_to_guest(uint32_t n, uint32_t window)
{
	/* A test that fails does not wait for the thread. */
	static struct flow flow;
	pthread_t thread;

	flow = (struct flow){.n = n, .window = window};
	expect_eq(pthread_create(&thread, NULL, send_flow, &flow), 0);
	for (uint32_t i = 0; i < n; i++) {
		wire_expect_at_guest(FRAME_LEN, i, WAIT_LONG_MS);
		__atomic_store_n(&flow.n_seen, i + 1, __ATOMIC_RELAXED);
	}
	pthread_join(thread, NULL);
	expect_eq(daemon_counter(dut, 0, "rx_packets"), n);
	expect_eq(daemon_counter(dut, 0, "rx_dropped"), 0);
}

/* ---- frames with a header before them ---- */

void wire_send_offloaded(const struct virtio_net_hdr_v1 *hdr, const char *data, uint32_t len)
{
	struct iovec iov[2];
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	struct virtio_net_hdr h;

	memcpy(&h, hdr, sizeof(h));
	iov[0] = (struct iovec){&h, sizeof(h)};
	memcpy(&iov[1].iov_base, &data, sizeof(data));
	iov[1].iov_len = len;
	expect_msg(sendmsg(wire.packet, &msg, 0) == (ssize_t)(sizeof(h) + len), "sendmsg: %s",
		   strerror(errno));
}
