#!/usr/bin/env bash
# alone.sh COMMAND ...: runs it while no other make builds in this tree, and says for whom it waits.
# Two that build at a time would write to the same files. What the command starts keeps the lock.
#
# LOCK_SECONDS, in the environment, is for its own test.
set -uo pipefail

lock=build/.lock
seconds=${LOCK_SECONDS:-1800}

say() {
	echo "make: $*" >&2
}

if ! { mkdir -p build && : >>$lock; } 2>/dev/null; then
	say "$PWD/build cannot be written: is it root's (sudo make), or the disk full or protected?"
	exit 1
fi
exec 9>>$lock
if ! flock -n 9; then
	say "waiting for process $(<$lock), which builds in this tree"
	flock -w "$seconds" 9 || {
		say "process $(<$lock) has built for $seconds seconds; nothing was done here." \
			"See what it does (ps -f $(<$lock)), end it, and try again"
		exit 1
	}
fi
echo $$ 2>/dev/null >$lock
exec "$@"
