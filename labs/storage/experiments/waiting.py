"""Tasks that work, and wait for locks, in simulated time (X25, X29, X30), by SimPy.

A task is a process of SimPy: a generator that yields what it waits for.

    def writer():
        yield clock.timeout(3.0)   works for three units of time
        yield lock.alone()         waits until nobody else has the lock
        yield clock.timeout(1.0)
        lock.give_back()
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

from simpy import Environment, Event

Task = Generator[Event, object, None]


def run(clock: Environment, tasks: Iterable[Task]) -> float:
    """Until all have ended, or wait for ever; returns the time."""
    for task in tasks:
        clock.process(task)
    clock.run()
    return clock.now


@dataclass
class Lock:
    """For one task alone, or for several that share it; first come, first served, so that nobody
    who may share it overtakes one that wants it alone. (SimPy's Resource has no such lock.)"""

    clock: Environment
    sharing: int = 0
    is_alone: bool = False
    waited: int = 0
    waiting: deque[tuple[Event, bool]] = field(default_factory=deque)

    def alone(self) -> Event:
        """For a task that changes something."""
        return self._ask(is_shared=False)

    def shared(self) -> Event:
        """For a task that only looks."""
        return self._ask(is_shared=True)

    def _ask(self, is_shared: bool) -> Event:
        turn = self.clock.event()
        self.waiting.append((turn, is_shared))
        self._let_in()
        self.waited += not turn.triggered
        return turn

    def give_back(self) -> None:
        """The task that has it does not need it any more."""
        if self.is_alone:
            self.is_alone = False
        else:
            self.sharing -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self.waiting and not self.is_alone and (self.waiting[0][1] or not self.sharing):
            turn, is_shared = self.waiting.popleft()
            self.sharing += is_shared
            self.is_alone = not is_shared
            turn.succeed()


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
