"""Exercise 4.4: feedback queues, and mutexes that inherit urgency."""

from __future__ import annotations

import pytest

from tests.lesson4.support import threads


@pytest.mark.exercise("4.4", points=1)
def test_urgent_threads_first(lab):
    """Threads of niceness 10, -10 and 0 begin together: -10 is the first to run."""
    with threads(lab, "tests/lesson4/threads/locks.c", "urgent_first") as run:
        found = [{1: 10, 2: -10, 3: 0}.get(number) for number in run.answers()]
    assert found == [-10, 0, 10], f"the threads ran in the order of niceness {found}"


@pytest.mark.exercise("4.4", points=1)
def test_mutex(lab):
    """Three threads yield while they hold the mutex; no other one gets in."""
    with threads(lab, "tests/lesson4/threads/locks.c", "exclusion") as run:
        found = run.answers()
    assert len(found) == 12, f"three threads enter and leave twice each: {found}"
    assert found[0::2] == found[1::2], f"one entered before the other had left: {found}"


@pytest.mark.exercise("4.4", points=1)
def test_a_loan(lab):
    """The holder of a mutex is as urgent as who waits for it, until it is unlocked."""
    with threads(lab, "tests/lesson4/threads/locks.c", "one_loan") as run:
        before, during, *rest = run.answers()
    assert (before, during) == (6, 0), "the holder did not inherit the urgency 0"
    assert sorted(rest) == [6, 7, 8], "the loan was not returned, or the mutex not handed over"
