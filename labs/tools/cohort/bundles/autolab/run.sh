#!/usr/bin/env bash
# Grades @NAME@.zip in this folder; the last line of the output has the points. In an image where
# `make setup-test` has run in /apprentice, that is used.
set -euo pipefail

here=$PWD
place=${APPRENTICE:-/apprentice}
if [ ! -x "$place/.venv/bin/python" ]; then
	place=$here/apprentice
	mkdir -p "$place"
	tar -xzf apprentice.tar.gz -C "$place"
	make -s -C "$place" setup-test >&2
	(cd "$place" && .venv/bin/python -m pip install -q \
		-r labs/tools/setup/requirements-box.txt >&2)
fi
cd "$place"
exec .venv/bin/python -m labs.tools.cohort.platform --format autolab --lesson @LESSON@ \
	--submission "$here/@NAME@.zip"
