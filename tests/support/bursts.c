/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/bursts.h"

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bursts bx;

/* ---- life ---- */

static void make_pair(void)
{
	bx.pair = aligned_alloc(64, (sizeof(*bx.pair) + 63) / 64 * 64);
	expect(bx.pair);
	memset(bx.pair, 0, sizeof(*bx.pair));
	bx.pair->params.batch = 64;
	queue_init(&bx.pair->rx, VIRTQ_DEVICE_WRITES, "q0.rx", &bx.pair->stats);
	queue_init(&bx.pair->tx, VIRTQ_DEVICE_READS, "q0.tx", &bx.pair->stats);
}

void bursts_setup(void)
{
	signal(SIGPIPE, SIG_IGN); /* as main() does */
	bx = (struct bursts){0};
	fake_port_init(&bx.fake);
	ring_guest_init(&bx.guest, 0);
	log_capture_start(&bx.lines);
	make_pair();
}

static void check_sums(void)
{
	uint16_t n_sent = (uint16_t)(bx.pair->tx.vq.used_idx - ring_first(&bx.tx));

	expect_eq((uint16_t)(bursts_stat(STAT_tx_packets) + bursts_stat(STAT_tx_dropped)), n_sent);
	if (bx.port.ops)
		return;
	expect_eq(bursts_stat(STAT_rx_packets) + bursts_stat(STAT_rx_dropped), bx.fake.n_released);
	if (!bx.fake.is_canceled)
		expect_ge(bx.fake.n_sent, bursts_stat(STAT_tx_packets));
}

void bursts_teardown(void)
{
	if (bx.rx.guest) {
		check_sums();
		bursts_stop_tx();
		bursts_stop_rx();
		queue_fini(&bx.pair->rx);
		queue_fini(&bx.pair->tx);
		ring_fini(&bx.rx);
		ring_fini(&bx.tx);
	}
	if (bx.port.ops)
		bx.port.ops->close(&bx.port);
	free(bx.pair);
	fake_port_fini(&bx.fake);
	ring_guest_fini(&bx.guest);
	log_capture_stop(&bx.lines);
}

static void start_ring(struct ring *r, struct queue *q)
{
	struct virtq_setup s = ring_setup(r);

	expect_eq(queue_start(q, &s), 0);
}

static void make_ring(struct ring *r, struct queue *q, int shape, uint64_t features)
{
	struct ring_shape s = ring_shape(shape);

	ring_init(r, &bx.guest, &s, features);
	queue_set_call_fd(q, dup(r->drv.call_fd));
	queue_set_err_fd(q, dup(r->drv.err_fd));
	start_ring(r, q);
	q->is_enabled = true;
	driver_take_calls(&r->drv);
}

void bursts_start(int shape, uint64_t features)
{
	if (!bx.pair->ops)
		bx.pair->ops = &fake_port_ops;
	if (!bx.pair->port)
		bx.pair->port = &bx.fake.base;
	bx.pair->port->stats = &bx.pair->stats;
	make_ring(&bx.rx, &bx.pair->rx, shape, features);
	make_ring(&bx.tx, &bx.pair->tx, shape, features);
}

void bursts_start_port(int shape, uint64_t features, const struct port_config *cfg)
{
	bx.port = (struct port){.ops = cfg->ops, .n_queues = 1};
	expect_eq(cfg->ops->open(&bx.port, cfg, NULL), 0);
	bx.pair->ops = cfg->ops;
	bx.pair->port = cfg->ops->queue(&bx.port, 0);
	bursts_start(shape, features);
}

void bursts_stop_rx(void)
{
	queue_stop(&bx.pair->rx);
}

void bursts_stop_tx(void)
{
	if (virtq_is_live(&bx.pair->tx.vq))
		tx_complete(bx.pair);
	if (bx.pair->ops->tx_cancel)
		bx.pair->ops->tx_cancel(bx.pair->port);
	queue_stop(&bx.pair->tx);
}

