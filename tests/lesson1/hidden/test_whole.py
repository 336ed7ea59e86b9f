"""All exercises of lesson 1 in one kernel: what the handout shows under "What you will see"."""

from __future__ import annotations

import pytest

from labs.tools.machine.result import Outcome
from tests.lesson1.picture import expect


@pytest.mark.exercise("1.0", points=1)
def test_own_loader_and_kernel(lab):
    """From the disk to the prompt: the map of memory, and the loader's name."""
    expect(
        lab.run("memory", boot="disk"),
        r"Apprentice boot: kernel of \d+ bytes at LBA \d+",
        r"memory: 0x000000000 - 0x00009fbff  usable",
        r"memory: 0x000100000 - 0x\w+  usable",
        r"memory: 65023 KiB usable",
        r"boot: loaded by Apprentice boot",
        r"> memory",
        r"memory: \d+ of 65023 KiB free",
    )


@pytest.mark.exercise("1.0", points=1)
def test_panic_with_a_backtrace(lab):
    """A panic tells who called whom."""
    expect(
        lab.run("panic", boot="disk"),
        "PANIC: asked for by the command line",
        r"backtrace: 0x\w+ run_panic\+",
        r"backtrace: 0x\w+ monitor_execute\+",
        r"backtrace: 0x\w+ kmain\+",
        outcome=Outcome.PANIC,
    )
