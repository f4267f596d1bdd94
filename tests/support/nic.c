/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/nic.h"

#include <endian.h>
#include <linux/virtio_config.h>
#include <stdlib.h>
#include <string.h>

#include "support/layout.h"
#include "support/wait.h"

#define PATTERN_AT 18u
#define DRIVER_IS_OK                                                                               \
	(VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER | VIRTIO_CONFIG_S_FEATURES_OK |      \
	 VIRTIO_CONFIG_S_DRIVER_OK)

struct driver_ring *nic_rx(struct nic *n, unsigned pair)
{
	return &n->rings[2 * pair];
}

struct driver_ring *nic_tx(struct nic *n, unsigned pair)
{
	return &n->rings[2 * pair + 1];
}

static void fill_up(struct nic_options *o)
{
	o->features = o->features ? o->features : NIC_FEATURES;
	o->features |= layout_is_packed ? NIC_BIT(VIRTIO_F_RING_PACKED) : 0;
	o->n_pairs = o->n_pairs ? o->n_pairs : 1;
	o->size = o->size ? o->size : 256;
	o->tx_buf_len = o->tx_buf_len ? o->tx_buf_len : 2048;
}

/* Each transmit buffer has room for an indirect table in front. */
#define TABLE_LEN (4 * sizeof(struct vring_desc))

static void make_tx_bufs(struct nic *n, unsigned pair)
{
	n->tx_bufs[pair] = calloc(n->options.size, sizeof(*n->tx_bufs[pair]));
	expect(n->tx_bufs[pair]);
}

static uint64_t take_tx_buf(struct nic *n, unsigned pair)
{
	if (n->n_tx_bufs[pair] == 0)
		return guest_alloc(&n->guest, TABLE_LEN + n->options.tx_buf_len, 4) + TABLE_LEN;
	return n->tx_bufs[pair][--n->n_tx_bufs[pair]];
}

void nic_init(struct nic *n, const struct nic_options *options)
{
	const uint64_t long_hdr = NIC_BIT(VIRTIO_F_VERSION_1) | NIC_BIT(VIRTIO_NET_F_MRG_RXBUF);

	*n = (struct nic){.options = options ? *options : (struct nic_options){0}};
	n->fe.sock = -1;
	fill_up(&n->options);
	n->features = n->options.features;
	n->hdr_len = n->features & long_hdr ? 12 : 10;
	guest_init(&n->guest, n->options.layout);
	for (unsigned i = 0; i < 2 * n->options.n_pairs; i++)
		driver_init(&n->rings[i], &n->guest, i, n->options.size, n->options.base,
			    n->features);
	for (unsigned i = 0; i < n->options.n_pairs; i++)
		make_tx_bufs(n, i);
}

/* Some backends wait for the driver's word, where there is one. */
static void set_driver_ok(struct nic *n)
{
	if (n->fe.protocol_features & NIC_BIT(VHOST_USER_PROTOCOL_F_STATUS))
		frontend_do_u64(&n->fe, VHOST_USER_SET_STATUS, DRIVER_IS_OK);
}

void nic_start(struct nic *n)
{
	n->fe.wants_acks = n->options.wants_acks;
	frontend_negotiate(&n->fe, n->features,
			   n->options.has_no_protocol ? 0 : NIC_PROTOCOL_FEATURES);
	frontend_set_mem_table(&n->fe, &n->guest);
	for (unsigned i = 0; i < 2 * n->options.n_pairs; i++) {
		struct driver_ring *r = &n->rings[i];

		driver_send_num(r, &n->fe);
		if (n->options.has_old_base && r->is_packed)
			frontend_set_vring_base(&n->fe, i, r->first_base);
		else
			driver_send_base(r, &n->fe);
		driver_send_addr(r, &n->fe);
		driver_send_call(r, &n->fe);
		frontend_set_vring_fd(&n->fe, VHOST_USER_SET_VRING_ERR, i, r->err_fd);
		if (n->options.is_left_stopped)
			continue;
		/* In this order, or what waits in a transmit ring is discarded in between. */
		if (!n->options.has_no_protocol)
			frontend_set_vring_enable(&n->fe, i, true);
		driver_send_kick(r, &n->fe);
	}
	if (!n->options.is_left_stopped)
		set_driver_ok(n);
	frontend_sync(&n->fe);
}

/* What a backend offers must be known before the rings are made: their layout depends on it. */
static uint64_t ask_offered(const char *path)
{
	struct frontend f;
	uint64_t offered;

	frontend_connect(&f, path);
	offered = frontend_ask_u64(&f, VHOST_USER_GET_FEATURES);
	frontend_close(&f);
	return offered;
}

void nic_open(struct nic *n, const char *path, const struct nic_options *options)
{
	struct nic_options o = options ? *options : (struct nic_options){0};

	fill_up(&o);
	o.features &= ask_offered(path);
	nic_init(n, &o);
	frontend_connect(&n->fe, path);
	nic_start(n);
}

void nic_disconnect(struct nic *n)
{
	frontend_close(&n->fe);
}

void nic_close(struct nic *n)
{
	if (!n->guest.map)
		return;
	frontend_close(&n->fe);
	for (unsigned i = 0; i < 2 * NIC_MAX_PAIRS; i++)
		driver_fini(&n->rings[i]);
	for (unsigned i = 0; i < NIC_MAX_PAIRS; i++)
		free(n->tx_bufs[i]);
	guest_fini(&n->guest);
	memset(n, 0, sizeof(*n));
	n->fe.sock = -1;
}

/* ---- frames ---- */

static void post_one(struct nic *n, unsigned pair, uint64_t gpa)
{
	struct driver_seg seg = {.gpa = gpa, .len = n->rx_buf_len[pair], .is_writable = true};

	driver_add(nic_rx(n, pair), &seg, 1, gpa);
}

