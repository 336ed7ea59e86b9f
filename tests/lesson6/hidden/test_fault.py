"""Exercise 6.3: how far a stack grows, memory full of junk, objects that sleep, fail and share, no
memory, fault-around, and the kernel's own faults."""

from __future__ import annotations

import pytest

from labs.tools.machine.symbols import KERNEL_BASE
from tests.lesson5.support import outside
from tests.lesson6.faults import (
    AROUND,
    BASE,
    OBJECT_PAGES,
    Faults,
    fault,
    in_words,
    page_of_object,
    require_fault,
    require_own_page,
    require_zero,
)
from tests.lesson6.spaces import START
from tests.lesson6.support import (
    ACCESSED,
    COPIED,
    LARGE_PAGE,
    PAGE,
    PRESENT,
    SHARED,
    STACK,
    STACK_END,
    STACK_GAP,
    STACK_LIMIT,
    WRITE,
    areas_of,
    entries,
    fail,
    frame_of,
    free_pages,
    page_at,
    pages_of,
    require_sound_tables,
)
from tests.support.met import Met
from tests.support.told import expect

FIRST = STACK_END - 4 * PAGE


def clear(run: Faults, space: int) -> None:
    """All areas and pages go."""
    run.call("area_cut", space, 0, STACK_END)


@pytest.mark.exercise("6.3", points=2, once=True)
@pytest.mark.parametrize("write", [False, True])
def test_how_far_a_stack_grows(lab, write):
    """The stack: it grows to STACK_LIMIT bytes and not into the gap below it. Nothing changes when
    it does not grow."""
    lowest = STACK_END - STACK_LIMIT
    touched = STACK_END - 64 * PAGE
    cases = [
        (lowest, 0, "0"),
        (lowest + 0xFFF, 0, "0"),
        (lowest - 1, 0, "-EFAULT"),
        (lowest - PAGE, 0, "-EFAULT"),
        (touched, touched - STACK_GAP, "0"),
        (touched + 0x7F0, touched - STACK_GAP, "0"),
        (touched, touched - STACK_GAP + PAGE, "-EFAULT"),
        (touched, touched, "-EFAULT"),
        (touched - 4, touched - STACK_GAP, "-EFAULT"),
        (FIRST, FIRST - STACK_GAP, "0"),
        (FIRST - 1, FIRST - STACK_GAP, "-EFAULT"),
    ]
    with outside(lab, Faults, START) as run:
        for address, other, expected in cases:
            space = run.begin()
            run.put_area(space, FIRST, STACK_END, 3 | STACK, 0, 0)
            if other:
                run.put_area(space, other - 2 * PAGE, other, 3, 0, 0)
            result = fault(run, space, address, write, may_sleep=False)
            above = f", an area ends {address // PAGE * PAGE - other} bytes below" if other else ""
            expect(f"{in_words(address, write)}{above}, returns", result, expected)
            grown = min(address & -PAGE, FIRST) if expected == "0" else FIRST
            begins = areas_of(run, space)[-1].start
            what = f"the stack begins, after {in_words(address, write)}, at"
            expect(what, hex(begins), hex(grown))
            seen = require_sound_tables(run, space, "after a fault below the stack")
            wanted = [address & -PAGE] if expected == "0" else []
            expect("entries after that", list(seen), wanted)
            clear(run, space)
            run.call("page_directory_destroy", run.guest.read_word(space))


@pytest.mark.exercise("6.3", points=1, once=True)
@pytest.mark.parametrize("limit", [1 << 20, 24 << 20])
def test_limit_that_a_program_has_set(lab, limit):
    """A stack limit that the program has set, lower or higher: the stack grows as far."""
    lowest = STACK_END - limit
    with outside(lab, Faults, START) as run:
        if not run.limit_stacks(limit):
            pytest.skip("no program sets a limit: that is breadth")
        space = run.begin()
        run.put_area(space, FIRST, STACK_END, 3 | STACK)
        for address, expected in ((lowest - 1, "-EFAULT"), (lowest, "0")):
            what = f"{in_words(address, True)}, with a stack of at most {limit:#x} bytes, returns"
            expect(what, fault(run, space, address, True), expected)


