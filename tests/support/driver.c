/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/driver.h"

#include <endian.h>
#include <errno.h>
#include <linux/virtio_config.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/driver_packed.h"
#include "support/wait.h"

/* ---- life ---- */

uint64_t driver_desc_len(uint32_t size)
{
	return (uint64_t)size * sizeof(struct vring_desc);
}

uint64_t driver_avail_len(uint32_t size)
{
	return 6 + 2 * (uint64_t)size;
}

uint64_t driver_used_len(uint32_t size)
{
	return 6 + 8 * (uint64_t)size;
}

static uint16_t mask_for(uint32_t size)
{
	uint32_t n = 1;

	while (n < size)
		n *= 2;
	return (uint16_t)(n - 1);
}

static void reset_lists(struct driver_ring *r)
{
	/* An odd stride scatters the descriptors of a chain over the table. */
	uint32_t stride = r->size > 4 && r->mask == r->size - 1 ? 5 : 1;

	r->next_free = calloc(r->size, sizeof(*r->next_free));
	r->heads = calloc(r->mask + 1u, sizeof(*r->heads));
	r->chains = calloc(r->size, sizeof(*r->chains));
	expect(r->next_free && r->heads && r->chains);
	for (uint32_t i = 0; i < r->size; i++)
		r->next_free[i] = (uint16_t)((i + stride) % r->size);
	r->first_free = 0;
	r->n_free = r->size;
}

static int make_eventfd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	expect_ge(fd, 0);
	return fd;
}

void driver_init_at(struct driver_ring *r, struct guest *g, unsigned index, uint32_t size,
		    uint16_t base, uint64_t features, uint64_t desc, uint64_t avail, uint64_t used)
{
	*r = (struct driver_ring){
		.guest = g,
		.index = index,
		.size = size,
		.mask = mask_for(size),
		.is_packed = features & (1ULL << VIRTIO_F_RING_PACKED),
		.has_event_idx = features & (1ULL << VIRTIO_RING_F_EVENT_IDX),
		.desc_gpa = desc,
		.avail_gpa = avail,
		.used_gpa = used,
		.desc = guest_at(g, desc),
		.avail = guest_at(g, avail),
		.used = guest_at(g, used),
		.avail_idx = base,
		.published_idx = base,
		.last_used = base,
	};
	reset_lists(r);
	if (r->is_packed) {
		driver_packed_reset(r, base);
	} else {
		r->avail->idx = htole16(base);
		r->used->idx = htole16(base);
		driver_set_used_event(r, base);
	}
	r->first_base = driver_base(r);
	r->kick_fd = make_eventfd();
	r->call_fd = make_eventfd();
	r->err_fd = make_eventfd();
}

void driver_init(struct driver_ring *r, struct guest *g, unsigned index, uint32_t size,
		 uint16_t base, uint64_t features)
{
	uint64_t desc = guest_alloc(g, driver_desc_len(size), 16);
	uint64_t avail = guest_alloc(g, driver_avail_len(size), 4);
	uint64_t used = guest_alloc(g, driver_used_len(size), 4);

	driver_init_at(r, g, index, size, base, features, desc, avail, used);
}

void driver_fini(struct driver_ring *r)
{
	if (!r->chains)
		return;
	for (uint32_t i = 0; i < r->size; i++)
		free(r->chains[i].segs);
	free(r->chains);
	free(r->heads);
	free(r->next_free);
	close(r->kick_fd);
	close(r->call_fd);
	close(r->err_fd);
	*r = (struct driver_ring){0};
}

/* ---- telling the backend ---- */

void driver_send_num(const struct driver_ring *r, struct frontend *f)
{
	frontend_set_vring_num(f, r->index, r->size);
}

void driver_send_addr(const struct driver_ring *r, struct frontend *f)
{
	struct vhost_user_vring_addr addr = {
		.index = r->index,
		.desc_uva = guest_uva(r->guest, r->desc_gpa),
		.avail_uva = guest_uva(r->guest, r->avail_gpa),
		.used_uva = guest_uva(r->guest, r->used_gpa),
	};

	frontend_set_vring_addr(f, &addr);
}

void driver_send_base(const struct driver_ring *r, struct frontend *f)
{
	frontend_set_vring_base(f, r->index, driver_base(r));
}

