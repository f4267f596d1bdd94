/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/xdp_sock.h"

#include <endian.h>
#include <errno.h>
#include <linux/if_xdp.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/lines.h"
#include "base/log.h"
#include "port/csum.h"

/* Newer than the oldest headers that we build with: Linux 6.6. */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif

/* Linux 6.18. */
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

/* The kernel leaves so much room in front of what it receives. */
#define RX_HEADROOM 256
/* A frame takes at most as many frames of the umem as a socket buffer has fragments. */
#define MAX_DESCS 16

/* In copy mode a system call sends at least so many frames; we ask for a burst. */
#define MIN_BUDGET 32
#define TX_BUDGET  PORT_MAX_BATCH

/* Frames of the guest are fetched so many before their turn to be copied. */
#define PREFETCH_AHEAD 4

#define MIN_RETRY_US 20
#define MAX_RETRY_US 1000

/* A socket that a killed daemon had open is gone a moment after it. */
#define EBUSY_PAUSE_NS 20000000
#define EBUSY_RETRIES  50

_Static_assert(sizeof(struct virtio_net_hdr_v1) == FRAME_HDR_LEN, "the ports' header");

/* ---- open, close ---- */

static uint32_t ring_size(uint32_t n)
{
	uint32_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

static void close_rings(struct xdp_sock *s)
{
	if (s->xsk)
		xsk_socket__delete(s->xsk);
	if (s->xsk_umem)
		xsk_umem__delete(s->xsk_umem);
	s->xsk = NULL;
	s->xsk_umem = NULL;
}

/* Register the memory and bind the socket, in one way. Return: 0 or a negative errno. */
static int try_bind(struct xdp_sock *s, const struct xdp_sock_config *cfg, uint16_t flags)
{
	const uint32_t size = ring_size(s->umem.n_frames / 2);
	const struct xsk_umem_config umem_cfg = {
		.fill_size = size,
		.comp_size = size,
		.frame_size = s->umem.frame_size,
	};
	const struct xsk_socket_config sock_cfg = {
		.rx_size = size,
		.tx_size = size,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = flags | XDP_USE_NEED_WAKEUP,
	};
	int err = xsk_umem__create(&s->xsk_umem, s->umem.area,
				   (uint64_t)s->umem.n_frames * s->umem.frame_size, &s->fill,
				   &s->completion, &umem_cfg);

	if (err == 0)
		err = xsk_socket__create(&s->xsk, cfg->port->ifname, s->queue, s->xsk_umem, &s->rx,
					 &s->tx, &sock_cfg);
	if (err == 0)
		s->is_multi_buffer = flags & XDP_USE_SG;
	else
		close_rings(s);
	return err;
}

static int bind_when_free(struct xdp_sock *s, const struct xdp_sock_config *cfg, uint16_t flags)
{
	const struct timespec pause = {.tv_nsec = EBUSY_PAUSE_NS};
	int err = try_bind(s, cfg, flags);

	for (int i = 0; err == -EBUSY && i < EBUSY_RETRIES; i++) {
		nanosleep(&pause, NULL);
		err = try_bind(s, cfg, flags);
	}
	return err;
}

/*
 * Bind in the best way that there is: without copies if that was not ruled out, and with frames in
 * several pieces where one would not hold the MTU, or where that costs nothing.
 */
static int bind_socket(struct xdp_sock *s, const struct xdp_sock_config *cfg)
{
	const bool is_long = cfg->mtu + LINK_HEADER_LEN > s->umem.frame_size - RX_HEADROOM;
	const bool may_copy = cfg->port->zero_copy != PORT_ZERO_COPY_ON;
	const bool may_not_copy = cfg->port->zero_copy != PORT_ZERO_COPY_OFF && !cfg->is_generic;
	int err = -EOPNOTSUPP;

	if (may_not_copy)
		err = bind_when_free(s, cfg, XDP_ZEROCOPY | (is_long ? XDP_USE_SG : 0));
	if (err && may_copy) {
		err = bind_when_free(s, cfg, XDP_COPY | XDP_USE_SG);
		if (err == -EINVAL || err == -EOPNOTSUPP)
			err = bind_when_free(s, cfg, XDP_COPY);
	}
	return err;
}

static void query_zero_copy(struct xdp_sock *s)
{
	struct xdp_options options = {0};
	socklen_t len = sizeof(options);

	if (getsockopt(s->fd, SOL_XDP, XDP_OPTIONS, &options, &len) == 0)
		s->is_zero_copy = options.flags & XDP_OPTIONS_ZEROCOPY;
}

/* An older kernel refuses, and has a budget of MIN_BUDGET. */
static void ask_for_budget(const struct xdp_sock *s)
{
	int budget = (int)min_of(ring_size(s->umem.n_frames / 2), TX_BUDGET + 0u);

	setsockopt(s->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));
}

