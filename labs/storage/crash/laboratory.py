"""Gives workloads to the program, and adds up what it says."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from labs.storage.crash.building import ENVIRONMENT, Variant, make_image, variant_named
from labs.storage.crash.log import Layout, read_log
from labs.storage.crash.workloads import (
    OPERATIONS,
    SECOND,
    SYNCS,
    Workload,
    hand_made,
    make_tree,
    named,
    pairs,
    single_operations,
)

COUNTS = (
    "operations",
    "requests recorded",
    "states: prefixes",
    "states: subsets of the open epoch",
    "states: torn writes",
    "second sessions after recovery",
    "states: cuts during recovery",
    "states: cuts in a second session",
    "states seen by e2fsck, and replayed twice",
    "wrong",
)
OF_STATES = [name for name in COUNTS if name.startswith("states: ")]
PAIRS = 1000
BARS = {
    "states: prefixes": 20_000,
    "states: subsets of the open epoch": 5_000,
    "states: torn writes": 5_000,
    "states: cuts during recovery": 500,
    "sequences of one operation": len(OPERATIONS) * len(SYNCS),
    "sequences of two operations": PAIRS,
}
"""What one run at full scale has at least."""


@dataclass(frozen=True)
class Violation:
    """A state that is wrong."""

    variant: str
    workload: str
    state: str
    reason: str

    @property
    def name(self) -> str:
        """As --only takes it."""
        return f"{self.variant}:{self.workload}:{self.state}"


@dataclass
class Figures:
    """What came out."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    workloads: int = 0
    sequences: Counter[int] = field(default_factory=Counter)  # by how many operations they have
    seconds: float = 0
    violations: list[Violation] = field(default_factory=list)

    @property
    def states(self) -> int:
        """All that were judged."""
        return sum(self.counts[name] for name in OF_STATES)

    @property
    def wrong(self) -> int:
        """How many of them were wrong."""
        return self.counts["wrong"]

    def rows(self) -> Iterator[tuple[str, int]]:
        """The lines of the table."""
        yield "workloads", self.workloads
        yield "sequences of one operation", self.sequences[1]
        yield "sequences of two operations", self.sequences[2]
        yield from self.counts.items()
        yield "all states", self.states
        yield "states a second", int(self.states / self.seconds) if self.seconds else 0

    def missed(self) -> Iterator[str]:
        """Which bars of full scale were not reached."""
        rows = dict(self.rows())
        for name, bar in BARS.items():
            if rows[name] < bar:
                yield f"{name}: {rows[name]:,}, and {bar:,} are the least"


def settings_for(workload: Workload) -> dict[str, int]:
    """How many states: short sequences are many, so each gets fewer."""
    if workload.on_tree:
        return {"subsets": 4, "torn": 4, "second": 1, "cuts": 4}
    return {"subsets": 60, "torn": 60, "second": 6, "cuts": 10}


