# shellcheck shell=bash
# Runs the test guest in QEMU and talks to it. To be sourced after scripts/lib.sh; needs WORK.
#
# GUEST_DIR  where the image is kept (guest-image.sh)
# GUEST_MEM  MiB of guest memory
# GUEST_CPUS virtual CPUs

GUEST_DIR=${GUEST_DIR:-$VUX_ROOT/build/guest}
GUEST_MEM=${GUEST_MEM:-512}
GUEST_CPUS=${GUEST_CPUS:-1}
GUEST_BOOT_SECONDS=60
QEMU_PREFIX=() # in front of QEMU's command line

# Arguments: more programs for the guest.
prepare_guest_image()
{
	bash "$VUX_ROOT/tests/support/guest-image.sh" "$GUEST_DIR" "$@"
}

# Print QEMU's version as one number: 702 for 7.2.
qemu_version()
{
	qemu-system-x86_64 --version | sed -nE '1s/.*version ([0-9]+)\.([0-9]+).*/\1 \2/p' |
		{ read -r major minor && echo $((major * 100 + minor)); }
}

# --- acceleration ---

# A kernel that hangs under KVM is all that tells a KVM that does not work from one that does.
probe_kvm()
{
	[[ -w /dev/kvm ]] || return 1
	guest_launch "$WORK/kvm-probe" kvm || return 1
	if guest_wait_ready 15; then
		guest_kill
		return 0
	fi
	guest_kill
	return 1
}

# Set ACCEL to kvm where the guest boots with it, else tcg. The answer is kept beside the image.
choose_accel()
{
	local kept=$GUEST_DIR/accel
	if [[ ! -e $kept || $GUEST_DIR/initramfs -nt $kept ]]; then
		if probe_kvm; then echo kvm >"$kept"; else echo tcg >"$kept"; fi
	fi
	ACCEL=$(<"$kept")
}

# --- the virtual machine ---

# Start QEMU. $1: a new directory for its files; $2: kvm or tcg; others: more options of QEMU's.
guest_launch()
{
	local accel=$2 cpu=max
	GUEST=$1
	shift 2
	[[ $accel == tcg ]] || cpu=host
	mkdir -p "$GUEST"
	mkfifo "$GUEST"/{agent,qmp}.{in,out}
	start_process "$GUEST/qemu.log" "${QEMU_PREFIX[@]}" qemu-system-x86_64 -accel "$accel" -cpu "$cpu" \
		-nodefaults -no-user-config -display none -smp "$GUEST_CPUS" -m "$GUEST_MEM" \
		-object memory-backend-memfd,id=m0,size="${GUEST_MEM}M",share=on -numa node,memdev=m0 \
		-kernel "$GUEST_DIR/vmlinuz" -initrd "$GUEST_DIR/initramfs" \
		-append "console=ttyS0 loglevel=5 panic=0 cryptomgr.notests mitigations=off vux.addr=${GUEST_ADDRESS:-}" \
		-serial "file:$GUEST/console.log" \
		-chardev "pipe,id=agent,path=$GUEST/agent" -serial chardev:agent \
		-chardev "pipe,id=qmp,path=$GUEST/qmp" -mon chardev=qmp,mode=control "$@"
	QEMU_PID=$STARTED
	exec {AGENT_IN}<>"$GUEST/agent.in" {AGENT_OUT}<>"$GUEST/agent.out"
	exec {QMP_IN}<>"$GUEST/qmp.in" {QMP_OUT}<>"$GUEST/qmp.out"
	QMP_READY=
}

# Start QEMU with its network card at the socket $1, with $2 queue pairs; further arguments: more
# properties of the card ("host_mtu=9000").
guest_start()
{
	local socket=$1 pairs=$2 device reconnect="reconnect=1"
	shift 2
	device=virtio-net-pci,netdev=n0,romfile=
	choose_accel
	# QEMU 7.2 crashes with vhost-user and MSI-X where there is no KVM.
	[[ $ACCEL == kvm || $(qemu_version) -ge 1000 ]] || device+=,vectors=0
	[[ $(qemu_version) -lt 902 ]] || reconnect="reconnect-ms=1000"
	((pairs == 1)) || device+=,mq=on
	guest_launch "$WORK/guest.$RANDOM" "$ACCEL" \
		-chardev "socket,id=c0,path=$socket,$reconnect" \
		-netdev "vhost-user,id=n0,chardev=c0,queues=$pairs" \
		-device "$(IFS=,; echo "$device${*:+,$*}")"
	guest_wait_ready "$GUEST_BOOT_SECONDS" && return 0
	say "the guest did not boot; QEMU said:"
	cat "$GUEST/qemu.log" >&2
	tail -n 20 "$GUEST/console.log" >&2
	return 1
}

guest_kill()
{
	is_gone "$QEMU_PID" || kill -KILL "$QEMU_PID"
	wait "$QEMU_PID" 2>/dev/null || true
	exec {AGENT_IN}>&- {AGENT_OUT}>&- {QMP_IN}>&- {QMP_OUT}>&-
}

# --- commands ---

# Read the guest's lines until one that begins with $1; those before it are printed, and what follows it
# there is in REST.
# $2: deadline in microseconds since the epoch. Return: 0; 1 when it did not come.
guest_read_until()
{
	local line left
	while left=$(($2 - $(now_us))) && ((left > 0)) && is_running "$QEMU_PID"; do
		IFS= read -r -t "$((left / 1000000 + 1))" line <&"$AGENT_OUT" || return 1
		case $line in
		"$1"*) REST=${line#"$1"} && return 0 ;;
		"@@ "*) ;; # the end of a command that we no longer wait for
		*) printf '%s\n' "$line" ;;
		esac
	done
	return 1
}

# Wait until the guest has booted, $1 seconds at most.
guest_wait_ready()
{
	guest_read_until "@@ ready" $(($(now_us) + $1 * 1000000)) >/dev/null
}

# Run a shell command in the guest, ${GUEST_SECONDS:-30} seconds at most; prints its output.
# Return: its status; 124 when it did not end.
guest_run()
{
	local tag=${EPOCHREALTIME/[^0-9]/}
	printf '%s %s\n' "$tag" "$*" >&"$AGENT_IN"
	guest_read_until "@@ $tag " $(($(now_us) + ${GUEST_SECONDS:-30} * 1000000)) || return 124
	return "$REST"
}

# Reboot the guest from inside, and wait until it is back.
guest_reboot()
{
	printf 'reboot reboot -f\n' >&"$AGENT_IN"
	guest_wait_ready "$GUEST_BOOT_SECONDS"
}

# Give QEMU a QMP command: qmp stop; prints its reply. Return: 1 when it is an error, or none comes.
qmp()
{
	local line
	if [[ -z $QMP_READY ]]; then
		QMP_READY=1
		echo '{"execute":"qmp_capabilities"}' >&"$QMP_IN"
		IFS= read -r -t 10 line <&"$QMP_OUT" && IFS= read -r -t 10 line <&"$QMP_OUT" || return 1
	fi
	printf '{"execute":"%s"}\n' "$1" >&"$QMP_IN"
	while IFS= read -r -t 10 line <&"$QMP_OUT"; do
		case $line in
		'{"return"'*) printf '%s\n' "$line" && return 0 ;;
		'{"error"'*) printf '%s\n' "$line" && return 1 ;;
		esac
	done
	return 1
}
