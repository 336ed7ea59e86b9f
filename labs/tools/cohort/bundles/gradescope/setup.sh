#!/usr/bin/env bash
# Gradescope runs it once, as root, when the image is made: Ubuntu 24.04 or later (Python 3.11).
set -euo pipefail

apt-get update
apt-get install -y git make
mkdir -p /autograder/source/apprentice
tar -xzf /autograder/source/apprentice.tar.gz -C /autograder/source/apprentice
cd /autograder/source/apprentice
make setup-test
.venv/bin/python -m pip install -q -r labs/tools/setup/requirements-box.txt
.venv/bin/python -m labs.tools.cohort.platform --lesson @LESSON@ --prepare
chmod 700 /autograder/source