@pytest.mark.exercise("6.3", points=2, once=True)
def test_what_does_not_grow(lab):
    """Areas without AREA_STACK, another area in between, and the stack's upper end: nothing
    grows."""
    with outside(lab, Faults, START) as run:
        space = run.begin()
        run.put_area(space, FIRST, STACK_END, 3 | STACK, 0, 0)
        run.put_area(space, FIRST - (4 << 20), FIRST - (4 << 20) + PAGE, 3, 0, 0)
        before = areas_of(run, space)
        for address in (FIRST - (4 << 20) - 1, FIRST - (4 << 20) - 64 * PAGE, STACK_END, BASE):
            for write in (False, True):
                require_fault(run, space, address, write, "-EFAULT")
        expect("areas after faults that were refused", areas_of(run, space), before)


@pytest.mark.exercise("6.3", points=2, once=True)
def test_junk(lab):
    """New pages: zero, whatever was in them, and one page each."""
    with outside(lab, Faults, START) as run:
        space = run.begin()
        run.put(space, 0, 30, 3)
        require_fault(run, space, BASE, write=True)
        run.spill_junk(40)
        for page in range(1, 9):
            before = run.free_pages()
            require_fault(run, space, BASE + page * PAGE + 4 * page, write=page % 4 != 0)
            seen = require_sound_tables(run, space, "after a fault")[BASE + page * PAGE]
            require_zero(run, seen, "a page that is new")
            expect("pages that a fault takes", before - run.free_pages(), int(page % 4 != 0))
        for page in (4, 8):
            require_fault(run, space, BASE + page * PAGE, write=True)
            seen = entries(run, space)[BASE + page * PAGE]
            require_own_page(run, seen, "a page that was read and then written to")
            require_zero(run, seen, "a page that was read and then written to")


@pytest.mark.exercise("6.3", points=1, once=True)
def test_rights(lab):
    """Permissions: any of them allows reading, only SPACE_WRITE allows writing. The shared bits of
    an area are not permissions."""
    with outside(lab, Faults, START) as run:
        space = run.begin()
        for flags in (0, 1, 2, 3, 4, 5, 6, 7, SHARED, SHARED | 1, STACK, SHARED | 2):
            for of in (0, 1) if flags & SHARED else (0,):
                for write in (False, True):
                    first = 2 * flags + 100
                    run.put(space, first, first + 1, flags, of)
                    right = flags & 2 if write else flags & 7
                    expected = "0" if right else "-EACCES"
                    what = f"{in_words(BASE + first * PAGE, write)} with flags {flags:#x} returns"
                    expect(what, fault(run, space, BASE + first * PAGE, write), expected)
                    run.call("area_cut", space, BASE, BASE + 400 * PAGE)


@pytest.mark.exercise("6.3", points=2, once=True)
def test_must_not_sleep(lab):
    """A fault that must not sleep: zeros are mapped; an object is not asked, and -EAGAIN leaves
    everything unchanged."""
    with outside(lab, Faults, START) as run:
        space = run.begin()
        run.put(space, 0, 4, 3)
        run.put(space, 10, 30, 3, of=1)
        run.put(space, 30, 40, 3 | SHARED, of=1)
        run.put(space, 40, 50, 3 | SHARED, of=1, index=20)
        require_fault(run, space, BASE + 44 * PAGE, write=False)
        kept = entries(run, space)
        require_fault(run, space, BASE, write=True, may_sleep=False)
        require_fault(run, space, BASE + PAGE, write=False, may_sleep=False)
        require_fault(run, space, BASE + 20 * PAGE, write=True)
        run.call("area_protect", space, BASE + 20 * PAGE, BASE + 21 * PAGE, 1)
        run.call("area_protect", space, BASE + 20 * PAGE, BASE + 21 * PAGE, 3)
        run.asked.clear()
        require_fault(run, space, BASE + 20 * PAGE, write=True, may_sleep=False)
        for page in (12, 32):
            for write in (False, True):
                require_fault(run, space, BASE + page * PAGE, write, "-EAGAIN", may_sleep=False)
        require_fault(run, space, BASE + 44 * PAGE, True, "-EAGAIN", may_sleep=False)
        require_fault(run, space, BASE + 50 * PAGE, True, "-EFAULT", may_sleep=False)
        expect("times the object was asked", len(run.asked), 0)
        seen = require_sound_tables(run, space, "after faults that must not sleep")
        expect("entries after that", {*seen}, {BASE, BASE + PAGE, BASE + 20 * PAGE, *kept})
        same = all(seen[at] == entry for at, entry in kept.items())
        expect("an entry that can be read only is as it was", same, True)


