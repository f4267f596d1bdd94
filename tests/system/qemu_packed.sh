#!/usr/bin/env bash
# A Linux guest in QEMU whose virtqueues are packed: traffic, and all that interrupts it.
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
	guest_start "$SOCK" 1 packed=on "$@" && ping_resumes 5
}

rings_are_packed()
{
	ctl rings | tee "$WORK/rings"
	same 2 "$(grep -cE '^q0\.[rt]x +started +yes +packed ' "$WORK/rings")" "packed rings"
}

no_ring_errors()
{
	same 0 "$(counter tx_malformed)" tx_malformed && same 0 "$(counter ring_errors)" ring_errors
}

# $1: what the guest is like; further arguments: properties of QEMU's card. Ends with the guest running.
check_guest()
{
	local name=$1
	shift
	require "$name: the daemon starts" daemon_start --port="tap:$TAP"
	require "$name: the guest boots and answers pings" guest_boots "$@"
	check "$name: its rings are packed" rings_are_packed
	check "$name: TCP to the guest" tcp_flows
	check "$name: TCP from the guest" tcp_flows -R
	check "$name: UDP from the guest" udp_flows -R
	check "$name: no fault was counted" no_ring_errors
}

qemu_prepare
check_guest "no event index, nothing indirect" indirect_desc=off event_idx=off
check "no event index, nothing indirect: the daemon is killed" survives_kill
guest_kill
stop_process "$DAEMON_PID"
check_guest "packed"
check_life
finish
