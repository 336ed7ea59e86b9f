#!/usr/bin/env bash
# Brings a Debian or Ubuntu machine to where the course runs: packages (packages.txt) and .venv.
#
# setup.sh run     what building and booting need
# setup.sh test    that, and what tests of a kernel need: `make grade`
# setup.sh suite   that, and what only `make test` needs: a machine without such a package goes on
# setup.sh page    what `test` needs, and what only `make page` needs: Node, and packages of npm
# setup.sh check   installs nothing: one line for each thing in packages.txt and for .venv, with
#                  tabs between: ok, missing or unavailable, run, test or suite, how it is found,
#                  packages (or nothing), path (or nothing), what it is for
#
# Looks for commands and headers, not for packages. When nothing is missing it says nothing and
# takes a few hundredths of a second. Messages go to stderr, apt's and pip's to build/setup.log.
# Exit status 0, or not 0 after a message with the cause. PYTHON=NAME prefers that Python.
set -euo pipefail

CDPATH='' cd -- "$(dirname -- "$0")/../../.."
tools=labs/tools/setup
log=build/setup.log
path_of_user=$PATH
PATH=${PATH//"$PWD/.venv/bin:"/} # an activated .venv cannot make itself
PATH=$PATH:/usr/sbin:/sbin       # mkfs and debugfs; not in PATH of a normal user

say() {
	echo "setup: $*" >&2
}

fail() {
	say "$@"
	exit 1
}

# What failed may be a disk that is full: the tools' own words do not say so, or only in the log,
# and have made room again (pip, apt's two, dpkg).
say_if_full() {
	if grep -qsE 'Errno 28|No space left|enough free space' "$log"; then
		say "the disk is full: make room, and run it again"
		return
	fi
	printf '%4096s' '' 2>/dev/null >build/room ||
		say "nothing can be written to $PWD/build: is the disk full, or protected?"
	rm -f build/room
}

# ---- what is there ----------------------------------------------------------------------------

has() {
	command -v "$1" >/dev/null
}

toolchain() {
	PATH=$path_of_user "$tools/toolchain.sh" "$@"
}

# Debian has GRUB for the PC only on a PC: nothing else needs it, so the rest goes on without.
never_packaged() {
	[ "$1" = grub-for-pc ] && [[ ! $(uname -m) =~ ^(x86_64|i[3-6]86)$ ]]
}

# No pipe into a trial: with pipefail it would fail where the compiler ends before all is written.
has_header() {
	gcc -E - <<<"#include <$1>" >/dev/null 2>&1
}

# Tries the chosen compiler, and the two that may have a static C library with it.
links_static() {
	local compiler
	for compiler in "$(toolchain cc 2>/dev/null)" "i686-linux-gnu-gcc" "gcc -m32"; do
		# shellcheck disable=SC2086 # a command with its option
		$compiler -static -x c - -o /dev/null <<<'int main(void) { return 0; }' \
			>/dev/null 2>&1 && return
	done
	return 1
}

# GRUB's modules are next to the grub-mkrescue that uses them.
has_grub() {
	local command
	command=$(command -v grub-mkrescue) &&
		[ -e "${command%/bin/*}/lib/grub/i386-pc/moddep.lst" ]
}

# Does the Python $1 pass a test in its own language?
answers() {
	"$1" -I -c "import sys; $2" 2>/dev/null
}

# Sets python to a command that is new enough and can make virtual environments. If there is none,
# too_old holds the paths of older ones and no_venv is 1 if one lacks only the venv module.
find_python() {
	local candidate
	python='' too_old='' no_venv=0
	for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14; do
		has "$candidate" || continue
		if ! answers "$candidate" "sys.exit(sys.version_info < (3, 11))"; then
			too_old="$too_old $(command -v "$candidate")"
		elif answers "$candidate" "import ensurepip, venv"; then
			python=$candidate
			return
		else
			no_venv=1
		fi
	done
	return 1
}

# Chromium is not in Ubuntu's archive, and its other package wants snapd.
has_browser() {
	has chromium || has chromium-browser
}

# The same places as in labs/page/build.py.
has_firmware() {
	local folder
	for folder in /usr/share/seabios /usr/share/qemu /opt/homebrew/share/qemu; do
		[ ! -e "$folder/bios.bin" ] || return 0
	done
	return 1
}

# Is the thing there that packages.txt describes by $1?
found() {
	case $1 in
	command:*) has "${1#command:}" ;;
	header:*) has_header "${1#header:}" ;;
	i386-compiler) toolchain >/dev/null 2>&1 ;;
	i386-static-libc) links_static ;;
	browser) has_browser ;;
	firmware) has_firmware ;;
	grub-for-pc) has_grub ;;
	python-with-venv) find_python ;;
	*) fail "$tools/packages.txt: unknown way to find a thing: $1" ;;
	esac
}

