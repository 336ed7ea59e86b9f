"""Exercise 1.6, the backtrace: a panic that was asked for, and a name for an address."""

from __future__ import annotations

import pytest

from tests.lesson1.frames import Code, require_lines, walk
from tests.lesson1.support import KERNEL
from tests.remote import SCRATCH, stopped


@pytest.mark.exercise("1.6", points=1)
def test_name_of_an_address(lab):
    """An address in the middle of kmain."""
    with stopped(lab, "kmain") as guest:
        address = guest.address("kmain") + 4
        assert guest.call("symbol_start", address) == address - 4, (
            f"kmain begins at {address - 4:#x}, and {address:#x} is in it: kernel/symbols.c"
        )
        guest.call("symbol_describe", address, SCRATCH, 80)
        text = guest.read(SCRATCH, 80).partition(b"\0")[0].decode("latin-1")
    assert text == f"{address:#010x} kmain+0x4"


@pytest.mark.exercise("1.6", points=2)
def test_backtrace_of_a_panic(lab):
    """The frames that are on the stack, in words."""
    code = Code(lab.build(KERNEL))
    with stopped(lab, "backtrace", script="panic") as guest:
        stack = guest.registers()["esp"]
        returns = walk(guest, guest.read_word(stack + 4))
        said = guest.finish()
    require_lines(code, said, returns)
