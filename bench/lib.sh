# shellcheck shell=bash
# What the comparisons with DPDK share: options, rounds in alternation, medians. The frontend is
# testpmd with virtio-user on core 1, the backend has core 0 for itself. To be sourced.

# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
# shellcheck source=tests/support/dpdk.sh
. "$VUX_ROOT/tests/support/dpdk.sh"

ROUNDS=5
SECONDS_EACH=5
DAEMON_OPTIONS=()
PLOT=
BACKEND_CORE=0
FRONTEND_CORE=1
# The EAL puts threads of its own, and with them signals, on the cores that it was not given. Whether they
# are kept on the backend's: what is better for the peer, a benchmark says.
PEER_IS_TIED=${PEER_IS_TIED:-}

bench_usage()
{
	cat <<USAGE
usage: ${0##*/} [--rounds=N] [--seconds=N] [--set=KEY=VALUE]... [--plot=FILE.svg]
  --rounds=N       pairs of measurements, ours and the peer's in alternation (default $ROUNDS)
  --seconds=N      length of each (default $SECONDS_EACH)
  --set=KEY=VALUE  for the daemon
  --plot=FILE.svg  draw what comes out
VUX_DAEMON=PATH measures that binary; else the release preset is built.
USAGE
}

bench_parse_options()
{
	local option
	for option in "$@"; do
		case $option in
		--rounds=[1-9]*) ROUNDS=${option#*=} ;;
		--seconds=[1-9]*) SECONDS_EACH=${option#*=} ;;
		--plot=?*) PLOT=${option#*=} ;;
		--set=*) DAEMON_OPTIONS+=(--set "${option#*=}") ;;
		--help) bench_usage && exit 0 ;;
		*) bench_usage >&2 && exit 2 ;;
		esac
	done
}

# Everything that a comparison needs before its first round.
bench_prepare()
{
	need_root "huge pages, namespaces and taps"
	(($(nproc) >= 2)) || die "needs two cores: one for the frontend, one for the backend"
	install_packages build guest dpdk
	[[ -n ${VUX_DAEMON:-} ]] || build_preset release
	make_work_dir
	make_netns
	prepare_hugepages || die "no $HUGEPAGES huge pages: free some memory"
}

# --- one measurement ---

# Start testpmd as the frontend fe. $1: its devices; $2: forwarding mode.
start_frontend()
{
	testpmd_start fe "$FRONTEND_CORE" "$1" "--forward-mode=$2"
}

start_our_backend()
{
	DAEMON_PREFIX=(taskset -c "$BACKEND_CORE")
	daemon_start "${DAEMON_OPTIONS[@]}" "$@"
}

start_peer_backend()
{
	SOCK=$WORK/vhost.sock
	testpmd_start be "$BACKEND_CORE" "--vdev net_vhost0,iface=$SOCK $1" "$2"
	[[ -z $PEER_IS_TIED ]] || taskset -a -p -c "$BACKEND_CORE" "$(testpmd_pid be)" >/dev/null
	testpmd_run be start >/dev/null
}

# Print the process that is the backend. $1: ours or peer.
backend_pid()
{
	case $1 in
	ours) echo "$DAEMON_PID" ;;
	peer) testpmd_pid be ;;
	esac
}

# Print the processor time that the threads of process $1 have had, in ns.
cpu_ns()
{
	cat "/proc/$1/task/"*/schedstat | awk '{ n += $1 } END { printf "%.0f\n", n }'
}

stop_backend()
{
	if [[ -n $(testpmd_pid be) ]]; then
		testpmd_stop be
	else
		stop_process "$DAEMON_PID"
	fi
	rm -f "$SOCK"
}

