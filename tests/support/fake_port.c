/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/fake_port.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "support/expect.h"

static struct fake_port *fake_of(struct port_queue *q)
{
	return container_of(q, struct fake_port, base);
}

static char pattern_byte(uint32_t i, unsigned seed)
{
	return (char)(i * 7 + (i >> 8) * 3 + seed * 31 + 1);
}

void fake_pattern_fill(char *to, uint32_t len, unsigned seed)
{
	for (uint32_t i = 0; i < len; i++)
		to[i] = pattern_byte(i, seed);
}

void fake_pattern_check(const char *from, uint32_t len, unsigned seed)
{
	for (uint32_t i = 0; i < len; i++)
		expect_msg(from[i] == pattern_byte(i, seed), "byte %u of %u, seed %u, is wrong", i,
			   len, seed);
}

void fake_port_init(struct fake_port *f)
{
	memset(f, 0, sizeof(*f));
	f->base.fd = -1;
	f->room = UINT_MAX;
}

void fake_port_fini(struct fake_port *f)
{
	for (unsigned i = 0; i < FAKE_MAX_FRAMES; i++) {
		free(f->rx[i].data);
		free(f->sent[i].data);
		f->rx[i].data = f->sent[i].data = NULL;
	}
}

/* ---- towards the guest ---- */

unsigned fake_port_n_waiting(const struct fake_port *f)
{
	return f->n_pushed - f->n_released;
}

static struct fake_frame *waiting_frame(struct fake_port *f, unsigned i)
{
	return &f->rx[(f->n_released + i) % FAKE_MAX_FRAMES];
}

void fake_port_push(struct fake_port *f, const vnet_hdr *h, uint32_t len, unsigned seed)
{
	struct fake_frame *ff = &f->rx[f->n_pushed % FAKE_MAX_FRAMES];

	expect_lt(fake_port_n_waiting(f), FAKE_MAX_FRAMES);
	free(ff->data);
	ff->hdr = h ? *h : (vnet_hdr){0};
	ff->len = len;
	ff->data = malloc(len + 1);
	expect(ff->data);
	fake_pattern_fill(ff->data, len, seed);
	f->n_pushed++;
}

/* Show a frame as header and `n` segments of data. */
static void show(struct fake_frame *ff, struct frame *frame, uint32_t n)
{
	uint32_t at = 0;

	ff->iov[0] = (struct iovec){&ff->hdr, FRAME_HDR_LEN};
	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = i + 1 < n ? ff->len / n : ff->len - at;

		ff->iov[1 + i] = (struct iovec){ff->data + at, len};
		at += len;
	}
	*frame = (struct frame){.iov = ff->iov, .n_iov = 1 + n, .len = ff->len};
}

static unsigned rx_peek(struct port_queue *q, struct frame *frames, unsigned max)
{
	struct fake_port *f = fake_of(q);

	f->n_shown = min_of(max, fake_port_n_waiting(f));
	for (unsigned i = 0; i < f->n_shown; i++)
		show(waiting_frame(f, i), &frames[i], f->n_segs ? f->n_segs : 1);
	q->rx_more = f->n_shown < fake_port_n_waiting(f);
	return f->n_shown;
}

static void rx_release(struct port_queue *q, unsigned n)
{
	struct fake_port *f = fake_of(q);

	expect_le(n, f->n_shown);
	f->n_released += n;
	f->n_shown = 0;
}

static int rx_into(struct port_queue *q, const struct iovec *iov, unsigned n_iov)
{
	struct fake_port *f = fake_of(q);
	struct fake_frame *ff = waiting_frame(f, 0);
	uint64_t left = ff->len;
	char *from = ff->data;

	if (fake_port_n_waiting(f) == 0)
		return 0;
	expect_eq(iov->iov_len, FRAME_HDR_LEN);
	memcpy(iov->iov_base, &ff->hdr, FRAME_HDR_LEN);
	for (unsigned i = 1; i < n_iov && left > 0; i++) {
		uint64_t n = min_of(left, (uint64_t)iov[i].iov_len);

		memcpy(iov[i].iov_base, from, n);
		from += n;
		left -= n;
	}
	expect_eq(left, 0);
	f->n_released++;
	f->n_direct++;
	q->rx_is_large = fake_port_n_waiting(f) > 0 && waiting_frame(f, 0)->len >= FAKE_LARGE;
	return (int)ff->len + FRAME_HDR_LEN;
}

