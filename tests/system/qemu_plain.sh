#!/usr/bin/env bash
# Guests that do without: no offloads, no mergeable buffers, no indirect descriptors, no event index.
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

NO_OFFLOADS=(csum=off gso=off guest_csum=off guest_tso4=off guest_tso6=off guest_ecn=off guest_ufo=off
	host_tso4=off host_tso6=off host_ecn=off host_ufo=off)

guest_boots()
{
	guest_start "$SOCK" 1 "$@" && ping_resumes 5
}

# $1: what is missing; further arguments: properties of QEMU's card.
check_guest()
{
	local without=$1
	shift
	require "without $without: the daemon starts" daemon_start --port="tap:$TAP"
	check "without $without: the guest boots" guest_boots "$@"
	check "without $without: TCP to the guest" tcp_flows
	check "without $without: TCP from the guest" tcp_flows -R
	check "without $without: UDP to the guest" udp_flows
	check "without $without: UDP from the guest" udp_flows -R
	check "without $without: the daemon is killed" survives_kill
	guest_kill
	stop_process "$DAEMON_PID"
}

qemu_prepare
check_guest "offloads" "${NO_OFFLOADS[@]}"
check_guest "mergeable buffers" mrg_rxbuf=off
check_guest "indirect descriptors and event index" indirect_desc=off event_idx=off
check_guest "anything" "${NO_OFFLOADS[@]}" mrg_rxbuf=off indirect_desc=off event_idx=off
finish
