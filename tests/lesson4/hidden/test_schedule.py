"""Exercise 4.1, hidden: what schedule does besides the switch, and what a change costs."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.lesson4.played import Busy, Play, Played, Stepped, played
from tests.lesson4.support import (
    ENDS,
    IDLE,
    INTERRUPTS,
    PREEMPTED,
    WORK_SCHEDULE,
    WORK_TICK,
    YIELDED,
    changes,
    interrupt,
)
from tests.lesson4.turns import YIELDS, turn

YIELD_BUDGET, SWITCH_BUDGET = 300, 120  # instructions
TASK_LIMIT = 256
STAMPS_PER_MS = 1_000_000
TASK_READY, TASK_BLOCKED = 0, 2


def pids(play: Play, now: dict[str, int]) -> tuple[int, int]:
    """From whom and to whom switch_to switches, where it begins."""
    tasks = play.guest.read_words(now["esp"] + 4, 2)
    return play.of(tasks[0], "pid"), play.of(tasks[1], "pid")


@pytest.mark.exercise("4.1", points=2)
def test_idle_task(lab):
    """The idle task: it never runs while a thread is runnable, and it runs when all sleep."""
    busy: list[int] = []
    asleep: list[int] = []
    counted: list[int] = []
    with played(lab) as play:
        seen, going = busy, True

        def keep_yielding(_argument: int):
            while going:
                yield [("yield",)] * 4

        def main():
            nonlocal seen, going
            play.fine_clock()
            yield from play.begin(keep_yielding)
            yield from play.begin(keep_yielding)
            yield "msleep", 3
            going = False
            yield from play.await_ends()
            seen = asleep
            before = play.of(play.guest.address("idle"), "switches")
            yield "msleep", 30
            counted.append(play.of(play.guest.address("idle"), "switches") - before)

        with play.watching(switch_to=lambda now: seen.append(pids(play, now)[1])):
            play.run(main())
    assert IDLE not in busy, "the idle task runs while others are ready"
    assert len(busy) > 8, "the two threads did not take turns"
    assert IDLE in asleep, "the idle task has never run"
    assert set(asleep) <= {IDLE, 1}
    assert counted == [asleep.count(IDLE)], "switches to the idle task are not counted like others"


@pytest.mark.exercise("4.1", points=2, gate=True)
def test_accounts(lab):
    """Accounting: each thread is charged for its own time, and voluntary switches are counted."""
    seeded = random.Random(lab.seed)
    work = [seeded.randrange(STAMPS_PER_MS, 5 * STAMPS_PER_MS) for _ in range(3)]
    nanoseconds = {"icount": 8, "slower": 16}[lab.mode]
    found: list[tuple[int, int, int]] = []
    with played(lab) as play:

        def worker(number: int):
            task = play.current
            for _ in range(4):
                yield Busy(work[number] // nanoseconds)
                yield "yield"
            total = play.long(task + play.task["total"])
            found.append((total, play.of(task, "switches"), play.of(task, "preemptions")))

        def main():
            play.quiet()
            for number in range(3):
                yield from play.begin(worker, number)
            yield from play.await_ends()

        play.run(main())
    for stamps, (total, switches, preemptions) in zip(work, found, strict=True):
        most = 4.4 * stamps + STAMPS_PER_MS // 2
        assert 3.99 * stamps <= total <= most, (
            f"a thread that used {4 * stamps} time stamps has {total} on its account"
        )
        assert switches == 5, f"it got the processor 5 times, and {switches} are counted"
        assert preemptions == 0


@pytest.mark.exercise("4.1", points=1, once=True)
def test_no_gap_between_accounts(lab):
    """Two threads that take turns: every cycle is charged to one of them."""
    with played(lab) as play:
        going = True

        def keep_yielding(_argument: int):
            while going:
                yield "yield"

        def main():
            nonlocal going
            play.quiet()
            tasks = (play.current, (yield from play.begin(keep_yielding)))
            yield "yield"

            def account() -> tuple[int, int]:
                paid = sum(play.long(each + play.task["total"]) for each in tasks)
                return play.long(tasks[0] + play.task["started"]), paid

            before = account()
            yield YIELDS
            passed, paid = (late - early for early, late in zip(before, account(), strict=True))
            going = False
            assert passed > 0
            assert paid == passed, f"{passed} time stamps have passed, and {paid} are on accounts"

        play.run(main())


@pytest.mark.exercise("4.1", points=1, once=True)
def test_account_of_a_sleeper(lab):
    """A thread that goes to sleep: it is charged for the time before, and the next one is not."""
    stamps = 10 * STAMPS_PER_MS
    nanoseconds = {"icount": 8, "slower": 16}[lab.mode]
    found: list[int] = []
    with played(lab) as play:

        def compute_and_sleep(_argument: int):
            yield Busy(stamps // nanoseconds)
            play.interrupts(False)
            yield "sched_sleep", TASK_BLOCKED
            play.interrupts(True)

        def main():
            play.quiet()
            play.interrupts(False)
            yield "schedule", YIELDED  # alone: it pays for the time up to here
            play.interrupts(True)
            tasks = (yield from play.begin(compute_and_sleep)), play.current
            before = [play.long(each + play.task["total"]) for each in tasks]
            yield [("yield",), ("sched_wake", tasks[0]), ("yield",)]
            after = (play.long(each + play.task["total"]) for each in tasks)
            found.extend(b - a for a, b in zip(before, after, strict=True))
            yield from play.await_ends()

        play.run(main())
    assert found[0] >= 0.99 * stamps, f"a thread that used {stamps} time stamps has {found[0]}"
    assert found[1] <= stamps // 2, f"the next thread has {found[1]}, of which it used few"


@pytest.mark.exercise("4.1", points=1, once=True)
def test_who_is_pre_empted(lab):
    """A pre-emption: counted for the task that lost the processor, with the reason in the
    record."""
    found: list[int] = []
    threads: list[int] = []
    with played(lab) as play:
        first = play.guest.read_word(play.guest.address("sched_trace"))

        def give_away(reason: int):
            task = play.current
            threads.append(play.of(task, "pid"))
            play.interrupts(False)
            yield "schedule", reason
            play.interrupts(True)
            found.append(play.of(task, "preemptions"))

        def main():
            play.quiet()
            yield from play.begin(give_away, PREEMPTED)
            yield from play.begin(give_away, YIELDED)
            yield from play.await_ends()

        play.run(main())
        record = changes(play.guest, first)
    assert found == [1, 0], f"one was pre-empted, the next one not; {found} are counted"
    told = [[each.reason for each in record if each.before == pid] for pid in threads]
    assert told == [[PREEMPTED, ENDS], [YIELDED, ENDS]], f"the reasons in the record: {told}"


@pytest.mark.exercise("4.1", points=1, once=True)
def test_interrupt_flag_is_each_threads_own(lab):
    """The interrupt flag after yield: what it was before, whatever other threads had."""
    found: list[bool] = []
    with played(lab) as play:

        def note_flags(_argument: int):
            for enabled in (False, True):
                play.interrupts(enabled)
                yield "yield"
                found.append(play.are_enabled)

        def main():
            play.quiet()
            for _ in range(2):
                yield from play.begin(note_flags)
            yield from play.await_ends()

        play.run(main())
    assert found == [False, False, True, True]


@pytest.mark.exercise("4.1", points=1, once=True)
def test_alone(lab):
    """schedule with no other runnable task: the task goes on, nothing is recorded or counted, and
    the request is cleared."""
    switched: list[dict[str, int]] = []
    with played(lab) as play:

        def main():
            play.quiet()
            task, trace = play.current, play.word("sched_trace")
            counts = [play.of(task, each) for each in ("switches", "preemptions")]
            play.interrupts(False)
            yield [("schedule", PREEMPTED if n % 2 else YIELDED) for n in range(5)]
            play.set_word("trap_return_work", WORK_SCHEDULE)
            yield "schedule", PREEMPTED
            request = play.word("trap_return_work") & WORK_SCHEDULE
            assert not request, "WORK_SCHEDULE is still set although the task is alone"
            records = play.word("sched_trace") - trace
            assert records == 0, f"{records} changes from a task to itself are recorded"
            after = [play.of(task, each) for each in ("switches", "preemptions")]
            assert after == counts, "a task alone gets the processor from itself, or pre-empts it"
            assert play.of(task, "life") == TASK_READY, "the task is not ready any more"

        with play.watching(switch_to=switched.append):
            play.run(main())
    assert not switched, "a task alone is switched to itself"


@pytest.mark.exercise("4.1", points=1, once=True)
def test_request_is_done(lab):
    """WORK_SCHEDULE: every switch clears it, and no other bit."""
    work = WORK_SCHEDULE | WORK_TICK
    found: list[int] = []
    with played(lab) as play:

        def look_at_work(_argument: int):
            found.append(play.word("trap_return_work") & WORK_SCHEDULE)
            yield from ()

        def main():
            play.quiet()
            play.preempt_disable()
            yield from play.begin(look_at_work)
            play.interrupts(False)
            play.set_word("trap_return_work", work)
            yield "schedule", YIELDED
            found.append(play.word("trap_return_work") & work)

        play.run(main())
    assert not any(word & WORK_SCHEDULE for word in found), "WORK_SCHEDULE is still there"
    assert found == [0, WORK_TICK], "a tick that is to be counted is forgotten"


def step_a_yield(play: Play) -> Played:
    """Two threads yield to one another; of the last yield each instruction is noted."""
    play.quiet()
    yield from play.begin(turn([], 9))
    yield [("yield",)] * 4
    yield Stepped(("yield",), 4 * YIELD_BUDGET)


@pytest.mark.exercise("4.1", points=1, once=True)
def test_order_of_a_change(lab):
    """The order of a switch: the running task is charged before it is queued, and the next one is
    loaded completely before the switch."""
    order: list[str] = []
    are_current: list[bool] = []
    with played(lab) as play:

        def note(now: dict[str, int]) -> None:
            to = play.guest.read_word(now["esp"] + 8)
            are_current.append(play.current == to)

        places = {at: name for name, at in play.class_functions().items()}
        places |= {play.guest.address(name): name for name in ("task_load", "switch_to")}
        with play.watching(switch_to=note):
            play.run(step_a_yield(play))
        order = [places[each] for each in play.stepped if each in places]
    wanted = ["charge", "enqueue", "pick", "task_load", "switch_to"]
    order = [each for each in order if each in wanted]
    assert order == wanted, f"the steps of a change are {', '.join(order)}"
    assert all(are_current), "at switch_to `current` is not the task that comes"


@pytest.mark.exercise("4.1", points=1, gate=True, once=True)
def test_record(lab):
    """The record of switches: from, to, reason and time of each, in order."""
    count, rounds = 3, 4
    seen: list[tuple[int, int]] = []
    with played(lab) as play:
        first = play.guest.read_word(play.guest.address("sched_trace"))

        def main():
            play.quiet()
            for number in range(count):
                yield from play.begin(turn([], rounds), number)
            yield from play.await_ends()

        with play.watching(switch_to=lambda now: seen.append(pids(play, now))):
            play.run(main())
        record = changes(play.guest, first)
    assert [(each.before, each.after) for each in record] == seen, "the record has other changes"
    assert all(one.stamp <= later.stamp for one, later in pairwise(record))
    threads = sorted({change.after for change in record} - {1})
    assert len(threads) == count
    turns = [change.after for change in record if change.after != 1]
    assert turns == threads * (rounds + 1)
    assert {change.reason for change in record[: count * rounds]} == {YIELDED}


@pytest.mark.exercise("4.1", points=1, once=True)
def test_no_memory(lab):
    """kthread_create without memory: it returns NULL, and pre-emption is as before."""
    with played(lab) as play:

        def main():
            play.quiet()
            create = ("kthread_create", play.guest.text("many"), play.guest.address("yield"), 0)
            before = play.of(play.current, "preempt_count")
            made = []
            while all(made):
                made += yield [create] * 32
            count = sum(each > 0 for each in made)
            assert 100 < count < TASK_LIMIT
            assert play.of(play.current, "preempt_count") == before, "preempt_count has changed"
            while play.word("task_count") > 1:
                yield YIELDS
            (again,) = yield [create]
            assert again, "there is no room although all have ended"

        play.run(main())


@pytest.mark.exercise("4.1", points=1, once=True)
def test_creation_is_not_interrupted(lab):
    """A tick in kthread_create: no switch, because the lists hold half a task."""
    with played(lab) as play:
        guest = play.guest

        def create_another(_argument: int):
            yield from play.begin(turn([], 0))

        def main():
            play.quiet()
            play.set_word("sched_quantum", 1)
            yield from play.begin(create_another)
            yield from play.await_ends()

        # The first one is for the thread that makes another.
        assert play.reaches(main(), "kernel_stack_create", 2), "a thread is made without a stack"
        now = guest.registers()
        if now["eflags"] & INTERRUPTS:
            home = guest.read_word(now["esp"])
            interrupt(guest)
            reached = guest.run_to(home, "switch_to", goal="the end of kernel_stack_create")
            assert reached == home, "another task runs while a thread is being made"


@pytest.mark.exercise("4.1", points=2, once=True)
def test_cost(lab):
    """The cost of a yield, and of the switch itself: bounded, from task_load in one thread to the
    return of yield in the other."""
    with played(lab) as play:
        play.run(step_a_yield(play))
        whole = play.stepped
        load = play.guest.address("task_load")
    assert len(whole) <= YIELD_BUDGET, f"yield takes {len(whole)} instructions"
    assert load in whole, "the next task is not loaded"
    switch = len(whole) - whole.index(load)
    assert switch <= SWITCH_BUDGET, f"the switch takes {switch} instructions"
