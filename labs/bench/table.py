"""The benchmark's table: which operations, what they may cost, and how it is written and read."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GLIBC, SMALL = "bench_glibc", "bench"
"""The same program with two C libraries, by the names of their files."""

KERNEL = ("boot", "kernel", "mm", "drivers", "fs")

Side = Mapping[tuple[str, str], int | None]
"""Instructions of one kernel, by program and row; None where it has no such call."""

START, STOP = "<!-- make bench writes from here -->", "<!-- to here -->"
CELLS = re.compile(r"^\| ([^|]+) \| ([\d,]+|none|-) \| ([\d,]+|none|-) \|", re.MULTILINE)
TITLES = (
    "| operation | Linux | here | here / Linux | wanted | the processor |\n"
    "|---|--:|--:|--:|--:|--:|\n"
)

# What the processor itself needs for an operation, in instructions: no kernel could do with less.
# The program's own are among them: a number and each argument take one, and so does INT.
GATE = 7  # in: the number is compared, the call made by a table; out: the result, RET, IRET
PAGE = 1024  # to clear or copy a page, four bytes each time
FAULT = GATE + 4 + 2  # a page fault: CR2, the table's entry found and set; INVLPG where one goes
DESCRIPTOR = 4  # compared with the table's end, fetched, its operation called
BYTE = 8  # of a pipe or a device: the range checked, the byte moved, the two positions
SWITCH = 14  # four registers saved and loaded, two stacks, CR3, the task state's stack
QUEUE = 8  # a task leaves a queue of those that wait, and joins that of those that may run
LETTER = 3  # of a path: fetched, compared, the next one
AREA = 2 * 10  # ten words written; and linked and unlinked
ENTRY = 4 + 4  # of a page table: copied without the right to write; and cleared at the end
TASK = 128 + 320 + 2 * 19 + 60  # the unit's state, 64 actions, two frames, what else is not zero

FORK = 3 * GATE + 4 + TASK + 6 * AREA + 20 * ENTRY + PAGE + FAULT + 2 * SWITCH + 2 * QUEUE
FORK_GLIBC = FORK + 2 * AREA + 20 * ENTRY
PROGRAM = 16_700  # what a static glibc does in user mode from its start to its end: it is counted
EXEC = 8 * AREA + GATE  # areas of the new program; the pages are the program's own


@dataclass(frozen=True)
class Operation:
    """A line of the table. `row` is the program's name for it; `at_most` are instructions,
    `below_linux` wants fewer than Linux takes, and `least` is what the processor needs; 0: not
    worked out."""

    row: str
    title: str
    at_most: int | None = None
    below_linux: bool = False
    program: str = GLIBC
    least: int = 0

    @property
    def wanted(self) -> str:
        """The budget in words."""
        if self.below_linux:
            return "below Linux"
        return f"at most {self.at_most:,}" if self.at_most else ""


OPERATIONS = (
    Operation("getpid_int80", "getpid, `int 0x80`", at_most=80, least=2 + GATE + 2),
    Operation("getpid_sysenter", "getpid, `sysenter`", below_linux=True, least=2 + GATE + 2 + 9),
    Operation("sched_yield", "sched_yield, alone", at_most=120, least=2 + GATE + 2),
    Operation("read_zero", "read 1 B of /dev/zero", least=5 + GATE + DESCRIPTOR + BYTE),
    Operation(
        "open_close",
        "open + close /dev/null",
        least=7 + 2 * GATE + 2 * 9 * LETTER + 2 * DESCRIPTOR + 12 + 8,
    ),
    Operation(
        "pipe_one",
        "pipe write + read of 1 B, one process",
        at_most=600,
        least=2 * (5 + GATE + DESCRIPTOR + BYTE),
    ),
    Operation(
        "pipe_two",
        "pipe round trip of 1 B, two processes",
        at_most=2500,
        least=4 * (5 + GATE + DESCRIPTOR + BYTE) + 2 * (SWITCH + QUEUE),
    ),
    Operation("fork_exit", "fork + exit + wait, small C library", 25_000, False, SMALL, FORK),
    Operation("fork_exit", "fork + exit + wait, static glibc", 40_000, least=FORK_GLIBC),
    Operation(
        "fork_exec",
        "fork + exec + wait, small C library",
        50_000,
        program=SMALL,
    ),
    Operation(
        "fork_exec",
        "fork + exec + wait, static glibc",
        80_000,
        least=FORK_GLIBC + EXEC + PROGRAM + 14 * FAULT + 11 * PAGE,
    ),
    Operation("mmap_munmap", "mmap + munmap of a page", 1_400, least=11 + 2 * GATE + AREA),
    Operation(
        "mmap_touch",
        "mmap + touch + munmap of 256 pages, each",
        1_600,
        least=FAULT + PAGE + 2,
    ),
    Operation(
        "fork_touch",
        "fork + write to 256 pages + exit + wait",
        700_000,
        least=FORK_GLIBC + 256 * (FAULT + PAGE + ENTRY),
    ),
)


@dataclass(frozen=True)
class Peer:
    """The package that Linux came from; `sha256` is that of the .deb file."""

    name: str
    version: str
    sha256: str


def over_budget(ours: Side, linux: Side) -> list[str]:
    """What costs more than it may, a line each."""
    problems = []
    for operation in OPERATIONS:
        key = (operation.program, operation.row)
        found = ours.get(key)
        limit = linux[key] - 1 if operation.below_linux and linux.get(key) else operation.at_most
        if limit and found is None:
            problems.append(f"{operation.title}: the kernel has no such call")
        elif limit and found > limit:
            problems.append(f"{operation.title}: {found:,} instructions, {limit:,} are the most")
    return problems


def cell(side: Side, operation: Operation) -> str:
    """A figure of the table; - where it was not measured."""
    key = (operation.program, operation.row)
    if key not in side:
        return "-"
    return "none" if side[key] is None else f"{side[key]:,}"


def ratio(ours: Side, linux: Side, operation: Operation) -> str:
    """Ours by Linux's; empty where one is missing."""
    key = (operation.program, operation.row)
    if not linux.get(key) or ours.get(key) is None:
        return ""
    return f"{ours[key] / linux[key]:.2f}"