uint32_t driver_base(const struct driver_ring *r)
{
	return r->is_packed ? driver_packed_base(r) : le16toh(r->used->idx);
}

void driver_send_call(const struct driver_ring *r, struct frontend *f)
{
	frontend_set_vring_fd(f, VHOST_USER_SET_VRING_CALL, r->index, r->call_fd);
}

void driver_send_kick(const struct driver_ring *r, struct frontend *f)
{
	frontend_set_vring_fd(f, VHOST_USER_SET_VRING_KICK, r->index, r->kick_fd);
}

void driver_send_setup(const struct driver_ring *r, struct frontend *f)
{
	driver_send_num(r, f);
	driver_send_base(r, f);
	driver_send_addr(r, f);
	driver_send_call(r, f);
	frontend_set_vring_fd(f, VHOST_USER_SET_VRING_ERR, r->index, r->err_fd);
	driver_send_kick(r, f);
}

/* ---- chains ---- */

static uint16_t take_desc(struct driver_ring *r)
{
	uint16_t i = r->first_free;

	expect_msg(r->n_free > 0, "ring %u: no free descriptor", r->index);
	r->first_free = r->next_free[i];
	r->n_free--;
	return i;
}

static void remember(struct driver_ring *r, uint16_t head, const struct driver_seg *segs,
		     unsigned n, uint16_t n_descs, uint64_t cookie)
{
	struct driver_chain *c = &r->chains[head];

	expect(!c->is_out);
	if (n > c->room) {
		free(c->segs);
		c->segs = malloc(n * sizeof(*segs));
		expect(c->segs);
		c->room = n;
	}
	memcpy(c->segs, segs, n * sizeof(*segs));
	c->n_segs = n;
	c->n_descs = n_descs;
	c->cookie = cookie;
	c->is_out = true;
}

static struct vring_desc desc_of(const struct driver_seg *seg)
{
	return (struct vring_desc){
		.addr = htole64(seg->gpa),
		.len = htole32(seg->len),
		.flags = htole16(seg->is_writable ? VRING_DESC_F_WRITE : 0),
	};
}

uint16_t driver_add_descs(struct driver_ring *r, const struct vring_desc *descs, unsigned n)
{
	uint16_t id;

	expect(r->is_packed);
	id = driver_packed_add(r, descs, n);
	r->chains[id].n_segs = 0;
	r->chains[id].is_out = true;
	return id;
}

void driver_add_raw(struct driver_ring *r, uint16_t head)
{
	uint16_t slot = r->avail_idx & r->mask;

	expect(!r->is_packed);
	r->heads[slot] = head;
	__atomic_store_n(&r->avail->ring[slot], htole16(head), __ATOMIC_RELAXED);
	r->avail_idx++;
}

static uint16_t add_packed(struct driver_ring *r, const struct driver_seg *segs, unsigned n)
{
	struct vring_desc *descs = calloc(n, sizeof(*descs));
	uint16_t id;

	expect(descs);
	for (unsigned i = 0; i < n; i++) {
		descs[i] = desc_of(&segs[i]);
		if (i + 1 < n)
			descs[i].flags |= htole16(VRING_DESC_F_NEXT);
	}
	id = driver_packed_add(r, descs, n);
	free(descs);
	return id;
}

static uint16_t add_split(struct driver_ring *r, const struct driver_seg *segs, unsigned n)
{
	uint16_t head = 0, last = 0;

	for (unsigned i = 0; i < n; i++) {
		uint16_t at = take_desc(r);

		r->desc[at] = desc_of(&segs[i]);
		if (i == 0) {
			head = at;
		} else {
			r->desc[last].flags |= htole16(VRING_DESC_F_NEXT);
			r->desc[last].next = htole16(at);
		}
		last = at;
	}
	driver_add_raw(r, head);
	return head;
}

uint16_t driver_add(struct driver_ring *r, const struct driver_seg *segs, unsigned n,
		    uint64_t cookie)
{
	uint16_t head;

	expect_gt(n, 0);
	head = r->is_packed ? add_packed(r, segs, n) : add_split(r, segs, n);
	remember(r, head, segs, n, (uint16_t)n, cookie);
	return head;
}

