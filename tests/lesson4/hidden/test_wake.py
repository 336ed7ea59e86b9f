"""Exercise 4.3, hidden: who is woken, when, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.lesson4.layout import layout
from tests.lesson4.played import TICK_NS, played
from tests.lesson4.support import MASK, signed
from tests.lesson4.waiting import (
    ERESTART,
    ETIMEDOUT,
    FOREVER,
    QUEUE,
    SEMAPHORE,
    TASK_READY,
    TASK_SLEEPING,
    YIELDS,
    Waiters,
    down_and_say,
    halves,
    say,
    waits,
    waken,
)


@pytest.mark.exercise("4.3", points=2, once=True)
def test_wake_before_sleep(lab):
    """A wake-up between joining a queue and sleeping: it is not lost, and neither is a semaphore's
    unit."""
    with played(lab) as play:
        waiters, others = Waiters(play, 1), []
        queue, waiter, semaphore = waiters.queue, waiters[0], play.zeroed(SEMAPHORE)

        def main():
            play.quiet()
            yield from play.begin(say(others), 1)
            deadline = halves((yield from play.time()) + 5 * TICK_NS)
            for wake in ("wait_wake", "wait_wake_one"):
                calls = [("wait_join", queue, waiter), (wake, queue)]
                calls += [("wait_any", waiter, 1, *deadline), ("wait_leave", waiter)]
                result = (yield calls)[2]
                assert (result, others) == (0, []), f"a {wake} before the sleep was lost"
            yield [("semaphore_up", semaphore)] * 2 + [("semaphore_down", semaphore)] * 2
            assert not others, "a unit that was there before the sleep was lost"
            assert play.word(semaphore) == 0, "two units were given, and two taken"

        play.run(main())


@pytest.mark.exercise("4.3", points=1, once=True)
def test_two_queues(lab):
    """A task in two queues: the second one wakes it, asleep or not yet. Leaving twice does no
    harm."""
    with played(lab) as play:
        waiters = Waiters(play, 2)
        joins = [("wait_join", waiters.queue, waiters[0]), ("wait_join", waiters.other, waiters[1])]
        leaves = [("wait_leave", waiters[0]), ("wait_leave", waiters[1])]

        def wake_other(_argument: int):
            yield "wait_wake", waiters.other

        def main():
            play.quiet()
            yield joins
            yield from play.begin(wake_other)
            result = yield "wait_any", waiters[0], 2, *FOREVER
            assert [result, waiters.is_woken(0), waiters.is_woken(1)] == [0, 0, 1]
            yield [*leaves, leaves[1]]
            assert not play.word(waiters.queue) | play.word(waiters.other), "one did not leave"
            yield [*joins, ("wait_wake", waiters.other)]
            passed = halves((yield from play.time()) - 1)
            result = yield "wait_any", waiters[0], 2, *passed
            assert result == 0, "the second queue has woken it before, and that is forgotten"

        play.run(main())


@pytest.mark.exercise("4.3", points=1, once=True)
def test_every_waiter(lab):
    """wait_wake: it wakes each waiter, functions included, however many. wait_any checks all."""
    called: list[int] = []
    with played(lab) as play:
        waiters, many = Waiters(play, 3), 40
        crowd = Waiters(play, many)

        def note(waiter: int):
            called.append(waiter)
            yield from ()

        def main():
            play.quiet()
            yield [("wait_join", waiters.queue, waiters[each]) for each in range(3)]
            play.set_word(waiters[1], play.function(note), waiters.members["task"])
            play.guest.put_data(waiters[1] + waiters.members["calls"], bytes([1]))
            yield "wait_wake", waiters.queue
            assert called == [waiters[1]], f"wait_wake has called a waiter {len(called)} times"
            marked = [waiters.is_woken(each) for each in range(3)]
            assert marked == [1, 1, 1], f"wait_wake of three waiters has marked {marked}"
            yield [("wait_leave", waiters[each]) for each in range(3)]
            queues = (waiters.queue, waiters.other, waiters.queue)
            yield [("wait_join", each, waiters[n]) for n, each in enumerate(queues)]
            yield "wait_wake", waiters.other
            passed = halves((yield from play.time()) - 1)
            result = yield "wait_any", waiters[0], 3, *passed
            assert result == 0, "the second of three queues has woken it before the sleep"
            yield [("wait_join", crowd.queue, crowd[each]) for each in range(many)]
            yield "wait_wake", crowd.queue
            marked = sum(crowd.is_woken(each) for each in range(many))
            assert marked == many, f"wait_wake of {many} waiters has marked {marked}"

        play.run(main())


@pytest.mark.exercise("4.3", points=2, gate=True, once=True)
def test_wake_one_and_all(lab):
    """wait_wake_one: it wakes the task that has waited longest, and two calls wake two. wait_wake
    wakes all that are left, also after one that is awake already."""
    found: list[int] = []
    with played(lab) as play:
        queue = play.zeroed(QUEUE)
        one, every = ("wait_wake_one", queue), ("wait_wake", queue)
        thread = waits(play, queue, found)

        def main():
            play.quiet()
            yield one
            for number in range(5):
                yield from play.begin(thread, number)
            assert (yield from waken(play, found)) == []
            assert (yield from waken(play, found, one)) == [0]
            assert (yield from waken(play, found, one, one)) == [1, 2]
            assert (yield from waken(play, found, every)) == [3, 4]
            for number in range(5, 8):
                yield from play.begin(thread, number)
            assert (yield from waken(play, found)) == []
            woken = yield from waken(play, found, one, every)
            assert woken == [5, 6, 7], "after wait_wake_one wait_wake does not wake all"

        play.run(main())


@pytest.mark.exercise("4.3", points=1, once=True)
def test_highest_priority_is_woken(lab):
    """Several waiting tasks: the one of highest priority, loans included, is woken; of equals the
    first."""
    nice = [10, 0, -20, 0, -10]
    found: list[int] = []
    tasks: list[int] = []
    with played(lab) as play:
        queue = play.zeroed(QUEUE)

        def main():
            play.quiet()
            yield from play.use("mlfq")
            yield "sched_set_nice", play.current, 19
            for number, each in enumerate(nice):
                play.interrupts(False)
                task = yield from play.begin(waits(play, queue, found), number)
                tasks.append(task)
                yield "sched_set_nice", task, each
                play.interrupts(True)
                yield YIELDS
            # Niceness alone does not change a level: begin again.
            yield from play.use("rr")
            yield from play.use("mlfq")
            play.interrupts(False)
            yield "sched_donate", tasks[0], 1  # between the levels of -20 and of -10
            play.interrupts(True)
            for _ in nice:
                yield [("wait_wake_one", queue), *YIELDS]

        play.run(main())
    assert found == [2, 0, 4, 1, 3]


@pytest.mark.exercise("4.3", points=2)
def test_wake_from_an_interrupt(lab):
    """A timer that wakes a thread: no switch in its call, and interrupts stay disabled."""
    found: list[str | int] = []
    with played(lab) as play:
        semaphore, done = play.zeroed(SEMAPHORE), play.zeroed(SEMAPHORE)
        queue, timer = play.zeroed(QUEUE), play.zeroed(layout("timer", "in_order")["size"])

        def expire(_timer: int):
            yield [("semaphore_up", semaphore), ("wait_wake", queue), ("wait_wake_one", queue)]
            found.append("enabled" if play.are_enabled else "disabled")

        def down_and_say(number: int):
            yield "semaphore_down", semaphore
            found.append(number)
            yield "semaphore_up", done

        def wait_silently(_argument: int):
            play.interrupts(False)
            yield "wait_sleep_until", queue, *FOREVER
            play.interrupts(True)

        def be_interrupted(_argument: int):
            yield play.busy_ticks(5)
            yield "semaphore_up", done

        def main():
            play.fine_clock()
            yield from play.use("mlfq")
            yield from play.begin(down_and_say, 7)
            yield from play.begin(wait_silently)
            yield "msleep", 20
            task = yield from play.begin(be_interrupted)
            yield "sched_set_nice", task, 10
            deadline = (yield from play.time()) + 2 * TICK_NS
            yield "timer_start", timer, *halves(deadline), play.function(expire)
            yield [("semaphore_down", done)] * 2

        play.run(main())
    assert found == ["disabled", 7], f"the call and the thread that it woke: {found}"


@pytest.mark.exercise("4.3", points=2)
def test_one_leaves_the_queue(lab):
    """The second of three waiting tasks reaches its deadline: -ETIMEDOUT, and the others keep their
    places."""
    found: list[int] = []
    with played(lab) as play:
        queue = play.zeroed(QUEUE)

        def wait_with_limit(number: int):
            play.interrupts(False)
            for ticks in (2, -1):
                deadline = (yield from play.time()) + ticks * TICK_NS
                found.append(signed((yield "wait_sleep_until", queue, *halves(deadline))))
            found.append(number)
            play.interrupts(True)

        def main():
            play.fine_clock()
            yield from play.begin(waits(play, queue, found), 1)
            yield from play.begin(wait_with_limit, 2)
            yield from play.begin(waits(play, queue, found), 3)
            yield "msleep", 60
            assert found in ([0, -ETIMEDOUT, 2], [-ETIMEDOUT, -ETIMEDOUT, 2]), f"it had {found}"
            found.clear()
            yield [("wait_wake_one", queue), ("msleep", 20)] * 2
            assert found == [1, 3]
            assert not play.word(queue), "a waiter is left in the queue"

        play.run(main())


@pytest.mark.exercise("4.3", points=2)
def test_no_timer_is_left(lab):
    """A task that is woken before its deadline: its timer, which is on its stack, is cancelled."""
    slept: list[float] = []
    with played(lab) as play:
        queue, done = play.zeroed(QUEUE), play.zeroed(SEMAPHORE)

        def wait_long(_argument: int):
            start = play.clock()
            play.interrupts(False)
            deadline = (yield from play.time()) + 10 * TICK_NS
            yield "wait_sleep_until", queue, *halves(deadline)
            slept.append(play.ticks_since(start))
            play.interrupts(True)
            yield "semaphore_up", done

        def main():
            play.fine_clock()
            yield from play.begin(wait_long)
            yield [("msleep", 20), ("wait_wake", queue), ("semaphore_down", done)]

        play.run(main())
        after = play.guest.call("timers_expire", MASK, MASK >> 1, stop_at=("sched_wake",))
    assert slept[0] < 10, f"it was woken after two ticks, and slept for {slept[0]:.1f}"
    assert after is not None, "a timer of a sleep that is over still runs"


@pytest.mark.exercise("4.3", points=2)
def test_producers_and_consumers(lab):
    """A semaphore under pre-emption: no unit is lost or taken twice."""
    many, rounds, units = 4, 8, 40
    with played(lab) as play:
        semaphore, done = play.zeroed(SEMAPHORE), play.zeroed(SEMAPHORE)
        ended: list[int] = []

        def produce(number: int):
            up = ("semaphore_up", semaphore)
            for part in range(rounds):
                at = (part + number) % units
                yield [*[up] * at, ("yield",), *[up] * (units - at)]
            yield "semaphore_up", done

        def consume(number: int):
            for _ in range(rounds):
                yield [("semaphore_down", semaphore)] * units
            ended.append(number)
            yield "semaphore_up", done

        def main():
            play.set_word("sched_quantum", 1)
            play.fine_clock()
            yield "pit_initialize", 10_000
            for number in range(many):
                yield from play.begin(consume, number)
                yield from play.begin(produce, number)
            yield [("semaphore_down", done)] * (2 * many)
            assert sorted(ended) == [*range(many)]
            assert play.word(semaphore) == 0, "a unit was made from nothing"
            assert play.word(semaphore, 4) == 0, "a waiter is left"

        play.run(main())
        ticks = play.guest.read_word(play.guest.address("sched_trace"))
    assert ticks > 40, f"{ticks} changes of tasks"


@pytest.mark.exercise("4.3", points=1, once=True)
def test_wrong_wake(lab):
    """A task that is woken without a unit: it sleeps again."""
    found: list[int] = []
    with played(lab) as play:
        semaphore = play.zeroed(SEMAPHORE)

        def main():
            play.quiet()
            task = yield from play.begin(down_and_say(semaphore, found), 5)
            assert (yield from waken(play, found)) == []
            play.set_byte(task, "has_signal", 1)
            assert (yield from waken(play, found, ("sched_wake", task))) == []
            assert play.word(semaphore) == 0
            assert (yield from waken(play, found, ("semaphore_up", semaphore))) == [5]
            assert play.word(semaphore) == 0

        play.run(main())


@pytest.mark.exercise("4.3", points=1, once=True)
def test_units_at_once(lab):
    """Two units before either of two waiting tasks runs: both are woken."""
    found: list[int] = []
    with played(lab) as play:
        semaphore = play.zeroed(SEMAPHORE)
        up = ("semaphore_up", semaphore)

        def main():
            play.quiet()
            for number in (5, 6):
                yield from play.begin(down_and_say(semaphore, found), number)
            assert (yield from waken(play, found)) == []
            assert (yield from waken(play, found, up, up)) == [5, 6]
            assert play.word(semaphore) == 0

        play.run(main())


@pytest.mark.exercise("4.3", points=1, once=True)
def test_signals(lab):
    """A pending signal: it ends the wait before it begins, unless the event has happened
    already. A task that was woken is told so, whatever signal has come meanwhile."""
    with played(lab) as play:
        waiters, others = Waiters(play, 1), []
        queue, told = play.zeroed(QUEUE), []

        def wait_and_tell(_argument: int):
            play.interrupts(False)
            told.append(signed((yield "wait_sleep_until", queue, *FOREVER)))
            play.interrupts(True)

        wait = ("wait_any", waiters[0], 1)

        def main():
            play.quiet()
            yield from play.begin(say(others), 1)
            play.set_byte(play.current, "has_signal", 1)
            calls = [("wait_join", waiters.queue, waiters[0]), (*wait, *FOREVER), (*wait, 0, 0)]
            found = yield [*calls, ("wait_wake", waiters.queue), (*wait, *FOREVER)]
            results = [signed(found[each]) for each in (1, 2, 4)]
            assert results == [-ERESTART, -ERESTART, 0]
            assert not others, "a wait that a signal ends switches to another task"
            play.set_byte(play.current, "has_signal", 0)
            task = yield from play.begin(wait_and_tell)
            yield YIELDS
            play.set_byte(task, "has_signal", 1)
            yield [("wait_wake", queue), *YIELDS]
            assert told == [0], f"a task that was woken, and then got a signal, is told {told}"

        play.run(main())


@pytest.mark.exercise("4.3", points=1)
def test_interrupt_flag(lab):
    """The interrupt flag: each function leaves it as it was."""
    with played(lab) as play:
        waiters, semaphore = Waiters(play, 1), play.zeroed(SEMAPHORE)
        timer = play.zeroed(layout("timer", "in_order")["size"])

        def nothing(_timer: int):
            yield from ()

        def main():
            play.fine_clock()
            later = halves((yield from play.time()) + 1000 * TICK_NS)
            calls: Sequence[tuple] = [
                ("wait_join", waiters.queue, waiters[0]),
                ("wait_wake_one", waiters.queue),
                ("wait_wake", waiters.queue),
                ("wait_any", waiters[0], 1, *FOREVER),
                ("wait_leave", waiters[0]),
                ("semaphore_up", semaphore),
                ("semaphore_down", semaphore),
                ("timer_start", timer, *later, play.function(nothing)),
                ("timer_cancel", timer),
                ("msleep", 1),
            ]
            for enabled in (False, True):
                for call in calls:
                    play.interrupts(enabled)
                    yield call
                    way = "leaves interrupts disabled" if enabled else "switches interrupts enabled"
                    assert play.are_enabled == enabled, f"{call[0]} {way}"

        play.run(main())


@pytest.mark.exercise("4.3", points=2, once=True)
def test_sleepers_do_not_compete(lab):
    """A sleeping task: it is not runnable, and does not run only to check again. A signal wakes a
    task that waits for an event, and no other."""
    with played(lab) as play:
        semaphore, queue = play.zeroed(SEMAPHORE), play.zeroed(QUEUE)
        ways = {
            "semaphore_down": ("semaphore_down", semaphore),
            "wait_event": ("wait_sleep_until", queue, *FOREVER),
            "msleep": ("msleep", 10),
        }

        def sleep_once(number: int):
            play.interrupts(False)
            yield [*ways.values()][number]

        def main():
            play.quiet()
            tasks = []
            for number in range(3):
                tasks.append((yield from play.begin(sleep_once, number)))
            yield "yield"
            for way, task in zip(ways, tasks, strict=True):
                switches = play.of(task, "switches")
                yield YIELDS[:5]
                life = play.of(task, "life")
                is_ready = life == TASK_READY or play.byte(task + play.task["is_queued"])
                assert not is_ready, f"a task in {way} still competes for the processor"
                turns = play.of(task, "switches") - switches
                assert turns == 0, f"a task in {way} has got the processor {turns} times meanwhile"
                name = ("TASK_BLOCKED", "TASK_SLEEPING")[way == "wait_event"]
                hears_signals = life == TASK_SLEEPING
                assert hears_signals == (way == "wait_event"), f"a task in {way} is not {name}"

        play.run(main())


@pytest.mark.exercise("4.3", points=2, once=True)
def test_waking_a_higher_priority(lab):
    """Waking a task of higher priority where pre-emption is allowed: the switch comes at once."""
    found: list[int] = []
    with played(lab) as play:
        semaphore, queue = play.zeroed(SEMAPHORE), play.zeroed(QUEUE)
        ways = (("semaphore_up", semaphore), ("wait_wake", queue), ("wait_wake_one", queue))

        def wake_each(_argument: int):
            threads = (down_and_say(semaphore, found), waits(play, queue, found))
            for number, way in enumerate(ways):
                yield from play.begin_nice(threads[number > 0], number, -20)
                yield "yield"
                yield way
                assert found == [*range(number + 1)], (
                    f"after {way[0]} the one that was woken does not run at once"
                )
                yield "yield"

        play.run_under_mlfq(wake_each, 0, 10)
