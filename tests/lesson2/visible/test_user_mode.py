"""Exercise 2.6: into ring 3, and back by an exception."""

from __future__ import annotations

import pytest

from tests.lesson2.support import run_recorded, user_exceptions

GENERAL_PROTECTION, PAGE_FAULT, INVALID_OPCODE = 13, 14, 6


@pytest.mark.exercise("2.6", points=1)
def test_ring_3_is_entered(lab):
    """A snippet runs in ring 3, says QEMU, and ends with an invalid opcode."""
    result, traps = run_recorded(lab, "probe nothing; probe nothing")
    result.check()
    seen = [trap.vector for trap in user_exceptions(traps)]
    assert seen == [INVALID_OPCODE] * 2, f"QEMU has seen these exceptions of ring 3: {seen}"


@pytest.mark.exercise("2.6", points=1)
def test_ring_3_is_held(lab):
    """HLT and the kernel's memory are out of its reach."""
    result, traps = run_recorded(lab, "probe hlt; probe read 0xc0100000")
    result.check()
    seen = [(trap.vector, trap.error_code) for trap in user_exceptions(traps)]
    assert seen == [(GENERAL_PROTECTION, 0), (PAGE_FAULT, 5)], f"exceptions, error codes: {seen}"
