#!/usr/bin/env bash
# Port xdp against DPDK's net_vhost + net_af_xdp, in one direction: the guest (testpmd, virtio-user) sends
# 64-byte frames as fast as the backend takes them, and what arrives at the far end of the veth pair is
# counted. Nobody reads there, so the backend's core is the limit.
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=bench/circle.sh
. "$(dirname "$0")/circle.sh"

FAR=loop1

count_arrived()
{
	in_netns ip -s -j link show dev "$FAR" | jq '.[0].stats64.rx.packets'
}

measure_arrivals()
{
	local before
	make_silent_veth "$FAR"
	"start_xdp_$1"
	start_frontend "--vdev virtio_user0,path=$SOCK,queue_size=256" txonly
	testpmd_run fe start >/dev/null
	sleep 1
	before=$(count_arrived)
	sleep "$SECONDS_EACH"
	RATES=($((($(count_arrived) - before) / SECONDS_EACH)))
	stop_circle
}

bench_parse_options "$@"
bench_prepare
compare "xdp send" measure_arrivals from-guest
draw_rounds "xdp send: 64-byte frames"
