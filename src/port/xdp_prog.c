/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/xdp_prog.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "base/log.h"
#include "bpf/bpf_shared.h"
#include "bpf/steer.skel.h"
#include "bpf/steer_vlan.skel.h"

/* Newer than the oldest headers that we build with. */
#define DEV_BOUND_ONLY (1U << 6) /* BPF_F_XDP_DEV_BOUND_ONLY, Linux 6.3 */

/* What a killed process had attached is gone a moment after it. */
#define RETRY_MS    20
#define MAX_RETRIES 50

/* How the names of our programs begin, and that of libxdp's own. */
#define OUR_PREFIX "vux_"
#define DISPATCHER "xdp_dispatcher"
/* The name of any, without CAP_SYS_ADMIN. */
#define UNKNOWN "?"

__attribute__((format(printf, 2, 0))) static void print_debug(const char *who, const char *fmt,
							      va_list args)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, args);
	text[strcspn(text, "\n")] = '\0';
	log_debug("%s: %s", who, text);
}

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level;
	print_debug("libbpf", fmt, args);
	return 0;
}

static int print_libxdp(enum libxdp_print_level level, const char *fmt, va_list args)
{
	(void)level;
	print_debug("libxdp", fmt, args);
	return 0;
}

/* ---- what is there already ---- */

/* Set `is_generic` to where it runs. Return: the id of the program on an interface; 0: none. */
static uint32_t find_program(int ifindex, bool *is_generic)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, opts);

	*is_generic = false;
	if (bpf_xdp_query(ifindex, 0, &opts) < 0)
		return 0;
	*is_generic = opts.attach_mode == XDP_ATTACHED_SKB;
	return opts.prog_id ? opts.prog_id : opts.drv_prog_id ? opts.drv_prog_id : opts.skb_prog_id;
}

uint32_t xdp_prog_find(int ifindex)
{
	bool is_generic;

	return find_program(ifindex, &is_generic);
}

static void name_program(uint32_t id, char *name, size_t size)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id);

	snprintf(name, size, UNKNOWN);
	if (fd < 0)
		return;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) == 0)
		snprintf(name, size, "%s", info.name);
	close(fd);
}

static bool may_be_ours(const char *name)
{
	return strncmp(name, OUR_PREFIX, strlen(OUR_PREFIX)) == 0 || strcmp(name, UNKNOWN) == 0;
}

static void pause_ms(long ms)
{
	struct timespec span = {.tv_nsec = ms * 1000000};

	nanosleep(&span, NULL);
}

/* Wait for what a killed daemon had attached to go away. Return: 0, or -EBUSY after a log line. */
static int wait_until_free(const struct port_config *cfg, int ifindex)
{
	char name[BPF_OBJ_NAME_LEN];
	bool is_generic;
	uint32_t id;

	for (int i = 0; (id = find_program(ifindex, &is_generic)) != 0; i++) {
		name_program(id, name, sizeof(name));
		if (cfg->attach == PORT_ATTACH_DISPATCHER && strcmp(name, DISPATCHER) == 0)
			return 0;
		if (i == MAX_RETRIES || !may_be_ours(name)) {
			log_errx("xdp %s: the interface has the XDP program '%s' (id %u) already: "
				 "end the process that attached it, or take it off (ip link set "
				 "dev %s %s off)",
				 cfg->ifname, name, id, cfg->ifname,
				 is_generic ? "xdpgeneric" : "xdp");
			return -EBUSY;
		}
		pause_ms(RETRY_MS);
	}
	return 0;
}

/* ---- loading ---- */

static struct steer_config config_of(const struct port_config *cfg)
{
	struct steer_config config = {.has_mac = cfg->steer == PORT_STEER_MAC};

	memcpy(config.mac, cfg->mac, sizeof(config.mac));
	return config;
}

