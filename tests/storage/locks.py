"""Exercise S7 from outside: the master of a lock (labs/storage/locks/master.c) on this computer
(tests/storage/host/locks.c), asked call by call, or by nodes whose messages take time. The nodes
are on this side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from random import Random

from labs.tools.grading.lab import ROOT, Lab
from tests.storage.mapping import cause_in
from tests.support.told import expect, fail, require

SOURCES = ("labs/storage/locks/master.c",)
HOST = ROOT / "tests/storage/host"
DRIVERS = [HOST / "locks.c", HOST / "asked.c"]
NL, PR, EX = range(3)
NAMES = ("NL", "PR", "EX", "none")
EINVAL, EBUSY = -22, -16
HOP, USE, THINK = 10, 20, 200  # how long a message, an operation and a pause take
MOST_MESSAGES = 40  # for an operation
DONE = re.compile(r"done (-?\d{1,9})((?: ast:\d{1,9}:\d{1,9}:[01]| bast:\d{1,9}:\d{1,9})*)")

programs: dict[Path, Path] = {}


@dataclass(frozen=True)
class Call:
    """A call of the master, what it returned (None: nothing), and what it sent meanwhile: answers
    in their order, warnings by node. early: nodes whose warning came before their answer."""

    words: tuple[str, ...]
    result: int | None
    asts: tuple[tuple[int, int, bool], ...]  # node, level, whether it is granted
    basts: tuple[tuple[int, int], ...]  # node, level
    early: tuple[int, ...] = ()

    def __str__(self) -> str:
        name, node, *level = self.words
        return f"{name} of node {node}" + (f" ({NAMES[int(level[0])]})" if level else "")


class Desk:
    """What answers the program: the next call of a source, which hears of each what it did."""

    def __init__(self, source: Script | Cluster) -> None:
        self.calls: list[Call] = []
        self._source, self._words = source, None

    def answer(self, question: bytes) -> bytes:
        """The line for a line."""
        done = DONE.fullmatch(question.decode(errors="replace"))
        if done and self._words:
            call = call_of(self._words, int(done[1]), done[2].split())
            self.calls.append(call)
            self._source.hear(call)
        self._words = self._source.next() if done or question == b"next" else None
        return (" ".join(self._words or ()) + "\n").encode()


def call_of(words: tuple[str, ...], result: int, messages: Sequence[str]) -> Call:
    """A call, with what it sent."""
    parts = [(kind, list(map(int, rest))) for kind, *rest in (m.split(":") for m in messages)]
    warned = [n[0] if kind == "bast" else -1 for kind, n in parts]
    return Call(
        words,
        None if words[0] == "cancel" else result,
        tuple((n[0], n[1], n[2] == 1) for kind, n in parts if kind == "ast"),
        tuple(sorted((n[0], n[1]) for kind, n in parts if kind == "bast")),
        tuple(n[0] for at, (kind, n) in enumerate(parts) if kind == "ast" and n[0] in warned[:at]),
    )


def ask(lab: Lab, source: Script | Cluster) -> list[Call]:
    """The calls of a source. The program must end by itself."""
    if lab.root not in programs or not programs[lab.root].exists():
        programs[lab.root] = lab.host(SOURCES, DRIVERS, "locks")
    desk = Desk(source)
    done = lab.converse(programs[lab.root], desk.answer)
    said, errors = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    if done.returncode != 0:
        fail(f"the master of a lock: {cause_in(said + errors, done.returncode)}\n{errors[-1500:]}")
    for call in lab.judged(desk.calls):
        for node in call.early:
            fail(f"{call}: node {node} has its bast before its ast: it drops what it cannot need")
    return desk.calls


class Script:
    """Calls that are known."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = iter(lines)

    def next(self) -> tuple[str, ...] | None:
        """The next call; None: that was all."""
        line = next(self._lines, None)
        return tuple(line.split()) if line else None

    def hear(self, call: Call) -> None:
        """What a call did."""


def script(lab: Lab, lines: Sequence[str]) -> list[Call]:
    """Calls from a new lock on: "request 0 2", "cancel 0", "lower 0 1"."""
    calls = ask(lab, Script(lines))
    expect("the master's answers", len(calls), len(lines))
    return calls


@dataclass
class Node:
    """A node: what it has, what it wants, and who waits for it. converts: it asks for more than it
    has; cancels: it has taken that back."""

    level: int = NL
    wants: int = NL
    blocked: int = NL
    uses: bool = False
    converts: bool = False
    cancels: bool = False


