/* SPDX-License-Identifier: BSD-2-Clause */
#include "vguest/pump.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "support/expect.h"
#include "vguest/guest_tap.h"

/* Frames in each direction in a turn. */
#define BATCH 64
/* A whole frame for sending; a page for receiving, of which a frame takes as many as it needs. */
#define TX_BUF_LEN  (GUEST_TAP_HDR_LEN + NIC_MAX_FRAME)
#define TX_STRIDE   65600u
#define RX_PAGE_LEN 4096u
#define MAX_BUFFERS (TX_BUF_LEN / RX_PAGE_LEN + 1)

_Static_assert(TX_BUF_LEN <= TX_STRIDE, "a buffer holds the largest frame");

static void count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* ---- from the guest ---- */

static unsigned take_back(struct pump *p)
{
	struct driver_used u;
	unsigned n;

	for (n = 0; driver_take(p->tx, &u); n++) {
		expect_eq(u.len, 0);
		p->free_bufs[p->n_free_bufs++] = u.chain->cookie;
	}
	return n;
}

/* Return: whether the tap had a frame. */
static bool send_one(struct pump *p)
{
	uint64_t gpa = p->free_bufs[p->n_free_bufs - 1];
	ssize_t len = read(p->tap_fd, guest_at(&p->nic->guest, gpa), TX_BUF_LEN);
	struct driver_seg seg = {.gpa = gpa, .len = (uint32_t)len};

	expect_msg(len > GUEST_TAP_HDR_LEN || (len < 0 && (errno == EAGAIN || errno == EINTR)),
		   "the guest's tap: %s", len < 0 ? strerror(errno) : "no frame");
	if (len < 0)
		return false;
	p->n_free_bufs--;
	driver_add(p->tx, &seg, 1, gpa);
	/* A device that is awake is given each frame as soon as it is there. */
	driver_kick(p->tx);
	count(&p->counters.tx_packets, 1);
	count(&p->counters.tx_bytes, (uint64_t)len - GUEST_TAP_HDR_LEN);
	return true;
}

static unsigned send_burst(struct pump *p)
{
	unsigned n;

	for (n = 0; n < BATCH && p->n_free_bufs > 0 && send_one(p); n++)
		;
	count(&p->counters.tx_waits, p->n_free_bufs == 0 && !p->was_full);
	p->was_full = p->n_free_bufs == 0;
	return n;
}

/* ---- to the guest ---- */

static void offer(struct pump *p, uint64_t gpa)
{
	struct driver_seg seg = {.gpa = gpa, .len = p->rx_buf_len, .is_writable = true};

	driver_add(p->rx, &seg, 1, gpa);
}

/* Take a buffer of a received frame. @gpa: gets its address, to be offered again */
static struct iovec take_buffer(struct pump *p, uint64_t *gpa)
{
	struct driver_used u;

	expect_msg(driver_take(p->rx, &u), "ring %u: a frame lacks some of its buffers",
		   p->rx->index);
	*gpa = u.chain->cookie;
	return (struct iovec){guest_at(&p->nic->guest, *gpa), u.len};
}

static unsigned n_buffers_of(const struct pump *p, const struct iovec *first)
{
	struct virtio_net_hdr_v1 hdr;
	unsigned n;

	expect_ge(first->iov_len, sizeof(hdr));
	memcpy(&hdr, first->iov_base, sizeof(hdr));
	n = p->nic->features & NIC_BIT(VIRTIO_NET_F_MRG_RXBUF) ? le16toh(hdr.num_buffers) : 1;
	expect_msg(n >= 1 && n <= MAX_BUFFERS, "ring %u: a frame of %u buffers", p->rx->index, n);
	return n;
}

static void receive_one(struct pump *p)
{
	uint64_t gpas[MAX_BUFFERS];
	struct iovec iov[MAX_BUFFERS];
	unsigned n;
	ssize_t len;

	iov[0] = take_buffer(p, &gpas[0]);
	n = n_buffers_of(p, &iov[0]);
	for (unsigned i = 1; i < n; i++)
		iov[i] = take_buffer(p, &gpas[i]);
	len = writev(p->tap_fd, iov, (int)n);
	count(&p->counters.rx_packets, len >= 0);
	count(&p->counters.rx_bytes, len >= 0 ? (uint64_t)len - GUEST_TAP_HDR_LEN : 0);
	count(&p->counters.rx_dropped, len < 0);
	for (unsigned i = 0; i < n; i++)
		offer(p, gpas[i]);
}

