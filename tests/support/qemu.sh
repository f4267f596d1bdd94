# shellcheck shell=bash
# A guest in QEMU behind the daemon. To be sourced after scripts/lib.sh, guest.sh and report.sh.

# shellcheck source=tests/support/traffic.sh
. "${SUPPORT:?}/traffic.sh"

export GUEST_ADDRESS=$GUEST_IP/24
TAP=vm0

# A fresh namespace with a tap, or with the options "$@" for `ip tuntap`.
qemu_prepare()
{
	qemu_prepare_alone
	make_tap "$TAP" "$HOST_IP/24" "$@"
}

# A fresh namespace with the network of a port type: PORT is the daemon's port then.
qemu_prepare_port()
{
	qemu_prepare_alone
	make_network "$1" "$HOST_IP/24"
}

qemu_prepare_alone()
{
	need_programs qemu-system-x86_64 busybox cpio iperf3 ping jq ip
	make_work_dir
	prepare_guest_image
	make_netns
}

# --- what interrupts a guest's traffic ---

guest_stops_and_goes_on()
{
	qmp stop && ! ping_guest && qmp cont && ping_resumes 3 && ping_guest_steadily
}

stops_often()
{
	local i
	for ((i = 0; i < 10; i++)); do
		qmp stop && qmp cont || return 1
	done
	ping_resumes 3 && tcp_flows
}

guest_reboots()
{
	guest_reboot && ping_resumes 5 && tcp_flows
}

guest_is_reset()
{
	qmp system_reset && guest_wait_ready "$GUEST_BOOT_SECONDS" && ping_resumes 5 && tcp_flows -R
}

survives_kill_under_load()
{
	local iperf status=0
	start_process "$WORK/iperf.log" ip netns exec "$NETNS" iperf3 --forceflush -c "$GUEST_IP" -t 30
	iperf=$STARTED
	wait_for 5 file_has "$WORK/iperf.log" 'sec .*bits/sec' || return 1
	survives_kill || status=1
	stop_process "$iperf"
	return "$status"
}

# All of it, for the guest that runs; the daemon is gone then.
check_life()
{
	check "stop and cont" guest_stops_and_goes_on
	check "stop and cont ten times in a row" stops_often
	check "the daemon is killed: pings resume within 3 s" survives_kill
	check "the daemon is killed under load" survives_kill_under_load
	check "TCP to the guest after that" tcp_flows
	check "the daemon is restarted in good order" survives_restart
	check "the guest reboots" guest_reboots
	check "the guest is reset" guest_is_reset
	check "the daemon is killed after a reboot" survives_kill
	check "the daemon ends in good order" daemon_stop
}
