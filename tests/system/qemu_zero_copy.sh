#!/usr/bin/env bash
# Zero copy: the daemon inside a guest whose kernel has it for virtio-net (6.18), on QEMU's own network
# card, with a frontend beside it (tools/reflector.c) that sends back what comes in by the card.
set -euo pipefail
SUPPORT=$(dirname "$0")/../support
# shellcheck source=scripts/lib.sh
. "$SUPPORT/../../scripts/lib.sh"
GUEST_DIR=$VUX_ROOT/build/guest-zero-copy
# shellcheck source=tests/support/guest.sh
. "$SUPPORT/guest.sh"
# shellcheck source=tests/support/report.sh
. "$SUPPORT/report.sh"

export GUEST_SUITE=trixie-backports
export GUEST_KERNEL=linux-image-6.18.15+deb13-cloud-amd64
# Without an IOMMU's addresses the driver refuses; segments have no place in an XDP buffer.
CARD=virtio-net-pci,netdev=n0,romfile=,iommu_platform=on,disable-legacy=on,vectors=4
CARD+=,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off
FRAMES=20000

guest_boots()
{
	# Always emulated: what is tested is in the guest.
	guest_launch "$WORK/guest" tcg -netdev tap,id=n0,ifname=t0,script=no,downscript=no -device "$CARD"
	guest_wait_ready "$GUEST_BOOT_SECONDS" || { tail -n 20 "$GUEST/console.log" && return 1; }
	in_netns ip link set t0 up
}

# $1: the value of port.zero-copy. The daemon and the reflector, both in the guest.
guest_daemon_starts()
{
	guest_run "rm -f /tmp/log; vhost-user-xdp --socket-path=/tmp/s --port=xdp:eth0 \
		--set port.zero-copy=$1 >/tmp/log 2>&1 & echo \$! >/tmp/pid" || return 1
	wait_for 10 guest_has_line /tmp/log '^ready:' || { guest_run "cat /tmp/log" && return 1; }
	guest_run "reflector /tmp/s >/tmp/reflector.log 2>&1 &" || return 1
	wait_for 10 guest_has_line /tmp/reflector.log '^ready'
}

guest_has_line()
{
	guest_run "grep -q '$2' $1" >/dev/null
}

is_zero_copy()
{
	guest_has_line /tmp/log '(native, zero-copy)'
}

# $1: frames on their way at a time.
frames_come_back()
{
	timeout 120 ip netns exec "$NETNS" python3 "$SUPPORT/echo.py" t0 "$FRAMES" "$1"
}

guest_rings()
{
	guest_run "vhost-user-ctl --ctl-path=/tmp/s.ctl rings"
}

daemon_is_killed()
{
	# Its shell waits for it: nothing else tells that it has gone.
	guest_run "kill -9 \$(cat /tmp/pid); sleep 0.2" && guest_daemon_starts on && frames_come_back 64
}

# It costs a kernel of another release, and a minute.
[[ ${VUX_LONG:-} == 1 ]] || skip_all "runs with --long"
need_programs qemu-system-x86_64 busybox cpio python3 ip
make_work_dir
prepare_guest_image "$VUX_DAEMON" "$VUX_CTL" "$VUX_REFLECTOR" ||
	skip_all "no kernel of $GUEST_SUITE to be had"
make_netns
QEMU_PREFIX=(ip netns exec "$NETNS")
in_netns ip tuntap add dev t0 mode tap
require "the guest boots" guest_boots
require "the daemon and a frontend start in the guest" guest_daemon_starts on
check "the socket is a zero-copy one" is_zero_copy
check "frames come back one by one" frames_come_back 1
check "frames come back in bursts" frames_come_back 64
check "frames are conserved" frames_are_conserved guest_rings
check "the daemon is killed, started again, and frames come back" daemon_is_killed
check "frames are conserved after that" frames_are_conserved guest_rings
finish