# Set RATES to the rates $@ ("Tx-pps") of testpmd fe's port 0 over the time of measurement. A first
# second is left out: rings fill, caches warm.
measure_rates()
{
	local report rate
	sleep 1
	testpmd_run fe show port stats 0 >/dev/null
	sleep "$SECONDS_EACH"
	report=$(testpmd_run fe show port stats 0)
	RATES=()
	for rate in "$@"; do
		RATES+=("$(sed -nE "s/.*$rate: *([0-9]+).*/\1/p" <<<"$report")")
	done
}

# --- rounds ---

# Compare ours with the peer. $1: title; $2: a command that is given "ours" or "peer" and sets RATES,
# frames per second, one for each of the names that follow.
compare()
{
	local title=$1 round way
	MEASURE=$2
	WAYS=("${@:3}")
	RESULTS=$WORK/results
	printf '\n%s: %s pairs of %s s, million frames per second\n' "$title" "$ROUNDS" "$SECONDS_EACH"
	printf '%8s  %-16s %8s %8s %7s\n' round way ours DPDK ratio
	: >"$RESULTS"
	for ((round = 1; round <= ROUNDS; round++)); do
		compare_once "$round"
	done
	for way in "${WAYS[@]}"; do
		summarise "$way"
	done
}

# Who goes first changes from round to round.
compare_once()
{
	local who i order=(ours peer) ours=() peer=()
	(($1 % 2)) || order=(peer ours)
	for who in "${order[@]}"; do
		"$MEASURE" "$who"
		for i in "${!WAYS[@]}"; do
			((${RATES[i]:-0} > 0)) || die "no frames ${WAYS[i]} with $who as backend"
		done
		[[ $who == ours ]] && ours=("${RATES[@]}") || peer=("${RATES[@]}")
	done
	for i in "${!WAYS[@]}"; do
		echo "$1 ${WAYS[i]} ${ours[i]} ${peer[i]}" | tee -a "$RESULTS" |
			awk '{ printf "%8d  %-16s %8.3f %8.3f %7.2f\n", $1, $2, $3 / 1e6, $4 / 1e6, $3 / $4 }'
		add_point "ours ${WAYS[i]}" "$1" "${ours[i]}e-6"
		add_point "DPDK ${WAYS[i]}" "$1" "${peer[i]}e-6"
	done
}

# --- plots ---

# $1: series; $2, $3: the point.
add_point()
{
	echo "$1,$2,$3" >>"$WORK/points.csv"
}

# Draw all points, if so asked. $1: title; $2, $3: what the axes are; others: more options of plot.py.
draw_points()
{
	[[ -n $PLOT ]] || return 0
	{
		echo series,x,y
		cat "$WORK/points.csv"
	} >"$WORK/plot.csv"
	python3 "$VUX_ROOT/bench/plot.py" --title="$1" --x="$2" --y="$3" "${@:4}" "$WORK/plot.csv" >"$PLOT"
}

draw_rounds()
{
	draw_points "$1" "round" "million frames per second"
}

# --- results ---

# The median of values[key, 1..n], for awk; LOW and HIGH are their extremes then.
MEDIAN_AWK='
function median(values, key, n,    sorted, i, j, t) {
	for (i = 1; i <= n; i++) {
		t = values[key, i] + 0
		for (j = i; j > 1 && sorted[j - 1] > t; j--) sorted[j] = sorted[j - 1]
		sorted[j] = t
	}
	LOW = sorted[1]
	HIGH = sorted[n]
	return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}'

# Print the medians of a way, and the ratio with its spread.
summarise()
{
	awk -v way="$1" "$MEDIAN_AWK"'
	$2 == way { value["ours", ++n] = $3; value["peer", n] = $4; value["ratio", n] = $3 / $4 }
	END {
		ratio = median(value, "ratio", n)
		spread = sprintf("(%.2f..%.2f)", LOW, HIGH)
		printf "%8s  %-16s %8.3f %8.3f %7.2f  %s\n", "median", way,
			median(value, "ours", n) / 1e6, median(value, "peer", n) / 1e6, ratio, spread
	}' "$RESULTS"
}
