/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port xdp: what cannot be had is said in one line with the right exit code, and nothing is left
 * behind: no program on the interface, no socket, no changed setting.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/xdpnet.h"

#define XDP_OPTION "--port=xdp:" XDP_IF

struct bad {
	const char *names; /* the line must contain it */
	const char *args[8];
};

#define expect_all(cases, code) expect_all_fail(cases, sizeof(cases) / sizeof((cases)[0]), code)

static void expect_all_fail(const struct bad *cases, size_t n, int code)
{
	for (size_t i = 0; i < n; i++) {
		struct daemon_options options = {.netns = &xdpnet.ns};

		memcpy(options.args, cases[i].args, sizeof(cases[i].args));
		system_expect_failure(&options, code, cases[i].names);
		expect_eq(bpfprog_find(&xdpnet.ns, XDP_IF), 0);
	}
}

/* ---- whatever the host's state ---- */

START_TEST(wrong_options_and_values_are_named)
{
	static const struct bad cases[] = {
		{"xdp", {"--port=xdp"}},
		{"xdp", {"--port=xdp:"}},
		{"0123456789abcdef", {"--port=xdp:0123456789abcdef"}},
		{"a/b", {"--port=xdp:a/b"}},
		{"port.ifname", {XDP_OPTION, "--set", "port.ifname=0123456789abcdef"}},
		{"port.frame-size", {XDP_OPTION, "--set", "port.frame-size=0"}},
		{"port.frame-size", {XDP_OPTION, "--set", "port.frame-size=1024"}},
		{"port.frame-size", {XDP_OPTION, "--set", "port.frame-size=3000"}},
		{"port.frame-size", {XDP_OPTION, "--set", "port.frame-size=8192"}},
		{"port.frames", {XDP_OPTION, "--set", "port.frames=0"}},
		{"port.frames", {XDP_OPTION, "--set", "port.frames=100"}},
		{"port.frames", {XDP_OPTION, "--set", "port.frames=-64"}},
		{"port.mode", {XDP_OPTION, "--set", "port.mode=fast"}},
		{"port.mode", {XDP_OPTION, "--set", "port.mode="}},
		{"port.zero-copy", {XDP_OPTION, "--set", "port.zero-copy=maybe"}},
		{"port.steer", {XDP_OPTION, "--set", "port.steer=ip"}},
		{"mac", {XDP_OPTION, "--set", "port.steer=mac"}},
		{"port.attach", {XDP_OPTION, "--set", "port.attach=nail"}},
		/* Another port's. */
		{"port.sndbuf", {XDP_OPTION, "--set", "port.sndbuf=4096"}},
		{"port.bridge", {XDP_OPTION, "--set", "port.bridge=br0"}},
		{"port.create", {XDP_OPTION, "--set", "port.create=true"}},
		{"port.source-size", {XDP_OPTION, "--set", "port.source-size=64"}},
		{"port.frames", {"--port=tap:" XDP_IF, "--set", "port.frames=4096"}},
		{"port.steer", {"--port=null", "--set", "port.steer=all"}},
	};

	xdpnet_make_link(2);
	expect_all(cases, 2);
}
END_TEST

START_TEST(wrong_lists_of_queues_are_named)
{
	static const struct bad cases[] = {
		{"port.queues", {XDP_OPTION, "--set", "port.queues="}},
		{"port.queues", {XDP_OPTION, "--set", "port.queues=x"}},
		{"port.queues", {XDP_OPTION, "--set", "port.queues=-1"}},
		{"port.queues", {XDP_OPTION, "--set", "port.queues=64"}},
		{"port.queues", {XDP_OPTION, "--set", "port.queues=4294967296"}},
		{"port.queues", {XDP_OPTION, "--set", "port.queues=0,1"}},
		{"port.queues", {XDP_OPTION, "--queue-pairs=2", "--set", "port.queues=0"}},
		{"port.queues", {XDP_OPTION, "--queue-pairs=2", "--set", "port.queues=1,1"}},
		{"port.queues", {XDP_OPTION, "--queue-pairs=2", "--set", "port.queues=0,1,2"}},
		{"port.queues", {XDP_OPTION, "--queue-pairs=2", "--set", "port.queues=0,"}},
		{"port.queues", {XDP_OPTION, "--queue-pairs=2", "--set", "port.queues=0,64"}},
		{"port.queues", {XDP_OPTION, "--queue-pairs=2", "--set", "port.queues=,0"}},
	};

	xdpnet_make_link(2);
	expect_all(cases, 2);
}
END_TEST

