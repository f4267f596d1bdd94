#!/usr/bin/env bash
# Makes the test guest out of Debian packages: DIR/vmlinuz and DIR/initramfs. A kernel that is
# installed is used; else one is downloaded and unpacked, not installed, so that the host boots
# what it booted before.
# usage: guest-image.sh DIR [PROGRAM|OBJECT...]
#   PROGRAM  more programs for the guest
#   OBJECT   a BPF object, PATH/NAME.o, for the same place in the guest
# GUEST_SUITE and GUEST_KERNEL: take that package of that Debian suite, whatever is installed
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

GUEST_MODULES=(virtio_pci virtio_net)
GUEST_PROGRAMS=(iperf3 ethtool ping)

(($# >= 1)) || die "usage: guest-image.sh DIR [PROGRAM|OBJECT...]"
mkdir -p "$1"
DIR=$(cd "$1" && pwd)
GUEST_OBJECTS=()
for wanted in "${@:2}"; do
	if [[ $wanted == *.o ]]; then GUEST_OBJECTS+=("$wanted"); else GUEST_PROGRAMS+=("$wanted"); fi
done
INIT=$VUX_ROOT/tests/support/guest-init.sh

# Print the newest installed kernel that has its modules; cloud kernels first, they boot faster.
installed_kernel()
{
	local kernel
	for kernel in $(find /boot -name 'vmlinuz-*cloud-amd64' 2>/dev/null | sort -rV) \
		$(find /boot -name 'vmlinuz-*' 2>/dev/null | sort -rV); do
		[[ -r $kernel && -e /lib/modules/${kernel#/boot/vmlinuz-}/modules.dep ]] || continue
		echo "$kernel"
		return
	done
}

# Set APT to the options that make apt look at GUEST_SUITE alone, at the place where the host's own
# packages come from.
use_suite()
{
	local uri
	uri=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
	mkdir -p "$WORK"/apt/{parts,state/lists/partial,cache/archives/partial}
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$uri" "$GUEST_SUITE" \
		/usr/share/keyrings/debian-archive-keyring.gpg >"$WORK/apt/parts/suite.sources"
	APT=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$WORK/apt/parts"
		-o "Dir::State=$WORK/apt/state" -o "Dir::Cache=$WORK/apt/cache"
		-o Dir::State::status=/var/lib/dpkg/status)
	apt-get "${APT[@]}" -qq -o APT::Sandbox::User=root update >&2
}

# Print the name of the cloud kernel's package of the host's own suite.
default_kernel_package()
{
	apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ { print $2; exit }'
}

# Unpack the cloud kernel's package below DIR/kernel.
download_kernel()
{
	local package=${GUEST_KERNEL:-} deb
	APT=()
	if [[ -n ${GUEST_SUITE:-} ]]; then
		use_suite
	else
		apt_update_once
		package=$(default_kernel_package)
	fi
	[[ -n $package ]] || die "no package linux-image-cloud-amd64: install any kernel and try again"
	say "downloading $package for the guest"
	(cd "$WORK" && apt-get "${APT[@]}" -qq -o APT::Sandbox::User=root download "$package" >&2)
	deb=$(find "$WORK" -maxdepth 1 -name '*.deb')
	dpkg-deb -x "$deb" "$DIR/kernel"
	[[ -e $DIR/kernel/lib ]] || ln -s usr/lib "$DIR/kernel/lib"
	depmod -b "$DIR/kernel" "$(ls "$DIR/kernel/lib/modules")"
}

# Set KERNEL to a kernel image, BASE to the folder with its lib/modules ("" for the host's own).
find_kernel()
{
	BASE=
	KERNEL=
	[[ -n ${GUEST_SUITE:-} ]] || KERNEL=$(installed_kernel)
	[[ -z $KERNEL ]] || return 0
	BASE=$DIR/kernel
	[[ -d $BASE ]] || download_kernel
	KERNEL=$(find "$BASE/boot" -name 'vmlinuz-*')
}

# Print the module files in the order in which they must be loaded.
list_modules()
{
	local module
	for module in "${GUEST_MODULES[@]}"; do
		modprobe ${BASE:+-d "$BASE"} -S "$1" --show-depends "$module"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

copy_module()
{
	local name=${1##*/}
	case $name in
	*.xz) xz -dc "$1" >"$2/${name%.xz}" ;;
	*.zst) zstd -qdc "$1" >"$2/${name%.zst}" ;;
	*.gz) gzip -dc "$1" >"$2/${name%.gz}" ;;
	*) cp "$1" "$2/$name" ;;
	esac
}

add_modules()
{
	local module name
	mkdir -p "$1/modules"
	list_modules "${KERNEL##*/vmlinuz-}" | while read -r module; do
		copy_module "$module" "$1/modules"
		name=${module##*/}
		echo "${name%.ko*}.ko" >>"$1/modules/order"
	done
}

# Copy a program of the host with the libraries that it loads.
add_program()
{
	local program library
	program=$(command -v "$2") || die "no program $2 to put into the guest: install the packages of scripts/packages.txt"
	cp -L "$program" "$1/bin/"
	ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
		mkdir -p "$1$(dirname "$library")"
		cp -Ln "$library" "$1$library"
	done
}

make_root()
{
	local root=$1 program file
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,etc}
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp "$INIT" "$root/init"
	chmod 755 "$root/init"
	echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
	for program in "${GUEST_PROGRAMS[@]}"; do
		add_program "$root" "$program"
	done
	for file in "${GUEST_OBJECTS[@]}"; do
		mkdir -p "$root${file%/*}"
		cp -L "$file" "$root$file"
	done
	add_modules "$root"
}

# Not compressed: unpacking costs more than reading, in an emulated guest.
build_image()
{
	make_work_dir
	find_kernel
	make_root "$WORK/root"
	(cd "$WORK/root" && find . | cpio -o -H newc --quiet) >"$DIR/initramfs.new"
	cp "$KERNEL" "$DIR/vmlinuz"
	mv "$DIR/initramfs.new" "$DIR/initramfs"
}

image_is_current()
{
	local file
	for file in $(command -v "${GUEST_PROGRAMS[@]}") "${GUEST_OBJECTS[@]}"; do
		[[ $DIR/initramfs -nt $file ]] || return 1
	done
	[[ $DIR/initramfs -nt $INIT && $DIR/initramfs -nt $VUX_ROOT/tests/support/guest-image.sh &&
		-s $DIR/vmlinuz ]]
}

exec {LOCK}>"$DIR/lock"
flock "$LOCK"
image_is_current || build_image
