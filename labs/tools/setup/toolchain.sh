#!/usr/bin/env bash
# Says which compiler and linker build for the i386, found by trying them, not by their versions.
#
# toolchain.sh [prefix]   prints the prefix, such as i686-linux-gnu- (empty for the plain gcc)
# toolchain.sh cc | ld    prints the command, such as "gcc -m32" and "ld -m elf_i386"
# toolchain.sh NAME       prints any other tool of the set (objcopy, nm, addr2line, ...)
# toolchain.sh explain    prints one line a candidate: prefix, a tab, "ok" or why it does not work
#
# CROSS in the environment, when not empty, is the only candidate. Exit status 1, with the causes on
# stderr, when nothing works. The answer is kept in build/toolchain as long as PATH and CROSS stay.
set -euo pipefail

CDPATH='' cd -- "$(dirname -- "$0")/../../.."
cache=build/toolchain
key="CROSS=${CROSS:-} PATH=$PATH"
candidates=(i686-linux-gnu- i686-elf- i386-elf- x86_64-elf- "")
[ -z "${CROSS:-}" ] || candidates=("$CROSS")

has() {
	command -v "$1" >/dev/null
}

# Compiles and links a tiny freestanding file with prefix $1. On failure prints one line: the cause.
try() {
	local tool trial=$scratch/trial
	for tool in "$1gcc" "$1ld"; do
		has "$tool" || { echo "$tool is not in PATH" && return 1; }
	done
	cat >"$trial.c" <<-'END'
		#include <stdarg.h>
		#include <stdbool.h>
		#include <stddef.h>
		#include <stdint.h>
		int32_t start(uint32_t number);
		int32_t start(uint32_t number) { return (int32_t)number; }
	END
	{
		"$1gcc" -m32 -std=gnu11 -ffreestanding -fno-pic -c "$trial.c" -o "$trial.o" &&
			"$1ld" -m elf_i386 -e start -Ttext=0xC0100000 "$trial.o" -o "$trial"
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
		[ "$known" = "$key" ] && has "${prefix}gcc" && has "${prefix}ld"
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
cc) echo "${prefix}gcc -m32" ;;
ld) echo "${prefix}ld -m elf_i386" ;;
*) echo "$prefix$1" ;;
esac