# The lines of packages.txt that mode $1 needs: each mode needs what those before it do.
needs() {
	local needed rest modes=(run test suite)
	[ "$1" = suite ] || modes=(run "$1")
	[ "$1" != page ] || modes=(run test page)
	while read -r needed rest; do
		[[ " ${modes[*]} " == *" $needed "* ]] && echo "$needed $rest"
	done <"$tools/packages.txt" || true
}

# ---- stamps: what was done already ------------------------------------------------------------

# A stamp is what sha256sum says of some files, by absolute path: it no longer holds when one of
# them changes or when the tree is moved.
holds() {
	[ -e "$1" ] && sha256sum --check --status "$1"
}

stamp_machine() {
	sha256sum "$PWD/$tools/setup.sh" "$PWD/$tools/packages.txt" >"build/setup-$1"
}

stamp_environment() {
	local lists=("$PWD/$tools/requirements-run.txt")
	[ "$1" = run ] || lists+=("$PWD/$tools/requirements.txt")
	[ "$1" != suite ] || lists=("$PWD/$tools/requirements-suite.txt")
	sha256sum "${lists[@]}" >".venv/ready-$1"
}

# .venv has what mode $1 needs, and its Python is still the one it was made with.
environment_ready() {
	[ -e .venv/made-with ] && [ .venv/bin/python -ef "$(<.venv/made-with)" ] &&
		holds ".venv/ready-$1"
}

# The compiler that toolchain.sh chose last has not gone.
compiler_stays() {
	local prefix
	{ read -r _ && read -r prefix; } 2>/dev/null <build/toolchain || return 1
	[[ $prefix == clang* ]] || { has "${prefix}gcc" && has "${prefix}ld"; }
}

# The quick look: all stamps hold, and no command has gone since.
ready() {
	local needed found_by
	[ -e build/toolchain ] && compiler_stays && environment_ready "$1" &&
		holds "build/setup-$1" || return 1
	while read -r needed found_by _; do
		[[ $found_by != command:* ]] || has "${found_by#command:}" || return 1
	done < <(needs "$1")
}

# ---- packages ---------------------------------------------------------------------------------

# Sets missing to the packages that mode $1 needs and the machine lacks; says why each.
look_for_missing() {
	local found_by packages why name
	missing=()
	while read -r _ found_by packages why; do
		found "$found_by" && continue
		if never_packaged "$found_by"; then
			say "no GRUB for the PC is packaged for $(uname -m): without BOOT=grub"
			continue
		fi
		say "${found_by#*:} is missing ($why): needs ${packages//,/ }"
		for name in ${packages//,/ }; do
			[[ " ${missing[*]} " == *" $name "* ]] || missing+=("$name")
		done
	done < <(needs "$1")
}

# Refuses what apt-get cannot fix.
refuse_hopeless() {
	if [ -n "${CROSS:-}" ] && ! toolchain >/dev/null; then
		fail "unset CROSS, or set it to the prefix of a compiler that works"
	fi
	if ! find_python && [ -n "$too_old" ] && [ "$no_venv" = 0 ]; then
		fail "Python 3.11 or later is needed, and this is older:$too_old. Install a newer" \
			"one with its venv module, and name it: PYTHON=python3.11 make ..."
	fi
}

# Prints the package manager of this system, which os-release names: another one may be there, too.
manager() {
	local each
	# shellcheck disable=SC1090 # a list of variables
	case " $(. "${OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "$ID ${ID_LIKE:-}") " in
	*" fedora "* | *" rhel "*) echo dnf ;;
	*" arch "*) echo pacman ;;
	*)
		for each in dnf pacman brew; do
			has "$each" && echo "$each" && return
		done
		;;
	esac
}

