/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl_show.h"

#include <string.h>

#include "base/util.h"

void ctl_show_text(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
}

static const char *yes_no(int is_true)
{
	return is_true ? "yes" : "no";
}

bool ctl_show_json(json_t *data)
{
	json_dumpf(data, stdout, 0);
	putchar('\n');
	return true;
}

bool ctl_show_reload(json_t *data)
{
	puts("configuration reloaded");
	return json_is_object(data);
}

/* ---- status ---- */

static void show_field(const char *name, const char *text)
{
	printf("%-19s ", name);
	ctl_show_text(stdout, text);
	putchar('\n');
}

static bool show_ring_state(size_t queue, const char *direction, json_t *pair)
{
	int is_started, is_enabled, is_broken;
	char name[32];

	if (json_unpack(pair, "{s{sb sb sb}}", direction, "started", &is_started, "enabled",
			&is_enabled, "broken", &is_broken) < 0)
		return false;
	snprintf(name, sizeof(name), "q%zu.%s:", queue, direction);
	printf("%-19s %s, %s%s\n", name, is_started ? "started" : "stopped",
	       is_enabled ? "enabled" : "disabled", is_broken ? ", broken" : "");
	return true;
}

bool ctl_show_status(json_t *data)
{
	const char *version, *socket, *port, *features, *offered, *protocol;
	json_t *pairs, *pair;
	int is_connected, n_pairs;
	size_t i;

	if (json_unpack(data, "{ss ss ss sb si ss ss ss so}", "version", &version, "socket",
			&socket, "port", &port, "connected", &is_connected, "queue_pairs", &n_pairs,
			"features", &features, "features_offered", &offered, "protocol_features",
			&protocol, "pairs", &pairs) < 0)
		return false;
	show_field("version:", version);
	show_field("socket:", socket);
	show_field("port:", port);
	show_field("frontend:", is_connected ? "connected" : "not connected");
	printf("%-19s %d\n", "queue pairs:", n_pairs);
	show_field("features:", features);
	show_field("features offered:", offered);
	show_field("protocol features:", protocol);
	json_array_foreach(pairs, i, pair)
		if (!show_ring_state(i, "rx", pair) || !show_ring_state(i, "tx", pair))
			return false;
	return true;
}

/* ---- stats ---- */

static void show_counters(const char *prefix, json_t *counters)
{
	const char *name;
	json_t *value;

	json_object_foreach(counters, name, value)
		printf("%s %s: %" JSON_INTEGER_FORMAT "\n", prefix, name,
		       json_integer_value(value));
}

bool ctl_show_stats(json_t *data)
{
	json_t *queues, *total, *queue;
	size_t i;

	if (json_unpack(data, "{so so}", "queues", &queues, "total", &total) < 0)
		return false;
	json_array_foreach(queues, i, queue) {
		char prefix[32];

		snprintf(prefix, sizeof(prefix), "q%zu", i);
		show_counters(prefix, queue);
	}
	if (json_array_size(queues) > 1)
		show_counters("total", total);
	return json_is_array(queues) && json_is_object(total);
}

/* ---- rates ---- */

/* What a line of the table is made of. */
struct sample_pair {
	json_t *before, *after;
	double seconds;
};

static double increase(const struct sample_pair *s, const char *counter)
{
	json_int_t before = json_integer_value(json_object_get(s->before, counter));
	json_int_t after = json_integer_value(json_object_get(s->after, counter));

	return (double)(after - before);
}

static void show_direction(const struct sample_pair *s, const char *packets, const char *bytes,
			   const char *batches)
{
	double n_packets = increase(s, packets), n_batches = increase(s, batches);

	printf(" %8.0f %8.1f", n_packets / s->seconds, increase(s, bytes) * 8 / 1e6 / s->seconds);
	if (n_batches > 0)
		printf(" %5.1f", n_packets / n_batches);
	else
		printf(" %5s", "-");
}

static void show_rates_line(const char *name, const struct sample_pair *s)
{
	double n_dropped = increase(s, "rx_dropped") + increase(s, "tx_dropped");

	printf("%-5s", name);
	show_direction(s, "rx_packets", "rx_bytes", "rx_batches");
	show_direction(s, "tx_packets", "tx_bytes", "tx_batches");
	printf(" %8.0f %9.0f %7.0f\n", increase(s, "calls") / s->seconds,
	       increase(s, "wakeups") / s->seconds, n_dropped / s->seconds);
}

bool ctl_show_rates(json_t *before, json_t *after, double seconds)
{
	json_t *queues_before = json_object_get(before, "queues");
	json_t *queues_after = json_object_get(after, "queues");
	struct sample_pair s = {.seconds = seconds};
	size_t n = json_array_size(queues_after);
	char name[32];

	if (n == 0 || n != json_array_size(queues_before))
		return false;
	printf("%-5s %23s %23s\n", "", "---- rx: to guest -----", "---- tx: from guest ---");
	printf("%-5s %8s %8s %5s %8s %8s %5s %8s %9s %7s\n", "queue", "pkt/s", "Mbit/s", "batch",
	       "pkt/s", "Mbit/s", "batch", "calls/s", "wakeups/s", "drops/s");
	for (size_t i = 0; i < n; i++) {
		s.before = json_array_get(queues_before, i);
		s.after = json_array_get(queues_after, i);
		snprintf(name, sizeof(name), "q%zu", i);
		show_rates_line(name, &s);
	}
	s.before = json_object_get(before, "total");
	s.after = json_object_get(after, "total");
	if (n > 1)
		show_rates_line("total", &s);
	return true;
}

