#!/usr/bin/env bash
# Two queue pairs, a guest with two CPUs, and a tap with two queues.
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

GUEST_CPUS=2

guest_boots()
{
	guest_start "$SOCK" 2 && ping_resumes 5
}

# The current number of the guest's queue pairs.
guest_queues()
{
	guest_run ethtool -l eth0 | awk '/^Combined:/ { n = $2 } END { print n }'
}

guest_uses_both_queues()
{
	same 2 "$(guest_queues)" "the guest's queue pairs"
}

# Streams enough that each queue gets some: options "$@" of iperf3's, counter $1.
both_queues_carry()
{
	local counter=$1 queue before=()
	shift
	for queue in 0 1; do
		before+=("$(counter "$counter" "$queue")")
	done
	tcp_flows -P 8 "$@" || return 1
	for queue in 0 1; do
		at_least $(($(counter "$counter" "$queue") - before[queue])) 10 "$counter of queue $queue" ||
			return 1
	done
}

# With one pair enabled every flow is served by it, whatever the tap's hash says.
works_with_one_pair()
{
	guest_run ethtool -L eth0 combined 1 && ping_guest_steadily && tcp_flows -P 8 &&
		tcp_flows -P 8 -R && same 1 "$(guest_queues)"
}

works_with_two_pairs_again()
{
	guest_run ethtool -L eth0 combined 2 && ping_guest_steadily &&
		both_queues_carry rx_packets && both_queues_carry tx_packets -R
}

! has_thread_sanitizer || skip_all "$TSAN_IS_BLIND"
qemu_prepare multi_queue
require "the daemon starts" daemon_start --port="tap:$TAP" --queue-pairs=2
require "the guest boots with two queue pairs" guest_boots
check "the guest uses both" guest_uses_both_queues
check "both queues carry TCP to the guest" both_queues_carry rx_packets
check "both queues carry TCP from the guest" both_queues_carry tx_packets -R
check "UDP in several streams" udp_flows -P 4
check "the guest turns to one pair" works_with_one_pair
check "the guest turns to two pairs again" works_with_two_pairs_again
check "the daemon is killed: pings resume within 3 s" survives_kill
check "both queues carry TCP to the guest after that" both_queues_carry rx_packets
check "both queues carry TCP from the guest after that" both_queues_carry tx_packets -R
finish
