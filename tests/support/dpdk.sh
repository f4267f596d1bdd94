# shellcheck shell=bash
# Runs dpdk-testpmd, as a frontend (virtio-user) or as the backend to compare with (net_vhost). To
# be sourced after scripts/lib.sh; needs WORK.

TESTPMD_MEM=${TESTPMD_MEM:-192} # MiB for each testpmd
HUGEPAGES=${HUGEPAGES:-256}     # of 2 MiB: two testpmds, and room to spare
PAGES_DIR=/sys/kernel/mm/hugepages/hugepages-2048kB

# --- huge pages ---

# Make sure that HUGEPAGES are free; what is added for it is taken away at the end.
prepare_hugepages()
{
	local lack
	need_root "huge pages"
	lack=$((HUGEPAGES - $(<"$PAGES_DIR/free_hugepages")))
	if ((lack > 0)); then
		add_hugepages "$lack"
		on_exit add_hugepages "-$lack"
		(($(<"$PAGES_DIR/free_hugepages") >= HUGEPAGES)) || return 1
	fi
	HUGE_DIR=$WORK/huge
	mkdir -p "$HUGE_DIR"
	mount -t hugetlbfs -o pagesize=2M none "$HUGE_DIR"
	on_exit umount "$HUGE_DIR"
}

add_hugepages()
{
	echo $(($(<"$PAGES_DIR/nr_hugepages") + $1)) >"$PAGES_DIR/nr_hugepages"
}

# --- testpmd ---

# Start testpmd $1 (a short name) on core $2, with the options $3 of the EAL and $4 of testpmd's own, each
# a string of words; waits for its prompt. It runs in NETNS if that is set.
testpmd_start()
{
	local name=$1 core=$2 eal port inside=()
	read -ra eal <<<"$3"
	read -ra port <<<"$4"
	[[ -z ${NETNS:-} ]] || inside=(ip netns exec "$NETNS")
	rm -f "$WORK/$name.in"
	mkfifo "$WORK/$name.in"
	exec {TESTPMD_FD}<>"$WORK/$name.in"
	# Our end stays open, else testpmd sees the end of its input and stops.
	"${inside[@]}" stdbuf -oL dpdk-testpmd --lcores "0@$core,1@$core" --no-pci --no-telemetry \
		--huge-dir "$HUGE_DIR" --single-file-segments -m "$TESTPMD_MEM" \
		--file-prefix "vux$$$name" "${eal[@]}" -- -i --total-num-mbufs=32768 --disable-link-check "${port[@]}" \
		<"$WORK/$name.in" >"$WORK/$name.out" 2>&1 &
	printf -v "TESTPMD_PID_$name" %s "$!"
	printf -v "TESTPMD_FD_$name" %s "$TESTPMD_FD"
	on_exit testpmd_stop "$name"
	testpmd_has "$name" 20 '^testpmd> ' && return 0
	say "testpmd $name did not start:"
	tail -n 20 "$WORK/$name.out" >&2
	return 1
}

testpmd_pid()
{
	local pid=TESTPMD_PID_$1
	echo "${!pid:-}"
}

# Wait, $2 seconds at most, until the output of testpmd $1 has a line that matches $3.
testpmd_has()
{
	wait_for "$2" file_has "$WORK/$1.out" "$3"
}

# Give testpmd $1 a command, and wait until it has been carried out; prints its output.
testpmd_run()
{
	local name=$1 fd=TESTPMD_FD_$1 from
	shift
	from=$(stat -c %s "$WORK/$name.out")
	printf '%s\n' "$*" >&"${!fd}"
	# The prompt comes back after the output.
	wait_for 20 testpmd_prompted "$name" "$from" || return 1
	tail -c "+$((from + 1))" "$WORK/$name.out"
}

testpmd_prompted()
{
	tail -c "+$(($2 + 1))" "$WORK/$1.out" | tail -n 1 | grep -q '^testpmd> $'
}

# Print a counter (RX-packets, TX-packets) of port $2 of testpmd $1.
testpmd_counter()
{
	testpmd_run "$1" show port stats "$2" | sed -nE "s/.*$3: *([0-9]+).*/\1/p" | head -n 1
}

testpmd_stop()
{
	local name=$1 pid fd=TESTPMD_FD_$1
	pid=$(testpmd_pid "$name")
	[[ -n $pid ]] || return 0
	if is_running "$pid"; then
		printf 'quit\n' >&"${!fd}"
		wait_for 5 is_gone "$pid" || true
		stop_process "$pid"
	fi
	[[ -z ${!fd} ]] || eval "exec ${!fd}>&-"
	printf -v "TESTPMD_PID_$name" ''
	printf -v "TESTPMD_FD_$name" ''
	rm -f "$HUGE_DIR"/"vux$$$name"map_* "$WORK/$name.in"
	rm -rf "/var/run/dpdk/vux$$$name"
}
