"""Exercise S6 from outside: the calls of user/seekrw.c come here (tests/storage/host/seekrw.c), to
a computer that counts what each of them costs. Its clock stops unless something is called.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from errno import EFBIG, EINVAL, EIO, ENOENT, ENOTTY, ENXIO
from functools import cached_property
from pathlib import Path

from labs.storage.workload import random_offsets
from labs.tools.grading.lab import PROGRAM_STOPPED, ROOT, Lab
from tests.storage.mapping import cause_in
from tests.support.told import expect, fail, require

SOURCES = ("user/seekrw.c", "kernel/lib/string.c")
DRIVER = ROOT / "tests/storage/host/seekrw.c"
SECTOR = 512
DISK = 2_000_398_934_016  # bytes of the disk of 2010
LOOK_NS = 5  # what a look at the clock costs
LATER_NS = 10
STANDARD_ERROR = 2
CALLS = {
    "a": "memory is allocated",
    "f": "fopen is called",
    "i": "ioctl is called",
    "l": "lseek is called",
    "o": "open is called",
    "s": "stat is called",
    "t": "what is written gets its stamps",
    "y": "isatty is called",
}
OPEN_NS, CALL_NS, ALLOCATE_NS = 3_000_000, 1_000_000, 200_000
COSTS = {"a": ALLOCATE_NS, "c": LOOK_NS, "e": 0, "f": OPEN_NS, "o": OPEN_NS, "t": ALLOCATE_NS}

programs: dict[Path, Path] = {}


@dataclass(frozen=True)
class World:
    """The computer that seekrw runs on.

    kind: f file, b block device, m one that does not tell its size, c character device, d
    directory. align: of the memory and the offsets of direct I/O, in bytes. cost: of an operation,
    in ns; each takes 10 more than the last one. every: one operation in so many makes a request to
    the device; 0: nothing is known of requests; -1: there are none. short, broken: the number of an
    operation that moves half as much (number 0: nothing), or fails; moved: from this one on they
    read stamps of another place; -1: none. terminal: the standard error is one.
    """

    kind: str = "b"
    size: int = DISK
    align: int = SECTOR
    cost: int = 10_000
    every: int = 1
    short: int = -1
    broken: int = -1
    moved: int = -1
    terminal: bool = False

    def __str__(self) -> str:
        what = {"c": "a character device", "d": "a directory", "f": "a file"}.get(
            self.kind, "a block device"
        )
        return f"{what} of {self.size:,} bytes"


@dataclass(frozen=True)
class Call:
    """r and w: an operation; c: a look at the clock; the others are in CALLS. memory: its address,
    another one in each run."""

    letter: str
    offset: int
    length: int
    stamped: bool
    memory: int = field(default=0, compare=False)


class Computer:
    """What answers the calls of a program, and notes them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls: list[Call] = []
        self.has_ended = self._is_direct = False
        self._now = self._done = 0
        self._requests = {"r": [0, 0], "w": [0, 0]}

    def answer(self, question: bytes) -> bytes:
        """The line for a line: the time, the call's result, and four more numbers."""
        letter, *words = question.decode(errors="replace").split() or [""]
        numbers = [int(word) if word.lstrip("-").isdigit() else 0 for word in words][:4]
        operates = letter in ("r", "w") and len(numbers) == 4
        place = (0, 0, False)
        if operates:
            place = (numbers[0], numbers[1], numbers[3] == 1, numbers[2])
        self.calls.append(Call(letter, *place))
        result = self._operate(letter, *numbers[:3]) if operates else self._call(letter, numbers)
        line = [self._now, *result]
        return (" ".join(map(str, line)) + "\n").encode()

    def _call(self, letter: str, numbers: list[int]) -> list[int]:
        """Anything but an operation: its result and the other numbers."""
        world, first = self.world, (numbers or [0])[0]
        self._now += COSTS.get(letter, CALL_NS)
        self.has_ended |= letter == "e"
        if letter == "o":
            self._is_direct = first == 1
        if letter == "y":
            return [int(world.terminal and first == STANDARD_ERROR)]
        if letter == "s":
            return [0, ord(world.kind), world.size if world.kind == "f" else 0]
        if letter == "l":
            return [first + (world.size if numbers[1:2] == [1] else 0)]
        if letter == "f":
            known = first == 1 and world.every != 0
            return [0, *self._requests["r"], *self._requests["w"]] if known else [-ENOENT]
        return self._tell_size(numbers) if letter == "i" else [0]

    def _tell_size(self, numbers: list[int]) -> list[int]:
        """BLKGETSIZE64 and BLKGETSIZE; of a sector by all other requests."""
        in_sectors = self.world.size // SECTOR
        if self.world.kind != "b" or numbers[:1] != [1]:
            return [-ENOTTY]
        if numbers[1:2] == [1]:
            return [0, self.world.size]
        return [-EFBIG] if numbers[2:3] == [1] and in_sectors >> 32 else [0, in_sectors]

    def _operate(self, letter: str, offset: int, length: int, memory: int) -> list[int]:
        """A read or a write: the bytes that it moves, and by how much they are another place's."""
        world, number = self.world, self._done
        self._done += 1
        self._now += world.cost + number * LATER_NS
        unaligned = memory % world.align or offset % world.align or length % SECTOR
        if (self._is_direct and unaligned) or offset < 0:
            return [-EINVAL]
        if number == world.broken or offset > world.size:
            return [-EIO if number == world.broken else -ENXIO]
        if world.every > 0 and number % world.every == 0:
            requests = self._requests[letter]
            requests[:] = requests[0] + 1, requests[1] + length // SECTOR
        moves = min(length, world.size - offset)
        if number == world.short:
            moves = length // 2 if number else 0
        return [moves, SECTOR if 0 <= world.moved <= number else 0]


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
    computer = Computer(world)
    done = lab.converse(programs[lab.root], computer.answer, *words)
    text, errors = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    what = f"seekrw {' '.join(words)}, on {world}"
    stopped = done.returncode in PROGRAM_STOPPED or not computer.has_ended
    if stopped or "not written" in errors:
        fail(f"{what}: {cause_in(errors, done.returncode)}\n{errors[-1500:]}")
    return Run(what, world, done.returncode, text, errors, tuple(computer.calls))


