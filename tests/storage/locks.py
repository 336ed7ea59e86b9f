"""Exercise S7 from outside: the master of a lock (labs/storage/locks/master.c) on this computer,
asked call by call, or by nodes whose messages take time (tests/storage/host/locks.c)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.tools.grading.lab import ROOT, Lab
from tests.storage.mapping import cause_in
from tests.told import expect, fail, require

SOURCES = ("labs/storage/locks/master.c",)
DRIVER = ROOT / "tests/storage/host/locks.c"
NL, PR, EX = range(3)
NAMES = ("NL", "PR", "EX")
EINVAL, EBUSY = -22, -16

programs: dict[Path, Path] = {}


@dataclass(frozen=True)
class Call:
    """A call of the master, what it returned (None: nothing), and what it sent meanwhile: answers
    in their order, warnings by node."""

    words: tuple[str, ...]
    result: int | None
    asts: tuple[tuple[int, int, bool], ...]  # node, level, whether it is granted
    basts: tuple[tuple[int, int], ...]  # node, level

    def __str__(self) -> str:
        name, node, *level = self.words
        return f"{name} of node {node}" + (f" ({NAMES[int(level[0])]})" if level else "")


def ask(lab: Lab, text: str, *words: object) -> str:
    """What the program said. It must end by itself."""
    if lab.root not in programs or not programs[lab.root].exists():
        programs[lab.root] = lab.host(SOURCES, [DRIVER], "locks")
    done = lab.ask(programs[lab.root], text.encode(), *map(str, words))
    said, errors = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    if done.returncode != 0:
        fail(f"the master of a lock: {cause_in(said + errors, done.returncode)}\n{errors[-1500:]}")
    return said


def calls_in(said: str) -> list[Call]:
    """The calls that a program says it made."""
    found = []
    for part in re.split(r"^> ", said, flags=re.MULTILINE)[1:]:
        result = re.search(r"^= (-?\d+)$", part, re.MULTILINE)
        asts = re.findall(r"^ast (\d+) (\d+) ([01])$", part, re.MULTILINE)
        basts = re.findall(r"^bast (\d+) (\d+)$", part, re.MULTILINE)
        found.append(Call(
            tuple(part.splitlines()[0].split()), int(result[1]) if result else None,
            tuple((int(node), int(level), granted == "1") for node, level, granted in asts),
            tuple(sorted((int(node), int(level)) for node, level in basts)),
        ))  # fmt: skip
    return found


def script(lab: Lab, lines: Sequence[str]) -> list[Call]:
    """Calls from a new lock on: "request 0 2", "cancel 0", "lower 0 1"."""
    calls = calls_in(ask(lab, "\n".join(lines) + "\n", "script"))
    expect("the master's answers", len(calls), len(lines))
    return calls


def granted(*pairs: tuple[int, int]) -> tuple[tuple[int, int, bool], ...]:
    """Answers that give what was wanted: node, level."""
    return tuple((node, level, True) for node, level in pairs)


def asts_in(asts: Iterable[tuple[int, int, bool]]) -> str:
    """Answers in words."""
    words = (f"node {n} has {NAMES[level]}{'' if ok else ' (cancelled)'}" for n, level, ok in asts)
    return ", ".join(words) or "none"


def basts_in(basts: Iterable[tuple[int, int]]) -> str:
    """Warnings in words."""
    return ", ".join(f"node {node} ({NAMES[level]} is wanted)" for node, level in basts) or "none"


def check(lab: Lab, *steps: tuple[str, Sequence[tuple], Sequence[tuple]]) -> None:
    """Each step is a call, the asts and the basts that it must cause."""
    calls = script(lab, [line for line, _, _ in steps])
    before: list[str] = []
    for call, (_, asts, basts) in zip(lab.judged(calls), steps, strict=True):
        where = f"after {'; '.join(before)}" if before else "at the beginning"
        before.append(str(call))
        expect(f"{call}: asts", asts_in(call.asts), asts_in(asts), where)
        expect(f"{call}: basts", basts_in(call.basts), basts_in(basts), where)


def check_run(lab: Lab, nodes: int, reads: int, count: int, seed: int) -> list[Call]:
    """A run comes to its end, no two nodes use what excludes them, and each request has one answer
    (but those that are under way at the end). Returns its calls."""
    what = f"{nodes} nodes, {reads} % reads, seed {seed}"
    said = ask(lab, "", "run", nodes, reads, count, seed)
    using: dict[str, int] = {}
    for kind, node, level in re.findall(r"^(use|end) (\d+) ?(\d*)$", said, re.MULTILINE):
        if kind == "end":
            using.pop(node, None)
            continue
        for other, has in using.items():
            if has + int(level) > EX:
                fail(f"{what}: node {other} uses {NAMES[has]}, node {node} {NAMES[int(level)]}")
        using[node] = int(level)
    calls = calls_in(said)
    last = said.splitlines()[-1] if said else "nothing"
    if not last.startswith("done"):
        stuck = re.sub(r"^stuck (\d+)$", r"stuck after \1 operations", last)
        fail(f"{what}: {stuck}: nothing is under way, and some still wait", *waiting_in(calls))
    open_requests: dict[int, int] = {}
    for call in calls:
        if call.words[0] == "request" and call.result == 0:
            open_requests[int(call.words[1])] = int(call.words[2])
        for node, _, _ in call.asts:
            require(node in open_requests, f"{what}: node {node} has an answer too many")
            open_requests.pop(node)
    return calls


def waiting_in(calls: Sequence[Call]) -> list[str]:
    """Who has no answer at the end, and who had the last basts."""
    waits: dict[int, str] = {}
    for call in calls:
        if call.words[0] == "request":
            waits[int(call.words[1])] = str(call)
        for node, _, _ in call.asts:
            waits.pop(node, None)
    told = [f"{node} ({NAMES[level]})" for call in calls for node, level in call.basts][-3:]
    return [*waits.values(), f"the last basts went to {', '.join(told) or 'nobody'}"]
