"""Exercise 6.1: page tables of spaces of the test's own. The TLB is the machine's: it remembers
what has been read until it is told to forget it.

Not looked at here, but by the graders: ranges over several tables, when a page is released, what
becomes of entries that another page replaces, tables for which there is no memory, and speed.
"""

from __future__ import annotations

from random import Random

import pytest

from labs.tools.machine.symbols import KERNEL_BASE
from tests.lesson6.support import (
    ACCESSED,
    DIRTY,
    HIDDEN,
    LARGE_PAGE,
    PAGE,
    PRESENT,
    USER,
    WRITE,
    Run,
    entries,
    frame_of,
    free_pages,
    in_words,
    page_at,
    require_sound_tables,
    space_code,
    tables_of,
)
from tests.told import Usual, expect, require, told

SOURCE = "tests/lesson6/memory/tables.c"
IN_GDB = "make gdb LESSON=6 BOOT=direct, then: break page_unmap_range, continue, info args"
SHOWN = PRESENT | USER | HIDDEN
COUNT = Usual(
    "references of the table",
    "pte_set counts an entry that becomes other than 0, and one that becomes 0, and no other change",
)
PAGES = Usual("space->pages", "each entry that goes is one page less in space->pages")


def some_address(lab) -> int:
    """The start of a table, made from the seed."""
    return LARGE_PAGE * Random(lab.seed).randrange(0x100, 0x2F0)


def require_entries(run: Run, space: int, expected: dict[int, int], when: str) -> None:
    """The space has these entries, and no others."""
    seen = entries(run, space)
    for address in sorted(expected | seen):
        entry, wanted = seen.get(address, 0), expected.get(address, 0)
        expect(f"the entry of {address:#x} {when}", in_words(entry), in_words(wanted))


@pytest.mark.exercise("6.1", points=2, gate=True)
def test_entries(lab):
    """pte_of finds an entry, and makes a table for one; pte_set writes it, and counts it."""
    usually = (
        Usual(
            "without a table",
            "pte_of makes a table although `make` is false, or takes an entry that lacks "
            "PTE_PRESENT for a table",
        ),
        Usual(
            "is in the table",
            "the directory's entry is number address >> 22, the table's address >> 12 & 1023, and "
            "what the directory has is a physical address, with flags in its lower bits",
        ),
        Usual("directory has", "a table needs PTE_PRESENT, PTE_WRITE and PTE_USER: TABLE"),
        COUNT,
    )
    start = some_address(lab)
    address = start + PAGE * Random(lab.seed).randrange(1, 1023)
    with told(usually, "make hint EX=6.1"), space_code(lab, SOURCE) as run:
        space = run.call("empty_space")
        place = run.call("entry_of", space, address, 0)
        expect(f"pte_of({address:#x}, false) without a table", hex(place), "0x0")
        place = run.call("entry_of", space, address, 1)
        table = tables_of(run, space).get(start // LARGE_PAGE, 0)
        wanted = KERNEL_BASE + table * PAGE + address % LARGE_PAGE // PAGE * 4
        require(table, f"pte_of({address:#x}, true): expected a table, seen none in the directory")
        expect(f"pte_of({address:#x}, true), which is in the table", hex(place), hex(wanted))
        expect("the same again", hex(run.call("entry_of", space, address + 5, 0)), hex(wanted))
        flags = run.guest.read_word(run.guest.read_word(space) + 4 * (start // LARGE_PAGE)) & 0xFFF
        expect("the directory has for the table", in_words(flags), in_words(7))
        frame = frame_of(run.call("new_page", 1) - KERNEL_BASE)
        for value in (frame * PAGE | SHOWN | WRITE, frame * PAGE | SHOWN, 0):
            run.call("set_only", space, address, value)
            expected = {address: value} if value else {}
            require_entries(run, space, expected, "after pte_set")
