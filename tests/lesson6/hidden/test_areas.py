"""Exercise 6.2: random operations against a model, no memory, page tables, counts, speed, and the
heap at its borders."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from random import Random

import pytest

from tests.lesson4.support import signed
from tests.lesson5.support import NANOSECONDS, outside
from tests.lesson6.areas import (
    BASE,
    CUT,
    NAMES,
    PROTECT,
    PUT,
    Areas,
    Model,
    Operation,
    area_code,
    begin,
    cut,
    put,
    require_areas,
    require_operations,
)
from tests.lesson6.spaces import START
from tests.lesson6.support import (
    COPIED,
    ENOMEM,
    PAGE,
    PRESENT,
    SHARED,
    STACK_END,
    STACK_GAP,
    STACK_LIMIT,
    WRITE,
    areas_of,
    entries,
    fail,
    frame_of,
    page_at,
    pages_of,
    require_sound_tables,
)
from tests.support.told import expect

HEAP = 0x08050000
MOST_SEARCH, MOST_CHANGE = 500, 6000  # instructions, among so many areas
AREAS = 600
HEAP_END, SIZE = 16, 20  # of heap_end and size in struct space
LOCKED, PINNED = 64, 256  # AREA_LOCKED, AREA_PINNED


@pytest.mark.exercise("6.2", points=6, once=True)
@pytest.mark.parametrize("number", range(3))
def test_random_operations(lab, number):
    """Random operations, with memory and without: areas are the model's."""
    with area_code(lab) as run:
        require_operations(run, Random(lab.seed + number), 300)


@pytest.mark.exercise("6.2", points=2, once=True)
def test_both_neighbours(lab):
    """An area that fills a gap: it merges with the one below, the one above, or both."""
    with area_code(lab) as run:
        for below, above, middle in (
            ((3, 0, 0), (3, 0, 0), (3, 0, 0)),
            ((3, 1, 4), (3, 1, 10), (3, 1, 8)),
            ((3, 1, 4), (3, 1, 11), (3, 1, 8)),
            ((3, 1, 5), (3, 1, 10), (3, 1, 8)),
            ((3, 1, 4), (3, 2, 10), (3, 1, 8)),
            ((11, 1, 4), (3, 1, 10), (3, 1, 8)),
            ((1, 0, 0), (3, 0, 0), (3, 0, 0)),
            ((3, 0, 0), (3, 1, 10), (3, 1, 8)),
            ((3, 1, 4), (3, 1, 10), (3, 0, 8)),
            ((3, 1, 0xFFFFFFFA), (3, 1, 0), (3, 1, 0xFFFFFFFE)),
        ):
            space, model = begin(run), Model()
            parts = ((10, 14, below), (16, 20, above), (14, 16, middle))
            for first, end, (flags, of, index) in parts:
                expect("area_put returns", put(run, space, first, end, flags, of, index), 0)
            for first, end, (flags, of, index) in parts:
                start, last = BASE + first * PAGE, BASE + end * PAGE
                model.apply(Operation(PUT, start, last, flags, of, index))
            if below[2] != 0xFFFFFFFA:
                require_areas(run, space, model, f"after a hole was filled: {below}, {above}")
            for first in (10, 14, 19):
                if not run.call("area_find", space, BASE + first * PAGE):
                    fail(f"area_find does not find what was put at page {first}")


