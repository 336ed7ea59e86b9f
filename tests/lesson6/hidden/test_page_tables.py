"""Exercise 6.1: ranges over several tables against a model, the TLB, tables without memory, and
what it costs."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random

import pytest

from labs.tools.machine.symbols import KERNEL_BASE
from tests.lesson4.support import signed
from tests.lesson5.support import NANOSECONDS, outside
from tests.lesson6.spaces import START, Spaces
from tests.lesson6.support import (
    ACCESSED,
    DIRTY,
    ENOMEM,
    HIDDEN,
    KERNEL_TABLE,
    LARGE_PAGE,
    PAGE,
    PRESENT,
    READABLE,
    USER,
    WRITABLE,
    WRITE,
    directory_of,
    entries,
    fail,
    frame_of,
    free_pages,
    in_words,
    page_at,
    require_sound_tables,
    tables_of,
)
from tests.support.met import Met
from tests.support.told import expect, require

SHOWN = PRESENT | USER | HIDDEN
PAGES = 24  # of space->pages in struct space
DENSE = 36  # pages, one after the other
CASES = (
    *("more than 32 pages are unmapped", "more than 32 pages are copied"),
    *("more than 32 pages lose a right", "a range over a border of tables"),
    *("a hidden page is unmapped", "a hidden page is copied", "a page of two spaces is unmapped"),
    "read-only pages may be written to again, by their area",
)
MOST_EMPTY = 150_000  # instructions for 3 GiB with two tables


def require_same(run: Spaces, space: int, model: dict[int, int], when: str) -> None:
    """The space has these entries; the processor may have set bits since."""
    seen = require_sound_tables(run, space, when)
    for address in sorted(seen.keys() | model.keys()):
        entry, wanted = seen.get(address, 0), model.get(address, 0)
        if entry != wanted:
            fail(
                f"the entry of {address:#x} {when}: "
                f"expected {in_words(wanted)}, seen {in_words(entry)}"
            )


Range = tuple[int, int] | None


class Model:
    """Two spaces, each as its entries, over three tables."""

    def __init__(self, run: Spaces, random: Random) -> None:
        self.run = run
        self.random = random
        self.first = LARGE_PAGE * random.randrange(0x100, 0x2F0)
        self.spaces = [run.empty_space(), run.empty_space()]
        self.models: list[dict[int, int]] = [{}, {}]
        self.met = Met(*CASES)

    def address(self) -> int:
        """A page of the three tables: often near a border."""
        border = self.first + LARGE_PAGE * self.random.randrange(4)
        near = border + PAGE * self.random.randrange(-3, 4)
        far = self.first + PAGE * self.random.randrange(3 * 1024)
        chosen = self.random.choice([near, near, far])
        return min(max(chosen, self.first), self.first + 3 * LARGE_PAGE - PAGE)

    def range(self) -> tuple[int, int]:
        """A range that is not empty."""
        start, end = sorted((self.address(), self.address()))
        return start, end + PAGE

    def dense(self) -> Iterator[str]:
        """What is promised, with each seed: pages one after the other, over a border, are copied,
        lose rights, and go."""
        border = self.first + LARGE_PAGE
        start = border - self.random.randrange(4, DENSE - 4) * PAGE
        end = start + DENSE * PAGE
        for address in range(start, end, PAGE):
            self.map_page(0, address)
        yield self.copy(0, (start, end))
        hidden = start + self.random.randrange(1, DENSE - 1) * PAGE
        yield self.protect(1, (hidden, hidden + PAGE), 0)
        for kind in (READABLE, READABLE | WRITABLE):
            yield self.protect(0, (start, end), kind)
        yield self.unmap(0, (start + PAGE, end - PAGE))
        yield self.copy(1, (start + PAGE, end - PAGE))
        yield self.unmap(1, (start, end))
        yield self.unmap(0, (start, end))
        whole = border, border + LARGE_PAGE
        for address in (whole[0], whole[1] - PAGE):  # the first entry and the last
            self.map_page(0, address)
        yield self.copy(0, whole)
        yield self.unmap(1, whole)

    def note(self, number: int, start: int, end: int, done: str) -> None:
        """Which cases a range is, before something is done to it."""
        found = [entry for at, entry in self.models[number].items() if start <= at < end]
        self.met(f"more than 32 pages {done}", len(found) > 32)
        self.met("a range over a border of tables", start // LARGE_PAGE < (end - 1) // LARGE_PAGE)
        hidden = any(not entry & PRESENT for entry in found)
        if done != "lose a right":
            self.met(f"a hidden page is {'copied' if done == 'are copied' else 'unmapped'}", hidden)
        if done == "are unmapped":
            others = {frame_of(entry) for entry in self.models[1 - number].values()}
            shared = any(frame_of(entry) in others for entry in found)
            self.met("a page of two spaces is unmapped", shared)

    def map_page(self, number: int, address: int) -> None:
        """A page where there is none."""
        writable = self.random.randrange(2)
        entry = self.run.map_page(self.spaces[number], address, writable)
        entry |= self.random.choice([0, ACCESSED, ACCESSED | DIRTY])
        self.run.change_entry(self.spaces[number], address, entry)
        self.models[number][address] = entry

    def map_some(self, number: int) -> str:
        """Pages where there are none."""
        for _ in range(6):
            address = self.address()
            if address not in self.models[number]:
                self.map_page(number, address)
        return "after pages were mapped"

    def unmap(self, number: int, of: Range = None) -> str:
        """page_unmap_range."""
        start, end = of or self.range()
        self.note(number, start, end, "are unmapped")
        self.run.call("page_unmap_range", self.spaces[number], start, end)
        for address in [each for each in self.models[number] if start <= each < end]:
            del self.models[number][address]
        return f"after page_unmap_range of [{start:#x}, {end:#x})"

    def protect(self, number: int, of: Range = None, kind: int | None = None) -> str:
        """page_protect_range."""
        start, end = of or self.range()
        self.note(number, start, end, "lose a right")
        chosen = self.random.choice([0, READABLE, READABLE | WRITABLE, 4])
        protection = chosen if kind is None else kind
        old = [entry for at, entry in self.models[number].items() if start <= at < end]
        back = protection & WRITABLE and any(not entry & WRITE for entry in old)
        self.met("read-only pages may be written to again, by their area", bool(back))
        self.run.call("page_protect_range", self.spaces[number], start, end, protection)
        for address, entry in self.models[number].items():
            if start <= address < end:
                kept = entry if protection & WRITABLE else entry & ~WRITE
                self.models[number][address] = kept & ~PRESENT | (PRESENT if protection else 0)
        return f"after page_protect_range of [{start:#x}, {end:#x}) with {protection}"

    def copy(self, number: int, of: Range = None) -> str:
        """page_copy_range, to where nothing is mapped."""
        start, end = of or self.range()
        other = self.models[1 - number]
        if any(start <= each < end for each in other):
            return self.unmap(1 - number, of)
        self.note(number, start, end, "are copied")
        to, source = self.spaces[1 - number], self.spaces[number]
        result = self.run.call("page_copy_range", to, source, start, end)
        expect("page_copy_range returns", result, 0)
        for address, entry in self.models[number].items():
            if start <= address < end:
                self.models[number][address] = entry & ~WRITE
                other[address] = entry & ~(WRITE | ACCESSED | DIRTY)
        return f"after page_copy_range of [{start:#x}, {end:#x})"

    def require(self, when: str) -> None:
        """Both spaces, their tables, and the references of all pages are as they are to be."""
        for space, model in zip(self.spaces, self.models, strict=True):
            require_same(self.run, space, model, when)
        frames = [frame_of(entry) for model in self.models for entry in model.values()]
        for frame in set(frames):
            seen = page_at(self.run, frame).references
            what = f"references of frame {frame} {when}"
            expect(what, seen, frames.count(frame))


@pytest.mark.exercise("6.1", points=4, once=True)
@pytest.mark.parametrize("number", range(2))
def test_random_ranges(lab, number):
    """Random ranges over three tables: entries are the model's."""
    random = Random(lab.seed + number)
    with outside(lab, Spaces, START) as run:
        free = free_pages(run)
        model = Model(run, random)
        for what in model.dense():
            model.require(what)
        for _ in range(12):
            model.map_some(0)
            what = random.choice([model.unmap, model.protect, model.protect, model.copy])
            model.require(what(random.choice([0, 0, 1])))
        model.map_some(1)
        last = model.first, model.first + 3 * LARGE_PAGE
        run.call("page_protect_range", model.spaces[1], *last, 0)  # hidden pages go like others
        for i, space in enumerate(model.spaces):
            run.call("page_unmap_range", space, *last)
            model.models[i].clear()
        model.require("after all was unmapped")
        model.met.require()
        for space in model.spaces:
            if tables_of(run, space):
                fail("no page is mapped any more: expected no tables, seen one")
            run.call("page_directory_destroy", directory_of(run, space))
        expect("pages that are free in the end", free_pages(run), free)


