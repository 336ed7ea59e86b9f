"""Exercise 3.5: the ring of the latest system calls."""

from __future__ import annotations

import pytest

from tests.lesson3.support import DATA, ENOENT, GETPID, OPEN, ring3
from tests.lesson3.tracing import Ring


@pytest.mark.exercise("3.5", points=1)
def test_calls_are_recorded(lab):
    """Number, arguments, result, and the name of a file."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        ring.switch(True)
        caller.call(GETPID, 11, 22, 33)
        caller.call(OPEN, caller.write(DATA, b"/nothing\0"), 0)
        assert ring.total() == 2
        first, second = ring.record(0), ring.record(1)
    assert (first.number, first.arguments[:3], first.result) == (GETPID, (11, 22, 33), 1)
    assert (second.number, second.result, second.text) == (OPEN, -ENOENT, b"/nothing")
    assert first.finished == second.finished == 1


@pytest.mark.exercise("3.5", points=1)
def test_records_can_be_read(lab):
    """The oldest first, no more than asked for, and none twice."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        ring.switch(True)
        for i in range(5):
            caller.call(GETPID, 100 + i)
        with caller.in_kernel():
            got, following, lost = ring.read(0, 3)
            assert [each.arguments[0] for each in got] == [100, 101, 102]
            got, following, _ = ring.read(following, 2)
            assert [each.arguments[0] for each in got] == [103, 104]
            assert (following, lost) == (5, 0)
