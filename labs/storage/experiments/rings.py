"""Trace rings of several processors in simulated time: one for all, or one for each (X25).

One ring has a lock, and its cache lines move to the processor that writes. Rings of their own have
neither; a reader merges them by the time in each record, so their order is as good as the clocks.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from itertools import pairwise

from simpy import Environment

from labs.storage.experiments.waiting import Lock, Task, run

SEED = 25


@dataclass
class Rings:
    """Processors that call, and leave a record after each call; times in ns. move: to get the
    ring's lines from another processor; skew: how far a clock is wrong at most."""

    processors: int
    call: float
    record: float
    is_shared: bool
    move: float = 0.0
    skew: float = 0.0
    clock: Environment = field(default_factory=Environment)
    records: list[list[tuple[float, float]]] = field(default_factory=list)
    last: int = 0

    def run(self, calls: int) -> float:
        """So many calls of each; returns how many a second all made, in millions."""
        self.random = random.Random(SEED)
        self.lock = Lock(self.clock)
        self.wrong = [self.random.uniform(-self.skew, self.skew) for _ in range(self.processors)]
        self.records = [[] for _ in range(self.processors)]
        tasks = (self.processor(each, calls) for each in range(self.processors))
        total = run(self.clock, tasks)
        return 1000 * self.processors * calls / total

    def processor(self, number: int, calls: int) -> Task:
        """Both times are exponential, so that one ring has a closed form."""
        for _ in range(calls):
            yield self.clock.timeout(self.random.expovariate(1 / self.call))
            took = self.random.expovariate(1 / self.record)
            if self.is_shared:
                yield self.lock.alone()
                took += self.move * (self.last != number)
                self.last = number
            self.records[number].append((self.clock.now + self.wrong[number], self.clock.now))
            yield self.clock.timeout(took)
            if self.is_shared:
                self.lock.give_back()

    def out_of_order(self) -> float:
        """Percent of neighbours in the merged trace of which the second was first."""
        merged = [true for _, true in heapq.merge(*self.records)]
        wrong = sum(later < earlier for earlier, later in pairwise(merged))
        return 100 * wrong / (len(merged) - 1)