/* ---- coalesce ---- */

static const char *true_false(int is_true)
{
	return is_true ? "true" : "false";
}

static bool show_coalesce_line(json_t *q)
{
	int queue, adaptive_rx, adaptive_tx, rx_usecs, rx_frames, tx_usecs, tx_frames, tx_at_rx;
	char name[16];

	if (json_unpack(q, "{si sb sb si si si si sb}", "queue", &queue, "adaptive-rx",
			&adaptive_rx, "adaptive-tx", &adaptive_tx, "rx-usecs", &rx_usecs,
			"rx-frames", &rx_frames, "tx-usecs", &tx_usecs, "tx-frames", &tx_frames,
			"tx-at-rx", &tx_at_rx) < 0)
		return false;
	snprintf(name, sizeof(name), "q%d", queue);
	printf("%-5s  %8d  %9d  %8d  %9d  %8s  %11s  %11s\n", name, rx_usecs, rx_frames, tx_usecs,
	       tx_frames, true_false(tx_at_rx), true_false(adaptive_rx), true_false(adaptive_tx));
	return true;
}

bool ctl_show_coalesce(json_t *data)
{
	json_t *queues = json_object_get(data, "queues"), *queue;
	size_t i;

	printf("%-5s  %8s  %9s  %8s  %9s  %8s  %11s  %11s\n", "queue", "rx-usecs", "rx-frames",
	       "tx-usecs", "tx-frames", "tx-at-rx", "adaptive-rx", "adaptive-tx");
	json_array_foreach(queues, i, queue)
		if (!show_coalesce_line(queue))
			return false;
	return json_is_array(queues);
}

/* ---- rings ---- */

/* Write an index; of a packed ring, "SLOT/WRAP". Return: whether `r` has it. */
static bool format_index(json_t *r, const char *name, const char *wrap_name, char *text,
			 size_t size)
{
	json_t *idx = json_object_get(r, name), *wrap = json_object_get(r, wrap_name);
	int n = snprintf(text, size, "%d", (int)json_integer_value(idx));

	if (wrap)
		snprintf(text + n, size - (size_t)n, "/%d", (int)json_integer_value(wrap));
	return json_is_integer(idx) && (!wrap || json_is_integer(wrap));
}

static bool show_ring_line(json_t *r)
{
	int queue, is_started, is_enabled, is_broken, is_kicks_on, size, in_flight, uncalled, usecs;
	char name[32], avail[32], next[32], used[32];
	const char *direction, *layout;

	if (json_unpack(r, "{si ss sb sb sb ss si si si si sb}", "queue", &queue, "direction",
			&direction, "started", &is_started, "enabled", &is_enabled, "broken",
			&is_broken, "layout", &layout, "size", &size, "in_flight", &in_flight,
			"uncalled", &uncalled, "call_usecs", &usecs, "kicks_on",
			&is_kicks_on) < 0 ||
	    !format_index(r, "avail_idx", "avail_wrap", avail, sizeof(avail)) ||
	    !format_index(r, "next_avail", "next_wrap", next, sizeof(next)) ||
	    !format_index(r, "used_idx", "used_wrap", used, sizeof(used)))
		return false;
	snprintf(name, sizeof(name), "q%d.%.8s", queue, direction);
	printf("%-7s %-7s %-7s %-6.8s %5d  %7s  %7s  %7s  %9d  %8d  %5d  %s\n", name,
	       is_broken ? "broken" : (is_started ? "started" : "stopped"), yes_no(is_enabled),
	       layout, size, avail, next, used, in_flight, uncalled, usecs,
	       is_kicks_on ? "on" : "off");
	return true;
}

static bool show_umem_line(json_t *u)
{
	int queue, total, n_free, fill, rx, tx, completion;
	char name[32];

	if (json_unpack(u, "{si si si si si si si}", "queue", &queue, "total", &total, "free",
			&n_free, "fill", &fill, "rx", &rx, "tx", &tx, "completion",
			&completion) < 0)
		return false;
	snprintf(name, sizeof(name), "q%d", queue);
	printf("%-7s %8d  %8d  %8d  %8d  %8d  %10d\n", name, total, n_free, fill, rx, tx,
	       completion);
	return true;
}

static bool show_umem(json_t *umem)
{
	json_t *u;
	size_t i;

	if (json_array_size(umem) == 0)
		return true;
	printf("\n%-7s %8s  %8s  %8s  %8s  %8s  %10s\n", "frames", "total", "free", "fill", "rx",
	       "tx", "completion");
	json_array_foreach(umem, i, u)
		if (!show_umem_line(u))
			return false;
	return true;
}

bool ctl_show_rings(json_t *data)
{
	json_t *rings = json_object_get(data, "rings"), *ring;
	size_t i;

	printf("%-7s %-7s %-7s %-6s %5s  %7s  %7s  %7s  %9s  %8s  %5s  %s\n", "ring", "state",
	       "enabled", "layout", "size", "avail", "next", "used", "in flight", "uncalled",
	       "usecs", "kicks");
	json_array_foreach(rings, i, ring)
		if (!show_ring_line(ring))
			return false;
	return json_is_array(rings) && show_umem(json_object_get(data, "umem"));
}
