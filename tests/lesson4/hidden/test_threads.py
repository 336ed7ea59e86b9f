"""Exercise 4.1, hidden: the switch itself, first steps, and ends."""

from __future__ import annotations

import random

import pytest

from tests.lesson4.played import BACK, KEPT, STACK, Play, Played, played
from tests.lesson4.races import Once, search
from tests.lesson4.stage import SECONDS
from tests.lesson4.support import INTERRUPTS
from tests.lesson4.turns import YIELDS, turn
from tests.support.outside import words_of

FRAME_BYTES = 4 * 19
SWITCH_FRAME_BYTES = 4 * 5


def random_words(lab, count: int) -> list[int]:
    """Different words of 32 bits."""
    return random.Random(lab.seed).sample(range(1 << 32), count)


@pytest.mark.exercise("4.1", points=2, gate=True, once=True)
def test_many_threads_take_turns(lab):
    """Many threads: they run in the order in which they began, each with its own argument and
    stack, and go on where they were."""
    seeded = random.Random(lab.seed)
    count, rounds = seeded.randrange(3, 20), seeded.randrange(3, 8)
    arguments = random_words(lab, count)
    found: list[int] = []
    stacks: set[int] = set()
    with played(lab) as play:

        def thread(number: int):
            stacks.add(play.player.now["esp"])
            yield from turn(found, rounds)(number)

        def main():
            play.quiet()
            for each in arguments:
                yield from play.begin(thread, each)
            yield from play.await_ends()

        play.run(main())
    assert found == arguments * rounds, "the threads do not run in turn"
    assert len(stacks) == count, f"{count} threads run on {len(stacks)} stacks"


@pytest.mark.exercise("4.1", points=3, gate=True, once=True)
def test_registers_of_the_switch(lab):
    """switch_to between two bare stacks: EBX, ESI, EDI, EBP and ESP are kept, and a forged frame is
    loaded word by word. EAX, ECX and EDX are undefined."""
    values = random_words(lab, 14)
    kept, forged, others = (dict(zip(KEPT, values[at:], strict=False)) for at in (0, 4, 8))
    with played(lab) as play:
        play.quiet()
        guest, there = play.guest, play.function(play.spin)
        here_task, there_task = play.zeroed(play.task["size"]), play.zeroed(play.task["size"])
        frame = play.zeroed(0x400) + 0x300
        words = words_of(*(forged[name] for name in ("edi", "esi", "ebx", "ebp")), there)
        guest.put_data(frame, words)
        play.set_word(there_task, frame)
        before = guest.registers()
        esp = before["esp"] - 0x200
        any_values = {"eax": values[12], "ecx": values[13], "edx": values[12] ^ values[13]}
        start = before | any_values | {"eip": guest.address("switch_to"), "eflags": 2}
        first = guest.leap(
            start | kept | {"esp": esp}, words_of(BACK, here_task, there_task), 6, "there"
        )
        assert first["eip"] == there, f"switch_to goes on at {first['eip']:#x}"
        second_esp = first["esp"] - 0x40
        stack = words_of(there, there_task, here_task)
        second = guest.leap(start | others | {"esp": second_esp}, stack, SECONDS, "the first stack")
        assert second["eip"] == BACK, f"switch_to comes back at {second['eip']:#x}"
    for name in KEPT:
        assert first[name] == forged[name], (
            f"the new stack has {forged[name]:#x} for {name.upper()}, and {first[name]:#x} comes"
        )
        assert second[name] == kept[name], (
            f"{name.upper()} was {kept[name]:#x}, and is {second[name]:#x} after switch_to"
        )
    assert first["esp"] == frame + SWITCH_FRAME_BYTES, "the new stack's ESP is wrong"
    assert second["esp"] == esp + 4, f"ESP has moved by {second['esp'] - esp - 4}"