static int load_plain(struct xdp_prog *prog, const struct port_config *cfg)
{
	int err;

	prog->plain = steer_bpf__open();
	if (!prog->plain)
		return -errno;
	prog->plain->rodata->config = config_of(cfg);
	err = steer_bpf__load(prog->plain);
	if (err == 0)
		prog->map_fd = bpf_map__fd(prog->plain->maps.sockets);
	return err;
}

static int load_vlan(struct xdp_prog *prog, const struct port_config *cfg, int ifindex)
{
	struct bpf_program *program;
	int err;

	prog->vlan = steer_vlan_bpf__open();
	if (!prog->vlan)
		return -errno;
	prog->vlan->rodata->config = config_of(cfg);
	program = prog->vlan->progs.vux_steer_vlan;
	bpf_program__set_ifindex(program, (uint32_t)ifindex);
	bpf_program__set_flags(program, bpf_program__flags(program) | DEV_BOUND_ONLY);
	err = steer_vlan_bpf__load(prog->vlan);
	if (err == 0)
		prog->map_fd = bpf_map__fd(prog->vlan->maps.sockets);
	return err;
}

static void unload(struct xdp_prog *prog)
{
	steer_bpf__destroy(prog->plain);
	steer_vlan_bpf__destroy(prog->vlan);
	prog->plain = NULL;
	prog->vlan = NULL;
	prog->map_fd = -1;
}

static int program_fd(const struct xdp_prog *prog)
{
	return bpf_program__fd(prog->plain ? prog->plain->progs.vux_steer
					   : prog->vlan->progs.vux_steer_vlan);
}

/* ---- attaching ---- */

static int attach(struct xdp_prog *prog, int ifindex, uint32_t mode)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = mode);

	prog->link_fd = bpf_link_create(program_fd(prog), ifindex, BPF_XDP, &opts);
	prog->is_native = mode == XDP_FLAGS_DRV_MODE;
	return prog->link_fd < 0 ? -errno : 0;
}

/* The program that puts tags back, where driver and kernel can do that. */
static int open_native_vlan(struct xdp_prog *prog, const struct port_config *cfg, int ifindex)
{
	int err = load_vlan(prog, cfg, ifindex);

	if (err == 0)
		err = attach(prog, ifindex, XDP_FLAGS_DRV_MODE);
	if (err)
		unload(prog);
	else
		prog->keeps_vlan = true;
	return err;
}

static int open_plain(struct xdp_prog *prog, const struct port_config *cfg, int ifindex,
		      uint32_t mode)
{
	int err = load_plain(prog, cfg);

	if (err == 0)
		err = attach(prog, ifindex, mode);
	if (err)
		unload(prog);
	return err;
}

/* ---- beside others ---- */

static int open_dispatched(struct xdp_prog *prog, const struct port_config *cfg, int ifindex,
			   bool is_native)
{
	int err;

	prog->is_native = is_native;
	prog->dispatch = (struct xdp_dispatch){
		.ifname = cfg->ifname, .ifindex = ifindex, .is_native = is_native, .claim_fd = -1};
	prog->plain = steer_bpf__open();
	if (!prog->plain)
		return -errno;
	prog->plain->rodata->config = config_of(cfg);
	err = xdp_dispatch_claim(&prog->dispatch);
	if (err == 0) {
		prog->plain->rodata->config.owner = prog->dispatch.owner;
		err = xdp_dispatch_join(&prog->dispatch, prog->plain->obj, "vux_steer");
	}
	if (err)
		unload(prog);
	else
		prog->map_fd = bpf_map__fd(prog->plain->maps.sockets);
	return err;
}

static int open_beside_others(struct xdp_prog *prog, const struct port_config *cfg, int ifindex)
{
	int err = -EOPNOTSUPP;

	if (cfg->mode != PORT_MODE_GENERIC)
		err = open_dispatched(prog, cfg, ifindex, true);
	if (err && err != -EPERM && err != -ENOSYS && cfg->mode != PORT_MODE_NATIVE)
		err = open_dispatched(prog, cfg, ifindex, false);
	return err;
}

