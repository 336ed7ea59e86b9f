"""Exercise 6.1: page tables of spaces of the test's own. The TLB is the machine's: it remembers
what has been read until it is told to forget it.

Not looked at here, but by the graders: ranges over several tables, when a page is released, what
becomes of entries that another page replaces, tables for which there is no memory, and speed.
"""

from __future__ import annotations

from random import Random

import pytest

from labs.tools.machine.symbols import KERNEL_BASE
from tests.lesson5.support import outside
from tests.lesson6.spaces import START, Spaces
from tests.lesson6.support import (
    ACCESSED,
    DIRTY,
    HIDDEN,
    LARGE_PAGE,
    PAGE,
    PRESENT,
    USER,
    WRITE,
    entries,
    frame_of,
    free_pages,
    in_words,
    page_at,
    require_sound_tables,
    tables_of,
)
from tests.support.told import Usual, expect, require, told

IN_GDB = "make gdb LESSON=6 BOOT=direct, then: break page_unmap_range, continue, info args"
SHOWN = PRESENT | USER | HIDDEN
COUNT = Usual(
    "references of the table",
    "pte_set counts an entry that becomes 0, and one that was 0; no other change counts",
)
PAGES = Usual("space->pages", "each entry that goes is one page less in space->pages")


def some_address(lab) -> int:
    """The start of a table, made from the seed."""
    return LARGE_PAGE * Random(lab.seed).randrange(0x100, 0x2F0)


def entry_at(run: Spaces, space: int, address: int) -> int:
    """The entry of an address that has been mapped."""
    found = entries(run, space).get(address, 0)
    require(found, f"the entry of {address:#x}, which was mapped: expected one, seen 0")
    return found


def which_entry(place: int, table: int) -> str:
    """What pte_of has returned, as a person reads it; `table`: the frame of the address's table."""
    number, rest = divmod(place - (KERNEL_BASE + table * PAGE), 4)
    return f"entry {number}" if 0 <= number < PAGE // 4 and not rest else "an address outside it"