@pytest.mark.exercise("6.1", points=1, once=True)
def test_one_entry_left(lab):
    """A page table: it stays while it has an entry, at any place."""
    start = 0x50000000
    with outside(lab, Spaces, START) as run:
        space = run.empty_space()
        for kept in (0, 7, 1023):
            entry = {}
            for i in {0, 7, 1023}:
                entry[i] = run.map_page(space, start + i * PAGE, 1)
            for i in {0, 7, 1023} - {kept}:
                at = start + i * PAGE
                run.call("page_unmap_range", space, at, at + PAGE)
            at = start + kept * PAGE
            require_same(run, space, {at: entry[kept]}, "which is the last one of its table,")
            run.call("page_unmap_range", space, at, at + PAGE)


@pytest.mark.exercise("6.1", points=2, once=True)
@pytest.mark.parametrize("pages", [1, 70])
def test_tlb_before_release(lab, pages):
    """The release of a page: the TLB is flushed before, and it is released once, by the last entry
    that maps it."""
    start = 0x41234000 - Random(lab.seed).randrange(pages) * PAGE
    with outside(lab, Spaces, START) as run:
        space, places = run.empty_space(), {}
        released: list[int] = []

        def record(page: int, *_: int) -> None:
            frame = frame_of(run.address_of(page) - KERNEL_BASE)
            released.append(frame)
            if frame in places and run.load(places[frame]) is not None:
                fail("a page was released while the TLB still translates to it")

        run.kernel.serve(run.guest.address("page_free_last"), record)
        run.load_space(space)
        for at in range(start, start + pages * PAGE, PAGE):
            places[frame_of(run.map_page(space, at, 1))] = at
            expect("the word of a page that is mapped", run.load(at), at)
        run.call("page_unmap_range", space, start, start + pages * PAGE)
        own = [frame for frame in released if frame in places]
        if len(set(own)) < pages:
            fail("a page that nobody shows any more was not released")
        if len(own) > pages:
            fail("a page was released twice")


