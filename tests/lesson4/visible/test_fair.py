"""Exercise 4.6: a fair share for each task.

Not looked at here, but by the graders: virtual times that wrap, sleep that is saved up, the
minimum, exact shares, and who pre-empts whom.
"""

from __future__ import annotations

import pytest

from tests.lesson4.played import Busy, played
from tests.lesson4.shares import comes_late, gains, shares
from tests.support.told import Usual, expect, fail, require, told

COMMON = (
    Usual(
        "for ever", "no turn ends: charge adds nothing to the virtual time, or tick is never true"
    ),
)
HINT = "make hint EX=4.6"
ALONE, TOGETHER = 30, 20  # ticks
A_TURN, LONG = 20_000, 4  # instructions; the thread whose turns are as long as four


@pytest.mark.exercise("4.6", points=1, gate=True)
def test_equal_threads_take_turns(lab):
    """Three threads that use as much, and yield; and one that uses more between two others."""
    usually = (
        *COMMON,
        "enqueue does not keep the queue in the order of virtual times, or charge adds nothing",
    )
    with told(usually, HINT):
        found = in_turn(lab, 1, 2, 3)
        counts = [found.count(number) for number in (1, 2, 3)]
        expect("how often three equal threads ran", counts, [3, 3, 3])
        expect("which of them ran in the first round", sorted(found[:3]), [1, 2, 3])
    with told(usually, HINT):
        found = in_turn(lab, LONG, 2, 3)
        what = "turns of thread 4, which uses four times as much, before threads 2 and 3 have ended"
        expect(what, found[:7].count(LONG), 1)


def in_turn(lab, *numbers: int) -> list[int]:
    """Threads that use the processor and yield, three times: who ran, one after the other."""
    found: list[int] = []
    with played(lab) as play:

        def turn(number: int):
            for _ in range(3):
                found.append(number)
                yield Busy((4 if number == LONG else 1) * A_TURN)
                yield "yield"

        def main():
            play.quiet()
            yield from play.use("fair")
            for number in numbers:
                yield from play.begin(turn, number)
            yield from play.await_ends()

        play.run(main())
    return found


@pytest.mark.exercise("4.6", points=1, gate=True)
def test_nice_threads_get_less(lab):
    """Of two threads that only count, the one of niceness 5 gets less."""
    usually = (
        *COMMON,
        Usual(
            r"seen 0 percent", "is_before compares plain numbers, not the sign of the difference"
        ),
        "charge adds cycles * weight / WEIGHT_0 in place of cycles * WEIGHT_0 / weight",
    )
    with told(usually, HINT):
        plain, nice = shares(lab, 0, 5, ticks=40)
        share = round(100 * nice / (plain + nice)) if plain + nice else 0
        what = "the share of niceness 5 against niceness 0: expected about 25 percent"
        require(0 < nice < plain, f"{what}, seen {share} percent")


@pytest.mark.exercise("4.6", points=1)
def test_a_new_thread(lab):
    """A new thread begins next to one that has computed for long: both get the processor."""
    usually = (
        *COMMON,
        "join sets the virtual time to 0 in place of minimum: the new task has had far less",
    )
    with told(usually, HINT):
        old, young = gains(lab, 1, comes_late, ALONE, TOGETHER)
        share = round(100 * old / (old + young)) if old + young else 0
        if not 30 <= share <= 70:
            fail(
                f"the share of a thread in the {TOGETHER} ticks after a new one began: expected "
                f"about 50 percent, seen {share} percent"
            )