class Program:
    """The program with one image; it obeys one workload at a time."""

    def __init__(self, program: Path, image: Path, variant: Variant, **settings: object) -> None:
        self.variant = variant.name
        self.ends: list[int] = []  # of the last workload whose record was saved
        words = [f"{name}={value}" for name, value in settings.items()]
        self._process = subprocess.Popen(
            [program, image, f"data={variant.data}", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        self.give(b"".join(second.text("second") for second in SECOND))

    def give(self, text: bytes) -> None:
        """Writes to its stdin."""
        assert self._process.stdin
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def run(self, workload: Workload) -> tuple[list[int], list[Violation]]:
        """The counts of a workload, and what was wrong. Raises RuntimeError when it ends."""
        self.give(workload.text())
        violations = []
        assert self._process.stdout
        for line in self._process.stdout:
            words = line.decode(errors="backslashreplace").rstrip("\n").split("\t")
            if words[0] == "violation":
                violations.append(Violation(self.variant, *words[1:4]))
            elif words[0] == "workload":
                return [int(word) for word in words[2:12]], violations
            elif words[0] == "ends":
                self.ends = [int(word) for word in words[1].split()]
            else:
                print(line.decode(errors="backslashreplace"), end="")
        raise RuntimeError(f"the program ended with {self._process.wait()} at {workload.name}")

    def close(self) -> None:
        """Ends it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


class Laboratory:
    """A program, and the images that it works on."""

    def __init__(
        self,
        program: Path,
        scratch: Path,
        seed: int,
        fsck: int = 10,
        limit: int = 3,
        share: int = 1,
    ) -> None:
        self.program = program
        self.scratch = scratch
        self.seed = seed
        self.fsck = fsck
        self.limit = limit
        self.share = share  # this many times fewer states than usual, but for prefixes
        self._images: dict[tuple[str, str], Path] = {}
        self._lock = threading.Lock()

    def image(self, variant: Variant, kind: str) -> Path:
        """The image that workloads of a kind begin with."""
        with self._lock:
            key = (variant.name, kind)
            if key not in self._images:
                tree = self.scratch / "tree"
                if not tree.exists():
                    make_tree(tree)
                path = self.scratch / f"{variant.name}-{kind}.img"
                sized = replace(variant, size=variant.small) if kind == "small" else variant
                self._images[key] = make_image(path, sized, tree if kind == "tree" else None)
            return self._images[key]

    def start(self, variant: Variant, workload: Workload, **more: object) -> Program:
        """The program for workloads of this kind."""
        usual = settings_for(workload)
        settings = {name: -(-count // self.share) for name, count in usual.items()}
        settings |= {"seed": self.seed, "fsck": self.fsck}
        settings |= {"limit": self.limit, "folder": self.scratch, **more}
        return Program(self.program, self.image(variant, workload.image), variant, **settings)

    def run(
        self,
        variants: Sequence[str],
        states: int,
        first_only: bool = False,
        workloads: Iterable[Workload] | None = None,
        full: bool = False,
    ) -> Figures:
        """Workloads until there were so many states. Then all that are made by hand have had their
        turn, but for a very small number. first_only: until one was wrong. full: what BARS asks
        for, however many states that gives."""
        kinds = [variant_named(name) for name in variants]
        most = PAIRS if full else None
        every = jobs_for(kinds, self.seed, most)
        jobs = iter(every if workloads is None else jobs_of(kinds, workloads))
        figures = Figures()
        started = time.monotonic()

        def enough() -> bool:
            if first_only and figures.violations:
                return True
            return workloads is None and not full and figures.states >= states

        def work() -> None:
            programs: dict[tuple[str, str], Program] = {}
            while True:
                with self._lock:
                    job = None if enough() else next(jobs, None)
                if job is None:
                    break
                variant, workload = job
                key = (variant.name, workload.image)
                if key not in programs:
                    programs[key] = self.start(variant, workload)
                counts, violations = programs[key].run(workload)
                with self._lock:
                    add(figures, workload, counts, violations)
            for program in programs.values():
                program.close()

        threads = [threading.Thread(target=work) for _ in range(os.cpu_count() or 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        figures.seconds = time.monotonic() - started
        return figures


def add(
    figures: Figures, workload: Workload, counts: list[int], violations: list[Violation]
) -> None:
    """One workload more."""
    if workload.on_tree:
        figures.sequences[workload.name.count("+") + 1] += 1
    for name, count in zip(COUNTS, counts, strict=True):
        figures.counts[name] += count
    figures.workloads += 1
    figures.violations += violations


def jobs_of(
    kinds: Sequence[Variant], workloads: Iterable[Workload]
) -> Iterator[tuple[Variant, Workload]]:
    """Each workload on each kind of file system."""
    return ((kind, workload) for workload in workloads for kind in kinds)


def jobs_for(
    kinds: Sequence[Variant], seed: int, most: int | None
) -> Iterator[tuple[Variant, Workload]]:
    """What is made by hand on each kind; the sequences, with at most so many pairs, in turn on one
    of them."""
    yield from jobs_of(kinds, hand_made())
    turns = itertools.cycle(kinds)
    for workload in itertools.chain(single_operations(), itertools.islice(pairs(seed), most)):
        yield next(turns), workload


def show_state(program: Path, scratch: Path, name: str) -> int:
    """Says of one state what is in it, and what the judges say. Returns 0 when it is right."""
    kind, workload_name, state = name.split(":", 2)
    variant, workload = variant_named(kind), named(workload_name)
    laboratory = Laboratory(program, scratch, 0, fsck=100, limit=1)
    log = scratch / "log"
    more = {} if state == "no cut" else {"only": state}
    running = laboratory.start(variant, workload, save=log, **more)
    print(f"file system: mke2fs {variant.options}, {variant.size >> 20} MiB, data={variant.data}")
    for number, line in enumerate(workload.lines, 1):
        print(f"operation {number}: {line.decode(errors='backslashreplace')}")
    _, violations = running.run(workload)
    running.close()
    for line in describe_cut(Layout(laboratory.image(variant, workload.image)), log, state):
        print(line)
    for found in violations:
        print(f"WRONG: {found.reason}")
    if not violations:
        print("this state is right")
    return 1 if violations else 0


def describe_cut(layout: Layout, log: Path, state: str) -> Iterator[str]:
    """The cut in words: what of the open epoch reached the disk, and what did not."""
    first = state.split("/")[0]
    if not first[:1].isdigit():
        return
    entries = list(read_log(log))
    position = int(first.replace("~", "-").split("-")[0])
    missing = {int(word) for word in first.split("~")[0].partition("-")[2].split(",") if word}
    torn = first.partition("~")[2].partition(":")
    begin = position
    while begin > 0 and not entries[begin - 1].flushes:
        begin -= 1
    yield f"the power is cut after {position} of {len(entries)} requests; {begin} of them are safe"
    for number in range(begin, position):
        what = "missing" if number in missing else "there"
        if torn[0] == str(number):
            sector, _, count = torn[2].partition("+")
            what = f"there are {count} of its sectors, from {sector} on"
        yield f"  request {number}: {layout.name(entries[number])}: {what}"
    if "/" in state:
        name, _, cut = state.split("/", 1)[1].partition(":")
        yield f"then recovery, and a second session ({name})" + (
            f", cut at {cut} of its own requests" if cut else ""
        )


def command_for(found: Violation) -> str:
    """What shows one state again."""
    return f".venv/bin/python -m labs.storage.crash --only {shlex.quote(found.name)}"
