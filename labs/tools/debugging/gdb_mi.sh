#!/usr/bin/env bash
# What an editor starts instead of gdb (.vscode/launch.json): make gdb, which speaks gdb's MI.
#
# gdb_mi.sh [LESSON=n] [gdb's options, which are left out: make gdb has its own]
set -euo pipefail

CDPATH='' cd -- "$(dirname -- "$0")/../../.."
settings=()
for word; do
	[[ $word != *=* || $word == -* ]] || settings+=("$word")
done
exec make -s gdb SERVER=mi "${settings[@]}"
