/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/bpfprog.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "support/expect.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The instructions that are needed here. */
#define MOVE(dst, src)                                                                             \
	{                                                                                          \
		.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (dst), .src_reg = (src)            \
	}
#define MOVE_IMM(dst, val)                                                                         \
	{                                                                                          \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (dst), .imm = (val)                \
	}
#define LOAD_FIELD(dst, ctx, field)                                                                \
	{                                                                                          \
		.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = (dst), .src_reg = (ctx),             \
		.off = offsetof(struct __sk_buff, field)                                           \
	}
#define STORE_FIELD(ctx, field, src)                                                               \
	{                                                                                          \
		.code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = (ctx), .src_reg = (src),             \
		.off = offsetof(struct __sk_buff, field)                                           \
	}
#define SKIP_IF_ZERO(reg, n)                                                                       \
	{                                                                                          \
		.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = (reg), .off = (n)                    \
	}
#define CALL(function)                                                                             \
	{                                                                                          \
		.code = BPF_JMP | BPF_CALL, .imm = (function)                                      \
	}
#define RETURN                                                                                     \
	{                                                                                          \
		.code = BPF_JMP | BPF_EXIT                                                         \
	}

static int load(enum bpf_prog_type type, const char *name, const struct bpf_insn *insns, size_t n)
{
	int fd = bpf_prog_load(type, name, "Dual BSD/GPL", insns, n, NULL);

	expect_msg(fd >= 0, "BPF program %s: %s", name, strerror(errno));
	return fd;
}

uint32_t bpfprog_find(const struct netns *ns, const char *ifname)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, opts);
	int index = netns_link_index(ns, ifname);

	if (index == 0)
		return 0;
	netns_enter(ns);
	if (bpf_xdp_query(index, 0, &opts) < 0)
		opts.prog_id = 0;
	netns_leave(ns);
	return opts.prog_id ? opts.prog_id : opts.drv_prog_id ? opts.drv_prog_id : opts.skb_prog_id;
}

int bpfprog_attach_foreign(const struct netns *ns, const char *ifname, bool is_link)
{
	static const struct bpf_insn pass[] = {MOVE_IMM(BPF_REG_0, XDP_PASS), RETURN};
	int prog = load(BPF_PROG_TYPE_XDP, "foreign", pass, ARRAY_SIZE(pass));
	int index = netns_link_index(ns, ifname), link, err;

	netns_enter(ns);
	if (is_link) {
		link = bpf_link_create(prog, index, BPF_XDP, NULL);
		err = link < 0 ? errno : 0;
		close(prog);
	} else {
		err = -bpf_xdp_attach(index, prog, 0, NULL);
		link = prog;
	}
	netns_leave(ns);
	expect_msg(err == 0, "attach to %s: %s", ifname, strerror(err));
	return link;
}

void bpfprog_detach(const struct netns *ns, const char *ifname)
{
	int index = netns_link_index(ns, ifname), err;

	netns_enter(ns);
	err = bpf_xdp_detach(index, 0, NULL);
	netns_leave(ns);
	expect_eq(err, 0);
}

void bpfprog_follow_socket(const struct netns *ns, const char *ifname)
{
	const struct bpf_insn insns[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		LOAD_FIELD(BPF_REG_2, BPF_REG_6, priority),
		STORE_FIELD(BPF_REG_6, queue_mapping, BPF_REG_2),
		LOAD_FIELD(BPF_REG_3, BPF_REG_6, mark),
		SKIP_IF_ZERO(BPF_REG_3, 3),
		MOVE(BPF_REG_1, BPF_REG_6),
		MOVE_IMM(BPF_REG_2, htons(ETH_P_8021Q)),
		CALL(BPF_FUNC_skb_vlan_push),
		MOVE_IMM(BPF_REG_0, -1), /* TC_ACT_UNSPEC: go on */
		RETURN,
	};
	int prog = load(BPF_PROG_TYPE_SCHED_CLS, "follow_socket", insns, ARRAY_SIZE(insns));
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = netns_link_index(ns, ifname),
		    .attach_point = BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = prog);
	int err;

	netns_enter(ns);
	err = bpf_tc_hook_create(&hook);
	if (err == 0)
		err = bpf_tc_attach(&hook, &opts);
	netns_leave(ns);
	close(prog);
	expect_msg(err == 0, "tc egress of %s: %s", ifname, strerror(-err));
}