@pytest.mark.exercise("6.3", points=3, once=True)
@pytest.mark.parametrize("write", [False, True])
def test_what_the_object_is_asked(lab, write):
    """The request to an object: the right page, for writing only in shared areas, -EIO beyond its
    end. Its references are unchanged."""
    with outside(lab, Faults, START) as run:
        space = run.begin(with_peek=False)
        run.put(space, 10, 30, 3, of=1, index=3)
        run.put(space, 30, 60, 3 | SHARED, of=1, index=30)
        free = free_pages(run)
        made = 0
        for page, index in ((10, 3), (25, 18), (31, 31), (39, 39), (40, 40), (59, 59)):
            shared = page >= 30
            address = BASE + page * PAGE + 0xABC
            name = error_name_of(run, space, address, write)
            asked, written = run.asked[0] if run.asked else (None, None)
            expect(f"the object is asked for page, of page {page},", asked, index)
            expect("the object hears of a write to its page", bool(written), write and shared)
            expect(f"{in_words(address, write)} returns", name, "0" if index < 40 else "-EIO")
            expect("references of the object, of two areas, after that", run.references, 2)
            if index >= 40:
                continue
            seen = require_sound_tables(run, space, "after a fault")[address & -PAGE]
            own = write and not shared
            made += own
            its = page_of_object(run, index)
            expect("the entry shows the object's page", frame_of(seen) == its, not own)
            expect("PTE_WRITE of the entry", bool(seen & WRITE), write)
            references = page_at(run, its).references
            expect("references of the object's page, which counts itself,", references, 2 - own)
        flags = [each.flags & COPIED for each in areas_of(run, space)]
        expect("AREA_COPIED of a private and a shared area", flags, [COPIED if write else 0, 0])
        clear(run, space)
        expect("pages that are free after all areas were cut", free_pages(run), free)
        expect("pages that were copied", made, 2 if write else 0)
        references = [page_at(run, page_of_object(run, i)).references for i in (3, 18, 31)]
        expect("references of the object's pages after that", references, [1, 1, 1])


def error_name_of(run: Faults, space: int, address: int, write: bool) -> str:
    """What space_fault returns, with the answers from the first one on."""
    run.asked.clear()
    return fault(run, space, address, write)


@pytest.mark.exercise("6.3", points=2, once=True)
def test_another_task_is_faster(lab):
    """Another task maps the page first: its entry stays, and the second page is released."""
    with outside(lab, Faults, START) as run:
        for flags, write in ((3, False), (3, True), (3 | SHARED, False), (3 | SHARED, True)):
            space = run.begin(with_peek=False)
            run.put(space, 10, 20, flags, of=1, index=5)
            at = BASE + 12 * PAGE
            run.put(space, 0, 1, 3)
            require_fault(run, space, BASE, write=True)
            free = run.free_pages()
            run.be_faster(space, at)
            require_fault(run, space, at, write)
            seen = require_sound_tables(run, space, "after two faults on one page")[at]
            word = run.guest.read_word(KERNEL_BASE + frame_of(seen) * PAGE)
            expect("the page that the other task has mapped has the word", hex(word), hex(at))
            expect("pages that two faults on one page took", free - run.free_pages(), 1)
            references = page_at(run, page_of_object(run, 7)).references
            expect("references of the object's page, which came too late,", references, 1)
            clear(run, space)


