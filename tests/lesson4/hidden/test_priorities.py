"""Exercise 4.4, hidden: feedback queues and inherited priorities, each against a model."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.lesson4.classes import (
    CHARGE,
    ENQUEUE,
    JOIN,
    LEVEL,
    PICK,
    STAMPS_PER_TICK,
    STEPS,
    TICK,
    Step,
    sched_class,
)
from tests.lesson4.feedback import LEVEL_0, STAMPS, Model, draw_steps
from tests.lesson4.loans import MUTEX, SEMAPHORE, UNLOCK, check_orders, draw_nice, draw_orders
from tests.lesson4.played import Busy, Play, Played, played
from tests.lesson4.races import Once, search
from tests.lesson4.support import PREEMPTED, WOKEN

TICK_US = 10_000
SECOND = 1_000_000_000
LENT = 1  # a priority
FASTER = 1000  # the clock of the boost, in which a second goes by
TASK_BLOCKED, TASK_STOPPED = 2, 3


# ---- the queues -------------------------------------------------------------------------------


def class_answers(lab, steps: list[Step], quantum: int = 2) -> list[int]:
    """The results of steps, in a class that has boosted a moment ago."""
    with sched_class(lab, "sched_mlfq", quantum) as mlfq:
        mlfq.call("tick", mlfq.kernel.word("current"))
        return [result for *_, result in mlfq.run(steps)]


@pytest.mark.exercise("4.4", points=4, gate=True, once=True)
def test_queues_against_a_model(lab):
    """Hundreds of random steps (joining, queueing, charging, ticks, donations): queues are the
    model's."""
    seeded = random.Random(lab.seed)
    quantum = seeded.randrange(1, 4)
    steps = draw_steps(seeded, 650, quantum)
    model = Model(STAMPS_PER_TICK, quantum)
    found = class_answers(lab, steps, quantum)
    for index, ((step, number, value), seen) in enumerate(zip(steps, found, strict=True)):
        wanted = model.step(step, number, value)
        assert seen == wanted, (
            f"step {index}, {STEPS[step]} of task {number} with {value}: {seen}, "
            f"and it should be {wanted}"
        )


