"""Exercises 6.4 to 6.6: spaces and page caches that do what a test says, step by step. Each step
is some calls of the kernel's functions from outside; files, what they have and what is expected are
in the test's process.

with spaces(lab) as world:
    world.make(0)
    world.put(0, BASE, 4)
    world.write(0, BASE, 7)
    world.fork(0, 1)
    assert world.read(1, BASE) == 7

Accesses are made by the processor, with copy_from_user and copy_to_user: they fault as a system
call's would. A step that is called is played at once. `play` plays many steps, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from labs.tools.grading.lab import Lab
from tests.lesson4.support import signed
from tests.lesson5.support import NANOSECONDS, PAGE_ENTRY, SLAB, outside
from tests.lesson5.support import USED as PAGE_USED
from tests.lesson6.caches import Caches, Result
from tests.support.remote import Guest

PAGE = 4096
BASE = 0x40000000
STACK_TOP = 0xBFFFE000
MASK = 0xFFFFFFFF
PLAIN = (("kmalloc_debug", "0"),)

READ, WRITE, EXECUTE, SHARED = 1, 2, 4, 8
BOTH = READ | WRITE
PRESENT, WRITABLE, ACCESSED, DIRTY = 0x001, 0x002, 0x020, 0x040

MAKE, FORK, END, PUT, CUT, PROTECT, READ_AT, WRITE_AT, ENTRY, BREAK, SIZES, FAULT = range(12)
CACHE, SET_FILE, GET_FILE, SYNC, SHORTEN, LENGTH, CACHED, RECLAIM = range(20, 28)

SPACES = 12
SPACE_SIZE, SPACE_COUNT_PAGES = 20, 24  # in struct space
SLABS_LINK = 60  # in struct slab_cache

Step = tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """An entry of a page table, and how many references its page has."""

    bits: int
    references: int

    @property
    def frame(self) -> int:
        """Which page of memory it shows."""
        return self.bits >> 12

    def has(self, bit: int) -> bool:
        """Whether a bit is set."""
        return bool(self.bits & bit)


class World(Caches):
    """Spaces and caches, by their numbers."""

    def __init__(self, guest: Guest) -> None:
        super().__init__(guest)
        self.nanoseconds = 0  # of an instruction
        self._spaces = [0] * SPACES

    def play(self, steps: Sequence[Step]) -> list[Result]:
        """Plays steps one after the other; returns their results."""
        plays: dict[int, Callable[..., int | Result]] = {
            MAKE: self._make, FORK: self.fork, END: self._end, PUT: self._put, CUT: self._cut,
            PROTECT: self._protect, READ_AT: self._read_at, WRITE_AT: self._write_at,
            ENTRY: self._entry, BREAK: self._break, SIZES: self._sizes, FAULT: self.fault,
            CACHE: self._cache, SET_FILE: self._set_file, GET_FILE: self.in_file, SYNC: self.sync,
            SHORTEN: self._shorten, LENGTH: self._lengthen, CACHED: self.cached,
            RECLAIM: self._reclaim,
        }  # fmt: skip
        results = []
        for what, *words in steps:
            found = plays[what](*words)
            results.append(found if isinstance(found, tuple) else (int(found) & MASK, 0))
        return results

    # Spaces

    def space(self, number: int) -> int:
        """Where a space is."""
        return self._spaces[number]

    def _use(self, number: int) -> int:
        """The space is that of the current task, as after a change of tasks: the TLB forgets
        nothing while it stays the same."""
        space = self._spaces[number]
        if self.used_by_task() != space:
            self.run_space(space)
        return space

    def _make(self, number: int) -> bool:
        self._spaces[number] = self.call("space_create")
        return self._spaces[number] != 0

    def make(self, space: int) -> None:
        """A new space."""
        assert self._make(space), "space_create returns NULL"

    def _put(self, number: int, start: int, end: int, flags: int, of: int = 0) -> int:
        file, index = of >> 16, of & 0xFFFF
        its = self.cache_of(file - 1) if file else 0
        return self.put_area(self._spaces[number], start, end, flags, its, index)

    def put(self, space: int, start: int, pages: int, flags: int = BOTH, file: int = -1,
            index: int = 0) -> None:  # fmt: skip
        """An area: zeros, or pages of a file from `index` on."""
        found = self._put(space, start, start + pages * PAGE, flags, (file + 1) << 16 | index)
        assert found == 0, "area_put fails"

    def _cut(self, number: int, start: int, end: int) -> int:
        return self.call("area_cut", self._spaces[number], start, end)

    def _protect(self, number: int, start: int, end: int, kind: int) -> int:
        return self.call("area_protect", self._spaces[number], start, end, kind)

    def fork(self, space: int, child: int) -> bool:
        """A copy of a space; false: there was no memory."""
        self._spaces[child] = self.call("space_copy", self._spaces[space])
        return self._spaces[child] != 0

    def fork_instructions(self, space: int, child: int) -> int:
        """The same; how many instructions it took."""
        count, self._spaces[child] = self.kernel.price(
            self.nanoseconds, "space_copy", self._spaces[space]
        )
        assert self._spaces[child], "space_copy returns NULL"
        return count

    def _end(self, number: int) -> int:
        if self.used_by_task() == self._spaces[number]:
            self.run_space(0)
        self.call("space_destroy", self._spaces[number])
        self._spaces[number] = 0
        return 0

    def end(self, *spaces: int) -> None:
        """Ends spaces."""
        for each in spaces:
            self._end(each)

    def _read_at(self, number: int, address: int) -> Result:
        space = self._use(number)
        word = self.load(address, enabled=1)
        self.require_word(space, address, word)
        return (4, 0) if word is None else (0, word)

    def read(self, space: int, address: int) -> int | None:
        """A word that the space's program sees; None: a fault that is not resolved."""
        left, word = self._read_at(space, address)
        return None if left else word

    def _write_at(self, number: int, address: int, word: int) -> int:
        self._use(number)
        return 0 if self.store(address, word, enabled=1) else 4

    def write(self, space: int, address: int, word: int) -> bool:
        """Writes a word as the space's program would; false: a fault that is not resolved."""
        return self._write_at(space, address, word) == 0

    def fault(self, space: int, address: int, write: bool = True) -> int:
        """What space_fault returns for an access; 0 or a negative number."""
        place = self._use(space)
        return signed(self.call("space_fault", place, address, int(write), 1, enabled=1))

    def fill(self, space: int, address: int, pages: int) -> None:
        """A page for each of so many pages, by faults."""
        self._use(space)
        left = self.call("clear_user", address, pages * PAGE, enabled=1)
        assert left == 0, f"of {pages} pages {left} bytes cannot be written to"

    def _entry(self, number: int, address: int) -> Result:
        space = self._spaces[number]
        bits = self.entry_of(space, address) if space else 0
        return (bits, self.kernel.word(self.page_of(bits // PAGE))) if bits else (0, 0)

    def entry(self, space: int, address: int) -> Entry | None:
        """What is there in the space's page table."""
        bits, references = self._entry(space, address)
        return Entry(bits, references) if bits else None

    def _break(self, number: int, start: int, end: int) -> int:
        space = self._spaces[number]
        if start:
            self.call("space_set_heap", space, start)
        self._use(number)
        return self.call("space_set_break", space, end, enabled=1)

    def set_break(self, space: int, end: int, start: int = 0) -> int:
        """Where the heap ends then; `start`: it begins there."""
        return self._break(space, start, end)

    def _sizes(self, number: int) -> Result:
        space = self._spaces[number]
        return self.kernel.word(space + SPACE_COUNT_PAGES), self.kernel.word(space + SPACE_SIZE)

    # Memory

    def _count(self, state: int) -> int:
        array, frames = self.kernel.word("page_array"), self.kernel.word("page_frames")
        states = self.guest.data(array, frames * PAGE_ENTRY.size)[8 :: PAGE_ENTRY.size]
        return states.count(state)

    def used(self) -> int:
        """Pages in use, without those that are kept for the next tables, and those with objects."""
        self.call("page_table_shrink")
        return self._count(PAGE_USED)

    def give_back(self) -> None:
        """What is kept for speed is given back: only pages of files can be, then."""
        self.call("page_table_shrink")
        for link in self.links(self.guest.address("slab_caches")):
            self.call("slab_shrink", link - SLABS_LINK)

    def object_pages(self) -> int:
        """Pages that are cut into objects: areas, spaces, cached pages."""
        self.give_back()
        return self._count(SLAB)

    def fail(self, number: int) -> None:
        """The allocation of this number, from now on, fails; 0: none."""
        self.fail_request(number)


@contextmanager
def spaces(lab: Lab, **fields: object) -> Iterator[World]:
    """The lab's kernel, stopped when everything is initialized, with no space but the test's."""
    options = {"settings": PLAIN, **fields}
    with outside(lab, World, "prompt", **options) as world:
        world.nanoseconds = NANOSECONDS[lab.mode]
        yield world
