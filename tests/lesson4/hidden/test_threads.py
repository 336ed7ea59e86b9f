"""Exercise 4.1, hidden: the switch itself, first steps, ends, and what schedule does besides."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.lesson3.support import steps_to
from tests.lesson4.search import search
from tests.lesson4.support import (
    ENDS,
    IDLE,
    INTERRUPTS,
    PREEMPTED,
    WORK_SCHEDULE,
    WORK_TICK,
    YIELDED,
    Threads,
    interrupt,
    signed,
    threads,
)

TURNS = "tests/lesson4/threads/turns.c"
SWITCH = "tests/lesson4/hidden/turns.c"
YIELD_BUDGET, SWITCH_BUDGET = 300, 120  # instructions
KERNEL_STACK = 8192
FRAME_BYTES = 4 * 19
SWITCH_FRAME_BYTES = 4 * 5
TASK_LIMIT = 256
STAMPS_PER_MS = 1_000_000
CLASS = ("name", "join", "enqueue", "pick", "charge")  # of struct sched_class


def random_words(lab, count: int) -> list[int]:
    """Different words of 32 bits."""
    return random.Random(lab.seed).sample(range(1 << 32), count)


def stack_of_answer(run: Threads) -> int:
    """Runs to the next answer; the ESP of the thread that gives it."""
    run.guest.run_to(run.address("answer"), goal="the next answer of a thread")
    return run.guest.registers()["esp"]


@pytest.mark.exercise("4.1", points=2, gate=True)
def test_many_threads_take_turns(lab):
    """In the order in which they began, each with its own argument, again and again; and each on a
    stack of its own, where it was before."""
    seeded = random.Random(lab.seed)
    count, rounds = seeded.randrange(3, 20), seeded.randrange(5, 30)
    arguments = random_words(lab, count)
    with threads(lab, TURNS, "take_turns", count, rounds, *arguments) as run:
        stacks = [stack_of_answer(run) for _ in range(2 * count)]
        found = run.answers()
    assert len(set(stacks)) == count, f"{count} threads run on {len(set(stacks))} stacks"
    assert stacks[count:] == stacks[:count], "a thread goes on where another one was"
    assert found == arguments * rounds, "the threads do not run in turn"


@pytest.mark.exercise("4.1", points=3, gate=True)
def test_registers_of_the_switch(lab):
    """switch_to alone, between two bare stacks: EBX, ESI, EDI, EBP and ESP are kept, and a forged
    frame is taken word by word."""
    values = random_words(lab, 8)
    with threads(lab, SWITCH, "switch_registers", *values) as run:
        found = run.answers()
    names = ("EBX", "ESI", "EDI", "EBP")
    for name, value, came in zip(names, values[:4], found[:4], strict=True):
        assert came == value, f"{name} was {value:#x}, and is {came:#x} behind switch_to"
    assert found[4] == 0, f"ESP has moved by {signed(found[4])}"
    for name, value, came in zip(names, values[4:], found[5:9], strict=True):
        assert came == value, f"the new stack has {value:#x} for {name}, which becomes {came:#x}"
    assert found[9] == 0, f"the new stack's ESP is wrong by {signed(found[9])}"


@pytest.mark.exercise("4.1", points=2)
def test_first_steps(lab):
    """At a thread's first instruction: its argument, an aligned stack of its own near its top, no
    caller, interrupts enabled although its maker had them off."""
    argument = random_words(lab, 1)[0]
    with threads(lab, SWITCH, "first_steps", argument) as run:
        makers, esp, ebp, eflags, found, low, high, frame, name = run.answers()
    assert not makers, "its maker had interrupts disabled, and has them on behind kthread_create"
    assert found == argument
    assert name.to_bytes(4, "little") == b"test", "the thread does not have the name that was given"
    assert low <= esp < high, f"ESP is {esp:#x}, and the stack {low:#x} to {high:#x}"
    assert esp >= high - FRAME_BYTES - 64, f"{high - esp} bytes of the stack are used already"
    assert (esp + 4) % 16 == 0, f"ESP is {esp:#x}: the argument must lie at a multiple of 16"
    assert ebp == 0, f"EBP is {ebp:#x}: the chain of callers has no end"
    assert frame == high - FRAME_BYTES - SWITCH_FRAME_BYTES, (
        f"its first switch frame is {high - frame} bytes below the stack's end: not directly below "
        "the trap frame"
    )
    assert eflags & INTERRUPTS, "interrupts are disabled"


@pytest.mark.exercise("4.1", points=2)
def test_ten_thousand_lives(lab):
    """Threads begin and end, by return and by kthread_exit: no task and no page is lost."""
    count, at_a_time = (10_000, 8) if lab.mode == "icount" else (1_000, 8)
    with threads(lab, SWITCH, "many_lives", count, at_a_time) as run:
        tasks, pages, tasks_after, pages_after = run.answers()
    assert tasks_after == tasks
    assert pages_after == pages, f"{pages - pages_after} pages are lost after {count} threads"


@pytest.mark.exercise("4.1", points=2)
def test_new_thread_behind_the_end(lab):
    """A thread that runs for the first time frees what the one before could not free itself."""
    with threads(lab, SWITCH, "new_after_end") as run:
        run.guest.run_to("kernel_stack_destroy")
        flags = run.guest.registers()["eflags"]
        before, *inside, after = run.answers()
    assert not flags & INTERRUPTS, "interrupts are enabled before the new thread frees what is left"
    # Two begin. The first one ends as the second begins, which has a child, and so on.
    assert after == before, f"{after - before} tasks are left over"
    assert inside == [before + 2, before + 1], f"the threads saw {inside} tasks, before {before}"


@pytest.mark.exercise("4.1", points=2)
def test_stack_is_freed_by_another(lab):
    """No stack is freed while ESP is in it."""
    with threads(lab, TURNS, "end_and_go_on") as run:
        for _ in range(3):
            run.guest.run_to("kernel_stack_destroy")
            esp = run.guest.registers()["esp"]
            stack = run.guest.read_word(esp + 4)
            assert not stack <= esp < stack + KERNEL_STACK, "a thread frees the stack it stands on"
        run.finish()


@pytest.mark.exercise("4.1", points=2)
def test_idle_task_competes_with_nobody(lab):
    """While threads are ready the idle task never runs; while all sleep, nobody else does."""
    with threads(lab, SWITCH, "beside_the_idle_task") as run:
        begin, busy, ended, slept = (each - run.first_change for each in run.answers())
        record = run.changes()
    crowd = [change for change in record if change.after == IDLE]
    assert slept - ended >= 2, "the first thread did not sleep"
    late = record[-(slept - ended) :]
    assert crowd, "the idle task has never run"
    assert all(change in late for change in crowd), "the idle task runs while others are ready"
    assert {change.after for change in late} <= {IDLE, 1}
    assert busy - begin > 100, "the two threads did not take turns"


@pytest.mark.exercise("4.1", points=2)
def test_accounts(lab):
    """Each thread pays for its own time, and switches are counted; nobody was pre-empted."""
    seeded = random.Random(lab.seed)
    work = [seeded.randrange(STAMPS_PER_MS, 5 * STAMPS_PER_MS) for _ in range(3)]
    with threads(lab, SWITCH, "accounts", *work) as run:
        found = run.answers()
    for index, stamps in enumerate(work):
        total, switches, preemptions = found[3 * index : 3 * index + 3]
        most = 4.4 * stamps + STAMPS_PER_MS // 2
        assert 4 * stamps <= total <= most, (
            f"a thread that used {4 * stamps} time stamps has {total} on its account"
        )
        assert switches == 5, f"it got the processor 5 times, and {switches} are counted"
        assert preemptions == 0


@pytest.mark.exercise("4.1", points=1)
def test_no_gap_between_accounts(lab):
    """Of the time in which two threads take turns, one of them pays for every cycle."""
    with threads(lab, SWITCH, "no_gap") as run:
        passed, paid = run.answers()
    assert paid == passed, f"{passed} time stamps have passed, and {paid} are on accounts"


@pytest.mark.exercise("4.1", points=1)
def test_who_is_pre_empted(lab):
    """A pre-emption is counted for the one that was, and not for the one that comes; the record
    says why each of them lost the processor."""
    with threads(lab, SWITCH, "who_is_pre_empted") as run:
        found = run.answers()
        record = run.changes()
    assert found == [1, 0], f"one was pre-empted, the next one not; {found} are counted"
    reasons = {}
    for change in record:
        reasons.setdefault(change.before, []).append(change.reason)
    one, other = sorted(set(reasons) - {IDLE, 1})
    told = (reasons[one], reasons[other])
    assert told == ([PREEMPTED, ENDS], [YIELDED, ENDS]), f"the reasons in the record: {told}"


@pytest.mark.exercise("4.1", points=1)
def test_interrupt_flag_is_each_threads_own(lab):
    """Behind yield it is as it was before, whatever the others had."""
    with threads(lab, SWITCH, "flags") as run:
        found = [bool(word & INTERRUPTS) for word in run.answers()]
    assert found == [False, False, True, True]


@pytest.mark.exercise("4.1", points=1)
def test_alone(lab):
    """schedule without anybody else: the task goes on, nothing is recorded or counted, and the
    request for a change is done."""
    with threads(lab, SWITCH, "alone") as run:
        request, records, switches, preemptions, is_ready = run.answers()
    assert request == 0, "WORK_SCHEDULE is still there after schedule, for a task that is alone"
    assert records == 0, f"{records} changes from a task to itself are recorded"
    assert switches == 0, f"a task alone got the processor from itself {switches} times"
    assert preemptions == 0, f"a task alone has been pre-empted by itself {preemptions} times"
    assert is_ready, "the task is not ready any more"


@pytest.mark.exercise("4.1", points=1)
def test_request_is_done(lab):
    """WORK_SCHEDULE is cleared by the change that it asked for, whoever made it; and nothing else
    that is to be done."""
    with threads(lab, SWITCH, "clears_the_request") as run:
        found = run.answers()
    assert not any(word & WORK_SCHEDULE for word in found), "WORK_SCHEDULE is still there"
    assert found == [0, WORK_TICK], "a tick that is to be counted is forgotten"


@pytest.mark.exercise("4.1", points=1)
def test_order_of_a_change(lab):
    """Who runs pays before it is queued: its time decides about its place. And the next one is
    loaded before the switch, with everything that belongs to it."""
    with threads(lab, SWITCH, "for_ever") as run:
        guest = run.guest
        functions = guest.read_words(guest.read_word(guest.address("sched_class")), len(CLASS))
        steps = dict(zip(functions, CLASS, strict=True))
        places = {at: name for at, name in steps.items() if name in ("charge", "enqueue", "pick")}
        places |= {guest.address(name): name for name in ("task_load", "switch_to")}
        at_yield(run)
        order = [places[guest.run_to(*places, goal="the next step of a change")] for _ in places]
        to, current = guest.read_word(guest.registers()["esp"] + 8), guest.address("current")
        is_current = guest.read_word(current) == to
    assert order == ["charge", "enqueue", "pick", "task_load", "switch_to"], (
        f"the steps of a change are {', '.join(order)}"
    )
    assert is_current, "at switch_to `current` is not the task that comes"


@pytest.mark.exercise("4.1", points=1)
def test_record(lab):
    """Every change is recorded: from whom, to whom, why, in the order of time."""
    count, rounds = 3, 4
    with threads(lab, TURNS, "take_turns", count, rounds, 1, 2, 3) as run:
        run.finish()
        record = run.changes()
    for one, next_one in pairwise(record):
        assert one.after == next_one.before, "a change is missing in the record"
        assert one.stamp <= next_one.stamp
    pids = sorted({change.after for change in record} - {1})
    assert len(pids) == count
    turns = [change.after for change in record if change.after != 1]
    assert turns == pids * (rounds + 1)
    assert {change.reason for change in record[: count * rounds]} == {YIELDED}


@pytest.mark.exercise("4.1", points=1)
def test_no_memory(lab):
    """kthread_create returns NULL when there is no room, and pre-emption is as it was before."""
    with threads(lab, SWITCH, "no_memory") as run:
        count, preempt_count, works_again = run.answers()
    assert 100 < count < TASK_LIMIT
    assert preempt_count == 0, "preempt_count has changed"
    assert works_again


@pytest.mark.exercise("4.1", points=1)
def test_creation_is_not_interrupted(lab):
    """A tick in the middle of kthread_create changes no tasks: half a task stands in the lists."""
    with threads(lab, SWITCH, "create_twice") as run:
        for _ in range(2):
            run.guest.run_to("kernel_stack_create")
        now = run.guest.registers()
        if now["eflags"] & INTERRUPTS:
            home = run.guest.read_word(now["esp"])
            interrupt(run.guest)
            reached = run.guest.run_to(home, "switch_to", goal="the end of kernel_stack_create")
            assert reached == home, "another task runs while a thread is being made"


@pytest.mark.exercise("4.1", points=2)
def test_price(lab):
    """yield has a limit, and so has the switch itself: from task_load in one thread to the return
    of yield in the other."""
    with threads(lab, SWITCH, "for_ever") as run:
        *_, home, other_home = [at_yield(run) for _ in range(8)]
        whole = steps_to(run.guest, home, 4 * YIELD_BUDGET)
        at_yield(run)
        run.guest.run_to("task_load")
        switch = steps_to(run.guest, other_home, 4 * SWITCH_BUDGET)
    assert len(whole) <= YIELD_BUDGET, f"yield takes {len(whole)} instructions"
    assert len(switch) <= SWITCH_BUDGET, f"the switch takes {len(switch)} instructions"


def at_yield(run: Threads) -> int:
    """Runs to the next call of yield, and returns where it will return to."""
    run.guest.run_to("yield")
    return run.guest.read_word(run.guest.registers()["esp"])


@pytest.mark.exercise("4.1", points=2, once=True)
def test_tick_anywhere(lab):
    """Threads begin others and end, with a tick before each instruction of the exercise in turn."""
    wrong = {1: "a thread does not come to its end", 2: "the threads have not each run once"}
    assert search(lab, "4.1", "lives_of_threads", wrong)