@pytest.mark.exercise("4.1", points=2, once=True)
def test_first_steps(lab):
    """A thread's first instruction: its argument, an aligned stack of its own near its top, no
    caller, interrupts enabled, even if its creator had them disabled."""
    argument = random_words(lab, 1)[0]
    born: dict[str, int] = {}
    with played(lab) as play:

        def newborn(number: int):
            born.update(play.player.begun, argument=number)
            yield from ()

        def main():
            play.quiet()
            play.interrupts(False)
            task = yield from play.begin(newborn, argument)
            assert not play.are_enabled, (
                "its maker had interrupts disabled, and has them enabled after kthread_create"
            )
            born.update(low=play.stack_of(task), frame=play.of(task, "esp"))
            name = play.guest.data(task + play.task["name"], 4)
            assert name == b"test", "the thread does not have the name that was given"
            yield from play.await_ends()

        play.run(main())
    low, esp = born["low"], born["esp"]
    high = low + STACK
    assert born["argument"] == argument
    assert low <= esp < high, f"ESP is {esp:#x}, and the stack {low:#x} to {high:#x}"
    assert esp >= high - FRAME_BYTES - 64, f"{high - esp} bytes of the stack are used already"
    assert (esp + 4) % 16 == 0, f"ESP is {esp:#x}: the argument must be at a multiple of 16"
    assert born["ebp"] == 0, f"EBP is {born['ebp']:#x}: the chain of callers has no end"
    assert born["frame"] == high - FRAME_BYTES - SWITCH_FRAME_BYTES, (
        f"its first switch frame is {high - born['frame']} bytes below the stack's end: not "
        "directly below the trap frame"
    )
    assert born["eflags"] & INTERRUPTS, "interrupts are disabled"


@pytest.mark.exercise("4.1", points=2, once=True)
def test_thousands_of_threads(lab):
    """Thousands of threads that end by return and by kthread_exit: no task and no page is lost.
    They run functions of the kernel."""
    rounds, at_a_time = 250, 8
    with played(lab) as play:
        places = [play.guest.address(each) for each in ("yield", "kthread_exit")]

        def main():
            play.quiet()
            name = play.guest.text("life")
            creates = [("kthread_create", name, places[n % 2], n) for n in range(at_a_time)]
            lives = [*creates, *YIELDS[:4]]
            yield lives
            tasks, pages = play.word("task_count"), (yield "page_free_count")
            for _ in range(rounds):
                yield lives
            assert play.word("task_count") == tasks
            lost = pages - (yield "page_free_count")
            assert lost == 0, f"{lost} pages are lost after {rounds * at_a_time} threads"

        play.run(main())


@pytest.mark.exercise("4.1", points=2, once=True)
def test_new_thread_frees_the_ended_one(lab):
    """A thread that runs for the first time: it frees the ended thread before it."""
    counts: list[int] = []
    flags: list[int] = []
    with played(lab) as play:

        def last_look(_argument: int):
            counts.append(play.word("task_count"))
            yield from ()

        def end_after_a_child(_argument: int):
            yield from play.begin(last_look)

        def main():
            play.quiet()
            play.preempt_disable()
            before = play.word("task_count")
            yield from play.begin(end_after_a_child)
            yield from play.begin(last_look)
            yield YIELDS
            # Two begin. The first one ends as the second begins, which has a child, and so on.
            assert counts == [before + 2, before + 1], f"the threads saw {counts} tasks"
            after = play.word("task_count")
            assert after == before, f"{after - before} tasks are left over"

        with play.watching(kernel_stack_destroy=lambda now: flags.append(now["eflags"])):
            play.run(main())
    assert flags, "no stack is freed"
    assert not flags[0] & INTERRUPTS, "interrupts are enabled before the new thread frees"


@pytest.mark.exercise("4.1", points=2, once=True)
def test_stack_is_freed_by_another(lab):
    """A stack: it is not freed while ESP is in it."""
    freed: list[int] = []
    with played(lab) as play:

        def look(now: dict[str, int]) -> None:
            stack = play.guest.read_word(now["esp"] + 4)
            assert not stack <= now["esp"] < stack + STACK, (
                "a thread frees the stack that it runs on"
            )
            freed.append(stack)

        def end_by_call(_argument: int):
            yield "kthread_exit"

        def main():
            play.quiet()
            for thread in (turn([], 0), end_by_call, turn([], 0)):
                yield from play.begin(thread)
            yield YIELDS

        with play.watching(kernel_stack_destroy=look):
            play.run(main())
    assert len(freed) == 3, f"of three stacks {len(freed)} are freed"


def two_lives(play: Play) -> Once:
    """A thread begins another one, besides a third: each runs once, to its end."""
    arrived = 0

    def arrive(number: int) -> Played:
        nonlocal arrived
        arrived += number
        yield from ()

    def be_mother(number: int) -> Played:
        yield from play.begin(arrive, number)
        yield from arrive(1)

    def once() -> Played:
        nonlocal arrived
        arrived, before = 0, play.word("task_count")
        yield from play.begin_all((be_mother, 10), (arrive, 100))
        yield [("yield",)] * 12
        if play.word("task_count") != before:
            return "a thread does not come to its end"
        return "" if arrived == 111 else "the threads have not each run once"

    return once


@pytest.mark.exercise("4.1", points=2, once=True)
def test_tick_anywhere(lab):
    """Threads that create others and end, with a tick before each instruction of the exercise in
    turn: all of them run and end."""
    assert search(lab, "4.1", two_lives)