void nic_post(struct nic *n, unsigned pair, unsigned count, uint32_t len)
{
	n->rx_buf_len[pair] = len;
	for (unsigned i = 0; i < count; i++)
		post_one(n, pair, guest_alloc(&n->guest, len, 4));
	driver_kick(nic_rx(n, pair));
}

void nic_queue(struct nic *n, unsigned pair, const struct virtio_net_hdr_v1 *hdr, const void *data,
	       uint32_t len)
{
	static const struct virtio_net_hdr_v1 zeros;
	uint64_t buf = take_tx_buf(n, pair);
	char *at = guest_at(&n->guest, buf);
	struct driver_seg segs[2] = {
		{.gpa = buf, .len = n->hdr_len},
		{.gpa = buf + n->hdr_len, .len = len},
	};

	expect_le(n->hdr_len + len, n->options.tx_buf_len);
	memcpy(at, hdr ? hdr : &zeros, n->hdr_len);
	memcpy(at + n->hdr_len, data, len);
	if (n->options.is_indirect) {
		driver_add_indirect(nic_tx(n, pair), segs, 2, buf, buf - TABLE_LEN);
		return;
	}
	segs[0].len += len;
	driver_add(nic_tx(n, pair), segs, 1, buf);
}

unsigned nic_reap(struct nic *n, unsigned pair)
{
	struct driver_used u;
	unsigned count = 0;

	while (driver_take(nic_tx(n, pair), &u)) {
		expect_eq(u.len, 0);
		n->tx_bufs[pair][n->n_tx_bufs[pair]++] = u.chain->cookie;
		count++;
	}
	return count;
}

void nic_send(struct nic *n, unsigned pair, const void *data, uint32_t len)
{
	nic_reap(n, pair);
	nic_queue(n, pair, NULL, data, len);
	driver_kick(nic_tx(n, pair));
}

void nic_wait_sent(struct nic *n, unsigned pair, unsigned ms)
{
	const struct driver_ring *r = nic_tx(n, pair);

	wait_until((nic_reap(n, pair), r->last_used == r->published_idx), ms);
}

/* Take the buffer of one used element into the frame, behind what is there. */
static void take_buffer(struct nic *n, unsigned pair, struct nic_frame *f, bool is_first)
{
	struct driver_ring *r = nic_rx(n, pair);
	struct driver_used u;
	const char *at;

	driver_wait(r, &u, WAIT_LONG_MS);
	at = guest_at(&n->guest, u.chain->cookie);
	if (is_first) {
		expect_ge(u.len, n->hdr_len);
		memcpy(&f->hdr, at, n->hdr_len);
		at += n->hdr_len;
		u.len -= n->hdr_len;
	}
	expect_le(f->len + u.len, NIC_MAX_FRAME);
	memcpy(f->data + f->len, at, u.len);
	f->len += u.len;
	post_one(n, pair, u.chain->cookie);
}

bool nic_poll(struct nic *n, unsigned pair, struct nic_frame *f)
{
	bool is_merged = n->features & NIC_BIT(VIRTIO_NET_F_MRG_RXBUF);

	if (driver_n_used(nic_rx(n, pair)) == 0)
		return false;
	memset(&f->hdr, 0, sizeof(f->hdr));
	f->len = 0;
	take_buffer(n, pair, f, true);
	f->n_buffers = is_merged ? le16toh(f->hdr.num_buffers) : 1;
	expect_ge(f->n_buffers, 1);
	if (n->hdr_len == 12 && !is_merged)
		expect_eq(le16toh(f->hdr.num_buffers), 1);
	/* All buffers of a frame become visible at once. */
	expect_ge(driver_n_used(nic_rx(n, pair)), f->n_buffers - 1);
	for (unsigned i = 1; i < f->n_buffers; i++)
		take_buffer(n, pair, f, false);
	driver_kick(nic_rx(n, pair));
	return true;
}

void nic_recv(struct nic *n, unsigned pair, struct nic_frame *f, unsigned ms)
{
	wait_until(nic_poll(n, pair, f), ms);
}

void nic_expect_nothing(struct nic *n, unsigned pair)
{
	wait_pause_us(WAIT_QUIET_MS * 1000);
	expect_eq(driver_n_used(nic_rx(n, pair)), 0);
}

void nic_make_frame(char *data, uint32_t len, uint32_t seq)
{
	uint32_t net_seq = htobe32(seq);

	expect_ge(len, PATTERN_AT);
	memcpy(data, "\x02vux\0\2\x02vux\0\1\x88\xb5", 14);
	memcpy(data + 14, &net_seq, sizeof(net_seq));
	for (uint32_t i = PATTERN_AT; i < len; i++)
		data[i] = (char)(seq * 31 + i * 7 + (i >> 8));
}

uint32_t nic_frame_seq(const struct nic_frame *f)
{
	uint32_t net_seq;

	expect_ge(f->len, PATTERN_AT);
	memcpy(&net_seq, f->data + 14, sizeof(net_seq));
	return be32toh(net_seq);
}

void nic_check_frame(const struct nic_frame *f, uint32_t len, uint32_t seq)
{
	static char expected[NIC_MAX_FRAME];

	expect_eq(f->len, len);
	expect_eq(nic_frame_seq(f), seq);
	nic_make_frame(expected, len, seq);
	expect(memcmp(f->data, expected, len) == 0);
}

void nic_ping(struct nic *n, unsigned pair, uint32_t len, uint32_t seq)
{
	static struct nic_frame f;
	static char data[NIC_MAX_FRAME];

	nic_make_frame(data, len, seq);
	nic_send(n, pair, data, len);
	nic_recv(n, pair, &f, WAIT_LONG_MS);
	nic_check_frame(&f, len, seq);
}
