#!/usr/bin/env bash
# DPDK's virtio-user driver on the ports null, loopback, tap and xdp, with several feature sets: frames
# flow, and not one is unaccounted for (both sides' counters agree).
set -euo pipefail
SUPPORT=$(dirname "$0")/../support
# shellcheck source=scripts/lib.sh
. "$SUPPORT/../../scripts/lib.sh"
# shellcheck source=tests/support/dpdk.sh
. "$SUPPORT/dpdk.sh"
# shellcheck source=tests/support/report.sh
. "$SUPPORT/report.sh"

TAP=vm0
FAR=host0 # the other end, where it is a veth pair
FLOW_SECONDS=$(repeats "seconds of traffic" 0.5 5)

# --- a frontend and its counters ---

# $1: properties of virtio-user; $2: forwarding mode; $3: further devices. PACKED: 1 for packed rings.
frontend_start()
{
	local queues=1
	[[ $1 != *queues=2* ]] || queues=2
	testpmd_start fe 1 "--vdev virtio_user0,path=$SOCK,packed_vq=${PACKED:-0},$1 ${3:-}" \
		"--forward-mode=$2 --rxq=$queues --txq=$queues"
}

# Let frames flow for a while. $1: "tx_first" to begin with some of the frontend's.
frames_flow()
{
	testpmd_run fe start ${1:+"$@"} && sleep "$FLOW_SECONDS" && testpmd_run fe stop
}

# The daemon has looked at everything that the frontend sent.
tx_is_accounted()
{
	local sent
	sent=$(testpmd_counter fe 0 TX-packets)
	(($(counter tx_packets) + $(counter tx_dropped) == sent))
}

# What the frontend sent is what the daemon took, or soon will be; $1 frames at least.
tx_adds_up()
{
	wait_for 3 tx_is_accounted || {
		echo "the frontend sent $(testpmd_counter fe 0 TX-packets), the daemon took" \
			"$(counter tx_packets) and dropped $(counter tx_dropped)"
		return 1
	}
	at_least "$(counter tx_packets)" "$1" "frames from the guest" &&
		same 0 "$(counter tx_dropped)" tx_dropped
}

# What the daemon delivered is what the frontend received, but for what is in its rings: at most $2.
# At least $1 frames.
rx_adds_up()
{
	local delivered received
	delivered=$(counter rx_packets)
	received=$(testpmd_counter fe 0 RX-packets)
	at_least "$received" "$1" "frames to the guest" &&
		at_least "$delivered" "$received" "delivered, received" &&
		at_least $((received + $2)) "$delivered" "received with full rings, delivered"
}

# What was read from the tap is in the guest's rings.
tap_is_accounted()
{
	(($(in_netns ip -j -s link show "$TAP" | jq '.[0].stats64.tx.packets') ==
		$(counter rx_packets) + $(counter rx_dropped)))
}

tap_adds_up()
{
	wait_for 3 tap_is_accounted || {
		in_netns ip -s link show "$TAP"
		echo "delivered: $(counter rx_packets), dropped: $(counter rx_dropped)"
		return 1
	}
}

no_ring_errors()
{
	same 0 "$(counter ring_errors)" ring_errors && same 0 "$(counter tx_malformed)" tx_malformed
}

# --- one check for each port; $1: properties of virtio-user; $2: entries of all receive rings ---

null_takes_all()
{
	daemon_start --port=null --queue-pairs=2 && frontend_start "$1" txonly && frames_flow &&
		tx_adds_up 10000 && no_ring_errors
}

# virtio-user throws away, without counting, what it finds in its rings when it starts.
null_source_fills()
{
	daemon_start --port=null --queue-pairs=2 --set port.source-size=64 &&
		frontend_start "$1" rxonly && frames_flow && rx_adds_up 10000 $((2 * $2)) &&
		no_ring_errors
}