def measured(lab: Lab, world: World, *arguments: object) -> Run:
    """The same with -j; it must succeed."""
    run = seekrw(lab, world, *arguments, "-j")
    if run.status != 0:
        fail(f"{run.what}: expected figures, seen: {run.errors[:500].strip()}", *odd_offset(run))
    return run


def odd_offset(run: Run) -> list[str]:
    """The first offset at which no operation of its length may begin."""
    odd = (each for each in run.operations if each.length and each.offset % each.length)
    return [f"offset {o.offset} is not a multiple of the length, {o.length}" for o in odd][:1]


def refused(lab: Lab, world: World, *arguments: object) -> Run:
    """The same, which must fail with one line, and with no figure."""
    run = seekrw(lab, world, *arguments)
    expect(f"{run.what}: status", run.status, 1)
    require(run.errors.startswith("seekrw: "), f"{run.what}: expected a message of fail()")
    require(not run.text, f"{run.what}: it failed, and prints figures: {run.text[:200]}")
    return run


def expected_offsets(seed: int, size: int, length: int, count: int) -> list[int]:
    """Where `count` operations of this many bytes are."""
    places = size // length
    return [each // SECTOR * length for each in random_offsets(seed, places * SECTOR, count)]


def check_offsets(run: Run, seed: int, length: int, count: int) -> None:
    """They are those that the seed gives."""
    expect(f"{run.what}: operations", len(run.operations), count)
    wanted = expected_offsets(seed, run.world.size, length, count)
    for number, (seen, right) in enumerate(zip(run.offsets, wanted, strict=True)):
        where = [f"the offsets are {', '.join(map(str, run.offsets[:6]))}, ...", *odd_offset(run)]
        expect(f"{run.what}: offset of operation {number}", seen, right, *where)


def check_time(run: Run, slack: float = 0) -> None:
    """The time is that of the operations and of looks at the clock. slack: a part of it that may
    be something else."""
    looks = LOOK_NS * (2 * len(run.operations) + 2)
    least, most = run.cost, run.cost + looks + int(slack * run.cost)
    if not least <= (seen := run.values["ns"]) <= most:
        short = ["that is less than the operations take"] if seen < least else []
        fail(
            f"{run.what}: ns: expected {least} to {most}, seen {seen}",
            *short,
            *(f"between two looks at the clock {CALLS[each]}" for each in between_looks(run)),
        )


def between_looks(run: Run) -> list[str]:
    """What else is called between the first and the last look at the clock."""
    letters = "".join(call.letter for call in run.calls)
    inner = letters[letters.find("c") : letters.rfind("c")]
    return sorted(set(inner) & set(CALLS))
