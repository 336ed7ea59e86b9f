"""Exercise 4.3, hidden: the order of timers, lost wake-ups, and what is left behind."""

from __future__ import annotations

import random

import pytest

from tests.lesson4.search import search
from tests.lesson4.support import MASK, signed, threads

SLEEP = "tests/lesson4/hidden/sleep.c"
WAKE = "tests/lesson4/hidden/wake.c"
ERESTART, ETIMEDOUT = 512, 110
END = 999
TICK_US, SECOND = 10_000, 1_000_000_000


def groups(words: list[int]) -> list[list[int]]:
    """The answers between the marks."""
    found: list[list[int]] = [[]]
    for word in words:
        if word == END:
            found.append([])
        else:
            found[-1].append(word)
    return found


def expected_timers(offsets: list[int], cancelled: list[int], times: list[int]) -> list[list[int]]:
    """Which timers are called at which time: by deadline, equals in the order of their start."""
    left = [number for number in range(len(offsets)) if number not in cancelled]
    called = []
    for now in times:
        due = sorted((n for n in left if offsets[n] <= now), key=lambda n: (offsets[n], n))
        called.append(due)
        left = [number for number in left if number not in due]
    return called


def check_timers(lab, base: int, offsets: list[int], cancelled: list[int], times: list[int]):
    """Starts timers, cancels some, lets time pass; compares who was called when."""
    words = [base & MASK, base >> 32, len(offsets), *offsets, len(cancelled), *cancelled]
    with threads(lab, SLEEP, "order_of_timers", *words, len(times), *times) as run:
        found = groups(run.answers())[:-1]
    called = [part[0::2] for part in found]
    running = [word for part in found for word in part[1::2]]
    assert called == expected_timers(offsets, cancelled, times)
    assert not any(running), "a timer that is called counts as running still"


@pytest.mark.exercise("4.3", points=2, gate=True)
def test_alarms(lab):
    """Threads with sleeps of many lengths, 0 among them: each wakes in its order, not too early,
    and at most a tick late."""
    seeded = random.Random(lab.seed)
    sleeps = [0, *(seeded.randrange(1, 30) * 10 + 5 for _ in range(9))]
    seeded.shuffle(sleeps)
    with threads(lab, SLEEP, "alarms", len(sleeps), *sleeps) as run:
        found = run.answers()
    woken = list(zip(found[::2], found[1::2], strict=True))
    assert [sleeps[number] for number, _ in woken] == sorted(sleeps)
    for number, microseconds in woken:
        late = microseconds - 1000 * sleeps[number]
        assert late >= 0, f"a sleep of {sleeps[number]} ms ended {-late} us too early"
        assert late <= 1.2 * TICK_US, f"a sleep of {sleeps[number]} ms ended {late} us late"


@pytest.mark.exercise("4.3", points=2, gate=True)
def test_order_of_timers(lab):
    """Many timers, several due at a time, equal deadlines in the order of their start; cancelled
    ones are not called. Some deadlines are seconds apart."""
    seeded = random.Random(lab.seed)
    offsets = [seeded.randrange(0, 8) * 100 for _ in range(14)]
    cancelled = seeded.sample(range(14), 3)
    check_timers(lab, 1 << 40, offsets, cancelled, [0, 99, 350, 350, 2000])
    offsets = [2 * SECOND, -2 * SECOND]  # the difference has more than 31 bits
    check_timers(lab, 1 << 40, seeded.sample(2 * offsets, 4), [], [-2 * SECOND, 0, 2 * SECOND])


@pytest.mark.exercise("4.3", points=2)
def test_timers_around_the_wrap(lab):
    """The clock wraps around between deadlines; it passes 2^32 between others."""
    seeded = random.Random(lab.seed)
    offsets = [seeded.randrange(-900, 900) for _ in range(12)]
    for base in (1 << 64, 1 << 32, 1 << 63):
        check_timers(lab, base % (1 << 64), offsets, [], [-500, -1, 0, 600, 1000])


@pytest.mark.exercise("4.3", points=1)
def test_timers_in_timers(lab):
    """A timer that is called starts another for a time in the past, which is the next tick's,
    cancels a third, and starts itself again."""
    with threads(lab, SLEEP, "timers_in_timers") as run:
        assert groups(run.answers()) == [[0], [2, 0], [0]]


