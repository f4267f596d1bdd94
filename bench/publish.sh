#!/usr/bin/env bash
# Used entries in batches: the rate towards the guest by the number of entries for each publish, with a
# driver that polls. Prints a table, and with --plot=FILE.svg draws it.
set -euo pipefail
# shellcheck source=bench/vring.sh
. "$(dirname "$0")/vring.sh"

PLOT=
for option in "$@"; do
	case $option in
	--plot=*) PLOT=${option#*=} ;;
	*) vring_option "$option" ;;
	esac
done
vring_prepare
echo "series,x,y,low,high" >"$WORK/rates.csv"
printf '%8s %8s %16s %10s\n' publish Mpps spread "ratio to 1"
for n in 1 2 4 8 16 32 64; do
	vring_bench --csv --publish="$n" --vs=--publish=1 >"$WORK/out.csv"
	IFS=, read -r _ mpps low high _ < <(sed -n 2p "$WORK/out.csv")
	IFS=, read -r _ ratio _ < <(sed -n 4p "$WORK/out.csv")
	echo "split 256,$n,$mpps,$low,$high" >>"$WORK/rates.csv"
	printf '%8d %8.2f %16s %10.2f\n' "$n" "$mpps" "($low..$high)" "$ratio"
done
[[ -z $PLOT ]] || python3 "$VUX_ROOT/bench/plot.py" --title="64-byte frames towards the guest" \
	--x="used entries for each publish" --y="million frames per second" --log-x \
	"$WORK/rates.csv" >"$PLOT"
