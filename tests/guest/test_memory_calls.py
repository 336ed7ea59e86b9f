"""Linux as the model of lesson 6's calls about memory: the same program makes the same random calls
(mmap, munmap, mprotect, mremap, brk, madvise, msync, mincore, and accesses) on this machine's Linux
and on our kernel. Results, errors, signals and the layout must be the same.

CALL_SEEDS=20 in the environment tries this many seeds instead of three.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from labs.tools.machine.bounded import run_within
from tests.host.units import SEED
from tests.support.building import make

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests/programs/memory/calls.c"
COMPILER = ("i686-linux-gnu-gcc", "-O1", "-static", "-no-pie")
CALLS = 1000
SEEDS = range(SEED, SEED + int(os.environ.get("CALL_SEEDS", "3")))
SECONDS = 600  # of real time, on a busy machine: a backstop
AROUND = 4  # calls that are shown before one that differs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled, in a folder for the guest's root."""
    place = tmp_path_factory.mktemp("calls")
    command = [*COMPILER, str(SOURCE), "-o", str(place / "calls")]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip(f"there is no {COMPILER[0]} here")
    return place


@pytest.fixture(scope="module")
def linux(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[str]]:
    """What Linux says, by seed."""
    place = tmp_path_factory.mktemp("linux")
    try:
        return {
            seed: subprocess.run(
                [folder / "calls", str(seed), str(CALLS)],
                cwd=place,
                check=True,
                capture_output=True,
                text=True,
            ).stdout.splitlines()
            for seed in SEEDS
        }
    except OSError as error:
        pytest.skip(f"this machine does not run i386 programs: {error}")


@pytest.fixture(scope="module")
def ours(folder: Path, linux: dict[int, list[str]]) -> dict[int, list[str]]:
    """What our kernel says, by seed: all in one machine, which has no memory left to lose."""
    make("LESSON=6", "image-direct", "user-programs")
    seeds = " ".join(map(str, linux))
    command = f"for s in {seeds}; do echo seed $s; /calls $s {CALLS}; done"
    words = [sys.executable, "-m", "labs.tools.machine.run", "--boot", "direct"]
    words += ["--user", "build/user/bin", "--build", "build/lesson6"]
    words += ["--programs", str(folder), "--command", command]
    done = run_within(words, cwd=ROOT, capture_output=True, text=True, seconds=SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    parts = re.split(r"^seed (\d+)\n", done.stdout, flags=re.MULTILINE)[1:]
    return {
        int(seed): text.splitlines() for seed, text in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_calls_are_those_of_linux(
    linux: dict[int, list[str]], ours: dict[int, list[str]], seed: int
) -> None:
    wanted, got = linux[seed], ours[seed]
    assert len(wanted) == CALLS
    for number, (theirs, mine) in enumerate(zip(wanted, got, strict=False)):
        assert theirs == mine, (
            f"seed {seed}, call {number}, after\n"
            + "\n".join(wanted[max(0, number - AROUND) : number])
            + f"\nLinux: {theirs}\nours:  {mine}\n"
            f"the layout after it: calls {seed} {number + 1} {number} {number}, on both"
        )
    assert len(got) == CALLS, f"ours ends after call {len(got) - 1}"
