#!/usr/bin/env bash
# A Linux guest in QEMU on port tap: traffic, and all that interrupts it. One boot serves all checks.
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

IDLE_SECONDS=$(repeats "seconds without a wake-up" 3 10)

guest_boots()
{
	guest_start "$SOCK" 1 && ping_resumes 5
}

# From empty ones to those that travel in many fragments.
pings_of_all_sizes()
{
	local size
	for size in 0 1 17 56 512 1472 1473 8000 60000; do
		ping_guest -s "$size" || return 1
	done
	ping_guest_steadily
}

# The guest's TCP leaves in segments larger than the MTU, and arrives so: offloads are on.
segments_stay_whole()
{
	local packets bytes
	packets=$(counter "$1_packets")
	bytes=$(counter "$1_bytes")
	tcp_flows "${@:2}" || return 1
	packets=$(($(counter "$1_packets") - packets))
	bytes=$(($(counter "$1_bytes") - bytes))
	at_least $((bytes / packets)) 3000 "bytes per frame"
}

nothing_was_dropped()
{
	same 0 "$(counter tx_malformed)" tx_malformed && same 0 "$(counter ring_errors)" ring_errors &&
		same 0 "$(counter rx_dropped)" rx_dropped
}

# A neighbour entry is checked some seconds after traffic: the guest needs a while to fall silent.
nobody_wakes_when_idle()
{
	local before
	in_netns ip neigh replace "$GUEST_IP" lladdr "$(guest_run cat /sys/class/net/eth0/address)" \
		dev "$TAP" nud permanent
	guest_run "arp -s $HOST_IP $(in_netns cat "/sys/class/net/$TAP/address")" || return 1
	sleep 1
	before=$(count_sleeps "$DAEMON_PID")
	sleep "$IDLE_SECONDS"
	same "$before" "$(count_sleeps "$DAEMON_PID")" "sleeps of all threads in $IDLE_SECONDS s"
}

qemu_prepare
require "the daemon starts" daemon_start --port="tap:$TAP"
require "the guest boots and answers pings" guest_boots
check "pings of all sizes are answered" pings_of_all_sizes
check "TCP to the guest" tcp_flows
check "TCP from the guest" tcp_flows -R
check "TCP in several streams to the guest" tcp_flows -P 4
check "TCP in several streams from the guest" tcp_flows -P 4 -R
check "UDP to the guest" udp_flows
check "UDP from the guest" udp_flows -R
check "large segments reach the guest whole" segments_stay_whole rx
check "large segments leave the guest whole" segments_stay_whole tx -R
check "no fault was counted" nothing_was_dropped
if has_thread_sanitizer; then
	skip "an idle guest wakes no thread" "ThreadSanitizer has a thread of its own"
else
	check "an idle guest wakes no thread" nobody_wakes_when_idle
fi
check_life
finish