/* Give the kernel every frame that there is for receive. */
static void refill(struct xdp_sock *s)
{
	uint32_t n = s->umem.n_free_rx, idx = 0;

	if (n == 0 || xsk_ring_prod__reserve(&s->fill, n, &idx) != n)
		return;
	for (uint32_t i = 0; i < n; i++)
		*xsk_ring_prod__fill_addr(&s->fill, idx + i) = umem_take_rx(&s->umem);
	xsk_ring_prod__submit(&s->fill, n);
}

static const char *remedy(int err, const struct xdp_sock_config *cfg)
{
	switch (-err) {
	case EPERM:
		return ": needs CAP_NET_RAW and CAP_NET_ADMIN (or root)";
	case ENOBUFS:
	case ENOMEM:
		return ": its memory cannot be locked: needs CAP_IPC_LOCK or a larger limit "
		       "(ulimit -l), or fewer port.frames";
	case EBUSY:
		return ": another process has it: end that, or use other port.queues";
	case EOPNOTSUPP:
		return cfg->port->zero_copy == PORT_ZERO_COPY_ON
			       ? ": no zero copy here: set port.zero-copy = \"auto\""
			       : "";
	default:
		return "";
	}
}

int xdp_sock_check(const char *ifname)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	if (err == -EAFNOSUPPORT)
		log_errx("xdp %s: the kernel has no AF_XDP: use one with CONFIG_XDP_SOCKETS, or "
			 "port tap",
			 ifname);
	else if (err)
		log_err(err, "xdp %s: cannot have an AF_XDP socket: needs CAP_NET_RAW (or root)",
			ifname);
	return err;
}

int xdp_sock_open(struct xdp_sock *s, unsigned queue, const struct xdp_sock_config *cfg)
{
	int err = umem_init(&s->umem, cfg->port->frames, cfg->port->frame_size);

	s->queue = queue;
	s->n_tx_descs = lines_alloc(cfg->port->frames, sizeof(*s->n_tx_descs));
	if (!s->n_tx_descs)
		err = -ENOMEM;
	if (err == 0)
		err = bind_socket(s, cfg);
	if (err == 0) {
		s->fd = xsk_socket__fd(s->xsk);
		query_zero_copy(s);
		ask_for_budget(s);
		refill(s);
		err = xsk_socket__update_xskmap(s->xsk, cfg->map_fd);
	}
	if (err) {
		log_err(err, "xdp %s: cannot have an AF_XDP socket on queue %u%s",
			cfg->port->ifname, queue, remedy(err, cfg));
		xdp_sock_close(s);
	}
	return err;
}

unsigned xdp_sock_close(struct xdp_sock *s)
{
	unsigned n = s->tx_tail - s->tx_head;

	close_rings(s);
	umem_fini(&s->umem);
	free(s->n_tx_descs);
	*s = (struct xdp_sock){0};
	return n;
}

/* ---- what the control thread asks and says ---- */

bool xdp_sock_is_bound(const struct xdp_sock *s)
{
	/* A call that does nothing, or has the device look for frames. */
	return recvfrom(s->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL) >= 0 || errno != ENXIO;
}

uint32_t xdp_sock_max_received(const struct xdp_sock *s)
{
	uint32_t room = s->umem.frame_size - RX_HEADROOM;

	return s->is_multi_buffer ? MAX_DESCS * room : room;
}

void xdp_sock_set_down(struct xdp_sock *s, bool is_down)
{
	s->is_down = is_down;
	/* What has waited goes on at once. */
	s->retry_us = is_down ? 0 : 1;
}

void xdp_sock_memory(const struct xdp_sock *s, struct port_memory *m)
{
	uint32_t rx = __atomic_load_n(s->rx.producer, __ATOMIC_ACQUIRE) - *s->rx.consumer;
	uint32_t done =
		__atomic_load_n(s->completion.producer, __ATOMIC_ACQUIRE) - *s->completion.consumer;

	*m = (struct port_memory){
		.total = s->umem.n_frames,
		.free = s->umem.n_free_rx + s->umem.n_free_tx,
		.fill = s->umem.n_filled - rx,
		.rx = rx,
		.tx = s->umem.n_sending - done,
		.completion = done,
	};
}