@pytest.mark.exercise("6.2", points=1, once=True)
def test_copied_areas(lab):
    """AREA_COPIED, AREA_LOCKED and AREA_PINNED: they survive insertion, protection and cuts, and
    the first does not prevent a merge."""
    with area_code(lab) as run:
        for below, above in ((COPIED, 0), (0, COPIED), (COPIED, COPIED)):
            for middle in (0, COPIED):
                space = begin(run)
                for first, end, copied in ((10, 14, below), (16, 20, above), (14, 16, middle)):
                    put(run, space, first, end, 3 | copied, 1, first)
                what = "areas that differ in nothing but AREA_COPIED"
                require_form(run, space, what, [(10, 20, 3 | COPIED)])
                for protection in (1, 3):
                    middle_of = BASE + 12 * PAGE, BASE + 15 * PAGE
                    run.call("area_protect", space, *middle_of, protection)
                    own = (12, 15, protection | COPIED)
                    parts = [(10, 12, 3 | COPIED), own, (15, 20, 3 | COPIED)]
                    whole = [(10, 20, 3 | COPIED)]
                    what = f"areas, the middle with the protection {protection}"
                    require_form(run, space, what, parts if protection == 1 else whole)
        space = begin(run)
        put(run, space, 10, 14, 1 | SHARED | LOCKED, 1, 10)
        run.call("area_protect", space, BASE + 10 * PAGE, BASE + 12 * PAGE, 0)
        parts = [(10, 12, SHARED | LOCKED), (12, 14, 1 | SHARED | LOCKED)]
        require_form(run, space, "areas that can never be written to", parts)
        put(run, space, 20, 24, 3 | PINNED)
        run.call("area_protect", space, BASE + 20 * PAGE, BASE + 22 * PAGE, 1)
        parts += [(20, 22, 1 | PINNED), (22, 24, 3 | PINNED)]
        require_form(run, space, "areas that are to stay in memory", parts)


