#!/usr/bin/env bash
# Shows vhost-user-xdp at work: installs what is missing, builds, boots a Linux guest in QEMU with the
# daemon as its network card, pings it, measures TCP both ways, and takes everything away again.
# usage: demo.sh [tap|xdp]
#   tap  the network behind the daemon: a tap in a namespace of its own (default)
#   xdp  a veth pair in a namespace of its own, and AF_XDP on one end
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/support/guest.sh
. "$VUX_ROOT/tests/support/guest.sh"

GUEST_IP=10.77.0.2
HOST_IP=10.77.0.1
export GUEST_ADDRESS=$GUEST_IP/24
SECONDS_EACH=5
COUNTERS=(rx_packets rx_batches tx_packets tx_batches calls wakeups)

parse_options()
{
	NETWORK=${1:-tap}
	case $NETWORK in
	tap | xdp) ;;
	--help) sed -n '2,6s/^# //p' "$0" && exit 0 ;;
	*) say "usage: ${0##*/} [tap|xdp]" && exit 2 ;;
	esac
}

start_everything()
{
	make_work_dir
	make_netns
	make_network "$NETWORK" "$HOST_IP/24"
	say "starting the daemon"
	daemon_start --port="$PORT"
	cat "$DAEMON_LOG" >&2
	say "booting the guest"
	guest_start "$SOCK" 1
	wait_for 10 ping_guest -c 1 -W 1 >/dev/null || die "the guest does not answer pings"
}

ping_guest()
{
	in_netns ping -q "$@" "$GUEST_IP"
}

# --- a phase: something happens, and the counters move ---

read_counters()
{
	ctl stats --json | jq -r "[.total | $(printf '.%s,' "${COUNTERS[@]}") 0] | @tsv"
}

# Run the phase named $1: the command "${@:2}" prints its figure. Prints a row of the table.
run_phase()
{
	local name=$1 before figure
	shift
	before=$(read_counters)
	figure=$("$@") || die "$name failed"
	printf '%s\n%s\n' "$before" "$(read_counters)" | awk -v name="$name" -v figure="$figure" '
	function per(packets, batches) { return batches ? sprintf("%.1f", packets / batches) : "-" }
	NR == 1 { for (i = 1; i <= NF; i++) before[i] = $i; next }
	{
		for (i = 1; i <= NF; i++) n[i] = $i - before[i]
		printf "%-18s %14s %10d %9s %10d %9s %10d %8d\n", name, figure, n[1], per(n[1], n[2]),
			n[3], per(n[3], n[4]), n[5], n[6]
	}'
}

print_header()
{
	printf '\n%-18s %14s %20s %20s\n' "" "" "towards the guest" "from the guest"
	printf '%-18s %14s %10s %9s %10s %9s %10s %8s\n' phase result packets "per batch" packets \
		"per batch" interrupts wake-ups
}

measure_ping()
{
	ping_guest -c 50 -i 0.05 | awk -F '[/ ]' '/^rtt/ { print $8 " ms" }'
}

# Options "$@" are those of iperf3: "-R" when the guest sends.
measure_tcp()
{
	in_netns iperf3 -J -c "$GUEST_IP" -t "$SECONDS_EACH" "$@" >"$WORK/iperf.json"
	jq -r '.end.sum_received.bits_per_second / 1e6 | if . < 1000 then "\(. | round) Mbit/s"
		else "\(. / 10 | round / 100) Gbit/s" end' "$WORK/iperf.json"
}

parse_options "$@"
need_root "a namespace and interfaces"
install_packages build guest
[[ -n ${VUX_DAEMON:-} ]] || { say "building" && build_preset release; }
prepare_guest_image
start_everything
print_header
run_phase "ping" measure_ping
run_phase "TCP to the guest" measure_tcp
run_phase "TCP from the guest" measure_tcp -R
printf '\nThe guest ran under %s. Interrupts: calls to the guest. Wake-ups: of the worker from sleep.\n' \
	"${ACCEL^^}"