# Prints how to install what is missing on a system without apt-get.
by_other_means() {
	local column names none install
	case $(manager) in
	dnf) column=2 install="sudo dnf install" ;;
	pacman) column=3 install="sudo pacman -S --needed" ;;
	brew) column=4 install="brew install" ;;
	*) echo "Install by other means what Debian calls: ${missing[*]}" && return ;;
	esac
	names=$(other_names "$column" | grep -vx -e - | sort -u | tr '\n' ' ')
	none=$(not_packaged "$column")
	none=${none:+; no package is known for: $none}
	echo "Try: $install ${names% }$none"
}

# Prints what the system of column $1 of names.txt calls what is missing, a line each.
other_names() {
	local name
	for name in "${missing[@]}"; do
		awk -v name="$name" -v column="$1" '$1 == name { print $column }' "$tools/names.txt"
	done | tr ',' '\n'
}

# Prints what is missing and has no name there.
not_packaged() {
	local name found=()
	for name in "${missing[@]}"; do
		awk -v name="$name" -v column="$1" '$1 == name && $column == "-" { none = 1 }
			END { exit !none }' "$tools/names.txt" && found+=("$name")
	done
	echo "${found[*]}"
}

# Sets as_root to what makes a command run as root.
become_root() {
	local wanted="apt-get install --no-install-recommends ${missing[*]}"
	as_root=()
	has apt-get || fail "no apt-get here. $(by_other_means)"
	[ "$(id -u)" != 0 ] || return 0
	has sudo || fail "neither root nor sudo. Ask for, or run as root: $wanted"
	as_root=(sudo)
}

apt_get() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" \
		>>"$log" 2>&1 9>&-
}

# Shows the end of the log and leaves with status $1.
give_up() {
	local status=$1
	shift
	tail -n 12 "$log" >&2
	say "$* (all of it: $log)"
	exit "$status"
}

# --no-remove: better to fail than to throw out a package of the user's (gcc-multilib, for one).
install_missing() {
	local status=0
	become_root
	say "installing with apt-get, which takes a few minutes: ${missing[*]}"
	apt_get update || say "apt-get update failed; trying with the package lists that are there"
	apt_get install -y --no-install-recommends --no-remove "${missing[@]}" || status=$?
	[ "$status" = 0 ] || give_up "$status" "apt-get could not install: ${missing[*]}"
	rm -f build/toolchain
}

