#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests: all of them on the release build, those of
# the modules and of the frontend library again under ASan+UBSan and under TSan.
# usage: test.sh [--long]
#   --long  everything under each of the three, and with the full repeat counts
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

CONFIGURATIONS=(release asan tsan)

parse_options()
{
	IS_LONG=
	while (($# > 0)); do
		case $1 in
		--long) IS_LONG=1 ;;
		--help) sed -n '2,5s/^# //p' "$0" && exit 0 ;;
		*) say "usage: ${0##*/} [--long]" && exit 2 ;;
		esac
		shift
	done
}

# --- running ---

# One failure of the configuration $1 that no test tells of.
record_failure()
{
	printf '%s\tfail\t-\t%s\n%s\tfailed\t1\t%s\n' "$1" "$2" "$1" "$2" >>"$RESULTS"
}

# Which tests a configuration runs: arguments of ctest's.
select_tests()
{
	if [[ $1 == release || $IS_LONG ]]; then
		SELECTION=()
	else
		SELECTION=(-L '^(unit|frontend)$')
	fi
}

# ThreadSanitizer in older compilers does not cope with as much address randomisation as newer
# kernels have.
without_randomisation()
{
	if setarch -R true 2>/dev/null; then
		setarch -R "$@"
	else
		"$@"
	fi
}

set_sanitizer_options()
{
	export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:abort_on_error=0:exitcode=99
	export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
	export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
	export CK_FORK=no
}

run_ctest()
{
	local wrapper=() seconds=600
	[[ $1 != tsan ]] || wrapper=(without_randomisation)
	[[ -z $IS_LONG ]] || seconds=3600
	(
		[[ $1 == release ]] || set_sanitizer_options
		[[ -z $IS_LONG ]] || export VUX_LONG=1
		"${wrapper[@]}" ctest --test-dir "$VUX_ROOT/build/$1" -j "$(nproc)" --timeout "$seconds" \
			"${SELECTION[@]}"
	) </dev/null
}

run_configuration()
{
	local log=$VUX_ROOT/build/$1/Testing/Temporary/LastTest.log
	say "== $1: building"
	if ! build_preset "$1"; then
		record_failure "$1" "the build"
		return
	fi
	say "== $1: testing"
	rm -f "$log"
	select_tests "$1"
	run_ctest "$1" | tee "$WORK/$1.ctest" || true
	if [[ -s $log ]]; then
		parse_log "$1" "$log"
	else
		record_failure "$1" "ctest: it ran no test"
	fi
}

# --- results ---

# Turn ctest's log into result lines; what a failed test has said goes to $WORK/CONFIGURATION.failed.
parse_log()
{
	awk -v configuration="$1" -v failed="$WORK/$1.failed" -f "$VUX_ROOT/scripts/results.awk" \
		"$WORK/$1.ctest" "$2" >>"$RESULTS"
}

count_results()
{
	awk -F '\t' -v what="$1" -v where="${2:-}" \
		'$2 == what && (where == "" || $1 == where) { n += $3 } END { print n + 0 }' "$RESULTS"
}

# "N passed, N failed, N skipped", of the configuration $1 or of all.
print_counts()
{
	printf '%s passed, %s failed, %s skipped\n' "$(count_results passed "$@")" \
		"$(count_results failed "$@")" "$(count_results skipped "$@")"
}

# Print the results of the kind $1 with the title $2.
print_list()
{
	awk -F '\t' -v what="$1" -v title="$2" '
	$2 == what {
		if (!n++) print title
		print "  " $1 ": " $4
	}' "$RESULTS"
}

print_failed_output()
{
	local file
	for file in "$WORK"/*.failed; do
		[[ ! -s $file ]] || cat "$file"
	done
}

report()
{
	local configuration
	echo
	print_failed_output
	print_list reduced "Run with reduced counts (all of them: --long):"
	print_list skip "Skipped:"
	print_list fail "Failed:"
	for configuration in "${CONFIGURATIONS[@]}"; do
		printf '%-8s %s\n' "$configuration:" "$(print_counts "$configuration")"
	done
	print_counts
}

parse_options "$@"
need_root "namespaces, taps and huge pages"
install_packages build guest dpdk
make_work_dir
RESULTS=$WORK/results
: >"$RESULTS"
for configuration in "${CONFIGURATIONS[@]}"; do
	run_configuration "$configuration"
done
report
(($(count_results failed) == 0 && $(count_results passed) > 0)) || exit 1