def require_form(
    run: Areas, space: int, what: str, expected: Sequence[tuple[int, int, int]]
) -> None:
    """The areas of a space are these: pages, counted from BASE, and flags."""
    seen = areas_of(run, space)
    pages = [((e.start - BASE) // PAGE, (e.end - BASE) // PAGE, e.flags) for e in seen]
    expect(what, pages, list(expected))


@pytest.mark.exercise("6.2", points=1, once=True)
def test_gaps_that_just_fit(lab):
    """area_gap: it finds a gap of exactly the size, at any place, and never below `low`."""
    with area_code(lab) as run:
        space = begin(run)
        low, high = BASE + 10 * PAGE, BASE + 20 * PAGE
        for parts, length, expected in (
            ((), 10, 10),
            ((), 11, 0),
            (((13, 20),), 3, 10),
            (((13, 20),), 4, 0),
            (((8, 10), (13, 20)), 3, 10),
            (((8, 11), (13, 20)), 3, 0),
            (((10, 12), (15, 20)), 3, 12),
            (((10, 17),), 3, 17),
            (((10, 17), (20, 22)), 3, 17),
            (((10, 20),), 1, 0),
        ):
            cut(run, space, 0, 40)
            for first, end in parts:
                put(run, space, first, end, 1)
            found = run.call("area_gap", space, low, high, length * PAGE)
            page = (found - BASE) // PAGE if found else 0
            what = f"area_gap for {length} pages from page 10 to 20, with areas {parts}"
            expect(what, page, expected)


@pytest.mark.exercise("6.2", points=2, once=True)
def test_over_many(lab):
    """A cut or an insertion over one, two, ten areas and the whole space: areas and pages are
    right."""
    with area_code(lab) as run:
        for name, count in itertools.product(("area_cut", "area_put"), (1, 2, 10)):
            space, model = begin(run), Model()
            shown = []
            for i in range(count):
                put(run, space, 10 + 3 * i, 12 + 3 * i, 3, i % 4, 10 * i)
                shown.append(run.map_page(space, BASE + (10 + 3 * i) * PAGE, 1))
            expect(f"{name} returns", change(run, name, space, 0, 60, 1), 0)
            if name == "area_put":
                model.apply(Operation(PUT, BASE, BASE + 60 * PAGE, 1))
            require_areas(run, space, model, f"after {name} over {count} areas")
            expect(f"entries after {name} over all", entries(run, space), {})
            expect(f"pages after {name} over all", pages_of(run, space), 0)
            kept = sum(page_at(run, frame_of(entry)).is_used for entry in shown)
            expect("pages of the areas that are still in use after that", kept, 0)
            for number in (1, 2, 3):
                references = run.references[number]
                expect("references of an object without areas", references, 0)


@pytest.mark.exercise("6.2", points=2, once=True)
def test_a_release_that_sleeps(lab):
    """The release of an object that sleeps: another thread sees the areas after the whole change,
    and its own changes survive."""
    with area_code(lab) as run:
        for kind, first, end, other, low, high in (
            (CUT, 8, 18, PUT, 5, 25),
            (CUT, 10, 12, PUT, 10, 12),
            (CUT, 8, 18, CUT, 5, 25),
            (PUT, 8, 18, PUT, 5, 13),
            (PUT, 8, 18, PUT, 9, 10),
            (PUT, 9, 20, CUT, 5, 25),
        ):
            space, model = begin(run), Model()
            start, last = BASE + first * PAGE, BASE + end * PAGE
            for page, of in ((10, 1), (14, 2)):
                put(run, space, page, page + 2, 3, of, page)
                at = BASE + page * PAGE
                model.apply(Operation(PUT, at, at + 2 * PAGE, 3, of, page))
            change = Operation(other, BASE + low * PAGE, BASE + high * PAGE, 1)
            run.meanwhile = change
            result = put(run, space, first, end, 3) if kind == PUT else cut(run, space, first, end)
            what = f"{NAMES[kind]} of [{first}, {end}), over two objects"
            expect(f"{what}, returns", result, 0)
            model.apply(Operation(kind, start, last, 3))
            model.apply(change)
            when = f"after {what}, and meanwhile {NAMES[other]} of [{low}, {high})"
            require_areas(run, space, model, when)
            count = run.out
            expect(f"areas that are allocated {when}", count, len(areas_of(run, space)))


def change(run: Areas, name: str, space: int, first: int, end: int, protection: int) -> int:
    """Calls area_cut, area_protect or area_put for pages counted from BASE."""
    place = BASE + first * PAGE, BASE + end * PAGE
    if name == "area_put":
        return signed(run.put_area(space, *place, protection))
    more = (protection,) if name == "area_protect" else ()
    return signed(run.call(name, space, *place, *more))


@pytest.mark.exercise("6.2", points=2, once=True)
def test_no_memory(lab):
    """The n-th object for an area cannot be allocated: -ENOMEM, and nothing has changed."""
    with area_code(lab) as run:
        for name, first, end in (
            ("area_cut", 14, 16),
            ("area_protect", 14, 16),
            ("area_protect", 10, 12),
            ("area_put", 14, 16),
            ("area_put", 40, 42),
            ("area_put", 5, 12),
        ):
            for number in (1, 2):
                space, model = begin(run), Model()
                put(run, space, 10, 20, 3, 1, 7)
                model.apply(Operation(PUT, BASE + 10 * PAGE, BASE + 20 * PAGE, 3, 1, 7))
                for page in (10, 15, 19):
                    run.map_page(space, BASE + page * PAGE, 1)
                before = entries(run, space)
                run.fails_in = number
                result = change(run, name, space, first, end, 1)
                run.fails_in = 0
                what = f"{name} of [{first}, {end}) when object {number} cannot be had"
                if result == 0:
                    kind = {"area_cut": CUT, "area_protect": PROTECT, "area_put": PUT}[name]
                    place = BASE + first * PAGE, BASE + end * PAGE
                    model.apply(Operation(kind, *place, 1))
                elif result != -ENOMEM:
                    fail(f"{what} returns {result}")
                require_areas(run, space, model, f"after {what}")
                if result and entries(run, space) != before:
                    fail(f"{what}: expected page tables as they were, seen others")
                if run.out != len(areas_of(run, space)):
                    fail(f"{what}: an area was neither given back nor put into the tree")
                size = run.guest.read_word(space + SIZE)
                expect(f"space->size after {what}", size, sum(e - s for s, e, *_ in model.areas()))


@pytest.mark.exercise("6.2", points=2, once=True)
def test_no_memory_is_needed(lab):
    """Changes that need no new area: they never fail."""
    with area_code(lab) as run:
        space, model = begin(run), Model()
        put(run, space, 10, 30, 3)
        model.apply(Operation(PUT, BASE + 10 * PAGE, BASE + 30 * PAGE, 3))
        for name, first, end in (
            ("area_cut", 5, 12),
            ("area_cut", 28, 31),
            ("area_cut", 40, 50),
            ("area_put", 28, 33),
            ("area_protect", 12, 33),
            ("area_cut", 5, 33),
        ):
            run.fails_in = 1
            result = change(run, name, space, first, end, 3)
            expect(f"{name} of [{first}, {end}), which needs no area more, returns", result, 0)
            kind = {"area_cut": CUT, "area_protect": PROTECT, "area_put": PUT}[name]
            model.apply(Operation(kind, BASE + first * PAGE, BASE + end * PAGE, 3))
            require_areas(run, space, model, f"after {name} of [{first}, {end})")


@pytest.mark.exercise("6.2", points=2, once=True)
def test_entries(lab):
    """Page table entries: those in the range go with it or get its protection, and no others."""
    with area_code(lab) as run:
        space = begin(run)
        put(run, space, 10, 20, 3)
        put(run, space, 20, 24, 1)
        for page in range(10, 24):
            run.map_page(space, BASE + page * PAGE, page < 20)
        cut(run, space, 13, 15)
        seen = [(at - BASE) // PAGE for at in require_sound_tables(run, space, "after a cut")]
        wanted = [page for page in range(10, 24) if page not in (13, 14)]
        expect("pages with an entry after [13, 15) was cut", sorted(seen), wanted)
        run.call("area_protect", space, BASE + 16 * PAGE, BASE + 22 * PAGE, 1)
        found = entries(run, space)
        writable = sorted((at - BASE) // PAGE for at, entry in found.items() if entry & WRITE)
        expect("pages that can be written after [16, 22) lost that", writable, [10, 11, 12, 15])
        run.call("area_protect", space, BASE + 15 * PAGE, BASE + 24 * PAGE, 0)
        found = entries(run, space)
        present = sorted((at - BASE) // PAGE for at, entry in found.items() if entry & PRESENT)
        expect("pages that are present after [15, 24) lost all rights", present, [10, 11, 12])
        put(run, space, 11, 17, 3)
        seen = sorted((at - BASE) // PAGE for at in require_sound_tables(run, space, "after that"))
        expect(
            "pages with an entry after an area was put over [11, 17)", seen, [10, *range(17, 24)]
        )


def mean_cost(run: Areas, name: str, calls: Sequence[tuple[int, int]]) -> float:
    """The mean number of instructions of some searches. Fails where together they take more than
    they may."""
    most = left = MOST_SEARCH * len(calls)
    for each in calls:
        left -= run.kernel.cost(name, *each, most=left)[0]
    return (most - left) / len(calls)


@pytest.mark.exercise("6.2", points=2)
def test_cost(lab):
    """The cost of a search among 600 areas: bounded by the tree's depth, whatever their sizes."""
    with outside(lab, Areas, START) as run:
        space = begin(run)
        for number in range(AREAS):
            put(run, space, 2 * number, 2 * number + 1, 3)
        some = [37 * i % AREAS for i in range(8)]
        below = [(space, BASE + 2 * at * PAGE) for at in some]
        above = [(space, BASE + (2 * at + 1) * PAGE) for at in some]
        middle = BASE + (AREAS | 1) * PAGE
        place = space, middle, middle + PAGE
        nanoseconds = NANOSECONDS[lab.mode]
        putting, _ = run.kernel.price(nanoseconds, "area_put", *place, run.form(1))
        there = sum(area.start == middle for area in areas_of(run, space))
        cutting, _ = run.kernel.price(nanoseconds, "area_cut", *place)
        left = sum(area.start == middle for area in areas_of(run, space))
        if (there, left) != (1, 0):
            fail(f"an area that is put and cut among {AREAS}: seen {there} times, and then {left}")
        first = 2 * AREAS + 9  # the page below an area of 3,000
        put(run, space, first + 1, first + 3001, 3)
        gap = space, BASE, BASE + (first + 3001) * PAGE, PAGE
        expect("area_gap of a page", run.call("area_gap", *gap), BASE + first * PAGE)
        passing, _ = run.kernel.cost("area_gap", *gap, most=2 * MOST_SEARCH)
        for name, count, most in (
            ("area_find", mean_cost(run, "area_find", below), MOST_SEARCH),
            ("area_from", mean_cost(run, "area_from", above), MOST_SEARCH),
            ("area_gap beyond one of them", passing, 2 * MOST_SEARCH),
            ("area_put and area_cut", putting + cutting, MOST_CHANGE),
        ):
            if count > most:
                fail(f"{name} among {AREAS} areas: {count:.0f} instructions, not {most}")


@pytest.mark.exercise("6.2", points=3, once=True)
def test_heap_and_its_neighbours(lab):
    """The heap: it grows up to the next area, not into the stack's room, and may begin within a
    page of the program."""
    with outside(lab, Areas, START) as run:
        run.call("space_share", run.new_page(0))
        space = run.call("space_create")
        run.put_area(space, 0x08048000, HEAP, 3, 0, 0)
        start = HEAP - 0x123
        run.call("space_set_heap", space, start)
        run.put_area(space, HEAP + 8 * PAGE, HEAP + 9 * PAGE, 1, 0, 0)
        run.run_space(space)
        end = start
        for wanted, possible in (
            (start + 0x20, True),
            (HEAP, True),
            (HEAP + 1, True),
            (HEAP + 8 * PAGE, True),
            (HEAP + 8 * PAGE + 1, False),
            (HEAP + 12 * PAGE, False),
            (HEAP + 5, True),
            (start - 1, False),
            (0, False),
            (HEAP - 1, True),
            (start, True),
            (STACK_END - STACK_LIMIT - STACK_GAP + 1, False),
            (0xBFFFFFFF, False),
            (0xFFFFFFFF, False),
            (HEAP + 2 * PAGE - 1, True),
        ):
            found = run.call("space_set_break", space, wanted)
            end = wanted if possible else end
            expect(f"space_set_break({wanted:#x}) returns", hex(found), hex(end))
            top = -(-max(end, HEAP) // PAGE) * PAGE
            covered = [
                each.end for each in areas_of(run, space) if each.start <= HEAP - 1 < each.end
            ]
            expect(f"where the heap's area ends, the heap ends at {end:#x},", covered, [top])
        run.call("area_cut", space, HEAP + 8 * PAGE, HEAP + 9 * PAGE)
        last = STACK_END - STACK_LIMIT - STACK_GAP
        found = run.call("space_set_break", space, last)
        expect(f"space_set_break({last:#x}), as far as it goes, returns", hex(found), hex(last))
        for beyond in (last + 1, last + PAGE, last + 8 * PAGE):
            found = run.call("space_set_break", space, beyond)
            what = f"space_set_break({beyond:#x}), which is the stack's, returns"
            expect(what, hex(found), hex(last))


@pytest.mark.exercise("6.2", points=1, once=True)
def test_heap_below_another_stack(lab):
    """A program that has set its stack limit: the heap may grow up to what that leaves."""
    with outside(lab, Areas, START) as run:
        if not run.limit_stacks(32 << 20):
            pytest.skip("no program sets a limit: that is breadth")
        run.call("space_share", run.new_page(0))
        space = run.call("space_create")
        run.call("space_set_heap", space, HEAP)
        last = STACK_END - (32 << 20) - STACK_GAP
        for wanted, expected in ((last + 1, HEAP), (last, last), (last + PAGE, last)):
            found = run.call("space_set_break", space, wanted)
            expect(f"space_set_break({wanted:#x}) returns", hex(found), hex(expected))


@pytest.mark.exercise("6.2", points=2, once=True)
def test_heap_is_zero(lab):
    """Heap memory that is given back and taken again: zero to the byte. What was kept is
    unchanged."""
    with outside(lab, Areas, START) as run:
        run.call("space_share", run.new_page(0))
        space = run.call("space_create")
        run.call("space_set_heap", space, HEAP)
        run.run_space(space)
        sizes = (0x808, 2 * PAGE), (PAGE, 2 * PAGE), (PAGE + 4, 3 * PAGE - 8), (0, 4), (0x408, PAGE)
        for small, large in sizes:
            first = PAGE if large == PAGE else 3 * PAGE  # or less goes than a page
            run.call("space_set_break", space, HEAP + first)
            for at in range(0, first, 4 * 128):
                run.write_pages(HEAP + at, 1, 0x5A5A5A5A)
                run.write_pages(HEAP + at + 4, 1, 0x5A5A5A5A)
            for end in (small, large):
                run.call("space_set_break", space, HEAP + end)
            for at in range(0, large, 4 * 128):
                for word in (at, at + 4):
                    if word + 4 > large:
                        continue
                    wanted = 0x5A5A5A5A if word < small else 0
                    seen = run.load(HEAP + word) or 0
                    what = f"byte {word:#x} of the heap after it was {small:#x} bytes large"
                    expect(what, hex(seen), hex(wanted))


@pytest.mark.exercise("6.2", points=1, once=True)
def test_heap_that_others_read(lab):
    """heap_end: it has its new value before pages are unmapped or cleared, because that may
    sleep."""
    with outside(lab, Areas, START) as run:
        run.call("space_share", run.new_page(0))
        space = run.call("space_create")
        run.call("space_set_heap", space, HEAP)
        run.run_space(space)
        run.call("space_set_break", space, HEAP + 3 * PAGE)
        before = run.guest.registers()
        for stop in ("area_cut", "clear_user"):
            run.guest.call("space_set_break", space, HEAP + 5, stop_at=(stop,))
            end = run.guest.read_word(space + HEAP_END)
            expect(f"heap_end at {stop}", hex(end), hex(HEAP + 5))
            run.guest.set(**before)
            run.guest.write(space + HEAP_END, struct.pack("<I", HEAP + 3 * PAGE))


@pytest.mark.exercise("6.2", points=1, once=True)
def test_heap_without_memory(lab):
    """No memory for an area: the heap is unchanged, also if it is one area with what is above."""
    with outside(lab, Areas, START) as run:
        run.own_pool()
        run.call("space_share", run.new_page(0))
        space = run.call("space_create")
        run.call("space_set_heap", space, HEAP + 4)
        run.run_space(space)
        for number, wanted in ((1, HEAP + 4), (0, HEAP + 2 * PAGE)):
            run.fails_in = number
            found = run.call("space_set_break", space, HEAP + 2 * PAGE)
            run.fails_in = 0
            expect(f"space_set_break {'without' if number else 'with'} memory", found, wanted)
        run.call("space_set_break", space, HEAP + 3 * PAGE)
        run.put_area(space, HEAP + 3 * PAGE, HEAP + 5 * PAGE, 3, 0, 0)
        small, kept = HEAP + PAGE + 7, HEAP + 2 * PAGE - 4
        run.write_pages(kept, 1, 0x5A5A5A5A)
        for number, wanted in ((1, HEAP + 3 * PAGE), (0, small)):
            run.fails_in = number
            found = run.call("space_set_break", space, small)
            run.fails_in = 0
            words = "without memory for what is above" if number else "with it"
            expect(f"space_set_break to less, {words}, returns", hex(found), hex(wanted))
            end = run.guest.read_word(space + HEAP_END)
            expect(f"heap_end, {words}", hex(end), hex(wanted))
            if not number:  # who grows may clear what who has shrunk left
                run.call("space_set_break", space, HEAP + 2 * PAGE)
            expect(f"a word above the new end, {words}", run.load(kept) or 0, 0x5A5A5A5A * number)