START_TEST(wrong_lines_of_a_file_are_named)
{
	static const char *const texts[] = {
		"port {\n type = \"xdp\"\n ifname = \"" XDP_IF "\"\n queues = {0, 0}\n}\n",
		"port {\n type = \"xdp\"\n ifname = \"" XDP_IF "\"\n frame-size = 1000\n}\n",
		"port {\n type = \"xdp\"\n ifname = \"" XDP_IF "\"\n steer = \"mac\"\n}\n",
		"port {\n type = \"xdp\"\n ifname = \"" XDP_IF "\"\n mode = \"quick\"\n}\n",
	};
	char path[80], option[100], names[90];

	xdpnet_make_link(2);
	snprintf(path, sizeof(path), "%s/conf", dut->dir);
	snprintf(option, sizeof(option), "--config=%s", path);
	snprintf(names, sizeof(names), "%s:4", path);
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

		expect_eq(write(fd, texts[i], strlen(texts[i])), (ssize_t)strlen(texts[i]));
		close(fd);
		system_expect_failure(
			&(struct daemon_options){
				.netns = &xdpnet.ns,
				.args = {option, i == 0 ? "--queue-pairs=2" : NULL}},
			2, names);
	}
}
END_TEST

START_TEST(file_can_say_it_all)
{
	const char *text =
		"queue-pairs = 2\nmac = \"02:00:00:00:00:01\"\nport {\n"
		"type = \"xdp\" ifname = \"" XDP_IF "\" queues = {1, 0} mode = \"native\"\n"
		"zero-copy = \"off\" frames = 512 frame-size = 4096 steer = \"mac\"\n}\n";
	char path[80], option[100];
	int fd;

	xdpnet_make_link(2);
	snprintf(path, sizeof(path), "%s/conf", dut->dir);
	snprintf(option, sizeof(option), "--config=%s", path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	expect_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	daemon_start(dut, &(struct daemon_options){.netns = &xdpnet.ns, .args = {option}});
	expect_msg(strstr(dut->ready, "xdp:" XDP_IF " (native, copy)"), "%s", dut->ready);
	expect_eq(xdpnet_get_umem(1).total, 512);
	system_check_end();
}
END_TEST

/* ---- what depends on the host ---- */

START_TEST(what_the_interface_lacks_is_named)
{
	static const struct bad cases[] = {
		{"nosuch0", {"--port=xdp:nosuch0"}},
		{"queue 1", {XDP_OPTION, "--queue-pairs=2"}},
		{"queue 1", {XDP_OPTION, "--set", "port.queues=1"}},
		{"queue 63", {XDP_OPTION, "--set", "port.queues=63"}},
		{"zero", {XDP_OPTION, "--set", "port.zero-copy=on"}},
		{"zero", {XDP_OPTION, "--set", "port.zero-copy=on", "--set", "port.mode=generic"}},
		/* A bridge has no native mode. */
		{"port.mode", {"--port=xdp:br0", "--set", "port.mode=native"}},
	};

	xdpnet_make_link(1);
	netns_run(&xdpnet.ns, "ip link add br0 type bridge");
	expect_all(cases, 1);
	expect_eq(bpfprog_find(&xdpnet.ns, "br0"), 0);
}
END_TEST

static void expect_without(uint64_t caps, const char *names, const char *setting)
{
	system_expect_failure(&(struct daemon_options){.netns = &xdpnet.ns,
						       .denied_caps = caps,
						       .args = {XDP_OPTION, "--set", setting}},
			      1, names);
	expect_eq(bpfprog_find(&xdpnet.ns, XDP_IF), 0);
}

START_TEST(missing_capability_is_named)
{
	static const char *const settings[] = {"port.mode=auto", "port.mode=native",
					       "port.mode=generic"};

	xdpnet_make_link(1);
	expect_without(NIC_BIT(CAP_NET_RAW), "CAP_NET_RAW", settings[_i]);
	/* To load a program CAP_SYS_ADMIN implies both. */
	expect_without(NIC_BIT(CAP_NET_ADMIN) | NIC_BIT(CAP_SYS_ADMIN), "CAP_NET_ADMIN",
		       settings[_i]);
	expect_without(NIC_BIT(CAP_BPF) | NIC_BIT(CAP_SYS_ADMIN), "CAP_BPF", settings[_i]);
	expect_without(NIC_BIT(CAP_SYS_ADMIN), "CAP_SYS_ADMIN", "port.attach=dispatcher");
}
END_TEST

START_TEST(dispatcher_needs_bpffs)
{
	xdpnet_make_link(1);
	expect_eq(setenv("LIBXDP_BPFFS", "/proc", 1), 0);
	expect_without(0, "bpffs", "port.attach=dispatcher");
	expect_eq(setenv("LIBXDP_BPFFS", "/no/such/place", 1), 0);
	expect_without(0, "bpffs", "port.attach=dispatcher");
}
END_TEST

START_TEST(documented_capabilities_are_enough)
{
	const uint64_t needed = NIC_BIT(CAP_NET_ADMIN) | NIC_BIT(CAP_NET_RAW) | NIC_BIT(CAP_BPF) |
				NIC_BIT(CAP_IPC_LOCK);
	const uint64_t all = (2ULL << CAP_LAST_CAP) - 1;

	xdpnet_make_link(1);
	daemon_start(dut,
		     &(struct daemon_options){.netns = &xdpnet.ns,
					      .denied_caps = all & ~needed,
					      .args = {XDP_OPTION, "--set", "port.mode=native"}});
	/* The program that keeps VLAN tags is loaded, too: else a line says that they are lost. */
	if (xdpnet_has_linux(6, 8))
		expect_eq(daemon_log_count(dut, "VLAN"), 0);
	system_check_end();
}
END_TEST

START_TEST(memory_that_cannot_be_locked_is_named)
{
	struct rlimit before, low;

	xdpnet_make_link(1);
	expect_eq(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	low = (struct rlimit){.rlim_cur = 64 << 10, .rlim_max = before.rlim_max};
	expect_eq(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	expect_without(NIC_BIT(CAP_IPC_LOCK), "CAP_IPC_LOCK", "port.frames=65536");
	expect_eq(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}
END_TEST

START_TEST(foreign_program_is_named_and_left_alone)
{
	const bool is_link = _i % 2;
	uint32_t id;
	int fd;

	xdpnet_make_link(1);
	fd = bpfprog_attach_foreign(&xdpnet.ns, XDP_IF, is_link);
	id = bpfprog_find(&xdpnet.ns, XDP_IF);
	expect_ne(id, 0);
	system_expect_failure(xdpnet_options("--set", xdpnet_mode_set[_i / 2]), 1, "foreign");
	system_expect_failure(xdpnet_options("--set", "port.mode=auto"), 1, XDP_IF);
	expect_eq(bpfprog_find(&xdpnet.ns, XDP_IF), id);
	if (!is_link)
		bpfprog_detach(&xdpnet.ns, XDP_IF);
	close(fd);
	/* When it has gone, so has the obstacle. */
	wait_until(bpfprog_find(&xdpnet.ns, XDP_IF) == 0, WAIT_LONG_MS);
	xdpnet_start(NULL);
	system_check_end();
}
END_TEST

START_TEST(second_daemon_is_refused_and_harms_nobody)
{
	static struct daemon other;
	struct daemon_result r;
	uint32_t id;

	xdpnet_start_guest((unsigned)_i, NULL);
	id = bpfprog_find(&xdpnet.ns, XDP_IF);
	daemon_open(&other);
	r = daemon_run(&other, xdpnet_options("--set", xdpnet_mode_set[_i]));
	expect_msg(r.code == 1, "%s", r.err);
	expect_msg(r.n_lines == 1, "%s", r.err);
	expect_msg(strstr(r.err, XDP_IF) != NULL, "%s", r.err);
	/* It may wait for one that was killed. */
	expect_lt(r.ms, wait_scaled_ms(3000));
	expect_eq(access(other.path, F_OK), -1);
	daemon_result_free(&r);
	daemon_close(&other);
	expect_eq(bpfprog_find(&xdpnet.ns, XDP_IF), id);
	wire_check_both_ways(1);
}
END_TEST

START_TEST(more_queues_than_pairs_are_warned_of_once)
{
	xdpnet_make_link(4);
	xdpnet_start("--queue-pairs=2");
	expect_eq(daemon_log_count(dut, "ethtool -L " XDP_IF), 1);
	expect_eq(daemon_log_count(dut, "\n"), 1);
	system_check_end();
	xdpnet_start("--queue-pairs=4");
	expect_eq(daemon_log_count(dut, "\n"), 0);
	system_check_end();
}
END_TEST

static void add_all(TCase *tc)
{
	xdpnet_add_fixture(tc);
	tcase_add_test(tc, wrong_options_and_values_are_named);
	tcase_add_test(tc, wrong_lists_of_queues_are_named);
	tcase_add_test(tc, wrong_lines_of_a_file_are_named);
	tcase_add_test(tc, file_can_say_it_all);
	tcase_add_test(tc, what_the_interface_lacks_is_named);
	tcase_add_loop_test(tc, missing_capability_is_named, 0, 3);
	tcase_add_test(tc, dispatcher_needs_bpffs);
	tcase_add_test(tc, documented_capabilities_are_enough);
	tcase_add_test(tc, memory_that_cannot_be_locked_is_named);
	tcase_add_loop_test(tc, foreign_program_is_named_and_left_alone, 0, 2 * XDP_N_MODES);
	tcase_add_loop_test(tc, second_daemon_is_refused_and_harms_nobody, 0, XDP_N_MODES);
	tcase_add_test(tc, more_queues_than_pairs_are_warned_of_once);
}

int main(void)
{
	return xdpnet_is_possible() ? system_main("xdp_refused", add_all) : 77;
}
