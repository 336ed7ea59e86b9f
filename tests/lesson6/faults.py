"""Exercise 6.3: faults in a space of the test's own, and what they have made."""

from __future__ import annotations

import struct

from labs.tools.machine.symbols import KERNEL_BASE
from tests.lesson6.support import PAGE, WRITE, Run, error_name, frame_of, page_at, state_name
from tests.support.told import expect

SOURCE = "tests/lesson6/memory/faults.c"
BASE = 0x40000000
OBJECT_PAGES = 40


def begin(run: Run, with_peek: bool = True) -> int:
    """A space without areas."""
    return run.call("begin_faults", with_peek)


def put(
    run: Run, space: int, first: int, end: int, flags: int, of: int = 0, index: int = 0
) -> None:
    """An area from one page to another, counted from BASE; `of` 1: of the object, from the page
    `index` on."""
    start, last = BASE + first * PAGE, BASE + end * PAGE
    expect("area_put returns", run.call("put_area", space, start, last, flags, of, index), 0)


def fault(run: Run, space: int, address: int, write: bool, may_sleep: bool = True) -> str:
    """What space_fault returns, by its name."""
    return error_name(run.call("space_fault", space, address, write, may_sleep))


def in_words(address: int, write: bool) -> str:
    """A fault as a person reads it."""
    return f"space_fault of a {'write' if write else 'read'} at {address:#x}"


def require_fault(
    run: Run, space: int, address: int, write: bool, expected: str = "0", may_sleep: bool = True
) -> None:
    """space_fault returns this."""
    what = f"{in_words(address, write)}{'' if may_sleep else ', which must not sleep,'} returns"
    expect(what, fault(run, space, address, write, may_sleep), expected)


def page_of_object(run: Run, index: int) -> int:
    """The frame of a page of the object."""
    return frame_of(run.call("object_address", index) - KERNEL_BASE)


def which_page(run: Run, entry: int) -> str:
    """Which page an entry shows, as a person reads it."""
    for index in range(OBJECT_PAGES):
        if page_of_object(run, index) == frame_of(entry):
            return f"page {index} of the object"
    return "another page" if entry else "none"


def require_zero(run: Run, entry: int, what: str) -> None:
    """All words of the page that an entry shows are 0."""
    others = run.call("count_others", KERNEL_BASE + frame_of(entry) * PAGE, 0)
    expect(f"words of {what} that are not 0", others, 0)


def require_own_page(run: Run, entry: int, what: str) -> None:
    """The entry shows a page of the program's own, which it may write to."""
    seen = page_at(run, frame_of(entry))
    expect(f"state of {what}, from page_alloc", state_name(seen.state), "PAGE_USED")
    expect(f"references of {what}", seen.references, 1)
    expect(f"PTE_WRITE of {what}", bool(entry & WRITE), True)


def fail_allocation(run: Run, number: int) -> None:
    """The n-th page that is asked for from now on cannot be had; 0: every one can."""
    run.guest.write(run.guest.address("allocation_fails_in"), struct.pack("<I", number))
