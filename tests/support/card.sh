# shellcheck shell=bash
# The daemon inside a guest, on QEMU's own network card, with a frontend beside it (tools/reflector.c)
# that sends back what comes in by the card: for what the host's kernel cannot do. To be sourced after
# guest.sh and report.sh.

# Without an IOMMU's addresses the driver has no zero copy; segments have no place in an XDP buffer.
CARD=virtio-net-pci,netdev=n0,romfile=,iommu_platform=on,disable-legacy=on,vectors=4
CARD+=,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off
FRAMES=20000

# What the guest needs, and the host's end of the card, t0. "$@": more programs and files for the guest.
card_prepare()
{
	need_programs qemu-system-x86_64 busybox cpio python3 ip
	make_work_dir
	prepare_guest_image "${VUX_DAEMON:?}" "${VUX_CTL:?}" "${VUX_REFLECTOR:?}" "$@" ||
		skip_all "no kernel for the guest to be had"
	make_netns
	# shellcheck disable=SC2034 # for guest_launch
	QEMU_PREFIX=(ip netns exec "$NETNS")
	in_netns ip tuntap add dev t0 mode tap
}

card_boots()
{
	# Always emulated: what is tested is in the guest.
	guest_launch "$WORK/guest" tcg -netdev tap,id=n0,ifname=t0,script=no,downscript=no -device "$CARD"
	guest_wait_ready "$GUEST_BOOT_SECONDS" || { tail -n 20 "$GUEST/console.log" && return 1; }
	in_netns ip link set t0 up
}

# The daemon in the guest, with the options "$@"; it has settled when this returns.
guest_daemon_tries()
{
	guest_run "rm -f /tmp/log; vhost-user-xdp --socket-path=/tmp/s --port=xdp:eth0 $* \
		>/tmp/log 2>&1 & echo \$! >/tmp/pid" || return 1
	wait_for 20 guest_daemon_has_settled
}

guest_daemon_has_settled()
{
	guest_has_line /tmp/log '^ready:' || ! guest_daemon_runs
}

guest_daemon_runs()
{
	guest_run "test -d /proc/\$(cat /tmp/pid)"
}

# The daemon, with the options "$@", and the reflector.
guest_daemon_starts()
{
	guest_daemon_tries "$@" || return 1
	guest_has_line /tmp/log '^ready:' || { guest_run "cat /tmp/log" && return 1; }
	guest_run "reflector /tmp/s >/tmp/reflector.log 2>&1 &" || return 1
	wait_for 10 guest_has_line /tmp/reflector.log '^ready'
}

# $1: a signal.
guest_daemon_ends()
{
	guest_run "kill -$1 \$(cat /tmp/pid)" && wait_for 10 guest_daemon_is_gone
}

guest_daemon_is_gone()
{
	! guest_daemon_runs
}

# $1: a file of the guest's; $2: a pattern.
guest_has_line()
{
	guest_run "grep -q '$2' $1" >/dev/null
}

guest_rings()
{
	guest_run "vhost-user-ctl --ctl-path=/tmp/s.ctl rings"
}

# $1: frames on their way at a time; $2: of so many.
frames_come_back()
{
	timeout 120 ip netns exec "$NETNS" python3 "${SUPPORT:?}/echo.py" t0 "${2:-$FRAMES}" "$1"
}
