"""Exercise 4.3: what threads and timers do while a tick comes before each instruction in turn. Each
scenario plays once, and returns what was wrong."""

from __future__ import annotations

from collections.abc import Callable

from labs.tools.machine.monitor import PM_TIMER_HERTZ, PM_TIMER_MASK
from tests.lesson4.layout import layout
from tests.lesson4.played import Busy, Play, Played, Tick
from tests.lesson4.races import Once, Scenario
from tests.lesson4.waiting import FOREVER, SEMAPHORE, Waiters, halves

TURNS = [("yield",)] * 12  # within which any thread of these scenarios comes to its end
FAR_NS = 90_000_000_000
LOST = "the wake-up is lost: a thread sleeps for ever"
COUNT = "the semaphore has another count than it should"
UNIT = "a unit of the semaphore is lost, or made from nothing"
MILLISECOND = PM_TIMER_HERTZ // 1000
BETWEEN_TICKS, MOST_TICKS = 6000, 100  # instructions; of a sleep of a millisecond


class Semaphore:
    """One, with threads that arrive when they have got its units."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.place, self.timer = play.zeroed(SEMAPHORE), timer_of(play)
        self.arrived = 0
        self.up, self.down = ("semaphore_up", self.place), ("semaphore_down", self.place)

    def begin(self, units: int) -> None:
        """With so many units."""
        self.arrived = 0
        self.play.set_word(self.place, units)

    def give(self, _: int) -> Played:
        """A timer, or a thread."""
        yield self.up

    def take(self, _argument: int) -> Played:
        """A thread."""
        yield self.down
        self.arrived += 1

    def start(self) -> Played:
        """The timer is due at the next tick."""
        yield from start(self.play, self.timer, self.give)

    def problem(self, threads: int, units: int, wrong: str) -> Played:
        """Have so many arrived, and is this left?"""
        yield TURNS
        if self.arrived < threads:
            return LOST
        is_right = (self.play.word(self.place), self.play.word(self.place, 4)) == (units, 0)
        return "" if is_right else wrong


def timer_of(play: Play) -> int:
    """A timer."""
    return play.zeroed(layout("timer", "in_order")["size"])


def start(play: Play, timer: int, function: Callable[[int], Played], later: int = -1) -> Played:
    """It is due so many nanoseconds from now."""
    now = yield from play.time()
    yield "timer_start", timer, *halves(now + later), play.function(function)


def wake_up_in_interrupt(play: Play) -> Once:
    """A thread waits for a unit that a timer gives."""
    semaphore = Semaphore(play)

    def once() -> Played:
        semaphore.begin(0)
        yield from semaphore.start()
        yield from play.begin(semaphore.take)
        yield TURNS
        yield Tick()
        return (yield from semaphore.problem(1, 0, COUNT))

    return once


def wake_up_by_thread(play: Play) -> Once:
    """Two threads take what two others give."""
    semaphore = Semaphore(play)

    def once() -> Played:
        semaphore.begin(0)
        yield from play.begin_all(*((each, 0) for each in (semaphore.take, semaphore.give) * 2))
        return (yield from semaphore.problem(2, 0, COUNT))

    return once


def units_in_interrupt(play: Play) -> Once:
    """Somebody gives and takes while a timer gives: one is left."""
    semaphore = Semaphore(play)

    def once() -> Played:
        semaphore.begin(0)
        yield from semaphore.start()
        yield [semaphore.up, semaphore.down]
        yield Tick()
        return (yield from semaphore.problem(0, 1, UNIT))

    return once


def units_of_threads(play: Play) -> Once:
    """Three threads take twice and give once: of three units none is left."""
    semaphore = Semaphore(play)

    def take_and_give(_argument: int) -> Played:
        yield [semaphore.down, semaphore.up, semaphore.down]
        semaphore.arrived += 1

    def once() -> Played:
        semaphore.begin(3)
        yield from play.begin_all(*[(take_and_give, 0)] * 3)
        return (yield from semaphore.problem(3, 0, UNIT))

    return once


def event_in_interrupt(play: Play) -> Once:
    """As the head of wait.c has it: join, look, wait, leave; a timer has it happen."""
    waiters, timer = Waiters(play, 1), timer_of(play)
    queue, waiter = waiters.queue, waiters[0]
    happened = arrived = False

    def happen(_timer: int) -> Played:
        nonlocal happened
        happened = True
        yield "wait_wake", queue

    def await_event(_argument: int) -> Played:
        nonlocal arrived
        yield "wait_join", queue, waiter
        while not happened:
            yield "wait_any", waiter, 1, *FOREVER
        yield "wait_leave", waiter
        arrived = True

    def once() -> Played:
        nonlocal happened, arrived
        happened = arrived = False
        play.guest.put_data(waiter, bytes(waiters.size))
        yield from start(play, timer, happen)
        yield from play.begin(await_event)
        yield TURNS
        yield Tick()
        yield TURNS
        if not arrived:
            return LOST
        return "a waiter is left in the queue" if play.word(queue) else ""

    return once


def queues_of_threads(play: Play) -> Once:
    """Three threads join a queue, wait for each other, and leave it."""
    waiters = Waiters(play, 3)
    joined, left, empty = 0, 0, False

    def join_and_leave(number: int) -> Played:
        nonlocal joined, left, empty
        yield "wait_join", waiters.queue, waiters[number]
        joined += 1
        while joined < 3:
            yield "yield"
        empty |= left == 0 and not play.word(waiters.queue)
        yield "wait_leave", waiters[number]
        left += 1

    def once() -> Played:
        nonlocal joined, left, empty
        joined, left, empty = 0, 0, False
        play.guest.put_data(waiters[0], bytes(3 * waiters.size))
        yield from play.begin_all(*((join_and_leave, number) for number in range(3)))
        yield TURNS
        is_right = left == 3 and not play.word(waiters.queue) and not empty
        return "" if is_right else "the queue's list is broken"

    return once


def timers_of_threads(play: Play) -> Once:
    """Three threads start and cancel timers; a further one is due: it rings once, and no other."""
    due, rung = timer_of(play), 0
    own = [(timer_of(play), timer_of(play)) for _ in range(3)]

    def ring(_timer: int) -> Played:
        nonlocal rung
        rung += 1
        yield from ()

    def start_and_cancel(number: int) -> Played:
        first, second = own[number]
        later, sooner, rings = halves(FAR_NS // 3), halves(FAR_NS // 4), play.function(ring)
        yield [
            ("timer_start", first, *later, rings),
            ("timer_start", second, *sooner, rings),
            ("timer_cancel", first),
            ("timer_cancel", second),
        ]

    def once() -> Played:
        nonlocal rung
        rung, before = 0, play.word("task_count")
        yield from start(play, due, ring)
        yield from play.begin_all(*((start_and_cancel, number) for number in range(3)))
        yield TURNS
        yield Tick()
        now = yield from play.time()
        was_enabled = play.interrupts(False)  # as the tick calls it
        yield "timers_expire", *halves(now + FAR_NS)
        play.interrupts(was_enabled)
        is_right = rung == 1 and play.word("task_count") == before
        return "" if is_right else "the list of timers is broken"

    return once


def short_sleep(play: Play) -> Once:
    """A sleep of a millisecond, by the PM timer."""
    slept = -1

    def sleep_shortly(_argument: int) -> Played:
        nonlocal slept
        start = play.clock()
        yield "msleep", 1
        slept = play.clock() - start & PM_TIMER_MASK

    def once() -> Played:
        nonlocal slept
        slept = -1
        play.preempt_disable()  # a tick leaves the change to yield
        yield from play.begin(sleep_shortly)
        for _ in range(MOST_TICKS):
            if slept >= 0:
                break
            yield "yield"
            yield Busy(BETWEEN_TICKS)
            yield Tick()
        yield "preempt_enable"
        yield TURNS
        if slept < 0:
            return "msleep(1) does not end"
        return "msleep(1) ends too early" if slept < 0.98 * MILLISECOND else ""

    return once


RACES: dict[str, Scenario] = {
    each.__name__: each
    for each in (
        *(wake_up_in_interrupt, wake_up_by_thread, units_in_interrupt, units_of_threads),
        *(event_in_interrupt, queues_of_threads, timers_of_threads, short_sleep),
    )
}
