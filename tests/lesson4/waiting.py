"""Exercise 4.3: what threads that sleep have in common, which a test plays."""

from __future__ import annotations

from collections.abc import Callable

from tests.lesson4.layout import layout
from tests.lesson4.played import Play, Played
from tests.lesson4.support import MASK

ERESTART, ETIMEDOUT = 512, 110
TICK_US, SECOND = 10_000, 1_000_000_000
FOREVER = (MASK, MASK)
SEMAPHORE, QUEUE = 8, 4  # bytes
TASK_READY, TASK_SLEEPING, TASK_BLOCKED = range(3)
YIELDS = [("yield",)] * 8


def halves(number: int) -> tuple[int, int]:
    """A number of 64 bits as two arguments."""
    return number & MASK, number >> 32 & MASK


class Waiters:
    """Entries of the test's own, and queues."""

    def __init__(self, play: Play, count: int) -> None:
        self.play = play
        self.members = layout("waiter", "task", "queue", "next", "is_woken", "calls")
        self.size = self.members["size"]
        self.base = play.zeroed(count * self.size)
        self.queue, self.other = play.zeroed(QUEUE), play.zeroed(QUEUE)

    def __getitem__(self, index: int) -> int:
        return self.base + index * self.size

    def is_woken(self, index: int) -> int:
        """Is it marked?"""
        return self.play.byte(self[index] + self.members["is_woken"])


def hold_twice(play: Play, found: list[int], ticks: int) -> Callable[[int], Played]:
    """A thread that disables pre-emption twice, begins one that says 2, is busy for so many ticks,
    and says 1 and 3 after the first and the second preempt_enable."""

    def hold(_argument: int) -> Played:
        play.preempt_disable()
        play.preempt_disable()
        yield from play.begin(say(found), 2)
        yield play.busy_ticks(ticks)
        yield "preempt_enable"
        found.append(1)
        yield "preempt_enable"
        found.append(3)

    return hold


def say(found: list[int]) -> Callable[[int], Played]:
    """A thread that says its argument."""

    def thread(number: int) -> Played:
        found.append(number)
        yield from ()

    return thread


def waits(play: Play, queue: int, found: list[int]) -> Callable[[int], Played]:
    """A thread that waits, and then says its argument."""

    def thread(number: int) -> Played:
        play.interrupts(False)
        yield "wait_sleep_until", queue, *FOREVER
        found.append(number)
        play.interrupts(True)

    return thread


def waken(play: Play, found: list[int], *calls: tuple) -> Played:
    """Calls without an interrupt in between; then others run. Returns who was woken."""
    before = len(found)
    play.interrupts(False)
    if calls:
        yield list(calls)
    play.interrupts(True)
    yield YIELDS
    return found[before:]


def down_and_say(semaphore: int, found: list[int]) -> Callable[[int], Played]:
    """A thread that takes a unit, and then says its argument."""

    def thread(number: int) -> Played:
        yield "semaphore_down", semaphore
        found.append(number)

    return thread
