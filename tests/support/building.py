"""Building with make, for tests that run in several processes."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

WHOLE = os.environ.get("WHOLE") == "yes"
"""make test WHOLE=yes: every case where many are equal. Else a test takes those that it names."""


def make(*words: str) -> None:
    """Builds these targets of this tree, one process at a time; the test fails if make does."""
    (ROOT / "build").mkdir(exist_ok=True)
    with alone(ROOT / "build" / ".lock"):
        command = ["make", "-s", *words]
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.fail(f"make {' '.join(words)} failed:\n{made.stdout}{made.stderr}", pytrace=False)


def first_is_fast(values: Iterable[object]) -> list[object]:
    """Values of a parameter, of which make test-fast takes the first alone."""
    first, *others = values
    return [first, *(pytest.param(each, marks=pytest.mark.slow) for each in others)]


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Only one process at a time is here with this file, which is made if it is not there."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def shared_folder(factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], None]) -> Path:
    """A temporary folder that all processes of this run have together: the first one that asks for
    it fills it, the others wait."""
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    place = base / name
    with alone(base / f"{name}.lock"):
        if not place.exists():
            try:
                place.mkdir()
                fill(place)
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
    return place


def mentioned(programs: Path, script: str) -> Path:
    """A folder with those of the programs that a script names. What is in the guest's root is
    copied at each boot: a static program takes 60 ms of processor."""
    words = set(re.findall(r"\w+", script))
    files = [path for path in programs.iterdir() if path.name in words or path.is_dir()]
    names = "".join(f"-{path.name}" for path in sorted(files))
    place = programs.with_name(f"{programs.name}-{os.getpid()}{names}")
    if not place.exists():
        place.mkdir()
        for path in files:
            (place / path.name).hardlink_to(path)
    return place
