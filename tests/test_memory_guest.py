"""Lesson 6's kernel from a program's side: what Linux promises about memory, and what is left after
programs that take all of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from labs.tools.machine.bounded import run_within
from tests.building import make

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests/lesson6/programs"
COMPILER = ("i686-linux-gnu-gcc", "-O1", "-static", "-no-pie")
SECONDS = 600  # of real time, on a busy machine: a backstop
ELSEWHERE = {
    "more than there are addresses",
    "an offset that wraps: EOVERFLOW",
    "the kernel is not there",
}
"""What a 64-bit Linux does otherwise: 4 GiB for programs of 32 bits, and longer offsets."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """The programs, compiled, in a folder for the guest's root."""
    place = tmp_path_factory.mktemp("programs")
    for source in PROGRAMS.glob("*.c"):
        command = [*COMPILER, str(source), "-o", str(place / source.stem)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip(f"there is no {COMPILER[0]} here")
    return place


def guest(programs: Path, command: str, memory: int = 64) -> str:
    """What a command prints in the guest."""
    make("LESSON=6", "image-direct", "user-programs")
    words = [sys.executable, "-m", "labs.tools.machine.run", "--boot", "direct"]
    words += ["--user", "build/user/bin", "--build", "build/lesson6", "--memory", str(memory)]
    words += ["--programs", str(programs), "--command", command]
    done = run_within(words, cwd=ROOT, capture_output=True, text=True, seconds=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def failures(output: str) -> set[str]:
    assert re.search(r"^1\.\.\d+$", output, re.MULTILINE), output
    return set(re.findall(r"^not ok \d+ (.*)$", output, re.MULTILINE))


def test_promises(programs):
    assert failures(guest(programs, "/memory")) == set()


def test_promises_are_those_of_linux(programs):
    """The program asks nothing of our kernel that Linux does not do."""
    try:
        done = subprocess.run([programs / "memory"], capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"this machine does not run i386 programs: {error}")
    assert failures(done.stdout) <= ELSEWHERE


def free_kib(output: str) -> list[int]:
    return [int(number) for number in re.findall(r"^MemFree: +(\d+) kB$", output, re.MULTILINE)]


@pytest.mark.parametrize("memory", [24, 64])
def test_who_takes_all_is_killed_alone(programs, memory):
    """The shell is alive after each, and what was taken is free again when it is asked for."""
    output = guest(
        programs,
        "F='grep ^MemFree /proc/meminfo'; $F; /eater memory; /eater maps; /eater families;"
        "/eater forks; /eater vfork; /eater memory; $F; echo alive",
        memory,
    )
    assert re.findall(r"^eater (\w+): signal 9$", output, re.MULTILINE).count("memory") == 2
    assert "eater vfork: status 7" in output
    assert set(re.findall(r"^out of memory: killed \d+ \((\w+)\)", output, re.MULTILINE)) == {
        "eater"
    }
    before, after = free_kib(output)
    assert after > before * 0.95, output
    assert output.endswith("alive\n")
