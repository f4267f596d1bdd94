#!/usr/bin/env bash
# attach = dispatcher: the interface shared with another program, xdp-filter, by libxdp's dispatcher. In
# a guest with Debian's kernel, since newer ones refuse the dispatcher of the libxdp that is in Debian.
set -euo pipefail
SUPPORT=$(dirname "$0")/../support
# shellcheck source=scripts/lib.sh
. "$SUPPORT/../../scripts/lib.sh"
GUEST_DIR=$VUX_ROOT/build/guest-dispatcher
# shellcheck source=tests/support/guest.sh
. "$SUPPORT/guest.sh"
# shellcheck source=tests/support/report.sh
. "$SUPPORT/report.sh"
# shellcheck source=tests/support/card.sh
. "$SUPPORT/card.sh"

OBJECTS=/usr/lib/$(uname -m)-linux-gnu/bpf
DISPATCHER_ROOM=10 # programs that one dispatcher runs at most

daemon_starts()
{
	guest_daemon_starts --set port.attach=dispatcher
}

needs_bpffs()
{
	guest_daemon_tries --set port.attach=dispatcher && guest_daemon_is_gone &&
		guest_has_line /tmp/log 'mount -t bpf' && interface_is_free
}

mount_bpffs()
{
	guest_run "mount -t bpf bpf /sys/fs/bpf"
}

# Print the names of the programs on the card, in their order.
programs()
{
	guest_run "xdp-loader status eth0" | grep -o 'vux_steer\|xdpfilt_[a-z_]*\|xdp_dispatcher' | tr '\n' ' '
}

interface_is_free()
{
	same "" "$(programs)" "on the interface"
}

filter_is_alone()
{
	same "xdp_dispatcher xdpfilt_alw_all " "$(programs)" "on the interface"
}

both_run()
{
	same "xdp_dispatcher xdpfilt_alw_all vux_steer " "$(programs)" "on the interface"
}

leaves_nothing()
{
	guest_daemon_ends TERM && interface_is_free
}

filter_is_put_on()
{
	guest_run "xdp-filter load eth0 --features all" && filter_is_alone
}

joins_filter()
{
	daemon_starts && both_run && frames_come_back 64
}

filter_stays()
{
	guest_daemon_ends TERM && filter_is_alone
}

# More often than there is room for what a killed daemon leaves.
is_killed_often()
{
	local i
	for ((i = 0; i <= DISPATCHER_ROOM; i++)); do
		daemon_starts && frames_come_back 16 100 && guest_daemon_ends KILL || return 1
	done
	daemon_starts && both_run && frames_come_back 64
}

# The queue has its socket already; the first daemon's program is not one that was left behind.
leaves_the_first_alone()
{
	! guest_run "vhost-user-xdp --socket-path=/tmp/s2 --port=xdp:eth0 --set port.attach=dispatcher" &&
		both_run && frames_come_back 64 100
}

filter_filters()
{
	guest_run "xdp-filter ether 02:00:00:00:00:01 -m src" && ! frames_come_back 1 1 &&
		guest_run "xdp-filter ether 02:00:00:00:00:01 -m src -r" && frames_come_back 1 100
}

# It costs a minute.
[[ ${VUX_LONG:-} == 1 ]] || skip_all "runs with --long"
need_programs xdp-loader xdp-filter
card_prepare xdp-loader xdp-filter "$OBJECTS"/xdp-dispatcher.o "$OBJECTS"/xdpfilt_alw_*.o
require "the guest boots" card_boots
check "without bpffs the daemon says what to do" needs_bpffs
require "bpffs is mounted" mount_bpffs
require "the daemon and a frontend start in the guest" daemon_starts
check "frames come back one by one" frames_come_back 1
check "frames come back in bursts" frames_come_back 64
check "frames are conserved" frames_are_conserved guest_rings
check "the daemon ends and leaves nothing behind" leaves_nothing
require "another program is put on the interface" filter_is_put_on
require "the daemon joins it" joins_filter
check "what the other program drops does not arrive" filter_filters
check "a second daemon leaves the first one alone" leaves_the_first_alone
check "the daemon ends and leaves the other program" filter_stays
check "the daemon is killed and started many times" is_killed_often
check "frames are conserved after that" frames_are_conserved guest_rings
check "the daemon ends and leaves the other program alone there" filter_stays
finish
