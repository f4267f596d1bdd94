#!/usr/bin/env bash
# Port tap against DPDK's net_vhost + net_tap: 64-byte frames that circle in both directions
# (circle.sh), one core each for the frontend and the backend.
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=bench/circle.sh
. "$(dirname "$0")/circle.sh"

measure_circle()
{
	start_circle tap "$1"
	measure_rates Tx-pps Rx-pps
	stop_circle
}

bench_parse_options "$@"
bench_prepare
compare "tap loop" measure_circle from-guest towards-guest
draw_rounds "tap loop: 64-byte frames"