@pytest.mark.exercise("6.3", points=1, once=True)
@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("flags", [3, 3 | SHARED])
def test_another_task_changes_the_areas(lab, flags, write):
    """Another task unmaps, replaces or protects the area meanwhile: nothing is mapped or leaked,
    and the next fault uses what is there now."""
    changes = [
        ("unmaps the area", (0, 0, 0), "-EFAULT"),
        ("maps zeros there", (flags, 0, 5), "0"),
        ("maps other pages of the object there", (flags, 1, 9), "0"),
        ("maps the same, shared or no longer shared", (flags ^ SHARED, 1, 5), "0"),
        ("forbids all access", (flags & ~3, 1, 5) if flags & ~3 else (64, 1, 5), "-EACCES"),
    ]
    with outside(lab, Faults, START) as run:
        for words, (new_flags, of, index), then in changes:
            space = run.begin(with_peek=True)
            run.put(space, 10, 20, flags, of=1, index=5)
            at = BASE + 12 * PAGE
            free = run.free_pages()
            change = (BASE + 10 * PAGE, BASE + 20 * PAGE, new_flags, of, index)
            run.be_changed(space, *change)
            require_fault(run, space, at, write)
            what = f"while the object is asked another task {words}"
            expect(f"{what}: entries that are shown", len(entries(run, space)), 0)
            expect(f"{what}: pages that are lost", free - run.free_pages(), 0)
            expect(f"{what}: has the object a reference", run.references_meanwhile > of, True)
            expect(f"{what}: the object's references afterwards", run.references, of)
            references = page_at(run, page_of_object(run, 7)).references
            expect(f"{what}: references of its page", references, 1)
            require_fault(run, space, at, write, then)
            clear(run, space)


@pytest.mark.exercise("6.3", points=1, once=True)
@pytest.mark.parametrize("write", [False, True])
def test_the_same_is_mapped_again(lab, write):
    """Another task unmaps the area with its page table, and maps the same again: the entry is made
    in the new table, or not at all."""
    met = Met("the table goes while the object is asked")
    at = BASE + 12 * PAGE
    with outside(lab, Faults, START) as run:
        for flags in (3, 3 | SHARED):
            space = run.begin(with_peek=False)
            run.put(space, 10, 20, flags, of=1, index=5)
            require_fault(run, space, at + PAGE, write=False)
            run.be_changed(space, BASE + 10 * PAGE, BASE + 20 * PAGE, flags, 1, 5)
            require_fault(run, space, at, write)
            met("the table goes while the object is asked", run.tables_meanwhile == 0)
            when = "after the same was mapped again while the object was asked"
            seen = require_sound_tables(run, space, when)
            expect(f"entries of other pages {when}", [each for each in seen if each != at], [])
            its = page_of_object(run, 7)
            shown = sum(frame_of(entry) == its for entry in seen.values())
            references = page_at(run, its).references
            expect(f"references of the object's page {when}", references, 1 + shown)
            run.call("pte_of", space, at + LARGE_PAGE, 1)
            expect(f"entries in a table that is new, {when}", entries(run, space), seen)
            require_fault(run, space, at, write)
            expect("entries after the next fault", [*entries(run, space)], [at])
            clear(run, space)
    met.require()


@pytest.mark.exercise("6.3", points=1, once=True)
def test_error_of_an_area_that_is_gone(lab):
    """An object's error for an area that is unmapped meanwhile: it is not reported, and the access
    faults again."""
    with outside(lab, Faults, START) as run:
        space = run.begin()
        for write in (False, True):
            run.put(space, 10, 20, 3, of=1, index=38)
            require_fault(run, space, BASE + 12 * PAGE, write, "-EIO")
            run.be_changed(space, BASE + 10 * PAGE, BASE + 20 * PAGE, 0, 0, 0)
            require_fault(run, space, BASE + 12 * PAGE, write, "0")
            require_fault(run, space, BASE + 12 * PAGE, write, "-EFAULT")


