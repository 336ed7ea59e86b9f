"""Building with make, for tests that run in several processes."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def make(*words: str) -> None:
    """Builds these targets of this tree, one process at a time; the test fails if make does."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "-s", *words]
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.fail(f"make {' '.join(words)} failed:\n{made.stdout}{made.stderr}", pytrace=False)