@pytest.mark.exercise("4.4", points=2, gate=True, once=True)
def test_gaming(lab):
    """A task that sleeps just before each tick: its level drops like that of the others."""
    rounds = [(CHARGE, 0, 9 * STAMPS // 10), (TICK, 0, 0), (ENQUEUE, 0, WOKEN), (PICK, 0, 0)]
    steps = [(JOIN, 0, 0), *rounds, *rounds, *rounds, (LEVEL, 0, 0)]
    steps += [*(rounds * 8), (LEVEL, 0, 0)]
    found = class_answers(lab, steps, quantum=1)
    first, second = found[len(rounds) * 3 + 1], found[-1]
    assert first > 4, "three turns of almost a tick do not use up the allotment of one tick or two"
    assert second > first


@pytest.mark.exercise("4.4", points=1, once=True)
def test_one_level_at_a_time(lab):
    """A task that used many allotments at once: it drops one level, and gets a whole allotment
    there."""
    found = []
    for nice in (-20, 0, 10):
        steps = [(JOIN, 0, nice), (LEVEL, 0, 0), (CHARGE, 0, 20 * STAMPS), (LEVEL, 0, 0)]
        steps += [(CHARGE, 0, STAMPS), (LEVEL, 0, 0)]
        levels = class_answers(lab, steps)
        found.append((levels[3] - levels[1], levels[5] - levels[3]))
    assert found == [(1, 0)] * 3, (
        f"levels that a task drops, after ten times its allotment and then half of the new one: "
        f"{found}, from niceness -20, 0 and 10"
    )


@pytest.mark.exercise("4.4", points=2, once=True)
def test_lowest_level(lab):
    """Level 7 is the lowest: turns end there as well."""
    sink = [(CHARGE, 0, 4_000_000_000), (TICK, 0, 0), (LEVEL, 0, 0), (ENQUEUE, 0, PREEMPTED)]
    steps = [(JOIN, 0, 19), (JOIN, 1, 19), (ENQUEUE, 1, WOKEN)]
    steps += [*sink, (PICK, 0, 0), (PICK, 0, 0), *sink, (PICK, 0, 0)]
    found = class_answers(lab, steps)
    assert found[3:9] == [0, 1, 7, 0, 1, 0], "two tasks on the lowest level do not take turns"
    assert found[9:] == [0, 1, 7, 0, 0]


class Boosted:
    """Threads that have sunk, a stopped one, and a last one that sleeps; a task of nothing runs."""

    def __init__(self, play: Play, mlfq: dict[str, int], runs: int) -> None:
        self.play, self.mlfq, self.runs = play, mlfq, runs
        self.tasks: list[int] = []

    def begin(self, nice: list[int]) -> Played:
        """They begin, and sink."""
        of = self.mlfq
        for number, each in enumerate(nice):
            task = yield from self.play.begin_nice(self.nothing, number, each)
            self.play.unlink(task)
            charges = [(of["charge"], task, SECOND, 0)] * 8
            yield [*charges, (of["charge"], task, 1000, 0), (of["enqueue"], task, PREEMPTED)]
            self.tasks.append(task)
        for life in (TASK_STOPPED, TASK_BLOCKED):
            task = yield from self.play.begin_nice(self.nothing, len(self.tasks), 0)
            self.play.unlink(task)
            self.play.set_of(task, "life", life)
            yield of["charge"], task, 4 * SECOND, 4 * SECOND >> 32
            self.tasks.append(task)

    def nothing(self, _argument: int) -> Played:
        """It does not run."""
        yield from ()

    def levels(self) -> list[int]:
        """Where they are."""
        return [self.play.byte(each + self.play.task["level"]) for each in self.tasks]

    def tick(self) -> Played:
        """A tick at the beginning of a turn: is that over?"""
        _, over = yield [(self.mlfq["join"], self.runs), (self.mlfq["tick"], self.runs)]
        return over & 0xFF

    def wait(self, nanoseconds: int) -> Played:
        """Computes for as long as this."""
        start = yield from self.play.time()
        while (yield from self.play.time()) - start < nanoseconds:
            yield Busy(nanoseconds // FASTER // 8 + 1000)


@pytest.mark.exercise("4.4", points=2, gate=True, once=True)
def test_boost(lab):
    """The boost: once a second all tasks, sleeping and queued, go to the levels of their
    niceness."""
    with played(lab) as play:
        play.run(check_boost(play))


def check_boost(play: Play) -> Played:
    """Before a second is over, then, and at the next ones."""
    play.quiet()
    yield from play.begin_mlfq()
    play.interrupts(False)
    mlfq = play.class_functions()
    boosted = Boosted(play, mlfq, play.zeroed(play.task["size"]))
    yield from boosted.tick()
    yield mlfq["join"], boosted.runs
    yield from boosted.begin([10, -20, 0, -10, 10])
    assert boosted.levels()[:5] == [7] * 5, "they have not sunk"
    over = (yield mlfq["tick"], boosted.runs) & 0xFF
    kept = boosted.levels()[0]
    assert (over, kept) == (0, 7), "tasks are lifted before a second is over"
    play.set_byte(boosted.tasks[-1], "donated", LENT)
    start = yield from play.time()
    khz = yield "time_tsc_khz"
    yield "time_initialize", khz // FASTER  # from 0 on
    yield from boosted.wait(start + SECOND + SECOND // 100)
    assert (yield mlfq["tick"], boosted.runs) & 0xFF, "at the boost the turn is not over"
    assert boosted.levels()[:5] == [6, 0, 4, 2, 6], "tasks are not on the levels of their niceness"
    picked = yield [(mlfq["pick"],)] * 5
    order = [boosted.tasks.index(each) for each in picked if each in boosted.tasks]
    words = f"the queues are not as they would have been picked (0 and 4 are of one level): {order}"
    assert order == [1, 3, 2, 0, 4], words
    assert not (yield from boosted.tick()), "the boost comes again at once"
    assert boosted.levels()[-1] == LEVEL_0, "a task that sleeps is not lifted"
    assert boosted.levels()[-2] == LEVEL_0, "a task that is stopped is not lifted"
    lent = play.byte(boosted.tasks[-1] + play.task["donated"])
    assert lent == LENT, "the boost takes away what another task has lent"
    quantum, cycles = play.word("sched_quantum"), khz // FASTER * 10
    found = []
    for charge in (cycles * quantum - cycles // 2 - 1, 1):
        yield mlfq["charge"], boosted.tasks[-1], charge, 0
        found.append(boosted.levels()[-1])
    assert found == [LEVEL_0, LEVEL_0 + 1], (
        "after a boost a task does not have the whole allotment of its new level"
    )
    yield from boosted.wait(SECOND + SECOND // 100)
    assert (yield from boosted.tick()), "a second after the first boost there is none"
    yield from boosted.wait(2 * SECOND + SECOND // 50)
    found = [(yield from boosted.tick()), (yield from boosted.tick())]
    assert found == [1, 0], "after two seconds there is not one boost"


# ---- the loans --------------------------------------------------------------------------------


@pytest.mark.exercise("4.4", points=4, gate=True, once=True)
def test_inheritance_against_a_model(lab):
    """Six threads and four mutexes at random: after each step every priority is the model's. Locks
    nest, donors are several, releases come in any order, and a mutex is locked again at once."""
    seeded = random.Random(lab.seed)
    nice = draw_nice(seeded)
    check_orders(lab, nice, 4, draw_orders(seeded, nice, 4, 200))


@pytest.mark.exercise("4.4", points=2, gate=True, once=True)
def test_chain_of_inheritance(lab):
    """A chain of ten threads that wait for each other: the priority of the last one is inherited by
    eight of them. Then all release."""
    orders = [(n, n) for n in range(10)] + [(n, n - 1) for n in range(1, 10)] + [(10, 9)]
    for number in range(10):
        locks = [number] if number == 0 else [number - 1, number]
        orders += [(number, UNLOCK + lock) for lock in locks]
    check_orders(lab, [14] * 10 + [-20], 11, orders)


@pytest.mark.exercise("4.4", points=2, once=True)
def test_two_donors_and_two_mutexes(lab):
    """A thread with two donors: it keeps the second one's priority when the first one gets its
    mutex."""
    plan = [(0, 0), (0, 1), (2, 1), (1, 0), (3, 1), (0, 100), (0, 101), (2, 101), (1, 100)]
    check_orders(lab, [14, -20, -5, 0], 3, plan)


@pytest.mark.exercise("4.4", points=1, once=True)
def test_inherited_priority_decides(lab):
    """Of two waiting threads the one with an inherited higher priority gets the mutex."""
    plan = [(0, 1), (1, 0), (2, 1), (1, 1), (3, 0), (0, 101), (1, 101), (2, 101), (1, 100)]
    check_orders(lab, [14, 14, 0, -20], 3, plan)


@pytest.mark.exercise("4.4", points=2, gate=True)
def test_inversion(lab):
    """Priority inversion: a calculation of 60 ticks does not delay a thread that waits for a mutex
    held for 4."""
    order: list[int] = []
    waited: list[float] = []
    with played(lab) as play:
        mutex, done = play.zeroed(MUTEX), play.zeroed(SEMAPHORE)

        def slow_holder(_argument: int):
            yield [("mutex_lock", mutex), ("semaphore_up", done)]
            yield play.busy_ticks(4)
            yield [("mutex_unlock", mutex), ("semaphore_up", done)]

        def calculate(_argument: int):
            yield play.busy_ticks(60)
            order.append(2)
            yield "semaphore_up", done

        def hurry(_argument: int):
            start = play.clock()
            yield "mutex_lock", mutex
            order.append(1)
            waited.append(play.ticks_since(start))
            yield [("mutex_unlock", mutex), ("semaphore_up", done)]

        def main():
            yield from play.fast_clock()
            yield from play.use("mlfq")
            yield from play.begin_nice(slow_holder, 0, 19)
            yield "semaphore_down", done
            play.preempt_disable()
            yield from play.begin_nice(calculate, 0, 0)
            yield from play.begin_nice(hurry, 0, -20)
            yield [("preempt_enable",), *[("semaphore_down", done)] * 3]

        play.run(main())
    assert order == [1, 2], "the calculation ended first"
    assert waited[0] < 7, f"the mutex was got after {waited[0]:.1f} ticks"


@pytest.mark.exercise("4.4", points=2)
def test_wake_up_delay(lab):
    """A task that sleeps most of the time among four calculations: it runs as soon as it wakes."""
    times: list[int] = []
    with played(lab) as play:
        done = play.zeroed(SEMAPHORE)

        def serve_person(_argument: int):
            calls = [("time_ns",), ("msleep", 30), ("time_ns",)] * 20
            times.extend((yield calls))
            yield "semaphore_up", done

        def main():
            yield from play.fast_clock()
            yield from play.use("mlfq")
            for _ in range(4):
                yield from play.begin(play.spin)
            yield from play.begin(serve_person)
            yield "semaphore_down", done

        play.run(main())
    sleeps = zip(times[::3], times[2::3], strict=True)
    late = max((after - before) % (1 << 32) for before, after in sleeps) // 1000 - 3 * TICK_US
    assert late <= 1.5 * TICK_US, f"it once had to wait {late} us"


def lock_twice(play: Play, mutex: int) -> Played:
    """Who has the mutex locks it."""
    yield "mutex_lock", mutex
    yield "mutex_lock", mutex


def unlock_twice(play: Play, mutex: int) -> Played:
    """Who had it unlocks it."""
    yield [("mutex_lock", mutex), ("mutex_unlock", mutex)]
    yield "mutex_unlock", mutex


def unlock_of_another(play: Play, mutex: int) -> Played:
    """Who never had it unlocks it."""

    def hold_for_ever(_argument: int):
        yield "mutex_lock", mutex
        yield "semaphore_down", play.zeroed(SEMAPHORE)

    yield from play.begin(hold_for_ever)
    yield "yield"
    yield "mutex_unlock", mutex


@pytest.mark.exercise("4.4", points=1)
@pytest.mark.parametrize("wrong", [lock_twice, unlock_twice, unlock_of_another])
def test_wrong_use(lab, wrong):
    """Locking twice, or unlocking a mutex of another task: a panic that says so."""
    with played(lab) as play:
        play.quiet()
        assert play.panics(wrong(play, play.zeroed(MUTEX))), f"no panic after {wrong.__name__}"
        last = play.player.words
        assert last == f"mutex_{'lock' if wrong is lock_twice else 'unlock'}", f"{last} panics"


@pytest.mark.exercise("4.4", points=1, once=True)
def test_donor_of_equal_priority(lab):
    """A waiting task of equal priority: it changes nothing, and the owner's place in its queue
    stays."""
    found: list[int] = []
    with played(lab) as play:
        mutex = play.zeroed(MUTEX)

        def hold_and_say(number: int):
            yield [("mutex_lock", mutex), ("yield",)]
            found.append(number)
            yield "mutex_unlock", mutex

        def main():
            play.quiet()
            yield from play.use("mlfq")
            yield from play.begin(hold_and_say, 1)
            yield "yield"
            yield from play.begin(say(found), 2)
            yield [("mutex_lock", mutex), ("mutex_unlock", mutex)]
            yield from play.await_ends()

        play.run(main())
    assert found == [1, 2], "a loan that changes nothing has moved its task after an equal one"


def say(found: list[int]) -> Callable[[int], Played]:
    """A thread that says its argument."""

    def thread(number: int) -> Played:
        found.append(number)
        yield from ()

    return thread


def lock_and_say(mutex: int, found: list[int]) -> Callable[[int], Played]:
    """The same while it has the mutex."""

    def thread(number: int) -> Played:
        yield "mutex_lock", mutex
        found.append(number)
        yield "mutex_unlock", mutex

    return thread


@pytest.mark.exercise("4.4", points=1, once=True)
def test_spurious_wake_up(lab):
    """A task that waits for a mutex: signals do not wake it, and after a wake-up by anyone but the
    owner it sleeps again."""
    found: list[int] = []
    lives: list[int] = []
    with played(lab) as play:
        mutex = play.zeroed(MUTEX)

        def main():
            play.quiet()
            yield "mutex_lock", mutex
            task = yield from play.begin(lock_and_say(mutex, found), 5)
            yield "yield"
            lives.append(play.of(task, "life"))
            yield [("sched_wake", task), ("yield",)]
            found.append(7)
            yield "mutex_unlock", mutex
            yield from play.await_ends()

        play.run(main())
    assert lives == [TASK_BLOCKED], "a thread in mutex_lock sleeps not as TASK_BLOCKED"
    assert found == [7, 5], "mutex_lock returns while another thread has the mutex"


@pytest.mark.exercise("4.4", points=1, once=True)
def test_handed_over_at_once(lab):
    """Unlocking for a task of higher priority: the switch to it comes at once."""
    found: list[int] = []
    with played(lab) as play:
        mutex = play.zeroed(MUTEX)

        def unlock_and_say(number: int):
            yield "mutex_lock", mutex
            yield from play.begin_nice(lock_and_say(mutex, found), 1, -20)
            yield [("yield",), ("mutex_unlock", mutex)]
            found.append(number)

        play.run_under_mlfq(unlock_and_say, 2, 10)
    assert found == [1, 2], "the waiting thread, of higher priority, does not run after the unlock"


@pytest.mark.exercise("4.4", points=1, once=True)
def test_interrupt_flag(lab):
    """The interrupt flag: mutex_lock and mutex_unlock leave it as it was, and where it was clear
    mutex_unlock switches to no other task."""
    found: list[int] = []
    flags: list[bool] = []
    with played(lab) as play:
        mutex = play.zeroed(MUTEX)

        def lock_late(enabled: int):
            play.interrupts(bool(enabled))
            yield "mutex_lock", mutex
            flags.append(play.are_enabled)
            found.append(enabled)
            yield "mutex_unlock", mutex
            flags.append(play.are_enabled)
            play.interrupts(True)

        def hold(_argument: int):
            yield "mutex_lock", mutex
            for enabled in (0, 1):
                yield from play.begin_nice(lock_late, enabled, -20)
                yield "yield"
            play.interrupts(False)
            yield "mutex_unlock", mutex
            flags.append(play.are_enabled)
            found.append(2)
            play.interrupts(True)

        play.run_under_mlfq(hold, 0, 10)
    assert found[0] == 2, "mutex_unlock switches to another task although interrupts are disabled"
    assert flags == [False, False, False, True, True], f"interrupts after each call: {flags}"


def mutex_of_threads(play: Play) -> Once:
    """Three threads are inside one after the other, and yield there."""
    mutex = play.zeroed(MUTEX)
    inside = arrived = 0
    collided = False

    def enter_and_leave(_argument: int) -> Played:
        nonlocal inside, arrived, collided
        yield "mutex_lock", mutex
        collided |= inside > 0
        inside += 1
        yield "yield"
        inside -= 1
        yield "mutex_unlock", mutex
        arrived += 1

    def once() -> Played:
        nonlocal inside, arrived, collided
        inside, arrived, collided = 0, 0, False
        yield from play.begin_all(*[(enter_and_leave, 0)] * 3)
        yield [("yield",)] * 16
        if arrived < 3:
            return "a thread waits for the mutex for ever"
        if collided:
            return "two threads have the mutex at a time"
        is_left = play.word(mutex) or play.word(mutex, 4) or play.of(play.current, "held")
        return "the mutex is free, and still in a list" if is_left else ""

    return once


@pytest.mark.exercise("4.4", points=2, once=True)
def test_tick_anywhere(lab):
    """Three threads and a mutex, with a tick before each instruction of the exercise in turn: the
    lock and the priorities stay right."""
    assert search(lab, "4.4", mutex_of_threads), "interrupts are never on"