# All that was sent comes back, or waits for buffers in the port.
loopback_returns_all()
{
	daemon_start --port=loopback --queue-pairs=2 && frontend_start "$1" io &&
		frames_flow tx_first 4 && tx_adds_up 1000 && rx_adds_up 1000 "$2" && no_ring_errors &&
		at_least "$(counter tx_packets)" "$(($(counter rx_packets) + $(counter rx_dropped)))" \
			"sent, returned"
}

# Frames circle between virtio-user and a packet socket on the tap.
tap_carries_all()
{
	daemon_start --port="tap:$TAP" --queue-pairs="$3" &&
		frontend_start "$1" io "--vdev net_af_packet0,iface=$TAP,qpairs=$3" &&
		frames_flow tx_first 2 && tx_adds_up 1000 && rx_adds_up 1000 "$2" && tap_adds_up &&
		no_ring_errors
}

# Frames circle between virtio-user and a packet socket on the far end of a veth pair. $4: native or
# generic.
xdp_carries_all()
{
	daemon_start --port="xdp:$TAP" --queue-pairs="$3" --set port.mode="$4" &&
		frontend_start "$1" io "--vdev net_af_packet0,iface=$FAR,qpairs=$3" &&
		frames_flow tx_first 2 && tx_adds_up 1000 && rx_adds_up 1000 "$2" && no_ring_errors &&
		frames_are_conserved
}

# The frontend is still there when the daemon goes.
stop_all()
{
	check "$1: the daemon ends in good order" daemon_stop
	testpmd_stop fe
}

# --- the sets ---

check_ports()
{
	local name=$1 properties=$2 entries=$3
	check "$name: port null takes all frames" null_takes_all "$properties"
	stop_all "$name"
	check "$name: port null's source fills the rings" null_source_fills "$properties" "$entries"
	stop_all "$name"
	check "$name: port loopback returns all frames" loopback_returns_all "$properties" "$entries"
	stop_all "$name"
}

check_tap()
{
	make_tap "$TAP" "" ${5:+"$5"}
	check "$1: port tap carries all frames" tap_carries_all "$2" "$3" "$4"
	stop_all "$1"
	in_netns ip link del "$TAP"
}

check_xdp()
{
	local mode
	for mode in native generic; do
		make_veth "$TAP" "$FAR" "" numrxqueues "$4" numtxqueues "$4"
		check "$1: port xdp ($mode) carries all frames" xdp_carries_all "$2" "$3" "$4" "$mode"
		stop_all "$1"
		in_netns ip link del "$TAP"
	done
}

need_programs dpdk-testpmd jq ip
make_work_dir
make_netns
prepare_hugepages || skip_all "no $HUGEPAGES huge pages of 2 MiB"
check_ports "256 entries" queue_size=256 256
check_ports "1024 entries" queue_size=1024 1024
check_ports "no mergeable buffers" queue_size=256,mrg_rxbuf=0 256
check_ports "not in order" queue_size=256,in_order=0 256
check_ports "neither of both" queue_size=256,in_order=0,mrg_rxbuf=0 256
check_ports "vectors" queue_size=256,in_order=0,mrg_rxbuf=0,vectorized=1 256
check_tap "256 entries" queue_size=256 256 1
check_tap "no mergeable buffers, not in order" queue_size=256,mrg_rxbuf=0,in_order=0 256 1
check_xdp "256 entries" queue_size=256 256 1
PACKED=1
check_ports "packed" queue_size=256 256
check_ports "packed, 1024 entries, not in order" queue_size=1024,in_order=0 1024
check_ports "packed, vectors" queue_size=256,mrg_rxbuf=0,vectorized=1 256
check_tap "packed" queue_size=256 256 1
check_xdp "packed" queue_size=256 256 1
if has_thread_sanitizer; then
	skip "two queue pairs" "$TSAN_IS_BLIND"
else
	check_ports "packed, two queue pairs" queue_size=256,queues=2,cq=1 512
	PACKED=0
	check_ports "two queue pairs" queue_size=256,queues=2,cq=1 512
	check_tap "two queue pairs" queue_size=256,queues=2,cq=1 512 2 multi_queue
	check_xdp "two queue pairs" queue_size=256,queues=2,cq=1 512 2
fi
finish