@pytest.mark.exercise("6.1", points=1, once=True)
def test_page_with_two_entries(lab):
    """A page with two entries: the second unmap releases it."""
    start = 0x60000000
    with outside(lab, Spaces, START) as run:
        space, other = run.empty_space(), run.empty_space()
        for i in range(3):
            run.map_page(space, start + i * PAGE, 1)
        run.call("page_copy_range", other, space, start, start + 3 * PAGE)
        frames = [frame_of(entry) for entry in entries(run, space).values()]
        run.call("page_unmap_range", space, start, start + 3 * PAGE)
        for frame in frames:
            seen = page_at(run, frame)
            require(seen.is_used, "a page was freed that another space still shows")
            expect("references of a page that one entry shows", seen.references, 1)
        run.load_space(other)
        wanted = [start + i * PAGE for i in range(3)]
        expect("what the other space reads", run.read_pages(start, 3), wanted)
        run.call("page_unmap_range", other, start, start + 3 * PAGE)
        if any(page_at(run, frame).is_used for frame in frames):
            fail("a page was not freed that no entry shows any more")


@pytest.mark.exercise("6.1", points=2, once=True)
def test_another_page(lab):
    """pte_set: the new page is visible at once, and the accessed bit is set again after it was
    cleared."""
    start = 0x48000000
    with outside(lab, Spaces, START) as run:
        space = run.empty_space()
        run.load_space(space)
        for i in range(4):
            at = start + i * PAGE
            run.map_page(space, at, 0)
            run.read_pages(at, 1)
            page = run.new_page(0x1000 + i) - KERNEL_BASE
            run.change_entry(space, at, page | SHOWN | ACCESSED)
            seen = run.read_pages(at, 1)
            if seen != [0x1000 + i]:
                fail("an entry shows another page now: the program still reads the old one")
        run.read_pages(start, 4)
        for at, entry in entries(run, space).items():
            run.change_entry(space, at, entry & ~ACCESSED)
        run.read_pages(start, 4)
        gone = start + 4 * PAGE
        shown = run.map_page(space, gone, 0)
        for entry in (shown & ~PRESENT, 0):
            run.change_entry(space, gone, shown)
            expect("the word of a page that is mapped", run.load(gone), gone)
            run.change_entry(space, gone, entry)
            expect("the word at an entry without a page, or a hidden one", run.load(gone), None)
        if not all(entry & ACCESSED for entry in entries(run, space).values()):
            fail("the accessed bit was cleared, and a read does not set it: it is in the TLB")


