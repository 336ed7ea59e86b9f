"""Exercise 4.3: sleeping, and being woken.

Not looked at here, but by the graders: times that wrap, and a semaphore whose count is changed with
interrupts enabled (an interrupt at the right instruction shows it); several queues, and who is
woken first.
"""

from __future__ import annotations

import pytest

from tests.lesson4.support import Threads, threads
from tests.support.told import Usual, expect, fail, require, told

SLEEP = "tests/lesson4/threads/sleep.c"
TICK = 10_000  # microseconds
TIMERS_AT_MOST = 16
TIMED_OUT = 2**32 - 110  # -ETIMEDOUT, as the guest answers it
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
    with told(usually, "make hint EX=4.3"), threads(lab, SLEEP, "a_short_sleep", 50) as run:
        (microseconds,) = run.answers()
        seen = f"msleep(50): expected 50 to 80 ms, seen {microseconds / 1000:g} ms"
        require(microseconds >= 50_000, f"{seen}: too early")
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
    with told(usually, then), threads(lab, SLEEP, "hand_over") as run:
        *found, passed = run.answers()
        expect(
            "thread 9 is to run after each of 0, 1 and 2; they ran as", found, [0, 9, 1, 9, 2, 9]
        )
        expect("how many of two threads semaphore_down lets go on, with no unit there", passed, 0)


@pytest.mark.exercise("4.3", points=1)
def test_woken_before_the_sleep(lab):
    """A wake-up that comes after wait_join and before wait_any is not lost."""
    usually = "wait_any sleeps without looking at is_woken of its waiters: a lost wake-up"
    with told(usually, "make hint EX=4.3"), threads(lab, SLEEP, "woken_before_the_sleep") as run:
        (microseconds,) = run.answers()
        if microseconds > TICK:
            fail(
                "wait_any of a task that was woken after wait_join: expected no sleep, seen "
                f"{microseconds / 1000:g} ms, up to its deadline"
            )


@pytest.mark.exercise("4.3", points=1)
def test_woken_before_the_deadline(lab):
    """A timer is on the stack of the task that sleeps: it is cancelled when the sleep is over."""
    usually = (
        Usual("WAIT_FOREVER", "wait_any takes WAIT_FOREVER for a time, which has passed"),
        "sleep() does not call timer_cancel after sched_sleep",
    )
    with told(usually, "make hint EX=4.3"), threads(lab, SLEEP, "woken_early") as run:
        (result,) = run.answers()
        seen = "-ETIMEDOUT" if result == TIMED_OUT else result
        expect("wait_sleep_until(&queue, WAIT_FOREVER) of a task that is woken later", seen, 0)
        left = [each for each in running_timers(run) if each >= STACKS]
        if left:
            fail(
                "timers of a task that was woken before its deadline: expected none, seen one that "
                "still runs, on a stack that the task has left",
                "the list `timers` in kernel/task/timer.c",
            )


def running_timers(run: Threads) -> list[int]:
    """The addresses of the timers in the kernel's list; a list that is damaged ends somewhere."""
    head = run.guest.address("timers")
    found: list[int] = []
    at = run.guest.read_word(head)
    while at != head and len(found) < TIMERS_AT_MOST:
        found.append(at)
        at = run.guest.read_word(at)
    return found


@pytest.mark.exercise("4.3", points=1)
def test_timer_in_the_past(lab):
    """A timer that starts itself again for a time that has passed is the next tick's; and of two
    timers the one with the earlier deadline is the first, whichever was started first."""
    usually = (
        Usual("two timers", "timer_start does not keep the list in the order of deadlines"),
        "timers_expire goes on until no timer is due: with this one it would never end",
    )
    with told(usually, "read timer_start in kernel/task/timer.h"):
        with threads(lab, SLEEP, "timer_in_the_past") as run:
            first, both, rung = run.answers()
        expect(
            "calls of a timer that always starts itself for a time in the past, at one tick",
            first,
            1,
        )
        expect("calls of it after two ticks", both, 2)
        due = {0: "neither", 1: "the earlier", 2: "the later"}.get(rung, "both")
        what = "which of two timers is called when the earlier one, started last, is due"
        expect(what, due, "the earlier")
