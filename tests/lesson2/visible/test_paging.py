"""Exercise 2.5: paging from the first instructions on.

Not looked at here, but by the graders: every entry of the page directory, write protection in the
kernel, and that the first 4 MiB are no longer mapped at their physical address.
"""

from __future__ import annotations

import pytest

from tests.lesson2.support import KERNEL_BASE, stopped_at
from tests.support.remote import NotMapped
from tests.support.told import Usual, expect, fail, require, told

PAGING, WRITE_PROTECT = 1 << 31, 1 << 16  # of CR0
PLACES = (0x100000, 0x500000)  # the kernel's beginning; and a place in the second large page
IN_GDB = "make gdb LESSON=2 BOOT=direct, then: hbreak enable_paging, continue, stepi"


@pytest.mark.exercise("2.5", points=1, gate=True)
def test_kernel_runs_in_the_higher_half(lab):
    """At kmain paging is on, EIP is what the linker says, above 3 GiB, and EBX and EDX have come
    through: what the loader said."""
    usually = (
        Usual("WP", "CR0 gets PG alone: the constant CR0_PG_WP has both bits"),
        Usual("after enable_paging", "enable_paging uses a register that is the caller's"),
        "the large page that the code is in must be mapped at 0, too, until it has jumped",
        "CR4.PSE (bit 4) is not set before CR0.PG: without it there are no large pages",
        "CR3 and EDI need the physical address of kernel_page_directory",
        "entry n of the directory is at byte 4 * n, and 3 GiB is entry 768",
    )
    with told(usually, IN_GDB), stopped_at(lab, "enable_paging") as machine:
        before = machine.registers()
        machine.run_to("kmain", goal="kmain")
        registers = machine.dump()
        require(registers["CR0"] & PAGING, "CR0 bit 31 is clear at kmain: paging is not on")
        words = "CR0 bit 16 (WP) is clear at kmain: the kernel may write to read-only pages"
        require(registers["CR0"] & WRITE_PROTECT, words)
        require(registers["EIP"] >= KERNEL_BASE, "kmain runs at its physical address")
        arguments = machine.read_words(registers["ESP"] + 4, 2)
        for name, seen in zip(("edx", "ebx"), arguments, strict=True):
            expect(f"{name.upper()} after enable_paging", f"{seen:#x}", f"{before[name]:#x}")


@pytest.mark.exercise("2.5", points=1, gate=True)
def test_direct_map(lab):
    """The kernel sees physical memory 3 GiB higher, its own beginning for one."""
    usually = (
        "each entry is 4 MiB higher than the one before: add LARGE_PAGE to the entry",
        "bit 7 of an entry (a large page) is not set",
    )
    with told(usually, IN_GDB), stopped_at(lab, "kmain") as machine:
        for place in PLACES:
            expected = machine.read_physical_words(place, 4)
            what = f"memory at {KERNEL_BASE + place:#x}, the physical address {place:#x}"
            try:
                expect(what, in_hex(machine.read_words(KERNEL_BASE + place, 4)), in_hex(expected))
            except NotMapped:
                fail(f"{what}: expected {in_hex(expected)}, seen nothing: it is not mapped")


def in_hex(words: tuple[int, ...]) -> str:
    """Words of memory as a person reads them."""
    return " ".join(f"{word:08x}" for word in words)
