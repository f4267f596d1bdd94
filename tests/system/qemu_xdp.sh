#!/usr/bin/env bash
# A Linux guest in QEMU on port xdp, over a veth pair: traffic, and what interrupts it, with the XDP
# program in the driver and in the network stack.
set -euo pipefail
SUPPORT=$(dirname "$0")/../support
# shellcheck source=scripts/lib.sh
. "$SUPPORT/../../scripts/lib.sh"
# shellcheck source=tests/support/guest.sh
. "$SUPPORT/guest.sh"
# shellcheck source=tests/support/report.sh
. "$SUPPORT/report.sh"
# shellcheck source=tests/support/qemu.sh
. "$SUPPORT/qemu.sh"

guest_boots()
{
	guest_start "$SOCK" 1 && ping_resumes 5
}

pings_of_all_sizes()
{
	local size
	for size in 0 1 17 56 512 1472 1473 8000; do
		ping_guest -s "$size" || return 1
	done
	ping_guest_steadily
}

nothing_was_dropped()
{
	same 0 "$(counter tx_malformed)" tx_malformed && same 0 "$(counter ring_errors)" ring_errors
}

interface_goes_down_and_up()
{
	in_netns ip link set vm0 down && ! ping_guest && in_netns ip link set vm0 up && ping_resumes 3
}

guest_reboots()
{
	guest_reboot && ping_resumes 5 && tcp_flows
}

# $1: native or generic. The same guest, with the daemon started anew.
check_mode()
{
	require "$1: the daemon starts" daemon_start --port="$PORT" --set port.mode="$1"
	if [[ $1 == native ]]; then
		require "$1: the guest boots and answers pings" guest_boots
	else
		require "$1: pings resume" ping_resumes 5
	fi
	check "$1: pings of all sizes are answered" pings_of_all_sizes
	check "$1: TCP to the guest" tcp_flows
	check "$1: TCP from the guest" tcp_flows -R
	check "$1: UDP to the guest" udp_flows
	check "$1: UDP from the guest" udp_flows -R
	check "$1: no fault was counted" nothing_was_dropped
	check "$1: frames are conserved" frames_are_conserved
}

qemu_prepare_port xdp
check_mode native
check "the interface goes down and up" interface_goes_down_and_up
check "the daemon is killed: pings resume within 3 s" survives_kill
check "the guest reboots" guest_reboots
check "frames are conserved after that" frames_are_conserved
check "the daemon ends in good order" daemon_stop
check_mode generic
check "the daemon ends in good order again" daemon_stop
finish
