"""Exercise 2.4: the interrupt controllers and the timer.

Not looked at here, but by the graders: IRQ 8 to 15, spurious interrupts, and other rates.
"""

from __future__ import annotations

import pytest

from tests.lesson2.support import LOOP, go_round, run_recorded, stopped_at, trap_frame
from tests.support.told import Usual, expect, require, told

FREQUENCY, RATE = 1193182, 100  # Hz: the PIT's own clock, and the kernel's ticks
LATE = 200  # of the PIT's counts, until pit_initialize has returned
MASKS = (0x21, 0xA1)  # the ports of both controllers' mask registers
IN_SERVICE = 0x0B  # OCW3: the next read of the command port gives the in-service bits
NO_EOI = "no EOI (0x20, to the command port) follows the first interrupt, so no other comes"
VECTOR = "ICW2, the vector of the controller's first IRQ, comes right after ICW1: it must be 32"
KEY = "make gdb LESSON=2 BOOT=direct, then: tbreak pic_dispatch, continue, monitor info pic"


@pytest.mark.exercise("2.4", points=1, gate=True)
def test_timer_ticks(lab):
    """IRQ 0 arrives as vector 32, more than once, and never as vector 8 (a double fault)."""
    usually = (
        Usual("seen 1$", NO_EOI),
        Usual("seen 0$", "IRQ 0 stays masked: pit_initialize registers pit_tick as its handler"),
        Usual("seen 0$|exception 8|as vector 8", VECTOR),
        NO_EOI,
        VECTOR,
    )
    with told(usually, KEY):
        result, traps = run_recorded(lab, "probe work")
        result.check()
        vectors = [trap.vector for trap in traps]
        came = "IRQ 0 came as vector 8, which is the double fault: the first controller's vectors"
        require(8 not in vectors, f"{came} still begin at 8, as the BIOS has them")
        ticks = vectors.count(32)
        require(ticks >= 2, f"timer interrupts (vector 32): expected 2 or more, seen {ticks}")


@pytest.mark.exercise("2.4", points=1)
def test_all_irqs_are_masked(lab):
    """After pic_initialize every IRQ is masked, though all were let through before."""
    usually = (
        "the last word to a controller's mask register is 0xff: a set bit masks an IRQ",
        "ICW4 is missing: the controller takes the next word for it, and the mask is not written",
    )
    with told(usually, "make hint EX=2.4"), stopped_at(lab, "pic_initialize") as machine:
        (caller,) = machine.read_words(machine.registers()["esp"], 1)
        for port in MASKS:
            machine.out8(port, 0)
        machine.run_to(caller, goal="the end of pic_initialize")
        masks = ", ".join(f"{machine.in8(port):#x}" for port in MASKS)
        expect("mask registers after pic_initialize, first and second", masks, "0xff, 0xff")


@pytest.mark.exercise("2.4", points=1)
def test_rate(lab):
    """The timer's counter begins at the divisor for 100 Hz."""
    usually = (
        Usual("about (100|[0-9]{1,2}) counts", "the divisor is FREQUENCY / hz, not hz itself"),
        "its low byte is sent first, then its high byte",
    )
    with told(usually, "make hint EX=2.4"), stopped_at(lab, "pit_initialize") as machine:
        (caller,) = machine.read_words(machine.registers()["esp"], 1)
        machine.run_to(caller, goal="the end of pit_initialize")
        machine.out8(0x43, 0)  # latch channel 0
        count = machine.in8(0x40) | machine.in8(0x40) << 8 or 1 << 16  # the counter's 0
        divisor = FREQUENCY // RATE
        is_right = divisor - LATE <= count <= divisor + 1
        found = f"about {count} counts, which is {FREQUENCY // count} Hz"
        wanted = f"{divisor} counts from tick to tick, which is {RATE} Hz"
        require(is_right, f"the timer's counter: expected {wanted}; seen {found}")


@pytest.mark.exercise("2.4", points=1, gate=True)
def test_keyboard(lab):
    """IRQ 1 arrives as vector 33, and brings the key A, twice."""
    usually = (
        Usual("second key", NO_EOI),
        Usual("vector of the keyboard", VECTOR),
        Usual(
            "bit for IRQ 1",
            "ICW4 is missing, or is not MODE_8086: the controller takes the next word for it, and "
            "ends interrupts by itself",
        ),
    )
    with told(usually, KEY), stopped_at(lab, "prompt") as machine:
        go_round(machine)
        machine.out8(0x21, 0xFD)  # the timer must not disturb
        for time in ("first", "second"):
            machine.out8(0x64, 0xD2)  # to the keyboard controller: the next byte is a key's
            machine.out8(0x60, 0x1E)
            machine.run_to("trap_dispatch", goal=f"the interrupt of the {time} key (IRQ 1)")
            expect("vector of the keyboard (IRQ 1)", trap_frame(machine)[1]["vector"], 33)
            machine.out8(0x20, IN_SERVICE)
            bit = machine.in8(0x20) >> 1 & 1
            expect("the controller's bit for IRQ 1 in service, in its handler", bit, 1)
            machine.run_to(LOOP, goal="the interrupted code, after the handler")
            typed = machine.call("keyboard_get")
            expect(f"keyboard_get after the {time} A", f"{typed:#x}", f"{ord('a'):#x}")