/* ---- from the guest ---- */

static unsigned tx(struct port_queue *q, struct frame *frames, unsigned n)
{
	struct fake_port *f = fake_of(q);
	unsigned n_now = min_of(n, f->room);

	expect_eq(q->n_tx_dropped, 0);
	expect(!q->tx_full);
	for (unsigned i = 0; i < n_now; i++) {
		struct frame *held = &f->held[f->n_taken % FAKE_MAX_FRAMES];

		expect_lt(f->n_taken - f->n_finished, FAKE_MAX_FRAMES);
		f->n_taken++;
		if (f->drop_every && f->n_taken % f->drop_every == 0) {
			frames[i].is_dropped = true;
			q->n_tx_dropped++;
		}
		*held = frames[i];
	}
	if (f->room != UINT_MAX)
		f->room -= n_now;
	q->tx_full = n_now < n;
	if (!f->holds)
		fake_port_finish(f, f->n_taken - f->n_finished);
	return n_now;
}

/* Copy a frame that is on the wire now; its memory must be as good as it was when it was taken. */
static void record(struct fake_port *f, const struct frame *frame)
{
	struct fake_frame *ff = &f->sent[f->n_sent++ % FAKE_MAX_FRAMES];
	uint32_t at = 0;

	free(ff->data);
	ff->data = malloc(frame->len + 1);
	expect(ff->data);
	expect_eq(frame->iov[0].iov_len, FRAME_HDR_LEN);
	memcpy(&ff->hdr, frame->iov[0].iov_base, FRAME_HDR_LEN);
	for (uint32_t i = 1; i < frame->n_iov; i++) {
		expect_le(frame->iov[i].iov_len, frame->len - at);
		memcpy(ff->data + at, frame->iov[i].iov_base, frame->iov[i].iov_len);
		at += (uint32_t)frame->iov[i].iov_len;
	}
	expect_eq(at, frame->len);
	ff->len = frame->len;
}

void fake_port_finish(struct fake_port *f, unsigned n)
{
	expect_le(n, f->n_taken - f->n_finished);
	for (; n > 0; n--) {
		const struct frame *frame = &f->held[f->n_finished++ % FAKE_MAX_FRAMES];

		if (!frame->is_dropped)
			record(f, frame);
	}
}

const struct fake_frame *fake_port_sent(const struct fake_port *f, unsigned i, uint32_t len,
					unsigned seed)
{
	const struct fake_frame *ff = &f->sent[i % FAKE_MAX_FRAMES];

	expect_lt(i, f->n_sent);
	expect_eq(ff->len, len);
	fake_pattern_check(ff->data, len, seed);
	return ff;
}

static unsigned tx_reap(struct port_queue *q)
{
	struct fake_port *f = fake_of(q);
	unsigned n = f->n_finished - f->n_reported;

	f->n_reported += n;
	return n;
}

static void tx_cancel(struct port_queue *q)
{
	struct fake_port *f = fake_of(q);

	f->n_taken = f->n_finished = f->n_reported;
	f->is_canceled = true;
}

const struct port_ops fake_port_ops = {
	.name = "fake",
	.rx_peek = rx_peek,
	.rx_release = rx_release,
	.tx = tx,
	.tx_reap = tx_reap,
	.tx_cancel = tx_cancel,
};

const struct port_ops fake_port_direct_ops = {
	.name = "fake-direct",
	.rx_peek = rx_peek,
	.rx_release = rx_release,
	.rx_into = rx_into,
	.tx = tx,
	.tx_reap = tx_reap,
	.tx_cancel = tx_cancel,
};
