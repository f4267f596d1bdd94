#!/usr/bin/env bash
# The MTU: configured, offered to a QEMU guest, and frames of that size in both directions.
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

HEADERS=28 # of IPv4 and ICMP in a ping

guest_boots_with_mtu()
{
	guest_start "$SOCK" 1 "host_mtu=$1" && ping_resumes 5 &&
		same "$1" "$(guest_run cat /sys/class/net/eth0/mtu)" "the guest's MTU"
}

# $1: the MTU; $2: a function that pings with the options behind it.
pings_fit_exactly()
{
	"$2" -M "do" -s $(($1 - HEADERS)) && ! "$2" -M "do" -s $(($1 - HEADERS + 1))
}

ping_host()
{
	guest_run /bin/ping -q -c 1 -W 2 "$@" "$HOST_IP"
}

check_mtu()
{
	local mtu=$1
	in_netns ip link set "$TAP" mtu "$mtu"
	require "MTU $mtu: the daemon starts" daemon_start --port="tap:$TAP" --set mtu="$mtu"
	check "MTU $mtu: the guest takes it over" guest_boots_with_mtu "$mtu"
	check "MTU $mtu: frames of this size reach the guest" pings_fit_exactly "$mtu" ping_guest
	check "MTU $mtu: frames of this size leave the guest" pings_fit_exactly "$mtu" ping_host
	check "MTU $mtu: TCP to the guest" tcp_flows
	check "MTU $mtu: TCP from the guest" tcp_flows -R
	guest_kill
	stop_process "$DAEMON_PID"
}

qemu_prepare
check_mtu 1400
check_mtu 9000
finish
