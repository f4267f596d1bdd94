/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client may write into the control socket, for libFuzzer: one line. Whatever it is, it gets
 * one JSON object of one line with "ok" in it, and a refusal has a reason.
 */
#include <assert.h>
#include <ev.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_cmd.h"
#include "net/netdev.h"
#include "vhost/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ctl_targets targets;

static int no_reload(void *arg, char *why, size_t why_size)
{
	(void)arg;
	snprintf(why, why_size, "not here");
	return -1;
}

static void on_end(void *arg)
{
	(void)arg;
}

/* A daemon with port null, and a client-mode socket that never connects. */
static void open_targets(void)
{
	static const struct port_config port = {.ops = &null_port, .fd = -1};
	static const struct netdev_pair_config pair = {.params = {.batch = 64}, .cpu = -1};
	static const struct netdev_config cfg = {.port = &port, .n_pairs = 1, .pairs = &pair};
	static const struct device_config device = {.n_pairs = 1};
	static const struct server_config socket = {
		.path = "/nowhere", .is_client = true, .fd = -1};
	struct ev_loop *loop = ev_loop_new(0);

	if (!loop || netdev_open(&targets.netdev, &cfg, loop) < 0)
		abort();
	targets.device = device_new(&device, &netdev_device_ops, targets.netdev);
	if (!targets.device ||
	    server_open(&targets.server, loop, &socket, targets.device, on_end, NULL) < 0)
		abort();
	targets.reload = no_reload;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!targets.netdev)
		open_targets();

	char *answer = ctl_cmd_answer(&targets, (const char *)data, size);
	json_t *json = json_loads(answer, 0, NULL);

	assert(json && !strchr(answer, '\n'));
	assert(json_is_true(json_object_get(json, "ok")) ||
	       json_is_string(json_object_get(json, "error")));
	json_decref(json);
	free(answer);
	return 0;
}
