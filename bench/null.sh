#!/usr/bin/env bash
# Port null against DPDK's net_vhost: 64-byte frames over a ring of 256, split or packed, one core
# each for the frontend (testpmd, virtio-user) and the backend.
# usage: null.sh [--packed] [options of bench/lib.sh]
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"

# $1: the frontend's mode; $2: what to read there. The backend runs already.
measure_frontend()
{
	start_frontend "--vdev virtio_user0,path=$SOCK,queue_size=256,packed_vq=$PACKED" "$1"
	testpmd_run fe start >/dev/null
	measure_rates "$2"
	testpmd_stop fe
	stop_backend
}

# From the guest: the backend takes frames and drops them.
measure_tx()
{
	case $1 in
	ours) start_our_backend --port=null ;;
	peer) start_peer_backend "" --forward-mode=rxonly ;;
	esac
	measure_frontend txonly Tx-pps
}

# Towards the guest: the backend makes frames.
measure_rx()
{
	case $1 in
	ours) start_our_backend --port=null --set port.source-size=64 ;;
	peer) start_peer_backend "" --forward-mode=txonly ;;
	esac
	measure_frontend rxonly Rx-pps
}

PACKED=0
LAYOUT='split'
if [[ ${1:-} == --packed ]]; then
	PACKED=1
	LAYOUT=packed
	shift
fi
bench_parse_options "$@"
bench_prepare
compare "port null, $LAYOUT" measure_tx from-guest
compare "port null with a source, $LAYOUT" measure_rx towards-guest
draw_rounds "port null, $LAYOUT: 64-byte frames"