@pytest.mark.exercise("6.1", points=2, once=True)
def test_protection_is_at_once(lab):
    """page_protect_range, of a few pages and of many: the next access sees the new protection."""
    start, many = 0x77FFE000, 70
    with outside(lab, Spaces, START) as run:
        space = run.empty_space()
        run.load_space(space)
        for i in range(4):
            run.map_page(space, start + i * PAGE, 1)
        run.write_pages(start, 4, 1)
        run.call("page_protect_range", space, start, start + 3 * PAGE, READABLE)
        seen = run.write_pages(start, 4, 2)
        expect("which of four pages can be written, after three lost it,", seen, [0, 0, 0, 1])
        run.read_pages(start, 4)
        run.call("page_protect_range", space, start + PAGE, start + 3 * PAGE, 0)
        seen = run.readable(start, 4)
        expect("which of four pages can be read, after two lost it,", seen, [1, 0, 0, 1])
        kept = [page_at(run, frame_of(entry)).is_used for entry in entries(run, space).values()]
        expect("pages that are kept, without any protection too,", sum(kept), 4)
        first = start - many * PAGE
        for i in range(many):
            run.map_page(space, first + i * PAGE, 1)
        run.write_pages(first, many, 1)
        run.call("page_protect_range", space, first, start, READABLE)
        seen = run.write_pages(first, many, 2)
        expect(f"pages of {many} that can be written, after all lost that,", sum(seen), 0)


@pytest.mark.exercise("6.1", points=1, once=True)
def test_tlb_of_several_pages(lab):
    """Several pages unmapped at once: the TLB has none of them."""
    start = 0x4A3FD000
    with outside(lab, Spaces, START) as run:
        space = run.empty_space()
        run.load_space(space)
        for i in range(6):
            run.map_page(space, start + i * PAGE, 1)
        run.read_pages(start, 6)
        run.call("page_unmap_range", space, start + PAGE, start + 5 * PAGE)
        seen = run.readable(start, 6)
        expect("six pages, four of them unmapped, can be read", seen, [1, 0, 0, 0, 0, 1])


@pytest.mark.exercise("6.1", points=1, once=True)
@pytest.mark.parametrize("protection", range(8))
def test_bits_of_an_entry(lab, protection):
    """Bits of an entry after page_protect_range and page_copy_range: right for each protection,
    accessed and dirty or not."""
    start = 0x51230000
    with outside(lab, Spaces, START) as run:
        space, copy = run.empty_space(), run.empty_space()
        wanted = {}
        for i, bits in enumerate((0, ACCESSED, ACCESSED | DIRTY, DIRTY)):
            at = start + i * PAGE
            wanted[at] = run.map_page(space, at, 1) | bits
            run.change_entry(space, at, wanted[at])
        run.call("page_protect_range", space, start, start + 4 * PAGE, protection)
        lost = (0 if protection & WRITABLE else WRITE) | (0 if protection else PRESENT)
        wanted = {at: entry & ~lost for at, entry in wanted.items()}
        require_same(run, space, wanted, f"after page_protect_range with {protection}")
        run.call("page_copy_range", copy, space, start, start + 4 * PAGE)
        wanted = {at: entry & ~WRITE for at, entry in wanted.items()}
        require_same(run, space, wanted, "which was copied,")
        wanted = {at: entry & ~(ACCESSED | DIRTY) for at, entry in wanted.items()}
        require_same(run, copy, wanted, "of the copy")
        run.call("page_protect_range", space, start, start + 4 * PAGE, READABLE)
        present = {at: bool(entry & PRESENT) for at, entry in entries(run, space).items()}
        expect("entries that are present again", sum(present.values()), 4)


@pytest.mark.exercise("6.1", points=1, once=True)
def test_tables_without_entries(lab):
    """A page table without entries: it is freed, after pte_set to 0 too, even if it never had
    one."""
    start = 0x6C000000
    with outside(lab, Spaces, START) as run:
        space = run.empty_space()
        shown = [run.map_page(space, start + i * PAGE, 1) for i in range(2)]
        run.change_entry(space, start, 0)
        run.guest.write(space + PAGES, struct.pack("<I", 1))  # the caller of pte_set counts those
        require_same(run, space, {start + PAGE: shown[1]}, "after one of two became 0")
        run.call("pte_of", space, start + LARGE_PAGE, 1)
        run.call("page_unmap_range", space, start, start + 2 * LARGE_PAGE)
        expect("tables after all was unmapped", tables_of(run, space), {})


