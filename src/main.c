/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Order of start and stop; the only file that exits. The control thread is this one: it runs the
 * default loop until a signal, or the end of a one-shot frontend, breaks it.
 *
 * Start: options, configuration, port and workers, vhost-user socket, control socket, "ready".
 * Whatever fails leaves one log line, and what was opened before is closed again in reverse order.
 */
#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "config.h"
#include "ctl.h"
#include "mem/gmem.h"
#include "net/netdev.h"
#include "options.h"
#include "vhost/device.h"
#include "vhost/server.h"

#define EXIT_OK	   0
#define EXIT_HOST  1 /* depends on the host's state, or failed at run time */
#define EXIT_WRONG 2 /* wrong whatever the host's state */

struct daemon {
	struct options options;
	struct config config;
	struct ev_loop *loop;
	struct netdev *netdev;
	struct device *device;
	struct server *server;
	struct ctl *ctl;
	ev_signal on_term, on_int, on_hup;
	ev_io memory_lost_watch;
	int memory_lost_fd;
};

/* ---- reload ---- */

static void apply_live(struct daemon *d, const struct config *wanted)
{
	for (unsigned i = 0; i < d->config.n_pairs; i++) {
		d->config.pairs[i].params = wanted->pairs[i].params;
		netdev_set_params(d->netdev, i, &wanted->pairs[i].params);
	}
	d->config.log_level = wanted->log_level;
	log_set_level(wanted->log_level);
}

static int reload(void *arg, char *why, size_t why_size)
{
	struct daemon *d = arg;
	struct config wanted;
	int err = config_load(&wanted, &d->options.overrides);

	if (err) {
		snprintf(why, why_size,
			 "the configuration is wrong, the old one stays: see the log");
		return err;
	}
	config_warn_fixed(&d->config, &wanted);
	apply_live(d, &wanted);
	log_info("configuration reloaded");
	return 0;
}

/* ---- what the loop hands to this file ---- */

static void on_end_signal(struct ev_loop *loop, ev_signal *watch, int events)
{
	(void)watch;
	(void)events;
	ev_break(loop, EVBREAK_ALL);
}

static void on_reload_signal(struct ev_loop *loop, ev_signal *watch, int events)
{
	char why[128];

	(void)loop;
	(void)events;
	reload(watch->data, why, sizeof(why));
}

static void on_one_shot_end(void *arg)
{
	struct daemon *d = arg;

	/* With its frontend a guest has ended: nobody will go on with its rings. */
	netdev_forget_rings(d->netdev);
	ev_break(d->loop, EVBREAK_ALL);
}

static void on_memory_lost(struct ev_loop *loop, ev_io *watch, int events)
{
	struct daemon *d = watch->data;
	uint64_t n;
	ssize_t ignored;

	(void)loop;
	(void)events;
	server_drop(d->server, "guest memory has vanished (its file was shortened)");
	/* Stopping the rings has touched the memory once more; the next frontend has its own. */
	ignored = read(d->memory_lost_fd, &n, sizeof(n));
	(void)ignored;
}

static void watch_signal(struct daemon *d, ev_signal *watch, int signo,
			 void (*handler)(struct ev_loop *, ev_signal *, int))
{
	ev_signal_init(watch, handler, signo);
	watch->data = d;
	ev_signal_start(d->loop, watch);
}

/* ---- start and stop ---- */

