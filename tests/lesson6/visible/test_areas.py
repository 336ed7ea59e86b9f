"""Exercise 6.2: areas of a space of the test's own. Pages are counted from some address on.

Not looked at here, but by the graders: no memory, page tables and protections, references that
are counted, speed, the heap's borders, and operations in random order against a model.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson5.support import outside
from tests.lesson6.areas import (
    BASE,
    CUT,
    NAMES,
    PROTECT,
    PUT,
    SPACE_SIZE,
    Areas,
    Model,
    Operation,
    area_code,
    begin,
    cut,
    put,
    require_areas,
)
from tests.lesson6.spaces import START
from tests.lesson6.support import PAGE
from tests.support.told import Usual, expect, told

HEAP = 0x08050000
IN_GDB = "make gdb LESSON=6 BOOT=direct, then: break area_put, continue, info args"
LOST = Usual(
    "seen none",
    "area_put finds an area where none is, and makes that one larger: area_find of an address must "
    "not return an area that ends there",
)
NEIGHBOURS = (
    Usual(
        "pieces",
        "two neighbours are one area if their flags and objects are equal and the upper one's page "
        "of the object follows the lower one's last",
    ),
    Usual(
        "object's page at the start",
        "the index of an area moves along with its start: area_index says which page of the object "
        "is at an address",
    ),
    Usual(
        r"seen \[(.|\n)* is missing",
        "what is outside the range that is cut stays: if that is both ends of one area, the upper "
        "end becomes an area of its own",
    ),
    Usual(
        "other borders|other flags",
        "an area that the range touches keeps what is outside the range, with its flags and its "
        "object; two neighbours are one area only if flags and object are equal",
    ),
    Usual("should not be there", "what is in the range that is cut goes, whatever it is"),
)


def place(run: Areas, space: int, name: str, page: int) -> str:
    """Where the area is that area_find or area_from returns for a page, in pages."""
    found = run.call(name, space, BASE + page * PAGE + 7)
    return (
        f"the area at page {(run.guest.read_word(found + 8) - BASE) // PAGE}" if found else "NULL"
    )


@pytest.mark.exercise("6.2", points=2, gate=True)
def test_find(lab):
    """area_put adds an area; area_find, area_from and area_gap find what is there."""
    usually = (
        Usual(
            "area_find", "the area with the largest start up to the address, if it ends after it"
        ),
        Usual("area_from", "the area that has the address; or else the next one above"),
        Usual("area_gap", "from `high` down: room above an area that ends, or below its start"),
        LOST,
    )
    with told(usually, IN_GDB), area_code(lab) as run:
        space, model = begin(run), Model()
        for first, end in ((10, 20), (30, 31), (24, 27)):
            expect("area_put returns", put(run, space, first, end, 3), 0)
            model.apply(Operation(PUT, BASE + first * PAGE, BASE + end * PAGE, 3))
        require_areas(run, space, model, "after three calls of area_put")
        for name, page, wanted in (
            ("area_find", 10, 10),
            ("area_find", 19, 10),
            ("area_find", 20, None),
            ("area_find", 9, None),
            ("area_find", 30, 30),
            ("area_from", 9, 10),
            ("area_from", 26, 24),
            ("area_from", 27, 30),
            ("area_from", 31, None),
        ):
            what = "NULL" if wanted is None else f"the area at page {wanted}"
            expect(f"{name} of page {page}", place(run, space, name, page), what)
        low, high = BASE + 2 * PAGE, BASE + 32 * PAGE
        for count, wanted in ((1, 31), (3, 27), (4, 20), (8, 2)):
            found = run.call("area_gap", space, low, high, count * PAGE)
            what = f"area_gap for {count} pages, from page 2 to page 32"
            expect(what, f"page {(found - BASE) // PAGE}", f"page {wanted}")
        found = run.call("area_gap", space, low, high, 9 * PAGE)
        expect("area_gap for 9 pages (there is no room)", found, 0)


@pytest.mark.exercise("6.2", points=2, gate=True)
def test_neighbours(lab):
    """What could be one area is one, whatever comes first."""
    with told((LOST, *NEIGHBOURS), IN_GDB), area_code(lab) as run:
        pieces = [(10, 12, 0, 0), (12, 15, 0, 0), (15, 16, 0, 0)]
        pieces += [(20, 22, 1, 5), (22, 24, 1, 7), (24, 26, 1, 8), (26, 28, 2, 10)]
        Random(lab.seed).shuffle(pieces)
        space, model = begin(run), Model()
        for first, end, of, index in pieces:
            each = Operation(PUT, BASE + first * PAGE, BASE + end * PAGE, 3, of, index)
            what = f"area_put of [{first}, {end})"
            what += f", of page {index} of object {of} on" if of else ""
            expect(f"{what} returns", put(run, space, first, end, 3, of, index), 0)
            model.apply(each)
            require_areas(run, space, model, f"after {what}")


@pytest.mark.exercise("6.2", points=2, gate=True)
def test_cut(lab):
    """A cut at the head, the tail, in the middle, of all, of nothing, and over something."""
    usually = (
        LOST,
        *NEIGHBOURS,
        Usual("returns", "only a cut in the middle of an area needs memory, and there is some"),
    )
    with told(usually, "make hint EX=6.2"), area_code(lab) as run:
        space, model = begin(run), Model()
        model.apply(Operation(PUT, BASE + 10 * PAGE, BASE + 40 * PAGE, 3, 1, 100))
        put(run, space, 10, 40, 3, 1, 100)
        for first, end in ((5, 12), (36, 45), (20, 25), (50, 60), (28, 30), (24, 29), (31, 50)):
            expect("area_cut returns", cut(run, space, first, end), 0)
            model.apply(Operation(CUT, BASE + first * PAGE, BASE + end * PAGE))
            require_areas(run, space, model, f"after a cut of [{first}, {end})")
        for first, end, flags in ((14, 16, 1), (10, 33, 3), (12, 31, 3)):
            expect("area_put over something returns", put(run, space, first, end, flags), 0)
            model.apply(Operation(PUT, BASE + first * PAGE, BASE + end * PAGE, flags))
            require_areas(run, space, model, f"after area_put over [{first}, {end})")


@pytest.mark.exercise("6.2", points=1)
def test_protect(lab):
    """A protection has borders of its own, and neighbours with the same one are one area again."""
    lost = Usual(
        "panicked",
        "within a range that areas cover area_find returns an area that has the address, and of "
        "the address at an area's end the one that begins there: test_find says more",
    )
    with told((*NEIGHBOURS, lost), "make hint EX=6.2"), area_code(lab) as run:
        space, model = begin(run), Model()
        model.apply(Operation(PUT, BASE + 10 * PAGE, BASE + 30 * PAGE, 3))
        put(run, space, 10, 30, 3)
        for first, end, flags in ((15, 20, 1), (10, 12, 1), (18, 22, 5), (12, 15, 1), (10, 30, 3)):
            start, last = BASE + first * PAGE, BASE + end * PAGE
            expect("area_protect returns", run.call("area_protect", space, start, last, flags), 0)
            model.apply(Operation(PROTECT, start, last, flags))
            require_areas(run, space, model, f"after flags {flags} for [{first}, {end})")


@pytest.mark.exercise("6.2", points=1)
def test_size(lab):
    """space->size is the sum of all areas, whatever happens to them."""
    usually = (
        LOST,
        *NEIGHBOURS,
        Usual("size.*below grow", "an area that grows is more: its end and space->size"),
        Usual("size.*a tail", "an area that ends earlier is less: its end and space->size"),
        Usual("size.*a head", "area_move_start changes the size, too: do not count twice"),
        Usual("size.*the middle|size.*of its own", "insert counts the whole upper part: when an "
              "area is split the lower part's size is less by as much"),
        Usual("size.*a gap", "discard takes away what the upper area has: the lower one, which has "
              "its pages then, counts them again"),
        Usual("size.*over several", "what is cut counts no more; what is put there does (insert)"),
    )  # fmt: skip
    with told(usually, IN_GDB), area_code(lab) as run:
        space, model = begin(run), Model()
        for kind, first, end, flags, more in (
            (PUT, 10, 20, 3, ""),
            (PUT, 20, 24, 3, "which makes the area below grow"),
            (CUT, 22, 24, 0, "which takes a tail"),
            (CUT, 10, 12, 0, "which takes a head"),
            (CUT, 14, 16, 0, "which takes the middle"),
            (PUT, 14, 16, 3, "which fills a gap"),
            (PROTECT, 15, 18, 1, "which has borders of its own"),
            (PUT, 11, 21, 7, "over several areas"),
        ):
            each = Operation(kind, BASE + first * PAGE, BASE + end * PAGE, flags)
            run.perform(space, each)
            model.apply(each)
            what = f"{NAMES[kind]} of [{first}, {end}){more and ', '}{more}"
            require_areas(run, space, model, f"after {what}")
            size = run.guest.read_word(space + SPACE_SIZE) // PAGE
            expected = sum(last - start for start, last, *_ in model.areas()) // PAGE
            expect(f"space->size, in pages, after {what}", size, expected)


@pytest.mark.exercise("6.2", points=1)
def test_heap(lab):
    """The heap grows and shrinks, to the byte; what is new is zero."""
    usually = (
        Usual("returns", "the new end if that is possible, else the old one"),
        Usual("read", "what was written beyond the end is cleared when the heap shrinks"),
        Usual("written", "the heap is an area from heap_start to heap_end, rounded up to pages"),
    )
    with told(usually, "make hint EX=6.2"), outside(lab, Areas, START) as run:
        space = heap_space(run)
        for end in (HEAP + 100, HEAP + 3 * PAGE, HEAP + PAGE + 8, HEAP + PAGE):
            found = run.call("space_set_break", space, end)
            expect(f"space_set_break({end:#x}) returns", hex(found), hex(end))
        found = run.call("space_set_break", space, HEAP - 1)
        expect("space_set_break below the heap returns", hex(found), hex(HEAP + PAGE))
        expect("pages of the heap that are written", sum(run.write_pages(HEAP, 3, 7)), 1)
        run.write_pages(HEAP + 16, 1, 7)
        for end in (HEAP + 8, HEAP + PAGE):
            run.call("space_set_break", space, end)
        what = "what is read 16 bytes from the start of the heap, which had only 8 meanwhile"
        expect(what, run.read_pages(HEAP + 16, 1), [0])
        for end in (HEAP, HEAP + 2 * PAGE):
            run.call("space_set_break", space, end)
        expect("what is read in the heap that was given back", run.read_pages(HEAP, 2), [0, 0])


def heap_space(run: Areas) -> int:
    """A program's space, in use, whose heap begins at HEAP."""
    run.call("space_share", run.new_page(0))
    space = run.call("space_create")
    run.call("space_set_heap", space, HEAP)
    run.run_space(space)
    return space
