"""All exercises of lesson 2 in one kernel: what the handout shows under "What you will see". What
it prints could be printed by anything, so QEMU's record of traps is asked as well."""

from __future__ import annotations

import random

import pytest

from labs.tools.machine.result import Outcome
from tests.lesson1.picture import expect, fail
from tests.lesson2.support import KERNEL_BASE, TIMER, run_recorded, user_exceptions

UNDEFINED, PROTECTION, PAGE = 6, 13, 14
CRASHES = (
    ("null", 0x1234, r"backtrace: 0x\w+ null_pointer"),
    ("wild", 0xF8000000, r"backtrace: 0x\w+ wild_pointer"),
)


@pytest.mark.exercise("2.0", points=1)
def test_boots_and_ticks(lab):
    """A boot from the disk to the prompt: the clock ticks, in user mode, too."""
    result, traps = run_recorded(lab, "help; probe work", boot="disk")
    expect(result, r"time: the processor counts at \d+ kHz", "> help", "> probe work")
    ticks = [trap for trap in traps if (trap.vector, trap.ring) == (TIMER, 3)]
    if len(ticks) < 2:
        fail(f"the timer interrupted ring 3 {len(ticks)} times", result)


@pytest.mark.exercise("2.0", points=1)
def test_probes(lab):
    """User mode: it is entered, it is confined, and it is given one port."""
    seeded = random.Random(lab.seed)
    port = seeded.randrange(0x2000, 0x8000)
    address = KERNEL_BASE + seeded.randrange(16 << 20) & ~3
    script = f"probe cli; probe in {port:#x}; allow {port:#x}; probe in {port:#x}"
    result, traps = run_recorded(lab, f"{script}; probe read {address:#x}")
    expect(
        result,
        "probe cli: vector 13, error code 0x0,",
        "probe in: vector 13, error code 0x0,",
        "probe in: vector 6,",
        f"probe read: vector 14, error code 0x5, address {address:#x},",
    )
    seen = [(trap.vector, trap.error_code) for trap in user_exceptions(traps)]
    if seen != [(PROTECTION, 0), (PROTECTION, 0), (UNDEFINED, 0), (PAGE, 5)]:
        fail(f"user mode caused other exceptions than the kernel says: {seen}", result)


@pytest.mark.exercise("2.0", points=1)
def test_fault_of_the_kernel(lab):
    """A fault in the kernel: it is reported with its place."""
    kind, address, line = random.Random(lab.seed).choice(CRASHES)
    result, traps = run_recorded(lab, f"crash {kind}")
    expect(
        result,
        r"PANIC: exception 14, page fault \(error code 0x2\)",
        line,
        outcome=Outcome.PANIC,
    )
    seen = [(trap.vector, trap.ring, trap.registers["CR2"]) for trap in traps]
    if (PAGE, 0, address) not in seen:
        fail(f"the kernel has caused no page fault at {address:#x}", result)
