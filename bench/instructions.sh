#!/usr/bin/env bash
# Instructions of the device for each packet, counted by callgrind: exact, whatever else the machine does.
# Driver and device take turns in one thread; only the device's turn is counted.
set -euo pipefail
# shellcheck source=bench/vring.sh
. "$(dirname "$0")/vring.sh"

# $@: options of the ring. Prints instructions per packet.
count()
{
	local packets total
	valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='device_turn*' \
		"$VRING_BENCH" --single --packets="$PACKETS" "$@" >/dev/null 2>"$WORK/callgrind"
	packets=$PACKETS
	total=$(sed -nE 's/.*Collected : ([0-9]+).*/\1/p' "$WORK/callgrind")
	echo $(((total + packets / 2) / packets))
}

# $1: layout; others: options of the ring. Prints a row.
row()
{
	printf '%-24s %6d %6d\n' "$1 256 ${*:2}" "$(count "--ring=$1" "${@:2}")" "$(count "--ring=$1" "${@:2}" --direction=tx)"
}

PACKETS=100000
for option in "$@"; do
	vring_option "$option"
done
vring_prepare
install_packages bench
printf '%-24s %6s %6s\n' ring rx tx
for layout in split packed; do
	row "$layout"
	for option in --event-idx --indirect --mergeable --in-order --chain=2 --batch=1 --size=32; do
		row "$layout" "$option"
	done
done
row split --shuffled
