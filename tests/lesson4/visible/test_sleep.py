"""Exercise 4.3: sleeping, and being woken."""

from __future__ import annotations

import pytest

from tests.lesson4.support import threads


@pytest.mark.exercise("4.3", points=1)
def test_msleep(lab):
    """A sleep of 50 ms takes that long, and not much longer."""
    with threads(lab, "tests/lesson4/threads/sleep.c", "a_short_sleep", 50) as run:
        (microseconds,) = run.answers()
    assert 50_000 <= microseconds < 80_000, f"msleep(50) took {microseconds} us"


@pytest.mark.exercise("4.3", points=1)
def test_semaphore(lab):
    """Two threads hand over to each other, in turn."""
    with threads(lab, "tests/lesson4/threads/sleep.c", "hand_over") as run:
        found = run.answers()
    assert found == [0, 9, 1, 9, 2, 9], f"9 was to run after each of 0, 1 and 2: {found}"
