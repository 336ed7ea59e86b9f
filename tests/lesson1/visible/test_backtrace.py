"""Exercise 1.6, the backtrace: a panic that was asked for, and a name for an address.

Not looked at here, but by the graders: chains that are damaged, or never end; addresses at the
borders of the code, and an empty table.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson1.frames import (
    Code,
    backtrace_from,
    printed,
    put_frame,
    require_lines,
    walk,
)
from tests.lesson1.support import KERNEL
from tests.support.remote import SCRATCH, stopped
from tests.support.told import Usual, expect, told


def a_return(seed: int, code: Code) -> int:
    """An address in the code that something might return to."""
    return Random(seed).randrange(code.start + 1, code.end)


@pytest.mark.exercise("1.6", points=1)
def test_name_of_an_address(lab):
    """An address in the middle of a function, and the one at which it begins."""
    usually = (
        Usual(
            "symbol_start of",
            "the search ends one symbol too early or too late: the answer is the last at or below",
        ),
        Usual("does not reach", "low must become middle + 1, or high must become middle"),
    )
    then = "make gdb LESSON=1 BOOT=direct, then: tbreak symbol_start, continue, next"
    code = Code(lab.build(KERNEL))
    with told(usually, then), stopped(lab, "kmain") as guest:
        address = Random(lab.seed).randrange(code.start, code.end)
        start, expected = code.function(address), code.described(address)
        for asked in (address, start):
            symbol, place = guest.call("symbol_start", asked), code.described(asked)
            what = f"symbol_start of {place.partition(' ')[2]}: the beginning"
            expect(what, code.described(symbol) if symbol else "0", code.described(start))
        guest.call("symbol_describe", address, SCRATCH, 80)
        text = guest.read(SCRATCH, 80).partition(b"\0")[0].decode("latin-1")
        if not code.is_described(address, text):
            expect("symbol_describe", text, expected)


@pytest.mark.exercise("1.6", points=2)
def test_backtrace_of_a_panic(lab):
    """The frames that are on the stack, in words. A panic never returns: one of them may say that
    it came from anywhere."""
    usually = (
        Usual(
            "a frame that",
            "is_frame compares both ends of the stack: a frame begins at or above stack_start, and "
            "all of it is below stack_top",
        ),
        Usual(
            r"expected (0x\w+) .*seen \1",
            "the address is right, and its name is not: symbol_start, symbol_describe",
        ),
        Usual(
            r"expected 0x\w+ .*seen 0x\w+$",
            "print_return gets no address of the code: it is frame->return_address",
        ),
        Usual(
            r"expected (0x\w+) .*seen (?!\1)0x\w+ ",
            "the first line is the frame at ebp itself; the next frame is frame->caller",
        ),
        Usual(
            "lines of the backtrace",
            "the stack grows down, so a caller's frame is higher: the walk stops when it is not",
        ),
    )
    then = "make run LESSON=1 BOOT=direct SCRIPT=panic"
    code = Code(lab.build(KERNEL))
    with told(usually, then), stopped(lab, "backtrace", script="panic") as guest:
        frame = guest.read_word(guest.registers()["esp"] + 4)
        caller = guest.read_word(frame)
        put_frame(guest, caller, guest.read_word(caller), a_return(lab.seed, code))
        returns = walk(guest, frame)
        top = guest.address("boot_stack_top")
        for where, at in (("below", guest.address("boot_stack") - 8), ("above", top)):
            lines = printed(backtrace_from(guest, at))
            expect(f"lines of a frame that is {where} the stack", len(lines), 0)
        said = guest.finish()
        require_lines(code, said, returns)
