"""Exercise 4.3, hidden: the order of timers, lost wake-ups, and what is left over."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.lesson4.layout import layout
from tests.lesson4.played import played
from tests.lesson4.races import search
from tests.lesson4.sleep_races import RACES
from tests.lesson4.support import signed
from tests.lesson4.waiting import ETIMEDOUT, QUEUE, SECOND, SEMAPHORE, TICK_US, halves, say
from tests.support.met import Met

CASES = (
    *("two due at once", "equal deadlines", "one that is cancelled", "one that is not due yet"),
    *("a time in which nothing is due", "a deadline below the base", "a deadline above the base"),
)


def expected_timers(
    offsets: list[int], cancelled: list[int], times: list[int], met: Callable[[str], None]
) -> list[list[int]]:
    """Which timers are called at which time: by deadline, equals in the order of their start."""
    left = [number for number in range(len(offsets)) if number not in cancelled]
    called = []
    for now in times:
        due = sorted((n for n in left if offsets[n] <= now), key=lambda n: (offsets[n], n))
        called.append(due)
        left = [number for number in left if number not in due]
        if len(due) > 1:
            met("two due at once")
        if left:
            met("one that is not due yet")
        if not due:
            met("a time in which nothing is due")
        if len({offsets[each] for each in due}) < len(due):
            met("equal deadlines")
    if cancelled:
        met("one that is cancelled")
    for each in offsets:
        met(f"a deadline {'below' if each < 0 else 'above'} the base")
    return called


def check_timers(
    lab,
    base: int,
    offsets: list[int],
    cancelled: list[int],
    times: list[int],
    met: Callable[[str], None] = lambda _: None,
) -> None:
    """Starts timers, cancels some, lets time pass; compares who was called when."""
    members = layout("timer", "in_order")
    called: list[list[int]] = []
    running: list[int] = []
    with played(lab) as play:
        timers = [play.zeroed(members["size"]) for _ in offsets]

        def expire(timer: int):
            called[-1].append(timers.index(timer) if timer in timers else timer)
            running.append(play.word(timer))
            yield from ()

        def main():
            play.quiet()
            play.interrupts(False)
            place = play.function(expire)
            starts = zip(timers, offsets, strict=True)
            yield [("timer_start", each, *halves(base + off), place) for each, off in starts]
            cancels = [("timer_cancel", timers[each]) for each in cancelled for _ in range(2)]
            if cancels:
                yield cancels
            for now in times:
                called.append([])
                yield "timers_expire", *halves(base + now)

        play.run(main())
    assert called == expected_timers(offsets, cancelled, times, met)
    assert not any(running), "a timer that is called counts as running still"


@pytest.mark.exercise("4.3", points=2, gate=True, once=True)
def test_order_of_timers(lab):
    """Many timers: they expire in the order of their deadlines, equal ones in the order of their
    start. Cancelled ones are not called."""
    seeded, met = random.Random(lab.seed), Met(*CASES)
    offsets = [seeded.randrange(0, 8) * 100 for _ in range(12)] + [0, 0]
    seeded.shuffle(offsets)
    cancelled = seeded.sample([n for n in range(14) if offsets[n]], 3)
    check_timers(lab, 1 << 40, offsets, cancelled, [0, 99, 350, 350, 2000], met)
    offsets = [2 * SECOND, -2 * SECOND]  # the difference has more than 31 bits
    offsets = seeded.sample(2 * offsets, 4)
    check_timers(lab, 1 << 40, offsets, [], [-2 * SECOND, 0, 2 * SECOND], met)
    met.require()


@pytest.mark.exercise("4.3", points=2, once=True)
def test_timers_around_the_wrap(lab):
    """Timers around the clock's wrap and around 2^32: they expire in order."""
    seeded = random.Random(lab.seed)
    offsets = [seeded.randrange(-900, 900) for _ in range(12)]
    for base in (1 << 64, 1 << 32, 1 << 63):
        check_timers(lab, base, offsets, [], [-500, -1, 0, 600, 1000])


@pytest.mark.exercise("4.3", points=1, once=True)
def test_timers_in_timers(lab):
    """A timer's function that starts a timer for a time in the past, cancels another and restarts
    its own: the first one expires at the next tick."""
    members = layout("timer", "in_order")
    called: list[int] = []
    with played(lab) as play:
        timers = [play.zeroed(members["size"]) for _ in range(3)]

        def expire(timer: int):
            called.append(timers.index(timer))
            if len(called) == 1:
                yield "timer_start", timers[2], 90, 0, place
                yield "timer_cancel", timers[1]
                yield "timer_start", timer, 101, 0, place

        def main():
            play.quiet()
            play.interrupts(False)
            yield [("timer_start", timers[n], (50, 60)[n], 0, place) for n in range(2)]
            yield "timers_expire", 100, 0
            assert called == [0]
            yield "timers_expire", 101, 0
            assert called == [0, 2, 0]
            assert not play.word(timers[0]) | play.word(timers[1]), "a timer still runs"

        place = play.function(expire)
        play.run(main())