@pytest.mark.exercise("6.3", points=2, once=True)
def test_no_memory(lab):
    """The n-th page cannot be allocated: -ENOMEM, nothing is mapped, and nothing is leaked. A
    kernel that shows the neighbours first asks for the table twice, and may get it then."""
    with outside(lab, Faults, START) as run:
        for flags, of, write in ((3, 0, False), (3, 0, True), (3, 1, False), (3, 1, True)):
            for number in (1, 2):
                space = run.begin()
                run.put(space, 0, 20, flags, of)
                free = free_pages(run)
                run.fail_request(number)
                result = fault(run, space, BASE + 9 * PAGE, write)
                run.fail_request(0)
                of_what = "an object" if of else "zeros"
                what = f"{in_words(BASE + 9 * PAGE, write)}, of {of_what}, without page {number},"
                seen = require_sound_tables(run, space, "after that")
                needed = 0 if of and not write and seen else 1 + write
                expect(f"{what} returns", result, "-ENOMEM" if number <= needed else "0")
                expect(f"is there an entry after {what}", bool(seen), number > needed)
                clear(run, space)
                expect(f"pages that are free after {what}, all gone,", free_pages(run), free)
                references = page_at(run, page_of_object(run, 9)).references
                expect(f"references of the object's page after {what}", references, 1)


def around(
    run: Faults, first: int, end: int, index: int, page: int, flags: int = 1
) -> dict[int, int]:
    """Which pages have entries after one of an area was read, and the frames."""
    space = run.begin()
    run.put(space, first, end, flags, of=1, index=index)
    require_fault(run, space, BASE + page * PAGE + 9, write=False)
    seen = require_sound_tables(run, space, "after a read of an object's page")
    for at, entry in seen.items():
        number = (at - BASE) // PAGE
        if not first <= number < end:
            fail(f"the area has pages {first} to {end - 1}: an entry was made for page {number}")
        wanted = page_of_object(run, index + number - first)
        expect(f"frame of page {number}, after page {page} was read,", frame_of(entry), wanted)
        expect("PTE_WRITE of pages that nobody has written to", bool(entry & WRITE), False)
        expect("PTE_PRESENT of them", bool(entry & PRESENT), True)
        if number != page:
            expect("PTE_ACCESSED of a page that nobody has used", bool(entry & ACCESSED), False)
        expect("references of it: object and entry", page_at(run, wanted).references, 2)
    expect("the page that was read has an entry", BASE + page * PAGE in seen, True)
    clear(run, space)
    references = [page_at(run, page_of_object(run, i)).references for i in range(20)]
    expect("references of the object's pages, after all was cut", references, [1] * 20)
    return seen


@pytest.mark.exercise("6.3", points=3, once=True)
def test_around(lab):
    """Fault-around: a read maps at most 16 neighbours, within the area and the object."""
    with outside(lab, Faults, START) as run:
        for first, end, index, page in (
            (0, 40, 0, 20),
            (3, 12, 2, 7),
            (15, 33, 0, 15),
            (15, 33, 0, 32),
            (30, 60, 20, 31),
            (30, 60, 20, 41),
            (1020, 1030, 0, 1023),
            (1020, 1030, 0, 1024),
        ):
            for flags in (1, 3, 3 | SHARED, 4):
                seen = around(run, first, end, index, page, flags)
                low, most = page & -AROUND, first + OBJECT_PAGES - index
                wanted = range(max(first, low), min(end, low + AROUND, most))
                expect(f"page {page} was read: entries", [*seen], [BASE + n * PAGE for n in wanted])


