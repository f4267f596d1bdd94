#!/bin/busybox sh
# shellcheck shell=dash
# The test guest's only program: sets up the network from the kernel's command line (vux.addr=...),
# starts iperf3's server, and then runs the lines that arrive on the second serial port:
#   -> TAG COMMAND...     <- the command's output, then "@@ TAG STATUS"
# "@@ ready" says that it has booted.

prepare_system()
{
	/bin/busybox --install -s /bin
	export PATH=/bin HOME=/
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t devtmpfs dev /dev
	while read -r module; do
		insmod "/modules/$module"
	done </modules/order
}

# Print the value of a word NAME=VALUE of the kernel's command line.
boot_option()
{
	tr ' ' '\n' </proc/cmdline | sed -n "s/^$1=//p"
}

prepare_network()
{
	hostname guest
	ip link set lo up
	# Duplicate address detection would send packets when nobody expects any.
	echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
	echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
	address=$(boot_option vux.addr)
	[ -z "$address" ] || ip addr add "$address" dev eth0
	ip link set eth0 up
	serve_iperf &
}

# A server gives up when a client goes without a word.
serve_iperf()
{
	while :; do
		iperf3 -s >/dev/null 2>&1
		sleep 0.1
	done
}

serve_commands()
{
	stty raw -echo
	echo "@@ ready"
	while read -r tag command; do
		(eval "$command") </dev/null
		echo "@@ $tag $?"
	done
}

prepare_system
prepare_network
serve_commands </dev/ttyS1 >/dev/ttyS1 2>&1
poweroff -f