/* Sixteen pairs need more fds than a shell's default may leave. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warn(errno, "cannot raise the limit of open files to %llu",
			 (unsigned long long)limit.rlim_max);
}

static int start_loop(struct daemon *d)
{
	int err;

	raise_fd_limit();
	d->loop = ev_default_loop(EVFLAG_AUTO | EVFLAG_NOENV);
	d->memory_lost_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!d->loop || d->memory_lost_fd < 0) {
		log_err(errno, "cannot have an event loop");
		return -ENOMEM;
	}
	err = gmem_sigbus_install(d->memory_lost_fd);
	if (err) {
		log_err(err, "cannot handle SIGBUS");
		return err;
	}
	signal(SIGPIPE, SIG_IGN);
	watch_signal(d, &d->on_term, SIGTERM, on_end_signal);
	watch_signal(d, &d->on_int, SIGINT, on_end_signal);
	watch_signal(d, &d->on_hup, SIGHUP, on_reload_signal);
	ev_io_init(&d->memory_lost_watch, on_memory_lost, d->memory_lost_fd, EV_READ);
	d->memory_lost_watch.data = d;
	ev_io_start(d->loop, &d->memory_lost_watch);
	return 0;
}

static void on_link(void *arg, bool is_up)
{
	const struct daemon *d = arg;

	device_set_link(d->device, is_up);
}

static int start_device(struct daemon *d)
{
	const struct config *cfg = &d->config;
	struct netdev_config netdev_cfg = {
		.port = &cfg->port,
		.n_pairs = cfg->n_pairs,
		.pairs = cfg->pairs,
	};
	struct device_config device_cfg = {
		.n_pairs = cfg->n_pairs,
		.has_mac = cfg->has_mac,
		.mtu = cfg->mtu,
		.offer_config = cfg->offer_config,
	};
	int err = netdev_open(&d->netdev, &netdev_cfg, d->loop);

	if (err)
		return err;
	memcpy(device_cfg.mac, cfg->mac, sizeof(device_cfg.mac));
	device_cfg.features = netdev_features(d->netdev);
	d->device = device_new(&device_cfg, &netdev_device_ops, d->netdev);
	if (!d->device)
		return -ENOMEM;
	netdev_watch_link(d->netdev, on_link, d);
	return 0;
}

static int start_server(struct daemon *d)
{
	struct server_config cfg = {
		.path = d->options.socket_path,
		.is_client = d->options.is_client,
		.fd = d->options.fd,
		.is_one_shot = d->options.is_one_shot,
		.socket_mode = d->config.socket_mode,
		.socket_group = d->config.socket_group,
	};

	return server_open(&d->server, d->loop, &cfg, d->device, on_one_shot_end, d);
}

/* Beside the socket, if there is a path to it and the configuration names no other. */
static int start_state(struct daemon *d)
{
	char default_path[4096];
	const char *path = d->config.state_path;

	if (path[0] == '\0' && !d->options.socket_path)
		return 0;
	if (path[0] == '\0') {
		snprintf(default_path, sizeof(default_path), "%s.state", d->options.socket_path);
		path = default_path;
	}
	return netdev_use_state_file(d->netdev, path);
}

static int start_ctl(struct daemon *d)
{
	struct ctl_targets targets = {
		.netdev = d->netdev,
		.device = d->device,
		.server = d->server,
		.reload = reload,
		.arg = d,
	};
	char default_path[4096];
	const char *path = d->options.ctl_path;

	if (!path && d->options.socket_path) {
		snprintf(default_path, sizeof(default_path), "%s.ctl", d->options.socket_path);
		path = default_path;
	}
	return path ? ctl_open(&d->ctl, d->loop, path, &targets) : 0;
}

static int start(struct daemon *d)
{
	int err = start_loop(d);

	if (err == 0)
		err = start_device(d);
	if (err == 0)
		err = start_server(d);
	if (err == 0)
		err = start_state(d);
	if (err == 0)
		err = start_ctl(d);
	return err;
}

static void stop(struct daemon *d)
{
	ctl_close(d->ctl);
	server_close(d->server);
	if (d->netdev)
		netdev_watch_link(d->netdev, NULL, NULL);
	device_free(d->device);
	netdev_close(d->netdev);
	if (d->memory_lost_fd >= 0)
		close(d->memory_lost_fd);
	if (d->loop)
		ev_loop_destroy(d->loop);
}

static void say_ready(const struct daemon *d)
{
	char socket[256], port[128];

	server_describe(d->server, socket, sizeof(socket));
	netdev_describe_port(d->netdev, port, sizeof(port));
	printf("ready: %s, port %s\n", socket, port);
	fflush(stdout);
	sd_notifyf(0, "READY=1\nSTATUS=%s, port %s", socket, port);
}

/* systemd may hand the socket over instead of an option. Return: 0 or -EINVAL after a log line. */
static int take_systemd_fd(struct options *o)
{
	int n;

	if (o->socket_path || o->fd >= 0)
		return 0;
	n = sd_listen_fds(1);
	if (n != 1) {
		log_errx("LISTEN_FDS hands over %d sockets: exactly one is needed, or give "
			 "--socket-path=PATH",
			 n < 0 ? 0 : n);
		return -EINVAL;
	}
	o->fd = SD_LISTEN_FDS_START;
	return 0;
}

static int run(struct daemon *d)
{
	int err = start(d);

	if (err == 0) {
		say_ready(d);
		ev_run(d->loop, 0);
		sd_notify(0, "STOPPING=1");
	}
	stop(d);
	return err ? EXIT_HOST : EXIT_OK;
}

int main(int argc, char *argv[])
{
	struct daemon d = {.memory_lost_fd = -1};

	if (options_parse(&d.options, argc, argv) != 0)
		return EXIT_WRONG;
	if (d.options.action != OPTIONS_RUN && d.options.action != OPTIONS_CHECK_CONFIG) {
		options_print(d.options.action);
		return EXIT_OK;
	}
	if (config_load(&d.config, &d.options.overrides) != 0)
		return EXIT_WRONG;
	if (d.options.action == OPTIONS_CHECK_CONFIG) {
		config_print(&d.config, stdout);
		return EXIT_OK;
	}
	log_set_level(d.config.log_level);
	if (take_systemd_fd(&d.options) != 0)
		return EXIT_WRONG;
	return run(&d);
}
