#!/usr/bin/env bash
# DPDK's virtio-user and the daemon lose one another and meet again, with either as the server.
set -euo pipefail
SUPPORT=$(dirname "$0")/../support
# shellcheck source=scripts/lib.sh
. "$SUPPORT/../../scripts/lib.sh"
# shellcheck source=tests/support/dpdk.sh
. "$SUPPORT/dpdk.sh"
# shellcheck source=tests/support/report.sh
. "$SUPPORT/report.sh"

REPEATS=$(repeats "frontends that come and go" 5 20)

# $1: further properties of virtio-user. PACKED: 1 for packed rings.
frontend_start()
{
	testpmd_start fe 1 "--vdev virtio_user0,path=$SOCK,queue_size=256,packed_vq=${PACKED:-0}$1" \
		--forward-mode=txonly && testpmd_run fe start >/dev/null
}

# Frames leave the guest at once: the counter moves.
frames_arrive()
{
	local before
	before=$(counter tx_packets)
	(($(counter tx_packets) > before))
}

frames_arrive_within()
{
	wait_for "$1" frames_arrive || {
		echo "the daemon has taken $(counter tx_packets) frames, and no more come"
		return 1
	}
}

# --- the daemon listens ---

frontend_comes_back()
{
	testpmd_stop fe && frontend_start "" && frames_arrive_within 3
}

frontend_is_killed()
{
	kill -KILL "$(testpmd_pid fe)" && frontend_comes_back
}

many_frontends()
{
	local i
	for ((i = 0; i < REPEATS; i++)); do
		frontend_comes_back || return 1
	done
}

# --- the frontend listens ---

daemon_connects()
{
	daemon_start --client --port=null && frontend_start ",server=1" && frames_arrive_within 5
}

daemon_comes_back()
{
	daemon_restart && frames_arrive_within 5
}

daemon_is_killed()
{
	daemon_kill && daemon_comes_back
}

daemon_is_stopped()
{
	daemon_stop && daemon_comes_back
}

# The same daemon finds the next frontend at the path.
next_frontend_is_found()
{
	testpmd_stop fe && frontend_start ",server=1" && frames_arrive_within 5
}

need_programs dpdk-testpmd jq ip
make_work_dir
make_netns
prepare_hugepages || skip_all "no $HUGEPAGES huge pages of 2 MiB"
require "the daemon starts" daemon_start --port=null
check "a frontend connects" frontend_start ""
check "frames flow" frames_arrive_within 3
check "the frontend goes and comes back" frontend_comes_back
check "the frontend is killed and comes back" frontend_is_killed
check "frontends come and go, $REPEATS times" many_frontends
testpmd_stop fe
check "the daemon ends in good order" daemon_stop
for PACKED in 0 1; do
	layout=$( ((PACKED)) && echo packed || echo split)
	check "$layout: the daemon connects to a frontend" daemon_connects
	check "$layout: the daemon is killed and connects again" daemon_is_killed
	check "$layout: the daemon is restarted and connects again" daemon_is_stopped
	check "$layout: the daemon finds the next frontend" next_frontend_is_found
	testpmd_stop fe
	check "$layout: the daemon ends in good order" daemon_stop
done
finish
