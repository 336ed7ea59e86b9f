"""Exercise S8 from outside: drivers/disk/latency.c, on this computer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.tools.grading.lab import ROOT, Lab
from tests.storage.mapping import cause_in
from tests.support.told import expect, fail

SOURCES = ("drivers/disk/latency.c",)
DRIVER = ROOT / "tests/storage/host/latency.c"
US, MS, S = 1000, 1_000_000, 1_000_000_000  # ns
RANGES = ("us", "ms", "s")
FEW = 32  # requests that say something
DISKS = 20  # of a program

Disk = Sequence[tuple[int, int]]
"""What it was asked: nanoseconds, how often."""

programs: dict[Path, Path] = {}


def ask(lab: Lab, lines: Sequence[str]) -> list[str]:
    """What the program said."""
    if lab.root not in programs or not programs[lab.root].exists():
        programs[lab.root] = lab.host(SOURCES, [DRIVER], "latency")
    done = lab.ask(programs[lab.root], ("\n".join(lines) + "\n").encode())
    said, errors = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    if done.returncode != 0:
        fail(f"the histogram: {cause_in(said + errors, done.returncode)}\n{errors[-1500:]}")
    return said.splitlines()


@dataclass(frozen=True)
class Buckets:
    """What is counted of a disk: by power, by range and step, and how many requests and ns."""

    powers: dict[int, int]
    steps: dict[tuple[str, int], int]
    total: list[int]


def buckets(lab: Lab, disks: Sequence[Disk]) -> list[Buckets]:
    """Of each disk."""
    lines = [line for n, each in enumerate(disks) for line in [*adds(n, each), f"buckets {n}"]]
    found, powers, steps = [], {}, {}
    for line in ask(lab, lines):
        kind, *numbers = line.split()
        values = list(map(int, numbers))
        if kind == "power":
            powers[values[0]] = values[1]
        elif kind == "step":
            steps[RANGES[values[0]], values[1]] = values[2]
        else:
            found.append(Buckets(powers, steps, values))
            powers, steps = {}, {}
    expect("disks that were shown", len(found), len(disks))
    return found


def adds(number: int, disk: Disk) -> list[str]:
    """The lines that count a disk's requests."""
    return [f"add {number} {ns} {times}" for ns, times in disk]


def numbers_of(lab: Lab, disk: Disk, *questions: str) -> list[int]:
    """Answers: "mean", "below 990"."""
    words = [question.split() for question in questions]
    said = ask(lab, [*adds(0, disk), *(f"{name} 0 {' '.join(rest)}" for name, *rest in words)])
    lab.judging(len(disk))  # what has counted them is judged elsewhere
    expect("answers", [line.split()[0] for line in said], [name for name, *_ in words])
    return [int(line.split()[1]) for line in said]


def is_slow(lab: Lab, disk: Disk, peers: Sequence[Disk]) -> bool:
    """Whether it is slow, compared with these."""
    lines = [line for n, each in enumerate([disk, *peers]) for line in adds(n, each)]
    said = ask(lab, [*lines, f"slow 0 {len(peers)}"])
    lab.judging(len(lines))
    return said == ["slow 1"]


Place = tuple[int, int, str, int]  # ns, power, range, step


def check_places(lab: Lab, places: Sequence[Place]) -> None:
    """One request of this many ns is in these two buckets."""
    for start in range(0, len(places), DISKS):
        some = places[start : start + DISKS]
        found = buckets(lab, [[(p[0], 1)] for p in some])
        for number, (place, seen) in enumerate(zip(some, found, strict=True)):
            lab.judging(2 * number)  # the line that counts it, before the one that shows it
            ns, power, kind, step = place
            expect(f"a request of {ns:,} ns: powers (place: count)", seen.powers, {power: 1})
            expect(f"a request of {ns:,} ns: steps (place: count)", seen.steps, {(kind, step): 1})
            expect(f"a request of {ns:,} ns: count, total_ns", seen.total, [1, ns])
