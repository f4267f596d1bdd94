#!/usr/bin/env bash
# TCP through the daemon, port tap: streams (iperf3), and requests of one byte (tests/tools/pingpong), between
# a guest and the host, and between two guests on a bridge, each with a daemon of its own. The guests are
# tests/vguest: a kernel's TCP, and a driver that sleeps between calls. Offloads on and off, and interrupt
# coalescing off, fixed and adaptive, all in alternation. No process is tied to a core.
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"

ROUNDS=3
SECONDS_EACH=2
IPERF_LENGTH=(-t "$SECONDS_EACH")
# shellcheck source=tests/support/traffic.sh
. "$VUX_ROOT/tests/support/traffic.sh"
# shellcheck source=tests/support/vguest.sh
. "$VUX_ROOT/tests/support/vguest.sh"

PEER_IP=10.77.0.3
PINGPONG=$VUX_ROOT/build/release/tests/pingpong
PINGPONG_PORT=7777
PATHS=(host guest)
CONNECTIONS=(1 10 100)
CSV=
PLOT=
N_DROPPED=0 # by the daemons
N_REFUSED=0 # by full taps

# rx-usecs rx-frames tx-usecs tx-frames adaptive tx-at-rx
declare -A SETTINGS=(
	[off]="0 0 0 0 false true"
	[fixed]="50 32 50 32 false true"
	[adaptive]="0 0 0 0 true true"
	[at-rx]="0 0 500 128 false true"
	[not-at-rx]="0 0 500 128 false false"
)
COALESCING=(off fixed adaptive)
AT_RX=(at-rx not-at-rx) # sent frames are reported late, along with received ones or not

usage()
{
	cat <<USAGE
usage: ${0##*/} [options]
  --rounds=N         of everything (default $ROUNDS)
  --seconds=N        of each measurement (default $SECONDS_EACH)
  --quick            one round of 1 s, 1 and 10 connections
  --path=host|guest  only between the guest and the host, or between two guests
  --csv=FILE         the medians, with lowest and highest
  --plot=PREFIX      draw PREFIX-PATH-streams.svg and PREFIX-PATH-responses.svg
VUX_DAEMON=PATH measures that binary; else the release preset is built.
USAGE
}

parse_options()
{
	while (($# > 0)); do
		case $1 in
		--rounds=[1-9]*) ROUNDS=${1#*=} ;;
		--seconds=[1-9]*) SECONDS_EACH=${1#*=} ;;
		--quick) ROUNDS=1 SECONDS_EACH=1 CONNECTIONS=(1 10) ;;
		--path=host | --path=guest) PATHS=("${1#*=}") ;;
		--csv=?*) CSV=${1#*=} ;;
		--csv) CSV=${2:?--csv: which file?} && shift ;;
		--plot=?*) PLOT=${1#*=} ;;
		--help) usage && exit 0 ;;
		*) usage >&2 && exit 2 ;;
		esac
		shift
	done
	IPERF_LENGTH=(-t "$SECONDS_EACH")
}

# --- the network ---

# Start guest $1, with offloads $2 ("on", "off"), at a daemon of its own; further options are the daemon's.
start_guest()
{
	local address=$GUEST_IP
	[[ $1 == a ]] || address=$PEER_IP
	DAEMON_NAME=$1
	daemon_start --port="tap:vm-$1" "${@:3}"
	DAEMON_PIDS[$1]=$DAEMON_PID
	in_netns ip link set "vm-$1" up
	vguest_start "$1" "$SOCK" "$address/24" --offloads="$2"
}

# $1: path; $2: offloads. CLIENT_NETNS is where the traffic comes from; guest a answers it.
# shellcheck disable=SC2154 # vguest_make_netns sets GUEST_NS_b
start_network()
{
	declare -gA DAEMON_PIDS=()
	case $1 in
	host)
		start_guest a "$2"
		in_netns ip addr add "$HOST_IP/24" dev vm-a
		CLIENT_NETNS=$NETNS
		;;
	guest)
		start_guest a "$2" --set port.bridge=br0
		start_guest b "$2" --set port.bridge=br0
		CLIENT_NETNS=$GUEST_NS_b
		;;
	esac
	NETNS=$CLIENT_NETNS ping_resumes 5 >"$WORK/ping.out" || die "guest a does not answer"
	vguest_start_process a "$WORK/iperf-server.log" iperf3 -s
	SERVERS=("$STARTED")
	vguest_start_process a "$WORK/pingpong.log" "$PINGPONG" "$PINGPONG_PORT"
	SERVERS+=("$STARTED")
	wait_for 5 file_has "$WORK/pingpong.log" ready || die "pingpong does not start in guest a"
}

# Print how many frames the queues of the taps had no room for, the daemons' taps and the guests'.
dropped_by_taps()
{
	local name
	for name in "${!DAEMON_PIDS[@]}"; do
		in_netns ip -j -s link show "vm-$name"
		in_guest "$name" ip -j -s link show eth0
	done | jq -s 'map(.[0].stats64.tx.dropped) | add'
}