void bursts_restart_rx(void)
{
	bx.pair->rx_is_starved = false;
	start_ring(&bx.rx, &bx.pair->rx);
}

void bursts_restart_tx(void)
{
	start_ring(&bx.tx, &bx.pair->tx);
}

uint64_t bursts_stat(enum queue_counter which)
{
	return stat_read(&bx.pair->stats, which);
}

/* ---- the guest sends ---- */

/* Cut `len` bytes into segments. Return: how many. */
static unsigned cut(struct driver_seg *segs, uint32_t len, const uint32_t *cuts, unsigned n_cuts)
{
	uint32_t lens[RING_MAX_SEGS];
	unsigned n = 0;

	expect_lt(n_cuts, RING_MAX_SEGS);
	for (; n < n_cuts && (cuts[n] < len || cuts[n] == 0); n++) {
		lens[n] = cuts[n];
		len -= cuts[n];
	}
	if (len > 0)
		lens[n++] = len;
	ring_alloc_segs(&bx.guest, segs, lens, n, false);
	return n;
}

void bursts_send(const vnet_hdr *h, uint32_t len, unsigned seed, const uint32_t *cuts,
		 unsigned n_cuts)
{
	static const vnet_hdr empty;
	uint32_t hdr_len = bx.pair->tx.hdr_len;
	struct driver_seg segs[RING_MAX_SEGS];
	char *frame = malloc(hdr_len + len + 1);
	unsigned n = cut(segs, hdr_len + len, cuts, n_cuts);

	expect(frame);
	memcpy(frame, h ? h : &empty, hdr_len);
	fake_pattern_fill(frame + hdr_len, len, seed);
	ring_fill_segs(&bx.guest, segs, n, frame);
	free(frame);
	ring_offer(&bx.tx, segs, n, seed);
	driver_publish(&bx.tx.drv);
}

bool bursts_take_sent(void)
{
	struct driver_used u;

	if (!driver_take(&bx.tx.drv, &u))
		return false;
	expect_eq(u.len, 0);
	return true;
}

void bursts_take_sent_n(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		expect(bursts_take_sent());
	expect(!bursts_take_sent());
}

/* ---- the guest receives ---- */

void bursts_offer_lens(const uint32_t *lens, unsigned n)
{
	ring_offer_lens(&bx.rx, lens, n, true);
	driver_publish(&bx.rx.drv);
}

void bursts_offer(uint32_t len, unsigned n)
{
	while (n-- > 0)
		bursts_offer_lens(&len, 1);
}

/* Take one chain. Return: bytes in it, added to `to`. */
static uint32_t take_chain(char *to, uint32_t cap)
{
	struct driver_used u;

	expect_msg(driver_take(&bx.rx.drv, &u), "a frame, or the rest of one, is missing");
	expect_msg(u.len > 0 && u.len <= cap, "%u bytes for %u", u.len, cap);
	expect_eq(driver_read(&bx.rx.drv, &u, to, cap), u.len);
	return u.len;
}

vnet_hdr bursts_receive(uint32_t len, unsigned seed)
{
	uint32_t hdr_len = bx.pair->rx.hdr_len;
	uint32_t total = hdr_len + len;
	char *frame = malloc(total);
	uint32_t n = 1, at;
	vnet_hdr h = {0};

	expect(frame);
	at = take_chain(frame, total);
	expect_ge(at, hdr_len);
	memcpy(&h, frame, hdr_len);
	if (hdr_len == sizeof(h))
		expect_ge(h.num_buffers, 1);
	for (; n < h.num_buffers; n++)
		at += take_chain(frame + at, total - at);
	expect_eq(at, total);
	fake_pattern_check(frame + hdr_len, len, seed);
	free(frame);
	return h;
}

void bursts_receive_empty(void)
{
	struct driver_used u;

	expect(driver_take(&bx.rx.drv, &u));
	expect_eq(u.len, 0);
}

void bursts_expect_quiet(void)
{
	expect_eq(driver_n_used(&bx.rx.drv), 0);
}
