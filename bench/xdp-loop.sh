#!/usr/bin/env bash
# Port xdp against DPDK's net_vhost + net_af_xdp: 64-byte frames that circle in both directions
# (circle.sh), one core each for the frontend and the backend.
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=bench/circle.sh
. "$(dirname "$0")/circle.sh"

measure_circle()
{
	start_circle xdp "$1"
	measure_rates Tx-pps Rx-pps
	stop_circle
}

bench_parse_options "$@"
bench_prepare
compare "xdp loop" measure_circle from-guest towards-guest
