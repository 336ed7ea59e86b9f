#!/usr/bin/env bash
# PrairieLearn runs it for each submission: /grade/student to /grade/results/results.json
set -euo pipefail

cd "${APPRENTICE:-/apprentice}"
exec .venv/bin/python -m labs.tools.cohort.platform --format prairielearn --lesson @LESSON@ \
	--submission "${GRADE:-/grade}/student" --output "${GRADE:-/grade}/results/results.json"