# ---- sleep --------------------------------------------------------------------------------------


@pytest.mark.exercise("4.3", points=2)
def test_alarms(lab):
    """Threads that sleep for many lengths, 0 among them: each wakes in order, never early, at most
    one tick late."""
    seeded = random.Random(lab.seed)
    sleeps = [0, *(seeded.randrange(1, 30) * 10 + 5 for _ in range(9))]
    seeded.shuffle(sleeps)
    woken: list[tuple[float, int]] = []
    with played(lab) as play:
        done = play.zeroed(SEMAPHORE)
        origin = play.clock()

        def sleep_and_say(number: int):
            start, began = play.clock(), play.ticks_since(origin)
            yield "msleep", sleeps[number]
            late = 1000 * (10 * play.ticks_since(start) - sleeps[number])
            woken.append((began + sleeps[number] / 10, sleeps[number]))
            check_late(f"a sleep of {sleeps[number]} ms", late)
            yield "semaphore_up", done

        def main():
            play.fine_clock()
            play.preempt_disable()
            for number in range(len(sleeps)):
                yield from play.begin(sleep_and_say, number)
            yield [("semaphore_down", done)] * len(sleeps)

        play.run(main())
    assert woken == sorted(woken), f"sleeps ended in this order: {[each for _, each in woken]}"


def check_late(what: str, microseconds: float) -> None:
    """It is late by a tick at most, and not early. The clock counts in 0.3 us."""
    assert microseconds >= -1, f"{what} ended {-microseconds:.0f} us too early"
    assert microseconds <= 1.2 * TICK_US, f"{what} ended {microseconds:.0f} us late"


@pytest.mark.exercise("4.3", points=1, once=True)
def test_sleeps_of_no_time(lab):
    """msleep(0), and deadlines that have passed: no switch, and nothing left in the queue."""
    with played(lab) as play:
        others: list[int] = []
        queue = play.zeroed(QUEUE)

        def main():
            play.quiet()
            yield from play.begin(say(others), 1)
            yield "msleep", 0
            assert not others, "msleep(0) switches to another task"
            play.interrupts(False)
            now = yield from play.time()
            calls = [("wait_sleep_until", queue, *halves(each)) for each in (now - 1, 0)]
            found = yield calls
            assert [signed(each) for each in found] == [-ETIMEDOUT, -ETIMEDOUT]
            assert not others, "a wait whose deadline has passed switches to another task"
            assert not play.word(queue), "a waiter is left in the queue"

        play.run(main())


@pytest.mark.exercise("4.3", points=1, once=True)
def test_long_sleeps(lab):
    """Sleeps for minutes and for a month: the deadline is right."""
    for milliseconds in (4295, 86_400_000, 0xFFFFFFFF):

        def main(milliseconds: int = milliseconds):
            yield "msleep", milliseconds

        with played(lab) as play:
            assert play.reaches(main(), "timer_start"), "msleep starts no timer"
            guest = play.guest
            low, high = guest.read_words(guest.registers()["esp"] + 8, 2)
            wanted = guest.call64("time_ns") + milliseconds * 1_000_000
        late = wanted - (low | high << 32)
        assert abs(late) < 30_000_000, f"msleep({milliseconds}) would end {late / 1e9:.1f} s early"


@pytest.mark.exercise("4.3", points=1)
def test_sleep_lasts_to_its_end(lab):
    """msleep: it lasts to its end, whatever wakes the task and whatever signal is pending."""
    late: list[float] = []
    with played(lab) as play:
        done = play.zeroed(SEMAPHORE)

        def sleep_stubbornly(_argument: int):
            start = play.clock()
            yield "msleep", 80
            late.append(TICK_US * (play.ticks_since(start) - 8))
            yield "semaphore_up", done

        def main():
            play.fine_clock()
            task = yield from play.begin(sleep_stubbornly)
            yield "msleep", 20
            yield "sched_wake", task
            play.set_byte(task, "has_signal", 1)
            yield "semaphore_down", done

        play.run(main())
    check_late("msleep(80), of a task that was woken meanwhile,", late[0])


@pytest.mark.exercise("4.3", points=4, once=True)
@pytest.mark.parametrize("race", RACES)
def test_tick_anywhere(lab, race):
    """A tick before each instruction of the exercise in turn: threads that wait for each other and
    for ticks all wake."""
    assert search(lab, "4.3", RACES[race]), "interrupts are never on"