def table(ours: Side, linux: Side) -> str:
    """The table in Markdown."""
    lines = []
    for operation in OPERATIONS:
        cells = [operation.title, cell(linux, operation), cell(ours, operation)]
        cells += [
            ratio(ours, linux, operation),
            operation.wanted,
            f"{operation.least:,}" if operation.least else "",
        ]
        lines.append(f"| {' | '.join(cells)} |\n")
    return TITLES + "".join(lines)


def sides_of(text: str) -> tuple[Side, Side]:
    """Ours and Linux's figures in a table, as `table` writes it."""
    ours, linux = {}, {}
    keys = {operation.title: (operation.program, operation.row) for operation in OPERATIONS}
    for title, *cells in CELLS.findall(text):
        for side, word in zip((linux, ours), cells, strict=True):
            if title in keys and word != "-":
                side[keys[title]] = None if word == "none" else int(word.replace(",", ""))
    return ours, linux


def age_of(text: Path) -> str:
    """How many commits have changed the kernel since this text was, in words; "" where that is not
    known, and where there are none."""
    folder, name = text.parent, text.name
    git = ["git", "-C", str(folder), "log", "--format=%h"]
    last = subprocess.run([*git, "-1", "--", name], capture_output=True, text=True, check=False)
    if last.returncode or not last.stdout:
        return ""
    since = [f"{last.stdout.strip()}..", "--", *(f":/{each}" for each in KERNEL)]
    found = subprocess.run([*git, *since], capture_output=True, text=True, check=False)
    count = len(found.stdout.split())
    return f"{name} is older than the kernel: {count} commits have changed it." if count else ""


def replace_table(text: str, new: str) -> str:
    """The text with something else between its two marks. Raises ValueError without them."""
    before, start, rest = text.partition(START)
    _, stop, after = rest.partition(STOP)
    if not start or not stop:
        raise ValueError(f"no place for the table: the lines {START} and {STOP} are missing")
    return f"{before}{START}\n\n{new}\n{STOP}{after}"
