"""Exercise 4.2: the clock takes the processor away."""

from __future__ import annotations

import pytest

from tests.lesson4.support import PREEMPTED, threads, tick_stamps


@pytest.mark.exercise("4.2", points=1)
def test_threads_that_never_yield(lab):
    """Two threads that only count, and a third one: all of them run."""
    with threads(lab, "tests/lesson4/threads/clock.c", "two_spinners") as run:
        assert run.answers() == [1, 1], "a thread that did not yield has kept the processor"
        assert PREEMPTED in {change.reason for change in run.changes()}


@pytest.mark.exercise("4.2", points=1)
def test_keeping_the_processor(lab):
    """Between preempt_disable and preempt_enable nobody else runs."""
    with threads(lab, "tests/lesson4/threads/clock.c", "holds", 5 * tick_stamps(lab)) as run:
        assert run.answers() == [1, 2, 3]
