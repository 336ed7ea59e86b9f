"""Exercises 6.4 and 6.5: families of spaces, and what each of their pages must be like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.lesson6.steps import (
    BOTH,
    CUT,
    END,
    ENTRY,
    FORK,
    GET_FILE,
    LENGTH,
    MAKE,
    PAGE,
    PROTECT,
    PUT,
    READ,
    READ_AT,
    SHARED,
    SHORTEN,
    SYNC,
    WRITE,
    WRITE_AT,
    Step,
    World,
)

PAGES = 40
BASE = 0x40400000 - PAGES // 2 * PAGE  # across the border of two tables
SPACES = 6
FILE_PAGES = 12


@dataclass(frozen=True)
class ModelPage:
    """A page as its program must find it. index: of the file's page; -1: zeros. word: its own."""

    protection: int
    is_shared: bool = False
    index: int = -1
    word: int | None = None


class Families:
    """Spaces, a file, and the model of both."""

    def __init__(self, world: World, random: Random, with_files: bool = False) -> None:
        self._world = world
        self._random = random
        self._with_files = with_files
        self._length = FILE_PAGES
        self._on_disk: list[int] = []
        self._spaces: dict[int, dict[int, ModelPage]] = {}
        self._file = [random.getrandbits(32) for _ in range(FILE_PAGES)]
        self._steps: list[tuple[Step, int | None, str]] = []  # what is expected, and in words
        self._on_disk = list(self._file)
        world.cache(0, self._file)

    def live(self, count: int) -> None:
        """This many random steps, played in one go, and judged."""
        for _ in range(count):
            self._step()
        results = self._world.play([step for step, _, _ in self._steps])
        for number, ((first, second), (step, expected, what)) in enumerate(
            zip(results, self._steps, strict=True)
        ):
            found = second if step[0] == READ_AT and not first else first
            if step[0] in (READ_AT, WRITE_AT) and first:
                found = None
            assert found == expected, f"step {number}, {what}: expected {expected}, seen {found}"
        self._steps.clear()

    def check_references(self) -> None:
        """Every page has a reference of each entry that shows it, and one of its file."""
        shown: dict[int, int] = {}
        counted: dict[int, int] = {}
        of_file: set[int] = set()
        places = [(n, p) for n, pages in self._spaces.items() for p in pages]
        found = self._world.play([(ENTRY, n, BASE + p * PAGE) for n, p in places])
        for (space, number), (bits, references) in zip(places, found, strict=True):
            page = self._spaces[space][number]
            if not bits or (page.word is None and page.index < 0):
                continue  # nothing is there, or the zero page
            frame = bits >> 12
            shown[frame] = shown.get(frame, 0) + 1
            counted[frame] = references
            if page.word is None:
                of_file.add(frame)
        for frame, entries in shown.items():
            expected = entries + (frame in of_file)
            assert counted[frame] == expected, (
                f"a page that {entries} entries show{' and a file has' * (frame in of_file)}: "
                f"expected {expected} references, seen {counted[frame]}"
            )

    def end(self) -> None:
        """Ends everything."""
        self._world.end(*self._spaces)
        self._spaces.clear()
        self._world.release(0)

    # Steps

    def _add(self, step: Step, expected: int | None, what: str) -> None:
        self._steps.append((step, expected, what))

    def _step(self) -> None:
        space = self._random.randrange(SPACES)
        if space not in self._spaces:
            self._add((MAKE, space), 1, f"a new space {space}")
            self._spaces[space] = {}
        weights = {self._put: 16, self._cut: 5, self._protect: 8, self._fork: 6, self._end: 3,
                   self._read: 30, self._write: 32}  # fmt: skip
        if self._with_files:
            weights |= {self._sync: 6, self._change_length: 3, self._look_into_file: 6}
        [action] = self._random.choices([*weights], [*weights.values()])
        action(space)

    def _range(self, most: int = PAGES) -> tuple[int, int]:
        first = self._random.randrange(PAGES)
        return first, self._random.randrange(first + 1, min(first + most, PAGES) + 1)

    def _put(self, space: int) -> None:
        kind = self._random.randrange(4)
        first, end = self._range(FILE_PAGES if kind else PAGES)
        protection = self._random.choice((READ, BOTH, BOTH, BOTH))
        index = self._random.randrange(FILE_PAGES - (end - first) + 1) if kind > 1 else -1
        flags = protection | (SHARED if kind == 3 else 0)
        file = 1 << 16 | index if kind > 1 else 0
        step = (PUT, space, BASE + first * PAGE, BASE + end * PAGE, flags, file)
        self._add(step, 0, f"area_put in space {space}")
        for number in range(first, end):
            at = index + number - first if index >= 0 else -1
            self._spaces[space][number] = ModelPage(protection, kind == 3, at)

    def _cut(self, space: int) -> None:
        first, end = self._range(8)
        step = (CUT, space, BASE + first * PAGE, BASE + end * PAGE)
        self._add(step, 0, f"area_cut in space {space}")
        for number in range(first, end):
            self._spaces[space].pop(number, None)

    def _protect(self, space: int) -> None:
        first, end = self._range(8)
        pages = self._spaces[space]
        if any(number not in pages for number in range(first, end)):
            return
        kind = self._random.choice((0, READ, BOTH, BOTH))
        step = (PROTECT, space, BASE + first * PAGE, BASE + end * PAGE, kind)
        self._add(step, 0, f"area_protect in space {space}")
        for number in range(first, end):
            pages[number] = replace(pages[number], protection=kind)

    def _fork(self, space: int) -> None:
        child = self._random.randrange(SPACES)
        if child in self._spaces:
            return
        self._add((FORK, space, child), 1, f"a fork of space {space}")
        self._spaces[child] = dict(self._spaces[space])

    def _end(self, space: int) -> None:
        self._add((END, space), 0, f"the end of space {space}")
        del self._spaces[space]

    def _read(self, space: int) -> None:
        number = self._random.randrange(PAGES)
        page = self._spaces[space].get(number)
        expected = None
        if page and page.protection:
            of_file = self._file[page.index] if page.index >= 0 else 0
            expected = of_file if page.word is None else page.word
            if page.word is None and page.index >= self._length:
                expected = None  # SIGBUS
        step = (READ_AT, space, BASE + number * PAGE)
        self._add(step, expected, f"reading page {number} of space {space}")

    def _write(self, space: int) -> None:
        number, word = self._random.randrange(PAGES), self._random.getrandbits(32)
        page = self._spaces[space].get(number)
        may = page is not None and page.protection & WRITE
        if may and page.word is None and page.index >= self._length:
            may = False
        step = (WRITE_AT, space, BASE + number * PAGE, word)
        self._add(step, 0 if may else None, f"writing to page {number} of space {space}")
        if may and page.is_shared and page.index >= 0:
            self._file[page.index] = word
        elif may:
            self._spaces[space][number] = replace(page, word=word)

    # Files

    def _sync(self, _: int) -> None:
        first = self._random.randrange(FILE_PAGES)
        end = self._random.randrange(first, FILE_PAGES + 1)
        self._add((SYNC, 0, first, end), 0, f"page_cache_sync of pages {first} to {end}")
        last = min(end, self._length)
        self._on_disk[first:last] = self._file[first:last]

    def _look_into_file(self, _: int) -> None:
        """A page that was written back; others may be as they were, or newer."""
        index = self._random.randrange(FILE_PAGES)
        self._add((SYNC, 0, index, index + 1), 0, f"page_cache_sync of page {index}")
        if index < self._length:
            self._on_disk[index] = self._file[index]
        self._add((GET_FILE, 0, index), self._on_disk[index], f"page {index} of the file itself")

    def _change_length(self, _: int) -> None:
        """Pages that go are not written back; as they come again they are read again."""
        length = self._random.randrange(FILE_PAGES // 2, FILE_PAGES + 1)
        if length >= self._length:
            self._add((LENGTH, 0, length), 0, f"the file gets {length} pages")
            self._length = length
            return
        self._add((SHORTEN, 0, length, length), 0, f"the file is cut to {length} pages")
        for pages in self._spaces.values():
            for number, page in pages.items():
                if page.index >= length:
                    pages[number] = replace(page, word=None)
        self._length = length
        self._file[length:] = self._on_disk[length:]
