#!/usr/bin/env bash
# Builds the dev container (.devcontainer) and uses it as a student does: make container.
#
# COMMAND='...'  what the student types (without it: make grade EX=1.1)
# MOST=60        seconds of processor that it may take
#
# Debian comes from where this machine's apt has it from, by mmdebstrap; buildah builds the
# Dockerfile in a chroot, which needs root, and no Docker. The student has a tree of lesson 1, no
# network, and nothing of this machine. Everything stays in build/container.
set -euo pipefail

CDPATH='' cd -- "$(dirname -- "$0")/../../.."
home=$PWD/build/container
command=${COMMAND:-make grade EX=1.1}
most=${MOST:-60}
suite=trixie # as the Dockerfile's BASE

say() {
	echo "container: $*" >&2
}

fail() {
	say "$@"
	exit 1
}

in_store() {
	buildah --root "$home/store" --runroot "$home/run" --storage-driver vfs "$@"
}

# Where this machine has Debian's own packages from.
site() {
	# shellcheck disable=SC2016 # apt-get's own names
	apt-get indextargets --format '$(SITE)|$(ORIGIN)|$(LABEL)' 'Created-By: Packages' |
		awk -F '|' '$2 == "Debian" && $3 == "Debian" { print $1; exit }'
}

# Makes the image that the Dockerfile begins with, with this machine's way to packages of Python's.
make_base() {
	local container file
	in_store inspect apprentice-base >/dev/null 2>&1 && return
	[ -e "$home/base.tar" ] ||
		mmdebstrap --mode=root --variant=apt --format=tar --include=ca-certificates,passwd \
			"$suite" "$home/base.tar" "$(site)" >"$home/base.log" 2>&1 ||
		fail "Debian could not be fetched: see $home/base.log"
	container=$(in_store from scratch)
	in_store add -q "$container" "$home/base.tar" / >/dev/null
	for file in /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
		[ ! -e "$file" ] || in_store add -q "$container" "$file" "$file" >/dev/null
	done
	in_store commit -q "$container" apprentice-base >/dev/null
	in_store rm "$container" >/dev/null
}

build_image() {
	local context=$home/context
	rm -rf "$context"
	mkdir -p "$context"
	git ls-files -z .devcontainer labs/tools/setup | tar -c --null -T - | tar -x -C "$context"
	in_store build --isolation chroot --build-arg BASE=apprentice-base -t apprentice \
		-f "$context/.devcontainer/Dockerfile" "$context" >"$home/build.log" 2>&1 ||
		fail "the Dockerfile fails: see $home/build.log"
}

# A student's tree, as a fresh container finds it: nothing is built, no .venv.
make_tree() {
	rm -rf "$home/tree"
	make -s start LESSON=1 DIR="$home/tree"
	chown -R 1000:1000 "$home/tree"
}

# Types the command there, without a network. Says how much processor time it took.
use_image() {
	local container status=0 took
	container=$(in_store from apprentice)
	unshare --net buildah --root "$home/store" --runroot "$home/run" --storage-driver vfs \
		run --isolation chroot --user student --workingdir /srv/kernel \
		-v "$home/tree:/srv/kernel" "$container" -- \
		bash -c "($command)
			status=\$?; times >/tmp/times; tail -n 1 /tmp/times; exit \$status" \
		>"$home/use.log" 2>&1 || status=$?
	in_store rm "$container" >/dev/null
	took=$(tail -n 1 "$home/use.log" |
		awk '{ gsub(/[ms]/, " "); printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }')
	[ "$status" = 0 ] || { tail -n 15 "$home/use.log" >&2 && fail "status $status: $command"; }
	say "$command: $took s of processor"
	[ "$took" -le "$most" ] || fail "more than $most s"
}

for tool in buildah mmdebstrap git; do
	command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install $tool"
done
[ "$(id -u)" = 0 ] || fail "only root can build it without Docker: sudo make container"
mkdir -p "$home"
make_base
build_image
make_tree
use_image
