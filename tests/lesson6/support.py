"""What the tests of lesson 6 share: what is in page tables and trees of areas, read from outside by
physical addresses.

with outside(lab, Spaces, START) as run:
    space = run.empty_space()
    run.map_page(space, 0x40000000, writable=1)
    assert list(entries(run, space)) == [0x40000000]
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from labs.tools.machine.symbols import KERNEL_BASE
from tests.lesson4.support import fail, signed
from tests.lesson5.support import PAGE_ENTRY, STATES, USED, Calls

__all__ = ("PAGE", "fail", "signed")

PAGE = 4096
LARGE_PAGE = PAGE << 10
PRESENT, WRITE, USER, ACCESSED, DIRTY, HIDDEN = 1, 2, 4, 0x20, 0x40, 0x200  # PTE_...
FLAGS = {PRESENT: "P", WRITE: "W", USER: "U", ACCESSED: "A", DIRTY: "D", HIDDEN: "hidden"}
READABLE, WRITABLE, EXECUTABLE, SHARED, STACK, COPIED = 1, 2, 4, 8, 16, 32  # of an area
EFAULT, EACCES, EIO, ENOMEM, EAGAIN = 14, 13, 5, 12, 11
ERRORS = {14: "-EFAULT", 13: "-EACCES", 5: "-EIO", 12: "-ENOMEM", 11: "-EAGAIN"}
STACK_END, STACK_LIMIT, STACK_GAP = 0xBFFFE000, 8 << 20, 1 << 20
KERNEL_TABLE = KERNEL_BASE >> 22
SPACE = struct.Struct("<7I")  # directory, areas, recent, heap_start, heap_end, size, pages
AREA = struct.Struct("<10I")  # left, right, key, end, flags, object, index, space, two links
MOST_AREAS = 10_000


def error_name(result: int) -> str:
    """What a function returned, as a person reads it; with or without its sign."""
    number = -signed(result & 0xFFFFFFFF)
    return ERRORS.get(number, str(-number))


# Page tables


def words_at(run: Calls, address: int, count: int = 1) -> tuple[int, ...]:
    """This many times 32 bits of the direct map, whatever the page tables say."""
    return struct.unpack(f"<{count}I", run.guest.data(address, 4 * count))


@dataclass(frozen=True)
class Page:
    """A page as its entry in the page array has it."""

    frame: int
    references: int
    state: int

    @property
    def is_used(self) -> bool:
        """Whether it has been handed out."""
        return self.state == USED


def page_at(run: Calls, frame: int) -> Page:
    """What the page array says of a frame."""
    array = words_at(run, run.guest.address("page_array"))[0]
    data = run.guest.data(array + frame * PAGE_ENTRY.size, PAGE_ENTRY.size)
    references, _, state, _, _ = PAGE_ENTRY.unpack(data)
    return Page(frame, references, state)


def frame_of(entry: int) -> int:
    """The frame that an entry shows."""
    return entry // PAGE


def directory_of(run: Calls, space: int) -> int:
    """Where a space's directory is, as the kernel sees it."""
    return SPACE.unpack(run.guest.data(space, SPACE.size))[0]


def pages_of(run: Calls, space: int) -> int:
    """space->pages."""
    return SPACE.unpack(run.guest.data(space, SPACE.size))[6]


def tables_of(run: Calls, space: int) -> dict[int, int]:
    """The tables of a space: their frames, by the number of the directory's entry."""
    words = words_at(run, directory_of(run, space), KERNEL_TABLE)
    found = {number: frame_of(word) for number, word in enumerate(words) if word}
    frames = words_at(run, run.guest.address("page_frames"))[0]
    for number, frame in found.items():
        if frame >= frames:
            fail(
                f"the directory's entry of {number * LARGE_PAGE:#x}: expected the physical address "
                f"of a table, seen {words[number]:#x}, where there is no memory"
            )
    return found


def entries(run: Calls, space: int) -> dict[int, int]:
    """The entries that are not 0, by address. Fails where a table does not count its entries."""
    found = {}
    for number, frame in tables_of(run, space).items():
        words = words_at(run, KERNEL_BASE + frame * PAGE, PAGE // 4)
        here = {number * LARGE_PAGE + i * PAGE: word for i, word in enumerate(words) if word}
        seen = page_at(run, frame).references
        if seen != len(here) + 1:
            fail(
                f"references of the table of {number * LARGE_PAGE:#x}: expected {len(here) + 1} "
                f"(its entries that are not 0, and one more), seen {seen}"
            )
        found |= here
    return found


def require_sound_tables(run: Calls, space: int, when: str) -> dict[int, int]:
    """The entries. Fails unless tables count their entries and the space its pages."""
    found = entries(run, space)
    pages = pages_of(run, space)
    if pages != len(found):
        fail(f"space->pages {when}: expected {len(found)}, as there are entries, seen {pages}")
    return found


def in_words(entry: int) -> str:
    """An entry as a person reads it."""
    if not entry:
        return "0"
    flags = [name for bit, name in FLAGS.items() if entry & bit]
    return f"frame {frame_of(entry)} ({' '.join(flags)})"


def state_name(state: int) -> str:
    """A page's state in words."""
    return STATES[state] if state < len(STATES) else f"state {state}"


def free_pages(run: Calls) -> int:
    """How many pages are free, with those that are kept for the next tables."""
    run.guest.call("page_table_shrink")
    return run.guest.call("page_free_count")


# Areas


@dataclass(frozen=True, order=True)
class Area:
    """An area, at `place` in the kernel's memory. object: where its object is, or 0."""

    start: int
    end: int
    flags: int
    object: int
    index: int
    place: int

    def __str__(self) -> str:
        of = f", object page {self.index}" if self.object else ""
        return f"[{self.start:#x}, {self.end:#x}) flags {self.flags:#x}{of}"


def areas_of(run: Calls, space: int) -> list[Area]:
    """The areas of a space, by address, as they are in its tree."""
    root = SPACE.unpack(run.guest.data(space, SPACE.size))[1]
    found, waiting = [], [root]
    while waiting:
        if not (place := waiting.pop()):
            continue
        if len(found) > MOST_AREAS:
            fail("the tree of areas has a cycle")
        left, right, start, end, flags, its, index, owner, *_ = AREA.unpack(
            run.guest.data(place, AREA.size)
        )
        if owner != space:
            fail(f"the area of {start:#x} is in the tree of another space than area->space")
        found.append(Area(start, end, flags, its, index, place))
        waiting += [left, right]
    return sorted(found)
