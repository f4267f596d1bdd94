# shellcheck shell=bash
# How a shell test reports. To be sourced after scripts/lib.sh; needs WORK. Each check prints one line,
# "pass: NAME", "fail: NAME" with the output behind it, or "skip: NAME: REASON"; scripts/test.sh
# counts these lines.

N_PASSED=0
N_FAILED=0
N_SKIPPED=0

# Run "${@:2}" as the check named $1. It passes when the command's status is 0. The command runs in
# this shell but without `set -e`: its steps are joined by && or checked.
check()
{
	run_check "$@" || true
}

# A check without which the others make no sense.
require()
{
	run_check "$@" || finish
}

run_check()
{
	local name=$1
	shift
	if "$@" >"$WORK/check.out" 2>&1; then
		N_PASSED=$((N_PASSED + 1))
		echo "pass: $name"
		return 0
	fi
	N_FAILED=$((N_FAILED + 1))
	echo "fail: $name"
	tail -n 30 "$WORK/check.out" | sed 's/^/	/'
	[[ -z ${DAEMON_LOG:-} ]] || tail -n 10 "$DAEMON_LOG" | sed 's/^/	daemon: /'
	return 1
}

skip()
{
	N_SKIPPED=$((N_SKIPPED + 1))
	echo "skip: $1: $2"
}

# Skip the whole script. $1: reason.
skip_all()
{
	skip "${0##*/}" "$1"
	exit 77
}

# Skip the whole script where one of the programs $@ is missing or we are not root.
need_programs()
{
	local program
	[[ $EUID -eq 0 ]] || skip_all "needs root"
	for program in "$@"; do
		command -v "$program" >/dev/null || skip_all "no program $program"
	done
}

# A buffer that the guest takes from one queue and gives to another looks like a race of two workers.
# shellcheck disable=SC2034 # for the tests
TSAN_IS_BLIND="ThreadSanitizer does not see how the guest orders its queues"

# Whether the daemon under test was built with ThreadSanitizer.
has_thread_sanitizer()
{
	grep -q __tsan_init "$DAEMON"
}

# Print a number of repeats, or seconds, of the thing $1: $2, or with VUX_LONG=1 all $3 of them.
repeats()
{
	if [[ ${VUX_LONG:-} == 1 ]]; then
		echo "$3"
		return
	fi
	echo "$1: reduced: $2 of $3" >&2
	echo "$2"
}

# Port xdp: what is free, filled, received, to be sent and sent is all that there is.
# "$@": what prints the rings, if not our own daemon's control tool.
frames_are_conserved()
{
	(($# > 0)) || set -- ctl rings
	same 0 "$("$@" | awk '/^frames/ { found = 1; next }
		found { lost += $2 - $3 - $4 - $5 - $6 - $7; n++ } END { print n ? lost : "no line" }')" \
		"frames lost"
}

# End the script with the status that its checks deserve.
finish()
{
	((N_FAILED == 0)) || exit 1
	((N_PASSED > 0)) || exit 77
	exit 0
}

# Succeed when $1 is at least $2, say so otherwise.
at_least()
{
	(($1 >= $2)) || {
		echo "$1 is less than $2${3:+: $3}"
		return 1
	}
}

# Succeed when the two values are the same.
same()
{
	[[ $1 == "$2" ]] || {
		echo "expected '$1', got '$2'${3:+: $3}"
		return 1
	}
}
