#!/usr/bin/env bash
# Tries the course on a bare Debian of another version, in a container: make distributions.
#
# DIST=12|13|next   only this Debian (or bookworm, trixie, forky, testing); without it 12 and
#                13, one after the other. next is what Debian's next release has by now
# WHO=user|root  only as an ordinary user with sudo, or only as root (without it both)
# COMMAND='...'  only this command (without it: make run </dev/null, then make test)
# LIMIT=s        seconds for a command, 7200 unless given
# KEEP=yes       go on with the system of the last time, with what is installed and built there
#
# What is tried is the last commit. A system has git, make and sudo, as after a standard install;
# its packages come from where this machine's own apt has Debian from. The container (namespaces and
# pivot_root; a chroot forbids the tests their own sandbox) has the host's network, and nothing else
# of it. Systems, logs and what was tried stay in build/distributions.
set -euo pipefail

CDPATH='' cd -- "$(dirname -- "$0")/../../.."
home=$PWD/build/distributions
declare -A suite=([12]=bookworm [13]=trixie [next]=forky)
declare -A number=([bookworm]=12 [trixie]=13 [forky]=next [testing]=next)
limit=${LIMIT:-7200}
bootstrap_limit=1800
student=/srv/student # the home of the ordinary user, in the container

say() {
	echo "distributions: $*" >&2
}

fail() {
	say "$@"
	exit 1
}

# Where this machine has Debian's own packages from.
site() {
	# shellcheck disable=SC2016 # apt-get's own names
	apt-get indextargets --format '$(SITE)|$(ORIGIN)|$(LABEL)' 'Created-By: Packages' |
		awk -F '|' '$2 == "Debian" && $3 == "Debian" { print $1; exit }'
}

# Makes the archive of a bare system, once.
bootstrap() {
	local archive=$home/debian$1.tar place options=()
	[ ! -e "$archive" ] || return 0
	place=$(site)
	[ -n "$place" ] || fail "this machine's apt knows no place for Debian's packages"
	say "Debian $1 is fetched, which takes some minutes"
	# A mirror may be weeks old: what it has of a release in the making counts as expired.
	[ "$1" != next ] || options=(--aptopt='Acquire::Check-Valid-Until "false"')
	timeout "$bootstrap_limit" mmdebstrap --mode=root --variant=apt --format=tar \
		"${options[@]}" --include=ca-certificates,git,make,mount,passwd,sudo \
		"${suite[$1]}" "$archive.part" "$place" \
		>"$home/debian$1-bootstrap.log" 2>&1 || {
		rm -f "$archive.part"
		fail "Debian $1 could not be fetched: see $home/debian$1-bootstrap.log"
	}
	mv "$archive.part" "$archive"
}

# Unpacks a system, with a user, this machine's way to the network, and a clone.
prepare() {
	local root=$1 file
	rm -rf --one-file-system "$root"
	mkdir -p "$root"
	tar -xf "$home/debian$2.tar" -C "$root"
	for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /usr/local/share/ca-certificates \
		${PIP_FIND_LINKS:-}; do
		[ -e "$file" ] || continue
		mkdir -p "$root${file%/*}"
		cp -rL "$file" "$root${file%/*}/"
	done
	chroot "$root" /usr/sbin/update-ca-certificates >/dev/null 2>&1 || true
	echo "student:x:1000:1000::$student:/bin/bash" >>"$root/etc/passwd"
	echo 'student:x:1000:' >>"$root/etc/group"
	echo 'student:*:20000:0:99999:7:::' >>"$root/etc/shadow"
	mkdir -p "$root$student"
	echo 'student ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/student"
	chown 1000:1000 "$root$student"
}

# Gives each user a clone, or brings the one that is there to the last commit.
renew() {
	local place clone owner
	for place in "$student" /root; do
		clone=$1$place/apprentice
		owner=$(stat -c '%u:%g' "$1$place")
		[ -e "$clone" ] || git clone -q --no-hardlinks . "$clone"
		git -c safe.directory='*' -C "$clone" fetch -q "$PWD" HEAD
		git -c safe.directory='*' -C "$clone" reset -q --hard FETCH_HEAD
		chown -R "$owner" "$clone"
	done
}

