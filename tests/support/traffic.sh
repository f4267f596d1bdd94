# shellcheck shell=bash
# Traffic between the host, in NETNS, and a guest behind the daemon that answers pings and runs iperf3's
# server. To be sourced after scripts/lib.sh and report.sh.

GUEST_IP=10.77.0.2
# shellcheck disable=SC2034 # for the tests
HOST_IP=10.77.0.1
# How long each flow is, as iperf3 is told it; a test may say so first.
[[ -n ${IPERF_LENGTH:-} ]] || IPERF_LENGTH=(-t "$(repeats "seconds of each flow" 2 5)")

# One ping of the guest that must be answered within a second; more options of ping's.
ping_guest()
{
	in_netns ping -q -c 1 -W 1 "$@" "$GUEST_IP"
}

# A short while of pings, all of them answered.
ping_guest_steadily()
{
	in_netns ping -q -c 20 -i 0.05 -W 2 "$@" "$GUEST_IP" | tee "$WORK/ping.out"
	grep -q ' 0% packet loss' "$WORK/ping.out"
}

# Pings are answered again within $1 seconds.
ping_resumes()
{
	wait_for "$1" ping_guest
}

# Run iperf3's client against the guest, with options "$@" ("-R": the guest sends); its report is in
# $WORK/iperf.json.
iperf_guest()
{
	local deadline=$(($(now_us) + 10000000))
	until iperf_once "$@"; do
		# A server whose last client was killed needs a moment to notice, and to start again; it resets
		# who has come in between.
		file_has "$WORK/iperf.json" 'server is busy\|Connection refused\|Connection reset' &&
			(($(now_us) < deadline)) || return 1
		sleep 0.2
	done
}

iperf_once()
{
	timeout -k 1 60 ip netns exec "$NETNS" iperf3 -J -c "$GUEST_IP" "${IPERF_LENGTH[@]}" "$@" \
		>"$WORK/iperf.json" || {
		jq -r '.error // empty' "$WORK/iperf.json"
		return 1
	}
	! jq -e .error "$WORK/iperf.json"
}

# TCP at no less than 1 Mbit/s, with options "$@".
tcp_flows()
{
	iperf_guest "$@" &&
		at_least "$(jq '.end.sum_received.bits_per_second | floor' "$WORK/iperf.json")" 1000000 bit/s
}

# UDP at 5 Mbit/s; a guest on a busy machine may lose some, but not a tenth.
udp_flows()
{
	iperf_guest -u -b 5M "$@" &&
		at_least "$(jq '.end.sum.packets' "$WORK/iperf.json")" 100 packets &&
		at_least 10 "$(jq '.end.sum.lost_percent | floor' "$WORK/iperf.json")" "percent lost"
}

# The daemon dies without a word and comes back; the guest connects again by itself.
survives_kill()
{
	daemon_kill && daemon_restart && ping_resumes 3
}

survives_restart()
{
	daemon_stop && daemon_restart && ping_resumes 3
}
