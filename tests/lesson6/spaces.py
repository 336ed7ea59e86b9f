"""Spaces of a test's own, and what their programs would see, from outside the guest.

with outside(lab, Spaces, START) as run:
    space = run.empty_space()
    run.map_page(space, 0x40000000, writable=True)
    assert list(entries(run, space)) == [0x40000000]

What the kernel gets are arguments: structures in scratch memory, which a caller of it would have,
too. What is expected is nowhere in the guest.
"""

from __future__ import annotations

import re
import struct
import subprocess
from functools import cache

from labs.tools.grading.lab import ROOT
from labs.tools.machine.symbols import KERNEL_BASE
from tests.lesson4.support import FLAGS, tool
from tests.lesson5.support import PAGE_ENTRY, RESERVED, Calls
from tests.support.guest_memory import NotMapped
from tests.support.remote import TEXT_AREA, Guest
from tests.support.told import fail

PAGE = 4096
WORDS = PAGE // 4  # of a page, and entries of a table
LARGE_PAGE = PAGE << 10
PTE_PAGE, PTE_WRITE = 0x205, 2
ROOM = TEXT_AREA - 0x10000  # of scratch memory, for structures
START = "space_share"  # memory can be had, and page faults are handled; no space is there yet
SPACE_BYTES, AREA_BYTES = 48, 40  # of struct space and of struct area
SPACE_PAGES = 24  # of pages in struct space
PAGE_STATE = 8  # of state in struct page


@cache
def offset_of(header: str, structure: str, field: str) -> int:
    """Where a field is in a structure of the kernel's, by its header."""
    line = f'#include "{header}"\nunsigned at = __builtin_offsetof(struct {structure}, {field});\n'
    command = [*tool("cc"), *FLAGS, "-I.", "-S", "-xc", "-", "-o", "-"]
    done = subprocess.run(command, cwd=ROOT, input=line, capture_output=True, text=True, check=True)
    found = re.search(r"^at:\s+\.long\s+(\d+)", done.stdout, re.MULTILINE)
    return int(found[1]) if found else 0


