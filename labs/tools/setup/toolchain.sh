#!/usr/bin/env bash
# Says which compiler and linker build for the i386, found by trying them, not by their versions.
#
# toolchain.sh [prefix]   prints the set's prefix, such as i686-linux-gnu-, empty for the plain gcc;
#                         clang or clang-lld for those
# toolchain.sh cc | ld    prints the command, such as "gcc -m32" and "ld -m elf_i386"
# toolchain.sh options    prints the options that this compiler has, and the others have not
# toolchain.sh base       prints the linker's option that an address follows: a program's first
# toolchain.sh NAME       prints any other tool of the set (objcopy, nm, addr2line, ...)
# toolchain.sh explain    prints one line a candidate: prefix, a tab, "ok" or why it does not work
#
# CROSS in the environment, when not empty, is the only candidate: a prefix, clang (with GNU's ld)
# or clang-lld. Nobody gets clang who has not asked for it: the texts show gcc's code. Exit status
# 1, with the causes on stderr, when nothing works. The answer is kept in build/toolchain as long as
# PATH and CROSS stay.
set -euo pipefail

CDPATH='' cd -- "$(dirname -- "$0")/../../.."
cache=build/toolchain
key="CROSS=${CROSS:-} PATH=$PATH"
candidates=(i686-linux-gnu- i686-elf- i386-elf- x86_64-elf- "")
[ -z "${CROSS:-}" ] || candidates=("$CROSS")

has() {
	command -v "$1" >/dev/null
}

is_clang() {
	[[ $1 == clang || $1 == clang-lld ]]
}

# Prints the command of tool $2 of the set $1. LLVM's tools are taken where GNU's are not there.
command_of() {
	local command=$1$2
	if is_clang "$1"; then
		command=$2
		[ "$1$2" != clang-lldld ] || command=ld.lld
		has "$command" || command=llvm-$2
	fi
	case $2 in
	cc) is_clang "$1" && echo "clang --target=i386-linux-gnu" || echo "$1gcc -m32" ;;
	ld) echo "$command -m elf_i386" ;;
	*) echo "$command" ;;
	esac
}

# What only one kind of compiler knows. The kernel's stacks are aligned to 16 bytes by both.
options_of() {
	if is_clang "$1"; then
		echo "-mstack-alignment=16 -Wno-unknown-attributes"
	else
		echo "-fno-shrink-wrap -fno-tree-loop-distribute-patterns" \
			"-mpreferred-stack-boundary=4 -Wno-dangling-pointer"
	fi
}

# GNU's ld has one option for where a program begins, LLVM's the other.
base_of() {
	local ld
	read -ra ld < <(command_of "$1" ld)
	[[ $("${ld[@]}" --help) == *-Ttext-segment* ]] && echo -Ttext-segment= || echo --image-base=
}

# Prints the first of set $1's compiler and linker that is not in PATH.
absent() {
	local tool command
	for tool in cc ld; do
		command=$(command_of "$1" "$tool")
		has "${command%% *}" || { echo "${command%% *}" && return; }
	done
}

# Compiles and links a tiny freestanding file with set $1. On failure prints one line: the cause.
try() {
	local trial=$scratch/trial gone cc ld
	gone=$(absent "$1")
	[ -z "$gone" ] || { echo "$gone is not in PATH" && return 1; }
	read -ra cc < <(command_of "$1" cc)
	read -ra ld < <(command_of "$1" ld)
	cat >"$trial.c" <<-'END'
		#include <stdarg.h>
		#include <stdbool.h>
		#include <stddef.h>
		#include <stdint.h>
		int32_t start(uint32_t number);
		int32_t start(uint32_t number) { return (int32_t)number; }
	END
	{
		"${cc[@]}" -std=gnu11 -ffreestanding -fno-pic -c "$trial.c" -o "$trial.o" &&
			"${ld[@]}" -e start -Ttext=0xC0100000 "$trial.o" -o "$trial"
	} >"$scratch/output" 2>&1 && return
	# Of several messages the one that says "error" tells most.
	grep -m 1 -i error "$scratch/output" || sed -n 1p "$scratch/output"
	return 1
}

# Sets prefix to the first candidate that works; otherwise prints why each does not, and fails.
search() {
	local reason reasons=()
	for prefix in "${candidates[@]}"; do
		reason=$(try "$prefix") && return
		reasons+=("  ${prefix:-plain gcc -m32}: $reason")
	done
	{
		if [ -n "${CROSS:-}" ]; then
			echo "toolchain: CROSS=$CROSS does not work:"
		else
			echo "toolchain: nothing builds for the i386;" \
				"fix: labs/tools/setup/setup.sh run"
		fi
		printf '%s\n' "${reasons[@]}"
	} >&2
	return 1
}

explain() {
	local reason
	for prefix in "${candidates[@]}"; do
		reason=$(try "$prefix") && reason=ok
		printf '%s\t%s\n' "$prefix" "$reason"
	done
}

# Keeps the answer. A tree that cannot be written to only costs the time of the search.
remember() {
	mkdir -p build && printf '%s\n' "$key" "$prefix" >"$cache.$$" && mv "$cache.$$" "$cache"
} 2>/dev/null

# Sets prefix to the answer that was kept, if it is still good.
recall() {
	local known
	{ read -r known && read -r prefix; } 2>/dev/null <"$cache" &&
		[ "$known" = "$key" ] && [ -z "$(absent "$prefix")" ]
}

if [ "${1:-}" = explain ] || ! { [ -e "$cache" ] && recall; }; then
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	[ "${1:-}" != explain ] || { explain && exit; }
	search
	remember || true
fi
case ${1:-prefix} in
prefix) echo "$prefix" ;;
options) options_of "$prefix" ;;
base) base_of "$prefix" ;;
*) command_of "$prefix" "$1" ;;
esac
