#!/usr/bin/env bash
# Port xdp against DPDK's net_vhost + net_af_xdp: 64-byte frames that circle in both directions
# (circle.sh), one core each for the frontend and the backend. With --busy-poll the interface is set up
# so that whoever reads its frames polls it; both backends then do.
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

if [[ ${1:-} == --busy-poll ]]; then
	IS_BUSY_POLL=1
	shift
fi
bench_parse_options "$@"
bench_prepare
compare "xdp loop${IS_BUSY_POLL:+, busy polling}" measure_circle from-guest towards-guest
draw_rounds "xdp loop${IS_BUSY_POLL:+, busy polling}: 64-byte frames"