static unsigned receive_burst(struct pump *p)
{
	unsigned n;

	for (n = 0; n < BATCH && driver_n_used(p->rx) > 0; n++) {
		receive_one(p);
		if ((uint16_t)(p->rx->avail_idx - p->rx->published_idx) >= p->rx->size / 4)
			driver_kick(p->rx);
	}
	if (n > 0)
		driver_kick(p->rx);
	return n;
}

/* ---- rest ---- */

/* Ask for a call for transmitted frames. Return: whether there is no need to wait for one. */
static bool tx_calls_on(struct pump *p)
{
	uint16_t n = (uint16_t)(p->tx->published_idx - p->tx->last_used) * 3u / 4;

	if (!p->tx->has_event_idx || p->n_free_bufs == 0)
		return driver_calls_on(p->tx);
	driver_set_used_event(p->tx, (uint16_t)(p->tx->last_used + n));
	return driver_n_used(p->tx) > n;
}

static void sleep_until_work(struct pump *p)
{
	struct pollfd fds[] = {
		{.fd = p->stop_fd, .events = POLLIN},
		{.fd = p->rx->call_fd, .events = POLLIN},
		{.fd = p->tx->call_fd, .events = POLLIN},
		{.fd = p->n_free_bufs > 0 ? p->tap_fd : -1, .events = POLLIN},
	};

	count(&p->counters.sleeps, 1);
	expect_msg(poll(fds, sizeof(fds) / sizeof(fds[0]), -1) >= 0 || errno == EINTR, "poll: %s",
		   strerror(errno));
	if (fds[1].revents)
		count(&p->counters.calls, driver_take_calls(p->rx));
	if (fds[2].revents)
		count(&p->counters.calls, driver_take_calls(p->tx));
}

static void rest(struct pump *p)
{
	__atomic_store_n(&p->counters.kicks, p->rx->n_kicks + p->tx->n_kicks, __ATOMIC_RELAXED);
	if (p->is_busy)
		return;
	if (!driver_calls_on(p->rx) && !tx_calls_on(p))
		sleep_until_work(p);
	driver_calls_off(p->rx);
	driver_calls_off(p->tx);
}

static bool turn(struct pump *p)
{
	unsigned n = take_back(p);

	n += send_burst(p);
	n += receive_burst(p);
	return n > 0;
}

static void *pump_main(void *arg)
{
	struct pump *p = arg;

	prctl(PR_SET_NAME, "pump");
	driver_calls_off(p->rx);
	driver_calls_off(p->tx);
	while (!__atomic_load_n(&p->is_stopping, __ATOMIC_RELAXED))
		if (!turn(p))
			rest(p);
	return NULL;
}

/* ---- life ---- */

uint64_t pump_memory(uint32_t size)
{
	return size * 2ULL * TX_STRIDE;
}

void pump_init(struct pump *p, struct nic *nic, unsigned pair, int tap_fd, bool is_busy)
{
	const bool is_merged = nic->features & NIC_BIT(VIRTIO_NET_F_MRG_RXBUF);
	uint32_t size = nic->options.size;

	*p = (struct pump){
		.nic = nic,
		.rx = nic_rx(nic, pair),
		.tx = nic_tx(nic, pair),
		.tap_fd = tap_fd,
		.is_busy = is_busy,
		.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.free_bufs = calloc(size, sizeof(*p->free_bufs)),
		.n_free_bufs = size,
		.rx_buf_len = is_merged ? RX_PAGE_LEN : TX_STRIDE,
	};
	expect(p->stop_fd >= 0 && p->free_bufs);
	for (uint32_t i = 0; i < size; i++)
		p->free_bufs[i] = guest_alloc(&nic->guest, TX_STRIDE, 64);
	for (uint32_t i = 0; i < size; i++)
		offer(p, guest_alloc(&nic->guest, p->rx_buf_len, 64));
	driver_publish(p->rx);
}

void pump_start(struct pump *p)
{
	int err = pthread_create(&p->thread, NULL, pump_main, p);

	expect_msg(err == 0, "a thread: %s", strerror(err));
}

void pump_stop(struct pump *p)
{
	const uint64_t one = 1;

	__atomic_store_n(&p->is_stopping, true, __ATOMIC_RELAXED);
	expect_eq(write(p->stop_fd, &one, sizeof(one)), sizeof(one));
	pthread_join(p->thread, NULL);
	close(p->stop_fd);
	free(p->free_bufs);
}
