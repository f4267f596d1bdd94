#!/usr/bin/env bash
# vring-bench: every kind of ring carries packets, the counts are what the options say, and wrong options
# are refused by name.
set -euo pipefail
SUPPORT=$(dirname "$0")/../support
# shellcheck source=scripts/lib.sh
. "$SUPPORT/../../scripts/lib.sh"
# shellcheck source=tests/support/report.sh
. "$SUPPORT/report.sh"

# Both sides in one thread, by number of packets: nothing of it depends on time.
run()
{
	"$VRING_BENCH" --csv --single --packets=5000 "$@"
}

# The two sides in threads of their own, for a time.
run_threads()
{
	"$VRING_BENCH" --csv --rounds=1 --ms=20 "$@"
}

# Print column $2 (mpps, publishes, calls) of the first setting's row. $1: how to run; others: options.
column()
{
	local name=$2
	"$1" "${@:3}" | awk -F, -v name="$name" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at[name] }'
}

# $1: an expression of awk with x in it; $2: how to run; $3: a column; others: options.
holds()
{
	local value
	value=$(column "${@:2}") && [[ -n $value ]] || return 1
	awk -v x="$value" "BEGIN { exit !($1) }" || { echo "${*:2}: $value, and not $1" && return 1; }
}

# The same with threads, which may get no processor for a while.
holds_soon()
{
	wait_for 20 holds "$1" run_threads "${@:2}"
}

all_rings_go()
{
	local layout direction features
	for layout in split packed; do
		for direction in rx tx; do
			for features in "" --event-idx --indirect --mergeable --in-order --chain=3 "--chain=3 --indirect" \
				--size=32 --batch=1 --packet-size=1500 --pairs=4; do
				# shellcheck disable=SC2086 # words
				holds "x > 0" run mpps --ring="$layout" --direction="$direction" $features || return 1
			done
		done
	done
}

split_rings_go()
{
	holds "x > 0" run mpps --shuffled && holds "x > 0" run mpps --floor &&
		holds "x > 0" run mpps --floor --direction=tx
}

threads_go()
{
	holds_soon "x > 0" mpps && holds_soon "x > 0" mpps --ring=packed --direction=tx --pairs=2 &&
		holds_soon "x > 0" mpps --single --pairs=2 && holds_soon "x > 0" mpps --floor
}

publishes_as_told()
{
	local layout
	for layout in split packed; do
		holds "x > 0.99 && x <= 1" run publishes --ring="$layout" --publish=1 &&
			holds "x < 0.05" run publishes --ring="$layout" --publish=64 || return 1
	done
}

calls_when_asked()
{
	holds_soon "x == 0" calls && holds_soon "x > 0" calls --calls --batch=1
}

prints_ratio()
{
	run --vs="--size=64 --ring=packed" | grep -q '^ratio,[0-9.]*,[0-9.]*,[0-9.]*$' &&
		run --vs="--size=64 --ring=packed" | grep -q '^packed rx 64;'
}

# $1: what the message must have; others: options.
refuses()
{
	local text status=0
	text=$("$VRING_BENCH" "${@:2}" 2>&1) || status=$?
	echo "${*:2}: $text"
	same 2 "$status" "exit code" && [[ $text == *"$1"* ]]
}

refuses_what_is_wrong()
{
	refuses "--size must be a power of two from 2 to 32768, not '3'" --size=3 &&
		refuses "--size must be" --size=65536 &&
		refuses "--packet-size must be a whole number from 14 to 65000" --packet-size=13 &&
		refuses "--chain must be a whole number from 1 to 16" --chain=17 &&
		refuses "--batch must be a whole number from 1 to 256, not '0'" --batch=0 &&
		refuses "--publish must be a whole number from 1 to 256, not '257'" --publish=257 &&
		refuses "--pairs must be a whole number from 1 to 4, not '5'" --pairs=5 &&
		refuses "--pairs must be" --pairs=1x &&
		refuses "--ring must be split or packed, not 'round'" --ring=round &&
		refuses "--direction must be rx or tx" --direction=up &&
		refuses "--rounds must be" --rounds=0 &&
		refuses "--packets goes with --single" --packets=5000 &&
		refuses "--floor is the traffic of a split ring" --floor --ring=packed &&
		refuses "--vs: '--csv' is no option of a ring" --vs=--csv &&
		refuses "unrecognized option" --fast &&
		refuses "'fast' is no option" fast
}

[[ -n ${VRING_BENCH:-} ]] || skip_all "no VRING_BENCH"
make_work_dir
check "wrong options are refused by name" refuses_what_is_wrong
if has_thread_sanitizer; then
	skip "rings" "$TSAN_IS_BLIND"
	finish
fi
check "both layouts go, with every feature" all_rings_go
check "what only split rings have goes" split_rings_go
check "threads go" threads_go
check "used entries are published as often as told" publishes_as_told
check "calls are sent to a driver that wants them" calls_when_asked
check "two settings are compared" prints_ratio
finish
