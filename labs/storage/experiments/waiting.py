"""Tasks that work, and wait for locks, in simulated time (X25, X29, X30).

A task is a generator. It yields how long it works, or what it wants of a lock; it goes on when the
time has passed, or when it has the lock:

    def writer():
        yield 3.0              works for three units of time
        yield lock.alone()     waits until nobody else has the lock
        yield 1.0
        lock.give_back()
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Want:
    """What a task waits for."""

    lock: Lock
    is_shared: bool


Task = Generator["float | Want", None, None]


class Clock:
    """The time, and who goes on when. What is due at one time keeps its order."""

    def __init__(self) -> None:
        self.now = 0.0
        self._count = 0
        self._due: list[tuple[float, int, Task]] = []

    def later(self, task: Task, after: float = 0.0) -> None:
        """The task goes on after this time."""
        self._count += 1
        heapq.heappush(self._due, (self.now + after, self._count, task))

    def run(self, tasks: Iterable[Task]) -> float:
        """Until all have ended, or wait for ever; returns the time."""
        for task in tasks:
            self.later(task)
        while self._due:
            self.now, _, task = heapq.heappop(self._due)
            step = next(task, None)
            if isinstance(step, Want):
                step.lock.ask(task, step.is_shared)
            elif step is not None:
                self.later(task, step)
        return self.now


@dataclass
class Lock:
    """For one task alone, or for several that share it; first come, first served, so that nobody
    who may share it overtakes one that wants it alone."""

    clock: Clock
    sharing: int = 0
    is_alone: bool = False
    waited: int = 0
    waiting: deque[tuple[Task, bool]] = field(default_factory=deque)

    def alone(self) -> Want:
        """For a task that changes something."""
        return Want(self, False)

    def shared(self) -> Want:
        """For a task that only looks."""
        return Want(self, True)

    def ask(self, task: Task, is_shared: bool) -> None:
        """Comes to its turn."""
        self.waiting.append((task, is_shared))
        self._let_in()
        self.waited += bool(self.waiting) and self.waiting[-1][0] is task

    def give_back(self) -> None:
        """The task that has it does not need it any more."""
        if self.is_alone:
            self.is_alone = False
        else:
            self.sharing -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self.waiting and not self.is_alone and (self.waiting[0][1] or not self.sharing):
            task, is_shared = self.waiting.popleft()
            self.sharing += is_shared
            self.is_alone = not is_shared
            self.clock.later(task)


def closed_form(tasks: int, think: float, hold: float) -> tuple[float, float]:
    """Exact means for tasks that think, and then have one lock in turn, both for exponential times
    (Reiser and Lavenberg's mean value analysis): operations in a unit of time, and the wait before
    each."""
    queue = rate = 0.0
    for number in range(1, tasks + 1):
        stay = hold * (1 + queue)
        rate = number / (think + stay)
        queue = rate * stay
    return rate, queue / rate - hold
