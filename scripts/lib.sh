# shellcheck shell=bash
# What the scripts, the shell tests and the benchmarks share: packages, builds, clean-up, waiting.
# To be sourced, after `set -euo pipefail`. Whatever is made through it is gone when the script
# ends, however it ends.

VUX_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say()
{
	printf '%s\n' "$*" >&2
}

die()
{
	say "${0##*/}: $*"
	exit 1
}

need_root()
{
	[[ $EUID -eq 0 ]] || die "needs root for $1: run it as root"
}

# --- packages ---

# Print the packages of the groups $@.
list_packages()
{
	local group
	for group in "$@"; do
		awk -v group="$group" '$1 == group { print $2 }' "$VUX_ROOT/scripts/packages.txt"
	done
}

# Print those of the packages $@ that are not installed.
missing_packages()
{
	local package
	for package in "$@"; do
		dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
			echo "$package"
	done
}

apt_update_once()
{
	[[ -z ${VUX_APT_UPDATED:-} ]] || return 0
	apt-get -qq update >&2 || die "apt-get update failed: check the network and the package sources"
	VUX_APT_UPDATED=1
}

# Install what is missing of the package groups $@.
install_packages()
{
	local packages missing
	command -v apt-get >/dev/null ||
		die "installs packages with apt-get: on other systems install the like of scripts/packages.txt"
	mapfile -t packages < <(list_packages "$@")
	mapfile -t missing < <(missing_packages "${packages[@]}")
	[[ ${#missing[@]} -gt 0 ]] || return 0
	need_root "installing packages"
	say "installing: ${missing[*]}"
	apt_update_once
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install \
		"${missing[@]}" </dev/null >"${TMPDIR:-/tmp}/vux-apt.$$" 2>&1 || {
		tail -n 20 "${TMPDIR:-/tmp}/vux-apt.$$" >&2
		die "apt-get install failed"
	}
	rm -f "${TMPDIR:-/tmp}/vux-apt.$$"
}

# --- builds ---

# Configure and build a preset; further arguments are targets. Prints only on failure.
build_preset()
{
	local preset=$1 log
	shift
	log=$(mktemp)
	if (cd "$VUX_ROOT" && cmake --preset "$preset" &&
		cmake --build --preset "$preset" -j "$(nproc)" ${1:+--target "$@"}) >"$log" 2>&1; then
		rm -f "$log"
		return 0
	fi
	tail -n 60 "$log" >&2
	rm -f "$log"
	say "building the preset $preset failed"
	return 1
}

# --- clean-up ---

CLEANUPS=()

# Run the command $@ when the script ends; the last one registered runs first.
on_exit()
{
	CLEANUPS+=("$(printf '%q ' "$@")")
}

run_cleanups()
{
	local status=$? i
	trap '' INT TERM HUP
	trap - EXIT
	set +e
	for ((i = ${#CLEANUPS[@]} - 1; i >= 0; i--)); do
		eval "${CLEANUPS[i]}"
	done
	exit "$status"
}

trap run_cleanups EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# Set WORK to a new directory, gone at the end.
make_work_dir()
{
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/vux.XXXXXXXX")
	on_exit rm -rf "$WORK"
}

# Set NETNS to a new network namespace with lo up, gone at the end.
make_netns()
{
	need_root "network namespaces"
	NETNS=vux-$$-$RANDOM
	ip netns add "$NETNS"
	on_exit ip netns del "$NETNS"
	in_netns ip link set lo up
	# Kernels without IPv6 have no such settings. With it, new interfaces send by themselves.
	in_netns sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6' 2>/dev/null || true
}

# Run a command in the namespace. `exec` makes its pid that of the job when started with &.
in_netns()
{
	ip netns exec "$NETNS" "$@"
}

# A tap "$1" in the namespace, up; $2: ip address with prefix, or ""; further arguments for `ip tuntap`.
make_tap()
{
	local name=$1 address=$2
	shift 2
	in_netns ip tuntap add dev "$name" mode tap vnet_hdr "$@"
	[[ -z $address ]] || in_netns ip addr add "$address" dev "$name"
	in_netns ip link set "$name" up
}

# Make a veth pair, both ends up: $1 for the daemon, $2 for the host, with the address $3 ("": none) and
# further options "$@" of `ip link`.
make_veth()
{
	local near=$1 far=$2 address=$3
	shift 3
	in_netns ip link add "$near" "$@" type veth peer name "$far" "$@"
	[[ -z $address ]] || in_netns ip addr add "$address" dev "$far"
	in_netns ip link set "$near" up
	in_netns ip link set "$far" up
}

# Make the network behind a daemon of the port type $1, with the host's address $2. PORT is the daemon's
# port then, and HOST_IF where the host is on it.
make_network()
{
	case $1 in
	tap) HOST_IF=vm0 && make_tap vm0 "$2" ;;
	xdp) HOST_IF=host0 && make_veth vm0 "$HOST_IF" "$2" ;;
	esac
	PORT=$1:vm0
}

# --- processes ---

# Start "$@" in the background, without our terminal's input; its pid is in STARTED. It is ended
# with the script. Output goes to the file $1.
start_process()
{
	local log=$1
	shift
	# Before the child does it: who waits for a line must not find that of the process before.
	: >"$log"
	"$@" </dev/null >"$log" 2>&1 &
	STARTED=$!
	on_exit stop_process "$STARTED"
}

is_running()
{
	[[ -d /proc/$1 ]] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

# Print how often the threads of process $1 have gone to sleep.
count_sleeps()
{
	cat "/proc/$1/task/"*/status | awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }'
}

is_gone()
{
	! is_running "$1"
}

# End a process that we started: TERM, and KILL after 5 s.
stop_process()
{
	local pid=$1
	if is_running "$pid"; then
		kill -TERM "$pid" 2>/dev/null || true
		wait_for 5 is_gone "$pid" || kill -KILL "$pid" 2>/dev/null || true
	fi
	wait "$pid" 2>/dev/null || true
}

# --- waiting ---

# Microseconds since the epoch.
now_us()
{
	echo "${EPOCHREALTIME/[^0-9]/}"
}

# Wait until the command "${@:2}" succeeds, $1 seconds at most. Return: 0; 1 when it never did.
wait_for()
{
	local deadline=$(($(now_us) + $1 * 1000000))
	shift
	until "$@"; do
		(($(now_us) < deadline)) || return 1
		sleep 0.05
	done
}

file_has()
{
	grep -qs -- "$2" "$1"
}

# --- the daemon ---

DAEMON=${VUX_DAEMON:-$VUX_ROOT/build/release/src/vhost-user-xdp}
DAEMON_PREFIX=() # a command that starts it, "taskset -c 0"
DAEMON_NAME=vhost # of its socket and log; who has more than one at a time names each

# Start the daemon in the namespace with the options "$@" beyond --socket-path; waits for its ready
# line. SOCK, DAEMON_PID and DAEMON_LOG say where it is.
daemon_start()
{
	SOCK=$WORK/$DAEMON_NAME.sock
	DAEMON_LOG=$WORK/$DAEMON_NAME.log
	DAEMON_ARGS=("$@")
	start_process "$DAEMON_LOG" ip netns exec "$NETNS" "${DAEMON_PREFIX[@]}" "$DAEMON" \
		--socket-path="$SOCK" "$@"
	DAEMON_PID=$STARTED
	wait_for 10 daemon_has_settled || true
	file_has "$DAEMON_LOG" '^ready: ' && return 0
	say "the daemon did not get ready:"
	cat "$DAEMON_LOG" >&2
	return 1
}

daemon_has_settled()
{
	is_gone "$DAEMON_PID" || file_has "$DAEMON_LOG" '^ready: '
}

ctl()
{
	"${VUX_CTL:-$VUX_ROOT/build/release/src/vhost-user-ctl}" --ctl-path="$SOCK.ctl" "$@"
}

# Print a counter: its total, or that of queue pair $2.
counter()
{
	local where=total
	[[ $# -eq 1 ]] || where="queues[$2]"
	ctl stats --json | jq ".$where.$1"
}

# Start the daemon again as it was, after it has ended.
daemon_restart()
{
	daemon_start "${DAEMON_ARGS[@]}"
}

# End the daemon as its users do. Return: 0 when it went within 2 s, with status 0.
daemon_stop()
{
	local status=0
	kill -TERM "$DAEMON_PID"
	wait_for 2 is_gone "$DAEMON_PID" || return 1
	wait "$DAEMON_PID" || status=$?
	((status == 0)) || say "the daemon ended with status $status"
	return "$status"
}

daemon_kill()
{
	kill -KILL "$DAEMON_PID"
	wait "$DAEMON_PID" 2>/dev/null || true
}
