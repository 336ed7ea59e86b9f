"""Exercise 1.6, the backtrace: a panic that was asked for, and a name for an address."""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson1.frames import Code, put_frame, require_lines, walk
from tests.lesson1.support import KERNEL
from tests.remote import SCRATCH, stopped


def a_return(seed: int, code: Code) -> int:
    """An address in the code that something might return to."""
    return Random(seed).randrange(code.start + 1, code.end)


@pytest.mark.exercise("1.6", points=1)
def test_name_of_an_address(lab):
    """An address in the middle of a function."""
    code = Code(lab.build(KERNEL))
    with stopped(lab, "kmain") as guest:
        address = Random(lab.seed).randrange(code.start, code.end)
        start = code.function(address)
        assert guest.call("symbol_start", address) == start, (
            f"a function begins at {start:#x}, and {address:#x} is in it: kernel/report/symbols.c"
        )
        guest.call("symbol_describe", address, SCRATCH, 80)
        text = guest.read(SCRATCH, 80).partition(b"\0")[0].decode("latin-1")
    assert code.is_described(address, text), f"{address:#x} is described as {text!r}"


@pytest.mark.exercise("1.6", points=2)
def test_backtrace_of_a_panic(lab):
    """The frames that are on the stack, in words. A panic never returns: one of them may say that
    it came from anywhere."""
    code = Code(lab.build(KERNEL))
    with stopped(lab, "backtrace", script="panic") as guest:
        frame = guest.read_word(guest.registers()["esp"] + 4)
        caller = guest.read_word(frame)
        put_frame(guest, caller, guest.read_word(caller), a_return(lab.seed, code))
        returns = walk(guest, frame)
        said = guest.finish()
    require_lines(code, said, returns)
