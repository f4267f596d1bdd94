#!/usr/bin/env bash
# How late a delayed call is at the driver's eventfd (tests/tools/lateness.c): with a daemon that sleeps
# before each frame, with one that is given a frame every 100 us, and with one whose core another process
# wants, too. To compare with, how late that core wakes from a timer without a daemon. All in alternation;
# the daemon has core 0, the driver, which looks all the time, core 1.
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"

USECS=(10 50 100 1000)
LOAD=10000 # frames a second
SAMPLES=1000
GOAL_US=50
ROUNDS=3

usage()
{
	cat <<USAGE
usage: ${0##*/} [--rounds=N] [--samples=N] [--goal=US]
  --rounds=N   (default $ROUNDS)
  --samples=N  calls for each line of a round (default $SAMPLES)
  --goal=US    fail where the median p99 of the idle daemon is above it (default $GOAL_US; 0: never)
USAGE
}

parse_options()
{
	local option
	for option in "$@"; do
		case $option in
		--rounds=[1-9]*) ROUNDS=${option#*=} ;;
		--samples=[1-9]*) SAMPLES=${option#*=} ;;
		--goal=[0-9]*) GOAL_US=${option#*=} ;;
		--help) usage && exit 0 ;;
		*) usage >&2 && exit 2 ;;
		esac
	done
}

# Something that wants the daemon's core: half a millisecond of every one.
start_neighbour()
{
	start_process "$WORK/neighbour" taskset -c "$BACKEND_CORE" python3 -c '
import time
while True:
    end = time.monotonic() + 0.0005
    while time.monotonic() < end:
        pass
    time.sleep(0.0005)'
}

# Print the figures. $1: core; others: arguments of lateness.
lateness()
{
	taskset -c "$1" "$VUX_ROOT/build/release/tests/lateness" "${@:2}"
}

# $1: timer, idle, load or neighbour; $2: usecs. Adds the figures to the results.
measure()
{
	local figures before rate=0
	[[ $1 != load ]] || rate=$LOAD
	[[ $1 != neighbour ]] || start_neighbour
	ctl coalesce tx-usecs="$2" tx-frames=1024 >/dev/null
	before=$(cpu_ns "$DAEMON_PID")
	case $1 in
	timer) figures=$(lateness "$BACKEND_CORE" - "$2" "$SAMPLES" 0) ;;
	*) figures=$(lateness "$FRONTEND_CORE" "$SOCK" "$2" "$SAMPLES" "$rate") ;;
	esac
	echo "$1 $2 $figures $(($(cpu_ns "$DAEMON_PID") - before))" >>"$WORK/results"
	[[ $1 != neighbour ]] || stop_process "$STARTED"
}

# Print a row for each daemon and delay. Return: 1 when the goal is missed.
print_table()
{
	printf '%-10s %6s %8s %8s %16s %9s %10s %9s %9s\n' "" usecs p50 p99 "" max "p99 from" left "processor"
	printf '%-10s %6s %8s %8s %16s %9s %10s %9s %9s\n' "" "" "" "" "" "" kick out "us/call"
	awk -v goal="$GOAL_US" -v samples="$SAMPLES" "$MEDIAN_AWK"'
	{
		key = $1 " " $2
		if (!(key in n)) keys[++n_keys] = key
		i = ++n[key]
		p50[key, i] = $3; p99[key, i] = $4; kick[key, i] = $6; left[key] += $7; cpu[key, i] = $8
		if (i == 1 || $5 > max[key]) max[key] = $5
	}
	END {
		for (k = 1; k <= n_keys; k++) {
			key = keys[k]
			split(key, part, " ")
			middle = median(p99, key, n[key])
			spread = "(" LOW ".." HIGH ")"
			printf "%-10s %6d %8.1f %8.1f %16s %9.1f %10.1f %9d %9.1f\n", part[1], part[2],
				median(p50, key, n[key]), middle, spread, max[key],
				median(kick, key, n[key]), left[key],
				median(cpu, key, n[key]) / samples / 1000
			if (part[1] == "idle" && goal > 0 && middle > goal) is_missed = 1
		}
		exit is_missed
	}' "$WORK/results"
}

parse_options "$@"
need_root "a namespace"
install_packages build
[[ -n ${VUX_DAEMON:-} ]] || build_preset release
make_work_dir
make_netns
start_our_backend --port=null
for ((round = 1; round <= ROUNDS; round++)); do
	for usecs in "${USECS[@]}"; do
		for daemon in timer idle load neighbour; do
			measure "$daemon" "$usecs"
		done
	done
done
printf '%s rounds of %s calls; microseconds after the end of the delay\n' "$ROUNDS" "$SAMPLES"
print_table || die "later than $GOAL_US us"
