#!/usr/bin/env bash
# Reading a tap into a stash and copying, against reading straight into guest buffers (tap-copy.c):
# frames of 64 KiB, of an MTU, and small ones.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../scripts/lib.sh"

need_root "a namespace and a tap"
install_packages build guest
make_work_dir
make_netns
cc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror "$VUX_ROOT/bench/tap-copy.c" -o "$WORK/tap-copy"
for sizes in "65000 1536" "65000 65600" "1400 1536" "60 1536"; do
	# shellcheck disable=SC2086 # two numbers
	in_netns "$WORK/tap-copy" $sizes
done