class Cluster:
    """Nodes that read (`reads` of 100 operations) and write, until `count` operations are done;
    their messages take time. A node keeps a level until it hears that it is in the way. A
    conversion that is in the way of another one is cancelled, and what it had is given up.

    wrong: what must never be, in words; empty: nothing was."""

    def __init__(self, nodes: int, reads: int, count: int, seed: int) -> None:
        self.done, self.wrong = 0, ""
        self._nodes = [Node() for _ in range(nodes)]
        self._reads, self._count, self._chance = reads, count, Random(seed)
        self._now = self._order = 0
        self._events: list[tuple[int, int, str, int, int]] = []
        for number in range(nodes):
            self._later(self._chance.randrange(THINK), "begin", number)

    def _later(self, delay: int, kind: str, number: int, level: int = NL) -> None:
        self._order += 1
        heappush(self._events, (self._now + delay, self._order, kind, number, level))

    def next(self) -> tuple[str, ...] | None:
        """The next call of a node, after all that happens before it; None: there is none."""
        most = MOST_MESSAGES * self._count
        while self._events and self.done < self._count and not self.wrong and self._order < most:
            self._now, _, kind, number, level = heappop(self._events)
            if kind in ("request", "lower"):
                return kind, str(number), str(level)
            if kind == "cancel":
                self._nodes[number].cancels = False
                return kind, str(number)
            getattr(self, f"_{kind}")(number, level)
        return None

    def hear(self, call: Call) -> None:
        """The master's messages are under way."""
        for node, level, is_granted in call.asts:
            if node < len(self._nodes):
                self._later(HOP, "granted" if is_granted else "cancelled", node, level)
        for node, level in call.basts:
            if node < len(self._nodes):
                self._later(HOP, "bast", node, level)

    def _begin(self, number: int, _: int) -> None:
        node = self._nodes[number]
        node.wants = PR if self._chance.randrange(100) < self._reads else EX
        if node.level >= node.wants:
            self._use(number)
        else:
            self._request(number)

    def _request(self, number: int) -> None:
        node = self._nodes[number]
        node.converts = node.level != NL
        self._later(HOP, "request", number, node.wants)

    def _use(self, number: int) -> None:
        """Nobody else uses what excludes that."""
        node = self._nodes[number]
        for other, each in enumerate(self._nodes):
            if each.uses and other != number and each.wants + node.wants > EX:
                has, wants = NAMES[each.wants], NAMES[node.wants]
                self.wrong = self.wrong or f"node {other} uses {has}, node {number} {wants}"
        node.uses, node.converts = True, False
        self._later(USE, "end", number)

    def _end(self, number: int, _: int) -> None:
        node = self._nodes[number]
        node.uses, node.wants = False, NL
        self.done += 1
        if node.blocked == EX:
            self._lower(number, NL)
        elif node.blocked == PR and node.level == EX:
            self._lower(number, PR)
        self._later(self._chance.randrange(THINK), "begin", number)

    def _lower(self, number: int, level: int) -> None:
        self._nodes[number].level, self._nodes[number].blocked = level, NL
        self._later(HOP, "lower", number, level)

    def _granted(self, number: int, level: int) -> None:
        self._nodes[number].level = level
        self._use(number)

    def _cancelled(self, number: int, _: int) -> None:
        self._nodes[number].converts = False
        self._lower(number, NL)
        self._request(number)

    def _bast(self, number: int, level: int) -> None:
        """Now, later, or never, if the node has nothing any more."""
        node = self._nodes[number]
        if node.level + level <= EX:
            return
        if not (node.uses or node.converts):
            self._lower(number, NL if level == EX else PR)
            return
        node.blocked = max(level, node.blocked)
        if node.converts and not node.cancels:
            node.cancels = True
            self._later(HOP, "cancel", number)


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
    cluster = Cluster(nodes, reads, count, seed)
    calls = ask(lab, cluster)
    if cluster.wrong:
        fail(f"{what}: {cluster.wrong}")
    if cluster.done < count:
        stuck = f"stuck after {cluster.done} operations"
        fail(f"{what}: {stuck}: nothing is under way, and some still wait", *waiting_in(calls))
    open_requests: dict[int, int] = {}
    for call in calls:
        if call.words[0] == "request" and call.result == 0:
            open_requests[int(call.words[1])] = int(call.words[2])
        for node, _, _ in call.asts:
            require(node in open_requests, f"{what}: node {node} has one answer too many")
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
