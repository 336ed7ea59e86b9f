"""Exercise 2.4: the interrupt controllers and the timer."""

from __future__ import annotations

import pytest

from tests.lesson2.support import LOOP, go_round, run_recorded, stopped_at, trap_frame


@pytest.mark.exercise("2.4", points=1)
def test_timer_ticks(lab):
    """IRQ 0 arrives as vector 32, more than once, and never as vector 8 (a double fault)."""
    result, traps = run_recorded(lab, "probe work")
    result.check()
    vectors = [trap.vector for trap in traps]
    assert 8 not in vectors, "IRQ 0 came as vector 8: the controllers were not initialized anew"
    assert vectors.count(32) >= 2, "no second tick: was the end of the interrupt (END) sent?"


@pytest.mark.exercise("2.4", points=1)
def test_keyboard(lab):
    """IRQ 1 arrives as vector 33, and brings the key A, twice."""
    with stopped_at(lab, "prompt") as machine:
        go_round(machine)
        machine.out8(0x21, 0xFD)  # the timer must not disturb
        for _ in range(2):
            machine.out8(0x64, 0xD2)  # to the keyboard controller: the next byte is a key's
            machine.out8(0x60, 0x1E)
            machine.run_to(machine.address("trap_dispatch"))
            assert trap_frame(machine)[1]["vector"] == 33
            machine.run_to(LOOP)
            typed = machine.call(machine.address("keyboard_get"))
            assert typed == ord("a"), f"keyboard_get gives {typed}, not the key that was pressed"
