"""Exercise 1.1, the Multiboot header: is it in the file, and does a boot loader know it?

Not looked at here, but by the graders: that it stays in the file when the linker collects garbage,
and that it comes before all other code and data.
"""

from __future__ import annotations

import pytest

from labs.tools.grading.lab_words import NOT_LOADED
from labs.tools.machine.explain import LOADED_BY_ADDRESS, header_problem
from tests.lesson1.support import KERNEL, MULTIBOOT_LOADER, multiboot_header
from tests.support.remote import stopped
from tests.support.told import expect, fail, told

LOOK = "objdump -h build/lesson1/kernel.elf, and look where .boot is in the file (File off)"


@pytest.mark.exercise("1.1", points=1, gate=True, host=True)
def test_header_is_in_the_file(lab):
    """Three words, of which the sum is zero, near the start of build/lesson1/kernel.elf."""
    usually = (
        "a wrong number in boot/multiboot_header.asm, a checksum that is not -(magic + flags), or "
        "a section .multiboot that boot/kernel.ld does not name, or not first"
    )
    with told(usually, LOOK):
        kernel = lab.build(KERNEL).read_bytes()
        problem = header_problem(kernel)
        if problem and not multiboot_header(kernel)[1] & LOADED_BY_ADDRESS:
            fail(f"{NOT_LOADED}: {problem}")


@pytest.mark.exercise("1.1", points=1, gate=True)
def test_qemu_knows_the_kernel(lab):
    """`qemu -kernel` finds the header and enters the kernel as a Multiboot loader does."""
    usually = "flags other than bits 0 and 1"
    with told(usually, "make run LESSON=1 BOOT=direct"), stopped(lab, "_start") as guest:
        magic = guest.registers()["eax"]
        expect("EAX at _start", f"{magic:#x}", f"{MULTIBOOT_LOADER:#x}")