# The taps go with the daemons, and with them what was learnt of addresses.
stop_network()
{
	local name pid
	N_DROPPED=$((N_DROPPED + $(ctl_all stats --json | jq -s 'map(.total.rx_dropped + .total.tx_dropped) | add')))
	N_REFUSED=$((N_REFUSED + $(dropped_by_taps)))
	for pid in "${SERVERS[@]}"; do
		stop_process "$pid"
	done
	for name in "${!DAEMON_PIDS[@]}"; do
		vguest_stop "$name"
		stop_process "${DAEMON_PIDS[$name]}"
	done
}

# Run ctl with the arguments $@ for each daemon.
ctl_all()
{
	local name
	for name in "${!DAEMON_PIDS[@]}"; do
		SOCK=$WORK/$name.sock ctl "$@"
	done
}

set_coalescing()
{
	local p
	read -ra p <<<"${SETTINGS[$1]}"
	ctl_all coalesce rx-usecs="${p[0]}" rx-frames="${p[1]}" tx-usecs="${p[2]}" tx-frames="${p[3]}" \
		adaptive-rx="${p[4]}" adaptive-tx="${p[4]}" tx-at-rx="${p[5]}" >/dev/null
}

# --- one measurement ---

# Add a figure to the results. WHAT: path,kind,way,connections,offloads,setting; $1: metric; $2: value
result()
{
	echo "$WHAT,$1,$2" >>"$WORK/results.csv"
}

# Print calls and frames, of all daemons together.
take_counters()
{
	ctl_all stats --json | jq -s '(map(.total.calls) | add), (map(.total.rx_packets + .total.tx_packets) | add)'
}

# Print bytes and frames of guest a in the direction $1.
take_size()
{
	SOCK=$WORK/a.sock ctl stats --json | jq ".total | .$1_bytes, .$1_packets"
}

# Add the ratio of what two counters, in the lines $2, have grown by since the lines $3, as the metric $1.
result_ratio()
{
	local after before
	mapfile -t after <<<"$2"
	mapfile -t before <<<"$3"
	RATIO=$(awk "BEGIN { print (${after[0]} - ${before[0]}) / (${after[1]} - ${before[1]}) }")
	result "$1" "$RATIO"
}

# $1: way, "to" or "from" guest a; $2: streams
measure_stream()
{
	local options=(-P "$2") direction=rx before
	[[ $1 == to ]] || { options+=(-R) && direction=tx; }
	before=$(take_size "$direction")
	NETNS=$CLIENT_NETNS iperf_guest "${options[@]}" >"$WORK/iperf.out" || {
		cat "$WORK/iperf.out" >&2
		die "iperf3 failed: $WHAT"
	}
	result Gbit/s "$(jq '.end.sum_received.bits_per_second / 1e9' "$WORK/iperf.json")"
	result retransmissions "$(jq '.end.sum_sent.retransmits' "$WORK/iperf.json")"
	result_ratio bytes/frame "$(take_size "$direction")" "$before"
	[[ $PLACE == *,on || ${RATIO%.*} -le 1514 ]] || die "frames of $RATIO bytes without offloads: $WHAT"
}

# $1: ignored; $2: connections
measure_request()
{
	local figures
	figures=$(ip netns exec "$CLIENT_NETNS" "$PINGPONG" "$GUEST_IP" "$PINGPONG_PORT" "$2" "$SECONDS_EACH") ||
		die "pingpong failed: $WHAT"
	read -ra figures <<<"$figures"
	result responses/s "${figures[0]}"
	result "p50 us" "${figures[1]}"
	result "p99 us" "${figures[2]}"
}

