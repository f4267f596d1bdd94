#!/usr/bin/env bash
# Processor time of port xdp and of DPDK's net_vhost + net_af_xdp at a tenth of the frames that circle
# through ours at full speed (xdp-loop.sh): they go to the guest (testpmd, virtio-user) and come back from
# it. And how often our threads wake while nothing happens.
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=bench/circle.sh
. "$(dirname "$0")/circle.sh"

IDLE_SECONDS=10

# Set RATE to a tenth of full speed.
find_rate()
{
	start_circle xdp ours
	measure_rates Rx-pps
	stop_circle
	RATE=$((RATES[0] / 10))
	printf 'a tenth of full speed: %d frames/s\n' "$RATE"
}

# $1: ours or peer. Prints a row.
measure_load()
{
	local far=loop1 pid ns frames
	make_silent_veth "$far"
	"start_xdp_$1"
	start_frontend "--vdev virtio_user0,path=$SOCK,queue_size=256" macswap
	testpmd_run fe start >/dev/null
	start_process "$WORK/pace.log" ip netns exec "$NETNS" taskset -c "$FRONTEND_CORE" \
		python3 "$VUX_ROOT/bench/pace.py" "$far" "$RATE"
	sleep 1
	pid=$(backend_pid "$1")
	frames=$(testpmd_counter fe 0 TX-packets)
	ns=$(cpu_ns "$pid")
	sleep "$SECONDS_EACH"
	ns=$(($(cpu_ns "$pid") - ns))
	frames=$(($(testpmd_counter fe 0 TX-packets) - frames))
	printf '%-6s %12d %11.1f%%\n' "$1" $((frames / SECONDS_EACH)) \
		"$(awk "BEGIN { print $ns / 1e7 / $SECONDS_EACH }")"
	stop_process "$STARTED"
	stop_circle
}

measure_idle()
{
	local before
	make_silent_veth loop1
	start_xdp_ours
	start_frontend "--vdev virtio_user0,path=$SOCK,queue_size=256" io
	testpmd_run fe start >/dev/null
	sleep 1
	before=$(count_sleeps "$DAEMON_PID")
	sleep "$IDLE_SECONDS"
	printf 'wake-ups of all our threads in %s idle seconds: %d\n' "$IDLE_SECONDS" \
		$(($(count_sleeps "$DAEMON_PID") - before))
	stop_circle
}

bench_parse_options "$@"
bench_prepare
find_rate
printf '%-6s %12s %12s\n' backend "frames/s" "processor"
for ((round = 1; round <= ROUNDS; round++)); do
	measure_load ours
	measure_load peer
done
measure_idle
