/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/xdp_dispatch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "base/log.h"
#include "bpf/bpf_shared.h"

#define MAX_MAPS 8 /* of a program of ours */

/* ---- who lives ---- */

/* Return: a socket of that owner's name; -EADDRINUSE when somebody has it; another negative errno. */
static int open_claim(uint64_t owner)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int n = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "vhost-user-xdp.%016" PRIx64,
			 owner);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&addr, len) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static void give_up_claim(struct xdp_dispatch *d)
{
	if (d->claim_fd >= 0)
		close(d->claim_fd);
	d->claim_fd = -1;
}

int xdp_dispatch_claim(struct xdp_dispatch *d)
{
	d->claim_fd = -1;
	if (getrandom(&d->owner, sizeof(d->owner), 0) != sizeof(d->owner))
		return -EIO;
	d->claim_fd = open_claim(d->owner);
	return d->claim_fd < 0 ? d->claim_fd : 0;
}

/* Return: whether nobody has that owner's name, for sure. */
static bool is_dead(uint64_t owner)
{
	int fd = open_claim(owner);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* ---- what a killed process has left ---- */

/* Return: the owner in a map, if it is the settings of one of our programs; 0: it is not. */
static uint64_t owner_in_map(int fd)
{
	struct bpf_map_info info = {0};
	struct steer_config config = {0};
	uint32_t len = sizeof(info), zero = 0;

	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || !strstr(info.name, ".rodata") ||
	    info.value_size != sizeof(config) || bpf_map_lookup_elem(fd, &zero, &config) < 0)
		return 0;
	return config.owner;
}

/* Return: the owner in a program of ours; 0: there is none. */
static uint64_t owner_of(int prog_fd)
{
	uint32_t ids[MAX_MAPS];
	struct bpf_prog_info info = {.nr_map_ids = MAX_MAPS, .map_ids = (uintptr_t)ids};
	uint32_t len = sizeof(info);
	uint64_t owner = 0;

	if (bpf_obj_get_info_by_fd(prog_fd, &info, &len) < 0)
		return 0;
	for (uint32_t i = 0; i < info.nr_map_ids && i < MAX_MAPS && owner == 0; i++) {
		int fd = bpf_map_get_fd_by_id(ids[i]);

		if (fd < 0)
			continue;
		owner = owner_in_map(fd);
		close(fd);
	}
	return owner;
}

static bool is_orphan(const struct xdp_program *program, const char *name)
{
	uint64_t owner;

	if (strcmp(xdp_program__name(program), name) != 0)
		return false;
	owner = owner_of(xdp_program__fd(program));
	return owner != 0 && is_dead(owner);
}

/* Return: whether one was found and taken off. */
static bool drop_one_orphan(const struct xdp_dispatch *d, const char *name)
{
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex(d->ifindex);
	struct xdp_program *program = NULL;
	bool is_dropped = false;

	if (libxdp_get_error(mp))
		return false;
	if (!xdp_multiprog__is_legacy(mp)) {
		while ((program = xdp_multiprog__next_prog(program, mp)) != NULL)
			if (is_orphan(program, name))
				break;
	}
	if (program)
		is_dropped = xdp_program__detach(program, d->ifindex,
						 xdp_multiprog__attach_mode(mp), 0) == 0;
	xdp_multiprog__close(mp);
	return is_dropped;
}

/* ---- joining and leaving ---- */

static enum xdp_attach_mode mode_of(const struct xdp_dispatch *d)
{
	return d->is_native ? XDP_MODE_NATIVE : XDP_MODE_SKB;
}

/* Where the dispatcher cannot be loaded libxdp attaches the program alone, for good: not asked for. */
static bool is_alone(int ifindex)
{
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex(ifindex);
	bool is_legacy = libxdp_get_error(mp) != 0 || xdp_multiprog__is_legacy(mp);

	if (libxdp_get_error(mp) == 0)
		xdp_multiprog__close(mp);
	return is_legacy;
}

/* libxdp loads the program as a part of its own. */
static int attach(struct xdp_dispatch *d, struct bpf_object *obj, const char *name)
{
	LIBBPF_OPTS(xdp_program_opts, opts, .obj = obj, .prog_name = name);
	struct xdp_program *program = xdp_program__create(&opts);
	int err = (int)libxdp_get_error(program);

	if (err)
		return err;
	err = xdp_program__attach(program, d->ifindex, mode_of(d), 0);
	if (err) {
		xdp_program__close(program);
		return err;
	}
	d->program = program;
	return is_alone(d->ifindex) ? -ENOSYS : 0;
}

int xdp_dispatch_join(struct xdp_dispatch *d, struct bpf_object *obj, const char *name)
{
	int err;

	while (drop_one_orphan(d, name))
		log_info("xdp %s: took off the XDP program of a daemon that was killed", d->ifname);
	err = attach(d, obj, name);
	if (err)
		xdp_dispatch_leave(d);
	return err;
}

void xdp_dispatch_leave(struct xdp_dispatch *d)
{
	if (d->program) {
		int err = xdp_program__detach(d->program, d->ifindex, mode_of(d), 0);

		/* It may have gone with its interface. */
		if (err && err != -ENODEV && err != -ENOENT)
			log_warn(err,
				 "xdp %s: cannot take off the XDP program: the next daemon will",
				 d->ifname);
		xdp_program__close(d->program);
	}
	d->program = NULL;
	give_up_claim(d);
}
