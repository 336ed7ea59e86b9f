"""What the storage lab's handout tells to type in the guest works there as it is printed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support.building import ROOT, make

HANDOUT = (ROOT / "labs/storage/README.md").read_text()


@pytest.mark.slow
def test_a_snapshot_of_a_drive():
    """The commands are on the left; two blanks part them from what they do."""
    part = HANDOUT.partition("## A snapshot of a drive")[2].partition("\n## ")[0]
    lines = re.findall(r"^    (\S.*?)  +\S", part, re.MULTILINE)
    assert lines[0] == "make run LESSON=storage" and len(lines) == 5
    make("LESSON=storage", "image-direct", "user-programs", "build/host/lab-file")
    command = [sys.executable, "-m", "labs.storage.run", "--build", "build/storage",
               "--user", "build/user/bin", "--reads", "1000", "--scale", "100",
               "--boot", "direct", "--command", "set -e; " + "; ".join(lines[1:])]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^big +lost\+found$", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^dm-0 +hdd +hdb +P +16 .* valid$", done.stdout, re.MULTILINE), done.stdout
