#!/usr/bin/env bash
# Prints where tests keep their temporary files: TMPDIR if it is set; /dev/shm if it has room and
# the machine has that much memory to spare; else /tmp, or /var/tmp where /tmp runs no programs.
# Tests make and remove many thousand small files: on a disk's file system that takes a tenth of all
# their processor time.
#
# MEMORY_FOLDER and MEMORY_NEEDED (KiB), in the environment, are for its own test.
set -euo pipefail

place=${MEMORY_FOLDER:-/dev/shm}
needed=${MEMORY_NEEDED:-$((3 << 20))} # two tests with large disks at a time use 0.25 GiB

has_room() {
	local room spare
	room=$(df -k --output=avail "$place" 2>/dev/null | tail -n 1)
	spare=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
	[ "${room:-0}" -ge "$needed" ] && [ "${spare:-0}" -ge "$needed" ]
}

# Containers often forbid to run programs in /dev/shm, and cautious machines in /tmp.
runs_programs() {
	local trial status=0
	trial=$(mktemp -d "$1/trial-XXXXXX" 2>/dev/null) || return
	printf '#!/bin/sh\n' >"$trial/program"
	chmod +x "$trial/program"
	"$trial/program" 2>/dev/null || status=1
	rm -rf "$trial"
	return "$status"
}

if [ -n "${TMPDIR:-}" ]; then
	echo "$TMPDIR"
elif has_room && runs_programs "$place"; then
	echo "$place"
elif ! runs_programs /tmp && runs_programs /var/tmp; then
	echo /var/tmp
else
	echo /tmp
fi
