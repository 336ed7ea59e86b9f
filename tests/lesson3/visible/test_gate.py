"""Exercise 3.1: the gate for INT 0x80, and the way from the number to the function."""

from __future__ import annotations

import pytest

from tests.lesson3.support import ENOSYS, GETPID, STACK, USER_CODE, USER_DATA, ring3, same


@pytest.mark.exercise("3.1", points=1)
def test_getpid(lab):
    """Ring 3 asks for its number by INT 0x80, and goes on with the answer in EAX."""
    with ring3(lab) as caller:
        for time in ("first", "second"):
            found = caller.result(GETPID)
            assert found == 1, f"the {time} getpid returns {found}, not 1"


@pytest.mark.exercise("3.1", points=1)
def test_unknown_number(lab):
    """A number that no call has is -ENOSYS."""
    with ring3(lab) as caller:
        for number in (0, 400, 511):
            found = caller.result(number)
            assert found == -ENOSYS, f"call {number} returns {found}, not {-ENOSYS}"


@pytest.mark.exercise("3.1", points=1)
def test_other_registers_stay(lab):
    """Behind a call the program is in ring 3 again, and all its registers but EAX are what they
    were, the segments' too."""
    mine = {"ebx": 0x1111, "ecx": 0x2222, "edx": 0x3333, "esi": 0x4444, "edi": 0x5555}
    mine |= {"ebp": 0x6666, "esp": STACK - 8, "ds": USER_DATA, "es": USER_DATA}
    with ring3(lab) as caller:
        after = caller.call(GETPID, **mine)
    same(after, mine | {"cs": USER_CODE, "ss": USER_DATA}, "behind a call")
