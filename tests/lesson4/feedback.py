"""Exercise 4.4: a model of the feedback queues, and steps that try them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.lesson4.classes import (
    CHARGE,
    DEQUEUE,
    DONATE,
    ENQUEUE,
    FAKES,
    JOIN,
    LEVEL,
    NO_TASK,
    NONE,
    PICK,
    PREEMPTS,
    STAMPS_PER_TICK,
    TICK,
    Step,
)
from tests.lesson4.support import PREEMPTED, WOKEN, YIELDED
from tests.support.met import Met

LEVEL_0, LEVELS = 4, 8
STAMPS = STAMPS_PER_TICK + 10
CASES = (
    *("a niceness below 0", "a niceness above 0", "pick without a task", "a loan that lifts"),
    *("pre-empted in its turn", "pre-empted after its turn", "who was woken", "who yields"),
    *("a task that sinks", "a task that is at the lowest level", "who wakes pre-empts"),
    *("who wakes does not pre-empt", "one leaves its queue"),
)


@dataclass
class Fake:
    """A task of the model."""

    nice: int = 0
    level: int = 0
    left: int = 0
    turn: int = 0
    donated: int = NONE

    @property
    def priority(self) -> int:
        """Its level, or what it was lent."""
        return min(self.level, self.donated)


class Model:
    """What kernel/task/sched_mlfq.c does, without the boost."""

    def __init__(
        self, stamps_per_tick: int, quantum: int, note: Callable[[str], None] = lambda _: None
    ) -> None:
        self.note = note
        self.tasks = [Fake() for _ in range(FAKES)]
        self.queues: list[list[int]] = [[] for _ in range(LEVELS)]
        self.allotments = [
            (stamps_per_tick * quantum << max(0, level - LEVEL_0 + 1) // 2) - stamps_per_tick // 2
            for level in range(LEVELS)
        ]

    def step(self, step: int, number: int, value: int) -> int:
        """The same as a step of Class.run."""
        steps = {
            JOIN: self.join,
            ENQUEUE: self.enqueue,
            PICK: self.pick,
            CHARGE: self.charge,
            TICK: self.tick,
            DEQUEUE: self.dequeue,
            PREEMPTS: self.preempts,
            DONATE: self.donate,
            LEVEL: self.level,
        }
        return int(steps[step](number, value) or 0)

    def join(self, number: int, value: int) -> None:
        """Begins where its niceness says."""
        task = self.tasks[number]
        task.nice, task.donated = value, NONE
        if value:
            self.note(f"a niceness {'below' if value < 0 else 'above'} 0")
        task.level, task.turn = (value + 20) // 5, 1
        task.left = self.allotments[task.level]

    def enqueue(self, number: int, value: int) -> None:
        """At the end, or at the front in the middle of a turn."""
        task = self.tasks[number]
        queue = self.queues[task.priority]
        if value == PREEMPTED:
            self.note(f"pre-empted {'in' if task.turn else 'after'} its turn")
        else:
            self.note("who was woken" if value == WOKEN else "who yields")
        if task.priority < task.level:
            self.note("a loan that lifts")
        queue.insert(0 if value == PREEMPTED and task.turn else len(queue), number)
        task.turn = 1

    def pick(self, _number: int, _value: int) -> int:
        """From the best queue."""
        best = next((queue for queue in self.queues if queue), None)
        if not best:
            self.note("pick without a task")
        return best.pop(0) if best else NO_TASK

    def charge(self, number: int, value: int) -> None:
        """Sinks when nothing is left."""
        task = self.tasks[number]
        task.left -= value
        if task.left <= 0:
            is_low = task.level == LEVELS - 1
            self.note(f"a task that {'is at the lowest level' if is_low else 'sinks'}")
            task.turn, task.level = 0, min(task.level + 1, LEVELS - 1)
            task.left = self.allotments[task.level]

    def tick(self, number: int, _value: int) -> bool:
        """Is the turn over?"""
        return self.tasks[number].turn == 0

    def dequeue(self, number: int, _value: int) -> None:
        """Out of its queue."""
        next(queue for queue in self.queues if number in queue).remove(number)
        self.note("one leaves its queue")

    def donate(self, number: int, value: int) -> None:
        """Somebody lends this priority."""
        self.tasks[number].donated = value

    def preempts(self, number: int, value: int) -> bool:
        """Only a task of higher priority does."""
        preempts = self.tasks[number].priority < self.tasks[value].priority
        self.note(f"who wakes {'pre-empts' if preempts else 'does not pre-empt'}")
        return preempts

    def level(self, number: int, _value: int) -> int:
        """Where it is."""
        return self.tasks[number].level


def draw_steps(seeded: random.Random, count: int, quantum: int) -> list[Step]:
    """Steps in an order that a scheduler could make: one task runs at a time, and only tasks that
    are not queued get in. As many as this, or as it takes to meet all cases."""
    met = Met(*CASES)
    model = Model(STAMPS_PER_TICK, quantum, met)
    steps: list[Step] = []

    def add(*more: Step) -> None:
        steps.extend(more)
        for step in more:
            model.step(*step)

    nice = [seeded.randrange(-20, 0), seeded.randrange(1, 20)]
    nice += [seeded.randrange(-20, 20) for _ in range(FAKES - len(nice))]
    add((PICK, 0, 0), *((JOIN, number, each) for number, each in enumerate(nice)))
    free, queued = set(range(FAKES)), set()
    while len(steps) < count or (met.lacks() and len(steps) < 4 * count):
        number = seeded.choice(sorted(free)) if free else None
        kind = seeded.random()
        if kind < 0.35 and free:
            reason = seeded.choice((WOKEN, YIELDED, PREEMPTED, PREEMPTED))
            add((TICK, number, 0), (ENQUEUE, number, reason))
            free.remove(number)
            queued.add(number)
        elif kind < 0.6 and free:
            add((CHARGE, number, seeded.randrange(1, 2 * STAMPS)))
            add((TICK, number, 0), (LEVEL, number, 0))
        elif kind < 0.65 and free:
            add((DONATE, number, seeded.choice((NONE, NONE, 0, 2, 5))))
        elif kind < 0.7:
            add((PREEMPTS, seeded.randrange(FAKES), seeded.randrange(FAKES)))
        elif kind < 0.75 and queued:
            gone = seeded.choice(sorted(queued))
            add((DEQUEUE, gone, 0))
            queued.remove(gone)
            free.add(gone)
        elif queued:
            add(*[(PICK, 0, 0)] * len(queued))
            free |= queued
            queued.clear()
    met.require()
    return steps