/* Write an indirect table; a packed ring's has no links. */
static void write_table(const struct driver_ring *r, const struct driver_seg *segs, unsigned n,
			char *table)
{
	for (unsigned i = 0; i < n; i++) {
		struct vring_desc d = desc_of(&segs[i]);

		if (r->is_packed) {
			struct vring_packed_desc p = {d.addr, d.len, htole16(0xffff), d.flags};

			memcpy(table + i * sizeof(p), &p, sizeof(p));
			continue;
		}
		if (i + 1 < n) {
			d.flags |= htole16(VRING_DESC_F_NEXT);
			d.next = htole16((uint16_t)(i + 1));
		}
		memcpy(table + i * sizeof(d), &d, sizeof(d));
	}
}

uint16_t driver_add_indirect(struct driver_ring *r, const struct driver_seg *segs, unsigned n,
			     uint64_t cookie, uint64_t table_gpa)
{
	const struct vring_desc indirect = {
		.addr = htole64(table_gpa),
		.len = htole32(n * (uint32_t)sizeof(struct vring_desc)),
		.flags = htole16(VRING_DESC_F_INDIRECT),
	};
	uint16_t head;

	write_table(r, segs, n, guest_at(r->guest, table_gpa));
	if (r->is_packed) {
		head = driver_packed_add(r, &indirect, 1);
	} else {
		head = take_desc(r);
		r->desc[head] = indirect;
		driver_add_raw(r, head);
	}
	remember(r, head, segs, n, 1, cookie);
	return head;
}

void driver_ruin(struct driver_ring *r)
{
	if (r->is_packed) {
		driver_packed_ruin(r);
		return;
	}
	driver_add_raw(r, 65535);
	driver_publish(r);
}

void driver_mend(struct driver_ring *r)
{
	if (r->is_packed) {
		driver_packed_mend(r);
		return;
	}
	r->avail_idx--;
	driver_publish(r);
}

static uint16_t avail_event(const struct driver_ring *r)
{
	const void *at = &r->used->ring[r->size];

	return le16toh(__atomic_load_n((const uint16_t *)at, __ATOMIC_RELAXED));
}

/* Return: whether the device of a split ring asks for a kick for what comes behind `old`. */
static bool wants_kick(const struct driver_ring *r, uint16_t old, uint16_t new)
{
	if (r->has_event_idx)
		return vring_need_event(avail_event(r), new, old);
	return !(le16toh(__atomic_load_n(&r->used->flags, __ATOMIC_RELAXED)) &
		 VRING_USED_F_NO_NOTIFY);
}

bool driver_kick_is_wanted(const struct driver_ring *r)
{
	if (r->is_packed)
		return driver_packed_wants_kick(r);
	return wants_kick(r, r->published_idx, (uint16_t)(r->published_idx + 1));
}

