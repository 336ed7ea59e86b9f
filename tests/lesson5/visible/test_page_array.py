"""Exercise 5.1: the page array, and what goes into the zones. What is handed over is recorded, in
place of buddy_give_range: these tests need no other exercise.

Not looked at here, but by the graders: ranges that do not begin or end at the border of a page,
with holes, above 896 MiB and 4 GiB, small machines, and memory full of what was in it before.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson5.arrays import (
    Arrays,
    Plan,
    kernel_frames,
    plan,
    require_array,
    require_handed_over,
    require_zones,
    some_map,
)
from tests.lesson5.support import outside
from tests.support.told import Usual, told

IN_GDB = "make gdb LESSON=5 BOOT=direct, then: break buddy_give_range, continue, info args"


def some_machine(lab, run: Arrays) -> Plan:
    """A machine's map, made from the seed, and what is to come of it."""
    ranges = some_map(Random(lab.seed).randrange(32, 60))
    run.write_map(ranges)
    return plan(ranges, kernel_frames(run))


@pytest.mark.exercise("5.1", points=2, gate=True)
def test_array(lab):
    """The array begins after the kernel, is large enough, and says PAGE_RESERVED of each frame."""
    usually = (
        Usual(
            "^page_frames.*seen 0$",
            "nothing is usable: kernel_end, an address above 3 GiB, is taken for a physical one",
        ),
        Usual(
            "^page_frames(?!.*seen 0$)",
            "page_frames is the end of the highest usable range as a frame, rounded up to a "
            "multiple of 1 << (ORDERS - 1): not how many frames are usable",
        ),
        Usual(
            "^page_array.*far above",
            "the array's frames are the first ones of a range that has room for it, not the last",
        ),
        Usual(
            "^page_array(?!.*far above)",
            "kernel_end is an address above 3 GiB: physical_address() first, then round up to a "
            "page; or a range below the kernel is large enough for the array",
        ),
        Usual(
            "no room",
            "kernel_end is an address above 3 GiB: physical_address() first, then round up",
        ),
        Usual(
            "ended before|triple fault|loops",
            "the array is where the kernel is, and clears it: what is below the kernel's end is "
            "cut off before room is looked for",
        ),
        Usual("PAGE_RESERVED", "the array is not filled with 0, or with a size in frames"),
    )
    with told(usually, "make hint EX=5.1"), outside(lab, Arrays) as run:
        expected = some_machine(lab, run)
        run.initialize()
        require_array(run, expected)


@pytest.mark.exercise("5.1", points=3, gate=True)
def test_hand_over(lab):
    """What is usable and nobody's goes into the zones, each frame once."""
    usually = (
        Usual("the kernel goes on", "what is below the end of the kernel is not cut off"),
        Usual(
            "the page array is in",
            "the array's own frames are handed over, too; or it is elsewhere: test_array says more",
        ),
        Usual("border|twice", "a range across 16 MiB is not cut at the zones' boundary"),
        Usual("seen nowhere", "a range is left out, or the end of one is taken for its size"),
        Usual("no whole frame", "the type is not looked at: MULTIBOOT_MEMORY_AVAILABLE"),
    )
    with told(usually, IN_GDB), outside(lab, Arrays) as run:
        expected = some_machine(lab, run)
        found = run.initialize()
        require_handed_over(found, expected, kernel_frames(run))


@pytest.mark.exercise("5.1", points=1)
def test_zones(lab):
    """The zones meet at 16 MiB, and each keeps one page in 64 in reserve."""
    usually = (
        Usual("exclusive", "buddy_initialize gets frames, first and end, not bytes or a size"),
        Usual("reserve", "the reserve is computed before the zone has its pages"),
    )
    with told(usually, "make hint EX=5.1"), outside(lab, Arrays) as run:
        expected = some_machine(lab, run)
        run.initialize()
        require_zones(run, expected)
