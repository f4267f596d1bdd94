#!/usr/bin/env bash
# What traffic costs in kicks, calls, system calls and wake-ups: port tap, and a guest whose driver sleeps
# between calls (tests/vguest), at several rates of 64-byte frames, towards the guest and from it.
# More arguments of the form --set=KEY=VALUE are for the daemon.
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"

RATES="0 1000 10000 100000 1000000" # frames a second; the last is more than there can be
SECONDS_EACH=3

make_guest()
{
	GUEST_NETNS=$NETNS-guest
	ip netns add "$GUEST_NETNS"
	on_exit ip netns del "$GUEST_NETNS"
	ip netns exec "$GUEST_NETNS" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	start_process "$WORK/guest.log" ip netns exec "$GUEST_NETNS" taskset -c 1 \
		"$VUX_ROOT/build/release/tests/vguest" --socket-path="$SOCK" --tap=eth0
	wait_for 5 file_has "$WORK/guest.log" ready || die "the guest does not start"
	ip -n "$GUEST_NETNS" link set eth0 up
	in_netns ip link set vm0 up
}

# Print the counters that the table needs, in one line.
take_counters()
{
	ctl stats --json |
		jq -r '.total | [.rx_packets + .tx_packets, .kicks, .calls, .wakeups] | @tsv'
}

# $1: towards or from; $2: frames a second. Prints a row.
measure_rate()
{
	local burst=1 generator=(ip netns exec "$NETNS" taskset -c 1 python3 "$VUX_ROOT/bench/pace.py" vm0)
	local before after calls
	(($2 < 50000)) || burst=16
	[[ $1 == towards ]] ||
		generator=(ip netns exec "$GUEST_NETNS" taskset -c 1 python3 "$VUX_ROOT/bench/pace.py" eth0)
	STARTED=
	(($2 == 0)) || start_process "$WORK/pace.log" "${generator[@]}" "$2" "$burst"
	sleep 1
	before=$(take_counters)
	calls=$(perf stat -x, -e raw_syscalls:sys_enter -p "$DAEMON_PID" sleep "$SECONDS_EACH" 2>&1 |
		awk -F, '/raw_syscalls/ { print $1 + 0 }')
	after=$(take_counters)
	[[ -z $STARTED ]] || stop_process "$STARTED"
	# Reading the counters is the control thread's work, and not counted among the wake-ups.
	awk -v way="$1" -v wanted="$2" -v seconds="$SECONDS_EACH" -v calls="$calls" '
	{ if (NR == 1) split($0, a); else split($0, b) }
	function per_frame(n) { return frames > 0 ? sprintf("%.3f", n / frames) : "-" }
	END {
		frames = b[1] - a[1]
		printf "%-9s %9d %9d %9s %9s %9s %10.0f\n", way, wanted, frames / seconds,
			per_frame(b[2] - a[2]), per_frame(b[3] - a[3]), per_frame(calls),
			(b[4] - a[4]) / seconds
	}' <<<"$before"$'\n'"$after"
}

bench_parse_options "$@"
need_root "namespaces and taps"
install_packages build guest bench
[[ -n ${VUX_DAEMON:-} ]] || build_preset release
make_work_dir
make_netns
make_tap vm0 ""
DAEMON_PREFIX=(taskset -c 0)
daemon_start --port=tap:vm0 "${DAEMON_OPTIONS[@]}"
make_guest
printf '%-9s %9s %9s %9s %9s %9s %10s\n' "" wanted frames/s kicks calls "sys calls" wake-ups/s
printf '%-9s %9s %9s %9s %9s %9s\n' "" "" "" "/frame" "/frame" "/frame"
for way in towards from; do
	for rate in $RATES; do
		measure_rate "$way" "$rate"
	done
done
