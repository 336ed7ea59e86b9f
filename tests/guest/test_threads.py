"""Threads, futexes and shared memory: the same static program of glibc runs on this machine's Linux
and on our kernel, and says the same. Afterwards nothing of it is left: as many tasks, files, pipes
and inodes as before, and no less free memory.

THREAD_SEEDS=20 in the environment tries so many seeds instead of two: with each the timer finds the
threads, which dawdle at random, somewhere else.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from labs.tools.machine.bounded import run_within
from tests.host.units import SEED
from tests.support.building import make, shared_folder

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "tests/programs/threads").glob("*.c"))
COMPILER = ("i686-linux-gnu-gcc", "-O1", "-static", "-no-pie", "-pthread")
SEEDS = range(SEED, SEED + int(os.environ.get("THREAD_SEEDS", "2")))
SEEDED = ("mutex", "condition", "barrier", "readers", "memory", "processes")
SECONDS = 600  # of real time, on a busy machine: a backstop
ALL_HAVE = Path("/bin/sh")  # a file that all runs on a machine can lock, of any user and folder
AGAIN = 4  # times that Linux is asked, if it says something else
SPARE_KIB = 128  # slabs and page tables that are kept for the next ones
COUNTS = "cat /proc/objects /proc/meminfo"
PART = re.compile(r"^part (\S+)\n", re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled, in a folder for the guest's root."""

    def compile_program(place: Path) -> None:
        command = [*COMPILER, *map(str, SOURCES), "-o", str(place / "threads")]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip(f"there is no {COMPILER[0]} here")

    return shared_folder(tmp_path_factory, "threads", compile_program)


def parts_of(text: str) -> dict[str, str]:
    """What each part of the program has said."""
    pieces = PART.split(text)[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def run_linux(folder: Path, *part: str) -> dict[str, str]:
    """What this machine's Linux says, by part. One run at a time: the program makes sockets and
    shared memory with names that are the same each time."""
    command = [folder / "threads", *part]
    try:
        with ALL_HAVE.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = run_within(command, check=True, capture_output=True, text=True, seconds=SECONDS)
    except OSError as error:
        pytest.skip(f"this machine does not run i386 programs: {error}")
    return parts_of(done.stdout)


@pytest.fixture(scope="module")
def linux(folder: Path) -> dict[str, str]:
    """What Linux says, by part."""
    return run_linux(folder)


def run_ours(folder: Path, command: str) -> str:
    """What our kernel's shell prints for a command."""
    make("LESSON=6", "image-direct", "user-programs")
    words = [sys.executable, "-m", "labs.tools.machine.run", "--boot", "direct"]
    words += ["--user", "build/user/bin", "--build", "build/lesson6"]
    words += ["--programs", str(folder), "--command", command]
    done = run_within(words, cwd=ROOT, capture_output=True, text=True, seconds=SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ours(folder: Path) -> tuple[dict[str, str], str, str]:
    """What our kernel says, by part; and its counts before and afterwards. What is made once at the
    first use (a slab, a table) is there before the first count."""
    run = "echo run; /threads; echo count;"
    text = run_ours(folder, f"{run} {COUNTS}; {run} {COUNTS}")
    _, first, before, second, after = re.split(r"^(?:run|count)\n", text, flags=re.MULTILINE)
    assert parts_of(first) == parts_of(second)
    return parts_of(second), before, after


NAMES = re.findall(r'\{ "(\w+)", part_', (ROOT / "tests/programs/threads/main.c").read_text())


@pytest.mark.parametrize("part", NAMES)
def test_threads_are_those_of_linux(
    part: str, folder: Path, linux: dict[str, str], ours: tuple[dict[str, str], str, str]
) -> None:
    """Every line is equal. Time is real on Linux, so if it stalls a thread may come too late there:
    what Linux says again is as good."""
    said = linux[part]
    for _ in range(AGAIN):
        if ours[0].get(part) == said:
            break
        said = run_linux(folder, part)[part]
    assert ours[0].get(part) == said


def test_nothing_is_left(ours: tuple[dict[str, str], str, str]) -> None:
    """The same objects, and the memory of before: shared memory goes with its last user."""
    _, before, after = ours
    counts = re.compile(r"^(tasks|files|pipes|inodes|entries|pages) +(\d+)$", re.MULTILINE)
    assert counts.findall(after) == counts.findall(before)
    free = re.compile(r"^MemFree: +(\d+) kB$", re.MULTILINE)
    assert int(free.findall(after)[0]) >= int(free.findall(before)[0]) - SPARE_KIB


def test_the_clock_and_a_limit_are_set(folder: Path) -> None:
    """By root, and files get the new time. No test sets this machine's. The limit of tasks does not
    bind Linux's root; it binds ours."""
    text = run_ours(
        folder,
        "date -s '2031-02-03 04:05:06'; touch /new; stat -c %y /new; date +%F;"
        "sleep 0.1; date -s 1999-12-31; date +%F; sed -n 's/btime //p' /proc/stat;"
        "setsid /threads -tasks; grep processes /proc/self/limits",
    )
    lines = [line for line in text.splitlines() if line]
    assert lines[0] == "Mon Feb  3 04:05:06 UTC 2031"
    assert lines[1].startswith("2031-02-03 04:05:06.")
    assert lines[2] == "2031-02-03"
    assert lines[3:5] == ["Fri Dec 31 00:00:00 UTC 1999", "1999-12-31"]
    assert 0 <= 946598400 - int(lines[5]) < 600
    assert lines[6:14] == [
        "tasks at most 256",
        "more -1",
        "less 0",
        "some 1",
        "vfork -11",
        "clone -11",
        "thread 11",
        "again 7",
    ]
    assert lines[14].split() == ["Max", "processes", "256", "256", "processes"]


def test_seeds(folder: Path, linux: dict[str, str]) -> None:
    """The parts whose threads dawdle, with other seeds."""
    commands = [f"echo seed {seed}; /threads {part} {seed}" for seed in SEEDS for part in SEEDED]
    text = run_ours(folder, "; ".join(commands))
    for piece in re.split(r"^seed ", text, flags=re.MULTILINE)[1:]:
        for part, said in parts_of(piece).items():
            assert said == linux[part], f"seed {piece.splitlines()[0]}, part {part}"
