"""A lock of a cluster with the levels NL, PR and EX, simulated (X24).

Nodes ask a master for a lock at a level: NL (none), PR (shared by readers) or EX (one writer).
The master grants with an ast (completion). When a request has to wait, it sends a bast (blocking)
to each node in the way; that node lowers its level as soon as it does not use it.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

NL, PR, EX = 0, 1, 2
# A message, an operation under the lock, and the time between two operations of a node.
HOP_MS, USE_MS, THINK_MS = 0.1, 0.2, 5.0


@dataclass
class Node:
    """What a node knows: the level it has, the one it waits for, and the one others want."""

    level: int = NL
    want: int = NL
    blocked: int = NL
    using: bool = False
    asked_at: float = 0
    converting: bool = False


@dataclass
class Cluster:
    """A lock, its nodes and its master, as events in time. `granted` and `queue` are the master's:
    what it has granted, and which node waits for which level, conversions first."""

    way: str  # give back, drop, cancel or stuck
    nodes: int
    reads: float
    operations: int
    seed: int
    messages: int = 0
    done: int = 0
    cancelled: int = 0
    waited: float = 0
    now: float = 0
    queue: list[tuple[int, int, bool]] = field(default_factory=list)

    def run(self) -> None:
        """Until all operations are done, or nobody can go on."""
        self.random, self.events, self.count = random.Random(self.seed), [], 0
        self.all, self.granted = [Node() for _ in range(self.nodes)], [NL] * self.nodes
        self.warned: set[tuple[int, int]] = set()
        for number in range(self.nodes):
            self.later(self.random.expovariate(1 / THINK_MS), self.begin, number)
        while self.events and self.done < self.operations:
            self.now, _, step, what = heapq.heappop(self.events)
            step(*what)

    def later(self, ms: float, step: Callable[..., None], *what: int) -> None:
        """An event; those of one time keep their order."""
        self.count += 1
        heapq.heappush(self.events, (self.now + ms, self.count, step, what))

    def send(self, step: Callable[..., None], *what: int) -> None:
        """A message."""
        self.messages += 1
        self.later(HOP_MS, step, *what)

    def begin(self, number: int) -> None:
        """A node wants to read or to write."""
        node, reads = self.all[number], self.random.random() < self.reads
        node.want = PR if reads and self.way != "give back" else EX
        node.asked_at = self.now
        if node.level >= node.want:
            self.use(number)
        else:
            self.ask(number)

    def ask(self, number: int) -> None:
        """A request; from PR it is a conversion, or PR is dropped before."""
        node = self.all[number]
        if node.level == PR and self.way == "drop":
            self.lower(number, NL)
        node.converting = node.level == PR
        self.send(self.arrive, number, node.want, node.converting)

    def use(self, number: int) -> None:
        """The lock is there."""
        node = self.all[number]
        node.using, node.converting = True, False
        self.waited += self.now - node.asked_at
        self.later(USE_MS, self.end, number)

    def end(self, number: int) -> None:
        """The operation is done; the level is kept, unless somebody wants it."""
        node = self.all[number]
        node.using, node.want, self.done = False, NL, self.done + 1
        if self.way == "give back" or node.blocked == EX:
            self.lower(number, NL)
        elif node.blocked == PR and node.level == EX:
            self.lower(number, PR)
        node.blocked = NL
        self.later(self.random.expovariate(1 / THINK_MS), self.begin, number)

    def lower(self, number: int, level: int) -> None:
        """A node gives up a part of what it has."""
        self.all[number].level = level
        self.send(self.lowered, number, level)

    def bast(self, number: int, level: int) -> None:
        """A node hears that it is in the way."""
        node = self.all[number]
        if node.using or node.level == NL or node.converting:
            node.blocked = max(node.blocked, level)
            if node.converting and self.way == "cancel":
                self.send(self.cancel, number)
        elif node.level + level > EX:
            self.lower(number, NL if level == EX else PR)

    def ast(self, number: int, level: int) -> None:
        """A grant arrives."""
        self.all[number].level = level
        self.use(number)

    def arrive(self, number: int, level: int, converting: bool) -> None:
        """At the master: a request."""
        at = sum(each[2] for each in self.queue) if converting else len(self.queue)
        self.queue.insert(at, (number, level, converting))
        self.pump()

    def lowered(self, number: int, level: int) -> None:
        """At the master: somebody gives up."""
        self.granted[number] = level
        self.warned = {each for each in self.warned if each[0] != number}
        self.pump()

    def cancel(self, number: int) -> None:
        """At the master: a conversion is taken back, unless it has been granted."""
        if (waits := (number, EX, True)) in self.queue:
            self.queue.remove(waits)
            self.send(self.taken_back, number)

    def taken_back(self, number: int) -> None:
        """A node whose conversion is cancelled drops PR, and asks again from NL."""
        self.cancelled += 1
        self.all[number].blocked = NL
        self.lower(number, NL)
        self.ask(number)

    def pump(self) -> None:
        """Grants in order; the first that must wait sends a bast to each node in the way, once."""
        while self.queue:
            number, level, _ = self.queue[0]
            others = [n for n in range(self.nodes) if n != number and self.granted[n] + level > EX]
            for other in others:
                if (other, level) not in self.warned:
                    self.warned.add((other, level))
                    self.send(self.bast, other, level)
            if others:
                return
            self.queue.pop(0)
            self.granted[number] = level
            self.send(self.ast, number, level)
