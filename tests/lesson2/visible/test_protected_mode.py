"""Exercise 2.2: from real mode into protected mode, as our own loader does it."""

from __future__ import annotations

import pytest

from tests.lesson2.support import loader_symbols, switched_on


@pytest.mark.exercise("2.2", points=1)
def test_own_loader_boots(lab):
    """The boot disk: the second stage enters protected mode again after each call to the BIOS."""
    result = lab.run("help", boot="disk").check()
    assert "boot: loaded by Apprentice boot" in result.serial


@pytest.mark.exercise("2.2", points=1)
def test_protected_mode_is_on(lab):
    """In the loader's C code, CR0 bit 0 is set and CS is the 32-bit code segment."""
    with switched_on(lab, boot="disk") as machine:
        machine.run_to(loader_symbols(lab).find("loader_main").address)
        code, cr0 = machine.segments()["CS"], machine.dump()["CR0"]
    assert cr0 & 1, "CR0 bit 0 is clear: protected mode is not on"
    assert code.selector == 8, f"CS is {code.selector:#x}: the far jump takes CODE32"
    assert code.flags & 4, "the code segment is still a 16-bit one"