# $1: kind; $2: way; $3: connections; $4: setting. PLACE: path and offloads.
measure()
{
	local before
	WHAT=${PLACE%,*},$1,$2,$3,${PLACE#*,},$4
	set_coalescing "$4"
	before=$(take_counters)
	"measure_${1%-*}" "$2" "$3"
	result_ratio calls/frame "$(take_counters)" "$before"
}

# --- rounds ---

# Measure the settings "${@:4}" one after the other; who begins changes from round to round.
# $1: kind; $2: way; $3: connections
measure_settings()
{
	local i settings=("${@:4}")
	for i in "${!settings[@]}"; do
		measure "$1" "$2" "$3" "${settings[(i + ROUND) % ${#settings[@]}]}"
	done
}

# $1: path; $2: offloads
measure_place()
{
	local n
	PLACE=$1,$2
	start_network "$1" "$2"
	for n in "${CONNECTIONS[@]}"; do
		measure_settings stream to "$n" "${COALESCING[@]}"
		measure_settings stream from "$n" "${COALESCING[@]}"
		measure_settings request - "$n" "${COALESCING[@]}"
		[[ $2 == off ]] || measure_settings request-late - "$n" "${AT_RX[@]}"
	done
	stop_network
}

measure_round()
{
	local path offloads order=(on off)
	((ROUND % 2)) || order=(off on)
	for path in "${PATHS[@]}"; do
		for offloads in "${order[@]}"; do
			measure_place "$path" "$offloads"
		done
	done
}

# --- reports ---

summarise_results()
{
	echo path,kind,way,connections,offloads,setting,metric,median,low,high
	awk -F, "$MEDIAN_AWK"'
	{
		key = $1 "," $2 "," $3 "," $4 "," $5 "," $6 "," $7
		if (!(key in n)) keys[++n_keys] = key
		value[key, ++n[key]] = $8
	}
	END {
		for (k = 1; k <= n_keys; k++) {
			middle = median(value, keys[k], n[keys[k]])
			printf "%s,%.6g,%.6g,%.6g\n", keys[k], middle, LOW, HIGH
		}
	}' "$WORK/results.csv"
}

# Print the medians of metric $2 in measurements of the kind $1, as a table with the settings "${@:3}" side by
# side. The order of rows is not that of any one round.
print_table()
{
	printf '\n%s, %s\n%-6s %-5s %11s %8s' "$1" "$2" path way connections offloads
	printf '  %22s' "${@:3}"
	echo
	awk -F, -v kind="$1" -v metric="$2" -v list="${*:3}" '
	function short(x) { return sprintf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : x >= 1 ? "%.2f" : "%.3f", x) }
	$2 == kind && $7 == metric {
		row = sprintf("%-6s %-5s %11d %8s", $1, $3, $4, $5)
		if (!(row in seen)) rows[++n_rows] = row
		seen[row]
		cell[row, $6] = short($8) " (" short($9) ".." short($10) ")"
	}
	END {
		n = split(list, settings, " ")
		for (i = 1; i <= n_rows; i++) {
			printf "%s", rows[i]
			for (j = 1; j <= n; j++) printf "  %22s", cell[rows[i], settings[j]]
			print ""
		}
	}' "$WORK/summary.csv" | sort -k1,1r -k2,2r -k3,3n -k4,4r
}

print_tables()
{
	printf '%s rounds of %s s, median (lowest..highest)\n' "$ROUNDS" "$SECONDS_EACH"
	print_table stream Gbit/s "${COALESCING[@]}"
	print_table stream bytes/frame "${COALESCING[@]}"
	print_table stream retransmissions "${COALESCING[@]}"
	print_table stream calls/frame "${COALESCING[@]}"
	print_table request "p50 us" "${COALESCING[@]}"
	print_table request "p99 us" "${COALESCING[@]}"
	print_table request responses/s "${COALESCING[@]}"
	print_table request calls/frame "${COALESCING[@]}"
	print_table request-late "p50 us" "${AT_RX[@]}"
	print_table request-late "p99 us" "${AT_RX[@]}"
	print_table request-late calls/frame "${AT_RX[@]}"
	printf '\nframes dropped by the daemons: %s, by full queues of taps: %s\n' "$N_DROPPED" "$N_REFUSED"
}

# Draw metric $3 of kind $2 on the path $1, with the series that the awk expression $4 names ("" is left
# out). $5: title; $6: axis; $7: file
draw()
{
	{
		echo series,x,y,low,high
		awk -F, -v path="$1" -v kind="$2" -v metric="$3" "
		\$1 == path && \$2 == kind && \$7 == metric {
			name = $4
			if (name != \"\") print name \",\" \$4 \",\" \$8 \",\" \$9 \",\" \$10
		}" "$WORK/summary.csv"
	} >"$WORK/plot.csv"
	python3 "$VUX_ROOT/bench/plot.py" --title="$5" --x="$6" --y="$3" --log-x "$WORK/plot.csv" >"$7"
}

# shellcheck disable=SC2016 # the $ are awk's
draw_plots()
{
	local path
	for path in "${PATHS[@]}"; do
		draw "$path" stream Gbit/s '$6 == "off" ? $3 " guest: offloads " $5 : ""' \
			"TCP streams, $path: no coalescing" "streams" "$PLOT-$path-streams.svg"
		draw "$path" request responses/s '$5 == "on" ? $6 : ""' \
			"TCP requests of one byte, $path: coalescing" "connections" "$PLOT-$path-responses.svg"
	done
}

parse_options "$@"
need_root "namespaces and taps"
install_packages build guest
[[ -n ${VUX_DAEMON:-} ]] || build_preset release
make_work_dir
make_netns
in_netns ip link add br0 type bridge
in_netns ip link set br0 up
vguest_make_netns a
vguest_make_netns b
for ((ROUND = 1; ROUND <= ROUNDS; ROUND++)); do
	say "round $ROUND"
	measure_round
done
summarise_results >"$WORK/summary.csv"
print_tables
[[ -z $CSV ]] || cp "$WORK/summary.csv" "$CSV"
[[ -z $PLOT ]] || draw_plots
