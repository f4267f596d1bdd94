#!/usr/bin/env bash
# Zero copy: the daemon inside a guest whose kernel has it for virtio-net (6.18), on QEMU's own network
# card.
set -euo pipefail
SUPPORT=$(dirname "$0")/../support
# shellcheck source=scripts/lib.sh
. "$SUPPORT/../../scripts/lib.sh"
GUEST_DIR=$VUX_ROOT/build/guest-zero-copy
# shellcheck source=tests/support/guest.sh
. "$SUPPORT/guest.sh"
# shellcheck source=tests/support/report.sh
. "$SUPPORT/report.sh"
# shellcheck source=tests/support/card.sh
. "$SUPPORT/card.sh"

export GUEST_SUITE=trixie-backports
export GUEST_KERNEL=linux-image-6.18.15+deb13-cloud-amd64

daemon_starts()
{
	guest_daemon_starts --set port.zero-copy=on
}

is_zero_copy()
{
	guest_has_line /tmp/log '(native, zero-copy)'
}

daemon_is_killed()
{
	guest_daemon_ends KILL && daemon_starts && frames_come_back 64
}

# It costs a kernel of another release, and a minute.
[[ ${VUX_LONG:-} == 1 ]] || skip_all "runs with --long"
card_prepare
require "the guest boots" card_boots
require "the daemon and a frontend start in the guest" daemon_starts
check "the socket is a zero-copy one" is_zero_copy
check "frames come back one by one" frames_come_back 1
check "frames come back in bursts" frames_come_back 64
check "frames are conserved" frames_are_conserved guest_rings
check "the daemon is killed, started again, and frames come back" daemon_is_killed
check "frames are conserved after that" frames_are_conserved guest_rings
finish
