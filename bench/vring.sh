# shellcheck shell=bash
# What the experiments with vring-bench share. To be sourced.

# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

ROUNDS=5
MS=500

vring_option()
{
	case $1 in
	--rounds=[1-9]*) ROUNDS=${1#*=} ;;
	--ms=[1-9]*) MS=${1#*=} ;;
	*)
		say "usage: ${0##*/} [--rounds=N] [--ms=N] [--plot=FILE.svg]"
		[[ $1 == --help ]] && exit 0
		exit 2
		;;
	esac
}

# Build what is needed, unless VRING_BENCH=PATH says which binary to measure.
vring_prepare()
{
	make_work_dir
	[[ -z ${VRING_BENCH:-} ]] || return 0
	install_packages build
	build_preset release
	VRING_BENCH=$VUX_ROOT/build/release/bench/vring-bench
}

vring_bench()
{
	"$VRING_BENCH" --rounds="$ROUNDS" --ms="$MS" "$@"
}
