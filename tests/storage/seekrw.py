"""Exercise S6 from outside: user/seekrw.c, linked with a computer that counts what each call costs
(tests/storage/host/seekrw.c). Its clock stands still unless something is called."""

from __future__ import annotations

import json
import re
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path

from labs.storage.workload import random_offsets
from labs.tools.grading.lab import PROGRAM_STOPPED, ROOT, Lab
from tests.storage.mapping import cause_in
from tests.told import expect, fail, require

SOURCES = ("user/seekrw.c", "kernel/lib/string.c")
DRIVER = ROOT / "tests/storage/host/seekrw.c"
SECTOR = 512
DISK = 2_000_398_934_016  # bytes of the disk of 2010
LOOK_NS = 5  # what a look at the clock costs
LATER_NS = 10
CALLS = {
    "a": "memory is allocated",
    "f": "fopen is called",
    "i": "ioctl is called",
    "l": "lseek is called",
    "o": "open is called",
    "s": "stat is called",
    "t": "what is written gets its stamps",
}

programs: dict[Path, Path] = {}


@dataclass(frozen=True)
class World:
    """The file (f), block device (b) or other thing that seekrw is given; see the C file."""

    kind: str = "b"
    size: int = DISK
    align: int = SECTOR
    cost: int = 10_000  # ns
    every: int = 1
    short: int = -1
    broken: int = -1
    moved: int = -1

    def __str__(self) -> str:
        what = {"c": "a character device", "d": "a directory", "f": "a file"}.get(
            self.kind, "a block device"
        )
        return f"{what} of {self.size:,} bytes"


@dataclass(frozen=True)
class Call:
    """r and w: an operation; c: a look at the clock; the others are in CALLS."""

    letter: str
    offset: int
    length: int
    stamped: bool


@dataclass(frozen=True)
class Run:
    """What seekrw printed, and what it called."""

    what: str
    world: World
    status: int
    text: str
    errors: str
    calls: tuple[Call, ...]

    @cached_property
    def values(self) -> dict:
        """The JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            fail(f"{self.what} -j printed no JSON: {self.text[:300]}\n{self.errors[:300]}")

    @property
    def operations(self) -> list[Call]:
        """Reads and writes."""
        return [call for call in self.calls if call.letter in "rw"]

    @property
    def offsets(self) -> list[int]:
        """Of the operations."""
        return [call.offset for call in self.operations]

    @property
    def cost(self) -> int:
        """Nanoseconds of the operations alone."""
        count = len(self.operations)
        return count * self.world.cost + LATER_NS * count * (count - 1) // 2


def seekrw(lab: Lab, world: World, *arguments: object) -> Run:
    """Runs the tree's seekrw on a file of this world. It must end by itself."""
    if lab.root not in programs or not programs[lab.root].exists():
        programs[lab.root] = lab.host(SOURCES, [DRIVER], "seekrw")
    words = ["-f", "FILE", *map(str, arguments)]
    line = " ".join(map(str, astuple(world))) + "\n"
    done = lab.ask(programs[lab.root], line.encode(), *words)
    said, errors = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    what = f"seekrw {' '.join(words)}, on {world}"
    text, mark, listed = said.rpartition("== calls\n")
    if done.returncode in PROGRAM_STOPPED or not mark or "not written" in errors:
        fail(f"{what}: {cause_in(errors, done.returncode)}\n{errors[-1500:]}")
    calls = []
    for letter, *numbers in re.findall(r"^(\w) (\d+) (\d+) ([01])$", listed, re.MULTILINE):
        offset, length, stamped = map(int, numbers)
        calls.append(Call(letter, offset, length, stamped == 1))
    return Run(what, world, done.returncode, text, errors, tuple(calls))


def measured(lab: Lab, world: World, *arguments: object) -> Run:
    """The same with -j; it must succeed."""
    run = seekrw(lab, world, *arguments, "-j")
    if run.status != 0:
        fail(f"{run.what}: expected figures, seen: {run.errors[:500].strip()}")
    return run


def refused(lab: Lab, world: World, *arguments: object) -> Run:
    """The same, which must fail with one line, and with no figure."""
    run = seekrw(lab, world, *arguments)
    expect(f"{run.what}: status", run.status, 1)
    require(run.errors.startswith("seekrw: "), f"{run.what}: expected a message of fail()")
    require(not run.text, f"{run.what}: it failed, and prints figures: {run.text[:200]}")
    return run


def expected_offsets(seed: int, size: int, length: int, count: int) -> list[int]:
    """Where `count` operations of so many bytes are."""
    places = size // length
    return [each // SECTOR * length for each in random_offsets(seed, places * SECTOR, count)]


def check_offsets(run: Run, seed: int, length: int, count: int) -> None:
    """They are those that the seed gives."""
    expect(f"{run.what}: operations", len(run.operations), count)
    wanted = expected_offsets(seed, run.world.size, length, count)
    for number, (seen, right) in enumerate(zip(run.offsets, wanted, strict=True)):
        where = [f"the offsets are {', '.join(map(str, run.offsets[:6]))}, ..."]
        expect(f"{run.what}: offset of operation {number}", seen, right, *where)


def check_time(run: Run, slack: float = 0) -> None:
    """The time is that of the operations and of looks at the clock. slack: a part of it that may
    be something else."""
    looks = LOOK_NS * (2 * len(run.operations) + 2)
    least, most = run.cost, run.cost + looks + int(slack * run.cost)
    if not least <= (seen := run.values["ns"]) <= most:
        fail(
            f"{run.what}: ns: expected {least} to {most}, seen {seen}",
            *(f"between two looks at the clock {CALLS[each]}" for each in between_looks(run)),
        )


def between_looks(run: Run) -> list[str]:
    """What else is called between the first and the last look at the clock."""
    letters = "".join(call.letter for call in run.calls)
    inner = letters[letters.find("c") : letters.rfind("c")]
    return sorted(set(inner) & set(CALLS))