bool driver_publish(struct driver_ring *r)
{
	uint16_t old = r->published_idx;

	if (r->is_packed)
		return driver_packed_publish(r);
	__atomic_store_n(&r->avail->idx, htole16(r->avail_idx), __ATOMIC_RELEASE);
	r->published_idx = r->avail_idx;
	/* The index before the look at what the device asks for: its partner does the reverse. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return wants_kick(r, old, r->avail_idx);
}

void driver_kick_always(struct driver_ring *r)
{
	const uint64_t one = 1;

	expect_eq(write(r->kick_fd, &one, sizeof(one)), sizeof(one));
	r->n_kicks++;
}

bool driver_kick(struct driver_ring *r)
{
	bool is_wanted = driver_publish(r);

	if (is_wanted)
		driver_kick_always(r);
	return is_wanted;
}

/* ---- coming back ---- */

uint16_t driver_n_used(const struct driver_ring *r)
{
	if (r->is_packed)
		return driver_packed_n_used(r);

	uint16_t idx = le16toh(__atomic_load_n(&r->used->idx, __ATOMIC_ACQUIRE));

	return (uint16_t)(idx - r->last_used);
}

static void release_descs(struct driver_ring *r, uint16_t head)
{
	uint16_t at = head;

	/* The chain's own links are still in the table; a test that rewrites them is on its own. */
	for (uint16_t i = 0; i < r->chains[head].n_descs; i++) {
		r->next_free[at] = r->first_free;
		r->first_free = at;
		r->n_free++;
		at = le16toh(r->desc[at].next) & r->mask;
	}
}

static bool take_split(struct driver_ring *r, struct driver_used *u)
{
	uint16_t slot = r->last_used & r->mask;
	uint16_t n = driver_n_used(r);
	uint32_t id;

	if (n == 0)
		return false;
	expect_msg(n <= (uint16_t)(r->published_idx - r->last_used),
		   "ring %u: %u used elements for %u offered chains", r->index, n,
		   (uint16_t)(r->published_idx - r->last_used));
	id = le32toh(__atomic_load_n(&r->used->ring[slot].id, __ATOMIC_RELAXED));
	expect_lt(id, r->size);
	if (!r->is_order_free)
		expect_msg(id == r->heads[slot], "ring %u: position %u: head %u, expected %u",
			   r->index, r->last_used, id, r->heads[slot]);
	u->head = (uint16_t)id;
	u->len = le32toh(__atomic_load_n(&r->used->ring[slot].len, __ATOMIC_RELAXED));
	u->chain = &r->chains[id];
	r->last_used++;
	if (u->chain->is_out)
		release_descs(r, u->head);
	return true;
}

bool driver_take(struct driver_ring *r, struct driver_used *u)
{
	if (!(r->is_packed ? driver_packed_take(r, u) : take_split(r, u)))
		return false;
	r->chains[u->head].is_out = false;
	return true;
}

void driver_wait_n(struct driver_ring *r, uint16_t n, unsigned ms)
{
	wait_until(driver_n_used(r) >= n, ms);
}

void driver_wait(struct driver_ring *r, struct driver_used *u, unsigned ms)
{
	driver_wait_n(r, 1, ms);
	expect(driver_take(r, u));
}

uint32_t driver_read(const struct driver_ring *r, const struct driver_used *u, void *dst,
		     uint32_t cap)
{
	uint32_t left = u->len < cap ? u->len : cap;
	uint32_t done = 0;

	for (unsigned i = 0; i < u->chain->n_segs && left > 0; i++) {
		const struct driver_seg *seg = &u->chain->segs[i];
		uint32_t n = seg->len < left ? seg->len : left;

		if (!seg->is_writable)
			continue;
		memcpy((char *)dst + done, guest_at(r->guest, seg->gpa), n);
		done += n;
		left -= n;
	}
	return done;
}

/* ---- interrupts ---- */

static uint16_t *used_event(struct driver_ring *r)
{
	return &r->avail->ring[r->size];
}

void driver_set_used_event(struct driver_ring *r, uint16_t idx)
{
	if (r->is_packed) {
		driver_packed_set_used_event(r, idx);
		return;
	}
	__atomic_store_n(used_event(r), htole16(idx), __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void driver_calls_off(struct driver_ring *r)
{
	if (r->is_packed)
		driver_packed_set_calls(r, false);
	else if (r->has_event_idx)
		driver_set_used_event(r, (uint16_t)(r->last_used - 1));
	else
		__atomic_store_n(&r->avail->flags, htole16(VRING_AVAIL_F_NO_INTERRUPT),
				 __ATOMIC_RELAXED);
}

bool driver_calls_on(struct driver_ring *r)
{
	if (r->is_packed)
		driver_packed_set_calls(r, true);
	else if (r->has_event_idx)
		driver_set_used_event(r, r->last_used);
	else
		__atomic_store_n(&r->avail->flags, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return driver_n_used(r) > 0;
}

static uint64_t take_count(int fd)
{
	uint64_t n = 0;
	ssize_t len = read(fd, &n, sizeof(n));

	expect(len == sizeof(n) || (len < 0 && errno == EAGAIN));
	return len < 0 ? 0 : n;
}

uint64_t driver_take_calls(struct driver_ring *r)
{
	return take_count(r->call_fd);
}

bool driver_wait_call(struct driver_ring *r, unsigned ms)
{
	return wait_readable(r->call_fd, ms) && driver_take_calls(r) > 0;
}

uint64_t driver_take_errs(struct driver_ring *r)
{
	return take_count(r->err_fd);
}
