"""Exercise 2.2: from real mode into protected mode, as our own loader does it.

Not looked at here, but by the graders: each segment register, a stack pointer with anything in its
upper half, and the registers that must not change.
"""

from __future__ import annotations

import pytest

from tests.lesson2.support import loader_symbols, switched_on
from tests.support.told import Usual, expect, require, told

CODE32 = 0x08
USUALLY = (
    Usual(
        r"error code 0x8 \(",
        "LGDT is missing, or the base in gdt_pointer is not gdt: the far jump finds no code "
        "segment in the table that is loaded",
    ),
    Usual(r"error code 0x10 \(", "the far jump names the data segment: CS needs CODE32"),
    Usual(
        r"error code 0x[0-9a-f]{3,} \(",
        "no far jump follows: only that loads CS (jmp CODE32:label), and `bits 32` comes after it",
    ),
    Usual("halted", "CR0 is not written back with bit 0 set"),
    Usual("page fault", "SS is not loaded with DATA32: it keeps its real-mode base and limit"),
    Usual(
        "where no code is",
        "the return address is one of 16 bits: 32-bit code must not pop four bytes",
    ),
)
IN_GDB = "make gdb LESSON=2, then: hbreak enter_protected_mode, continue, stepi"


@pytest.mark.exercise("2.2", points=1, gate=True)
def test_own_loader_boots(lab):
    """The boot disk: the second stage enters protected mode again after each call to the BIOS."""
    usually = "a segment register that is not loaded keeps its real-mode base and 64 KiB limit"
    with told((*USUALLY, usually), IN_GDB):
        result = lab.run("help", boot="disk").check()
        has_booted = "boot: loaded by Apprentice boot" in result.serial
        require(has_booted, "the kernel does not say `boot: loaded by Apprentice boot`")


@pytest.mark.exercise("2.2", points=1, gate=True)
def test_protected_mode_is_on(lab):
    """In the loader's C code, CR0 bit 0 is set, CS is the 32-bit code segment, and SS is loaded."""
    with told(USUALLY, IN_GDB), switched_on(lab, boot="disk") as machine:
        machine.run_to(loader_symbols(lab).find("loader_main").address, goal="loader_main")
        segments, cr0 = machine.segments(), machine.dump()["CR0"]
        expect("bit 0 of CR0", cr0 & 1, 1)
        expect("selector in CS", f"{segments['CS'].selector:#x}", f"{CODE32:#x}")
        expect("the code segment's flag for 32 bits", segments["CS"].flags >> 2 & 1, 1)


@pytest.mark.exercise("2.2", points=1)
def test_limit_of_the_table(lab):
    """The GDT register's limit is the offset of the last byte."""
    usually = "the limit in gdt_pointer is the size of the table, and not the size - 1"
    symbols = loader_symbols(lab)
    size = symbols.find("gdt_end").address - symbols.find("gdt").address
    with told(usually, "boot/protected_mode.asm"), switched_on(lab, boot="disk") as machine:
        machine.run_to(symbols.find("loader_main").address, goal="loader_main")
        expect(f"limit of the GDT register, for {size} bytes", machine.tables()["GDT"][1], size - 1)
