"""Exercise 6.3: space_fault is called as the kernel does at a page fault, and the page tables are
looked at afterwards.

Not looked at here, but by the graders: how far exactly a stack may grow, memory that is not zero,
objects that sleep or have no such page, what must not sleep, no memory, and fault-around.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson5.support import outside
from tests.lesson6.faults import (
    BASE,
    FIRST_WORD,
    Faults,
    page_of_object,
    require_fault,
    require_own_page,
    require_zero,
    which_page,
)
from tests.lesson6.spaces import START
from tests.lesson6.support import (
    PAGE,
    SHARED,
    STACK,
    STACK_END,
    WRITE,
    areas_of,
    frame_of,
    page_at,
    require_sound_tables,
    state_name,
)
from tests.support.told import Usual, expect, require, told

IN_GDB = "make gdb LESSON=6 BOOT=direct, then: break space_fault, continue, info args"
COUNTS = Usual(
    "references of the table|space->pages",
    "pte_fill counts in the table; space->pages is one more for each entry that is made",
)
REFUSED = Usual(
    "returns: expected 0, seen -E",
    "the area of the address, or its flags, are not those that were asked for; without a table "
    "pte_of is asked to make one",
)


@pytest.mark.exercise("6.3", points=2, gate=True)
def test_zeros(lab):
    """A read shows the zero page, which all share and nobody may write to; a write gets a page."""
    usually = (
        REFUSED,
        Usual("have entries", "pte_of with the page's address, and pte_fill with pte_for"),
        Usual("one page in both", "a page that is only read is zero_page, which all share"),
        Usual("PTE_WRITE of the zero page", "pte_for(page, false): a write must fault again"),
        Usual("page_alloc|words of", "a page of its own from page_alloc, cleared, and writable"),
        COUNTS,
    )
    first = Random(lab.seed).randrange(40)
    with told(usually, IN_GDB), outside(lab, Faults, START) as run:
        space = run.begin()
        run.put(space, first, first + 8, 3)
        start = BASE + first * PAGE
        for at in (start + 5, start + 2 * PAGE):
            require_fault(run, space, at, write=False)
        run.spill_junk(8)  # so that the next pages of page_alloc are not zero by chance
        require_fault(run, space, start + 4 * PAGE + 0xFFF, write=True)
        seen = require_sound_tables(run, space, "after three faults")
        made = [(at - start) // PAGE for at in sorted(seen)]
        expect("pages of the area that have entries", made, [0, 2, 4])
        read, again, written = (seen[start + i * PAGE] for i in (0, 2, 4))
        same = frame_of(read) == frame_of(again)
        require(same, "two pages that were only read: expected one page in both entries, seen two")
        state = page_at(run, frame_of(read)).state
        expect("state of the page that is read", state_name(state), "PAGE_RESERVED")
        expect("PTE_WRITE of the zero page", bool(read & WRITE), False)
        require_zero(run, read, "a page that was read")
        require_own_page(run, written, "the page that was written to")
        require_zero(run, written, "a page that is new")


@pytest.mark.exercise("6.3", points=2, gate=True)
def test_refusals(lab):
    """Where no area is, -EFAULT; where it forbids the access, -EACCES."""
    usually = (
        Usual("expected -EFAULT", "no area has the address: area_from finds the next one above"),
        Usual("expected -EACCES", "a write needs SPACE_WRITE; a read any bit of SPACE_PROTECTION"),
        REFUSED,
        Usual("^entries after", "the area is asked before anything is made"),
    )
    with told(usually, "make hint EX=6.3"), outside(lab, Faults, START) as run:
        space = run.begin()
        for first, flags in ((10, 3), (20, 1), (30, 0)):
            run.put(space, first, first + 2, flags)
        for page, write, expected in (
            (9, False, "-EFAULT"),
            (12, True, "-EFAULT"),
            (50, False, "-EFAULT"),
            (20, True, "-EACCES"),
            (30, False, "-EACCES"),
            (31, True, "-EACCES"),
        ):
            require_fault(run, space, BASE + page * PAGE + 8, write, expected)
        seen = require_sound_tables(run, space, "after faults that were refused")
        expect("entries after faults that were refused", len(seen), 0)
        require_fault(run, space, BASE + 21 * PAGE, write=False)


@pytest.mark.exercise("6.3", points=1)
def test_stack(lab):
    """The stack grows to a page that is touched below it; another area does not."""
    usually = (
        Usual("expected 0, seen -EFAULT", "area_from finds the stack above: AREA_STACK may grow"),
        Usual("expected -EFAULT", "only an area with AREA_STACK grows, at most to STACK_LIMIT"),
        Usual("begins", "area_move_start, to the page that was touched"),
        COUNTS,
    )
    with told(usually, IN_GDB), outside(lab, Faults, START) as run:
        space = run.begin()
        start = STACK_END - 4 * PAGE
        run.put_area(space, start, STACK_END, 3 | STACK, 0, 0)
        run.put(space, 10, 12, 3)
        for below in (32, PAGE + 8, 100 * PAGE):
            address = start - below
            require_fault(run, space, address, write=True)
            seen = areas_of(run, space)[-1].start
            what = f"the stack begins, after a write at {address:#x}, at"
            expect(what, hex(seen), hex(address & -PAGE))
        require_fault(run, space, STACK_END - (9 << 20), True, "-EFAULT")
        require_fault(run, space, BASE + 9 * PAGE, True, "-EFAULT")
        require_sound_tables(run, space, "after the stack has grown")


@pytest.mark.exercise("6.3", points=2, gate=True)
def test_object(lab):
    """A page of an object is shown read-only; a write to a private one gets a copy."""
    usually = (
        REFUSED,
        Usual(
            "what is shown",
            "the object's page area_index(area, address), as ops->page returns it",
        ),
        Usual("PTE_WRITE of a page that was read", "the object's own page is shown read-only"),
        Usual("copy|page_alloc", "page_copy, and the entry is writable"),
        Usual("shared", "what is written to a shared area is written to the object's own page"),
        COUNTS,
    )
    with told(usually, IN_GDB), outside(lab, Faults, START) as run:
        space = run.begin(with_peek=False)
        run.put(space, 10, 20, 3, of=1, index=7)
        run.put(space, 20, 30, 3 | SHARED, of=1, index=20)
        require_fault(run, space, BASE + 12 * PAGE, write=False)
        require_fault(run, space, BASE + 14 * PAGE, write=True)
        require_fault(run, space, BASE + 21 * PAGE, write=True)
        seen = require_sound_tables(run, space, "after three faults")
        read, own, shared = (seen.get(BASE + page * PAGE, 0) for page in (12, 14, 21))
        expect(
            "what is shown of the object after page 12 was read (10 is its page 7)",
            which_page(run, read),
            "page 9 of the object",
        )
        expect("PTE_WRITE of a page that was read", bool(read & WRITE), False)
        require(
            frame_of(own) != page_of_object(run, 11), "a private page: expected a copy, seen none"
        )
        require_own_page(run, own, "the copy")
        others = run.others(frame_of(own), FIRST_WORD + 11)
        expect("words of the copy that differ from the object's page", others, 0)
        expect(
            "the shared area, after page 21 was written to (20 is the object's page 20), shows",
            which_page(run, shared),
            "page 21 of the object",
        )
        expect("PTE_WRITE of a shared page that is written", bool(shared & WRITE), True)


@pytest.mark.exercise("6.3", points=1)
def test_entries_that_are_there(lab):
    """A fault that needs nothing changes nothing; a hidden page comes back; the zero page that is
    written to becomes a page of the program's own."""
    usually = (
        Usual("right already", "an entry that allows the access stays as it is"),
        Usual("hidden", "*pte | PTE_PRESENT, with pte_set"),
        Usual("page_alloc|words of|PTE_WRITE", "an entry that is read-only: copy_on_write"),
        COUNTS,
    )
    with told(usually, "make hint EX=6.3"), outside(lab, Faults, START) as run:
        space = run.begin()
        run.put(space, 5, 9, 3)
        start = BASE + 5 * PAGE
        require_fault(run, space, start, write=True)
        before = require_sound_tables(run, space, "after a write")
        for write in (False, True):
            require_fault(run, space, start, write)
            seen = require_sound_tables(run, space, "after a fault that needs nothing")
            expect("an entry that is right already", hex(seen[start]), hex(before[start]))
        run.change_entry(space, start, before[start] & ~1)
        require_fault(run, space, start, write=False)
        seen = require_sound_tables(run, space, "after a fault on a hidden page")
        expect("the entry of a hidden page", hex(seen[start]), hex(before[start]))
        for write in (False, True):
            require_fault(run, space, start + PAGE, write)
        written = require_sound_tables(run, space, "after all")[start + PAGE]
        require_own_page(run, written, "the zero page that was written to")
        require_zero(run, written, "a page that was read before")
