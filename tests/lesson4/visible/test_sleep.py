"""Exercise 4.3: sleeping, and being woken.

Not looked at here, but by the graders: times that wrap, and a semaphore whose count is changed with
interrupts enabled (an interrupt at the right instruction shows it); several queues, and who is
woken first.
"""

from __future__ import annotations

import pytest

from tests.lesson4.layout import layout
from tests.lesson4.played import Play, played
from tests.lesson4.waiting import (
    ETIMEDOUT,
    FOREVER,
    QUEUE,
    SEMAPHORE,
    TICK_US,
    Waiters,
    down_and_say,
    halves,
)
from tests.support.told import Usual, expect, fail, require, told

TICK_NS = 1000 * TICK_US
TIMERS_AT_MOST = 16
TIMED_OUT = 2**32 - ETIMEDOUT  # as EAX has it
STACKS = 0xF8000000  # mm/kernel_stack.c: all above are stacks


@pytest.mark.exercise("4.3", points=1, gate=True)
def test_msleep(lab):
    """A sleep of 50 ms takes that long, and not much longer."""
    usually = (
        Usual(
            "too early",
            "the deadline is not time_ns() plus the milliseconds as nanoseconds, or msleep does "
            "not sleep again after a wake-up that came early",
        ),
        Usual("too late", "timers_expire leaves a timer in the list although it is due"),
        "no timer wakes the task: sleep() starts one, and tick() calls timers_expire",
    )
    slept: list[float] = []
    with told(usually, "make hint EX=4.3"), played(lab) as play:

        def main():
            play.fine_clock()
            for _ in range(2):
                start = play.clock()
                yield "msleep", 50
                slept.append(TICK_US * play.ticks_since(start))

        play.run(main())
        microseconds = round(slept[1])
        seen = f"msleep(50): expected 50 to 80 ms, seen {microseconds / 1000:g} ms"
        require(microseconds >= 49_990, f"{seen}: too early")
        require(microseconds < 80_000, f"{seen}: too late")


@pytest.mark.exercise("4.3", points=1, gate=True)
def test_semaphore(lab):
    """Two threads hand over to each other, in turn; and two wait for the same semaphore."""
    usually = (
        Usual(
            "every task waits",
            "semaphore_up does not call wait_wake_one, or that one marks the waiter and does not "
            "call sched_wake",
        ),
        Usual(
            "of two threads", "the count goes below 0: it is looked at before it is counted down"
        ),
        "semaphore_down does not look again after its sleep",
    )
    then = "make replay TEST=test_semaphore, then: continue, Ctrl-C, waiting"
    with told(usually, then), played(lab) as play:
        found, passed = hand_over(play)
        expect(
            "thread 9 is to run after each of 0, 1 and 2; they ran as", found, [0, 9, 1, 9, 2, 9]
        )
        what = "how many of two threads semaphore_down lets go on, with no unit there"
        expect(what, len(passed), 0)


def hand_over(play: Play) -> tuple[list[int], list[int]]:
    """Who ran, one after the other; and which of two threads got a unit that is not there."""
    found: list[int] = []
    passed: list[int] = []
    semaphore, done = play.zeroed(SEMAPHORE), play.zeroed(SEMAPHORE)

    def pass_on(number: int):
        for _ in range(3):
            yield "semaphore_down", semaphore
            found.append(number)
            yield "semaphore_up", done

    def main():
        play.fine_clock()
        yield from play.begin(pass_on, 9)
        for number in range(3):
            found.append(number)
            yield [("semaphore_up", semaphore), ("semaphore_down", done)]
        yield from play.await_ends()
        for number in range(2):
            yield from play.begin(down_and_say(semaphore, passed), number)
        yield [("yield",)] * 4

    play.run(main())
    return found, passed


@pytest.mark.exercise("4.3", points=1)
def test_woken_before_the_sleep(lab):
    """A wake-up that comes after wait_join and before wait_any is not lost, for any waiter of the
    queue."""
    usually = (
        Usual("second in the queue", "wait_wake wakes each waiter, not the first one alone"),
        "wait_any sleeps without looking at is_woken of its waiters: a lost wake-up",
    )
    with told(usually, "make hint EX=4.3"), played(lab) as play:
        waiters = Waiters(play, 2)
        slept: list[float] = []

        def main():
            play.fine_clock()
            play.interrupts(False)
            deadline, start = (yield from play.time()) + 20 * TICK_NS, play.clock()
            yield [
                ("wait_join", waiters.queue, waiters[0]),
                ("wait_join", waiters.queue, waiters[1]),
                ("wait_wake", waiters.queue),
                ("wait_any", waiters[0], 1, *halves(deadline)),
                ("wait_leave", waiters[0]),
                ("wait_leave", waiters[1]),
            ]
            slept.append(TICK_US * play.ticks_since(start))

        play.run(main())
        microseconds = round(slept[0])
        if microseconds > TICK_US:
            fail(
                "wait_any of a task that was woken after wait_join: expected no sleep, seen "
                f"{microseconds / 1000:g} ms, up to its deadline"
            )
        marked = waiters.is_woken(1)
        expect("is_woken of the waiter that is second in the queue, after wait_wake", marked, 1)


