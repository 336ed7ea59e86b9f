"""Exercise 2.3: the table of gates, the stubs, and the way in and out."""

from __future__ import annotations

import pytest

from labs.tools.machine.result import Outcome
from tests.lesson2.support import run_recorded


@pytest.mark.exercise("2.3", points=1)
def test_exceptions_are_reported(lab):
    """A page fault comes with the processor's error code, a division by zero without one."""
    result, traps = run_recorded(lab, "crash null")
    assert result.outcome is Outcome.PANIC, result.explain()
    assert "exception 14, page fault (error code 0x2)" in result.serial
    assert traps[-1].vector == 14
    result, traps = run_recorded(lab, "crash divide")
    assert "exception 0, divide error (error code 0x0)" in result.serial, result.explain()
    assert traps[-1].vector == 0


@pytest.mark.exercise("2.3", points=1)
def test_interrupts_return(lab):
    """The timer interrupts the kernel again and again, and it goes on as if nothing had been."""
    result, traps = run_recorded(lab, "probe work")
    result.check()
    ticks = sum(trap.vector == 32 for trap in traps)
    assert ticks >= 2, f"the timer's vector 32 was entered {ticks} times"
