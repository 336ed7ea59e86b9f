"""Exercises 6.4 to 6.6: spaces and page caches that do what a test says, step by step, in the
kernel under test (tests/lesson6/memory/steps.c). What they do is judged here.

with spaces(lab) as world:
    world.make(0)
    world.put(0, BASE, 4)
    world.write(0, BASE, 7)
    world.fork(0, 1)
    assert world.read(1, BASE) == 7

A step that is called is played at once. `play` plays many steps in one go.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from labs.tools.grading.lab import Lab
from tests.lesson4.support import signed
from tests.lesson5.support import Run, memory_code

SOURCE = "tests/lesson6/memory/steps.c"
PAGE = 4096
BASE = 0x40000000
STACK_TOP = 0xBFFFE000
MASK = 0xFFFFFFFF
STEP = struct.Struct("<6I")
MOST_STEPS = 2000
PLAIN = (("kmalloc_debug", "0"),)

READ, WRITE, EXECUTE, SHARED = 1, 2, 4, 8
BOTH = READ | WRITE
PRESENT, WRITABLE, ACCESSED, DIRTY = 0x001, 0x002, 0x020, 0x040
NOTHING, FAILS, ASKED_AGAIN, WRITTEN_TO, IS_CUT, RECLAIMED, BOTH_FAIL = range(7)
CUT_AND_FAILS, CUT_AND_GROWN = 7, 8

MAKE, FORK, END, USE, PUT, CUT, PROTECT, READ_AT, WRITE_AT, ENTRY, BREAK, SIZES, FILL = range(13)
FAULT = 13
USED, FAIL = 30, 31
CACHE, SET_FILE, GET_FILE, PIN, UNPIN, SYNC, SHORTEN, LENGTH = range(40, 48)
CACHED, COUNTS, EVENT, RELEASE, RECLAIM, PEEK, PIN_SHOWN, CLEAN = range(48, 56)

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


class World:
    """Spaces and caches, by their numbers."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.guest = run.guest

    def play(self, steps: Sequence[Step], name: str = "") -> list[tuple[int, int]]:
        """Plays steps one after the other; returns their results."""
        results = []
        for first in range(0, len(steps), MOST_STEPS):
            part = steps[first : first + MOST_STEPS]
            place, words = self._run.address("steps"), b"".join(map(packed, part))
            self.guest.put_data(place, words)
            self._run.call("play", len(part), words=name or "the steps")
            self.guest.put_data(place, bytes(len(words)))  # nothing is left of what was asked
            found = self._results(len(part))
            results += zip(found[::2], found[1::2], strict=True)
        return results

    def _results(self, count: int) -> tuple[int, ...]:
        """What the steps have answered; of that, too, nothing is left."""
        place, size = self._run.address("results"), 8 * count
        data = self.guest.data(place, size)
        self.guest.put_data(place, bytes(size))
        return struct.unpack(f"<{2 * count}I", data)

    def do(self, *step: int, name: str = "") -> int:
        """One step; returns the first word of its result."""
        return self.play([step], name)[0][0]

    # Spaces

    def make(self, space: int) -> None:
        """A new space."""
        assert self.do(MAKE, space, name="space_create") == 1, "space_create returns NULL"

    def put(self, space: int, start: int, pages: int, flags: int = BOTH, file: int = -1,
            index: int = 0) -> None:  # fmt: skip
        """An area: zeros, or pages of a file from `index` on."""
        step = (PUT, space, start, start + pages * PAGE, flags, (file + 1) << 16 | index)
        assert self.do(*step, name="area_put") == 0, "area_put fails"

    def fork(self, space: int, child: int) -> bool:
        """A copy of a space; false: there was no memory."""
        return self.do(FORK, space, child, name="space_copy") == 1

    def fork_instructions(self, space: int, child: int) -> int:
        """The same; how many instructions it took."""
        self.guest.put_data(self._run.address("steps"), packed((FORK, space, child)))
        count, _ = self._run.price("play", 1, words="space_copy")
        assert self._results(1)[0] == 1, "space_copy returns NULL"
        return count

    def end(self, *spaces: int) -> None:
        """Ends spaces."""
        self.play([(END, each) for each in spaces], "space_destroy")

    def read(self, space: int, address: int) -> int | None:
        """A word that the space's program sees; None: a fault that is not resolved."""
        [(left, word)] = self.play([(READ_AT, space, address)], f"reading at {address:#x}")
        return None if left else word

    def write(self, space: int, address: int, word: int) -> bool:
        """Writes a word as the space's program would; false: a fault that is not resolved."""
        return self.do(WRITE_AT, space, address, word, name=f"writing at {address:#x}") == 0

    def fault(self, space: int, address: int, write: bool = True) -> int:
        """What space_fault returns for an access; 0 or a negative number."""
        return signed(self.do(FAULT, space, address, write, name=f"a fault at {address:#x}"))

    def entry(self, space: int, address: int) -> Entry | None:
        """What is there in the space's page table."""
        [(bits, references)] = self.play([(ENTRY, space, address)])
        return Entry(bits, references) if bits else None

    def used(self) -> int:
        """Pages in use, without those that are kept for the next tables, and those with objects."""
        return self.do(USED, 0)

    def object_pages(self) -> int:
        """Pages that are cut into objects: areas, spaces, cached pages."""
        return self.play([(USED, 0)])[0][1]

    def fail(self, number: int) -> None:
        """The allocation of this number, from now on, fails; 0: none."""
        self.do(FAIL, 0, number)

    # Caches

    def cache(self, file: int, words: Sequence[int]) -> None:
        """A file with a word in each page, and an empty cache."""
        steps = [(SET_FILE, file, index, word) for index, word in enumerate(words)]
        self.play([(CACHE, file, len(words)), *steps])

    def in_file(self, file: int, index: int) -> int:
        """What the file itself has in a page."""
        return self.do(GET_FILE, file, index)

    def page(self, file: int, index: int, write: int = 0, pin: int = 0) -> tuple[int, int]:
        """The operation `page` of a cache: 0 or a negative number; the page's references. It stays
        pinned."""
        [(error, references)] = self.play([(PIN, file, index, write, pin)], "page_cache_get")
        return signed(error), references

    def unpin(self, pin: int = 0) -> None:
        """Gives the reference back."""
        self.do(UNPIN, 0, pin)

    def sync(self, file: int, first: int, end: int) -> int:
        """page_cache_sync; 0 or a negative number."""
        return signed(self.do(SYNC, file, first, end, name="page_cache_sync"))

    def clean(self, file: int, first: int, end: int, most: int) -> tuple[int, int]:
        """page_cache_clean: the number of the first page, and how many have become clean."""
        return self.play([(CLEAN, file, first, end, most)], "page_cache_clean")[0]

    def shorten(self, file: int, pages: int) -> None:
        """The file has this many pages from now on, and its cache is cut."""
        self.do(SHORTEN, file, pages, pages, name="page_cache_cut")

    def lengthen(self, file: int, pages: int) -> None:
        """The file has this many pages from now on; the new ones as it had them once."""
        self.do(LENGTH, file, pages)

    def word_in_cache(self, file: int, index: int) -> int:
        """What a page of the cache begins with."""
        return self.do(PEEK, file, index)

    def pin_shown(self, file: int, index: int, pin: int = 0) -> None:
        """Somebody works on a page of the cache, until unpin."""
        self.do(PIN_SHOWN, file, index, 0, pin)

    def cached(self, file: int, index: int) -> tuple[bool, bool]:
        """Is a page in the cache; is it dirty?"""
        [(there, dirty)] = self.play([(CACHED, file, index)])
        return there == 1, dirty == 1

    def counts(self, file: int) -> tuple[int, int]:
        """How often the file was read and written."""
        return self.play([(COUNTS, file)])[0]

    def event(self, file: int, event: int, index: int, word: int = 0) -> None:
        """What happens during the next read or write of a page."""
        self.do(EVENT, file, event, index, word)

    def release(self, file: int) -> int:
        """Gives the cache's own reference back; how often the file was told of its end."""
        return self.do(RELEASE, file, name="the cache's release")

    def reclaim(self, count: int) -> int:
        """page_cache_reclaim."""
        return self.do(RECLAIM, 0, count, name="page_cache_reclaim")


def packed(step: Step) -> bytes:
    """A step as it is in memory."""
    return STEP.pack(*(word & MASK for word in (*step, 0, 0, 0, 0)[:6]))


@contextmanager
def spaces(lab: Lab, **fields: object) -> Iterator[World]:
    """The lab's kernel, stopped when everything is initialized, with no space but the test's."""
    options = {"settings": PLAIN, **fields}
    with memory_code(lab, SOURCE, "prompt", **options) as run:
        yield World(run)