@pytest.mark.exercise("4.3", points=1)
def test_woken_before_the_deadline(lab):
    """A timer is on the stack of the task that sleeps: it is cancelled when the sleep is over."""
    usually = (
        Usual("WAIT_FOREVER", "wait_any takes WAIT_FOREVER for a time, which has passed"),
        "sleep() does not call timer_cancel after sched_sleep",
    )
    with told(usually, "make hint EX=4.3"), played(lab) as play:
        queue = play.zeroed(QUEUE)
        results: list[int] = []

        def wake(_argument: int):
            yield "wait_wake", queue

        def main():
            play.fine_clock()
            for ticks in (None, 50):
                yield from play.begin(wake)
                play.interrupts(False)
                deadline = FOREVER
                if ticks:
                    deadline = halves((yield from play.time()) + ticks * TICK_NS)
                results.append((yield "wait_sleep_until", queue, *deadline))
                play.interrupts(True)

        play.run(main())
        result = results[0]
        seen = "-ETIMEDOUT" if result == TIMED_OUT else result
        expect("wait_sleep_until(&queue, WAIT_FOREVER) of a task that is woken later", seen, 0)
        left = [each for each in running_timers(play) if each >= STACKS]
        if left:
            fail(
                "timers of a task that was woken before its deadline: expected none, seen one that "
                "still runs, on a stack that the task has left",
                "the list `timers` in kernel/task/timer.c",
            )


def running_timers(play: Play) -> list[int]:
    """The addresses of the timers in the kernel's list; a list that is damaged ends somewhere."""
    head = play.guest.address("timers")
    found: list[int] = []
    at = play.guest.read_word(head)
    while at != head and len(found) < TIMERS_AT_MOST:
        found.append(at)
        at = play.guest.read_word(at)
    return found


@pytest.mark.exercise("4.3", points=1)
def test_timer_in_the_past(lab):
    """A timer that starts itself again for a time that has passed is the next tick's; of two timers
    the one with the earlier deadline is the first, whichever was started first; and two that are
    due are called at one tick."""
    usually = (
        Usual("both are due", "timers_expire ends after one timer: a tick calls all that are due"),
        Usual(
            "which of two timers", "timer_start does not keep the list in the order of deadlines"
        ),
        "timers_expire goes on until no timer is due: with this one it would never end",
    )
    with told(usually, "read timer_start in kernel/task/timer.h"):
        with played(lab) as play:
            first, both, due, together = timers_that_ring(play)
        expect(
            "calls of a timer that always starts itself for a time in the past, at one tick",
            first,
            1,
        )
        expect("calls of it after two ticks", both, 2)
        what = "which of two timers is called when the earlier one, started last, is due"
        expect(what, due, "the earlier")
        expect("calls of two timers at a tick at which both are due", together, 2)


def timers_that_ring(play: Play) -> tuple[int, int, str, int]:
    """How often a timer is called that starts itself again for a time that has passed: at a tick,
    and at two. Which of two others are called when the one is due that was started last. And how
    many, when both are due."""
    again, later, earlier = (play.zeroed(layout("timer", "in_order")["size"]) for _ in range(3))
    calls: list[int] = []
    rung: list[int] = []
    seen: list[int] = []

    def once_more(timer: int):
        calls.append(timer)
        if len(calls) < 100:
            yield "timer_start", timer, 60, 0, play.function(once_more)

    def ring(timer: int):
        rung.append(timer)
        yield from ()

    def main():
        play.quiet()
        play.interrupts(False)
        yield "timer_start", again, 50, 0, play.function(once_more)
        for now in (100, 200):
            yield "timers_expire", now, 0
            seen.append(len(calls))
        yield "timer_cancel", again
        yield "timer_start", later, 400, 0, play.function(ring)
        yield "timer_start", earlier, 300, 0, play.function(ring)
        yield "timers_expire", 350, 0
        seen.append(len(rung))
        if rung == [earlier]:
            yield "timer_start", earlier, 390, 0, play.function(ring)
        yield "timers_expire", 450, 0

    play.run(main())
    names = {earlier: "the earlier", later: "the later"}
    which = " and ".join(names.get(each, "a third") for each in rung[: seen[2]])
    return seen[0], seen[1], which or "neither", len(rung) - seen[2]
