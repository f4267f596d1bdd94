#!/usr/bin/env bash
# TCP between two kernels at native speed: tests/vguest as the guest on port tap, offloads on and off;
# every frame is accounted for, and a connection outlives the daemon.
set -euo pipefail
SUPPORT=$(dirname "$0")/../support
# shellcheck source=scripts/lib.sh
. "$SUPPORT/../../scripts/lib.sh"
# shellcheck source=tests/support/report.sh
. "$SUPPORT/report.sh"
IPERF_LENGTH=(-n "$(repeats "MB of each flow" 64 2000)M")
# shellcheck source=tests/support/traffic.sh
. "$SUPPORT/traffic.sh"
# shellcheck source=tests/support/vguest.sh
. "$SUPPORT/vguest.sh"

TAP=vm0

# The guest, with offloads "on" or "off", and iperf3's server in it.
guest_starts()
{
	in_netns ip neigh flush dev "$TAP" # the guest's address changes with its tap
	vguest_start vm "$SOCK" "$GUEST_IP/24" --offloads="$1" && ping_resumes 5 && {
		vguest_start_process vm "$WORK/iperf-server.log" iperf3 -s
		IPERF_PID=$STARTED
	}
}

guest_ends()
{
	stop_process "$IPERF_PID"
	kill -TERM "$(vguest_pid vm)"
	wait_for 2 is_gone "$(vguest_pid vm)" && wait "$(vguest_pid vm)"
}

# Whether the daemon, the guest's driver and the guest's kernel have seen the same number of frames.
counters_agree()
{
	[[ $(counter rx_packets) == "$(vguest_counter vm rx_packets)" &&
		$(counter tx_packets) == "$(vguest_counter vm tx_packets)" &&
		$(counter rx_bytes) == "$(guest_kernel_counts rx bytes)" &&
		$(counter tx_bytes) == "$(guest_kernel_counts tx bytes)" ]]
}

guest_kernel_counts()
{
	in_guest vm ip -j -s link show eth0 | jq ".[0].stats64.$1.$2"
}

nothing_is_lost()
{
	wait_for 3 counters_agree || {
		ctl stats
		tail -n 1 "$WORK/vm.vguest"
		in_guest vm ip -s link show eth0
		return 1
	}
	nothing_is_dropped && same 0 "$(vguest_counter vm rx_dropped)" "frames that the guest's tap refused"
}

# With offloads a frame is larger than the MTU, else it never is. $1: on or off; $2: rx or tx.
frames_are_as_large_as_they_should_be()
{
	local mean
	mean=$(($(counter "$2_bytes") / $(counter "$2_packets")))
	if [[ $1 == on ]]; then
		at_least "$mean" 3000 "$2 bytes per frame"
	else
		at_least 1514 "$mean" "MTU, $2 bytes per frame"
	fi
}

# One kind of flow, and its frames' sizes. $1: on or off; $2: rx or tx; others: options of iperf3's.
flow_passes()
{
	tcp_flows "${@:3}" && frames_are_as_large_as_they_should_be "$1" "$2"
}

new_daemon_carries_much()
{
	(($(counter rx_packets) > 1000))
}

# The daemon's counters begin with it: that they grow says that the connection of before goes on.
connection_outlives_the_daemon()
{
	local iperf status=0
	start_process "$WORK/iperf.log" timeout -k 1 20 ip netns exec "$NETNS" \
		iperf3 -c "$GUEST_IP" -t 2
	iperf=$STARTED
	wait_for 5 new_daemon_carries_much && daemon_kill && daemon_restart &&
		wait_for 5 new_daemon_carries_much || status=1
	wait "$iperf" || status=1
	((status == 0)) || cat "$WORK/iperf.log"
	return "$status"
}

nothing_is_dropped()
{
	same 0 $(($(counter rx_dropped) + $(counter tx_dropped))) "frames dropped by the daemon" &&
		same 0 "$(counter ring_errors)" ring_errors
}

check_life()
{
	check "a connection outlives the daemon" connection_outlives_the_daemon
	check "no frame is lost after that" nothing_is_dropped
}

# $1: offloads, on or off; further arguments: more checks of such a guest.
check_tcp()
{
	require "offloads $1: the daemon starts" daemon_start --port="tap:$TAP"
	require "offloads $1: the guest answers pings" guest_starts "$1"
	check "offloads $1: TCP to the guest" flow_passes "$1" rx
	check "offloads $1: TCP from the guest" flow_passes "$1" tx -R
	check "offloads $1: all frames are accounted for" nothing_is_lost
	[[ $# -eq 1 ]] || "${@:2}"
	check "offloads $1: the guest ends in good order" guest_ends
	check "offloads $1: the daemon ends in good order" daemon_stop
}

need_programs iperf3 ping jq ip
make_work_dir
make_netns
vguest_make_netns vm
make_tap "$TAP" "$HOST_IP/24"
check_tcp off
check_tcp on check_life
finish
