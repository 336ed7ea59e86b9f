"""Exercise 5.5: kmalloc that tells on you.

Not looked at here, but by the graders: sizes that wrap, writes before an object, addresses that
kmalloc never returned, how long an object is in quarantine, krealloc without memory, and how many
instructions kmalloc takes while nobody checks.
"""

from __future__ import annotations

import pytest

from tests.lesson5.objects import FIRST, FIRST_FREER, GUARD, PLAIN, QUARANTINE, Objects, checked
from tests.lesson5.support import PAGE, outside
from tests.support.told import Usual, expect, fail, require, told

COMMON = (
    Usual(
        "page fault",
        "magazine_for has no magazine for this size, or a guard is used that was never written",
    ),
)
HINT = "make hint EX=5.5"
IN_GDB = "make LESSON=5 gdb, then: tbreak kmalloc_checked, continue, finish, x/12xw $eax - 32"


@pytest.mark.exercise("5.5", points=1, gate=True)
def test_sizes(lab):
    """Objects of small and of large sizes, each large enough, and its own."""
    sizes = (0, 1, 16, 17, 100, 2016, 2017, PAGE, PAGE + 1, 20_000)
    usually = (
        *COMMON,
        Usual("refused", "magazine_for is not filled, or no order is large enough: kmalloc_plain"),
        Usual(
            "can hold",
            "size_plain returns the size of another class, or bytes for an order; or kmalloc_plain "
            "takes a smaller order than the size needs",
        ),
        Usual(
            "panicked: page_free",
            "kfree_plain gives back a block of pages with its own order: page_at(object)->order",
        ),
        "two objects overlap: magazine_for leads to a class that is smaller than the size",
    )
    with told(usually, HINT), outside(lab, Objects, PLAIN) as run:
        objects = [run.kmalloc(size) for size in sizes]
        for size, address in zip(sizes, objects, strict=True):
            require(address, f"kmalloc({size}) is refused, although memory is free")
            holds = run.size_of(address)
            require(holds >= size, f"object of kmalloc({size}): it can hold {holds} bytes")
            run.fill(address, size, size)
        for size, address in zip(sizes, objects, strict=True):
            same = run.filled(address, size, size)
            expect(f"bytes of the object of {size} that are still as written", same, size)
            run.kfree(address)


@pytest.mark.exercise("5.5", points=1)
def test_krealloc(lab):
    """A larger and a smaller object begin with what was in the old one."""
    usually = (
        *COMMON,
        "krealloc does not copy, or frees before it copies",
    )
    with told(usually, HINT), outside(lab, Objects, PLAIN) as run:
        address = run.kmalloc(100)
        run.fill(address, 100, 7)
        for size, kept in ((1000, 100), (40, 40)):
            address = run.krealloc(address, size)
            same = run.filled(address, kept, 7)
            expect(f"bytes that krealloc to {size} has kept", same, kept)


@pytest.mark.exercise("5.5", points=1, gate=True)
def test_overrun(lab):
    """One byte is written beyond an object: kfree panics, and names who asked for it."""
    usually = (
        *COMMON,
        Usual("no panic", "kfree_checked does not look at the red zone after `size` bytes"),
        Usual("owner", "owner is caller(__builtin_frame_address(0)), in kmalloc_checked itself"),
        "accuse gets the offset from the object's first byte",
    )
    with told(usually, IN_GDB), checked(lab) as run:
        address = run.kmalloc(13)
        require(address, "kmalloc(13) is refused, although memory is free")
        expect("the owner of an object", run.guard_of(address).owner, FIRST)
        run.guest.put_data(address + 13, b"!")
        said = run.panic_of_kfree(address, by=FIRST_FREER)
        require_accusation(said, "at byte 13 of an object of 13")


@pytest.mark.exercise("5.5", points=1)
def test_freed_twice(lab):
    """The second kfree of an object panics."""
    usually = (
        *COMMON,
        Usual("no panic", "kfree_checked does not ask whether freer is set already"),
        Usual("kmalloc_live", "kfree_checked takes the guard out of kmalloc_live: list_remove"),
        "the object is handed out again at once: it must stay in quarantine",
    )
    with told(usually, IN_GDB), checked(lab) as run:
        address = run.kmalloc(24)
        run.kfree(address)
        expect("who freed an object", run.guard_of(address).freer, FIRST_FREER)
        live = run.live().count(address - GUARD)
        expect("how often an object that was freed is in kmalloc_live", live, 0)
        require_accusation(run.panic_of_kfree(address), "of an object of 24")


@pytest.mark.exercise("5.5", points=1)
def test_write_after_free(lab):
    """A write to a freed object is found when the object leaves the quarantine."""
    usually = (
        *COMMON,
        Usual("no panic", "what leaves the quarantine is not looked at for the byte POISON"),
        "kfree_checked does not fill the object with POISON",
    )
    with told(usually, IN_GDB), checked(lab) as run:
        address = run.kmalloc(24)
        run.kfree(address)
        run.guest.put_data(address + 5, b"!")
        said = run.kernel.panic_of(run.free_others, QUARANTINE - 1)
        expect("63 objects freed after it: the kernel panics with", said or "nothing", "nothing")
        said = run.kernel.panic_of(run.free_others, 1)
        require_accusation(said, "at byte 5 of an object of 24")


def require_accusation(panic: str, words: str) -> None:
    """The call must panic with these words, in its first line."""
    said = panic.partition("\n")[0]
    if words not in said:
        seen = f"the panic {said!r}" if said else "no panic"
        fail(f'misuse of an object: expected a panic with "{words}", seen {seen}')
