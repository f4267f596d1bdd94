#!/usr/bin/env bash
# What traffic costs in kicks, calls, system calls, wake-ups and processor time: port tap, and DPDK's
# net_vhost + net_tap in alternation; the guest is one whose driver sleeps between calls (tests/vguest).
# 64-byte frames towards the guest and from it at several rates. All is counted at the guest, or by the
# kernel, and the same way for both. The backend has core 0, guest and sender share core 1.
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=bench/circle.sh
. "$(dirname "$0")/circle.sh"
# shellcheck source=tests/support/vguest.sh
. "$VUX_ROOT/tests/support/vguest.sh"

FRAME_RATES=(0 1000 10000 100000 1000000) # frames a second; the last is more than there can be
SECONDS_EACH=3
ROUNDS=3
PEER_IS_TIED=1

# A backend, $1: ours or peer, with a guest.
start_pair()
{
	"start_tap_$1"
	in_netns ip link set "$NEAR" up
	VGUEST_PREFIX=(taskset -c "$FRONTEND_CORE")
	vguest_start vm "$SOCK" 10.77.0.2/24
}

guest_has_received()
{
	(($(vguest_counter vm rx_packets) > 0))
}

# A first frame to the guest: until then net_tap reads its tap whenever it looks, and later only after a
# signal. Both backends are given it.
begin_traffic()
{
	start_sender towards 1000
	wait_for 5 guest_has_received || die "no frame comes to the guest"
	stop_process "$STARTED"
}

stop_pair()
{
	vguest_stop vm
	stop_backend
	in_netns ip link del "$NEAR" 2>/dev/null || true
}

# Start the sender of $2 frames a second. $1: towards or from. STARTED is its pid, or empty.
start_sender()
{
	local burst=1 pace=(taskset -c "$FRONTEND_CORE" python3 "$VUX_ROOT/bench/pace.py")
	(($2 < 50000)) || burst=16
	STARTED=
	(($2 > 0)) || return 0
	case $1 in
	towards) start_process "$WORK/pace.log" ip netns exec "$NETNS" "${pace[@]}" "$NEAR" "$2" "$burst" ;;
	from) vguest_start_process vm "$WORK/pace.log" "${pace[@]}" eth0 "$2" "$burst" ;;
	esac
}

# Print in one line: frames, kicks and calls, as the guest counts them; wake-ups and processor time of the
# process $1; and the time, in us.
take_counters()
{
	echo "$(vguest_counter vm 'rx_packets + .tx_packets, .kicks, .calls' | xargs)" \
		"$(count_sleeps "$1") $(cpu_ns "$1") $(now_us)"
}

# Print how many system calls the process $1 makes in the time of measurement.
count_system_calls()
{
	perf stat -x, -e raw_syscalls:sys_enter -p "$1" sleep "$SECONDS_EACH" 2>&1 |
		awk -F, '/raw_syscalls/ { print $1 + 0 }'
}

# $1: ours or peer; $2: towards or from; $3: frames a second. Adds a line to the results.
measure_rate()
{
	local pid before calls
	start_pair "$1"
	pid=$(backend_pid "$1")
	begin_traffic
	start_sender "$2" "$3"
	sleep 1
	before=$(take_counters "$pid")
	calls=$(count_system_calls "$pid")
	echo "$1 $2 $3 $before $(take_counters "$pid") $calls" >>"$WORK/results"
	[[ -z $STARTED ]] || stop_process "$STARTED"
	stop_pair
}

print_table()
{
	printf '%-7s %-7s %8s %9s %7s %7s %9s %11s %10s %9s\n' "" backend wanted frames/s kicks calls "sys calls" \
		"sys calls/s" wake-ups/s processor
	printf '%-7s %-7s %8s %9s %7s %7s %9s\n' "" "" "" "" /frame /frame /frame
	awk -v seconds="$SECONDS_EACH" -v POINTS="$WORK/points.csv" "$MEDIAN_AWK"'
	function add(column, x) { value[key "," column, n[key]] = x }
	function middle(column) { return median(value, key "," column, n[key]) }
	function per_frame(column) { return middle("frames") > 0 ? sprintf("%.3f", middle(column)) : "-" }
	{
		key = $2 " " $1 " " $3
		if (!(key in n)) keys[++n_keys] = key
		n[key]++
		frames = $10 - $4
		elapsed = ($15 - $9) / 1e6 # longer than the time in which system calls are counted
		add("frames", frames / elapsed)
		add("kicks", frames ? ($11 - $5) / frames : 0)
		add("calls", frames ? ($12 - $6) / frames : 0)
		add("sys", frames ? $16 / seconds / (frames / elapsed) : 0)
		add("sys/s", $16 / seconds)
		add("wakeups", ($13 - $7) / elapsed)
		add("cpu", ($14 - $8) / elapsed / 1e7)
	}
	END {
		for (k = 1; k <= n_keys; k++) {
			key = keys[k]
			split(key, part, " ")
			printf "%s %s,%d,%.2f\n", part[2] == "peer" ? "DPDK" : "ours", part[1], part[3] > 1 ? part[3] : 1,
				middle("cpu") >POINTS
			printf "%-7s %-7s %8d %9d %7s %7s %9s %11.0f %10.0f %8.1f%%\n", part[1], part[2], part[3],
				middle("frames"), per_frame("kicks"), per_frame("calls"),
				per_frame("sys"), middle("sys/s"), middle("wakeups"), middle("cpu")
		}
	}' "$WORK/results"
}

bench_parse_options "$@"
install_packages bench
bench_prepare
vguest_make_netns vm
for ((round = 1; round <= ROUNDS; round++)); do
	say "round $round"
	for way in towards from; do
		for rate in "${FRAME_RATES[@]}"; do
			measure_rate ours "$way" "$rate"
			measure_rate peer "$way" "$rate"
		done
	done
done
printf 'medians of %s rounds of %s s\n' "$ROUNDS" "$SECONDS_EACH"
print_table
draw_points "what traffic costs: port tap, and DPDK's net_tap" "frames a second that are wanted (1: none)" \
	"processor, percent" --log-x
