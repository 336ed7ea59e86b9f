"""Where a kernel stands, in words (tests/support/standstill.py), and how a visible test fails
with them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from labs.tools.grading.lab import ROOT, Lab
from labs.tools.grading.lab_words import in_words
from tests.lesson4.played import Play, Played, played
from tests.lesson4.stage import Reached
from tests.lesson4.waiting import SEMAPHORE, down_and_say
from tests.support.building import make
from tests.support.standstill import Standstill, common, irqs, panic_details, standstill
from tests.support.told import expect, told


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Standstill | list[str] | str]:
    """A kernel where a thread is about to sleep and another one waits; in the timer's interrupt;
    and where every task waits for ever."""
    make("LESSON=4", "build/lesson4/kernel.elf")
    scratch = tmp_path_factory.mktemp("lab")
    lab = Lab(lesson=4, root=ROOT, seed=1, mode="icount", scratch=scratch)
    found: dict[str, Standstill | list[str] | str] = {}
    with played(lab) as play:
        with pytest.raises(Reached):
            play.run(hand_over(play, stop_here))
        found["sleeps"] = standstill(play.guest)
        play.guest.run_to("pit_tick")
        found["interrupt"] = standstill(play.guest)
    with played(lab) as play:
        guest = play.guest
        found["stacks"] = stacks_in_words(play)
        guest.write(guest.address("semaphore_up"), b"\xc3")  # RET: nobody is woken
        with pytest.raises(pytest.fail.Exception) as failure:
            play.run(hand_over(play, down_and_say))
        found["failure"] = in_words(failure.value, "icount", has_details=True)
        guest.run_to("pit_tick")  # not from HLT itself
        idle = guest.address("sched_idle")
        guest.run_to(idle + guest.read(idle, 256).index(b"\xf4\xeb"))  # HLT, JMP
        found["halts soon"] = standstill(guest)
    return found


def stop_here(_semaphore: int, _found: list[int]) -> Callable[[int], Played]:
    """A thread at whose beginning the play ends."""

    def thread(_argument: int) -> Played:
        yield from ()
        raise Reached

    return thread


def hand_over(play: Play, thread: Callable[[int, list[int]], Callable[[int], Played]]) -> Played:
    """A thread waits for a unit, and then this one for another."""
    semaphore, done = play.zeroed(SEMAPHORE), play.zeroed(SEMAPHORE)
    yield from play.begin(thread(semaphore, []))
    yield [("semaphore_up", semaphore), ("semaphore_down", done)]


def stacks_in_words(play: Play) -> list[str]:
    """What a panic's address says: of the task that runs, of its guard page, and of no task."""
    here = play.guest.registers()["esp"]
    lines = (f"PANIC: it read from address {at:#010x}:" for at in (here, here - 8192, 0xF83F7F5C))
    return [panic_details(play.guest, line)[0] for line in lines]


def test_what_each_task_waits_for(seen):
    found = seen["sleeps"]
    assert "for task 2 (test), interrupts enabled" in found.lines[0]
    assert "in semaphore_down, called from a thread of the test" in str(found.lines)


def test_an_interrupt_whose_eoi_is_missing(seen):
    assert any("IRQ 0 (timer) in service" in line for line in seen["interrupt"].lines)


def test_stacks_have_owners(seen):
    own, guard, freed = seen["stacks"]
    assert "is in the kernel stack of task 1 (" in own
    assert "is in the guard page below the kernel stack of task 1 (" in guard
    assert "is in a kernel stack that has been freed" in freed


def test_a_hang_names_the_tasks(seen):
    """In the first line only what is the same in each run."""
    first, *rest = seen["failure"].splitlines()
    assert first.endswith("every task waits for something that does not happen")
    assert sum("in semaphore_down, called from" in line for line in rest) == 2


def test_a_processor_that_is_about_to_halt_counts_as_halted(seen):
    """In the same hang, before HLT: a step over it would never end."""
    first, *_ = seen["failure"].splitlines()
    assert first.endswith(seen["halts soon"].headline)


def test_words():
    assert irqs(0b100000001) == "IRQ 0 (timer), IRQ 8 (clock)"
    assert common([["a", "loop", "main"], ["b", "loop", "main"]]) == ["loop", "main"]


def test_a_failure_is_told_with_its_advice():
    with pytest.raises(pytest.fail.Exception) as failure, told("a guess", "make hint EX=9.9"):
        expect("getpid returns", 2, 1, "getpid")
    words = in_words(failure.value, "icount", has_details=True)
    assert words.splitlines() == [
        "getpid returns: expected 1, seen 2",
        "  where: getpid",
        "  usually: a guess",
        "  next: make hint EX=9.9",
    ]
    assert in_words(failure.value, "icount") == words.splitlines()[0]


def test_a_blank_stays_alone():
    message = "exercise 4.1 is not written yet (labs/lesson4/README.md)"
    with pytest.raises(AssertionError) as failure, told("a guess", "make hint EX=9.9"):
        raise AssertionError(message)
    assert in_words(failure.value, "icount", has_details=True) == message