def require_entries(run: Spaces, space: int, expected: dict[int, int], when: str) -> None:
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
            "which entry",
            "the directory's entry is number address >> 22, the table's address >> 12 & 1023, and "
            "what the directory has is a physical address, with flags in its lower bits",
        ),
        Usual("no memory", "physical_address(table): the processor uses no other address"),
        Usual("flags that", "a table needs PTE_PRESENT, PTE_WRITE and PTE_USER: TABLE"),
        COUNT,
    )
    start = some_address(lab)
    address = start + PAGE * Random(lab.seed).randrange(1, 1023)
    with told(usually, "make hint EX=6.1"), outside(lab, Spaces, START) as run:
        space = run.empty_space()
        place = run.call("pte_of", space, address, 0)
        expect(f"pte_of({address:#x}, false) without a table", hex(place), "0x0")
        place = run.call("pte_of", space, address, 1)
        table = tables_of(run, space).get(start // LARGE_PAGE, 0)
        wanted = f"entry {address % LARGE_PAGE // PAGE}"
        require(table, f"pte_of({address:#x}, true): expected a table, seen none in the directory")
        what = "which entry of the table is returned by"
        expect(f"{what} pte_of({address:#x}, true)", which_entry(place, table), wanted)
        place = run.call("pte_of", space, address + 5, 0)
        expect(f"{what} pte_of({address + 5:#x}, false)", which_entry(place, table), wanted)
        flags = run.guest.read_word(run.guest.read_word(space) + 4 * (start // LARGE_PAGE)) & 0xFFF
        expect("flags that the directory has for the table", in_words(flags), in_words(7))
        frame = frame_of(run.new_page(1) - KERNEL_BASE)
        for value in (frame * PAGE | SHOWN | WRITE, frame * PAGE | SHOWN, 0):
            run.change_entry(space, address, value, make=1)
            expected = {address: value} if value else {}
            require_entries(run, space, expected, "after pte_set")


@pytest.mark.exercise("6.1", points=2, gate=True)
def test_unmap(lab):
    """Pages that are unmapped go, and an empty table with them; the others stay."""
    usually = (
        Usual(
            "the entry of.*seen 0$",
            "an entry outside the range went; or a table was given back that still has entries: "
            "does pte_set count them?",
        ),
        Usual("the entry of.*expected 0", "the range ends before `end`"),
        COUNT,
        PAGES,
        Usual("in use", "each page is released once; a table whose count is 1 goes with put"),
        Usual("tables", "the table is empty: put it back, and clear the directory's entry"),
        Usual(
            "panicked|no memory",
            "the kernel uses an entry at an address that it does not have: the directory has "
            "physical addresses; direct_map makes the kernel's of them",
        ),
    )
    start = some_address(lab) + PAGE * Random(lab.seed).randrange(1, 900)
    with told(usually, IN_GDB), outside(lab, Spaces, START) as run:
        space = run.empty_space()
        free = free_pages(run)
        addresses = [start + PAGE * i for i in range(9)]
        shown = {each: run.map_page(space, each, 1) for each in addresses}
        run.call("page_unmap_range", space, start + 2 * PAGE, start + 5 * PAGE)
        shown = {each: shown[each] for each in addresses[:2] + addresses[5:]}
        require_entries(run, space, shown, "after three of nine pages were unmapped")
        require_sound_tables(run, space, "after three of nine pages were unmapped")
        kept = free - free_pages(run)
        expect("pages in use after three of nine were unmapped, with the table", kept, 7)
        run.call("page_unmap_range", space, start - PAGE, start + 20 * PAGE)
        require_sound_tables(run, space, "after all pages were unmapped")
        tables = [number * LARGE_PAGE for number in tables_of(run, space)]
        require(not tables, "no page is mapped any more: expected no tables, seen one")
        expect("pages in use after all were unmapped", free - free_pages(run), 0)


@pytest.mark.exercise("6.1", points=2, gate=True)
def test_tlb(lab):
    """What the processor has seen, and may not any more, it has forgotten."""
    usually = (
        Usual("unmapped", "page_unmap_range calls tlb_flush_page for each entry that it clears"),
        COUNT,
        Usual("which was mapped", "test_entries says more"),
        Usual("can be written", "pte_set flushes an entry that loses a bit of LOSABLE"),
        Usual(
            "could write to",
            "the processor does not find the entry where pte_of has made it, or pte_set writes "
            "another value than it was given: test_entries says more",
        ),
    )
    start = some_address(lab) + 5 * PAGE
    with told(usually, IN_GDB), outside(lab, Spaces, START) as run:
        space = run.empty_space()
        for i in range(4):
            run.map_page(space, start + i * PAGE, 1)
        run.load_space(space)
        seen = run.write_pages(start, 4, 7)
        expect("how many of four writable pages the program could write to", sum(seen), 4)
        for i in range(2):
            entry = entry_at(run, space, start + i * PAGE)
            run.change_entry(space, start + i * PAGE, entry & ~WRITE)
        seen = run.write_pages(start, 4, 8)
        what = "which of four pages can be written after two lost PTE_WRITE (1: it can)"
        expect(what, seen, [0, 0, 1, 1])
        run.call("page_unmap_range", space, start + PAGE, start + 3 * PAGE)
        seen = run.readable(start, 4)
        what = "which of four pages can be read after two were unmapped (1: it can)"
        expect(what, seen, [1, 0, 0, 1])


@pytest.mark.exercise("6.1", points=1)
def test_protection(lab):
    """Pages lose the right to write, and their entries with PROT_NONE; nothing else changes."""
    usually = (
        Usual("expected 0, seen frame", "an entry that is 0 has no page: it stays 0"),
        Usual("which was mapped", "test_entries says more"),
        Usual(
            "read-only|SPACE_READ",
            "only PTE_WRITE goes: what else is in the entry, accessed and dirty, too, stays",
        ),
        Usual("no protection", "without any protection PTE_PRESENT goes, and the page stays"),
        Usual("allowed again", "PTE_PRESENT comes back; PTE_WRITE comes back by a fault only"),
        COUNT,
    )
    start = some_address(lab) + 8 * PAGE
    with told(usually, "make hint EX=6.1"), outside(lab, Spaces, START) as run:
        space = run.empty_space()
        for i in (0, 1, 3):
            run.map_page(space, start + i * PAGE, 1)
        run.load_space(space)
        run.write_pages(start, 2, 7)
        before = entries(run, space)
        dirty = entry_at(run, space, start) & DIRTY
        require(dirty, "the processor has not set the dirty bit of a page that was written to")
        run.call("page_protect_range", space, start, start + 3 * PAGE, 1)
        wanted = {
            at: entry if at > start + PAGE else entry & ~WRITE for at, entry in before.items()
        }
        require_entries(run, space, wanted, "after page_protect_range with SPACE_READ")
        run.call("page_protect_range", space, start, start + PAGE, 0)
        hidden = wanted | {start: wanted[start] & ~PRESENT}
        require_entries(run, space, hidden, "after page_protect_range with no protection")
        run.call("page_protect_range", space, start, start + PAGE, 3)
        require_entries(run, space, wanted, "after the page was allowed again")


@pytest.mark.exercise("6.1", points=1)
def test_copy(lab):
    """A copy shows the same pages; nobody may write to them; each has a reference more."""
    usually = (
        Usual(
            "of the copy",
            "the copy has the same page, without PTE_WRITE, PTE_ACCESSED and PTE_DIRTY",
        ),
        Usual("old space", "the old space loses PTE_WRITE, and nothing else"),
        Usual("references of the page", "page_hold for each page that is shown once more"),
        COUNT,
        PAGES,
        Usual("returns", "0 if all is copied; -ENOMEM only if there is no memory for a table"),
    )
    start = some_address(lab) + 20 * PAGE
    with told(usually, "make hint EX=6.1"), outside(lab, Spaces, START) as run:
        space, copy = run.empty_space(), run.empty_space()
        for i in (0, 1, 4):
            run.map_page(space, start + i * PAGE, i != 1)
        run.load_space(space)
        run.write_pages(start, 1, 7)
        before = entries(run, space)
        result = run.call("page_copy_range", copy, space, start, start + 3 * PAGE)
        expect("page_copy_range returns", result, 0)
        clear = ~(WRITE | ACCESSED | DIRTY)
        wanted = {at: entry & clear for at, entry in before.items() if at < start + 3 * PAGE}
        require_entries(run, copy, wanted, "of the copy")
        kept = {at: entry & ~WRITE if at in wanted else entry for at, entry in before.items()}
        require_entries(run, space, kept, "of the old space")
        for each in (space, copy):
            require_sound_tables(run, each, "after the copy")
        for address, entry in before.items():
            seen = page_at(run, frame_of(entry)).references
            what = f"references of the page of {address:#x} after page_copy_range"
            expect(what, seen, 2 if address in wanted else 1)
