#!/usr/bin/env bash
# Resident memory of the daemon beyond the guest's RAM: one queue pair on a tap, while frames circle
# (circle.sh). The guest's memory is shared (RssShmem, huge pages) and not counted.
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=bench/circle.sh
. "$(dirname "$0")/circle.sh"

LIMIT_KB=$((24 * 1024))

# Print the value of a line of a file below /proc/PID, in KiB.
read_kb()
{
	awk -v name="$2:" '$1 == name { print $2 }' "/proc/$DAEMON_PID/$1"
}

measure_memory()
{
	local anon file
	anon=$(read_kb status RssAnon)
	file=$(read_kb status RssFile)
	printf '%-44s %8s\n' "resident memory" KiB
	printf '%-44s %8d\n' "anonymous (RssAnon)" "$anon" "files (RssFile)" "$file" \
		"sum, limit $LIMIT_KB" $((anon + file)) \
		"proportional: anonymous (Pss_Anon)" "$(read_kb smaps_rollup Pss_Anon)" \
		"proportional: files (Pss_File)" "$(read_kb smaps_rollup Pss_File)" \
		"guest memory, not counted (RssShmem)" "$(read_kb status RssShmem)"
	((anon + file <= LIMIT_KB))
}

bench_parse_options "$@"
bench_prepare
start_circle tap ours
measure_rates Tx-pps Rx-pps
printf 'one queue pair, %s frames/s from and %s towards the guest\n' "${RATES[@]}"
measure_memory || die "more than $LIMIT_KB KiB"
stop_circle