class Spaces(Calls):
    """Spaces, their entries, and accesses of their programs."""

    def __init__(self, guest: Guest) -> None:
        super().__init__(guest)
        self._room = ROOM
        self._moved = self.room(4)  # what is copied from and to a program
        self._form = self.room(AREA_BYTES)
        self._task_space = offset_of("kernel/task/task.h", "task", "space")

    def call(self, name: str, *arguments: int, enabled: int = 0) -> int:
        """Calls a function of the kernel."""
        return self.kernel.call(name, *arguments, enabled=enabled)

    def limit_stacks(self, limit: int) -> bool:
        """From here on a program's stack may have so many bytes, as if it had set that limit.
        False: this kernel has no limits that a program sets."""
        try:
            place = self.guest.address("stack_limit")
        except KeyError:
            return False
        self.kernel.serve(place, lambda *_: limit)
        return True

    def room(self, size: int) -> int:
        """Memory for a structure that is all zeros."""
        place = self._room
        self._room += size + 15 & -16
        assert self._room <= TEXT_AREA, "a test with too many structures"
        self.guest.put_data(place, bytes(size))
        return place

    # Pages

    def page_at(self, address: int) -> int:
        """The entry of the page array for a page of the direct map."""
        return self.page_of((address - KERNEL_BASE) // PAGE)

    def page_of(self, frame: int) -> int:
        """The same for a frame."""
        return self.kernel.word("page_array") + frame * PAGE_ENTRY.size

    def address_of(self, page: int) -> int:
        """The page of an entry of the array. Fails where it is none."""
        array, frames = self.kernel.word("page_array"), self.kernel.word("page_frames")
        frame, rest = divmod(page - array, PAGE_ENTRY.size)
        if rest or not 0 <= frame < frames:
            fail(f"{page:#x}: expected a page of the array, seen an address outside it")
        return KERNEL_BASE + frame * PAGE

    def new_page(self, word: int) -> int:
        """A new page, whose words are all `word`. Its address; 0 for none."""
        address = self.call("page_alloc", 0)
        if address:
            self.guest.put_data(address, struct.pack("<I", word) * WORDS)
        return address

    def hold_page(self, page: int) -> None:
        """One reference more to an entry of the array."""
        self.kernel.set_word(page, self.kernel.word(page) + 1)

    def release_page(self, page: int, enabled: int = 0) -> None:
        """One less: page_release of mm/page_table.h."""
        state = self.guest.data(page + PAGE_STATE, 1)[0]
        if state == RESERVED:
            return
        left = self.kernel.word(page) - 1
        self.kernel.set_word(page, left)
        if left == 0:
            self.call("page_free_last", page, enabled=enabled)

    # Spaces

    def empty_space(self) -> int:
        """A space without areas and entries: not even the page that all have."""
        space = self.room(SPACE_BYTES)
        self.kernel.set_word(space, self.call("page_directory_create"))
        return space

    def use(self, space: int, by_task: int = 0) -> None:
        """The processor translates by the tables of a space; 0: by the kernel's. Faults are handled
        as those of the program `by_task`; of none they just end a copy."""
        self.kernel.set_word(self.kernel.word("current") + self._task_space, by_task)
        self.call("space_use", space)

    def used_by_task(self) -> int:
        """The space of the current task."""
        return self.kernel.word(self.kernel.word("current") + self._task_space)

    def load_space(self, space: int) -> None:
        """Faults are not handled."""
        self.use(space)

    def run_space(self, space: int) -> None:
        """Faults are those of the current task's program."""
        self.use(space, space)

    def put_area(
        self, space: int, start: int, end: int, flags: int, of: int = 0, index: int = 0,
        enabled: int = 0,
    ) -> int:  # fmt: skip
        """area_put, of an object or of none."""
        form = self.form(flags, of, index)
        return self.call("area_put", space, start, end, form, enabled=enabled)

    def form(self, flags: int, of: int = 0, index: int = 0) -> int:
        """What area_put gets of an area."""
        form = struct.pack("<10I", 0, 0, 0, 0, flags, of, index, 0, 0, 0)
        self.guest.put_data(self._form, form)
        return self._form

    # Entries

    def entry_of(self, space: int, address: int) -> int:
        """The entry of an address, read in its table; 0 without a table."""
        place = self.entry_place(space, address)
        return self.kernel.word(place) if place else 0

    def entry_place(self, space: int, address: int) -> int:
        """Where it is; 0 without a table."""
        table = self.kernel.word(self.kernel.word(space) + address // LARGE_PAGE * 4)
        return KERNEL_BASE + (table & -PAGE) + address // PAGE % WORDS * 4 if table else 0

    def set_entry(self, space: int, address: int, value: int) -> int:
        """An entry by pte_of and pte_set, as exercises that need page tables make it; where it is.
        0: no memory."""
        place = self.call("pte_of", space, address, 1)
        if place and not self._is_memory(place):
            fail(
                f"pte_of({address:#x}, true): expected the kernel's address of an entry, seen "
                f"{place:#x}, where there is no memory"
            )
        if place:
            more = bool(value) - bool(self.kernel.word(place))
            self.kernel.set_word(space + SPACE_PAGES, self.kernel.word(space + SPACE_PAGES) + more)
            self.call("pte_set", space, address, place, value)
        return place

    def _is_memory(self, place: int) -> bool:
        try:
            return len(self.guest.data(place, 4)) == 4
        except NotMapped:
            return False

    def map_page(self, space: int, address: int, writable: int) -> int:
        """A new page full of its address at an address of a space. Its entry; 0: no memory."""
        page = self.new_page(address)
        value = page - KERNEL_BASE | PTE_PAGE | (PTE_WRITE if writable else 0)
        return value if page and self.set_entry(space, address, value) else 0

    def change_entry(self, space: int, address: int, value: int, make: int = 0) -> None:
        """pte_set of an entry that is there, or that pte_of makes; nobody counts space->pages."""
        place = self.call("pte_of", space, address, make)
        if place:
            self.call("pte_set", space, address, place, value)

    # Accesses by the processor, as a system call's: they fault, and use the TLB

    def load(self, address: int, enabled: int = 0) -> int | None:
        """The word at an address of the space in use; None: it cannot be read."""
        left = self.call("copy_from_user", self._moved, address, 4, enabled=enabled)
        return None if left else self.kernel.word(self._moved)

    def store(self, address: int, word: int, enabled: int = 0) -> bool:
        """Writes a word; false: it cannot be written."""
        self.kernel.set_word(self._moved, word)
        return self.call("copy_to_user", address, self._moved, 4, enabled=enabled) == 0

    def read_pages(self, address: int, count: int) -> list[int | None]:
        """The first word of each page; None for one that cannot be read."""
        return [self.load(address + i * PAGE) for i in range(count)]

    def write_pages(self, address: int, count: int, word: int) -> list[int]:
        """Which pages' first word could be written (1: it could)."""
        return [int(self.store(address + i * PAGE, word)) for i in range(count)]

    def readable(self, address: int, count: int) -> list[int]:
        """Which pages can be read (1: it can)."""
        return [int(word is not None) for word in self.read_pages(address, count)]

    def require_word(self, space: int, address: int, seen: int | None) -> None:
        """What a program has read is in the page that its entry shows: the copy is the kernel's
        word, the page is read by its physical address."""
        shown = self.entry_of(space, address)
        there = self.kernel.word(KERNEL_BASE + (shown & -PAGE) + address % PAGE) if shown else None
        if seen is not None and seen != there:
            fail(f"a read at {address:#x} gives {seen:#x}, and its entry shows {there}")
