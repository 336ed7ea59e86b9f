"""Exercise 4.6: a fair share for everybody."""

from __future__ import annotations

import pytest

from tests.lesson4.support import pairs, threads


@pytest.mark.exercise("4.6", points=1)
def test_equal_threads_take_turns(lab):
    """Three threads that use as much, and yield."""
    with threads(lab, "tests/lesson4/threads/fair.c", "in_turn") as run:
        found = run.answers()
    counts = [found.count(number) for number in (1, 2, 3)]
    assert counts == [3, 3, 3], f"three threads were to run three times each: {counts}"
    assert sorted(found[:3]) == [1, 2, 3], f"not everybody has run in the first round: {found}"


@pytest.mark.exercise("4.6", points=1)
def test_nice_threads_get_less(lab):
    """Of two threads that only count, the one of niceness 5 gets less."""
    with threads(lab, "tests/lesson4/threads/fair.c", "shares", 2, 40, 0, 5) as run:
        plain, nice = pairs(run.answers())
    assert nice > 0, "the thread of niceness 5 has not run at all"
    assert nice < plain, f"niceness 5 has had {nice / plain:.2f} of what niceness 0 has had"