@pytest.mark.exercise("4.3", points=1)
def test_nothing_to_sleep(lab):
    """msleep(0), and deadlines that have passed: no change of tasks, and nobody in the queue."""
    with threads(lab, SLEEP, "no_sleep") as run:
        changes, first, second, changes_after, queued = run.answers()
    assert changes == 0, "msleep(0) gives the processor away"
    assert (signed(first), signed(second)) == (-ETIMEDOUT, -ETIMEDOUT)
    assert (changes_after, queued) == (0, 0)


@pytest.mark.exercise("4.3", points=1)
def test_long_sleeps(lab):
    """The deadline of a sleep for minutes, or for a month."""
    for milliseconds in (4295, 86_400_000, 0xFFFFFFFF):
        with threads(lab, SLEEP, "one_sleep", milliseconds) as run:
            guest = run.guest
            guest.run_to("timer_start")
            low, high = guest.read_words(guest.registers()["esp"] + 8, 2)
            wanted = guest.call64("time_ns") + milliseconds * 1_000_000
        late = wanted - (low | high << 32)
        assert abs(late) < 30_000_000, f"msleep({milliseconds}) would end {late / 1e9:.1f} s early"


@pytest.mark.exercise("4.3", points=2)
def test_wake_before_sleep(lab):
    """A wake-up between joining and sleeping is not lost, nor a semaphore's unit."""
    with threads(lab, SLEEP, "woken_before") as run:
        found = run.answers()
    assert found == [0, 0, 0, 0, 0, 0], "a wake-up that came before the sleep was lost"


@pytest.mark.exercise("4.3", points=1)
def test_two_queues(lab):
    """A task waits for two queues, and is woken by the second one, in its sleep or before; leaving
    twice does no harm."""
    with threads(lab, SLEEP, "two_queues") as run:
        *found, early = run.answers()
    assert found == [0, 0, 1, 0]
    assert early == 0, "the second queue has woken it before the sleep, and that is forgotten"


@pytest.mark.exercise("4.3", points=1)
def test_every_waiter(lab):
    """wait_wake wakes each waiter of its queue, a function too; wait_any looks at all."""
    with threads(lab, WAKE, "every_waiter") as run:
        calls, *marked, result = run.answers()
    assert calls == 1, f"wait_wake has called the function of a waiter {calls} times"
    assert marked == [1, 1, 1], f"wait_wake of three waiters has marked {marked}"
    assert result == 0, "the second of three queues has woken it before the sleep"


@pytest.mark.exercise("4.3", points=2, gate=True)
def test_wake_one_and_all(lab):
    """wait_wake_one wakes the one that has waited longest; two in a row wake two; wait_wake wakes
    all that are left, the more so behind one that is woken already."""
    with threads(lab, SLEEP, "one_by_one") as run:
        found = groups(run.answers())
    assert found[:4] == [[], [0], [1, 2], [3, 4]]
    assert found[4:] == [[], [5, 6, 7], []], "behind wait_wake_one wait_wake does not wake all"


@pytest.mark.exercise("4.3", points=1)
def test_most_urgent_is_woken(lab):
    """Of those who wait, the most urgent one; of equals, the first."""
    nice = [10, 0, -20, 0, -10]
    with threads(lab, SLEEP, "most_urgent_first", *nice) as run:
        woken = [word for part in groups(run.answers()) for word in part]
    assert [nice[number] for number in woken] == sorted(nice)
    assert woken == [2, 4, 1, 3, 0]


@pytest.mark.exercise("4.3", points=2)
def test_wake_from_an_interrupt(lab):
    """A timer wakes a thread: tasks are not changed, and interrupts stay disabled, in its call."""
    with threads(lab, SLEEP, "from_an_interrupt") as run:
        assert run.answers() == [0, 0, 7]


@pytest.mark.exercise("4.3", points=2)
def test_one_leaves_the_queue(lab):
    """The second of three gives up at its deadline: -ETIMEDOUT, and the other two keep their
    places."""
    with threads(lab, SLEEP, "one_leaves") as run:
        before, after = groups(run.answers())
    assert [signed(word) for word in before] in ([0, -ETIMEDOUT, 2], [-ETIMEDOUT, -ETIMEDOUT, 2])
    assert after == [1, 3, 0]


@pytest.mark.exercise("4.3", points=2)
def test_no_timer_is_left(lab):
    """A sleeper that is woken early takes its timer with it: the timer lies on its stack."""
    with threads(lab, SLEEP, "early_wake") as run:
        (microseconds,) = run.answers()
        after = run.guest.call("timers_expire", MASK, MASK >> 1, stop_at=("sched_wake",))
    assert microseconds < 10 * TICK_US
    assert after is not None, "a timer of a sleep that is over still runs"


