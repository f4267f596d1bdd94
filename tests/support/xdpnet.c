/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/xdpnet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

struct xdpnet xdpnet = {{-1, -1}, {-1, -1}};

const char *const xdpnet_modes[XDP_N_MODES] = {"native", "generic"};
const char *const xdpnet_mode_set[XDP_N_MODES] = {"port.mode=native", "port.mode=generic"};

bool xdpnet_is_possible(void)
{
	int sock;

	if (!netns_is_possible())
		return false;
	sock = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (sock < 0) {
		printf("skipped: no AF_XDP sockets here: %s\n", strerror(errno));
		return false;
	}
	close(sock);
	return true;
}

static void setup(void)
{
	wire_init();
	netns_open(&xdpnet.ns);
	netns_open(&xdpnet.far_ns);
}

static void teardown(void)
{
	wire_close();
	netns_close(&xdpnet.ns);
	netns_close(&xdpnet.far_ns);
}

bool xdpnet_has_linux(unsigned major, unsigned minor)
{
	unsigned is_major, is_minor;
	struct utsname u;

	expect_eq(uname(&u), 0);
	expect_eq(sscanf(u.release, "%u.%u", &is_major, &is_minor), 2);
	return is_major > major || (is_major == major && is_minor >= minor);
}

void xdpnet_add_fixture(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
}

void xdpnet_take_up(void)
{
	netns_set_link_up(&xdpnet.far_ns, XDP_FAR, true);
	netns_set_link_up(&xdpnet.ns, XDP_IF, true);
	netns_wait_running(&xdpnet.far_ns, XDP_FAR);
	netns_wait_running(&xdpnet.ns, XDP_IF);
}

void xdpnet_make_link(unsigned n_queues)
{
	netns_make_veth(&xdpnet.ns, XDP_IF, &xdpnet.far_ns, XDP_FAR, n_queues);
	bpfprog_follow_socket(&xdpnet.far_ns, XDP_FAR);
	xdpnet_take_up();
}

void xdpnet_listen(bool has_vnet_hdr)
{
	wire_listen(&xdpnet.far_ns, XDP_FAR, has_vnet_hdr);
}

void xdpnet_start_guest(unsigned mode, const struct nic_options *options)
{
	xdpnet_make_link(1);
	xdpnet_start("--set", xdpnet_mode_set[mode]);
	xdpnet_listen(false);
	system_connect(options);
	nic_post(&nic, 0, 128, 2048);
}

void xdpnet_set_queue(unsigned queue)
{
	const int priority = (int)queue + 1;

	expect_eq(setsockopt(wire.packet, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)), 0);
}

void xdpnet_set_tag(uint16_t tci)
{
	const int mark = tci;

	expect_eq(setsockopt(wire.packet, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)), 0);
}

/* ---- packet memory ---- */

struct xdpnet_umem xdpnet_get_umem(unsigned pair)
{
	json_t *data = daemon_ask(dut, "rings", NULL);
	int total, n_free, fill, rx, tx, completion;
	json_t *umem = json_array_get(json_object_get(data, "umem"), pair);

	expect_msg(json_unpack(umem, "{si si si si si si}", "total", &total, "free", &n_free,
			       "fill", &fill, "rx", &rx, "tx", &tx, "completion", &completion) == 0,
		   "rings: no packet memory of queue pair %u", pair);
	json_decref(data);
	expect(n_free >= 0 && fill >= 0 && rx >= 0 && tx >= 0 && completion >= 0);
	expect_msg(n_free + fill + rx + tx + completion == total,
		   "free %d + fill %d + rx %d + tx %d + completion %d is not %d", n_free, fill, rx,
		   tx, completion, total);
	return (struct xdpnet_umem){
		.total = (uint32_t)total,
		.free = (uint32_t)n_free,
		.fill = (uint32_t)fill,
		.rx = (uint32_t)rx,
		.tx = (uint32_t)tx,
		.completion = (uint32_t)completion,
	};
}

void xdpnet_wait_umem_at_rest(unsigned pair, const struct xdpnet_umem *before)
{
	uint64_t end = wait_now_ns() + wait_scaled_ms(WAIT_LONG_MS) * 1000000ULL;
	struct xdpnet_umem now;

	while (now = xdpnet_get_umem(pair), now.rx > 0 || now.tx > 0 || now.fill != before->fill) {
		expect_msg(wait_now_ns() < end,
			   "packet memory: rx %u, tx %u, completion %u, free %u, fill %u (was %u)",
			   now.rx, now.tx, now.completion, now.free, now.fill, before->fill);
		wait_pause_us(1000);
	}
}

/* ---- after its end ---- */

void xdpnet_check_left(bool has_files)
{
	wait_until(bpfprog_find(&xdpnet.ns, XDP_IF) == 0, WAIT_LONG_MS);
	expect_eq(access(dut->path, F_OK) == 0, has_files);
	expect_eq(access(dut->ctl, F_OK) == 0, has_files);
}