static int open_in_modes(struct xdp_prog *prog, const struct port_config *cfg, int ifindex)
{
	int err = -EOPNOTSUPP;

	if (cfg->mode != PORT_MODE_GENERIC) {
		err = open_native_vlan(prog, cfg, ifindex);
		if (err)
			err = open_plain(prog, cfg, ifindex, XDP_FLAGS_DRV_MODE);
	}
	if (err && err != -EPERM && cfg->mode != PORT_MODE_NATIVE)
		err = open_plain(prog, cfg, ifindex, XDP_FLAGS_SKB_MODE);
	return err;
}

static const char *remedy(int err, const struct port_config *cfg)
{
	switch (-err) {
	case ENOSYS:
		return ": this kernel refuses the dispatcher of the installed libxdp: set "
		       "port.attach = \"link\"";
	case EPERM:
	case EACCES:
		return ": needs CAP_NET_ADMIN and CAP_BPF (or root)";
	case EOPNOTSUPP:
		return cfg->mode == PORT_MODE_NATIVE
			       ? ": its driver has no native XDP: set port.mode = \"generic\" or "
				 "\"auto\""
			       : ": the kernel has no XDP for it";
	case ENOSPC:
		return ": a veth whose peer sends by more queues than it receives on has no native "
		       "XDP: make them equal (ethtool -L), or set port.mode = \"generic\"";
	case EINVAL:
	case ERANGE:
		return ": its settings do not go with native XDP (MTU, queues, large receive "
		       "offload): lower the MTU, or set port.mode = \"generic\"";
	default:
		return "";
	}
}

/* libxdp looks programs up by their numbers. */
static bool may_look_up_programs(void)
{
	int fd = bpf_prog_get_fd_by_id(0);

	if (fd >= 0)
		close(fd);
	return fd != -EPERM;
}

/* Where libxdp keeps what belongs to a dispatcher. */
static bool has_bpffs(void)
{
	const char *path = getenv("LIBXDP_BPFFS");
	struct statfs fs;

	return statfs(path ? path : "/sys/fs/bpf", &fs) == 0 && fs.f_type == BPF_FS_MAGIC;
}

/* What libxdp would miss only after it has attached our program alone, for good. */
static int check_dispatcher(const struct port_config *cfg)
{
	const char *lack = NULL;

	if (cfg->attach != PORT_ATTACH_DISPATCHER)
		return 0;
	if (!may_look_up_programs())
		lack = "CAP_SYS_ADMIN (or root)";
	else if (!has_bpffs())
		lack = "bpffs: mount -t bpf bpf /sys/fs/bpf";
	if (!lack)
		return 0;
	log_errx("xdp %s: port.attach = \"dispatcher\" needs %s; or set it to \"link\" to do "
		 "without",
		 cfg->ifname, lack);
	return -EPERM;
}

int xdp_prog_open(struct xdp_prog *prog, const struct port_config *cfg, int ifindex)
{
	int err;

	*prog = XDP_PROG_NONE;
	libbpf_set_print(print_libbpf);
	err = check_dispatcher(cfg);
	if (!err)
		err = wait_until_free(cfg, ifindex);
	if (err)
		return err;
	libxdp_set_print(print_libxdp);
	if (cfg->attach == PORT_ATTACH_DISPATCHER)
		err = open_beside_others(prog, cfg, ifindex);
	else
		err = open_in_modes(prog, cfg, ifindex);
	if (err)
		log_err(err, "xdp %s: cannot attach the XDP program%s", cfg->ifname,
			remedy(err, cfg));
	return err;
}

void xdp_prog_close(struct xdp_prog *prog)
{
	if (prog->link_fd >= 0)
		close(prog->link_fd);
	prog->link_fd = -1;
	xdp_dispatch_leave(&prog->dispatch);
	unload(prog);
}
