# shellcheck shell=bash
# Frames that circle in both directions: testpmd as frontend has two ports, virtio-user and a packet
# socket on the far end of the backend's interface, and forwards each to the other. They circle for
# as long as nobody loses one, as fast as the slowest part can. To be sourced after bench/lib.sh.

NEAR=loop0             # the backend's interface: a tap, or one end of a veth pair
BURSTS=${BURSTS:-4} # of 32 frames, on their way in each direction
IS_BUSY_POLL=       # the backend's system calls poll the interface

# $1: tap or xdp; $2: ours or peer.
start_circle()
{
	local far
	case $1 in
	tap) far=$NEAR ;;
	xdp) far=loop1 && make_silent_veth "$far" ;;
	esac
	"start_$1_$2"
	start_frontend \
		"--vdev virtio_user0,path=$SOCK,queue_size=256 --vdev net_af_packet0,iface=$far" io
	testpmd_run fe start tx_first "$BURSTS" >/dev/null
}

start_tap_ours()
{
	in_netns ip tuntap add dev "$NEAR" mode tap vnet_hdr
	in_netns ip link set "$NEAR" up
	start_our_backend --port="tap:$NEAR"
}

start_tap_peer()
{
	start_peer_backend "--vdev net_tap0,iface=$NEAR" --forward-mode=io
}

start_xdp_ours()
{
	start_our_backend --port="xdp:$NEAR" ${IS_BUSY_POLL:+--set poll.usecs=50}
}

start_xdp_peer()
{
	start_peer_backend "--vdev net_af_xdp0,iface=$NEAR,start_queue=0,queue_count=1" \
		--forward-mode=io
}

# A veth pair without the host's own chatter: its frames would circle too.
make_silent_veth()
{
	in_netns sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	make_veth "$NEAR" "$1" ""
	[[ -z $IS_BUSY_POLL ]] || defer_interrupts
}

# Without these an interface does not wait for those who poll it.
defer_interrupts()
{
	in_netns sh -c "echo 2 >/sys/class/net/$NEAR/napi_defer_hard_irqs &&
		echo 200000 >/sys/class/net/$NEAR/gro_flush_timeout"
}

stop_circle()
{
	testpmd_stop fe
	stop_backend
	in_netns ip link del "$NEAR" 2>/dev/null || true
}
