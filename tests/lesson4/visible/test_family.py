"""Exercise 4.5: fork, exit and wait."""

from __future__ import annotations

import pytest

from tests.lesson4.support import run_programs


@pytest.mark.exercise("4.5", points=1)
def test_fork_and_wait(lab):
    """A child runs, and its parent learns its exit code."""
    lines = run_programs(lab, "tests/lesson4/programs/children.c", "simple 41 7")
    assert lines[:1] == ["child 41"], f"the child has not run: {lines}"
    assert lines == ["child 41", "same 1", "code 7"], f"pid and exit code for the parent: {lines}"


@pytest.mark.exercise("4.5", points=1)
def test_own_memory(lab):
    """What parent and child write after the fork, the other one does not see."""
    lines = run_programs(lab, "tests/lesson4/programs/children.c", "memory 1000 2000")
    assert lines == ["child 3", "parent 4"], f"both write to the same memory: {lines}"
