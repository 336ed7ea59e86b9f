"""Exercise 4.1: threads of the kernel, which take turns."""

from __future__ import annotations

import pytest

from tests.lesson4.support import threads


@pytest.mark.exercise("4.1", points=1)
def test_two_threads_take_turns(lab):
    """Each of two threads says its argument, and yields to the other one."""
    with threads(lab, "tests/lesson4/threads/turns.c", "take_turns", 2, 3, 7, 8) as run:
        found = run.answers()
    assert found == [7, 8, 7, 8, 7, 8], f"threads 7 and 8 take turns, and ran as {found}"


@pytest.mark.exercise("4.1", points=1)
def test_threads_end(lab):
    """By returning and by kthread_exit; the others go on."""
    with threads(lab, "tests/lesson4/threads/turns.c", "end_and_go_on") as run:
        found = run.answers()[:3]
    assert found == [1, 2, 3], f"threads 1, 2 and 3 ran as {found}"
