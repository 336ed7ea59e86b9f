"""Exercise 2.5: paging from the first instructions on."""

from __future__ import annotations

import pytest

from tests.lesson2.support import KERNEL_BASE, stopped_at


@pytest.mark.exercise("2.5", points=1)
def test_kernel_runs_in_the_higher_half(lab):
    """At kmain paging is on, and EIP is what the linker says: above 3 GiB."""
    with stopped_at(lab, "kmain") as machine:
        registers = machine.dump()
    assert registers["CR0"] >> 31, "CR0 bit 31 is clear: paging is not on"
    assert registers["EIP"] >= KERNEL_BASE


@pytest.mark.exercise("2.5", points=1)
def test_direct_map(lab):
    """The kernel sees physical memory 3 GiB higher, its own beginning for one."""
    with stopped_at(lab, "kmain") as machine:
        low = machine.read_physical_words(0x100000, 4)
        try:
            high = machine.read_words(KERNEL_BASE + 0x100000, 4)
        except LookupError:
            pytest.fail("nothing is mapped at 0xc0100000")
    assert low == high, "0xc0100000 is not the memory at 1 MiB"
