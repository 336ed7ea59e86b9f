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
        total = ring.total()
        assert total == 2, f"behind two calls total is {total}"
        first, second = ring.record(0), ring.record(1)
    found = (first.number, first.arguments[:3], first.result, first.finished)
    assert found == (GETPID, (11, 22, 33), 1, 1), f"getpid's record is {first}"
    found = (second.number, second.result, second.text, second.finished)
    assert found == (OPEN, -ENOENT, b"/nothing", 1), f"open's record is {second}"


@pytest.mark.exercise("3.5", points=1)
def test_records_can_be_read(lab):
    """The oldest first, no more than asked for, and none twice."""
    with ring3(lab) as caller:
        ring = Ring(caller.guest)
        ring.switch(True)
        for i in range(5):
            caller.call(GETPID, 100 + i)
        with caller.in_kernel():
            following = 0
            for count, expected in ((3, [100, 101, 102]), (2, [103, 104])):
                got, following, lost = ring.read(following, count)
                found = [each.arguments[0] for each in got]
                assert found == expected, f"the reader gets the calls {found}, not {expected}"
                assert lost == 0, f"the reader counts {lost} lost records, and all are there"
            assert following == 5, f"behind five records *next is {following}"