@pytest.mark.exercise("6.3", points=1, once=True)
def test_around_is_chosen(lab):
    """fault_around_bytes: one page to 256 KiB. Objects without peek, and writes, map one page."""
    with outside(lab, Faults, START) as run:
        for pages, most in ((1, 1), (4, 4), (64, 38)):
            run.kernel.set_word("fault_around_bytes", pages * PAGE)
            found = len(around(run, 1, 39, 0, 20))
            if not max(1, most // 2) <= found <= most:
                fail(f"fault_around_bytes of {pages} pages: {found} entries, of at most {most}")
        run.kernel.set_word("fault_around_bytes", AROUND * PAGE)
        run.peeks_at_most = 3
        found = len(around(run, 0, 40, 0, 20))
        expect("entries where the object gives three pages at a time", found, AROUND)
        space = run.begin(with_peek=False)
        run.put(space, 0, 30, 1, of=1)
        require_fault(run, space, BASE + 9 * PAGE, write=False)
        expect("entries for an object without peek", pages_of(run, space), 1)
        space = run.begin()
        run.put(space, 0, 30, 3 | SHARED, of=1)
        require_fault(run, space, BASE + 9 * PAGE, write=True)
        expect("entries for a page that is written to", pages_of(run, space), 1)


@pytest.mark.exercise("6.3", points=2, once=True)
def test_around_what_is_there(lab):
    """Neighbours: existing entries stay, pages that are not cached are not mapped, those after them
    are, and the object is not asked."""
    with outside(lab, Faults, START) as run:
        space = run.begin()
        run.put(space, 0, 32, 3, of=1)
        for page in (17, 22):
            require_fault(run, space, BASE + page * PAGE, write=True)
        own = entries(run, space)
        run.lose_page(19, 0)
        run.lose_page(25, 1)
        require_fault(run, space, BASE + 20 * PAGE, write=False)
        seen = require_sound_tables(run, space, "after a read among other pages")
        others = [BASE + page * PAGE in seen for page in (18, 21, 26)]
        expect("pages 18, 21 and 26 have entries, among some that are not there", all(others), True)
        for page, at in ((page, BASE + page * PAGE) for page in (17, 22)):
            expect(f"the entry of page {page}, which was there", hex(seen[at]), hex(own[at]))
        for page in (19, 25):
            if BASE + page * PAGE in seen:
                fail(f"page {page} is not in memory: expected no entry, seen one")
            expected = "-EIO" if page == 19 else "-ENOMEM"
            require_fault(run, space, BASE + page * PAGE, False, expected)
        run.asked.clear()
        before = entries(run, space)
        require_fault(run, space, BASE + 17 * PAGE, write=True)
        asked = len(run.asked)
        expect("times the object was asked for a page that is there", asked, 0)
        expect("entries after that", entries(run, space), before)


@pytest.mark.exercise("6.3", points=2, once=True)
def test_the_kernels_own_copies(lab):
    """Faults of the kernel's own copies: handled like the program's. In a hole the copy ends."""
    with outside(lab, Faults, START) as run:
        space = run.begin()
        run.put(space, 0, 3, 3)
        run.put(space, 5, 6, 1)
        run.put(space, 7, 8, 0)
        run.put_area(space, FIRST, STACK_END, 3 | STACK, 0, 0)
        run.run_space(space)
        expect("writes to new pages", run.write_pages(BASE, 4, 7), [1, 1, 1, 0])
        expect("reads of them", run.read_pages(BASE, 4), [7, 7, 7, None])
        expect("writes to a page to read", run.write_pages(BASE + 5 * PAGE, 1, 7), [0])
        expect("reads of it", run.read_pages(BASE + 5 * PAGE, 2), [0, None])
        expect("reads without rights", run.read_pages(BASE + 7 * PAGE, 1), [None])
        below = FIRST - 5 * PAGE
        expect("writes below the stack", run.write_pages(below, 2, 9), [1, 1])
        expect("where the stack begins then", hex(areas_of(run, space)[-1].start), hex(below))


@pytest.mark.exercise("6.3", points=1, once=True)
def test_hidden_page(lab):
    """An entry without PTE_PRESENT: it becomes present again with all its bits."""
    with outside(lab, Faults, START) as run:
        space = run.begin()
        run.put(space, 0, 9, 3)
        for page, write in ((0, True), (1, False), (2, True)):
            require_fault(run, space, BASE + page * PAGE, write)
        before = entries(run, space)
        for page, bits in ((0, 0x60), (1, 0x20), (2, 0)):
            at = BASE + page * PAGE
            run.change_entry(space, at, (before[at] | bits) & ~PRESENT)
            require_fault(run, space, at, write=page == 0)
            seen = require_sound_tables(run, space, "after a fault on a hidden page")[at]
            expect("the entry of a hidden page", hex(seen), hex(before[at] | bits))