# What only the suite needs may be missing: its tests are skipped, and named.
install_for_suite() {
	look_for_missing suite
	[ ${#missing[@]} != 0 ] || return 0
	(install_missing) || say "without ${missing[*]}: make test skips what needs it, and says so"
}

install_packages() {
	look_for_missing "$1"
	[ ${#missing[@]} != 0 ] || return 0
	refuse_hopeless
	install_missing
	look_for_missing "$1"
	[ ${#missing[@]} = 0 ] ||
		fail "installed, but still not found (see above; make doctor tells more)"
}

# ---- .venv ------------------------------------------------------------------------------------

# Without bytecode every command would compile what it imports, since the Makefile lets none be
# written: a second for pytest, two for Sphinx. pip's own compiling is slower: it uses one CPU.
compile_environment() {
	local unused='/(tests?|pip|setuptools|pkg_resources|fontTools)/'
	.venv/bin/python -I -m compileall -q -j 0 -x "$unused" .venv/lib \
		>>"$log" 2>&1 9>&- || true
}

pip_install() {
	PIP_USER=0 .venv/bin/python -I -m pip install --disable-pip-version-check --no-input \
		--no-compile --quiet "$@" >>"$log" 2>&1 9>&-
}

# A .venv without a good stamp was not finished, was moved, or has other versions: it is made again.
# Only what `run` needs may stay when `test` adds to it.
make_environment() {
	local list=requirements.txt
	[ "$1" != run ] || list=requirements-run.txt
	if ! environment_ready run; then
		find_python || fail "Python has gone while this ran"
		rm -rf .venv
		"$python" -I -m venv .venv >>"$log" 2>&1 || give_up 1 "$python could not make .venv"
		readlink -f .venv/bin/python >.venv/made-with
	fi
	rm -f .venv/ready-*
	say "installing Python packages into .venv, for make $1"
	pip_install -r "$tools/$list" ||
		give_up 1 "pip could not install $tools/$list; is there a network? Run it again"
	compile_environment
	[ "$1" = run ] || stamp_environment test
	stamp_environment run
}

# The packages of npm, as package-lock.json pins them. No script of theirs is run.
install_npm() {
	local list=labs/page/package-lock.json
	local options=(--ignore-scripts --no-audit --no-fund)
	[ -e labs/author.mk ] || options+=(--omit=dev) # the tests of the pages are not there
	holds build/npm/ready && return
	mkdir -p build/npm
	cp "${list%-lock.json}.json" "$list" build/npm/
	say "installing npm's packages into build/npm, for make page"
	npm ci --prefix build/npm "${options[@]}" >>"$log" 2>&1 9>&- ||
		give_up 1 "npm could not install $list; is there a network? Run it again"
	sha256sum "$PWD/$list" >build/npm/ready
}

# What only the suite needs may be missing.
add_for_suite() {
	if pip_install --no-deps -r "$tools/requirements-suite.txt"; then
		stamp_environment suite
	else
		say "pip could not install $tools/requirements-suite.txt: make test skips" \
			"what needs it"
	fi
}

# ---- the three uses ---------------------------------------------------------------------------

# Prints the path of what $1 describes, if it has one.
path_of() {
	case $1 in
	command:*) command -v "${1#command:}" ;;
	grub-for-pc) command -v grub-mkrescue ;;
	python-with-venv) command -v "${python:-}" ;;
	esac
}

check() {
	local needed found_by packages why mode state path
	while read -r needed found_by packages why; do
		state=missing
		! never_packaged "$found_by" || state=unavailable
		[ "$needed" != suite ] || state=unavailable # and nothing to fix
		! found "$found_by" || state=ok
		path=$(path_of "$found_by") || true
		printf '%s\t' "$state" "$needed" "$found_by" "$packages" "$path"
		echo "$why"
	done < <(needs "$([ -e labs/author.mk ] && echo suite || echo test)")
	for mode in run test; do
		state=missing
		! environment_ready "$mode" || state=ok
		printf '%s\t%s\t.venv\t\t%s\tPython packages\n' "$state" "$mode" "$PWD/.venv"
	done
}

# One at a time: two makes may have been started together.
lock() {
	mkdir -p build
	exec 9>>build/setup.lock
	flock -n 9 && return
	say "waiting for another set-up of this tree"
	flock -w 1800 9 || fail "the other set-up has not ended within 30 minutes"
}

prepare() {
	ready "$1" && return
	lock
	ready "$1" && return
	trap '[ $? = 0 ] || say_if_full' EXIT
	: >"$log"
	install_packages "$1"
	environment_ready "$1" || make_environment "$1"
	stamp_machine "$1"
}

# Once; whether a package was there is not asked again until these files change.
prepare_suite() {
	prepare test
	environment_ready suite && holds build/setup-suite && return
	lock
	: >"$log"
	environment_ready suite || add_for_suite
	holds build/setup-suite && return
	install_for_suite
	stamp_machine suite
}

# Once; asked again when packages.txt or npm's list changes.
prepare_page() {
	prepare test
	holds build/setup-page && holds build/npm/ready && return
	lock
	: >"$log"
	install_packages page
	install_npm
	stamp_machine page
}

case ${1:-} in
run | test) prepare "$1" ;;
page) prepare_page ;;
suite) prepare_suite ;;
check) check ;;
*) fail "usage: setup.sh run|test|suite|page|check" ;;
esac