# Inside new namespaces: makes the system the root, and runs a command there. bwrap needs a /proc
# that nothing covers.
enter() {
	local root=$1 user=$2 command=$3 status
	mount --make-rprivate /
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount -t tmpfs -o mode=755 dev "$root/dev"
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
	mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
	mknod -m 666 "$root/dev/null" c 1 3
	mknod -m 666 "$root/dev/zero" c 1 5
	mknod -m 666 "$root/dev/full" c 1 7
	mknod -m 666 "$root/dev/random" c 1 8
	mknod -m 666 "$root/dev/urandom" c 1 9
	mknod -m 666 "$root/dev/tty" c 5 0
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	ln -s fd/0 "$root/dev/stdin"
	ln -s fd/1 "$root/dev/stdout"
	ln -s fd/2 "$root/dev/stderr"
	mkdir -p "$root/old"
	pivot_root "$root" "$root/old"
	umount -l /old
	cd /
	# This shell stays, in a session of its own: process 1 collects orphans, ignores signals.
	status=0
	(as_user "$user" "$command") || status=$?
	exit "$status"
}

# Runs a command in the clone, with the environment of a login and this machine's way to packages.
as_user() {
	local name=root place=/root kept
	[ "$1" = root ] || name=student place=$student
	mapfile -t kept < <(env |
		grep -E '^(PIP|SSL|REQUESTS|CURL)_[A-Z_]+=|^[a-z]+_proxy=' || true)
	cd "$place/apprentice"
	exec setsid setpriv --reuid "$name" --regid "$name" --init-groups \
		env -i "${kept[@]}" HOME="$place" USER="$name" LOGNAME="$name" LANG=C.UTF-8 \
		TERM=dumb PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games \
		bash -c "$2"
}

# Runs one command as one user; says how it ended, and how long it took. Nothing is lost by KILL:
# all that it has is in the container.
try() {
	local dist=$1 who=$2 command=$3 root=$home/debian$1 log begin=$SECONDS status=0 end
	log=$home/debian$dist-$who-$(tr -cs 'a-z0-9' '-' <<<"${command:0:40}" | sed 's/-*$//').log
	{
		setpriv --pdeathsig KILL timeout --signal=KILL "$limit" \
			setpriv --pdeathsig KILL unshare --mount --pid --ipc --uts --fork \
			--kill-child=SIGKILL "$0" enter "$root" "$who" "$command" \
			</dev/null >"$log" 2>&1 || status=$?
	} 2>/dev/null
	end="status $status after $((SECONDS - begin)) s"
	((status != 137 || SECONDS - begin < limit)) || end="not ended within $limit s (LIMIT)"
	say "Debian $dist, $who: $command: $end ($log)"
	[ "$status" = 0 ] || { tail -n 15 "$log" >&2 && failed=1; }
}

# Refuses what was mistyped, before anything is fetched.
check_request() {
	local word
	for word in ${DIST:-}; do
		[ -n "${suite[${number[$word]:-$word}]:-}" ] ||
			fail "DIST=$word: must be 12, 13 or next"
	done
	for word in ${WHO:-}; do
		[[ $word == user || $word == root ]] || fail "WHO=$word: must be user or root"
	done
	[[ $limit =~ ^[1-9][0-9]*$ ]] || fail "LIMIT=$limit: must be a number of seconds"
}

main() {
	local dist who command commands=('make run </dev/null' 'make test')
	check_request
	[ "$(id -u)" = 0 ] || exec sudo --preserve-env=DIST,WHO,COMMAND,LIMIT,KEEP,KEPT "$0"
	command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing: apt-get install mmdebstrap"
	[ -z "${COMMAND:-}" ] || commands=("$COMMAND")
	mkdir -p "$home"
	failed=0
	for dist in ${DIST:-12 13}; do
		dist=${number[$dist]:-$dist}
		bootstrap "$dist"
		for who in ${WHO:-user root}; do
			if [ -z "${KEEP:-}" ] || [ ! -e "$home/debian$dist" ]; then
				prepare "$home/debian$dist" "$dist"
			fi
			renew "$home/debian$dist"
			for command in "${commands[@]}"; do
				try "$dist" "$who" "$command"
			done
		done
	done
	exit "$failed"
}

# Nothing stays in a container when make has gone.
[ -n "${KEPT:-}" ] || KEPT=yes exec setpriv --pdeathsig KILL "$0" "$@"

case ${1:-} in
enter) enter "$2" "$3" "$4" ;;
'') main ;;
*) fail "usage: DIST=13 WHO=user COMMAND='make run' $0" ;;
esac
