"""Exercise 1.1, the Multiboot header: is it in the file, and does a boot loader know it?"""

from __future__ import annotations

import pytest

from tests.lesson1.support import HEADER_AREA, KERNEL, MULTIBOOT_LOADER, multiboot_header
from tests.remote import stopped


@pytest.mark.exercise("1.1", points=1, gate=True, host=True)
def test_header_is_in_the_file(lab):
    """Three words, of which the sum is zero, near the start of build/lesson1/kernel.elf."""
    offset, flags, checksum = multiboot_header(lab.build(KERNEL).read_bytes())
    assert offset + 12 <= HEADER_AREA, (
        f"the header is at offset {offset} of the file, and loaders look at the first 8192 bytes: "
        "it must come first in the linker script"
    )
    assert (0x1BADB002 + flags + checksum) % 2**32 == 0, (
        f"0x1badb002 + flags {flags:#x} + checksum {checksum:#x} is not zero in 32 bits"
    )


@pytest.mark.exercise("1.1", points=1)
def test_qemu_knows_the_kernel(lab):
    """`qemu -kernel` finds the header and enters the kernel as a Multiboot loader does."""
    with stopped(lab, "_start") as guest:
        assert guest.registers()["eax"] == MULTIBOOT_LOADER