unsigned xdp_sock_n_waiting(struct xdp_sock *s)
{
	const uint32_t end = __atomic_load_n(s->rx.producer, __ATOMIC_ACQUIRE);
	unsigned n = 0;

	for (uint32_t i = *s->rx.consumer; i != end; i++)
		n += !(xsk_ring_cons__rx_desc(&s->rx, i)->options & XDP_PKT_CONTD);
	return n;
}

void xdp_sock_read_stats(struct xdp_sock *s, struct queue_stats *stats)
{
	struct xdp_statistics now = {0};
	socklen_t len = sizeof(now);

	if (getsockopt(s->fd, SOL_XDP, XDP_STATISTICS, &now, &len) < 0)
		return;
	stat_add(stats, STAT_xdp_fill_empty,
		 now.rx_fill_ring_empty_descs - s->seen.rx_fill_ring_empty_descs);
	stat_add(stats, STAT_xdp_rx_ring_full, now.rx_ring_full - s->seen.rx_ring_full);
	stat_add(stats, STAT_xdp_rx_invalid, now.rx_invalid_descs - s->seen.rx_invalid_descs);
	stat_add(stats, STAT_xdp_rx_dropped, now.rx_dropped - s->seen.rx_dropped);
	stat_add(stats, STAT_xdp_tx_invalid, now.tx_invalid_descs - s->seen.tx_invalid_descs);
	s->seen = now;
}

/* ---- receive ---- */

/* Tell the guest of a checksum that the sender has left to its network card, or finish it. */
static void settle_checksum(const struct frame *f, bool wants_csum)
{
	const struct iovec *first = &f->iov[1];
	struct csum_place place;

	if (likely(!csum_is_unfinished(first->iov_base, (uint32_t)first->iov_len, f->len, &place)))
		return;
	if (!wants_csum) {
		csum_finish(first, place);
		return;
	}

	struct virtio_net_hdr_v1 h = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_start = htole16(place.start),
		.csum_offset = htole16(place.offset),
	};

	memcpy(f->iov[0].iov_base, &h, sizeof(h));
}

/*
 * Make a frame of the descriptors from `idx` on, of which there are `n_descs`.
 * @iov: its segments; there is room for `n_iov`
 * Return: how many it takes; 0: its end is not there yet, or there is no room.
 */
static unsigned make_frame(struct xdp_sock *s, struct frame *f, uint32_t idx, unsigned n_descs,
			   struct iovec *iov, unsigned n_iov)
{
	*f = (struct frame){.iov = iov};
	for (unsigned i = 0; i < n_descs && i + 1 < n_iov; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&s->rx, idx + i);

		iov[i + 1] = (struct iovec){umem_at(&s->umem, d->addr), d->len};
		f->len += d->len;
		if (likely(!(d->options & XDP_PKT_CONTD))) {
			f->n_iov = i + 2;
			return i + 1;
		}
	}
	return 0;
}

/* A driver without memory to fill waits until it is told that there is some again. With busy polling
 * the call has the device look for frames, whatever the flag says. */