@pytest.mark.exercise("4.3", points=1)
def test_stubborn_sleeper(lab):
    """msleep lasts to its end, whoever wakes the task, and whatever signal waits."""
    with threads(lab, SLEEP, "stubborn") as run:
        (microseconds,) = run.answers()
    assert 80_000 <= microseconds <= 80_000 + 1.2 * TICK_US, f"msleep(80) took {microseconds} us"


@pytest.mark.exercise("4.3", points=2)
def test_producers_and_consumers(lab):
    """Under pre-emption no unit of a semaphore is lost, and none is taken twice."""
    threads_of_each, units = 4, 2000 if lab.mode == "icount" else 500
    with threads(lab, SLEEP, "many_hands", threads_of_each, units) as run:
        found = run.answers()
    assert found == [threads_of_each * units, 0, 0]


@pytest.mark.exercise("4.3", points=1)
def test_wrong_wake(lab):
    """Who is woken although there is no unit sleeps again."""
    with threads(lab, SLEEP, "wrong_wake") as run:
        assert groups(run.answers()) == [[], [], [0, 5], [0]]


@pytest.mark.exercise("4.3", points=1)
def test_units_at_once(lab):
    """Two units that come before either of two waiting tasks runs wake both."""
    with threads(lab, SLEEP, "units_at_once") as run:
        assert groups(run.answers()) == [[], [5, 6], [0]]


@pytest.mark.exercise("4.3", points=1)
def test_signals(lab):
    """A signal that waits ends the wait before it begins; but what has happened has happened."""
    with threads(lab, SLEEP, "signals") as run:
        found = [signed(word) for word in run.answers()]
    assert found == [-ERESTART, -ERESTART, 0, 0]


@pytest.mark.exercise("4.3", points=1)
def test_interrupt_flag(lab):
    """Each function leaves the interrupt flag as it was."""
    with threads(lab, SLEEP, "flags") as run:
        found = run.answers()
    half = len(found) // 2
    assert half > 0, "nothing was tried"
    assert not any(found[:half]), "a function switches interrupts enabled"
    assert all(found[half:]), "a function leaves interrupts disabled"


@pytest.mark.exercise("4.3", points=2)
def test_sleepers_do_not_compete(lab):
    """Who sleeps is not ready, and does not get the processor only to look again. A signal wakes
    who waits for an event, and nobody else."""
    with threads(lab, WAKE, "out_of_the_queue") as run:
        found = run.answers()
    ways = ("semaphore_down", "wait_event", "msleep")
    parts = zip(ways, found[0::3], found[1::3], found[2::3], strict=True)
    for way, is_ready, turns, hears_signals in parts:
        assert not is_ready, f"a task in {way} still competes for the processor"
        assert turns == 0, f"a task in {way} has got the processor {turns} times meanwhile"
        life = ("TASK_BLOCKED", "TASK_SLEEPING")[way == "wait_event"]
        assert hears_signals == (way == "wait_event"), f"a task in {way} sleeps not as {life}"


@pytest.mark.exercise("4.3", points=2)
def test_woken_in_a_hurry(lab):
    """Who wakes a more urgent one, and may be pre-empted, gives the processor away at once."""
    with threads(lab, WAKE, "hurry_at_once") as run:
        found = run.answers()
    for index, way in enumerate(("semaphore_up", "wait_wake", "wait_wake_one")):
        late = f"behind {way} the one that was woken does not run at once"
        assert found.index(index) < found.index(10 + index), late


LOST = "the wake-up is lost: a thread sleeps for ever"
RACES = {
    "wake_up_in_interrupt": {1: LOST, 2: "the semaphore has another count than it should"},
    "wake_up_by_thread": {1: LOST, 2: "the semaphore has another count than it should"},
    "units_in_interrupt": {2: "a unit of the semaphore is lost, or made from nothing"},
    "units_of_threads": {1: LOST, 2: "a unit of the semaphore is lost, or made from nothing"},
    "event_in_interrupt": {1: LOST, 2: "a waiter is left in the queue"},
    "queues_of_threads": {2: "the queue's list is broken"},
    "timers_of_threads": {2: "the list of timers is broken"},
    "short_sleep": {1: "msleep(1) does not end", 2: "msleep(1) ends too early"},
}


@pytest.mark.exercise("4.3", points=4, once=True)
@pytest.mark.parametrize("race", RACES)
def test_tick_anywhere(lab, race):
    """Threads wait for each other, and for the tick itself, which comes before each instruction of
    the exercise in turn."""
    assert search(lab, "4.3", race, RACES[race]), "interrupts are never on"
