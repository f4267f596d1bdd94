# shellcheck shell=bash
# A guest in QEMU behind the daemon. To be sourced after scripts/lib.sh, guest.sh and report.sh.

# shellcheck source=tests/support/traffic.sh
. "${SUPPORT:?}/traffic.sh"

export GUEST_ADDRESS=$GUEST_IP/24
TAP=vm0

# A fresh namespace with a tap, or with the options "$@" for `ip tuntap`.
qemu_prepare()
{
	qemu_prepare_alone
	make_tap "$TAP" "$HOST_IP/24" "$@"
}

# A fresh namespace with the network of a port type: PORT is the daemon's port then.
qemu_prepare_port()
{
	qemu_prepare_alone
	make_network "$1" "$HOST_IP/24"
}

qemu_prepare_alone()
{
	need_programs qemu-system-x86_64 busybox cpio iperf3 ping jq ip
	make_work_dir
	prepare_guest_image
	make_netns
}