@pytest.mark.exercise("6.1", points=1, once=True)
def test_hidden_pages(lab):
    """Pages hidden by PROT_NONE: copied and unmapped like others."""
    start = 0x33000000
    with outside(lab, Spaces, START) as run:
        space, copy = run.empty_space(), run.empty_space()
        free = free_pages(run)
        shown = run.map_page(space, start, 1)
        run.call("page_protect_range", space, start, start + PAGE, 0)
        run.call("page_copy_range", copy, space, start, start + PAGE)
        for each in (space, copy):
            hidden = {start: shown & ~(PRESENT | WRITE)}
            require_same(run, each, hidden, "of a page that nobody may use at the moment")
        for each in (space, copy):
            run.call("page_unmap_range", each, start, start + PAGE)
        expect("pages that are free after both were unmapped", free_pages(run), free)


@pytest.mark.exercise("6.1", points=2, once=True)
def test_no_memory(lab):
    """No memory for a page table: NULL or -ENOMEM, and what was copied can be unmapped."""
    first = 0x40400000
    with outside(lab, Spaces, START) as run:
        space, copy = run.empty_space(), run.empty_space()
        shown = [first - PAGE, first, first + LARGE_PAGE]
        for at in shown:
            run.map_page(space, at, 1)
        for number in range(1, 4):
            free = free_pages(run)
            run.guest.write(run.guest.address("allocation_fails_in"), struct.pack("<I", number))
            result = run.call("page_copy_range", copy, space, shown[0], shown[2] + PAGE)
            what = f"table {number} has no memory: page_copy_range returns"
            expect(what, signed(result), -ENOMEM)
            require_sound_tables(run, copy, "of a copy that failed")
            require_sound_tables(run, space, "of a space whose copy failed")
            run.call("page_unmap_range", copy, 0, KERNEL_BASE)
            if tables_of(run, copy):
                fail("a copy that failed has tables after all was unmapped")
            expect("pages that are free after a copy that failed", free_pages(run), free)
        run.call("page_table_shrink")
        run.guest.write(run.guest.address("allocation_fails_in"), struct.pack("<I", 1))
        place = run.call("pte_of", copy, first, 1)
        expect("no memory for a table: pte_of returns", place, 0)
        expect("tables after that", tables_of(run, copy), {})
        for at in shown:
            seen = page_at(run, frame_of(entries(run, space)[at])).references
            expect("references of a page that only the old space shows", seen, 1)


@pytest.mark.exercise("6.1", points=1, once=True)
def test_all_of_it(lab):
    """Unmapping from address 0 to the kernel: everything goes, and the kernel's part is
    unchanged."""
    with outside(lab, Spaces, START) as run:
        space = run.empty_space()
        for at in (0, 0x3FF000, 0x08048000, 0xBFC00000, 0xBFFFF000):
            run.map_page(space, at, 1)
        for number in tables_of(run, space):
            word = run.guest.read_word(directory_of(run, space) + 4 * number)
            what = f"bits of the directory's entry of {number * LARGE_PAGE:#x}: P, W, U"
            expect(what, word & (PRESENT | WRITE | USER), PRESENT | WRITE | USER)
        place = directory_of(run, space) + 4 * KERNEL_TABLE
        before = run.guest.read(place, 4 * (1024 - KERNEL_TABLE))
        run.call("page_unmap_range", space, 0, KERNEL_BASE)
        require_same(run, space, {}, "after all was unmapped")
        expect("tables after that", tables_of(run, space), {})
        if run.guest.read(place, len(before)) != before:
            fail("page_unmap_range has changed the kernel's part of the directory")


@pytest.mark.exercise("6.1", points=2)
def test_cost(lab):
    """Ranges of 3 GiB with two pages: the cost is that of the tables."""
    with outside(lab, Spaces, START) as run:
        space, copy = run.empty_space(), run.empty_space()
        for at in (0x08048000, 0xBFFFD000):
            run.map_page(space, at, 1)
        everything = (space, 0, KERNEL_BASE)
        for name, arguments in (
            ("page_protect_range", (*everything, READABLE)),
            ("page_copy_range", (copy, *everything)),
            ("page_unmap_range", everything),
        ):
            count, _ = run.kernel.price(NANOSECONDS[lab.mode], name, *arguments)
            if count > MOST_EMPTY:
                fail(f"{name} of 3 GiB with two pages: {count} instructions, not {MOST_EMPTY}")
