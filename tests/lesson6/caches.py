"""Exercises 6.5 and 6.6: files of the test's own, and page caches of them. Files, what they have
and what happens to them are in the test's process: the kernel calls their functions there."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from errno import EIO, ENOMEM, ENOSPC

from tests.lesson4.support import fail, signed
from tests.lesson6.spaces import AREA_BYTES, PTE_WRITE, Spaces
from tests.support.remote import Guest

PAGE = 4096
WRITE, SHARED = 2, 8
NOTHING, FAILS, ASKED_AGAIN, WRITTEN_TO, IS_CUT, RECLAIMED, BOTH_FAIL = range(7)
CUT_AND_FAILS, CUT_AND_GROWN = 7, 8
FILES, FILE_PAGES = 3, 64
CACHE_BYTES = 28  # of struct page_cache: ops, areas, ops of the file, pages, references, cuts
OPS, FIRST_AREA, TREE = 0, 4, 16  # offsets in it
PAGE_OF, RELEASE_OF, CUT_OF = 0, 12, 20  # in struct memory_object_ops
CACHED_PAGE, CACHED_DIRTY = 16, 28  # in struct cached_page
AREA_IN_OBJECT = 32  # in struct area
MOST_NODES = 1000
JUNK = b"\x5a" * PAGE

Result = tuple[int, int]


@dataclass
class File:
    """A file, whose pages begin with a word and are zero beyond it. What happens in the next read
    or write-back of a page, once: `event`."""

    cache: int
    pages: int = 0
    words: list[int] = field(default_factory=lambda: [0] * FILE_PAGES)
    reads: int = 0
    writes: int = 0
    written: list[int] = field(default_factory=list)  # pages, in order
    ends: int = 0
    event: int = NOTHING
    event_page: int = 0
    event_word: int = 0
    event_times: int = 1

    def takes(self, index: int, event: int) -> bool:
        """Whether that happens now; then it does not any more."""
        if (self.event, self.event_page) != (event, index):
            return False
        self.event_times -= 1
        if not self.event_times:
            self.event = NOTHING
        return True


class Caches(Spaces):
    """Files and their caches, by their numbers."""

    def __init__(self, guest: Guest) -> None:
        super().__init__(guest)
        self._files = [File(self.room(CACHE_BYTES)) for _ in range(FILES)]
        self._pins: dict[int, int] = {}
        self._given = self.room(8)
        self._run = self.room(4 * FILE_PAGES)
        served = (self._read_file, self._write_file, self._count_file, self._release_file)
        places = []
        for name, handler in zip(("read", "write", "count", "release"), served, strict=True):
            places.append(self.kernel.serve(self.kernel.place(f"the file's {name}"), handler))
        self._ops = self.room(16)
        self.guest.put_data(self._ops, struct.pack("<4I", *places))

    def cache_of(self, number: int) -> int:
        """Where a file's cache is."""
        return self._files[number].cache

    # What the kernel calls

    def _file_at(self, cache: int) -> File:
        found = [each for each in self._files if each.cache == cache]
        if not found:
            fail(f"an operation of a file gets {cache:#x}, which is no cache")
        return found[0]

    def _read_file(self, cache: int, index: int, given: int, *_: int) -> int:
        enabled, file = self.kernel.enabled, self._file_at(cache)
        memory = self.call("page_alloc", 0, enabled=enabled)
        file.reads += 1
        if not memory:
            return -ENOMEM
        if file.takes(index, FAILS):
            self.call("page_free", memory, 0)
            return -(file.event_word or EIO)
        if file.takes(index, ASKED_AGAIN):  # by another task, while this one sleeps
            error, page = self._ask(file, index, file.event_word, enabled)
            if not error:
                self.release_page(page)
        if file.takes(index, IS_CUT):
            file.pages = index
        word = file.words[index % FILE_PAGES]
        self.guest.put_data(memory, struct.pack("<I", word) + bytes(PAGE - 4))
        if file.takes(index, CUT_AND_GROWN):
            self.call("page_cache_cut", cache, index, enabled=enabled)
            file.words[index % FILE_PAGES] = file.event_word
        self.kernel.set_word(given, self.page_at(memory))
        return 0

    def _write_file(self, cache: int, index: int, page: int, *_: int) -> int:
        enabled, file = self.kernel.enabled, self._file_at(cache)
        word = self.kernel.word(page)
        file.writes += 1
        file.written.append(index)
        if file.takes(index, FAILS):
            return -ENOSPC
        if file.takes(index, BOTH_FAIL):
            file.event, file.event_page = FAILS, index + 1
            return -EIO
        if file.takes(index, CUT_AND_FAILS):  # the other page gets what was freed
            self.call("page_cache_cut", cache, index, enabled=enabled)
            error, other = self._ask(self._files[file.event_word], 0, 0, enabled)
            if not error:
                self.release_page(other)
            return -ENOSPC
        if file.takes(index, WRITTEN_TO):
            self._write_meanwhile(file, index, enabled)
        if file.takes(index, IS_CUT):
            self.call("page_cache_cut", cache, index, enabled=enabled)
            word = self._after_junk(page, enabled)
        if file.takes(index, RECLAIMED):
            self.call("page_cache_reclaim", FILE_PAGES, enabled=enabled)
            word = self._after_junk(page, enabled)
        file.words[index % FILE_PAGES] = word
        return 0

    def _after_junk(self, page: int, enabled: int) -> int:
        """What is in a page after somebody has used one that is new: the page, if it was freed."""
        new = self.call("page_alloc", 0, enabled=enabled)
        if new:
            self.guest.put_data(new, JUNK)
            self.call("page_free", new, 0)
        return self.kernel.word(page)

    def _write_meanwhile(self, file: File, index: int, enabled: int) -> None:
        """Another task writes, while this one sleeps: through the entry, if it still may, else by a
        fault."""
        for link in self.links(file.cache + FIRST_AREA):
            _, _, start, end, flags, _, first, space, *_ = self.kernel.words(
                link - AREA_IN_OBJECT, AREA_BYTES // 4
            )
            address = start + (index - first) * PAGE
            if flags & (SHARED | WRITE) == SHARED | WRITE and start <= address < end:
                break
        else:
            return
        if not self.entry_of(space, address) & PTE_WRITE:
            self.call("space_fault", space, address, 1, 1, enabled=enabled)
        entry = self.entry_of(space, address)
        if entry & PTE_WRITE:
            self.kernel.set_word(self.address_of(self.page_of(entry // PAGE)), file.event_word)

    def _count_file(self, cache: int, *_: int) -> int:
        return self._file_at(cache).pages

    def _release_file(self, cache: int, *_: int) -> None:
        self._file_at(cache).ends += 1

    # Caches

    def _operation(self, file: File, offset: int) -> int:
        """An operation of a cache's object."""
        return self.kernel.word(self.kernel.word(file.cache + OPS) + offset)

    def _ask(self, file: File, index: int, write: int, enabled: int = 0) -> Result:
        """The operation `page`: 0 or a negative number, and the page."""
        ask = self._operation(file, PAGE_OF)
        error = self.kernel.call(ask, file.cache, index, write, self._given, enabled=enabled)
        return signed(error), 0 if error else self.kernel.word(self._given)

    def _cache(self, number: int, pages: int) -> int:
        file = self._files[number] = File(self._files[number].cache, pages)
        self.call("page_cache_initialize", file.cache, self._ops)
        return 0

    def _set_file(self, number: int, index: int, word: int) -> int:
        self._files[number].words[index] = word
        return 0

    def cache(self, file: int, words: Sequence[int]) -> None:
        """A file with a word in each page, and an empty cache."""
        self._cache(file, len(words))
        self._files[file].words[: len(words)] = words

    def written(self, file: int) -> list[int]:
        """Which pages were written back, in order, whatever came of it."""
        return self._files[file].written

    def in_file(self, file: int, index: int) -> int:
        """What the file itself has in a page."""
        return self._files[file].words[index]

    def page(self, file: int, index: int, write: int = 0, pin: int = 0) -> Result:
        """The operation `page` of a cache: 0 or a negative number; the page's references. It stays
        pinned."""
        error, page = self._ask(self._files[file], index, write)
        self._pins[pin] = page
        return error, self.kernel.word(page) if page else 0

    def unpin(self, pin: int = 0) -> None:
        """Gives the reference back."""
        if page := self._pins.pop(pin, 0):
            self.release_page(page)

    def sync(self, file: int, first: int, end: int) -> int:
        """page_cache_sync; 0 or a negative number."""
        return signed(self.call("page_cache_sync", self._files[file].cache, first, end))

    def clean(self, file: int, first: int, end: int, most: int) -> Result:
        """page_cache_clean: the number of the first page, and how many have become clean; none of
        those that are not the run's."""
        its = self._files[file]
        self.kernel.set_word(self._given, first)
        arguments = its.cache, self._given, end, self._run, min(most, FILE_PAGES)
        count = self.call("page_cache_clean", *arguments)
        first = self.kernel.word(self._given)
        run = [*self.kernel.words(self._run, min(count, FILE_PAGES))] if count else []
        right = run == [self._in_cache(its, first + i) for i in range(count)]
        return first, count if right else 0

    def _shorten(self, number: int, pages: int) -> int:
        file = self._files[number]
        file.pages = pages
        self.kernel.call(self._operation(file, CUT_OF), file.cache, pages)
        return 0

    def shorten(self, file: int, pages: int) -> None:
        """The file has this many pages from now on, and its cache is cut."""
        self._shorten(file, pages)

    def _lengthen(self, number: int, pages: int) -> int:
        self._files[number].pages = pages
        return 0

    def lengthen(self, file: int, pages: int) -> None:
        """The file has this many pages from now on; the new ones as it had them once."""
        self._lengthen(file, pages)

    def _in_cache(self, file: File, index: int) -> int:
        """A page of a cache's tree; 0: it is not there."""
        node = self.kernel.word(file.cache + TREE)
        for _ in range(MOST_NODES):
            if not node:
                return 0
            left, right, key = self.kernel.words(node, 3)
            if key == index:
                return node
            node = left if index < key else right
        return fail("the tree of a cache has a cycle")

    def _page_in_cache(self, file: int, index: int) -> int:
        """Its entry of the page array."""
        cached = self._in_cache(self._files[file], index)
        return self.kernel.word(cached + CACHED_PAGE) if cached else 0

    def word_in_cache(self, file: int, index: int) -> int:
        """What a page of the cache begins with."""
        page = self._page_in_cache(file, index)
        return self.kernel.word(self.address_of(page)) if page else 0

    def pin_shown(self, file: int, index: int, pin: int = 0) -> None:
        """Somebody works on a page of the cache, until unpin."""
        self._pins[pin] = self._page_in_cache(file, index)
        self.hold_page(self._pins[pin])

    def cached(self, file: int, index: int) -> tuple[bool, bool]:
        """Is a page in the cache; is it dirty?"""
        found = self._in_cache(self._files[file], index)
        return found != 0, found != 0 and self.guest.data(found + CACHED_DIRTY, 1) != b"\0"

    def counts(self, file: int) -> Result:
        """How often the file was read and written."""
        return self._files[file].reads, self._files[file].writes

    def event(self, file: int, event: int, index: int, word: int = 0, times: int = 1) -> None:
        """What happens during the next read or write of a page, or the next few."""
        its = self._files[file]
        its.event, its.event_page, its.event_word, its.event_times = event, index, word, times

    def waits(self, file: int) -> bool:
        """Whether that has still to happen."""
        return self._files[file].event != NOTHING

    def release(self, file: int) -> int:
        """Gives the cache's own reference back; how often the file was told of its end."""
        its = self._files[file]
        self.kernel.call(self._operation(its, RELEASE_OF), its.cache)
        return its.ends

    def _reclaim(self, _: int, count: int) -> int:
        return self.call("page_cache_reclaim", count)

    def reclaim(self, count: int) -> int:
        """page_cache_reclaim."""
        return self._reclaim(0, count)
