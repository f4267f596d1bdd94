# shellcheck shell=bash
# Frames that circle in both directions: testpmd as frontend has two ports, virtio-user and a packet
# socket on the backend's tap, and forwards each to the other. They circle for as long as nobody
# loses one, as fast as the slowest part can. To be sourced after bench/lib.sh.

TAP=loop0
BURSTS=${BURSTS:-4} # of 32 frames, on their way in each direction

# $1: ours or peer.
start_circle()
{
	case $1 in
	ours)
		make_loop_tap
		start_our_backend --port="tap:$TAP"
		;;
	peer) start_peer_backend "--vdev net_tap0,iface=$TAP" --forward-mode=io ;;
	esac
	start_frontend \
		"--vdev virtio_user0,path=$SOCK,queue_size=256 --vdev net_af_packet0,iface=$TAP" io
	testpmd_run fe start tx_first "$BURSTS" >/dev/null
}

make_loop_tap()
{
	in_netns ip tuntap add dev "$TAP" mode tap vnet_hdr
	in_netns ip link set "$TAP" up
}

stop_circle()
{
	testpmd_stop fe
	stop_backend
	in_netns ip link del "$TAP" 2>/dev/null || true
}
