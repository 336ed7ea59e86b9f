"""Exercise 1.1, the Multiboot header: flags, place and survival in kernels linked in other ways."""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson1.support import (
    HEADER_AREA,
    KERNEL,
    KERNEL_BASE,
    MULTIBOOT_LOADER,
    multiboot_header,
    relink,
)
from tests.support.remote import stopped

ENTRY_TRIES = 8  # GRUB's own code may be where the kernel's entry will be


def require_good(kernel: bytes) -> None:
    """The header is whole, aligned, and within the first 8 KiB."""
    offset, flags, checksum = multiboot_header(kernel)
    assert offset + 12 <= HEADER_AREA, f"the header is at offset {offset} of the file"
    assert offset % 4 == 0, f"offset {offset:#x} is not a multiple of four"
    assert (0x1BADB002 + flags + checksum) % 2**32 == 0, "the sum of the three words"


@pytest.mark.exercise("1.1", points=2, host=True)
def test_flags(lab):
    """The header's flags: page alignment and memory map, and no flag that promises what the header
    does not have."""
    _, flags, _ = multiboot_header(lab.build(KERNEL).read_bytes())
    assert not flags & 1 << 16, "bit 16 promises address fields, and there are none"
    assert flags & 2, "bit 1 asks for the memory map"
    assert flags == 3, f"flags {flags:#x}: bits 0 and 1, no other"


@pytest.mark.exercise("1.1", points=2, host=True)
def test_linker_does_not_drop_it(lab):
    """A linker that drops unused sections: the header and the code of .boot stay."""
    mark = Random(lab.seed).randbytes(16)
    words = ", ".join(map(str, mark))
    assembly = f"section .boot progbits alloc exec\ndb {words}\n"
    kernel = relink(lab, assembly=assembly, options=["--gc-sections"]).read_bytes()
    require_good(kernel)
    assert mark in kernel, "a section .boot that nobody refers to is gone"


@pytest.mark.exercise("1.1", points=2, host=True)
def test_it_comes_before_all_other_code_and_data(lab):
    """The header's place: within the first 8 KiB, before all other code and data, whatever object
    file is linked first."""
    sections = ["boot align=1", "rodata align=1", "text align=1"]
    assembly = "".join(f"section .{section}\ntimes 9001 db 0x90\n" for section in sections)
    require_good(relink(lab, assembly=assembly).read_bytes())


@pytest.mark.exercise("1.1", points=1, host=True)
def test_it_is_aligned_wherever_the_kernel_is_linked(lab):
    """The header's alignment: a multiple of four, wherever the kernel is linked."""
    for start in range(0x100000, 0x100004):
        kernel = relink(lab, edits=[(r"\. = (LOAD_ADDRESS|0x100000|1M);", f". = {start:#x};")])
        require_good(kernel.read_bytes())


@pytest.mark.exercise("1.1", points=2)
def test_grub_starts_it(lab):
    """GRUB boots the kernel from a CD: it finds the header, loads each segment at its place, and C
    begins with GRUB's magic number."""
    with stopped(lab, "_start", boot="grub") as guest:
        for _ in range(ENTRY_TRIES):
            if guest.registers()["eax"] == MULTIBOOT_LOADER:
                guest.run_to("kmain")
                assert guest.registers()["eip"] >= KERNEL_BASE, "kmain is not in the higher half"
                return
            guest.run_to("_start")
    pytest.fail("GRUB does not enter the kernel")
