#!/usr/bin/env bash
# The rate of the ring alone by one of its settings: both layouts and both directions, each value in
# alternation with a reference. Prints a table, and with --plot=FILE.svg draws it.
# usage: sweep.sh WHAT [--rounds=N] [--ms=N] [--plot=FILE.svg]
#   publish  used entries for each publish, towards a driver that polls; against one entry
#   batch    packets for each burst; against a burst of one
#   size     entries of the ring; against 256
#   packet   bytes of a packet; against the same memory traffic without a protocol
#   pairs    queue pairs, a thread for each; against one pair
set -euo pipefail
# shellcheck source=bench/vring.sh
. "$(dirname "$0")/vring.sh"

# Set what is swept: OPTION, VALUES, the title and the reference, "%s" in which is the value.
sweep_define()
{
	DIRECTIONS=(rx tx)
	OPTION=$1
	case $1 in
	publish)
		DIRECTIONS=(rx)
		VALUES=(1 2 4 8 16 32 64)
		LABEL="used entries for each publish"
		REFERENCE=--publish=1
		;;
	batch)
		VALUES=(1 2 4 8 16 32 64 128 256)
		LABEL="packets for each burst"
		REFERENCE=--batch=1
		;;
	size)
		VALUES=(32 64 128 256 512 1024 4096 32768)
		LABEL="entries of the ring"
		REFERENCE=--size=256
		;;
	packet)
		OPTION=packet-size
		VALUES=(64 128 256 512 1024 1518 4096 9018)
		LABEL="bytes of a packet"
		REFERENCE="--floor"
		# The floor is the traffic of a split ring.
		LAYOUTS=(split)
		;;
	pairs)
		VALUES=(1 2 3 4)
		LABEL="queue pairs, a thread for each"
		REFERENCE=--pairs=1
		MORE=(--single)
		;;
	*)
		say "usage: ${0##*/} publish|batch|size|packet|pairs [--rounds=N] [--ms=N] [--plot=FILE.svg]"
		exit 2
		;;
	esac
}

# Print a row for the value $3, and add it to the points of the plot. $1: layout; $2: rx or tx.
sweep_value()
{
	local name="$1 $2" mpps low high ratio
	vring_bench --csv --ring="$1" --direction="$2" "${MORE[@]}" "--$OPTION=$3" --vs="$REFERENCE" \
		>"$WORK/out.csv"
	IFS=, read -r _ mpps low high _ < <(sed -n 2p "$WORK/out.csv")
	ratio=$(awk -F, 'NR == 4 { printf "%.2f (%.2f..%.2f)", $2, $3, $4 }' "$WORK/out.csv")
	echo "$name,$3,$mpps,$low,$high" >>"$WORK/rates.csv"
	printf '%-10s %8d %8.2f %16s  %s\n' "$name" "$3" "$mpps" "($low..$high)" "$ratio"
}

(($# > 0)) || sweep_define ""
LAYOUTS=(split packed)
MORE=()
PLOT=
sweep_define "$1"
for option in "${@:2}"; do
	case $option in
	--plot=*) PLOT=${option#*=} ;;
	*) vring_option "$option" ;;
	esac
done
vring_prepare
echo "series,x,y,low,high" >"$WORK/rates.csv"
printf '%-10s %8s %8s %16s  %s\n' ring "$1" Mpps spread "ratio to $REFERENCE"
for layout in "${LAYOUTS[@]}"; do
	for direction in "${DIRECTIONS[@]}"; do
		for value in "${VALUES[@]}"; do
			sweep_value "$layout" "$direction" "$value"
		done
	done
done
[[ -z $PLOT ]] || python3 "$VUX_ROOT/bench/plot.py" --title="The ring alone, 64-byte packets unless said" \
	--x="$LABEL" --y="million packets per second" --log-x "$WORK/rates.csv" >"$PLOT"
