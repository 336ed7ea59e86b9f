"""The benchmark's table: which operations, what they may cost, and how it is written and read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

GLIBC, SMALL = "bench_glibc", "bench"
"""The same program with two C libraries, by the names of their files."""

Side = Mapping[tuple[str, str], int | None]
"""Instructions of one kernel, by program and row; None where it has no such call."""

START, STOP = "<!-- make bench writes from here -->", "<!-- to here -->"
CELLS = re.compile(r"^\| ([^|]+) \| ([\d,]+|none|-) \| ([\d,]+|none|-) \|", re.MULTILINE)
TITLES = "| operation | Linux | here | here / Linux | wanted |\n|---|--:|--:|--:|--:|\n"


@dataclass(frozen=True)
class Operation:
    """A line of the table. `row` is the program's name for it; `at_most` are instructions, and
    `below_linux` wants fewer than Linux takes."""

    row: str
    title: str
    at_most: int | None = None
    below_linux: bool = False
    program: str = GLIBC

    @property
    def wanted(self) -> str:
        """The budget in words."""
        if self.below_linux:
            return "below Linux"
        return f"at most {self.at_most:,}" if self.at_most else ""


OPERATIONS = (
    Operation("getpid_int80", "getpid, `int 0x80`", at_most=80),
    Operation("getpid_sysenter", "getpid, `sysenter`", below_linux=True),
    Operation("sched_yield", "sched_yield, alone", at_most=120),
    Operation("read_zero", "read 1 B of /dev/zero"),
    Operation("open_close", "open + close /dev/null"),
    Operation("pipe_one", "pipe write + read of 1 B, one process", at_most=600),
    Operation("pipe_two", "pipe round trip of 1 B, two processes", at_most=2500),
    Operation("fork_exit", "fork + exit + wait, small C library", 25_000, program=SMALL),
    Operation("fork_exit", "fork + exit + wait, static glibc", 40_000),
    Operation("fork_exec", "fork + exec + wait, small C library", 50_000, program=SMALL),
    Operation("fork_exec", "fork + exec + wait, static glibc", 80_000),
    Operation("mmap_munmap", "mmap + munmap of a page", 1_400),
    Operation("mmap_touch", "mmap + touch + munmap of 256 pages, each", 1_600),
    Operation("fork_touch", "fork + write to 256 pages + exit + wait", 700_000),
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
        cells += [ratio(ours, linux, operation), operation.wanted]
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


def replace_table(text: str, new: str) -> str:
    """The text with something else between its two marks. Raises ValueError without them."""
    before, start, rest = text.partition(START)
    _, stop, after = rest.partition(STOP)
    if not start or not stop:
        raise ValueError(f"no place for the table: the lines {START} and {STOP} are missing")
    return f"{before}{START}\n\n{new}\n{STOP}{after}"
