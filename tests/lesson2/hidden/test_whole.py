"""All exercises of lesson 2 in one kernel: what the handout shows under "What you will see"."""

from __future__ import annotations

import pytest

from labs.tools.machine.result import Outcome
from tests.lesson1.picture import expect

PROBES = "probe cli; probe in 0x3f8; allow 0x3f8; probe in 0x3f8; probe read 0xc0100000"


@pytest.mark.exercise("2.0", points=1)
def test_boots_and_ticks(lab):
    """From the disk to the prompt, with a clock."""
    expect(lab.run("help", boot="disk"), r"time: the processor counts at \d+ kHz", "> help")


@pytest.mark.exercise("2.0", points=1)
def test_probes(lab):
    """Ring 3 is entered, is held, and is given one port."""
    expect(
        lab.run(PROBES),
        "probe cli: vector 13, error code 0x0,",
        "probe in: vector 13, error code 0x0,",
        "probe in: vector 6,",
        "probe read: vector 14, error code 0x5, address 0xc0100000,",
    )


@pytest.mark.exercise("2.0", points=1)
def test_fault_of_the_kernel(lab):
    """The kernel's own fault is reported, and where it happened."""
    expect(
        lab.run("crash null"),
        r"PANIC: exception 14, page fault \(error code 0x2\)",
        r"backtrace: 0x\w+ page_fault",
        outcome=Outcome.PANIC,
    )
