#!/usr/bin/env bash
# A guest whose ring is smaller than the burst (tests/tools/overload.c): a source that leaves its frames
# queued until there is room, ours, and one that takes them and drops what does not fit, DPDK's net_vhost +
# net_tap, in alternation. Bursts that the tap has room for, then a flood that it has not.
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=bench/circle.sh
. "$(dirname "$0")/circle.sh"

RING=32
BURST=400 # frames: less than a tap's queue
N_BURSTS=250
FLOOD=1000000
ROUNDS=3

usage()
{
	cat <<USAGE
usage: ${0##*/} [--rounds=N] [--flood=N]
  --rounds=N  (default $ROUNDS)
  --flood=N   frames of it (default $FLOOD)
USAGE
}

parse_options()
{
	local option
	for option in "$@"; do
		case $option in
		--rounds=[1-9]*) ROUNDS=${option#*=} ;;
		--flood=[1-9]*) FLOOD=${option#*=} ;;
		--help) usage && exit 0 ;;
		*) usage >&2 && exit 2 ;;
		esac
	done
}

# Print how many frames the tap had no room for.
dropped_by_tap()
{
	in_netns cat "/sys/class/net/$NEAR/statistics/tx_dropped"
}

# Print the memory of the backend's own that is resident, in KiB. DPDK's packets lie in huge pages.
memory_kib()
{
	awk '$1 == "RssAnon:" { print $2 }' "/proc/$(backend_pid "$1")/status"
}

# $1: ours or peer; $2: burst; $3: number of bursts. Prints a row.
overload()
{
	local before dropped sent arrived kib
	kib=$(memory_kib "$1")
	before=$(dropped_by_tap)
	read -r sent arrived < <(in_netns taskset -c "$FRONTEND_CORE" \
		"$VUX_ROOT/build/release/tests/overload" "$SOCK" "$NEAR" "$RING" "$2" "$3") ||
		die "the guest failed with $1 as backend"
	dropped=$(($(dropped_by_tap) - before))
	printf '%-8s %9d %9d %9d %9d %12d %12d %12d\n' "$1" "$2" "$sent" "$arrived" "$dropped" \
		$((sent - arrived - dropped)) "$kib" "$(memory_kib "$1")"
}

measure_backend()
{
	"start_tap_$1"
	in_netns ip link set "$NEAR" up
	overload "$1" "$BURST" "$N_BURSTS"
	overload "$1" "$FLOOD" 1
	stop_backend
	in_netns ip link del "$NEAR" 2>/dev/null || true
}

parse_options "$@"
bench_prepare
printf 'a ring of %s; frames sent while the guest does not look at it\n' "$RING"
printf '%-8s %9s %9s %9s %9s %12s %12s %12s\n' backend burst sent arrived "lost by" "lost by" memory "memory"
printf '%-8s %9s %9s %9s %9s %12s %12s %12s\n' "" "" "" "" "the tap" "the backend" "before, KiB" "after, KiB"
for ((round = 1; round <= ROUNDS; round++)); do
	measure_backend ours
	measure_backend peer
done