static void wake_receive(struct xdp_sock *s)
{
	if (unlikely(s->polls_device || (s->is_zero_copy && xsk_ring_prod__needs_wakeup(&s->fill))))
		recvfrom(s->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

unsigned xdp_sock_rx_peek(struct xdp_sock *s, struct frame *frames, unsigned max, bool wants_csum)
{
	unsigned n_iov = 0, n = 0, n_taken = 0;
	uint32_t idx = 0;

	s->n_rx_peeked = xsk_ring_cons__peek(&s->rx, XDP_SOCK_SEGMENTS / 2, &idx);
	if (s->n_rx_peeked == 0) {
		wake_receive(s);
		s->n_rx_peeked = xsk_ring_cons__peek(&s->rx, XDP_SOCK_SEGMENTS / 2, &idx);
	}
	if (s->n_rx_peeked == 0)
		return 0;
	for (unsigned i = 0; i < min_of(max, s->n_rx_peeked); i++)
		__builtin_prefetch(
			umem_at(&s->umem, xsk_ring_cons__rx_desc(&s->rx, idx + i)->addr));
	for (; n < max && n_taken < s->n_rx_peeked; n++) {
		struct frame *f = &frames[n];
		unsigned n_descs = make_frame(s, f, idx + n_taken, s->n_rx_peeked - n_taken,
					      &s->rx_iov[n_iov], XDP_SOCK_SEGMENTS - n_iov);

		if (n_descs == 0)
			break;
		memset(s->headers[n], 0, FRAME_HDR_LEN);
		f->iov[0] = (struct iovec){s->headers[n], FRAME_HDR_LEN};
		settle_checksum(f, wants_csum);
		s->n_rx_descs[n] = n_descs;
		n_taken += n_descs;
		n_iov += f->n_iov;
	}
	if (unlikely(n == 0)) {
		xsk_ring_cons__cancel(&s->rx, s->n_rx_peeked);
		s->n_rx_peeked = 0;
	}
	return n;
}

void xdp_sock_rx_release(struct xdp_sock *s, unsigned n)
{
	const uint32_t first = s->rx.cached_cons - s->n_rx_peeked;
	unsigned n_descs = 0;

	for (unsigned i = 0; i < n; i++)
		n_descs += s->n_rx_descs[i];
	for (unsigned i = 0; i < n_descs; i++)
		umem_give_rx(&s->umem, xsk_ring_cons__rx_desc(&s->rx, first + i)->addr);
	/* What was only looked at stays in the ring. */
	xsk_ring_cons__cancel(&s->rx, s->n_rx_peeked - n_descs);
	xsk_ring_cons__release(&s->rx, n_descs);
	s->n_rx_peeked = 0;
	refill(s);
}

/* ---- transmit ---- */

static uint32_t n_in_tx_ring(const struct xdp_sock *s)
{
	return *s->tx.producer - __atomic_load_n(s->tx.consumer, __ATOMIC_ACQUIRE);
}

/* Take back the memory of what has been sent. */
static void collect_completions(struct xdp_sock *s)
{
	uint32_t idx = 0, n = xsk_ring_cons__peek(&s->completion, s->umem.n_frames, &idx);

	for (uint32_t i = 0; i < n; i++)
		umem_give_tx(&s->umem, *xsk_ring_cons__comp_addr(&s->completion, idx + i));
	xsk_ring_cons__release(&s->completion, n);
	if (s->is_zero_copy)
		s->n_sent_descs += n;
}

/*
 * Have the kernel send what is in the TX ring. In copy mode a call ends after some frames, or when
 * the device is busy, and says the same in both cases: a bounded number of calls tells them apart.
 */
static void push(struct xdp_sock *s)
{
	uint32_t left = n_in_tx_ring(s);
	uint32_t n_calls = s->is_zero_copy ? 1 : left / MIN_BUDGET + 2;

	for (; left > 0 && n_calls > 0 && !s->is_down; n_calls--) {
		if (!xsk_ring_prod__needs_wakeup(&s->tx))
			return;
		if (sendto(s->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0) {
			/* The kernel has dropped a frame that the device refused. */
			s->n_lost += errno == EBUSY;
			if (errno != EAGAIN && errno != EBUSY)
				return;
		}
		left = n_in_tx_ring(s);
	}
}

/* When to look again, if the guest's frames wait, or any of ours is still to be sent. */
static void plan_retry(struct xdp_sock *s, bool was_progress)
{
	bool is_pending = s->is_zero_copy ? s->umem.n_sending > 0 : n_in_tx_ring(s) > 0;

	if ((!is_pending && !s->is_full) || s->is_down)
		s->retry_us = 0;
	else if (was_progress || s->retry_us == 0)
		s->retry_us = MIN_RETRY_US;
	else
		s->retry_us = min_of(2 * s->retry_us, (uint32_t)MAX_RETRY_US);
}

/* Count what the kernel has done since, less what nobody waits for any more. */
static void note_sent(struct xdp_sock *s)
{
	uint32_t consumed = __atomic_load_n(s->tx.consumer, __ATOMIC_ACQUIRE);
	uint32_t n;

	if (!s->is_zero_copy)
		s->n_sent_descs += consumed - s->tx_consumed;
	s->tx_consumed = consumed;
	n = min_of(s->n_disowned_descs, s->n_sent_descs);
	s->n_disowned_descs -= n;
	s->n_sent_descs -= n;
}

static uint8_t *n_descs_of(struct xdp_sock *s, uint32_t i)
{
	return &s->n_tx_descs[i & (s->umem.n_frames - 1)];
}

unsigned xdp_sock_tx_reap(struct xdp_sock *s)
{
	unsigned n = 0;

	if (s->tx_head == s->tx_tail && s->umem.n_sending == 0) {
		s->retry_us = 0;
		return 0;
	}
	if (s->retry_us > 0)
		push(s);
	collect_completions(s);
	note_sent(s);
	for (; s->tx_head != s->tx_tail; s->tx_head++, n++) {
		uint8_t n_descs = *n_descs_of(s, s->tx_head);

		if (s->n_sent_descs < n_descs)
			break;
		s->n_sent_descs -= n_descs;
	}
	plan_retry(s, n > 0);
	return n;
}

unsigned xdp_sock_tx_disown(struct xdp_sock *s)
{
	unsigned n = 0;

	for (; s->tx_head != s->tx_tail; s->tx_head++, n++)
		s->n_disowned_descs += *n_descs_of(s, s->tx_head);
	s->is_full = false;
	return n;
}

/* Copy a frame into memory of ours, one piece after the other. */
static void copy_frame(const struct frame *f, const struct iovec *pieces, unsigned n_pieces)
{
	const struct iovec *src = &f->iov[1];
	size_t at = 0;

	if (likely(f->n_iov == 2 && n_pieces == 1)) {
		memcpy(pieces->iov_base, src->iov_base, f->len);
		return;
	}
	for (unsigned i = 0; i < n_pieces; i++) {
		char *to = pieces[i].iov_base;
		size_t left = pieces[i].iov_len;

		while (left > 0) {
			size_t n = min_of(left, src->iov_len - at);

			memcpy(to, (const char *)src->iov_base + at, n);
			to += n;
			at += n;
			left -= n;
			if (at == src->iov_len) {
				src++;
				at = 0;
			}
		}
	}
}

/* The guest may leave checksums to us; nothing unfinished leaves by this port. */
static void finish_checksum(const struct frame *f, const struct iovec *pieces)
{
	struct virtio_net_hdr_v1 h;

	memcpy(&h, f->iov[0].iov_base, sizeof(h));
	if (!(h.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return;

	struct csum_place place = {
		.start = le16toh(h.csum_start),
		.offset = le16toh(h.csum_offset),
		.len = f->len - le16toh(h.csum_start),
	};

	/* What is no TCP may be UDP, in which a sum of zero means none. */
	place.is_udp = place.offset == 6;
	csum_finish(pieces, place);
}

static void submit_frame(struct xdp_sock *s, const struct frame *f, unsigned n_descs)
{
	struct iovec pieces[MAX_DESCS];
	uint32_t idx = 0, left = f->len;

	xsk_ring_prod__reserve(&s->tx, n_descs, &idx);
	for (unsigned i = 0; i < n_descs; i++) {
		struct xdp_desc *d = xsk_ring_prod__tx_desc(&s->tx, idx + i);

		*d = (struct xdp_desc){
			.addr = umem_take_tx(&s->umem),
			.len = min_of(left, s->umem.frame_size),
			.options = i + 1 < n_descs ? XDP_PKT_CONTD : 0,
		};
		pieces[i] = (struct iovec){umem_at(&s->umem, d->addr), d->len};
		left -= d->len;
	}
	copy_frame(f, pieces, n_descs);
	finish_checksum(f, pieces);
}

/* Return: whether there is room for a frame of `n_descs`. */
static bool has_room(struct xdp_sock *s, uint32_t n_descs)
{
	if (unlikely(s->umem.n_free_tx < n_descs))
		collect_completions(s);
	return s->umem.n_free_tx >= n_descs && s->tx_tail - s->tx_head < s->umem.n_frames;
}

static uint32_t max_sent(const struct xdp_sock *s)
{
	return s->is_multi_buffer ? MAX_DESCS * s->umem.frame_size : s->umem.frame_size;
}

unsigned xdp_sock_tx(struct xdp_sock *s, struct frame *frames, unsigned n, unsigned *n_dropped)
{
	uint32_t n_submitted = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			__builtin_prefetch(frames[i + PREFETCH_AHEAD].iov[1].iov_base);

		uint32_t n_descs = (frames[i].len + s->umem.frame_size - 1) >> s->umem.frame_shift;

		frames[i].is_dropped = frames[i].len > max_sent(s);
		if (unlikely(frames[i].is_dropped))
			n_descs = 0;
		if (!has_room(s, n_descs))
			break;
		if (likely(n_descs > 0))
			submit_frame(s, &frames[i], n_descs);
		*n_dropped += frames[i].is_dropped;
		*n_descs_of(s, s->tx_tail++) = (uint8_t)n_descs;
		n_submitted += n_descs;
	}
	if (n_submitted > 0) {
		xsk_ring_prod__submit(&s->tx, n_submitted);
		push(s);
	}
	s->is_full = i < n;
	plan_retry(s, n_submitted > 0);
	return i;
}
