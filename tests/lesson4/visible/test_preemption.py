"""Exercise 4.2: the clock takes the processor away."""

from __future__ import annotations

import pytest

from tests.lesson4.support import PREEMPTED, threads


@pytest.mark.exercise("4.2", points=1)
def test_threads_that_never_yield(lab):
    """Two threads that only count, and a third one: all of them run."""
    with threads(lab, "tests/lesson4/threads/clock.c", "two_spinners") as run:
        have_run = run.answers()
        reasons = {change.reason for change in run.changes()}
    assert have_run == [1, 1], "one of two threads that never yield has not run at all"
    assert PREEMPTED in reasons, "all have run, but no change is recorded as SCHED_PREEMPTED"


@pytest.mark.exercise("4.2", points=1)
def test_keeping_the_processor(lab):
    """Between preempt_disable and preempt_enable nobody else runs."""
    with threads(lab, "tests/lesson4/threads/clock.c", "holds", 5) as run:
        found = run.answers()
    assert found[0] == 1, "another thread ran before the last preempt_enable"
    assert found == [1, 2, 3], "another thread was due, and did not run at the last preempt_enable"
