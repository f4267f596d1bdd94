# shellcheck shell=bash
# Guests at native speed: tests/vguest, each in a namespace of its own. To be sourced after scripts/lib.sh;
# needs WORK.

VGUEST_PREFIX=() # a command that starts it, "taskset -c 1"
VGUEST=${VUX_VGUEST:-$VUX_ROOT/build/release/tests/vguest}

# Make the namespace of guest $1 (a short name): GUEST_NS_$1. NETNS stays what it is.
vguest_make_netns()
{
	local host=${NETNS:-}
	make_netns
	printf -v "GUEST_NS_$1" %s "$NETNS"
	NETNS=$host
}

# Run a command in the namespace of guest $1.
in_guest()
{
	local ns=GUEST_NS_$1
	shift
	ip netns exec "${!ns}" "$@"
}

# Start "${@:3}" in the background in the namespace of guest $1; output goes to the file $2.
vguest_start_process()
{
	local ns=GUEST_NS_$1 log=$2
	shift 2
	start_process "$log" ip netns exec "${!ns}" "$@"
}

# Start guest $1 at the socket $2, with the address $3 (with its prefix) and further options of vguest's;
# waits until it is connected. Its pid is in VGUEST_PID_$1, its output in $WORK/$1.vguest.
vguest_start()
{
	local name=$1 socket=$2 address=$3
	shift 3
	vguest_start_process "$name" "$WORK/$name.vguest" \
		"${VGUEST_PREFIX[@]}" "$VGUEST" --socket-path="$socket" --tap=eth0 "$@"
	printf -v "VGUEST_PID_$name" %s "$STARTED"
	wait_for 5 file_has "$WORK/$name.vguest" '^ready: ' || {
		say "guest $name did not start:"
		cat "$WORK/$name.vguest" >&2
		return 1
	}
	in_guest "$name" ip addr add "$address" dev eth0
}

vguest_pid()
{
	local pid=VGUEST_PID_$1
	echo "${!pid}"
}

vguest_stop()
{
	stop_process "$(vguest_pid "$1")"
}

# Print the counter $2 of guest $1.
vguest_counter()
{
	local n
	n=$(grep -c '^{' "$WORK/$1.vguest" || true)
	kill -USR1 "$(vguest_pid "$1")"
	wait_for 2 vguest_has_printed "$1" "$n" || return 1
	grep '^{' "$WORK/$1.vguest" | tail -n 1 | jq ".$2"
}

vguest_has_printed()
{
	(($(grep -c '^{' "$WORK/$1.vguest") > $2))
}
