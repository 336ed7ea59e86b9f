"""Exercises 6.4 and 6.5: families of spaces, and what each of their pages must be like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.lesson6.caches import (
    ASKED_AGAIN,
    CUT_AND_GROWN,
    WRITTEN_TO,
)
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
from tests.support.met import Met

PAGES = 14
BASE = 0x40400000 - PAGES // 2 * PAGE  # across the border of two tables
SPACES = 3
FILE_PAGES = 12
CASES = (
    *("a child is ended and another one made", "a shared page is inherited"),
    *("zeros with a word of their own are inherited", "a file's page that was copied is inherited"),
    *("a copy of zeros that is read-only is inherited, and read",),
    *("a copy of a file's page that is read-only is inherited, and read",),
    *("a child writes to a copy that it has inherited", "a parent writes to what it has shown"),
)
CASES_OF_FILES = (
    *("a file is cut below pages that are mapped", "a file grows again"),
    *("a page is read by another task while one reads it to write", "a late writer's page is kept"),
    *("a file is cut and grows while a page is read", "a page is written to while it goes back"),
)


@dataclass(frozen=True)
class ModelPage:
    """A page as its program must find it. index: of the file's page; -1: zeros. word: its own."""

    protection: int
    is_shared: bool = False
    index: int = -1
    word: int | None = None
    is_inherited: bool = False
    is_shown: bool = False  # to a child

    @property
    def kind(self) -> str:
        """In words."""
        return "zeros" if self.index < 0 else "a file's page"


class Families:
    """Spaces, a file, and the model of both."""

    def __init__(self, world: World, random: Random, with_files: bool = False) -> None:
        self._world = world
        self._random = random
        self._with_files = with_files
        self._length = FILE_PAGES
        self._spaces: dict[int, dict[int, ModelPage]] = {}
        self._file = [random.getrandbits(32) for _ in range(FILE_PAGES)]
        self._number = 0  # of the next step
        self._space = 0  # that is used for some steps
        self._on_disk = list(self._file)
        self._met = Met(*CASES, *(CASES_OF_FILES if with_files else ()))
        world.cache(0, self._file)

    def live(self, count: int) -> None:
        """This many random steps, each of which is judged before the next."""
        self._family()
        if self._with_files:
            self._meetings()
        while self._number < count:
            self._step()
        self._number = 0

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
        """Ends everything. Every case was met."""
        self._met.require()
        self._world.end(*self._spaces)
        self._spaces.clear()
        self._world.release(0)

    # Steps

    def _add(self, step: Step, expected: int | None, what: str) -> None:
        """Plays a step, and judges it."""
        [(first, second)] = self._world.play([step])
        found = second if step[0] == READ_AT and not first else first
        if step[0] in (READ_AT, WRITE_AT) and first:
            found = None
        assert found == expected, f"step {self._number}, {what}: expected {expected}, seen {found}"
        self._number += 1

    def _step(self) -> None:
        if self._random.randrange(3) == 0:
            self._space = self._random.randrange(SPACES)
        space = self._space
        self._need(space)
        weights = {self._put: 10, self._cut: 3, self._protect: 8, self._harden: 8, self._end: 1,
                   self._any_fork: 8, self._read_any: 32, self._write_any: 34}  # fmt: skip
        if self._with_files:
            weights |= {self._sync: 6, self._change_length: 3, self._look_into_file: 6}
        [action] = self._random.choices([*weights], [*weights.values()])
        action(space)

    def _need(self, space: int) -> None:
        if space not in self._spaces:
            self._add((MAKE, space), 1, f"a new space {space}")
            self._spaces[space] = {}

    def _range(self, most: int = PAGES) -> tuple[int, int]:
        first = self._random.randrange(PAGES)
        return first, self._random.randrange(first + 1, min(first + most, PAGES) + 1)

    def _put(self, space: int) -> None:
        kind = self._random.randrange(4)
        first, end = self._range(FILE_PAGES if kind else PAGES)
        self._area(space, first, end, kind, self._random.choice((READ, BOTH, BOTH, BOTH)))

    def _area(self, space: int, first: int, end: int, kind: int, protection: int) -> None:
        """An area: of a kind above 1 it has pages of the file, of kind 3 it is shared."""
        index = self._random.randrange(FILE_PAGES - (end - first) + 1) if kind > 1 else -1
        flags = protection | (SHARED if kind == 3 else 0)
        file = 1 << 16 | index if kind > 1 else 0
        step = (PUT, space, BASE + first * PAGE, BASE + end * PAGE, flags, file)
        self._add(step, 0, f"area_put in space {space}")
        for number in range(first, end):
            at = index + number - first if index >= 0 else -1
            self._spaces[space][number] = ModelPage(protection, kind == 3, at)

    def _family(self) -> None:
        """What is promised, at some pages: copies of zeros and of the file's are inherited, two of
        them read-only; the child reads all, and both write."""
        parent, child = self._random.sample(range(SPACES), 2)
        self._need(parent)
        numbers = self._random.sample(range(PAGES), 5)
        if self._with_files and self._length < FILE_PAGES:
            self._lengthen(FILE_PAGES)
        for number, kind in zip(numbers, (1, 2, 1, 2, 3), strict=True):
            self._area(parent, number, number + 1, kind, BOTH)
            self._write(parent, number)
        for number in numbers[:2]:
            self._protect_pages(parent, number, number + 1, READ)
        self._fork(parent, child)
        for number in numbers:
            self._read(child, number)
        for number in numbers[2:]:
            self._write(child, number)
            self._read(parent, number)
            self._write(parent, number)
            self._read(child, number)

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
        self._protect_pages(space, first, end, self._random.choice((0, READ, BOTH, BOTH)))

    def _protect_pages(self, space: int, first: int, end: int, kind: int) -> None:
        step = (PROTECT, space, BASE + first * PAGE, BASE + end * PAGE, kind)
        self._add(step, 0, f"area_protect in space {space}")
        pages = self._spaces[space]
        for number in range(first, end):
            pages[number] = replace(pages[number], protection=kind)

    def _harden(self, space: int) -> None:
        """A page that has been written to becomes read-only, as a dynamic linker makes it."""
        pages = self._spaces[space]
        own = [n for n, page in pages.items() if page.word is not None and page.protection == BOTH]
        if not own:
            return
        number = self._random.choice(own)
        self._protect_pages(space, number, number + 1, READ)

    def _any_fork(self, space: int) -> None:
        self._fork(space, self._random.choice([each for each in range(SPACES) if each != space]))

    def _fork(self, space: int, child: int) -> None:
        """A child in the place of another one, which ends first."""
        if child in self._spaces:
            self._met("a child is ended and another one made")
            self._end(child)
        self._add((FORK, space, child), 1, f"a fork of space {space}")
        pages = self._spaces[space]
        self._spaces[child] = {n: replace(pages[n], is_inherited=True) for n in pages}
        for number, page in pages.items():
            pages[number] = replace(page, is_shown=True)
            self._note_inherited(page)

    def _note_inherited(self, page: ModelPage) -> None:
        if page.is_shared:
            self._met("a shared page is inherited")
        elif page.word is not None and page.index < 0:
            self._met("zeros with a word of their own are inherited")
        elif page.word is not None:
            self._met("a file's page that was copied is inherited")

    def _end(self, space: int) -> None:
        self._add((END, space), 0, f"the end of space {space}")
        del self._spaces[space]

    def _read_any(self, space: int) -> None:
        self._read(space, self._random.randrange(PAGES))

    def _write_any(self, space: int) -> None:
        self._write(space, self._random.randrange(PAGES))

    def _read(self, space: int, number: int) -> None:
        page = self._spaces[space].get(number)
        expected = None
        if page and page.protection:
            of_file = self._file[page.index] if page.index >= 0 else 0
            expected = of_file if page.word is None else page.word
            if page.word is None and page.index >= self._length:
                expected = None  # SIGBUS
            if page.is_inherited and page.protection == READ and page.word is not None:
                self._met(f"a copy of {page.kind} that is read-only is inherited, and read")
        step = (READ_AT, space, BASE + number * PAGE)
        self._add(step, expected, f"reading page {number} of space {space}")

    def _write(self, space: int, number: int) -> None:
        word = self._random.getrandbits(32)
        page = self._spaces[space].get(number)
        may = page is not None and page.protection & WRITE
        if may and page.word is None and page.index >= self._length:
            may = False
        step = (WRITE_AT, space, BASE + number * PAGE, word)
        self._add(step, 0 if may else None, f"writing to page {number} of space {space}")
        if may and page.is_shared and page.index >= 0:
            self._file[page.index] = word
        elif may:
            if page.is_inherited and page.word is not None:
                self._met("a child writes to a copy that it has inherited")
            if page.is_shown and page.word is not None:
                self._met("a parent writes to what it has shown")
            own = replace(page, word=word, is_inherited=False, is_shown=False)
            self._spaces[space][number] = own

    # Files

    def _meetings(self) -> None:
        """What is promised of two tasks and one page, at a page that is not in memory."""
        index = self._random.randrange(FILE_PAGES - 3, FILE_PAGES)
        space, first = self._random.randrange(SPACES), self._random.randrange(PAGES - 3)
        self._need(space)
        self._cut_file(FILE_PAGES - 3)
        self._lengthen(FILE_PAGES)
        step = (PUT, space, BASE + first * PAGE, BASE + (first + 1) * PAGE, BOTH | SHARED)
        self._add((*step, 1 << 16 | index), 0, f"area_put in space {space}")
        self._spaces[space][first] = ModelPage(BOTH, True, index)
        self._world.event(0, ASKED_AGAIN, index, 0)
        self._write(space, first)
        self._happened("a page is read by another task while one reads it to write")
        self._look_into(index)
        self._met("a late writer's page is kept")
        word = self._random.getrandbits(32)
        self._world.event(0, WRITTEN_TO, index, word)
        self._write(space, first)
        self._look_into(index)
        self._happened("a page is written to while it goes back")
        self._file[index] = word
        self._look_into(index)
        self._cut_file(FILE_PAGES - 3)
        self._lengthen(FILE_PAGES)
        word = self._random.getrandbits(32)
        self._world.event(0, CUT_AND_GROWN, index, word)
        self._file[index] = self._on_disk[index] = word
        self._read(space, first)
        self._happened("a file is cut and grows while a page is read")

    def _happened(self, case: str) -> None:
        """The event has happened, or the kernel never came to it."""
        assert not self._world.waits(0), f"the file was not read, or not written back: {case}"
        self._met(case)

    def _sync(self, _: int) -> None:
        first = self._random.randrange(FILE_PAGES)
        end = self._random.randrange(first, FILE_PAGES + 1)
        self._add((SYNC, 0, first, end), 0, f"page_cache_sync of pages {first} to {end}")
        last = min(end, self._length)
        self._on_disk[first:last] = self._file[first:last]

    def _look_into_file(self, _: int) -> None:
        """A page that was written back; others may be as they were, or newer."""
        self._look_into(self._random.randrange(FILE_PAGES))

    def _look_into(self, index: int) -> None:
        self._add((SYNC, 0, index, index + 1), 0, f"page_cache_sync of page {index}")
        if index < self._length:
            self._on_disk[index] = self._file[index]
        self._add((GET_FILE, 0, index), self._on_disk[index], f"page {index} of the file itself")

    def _change_length(self, _: int) -> None:
        """Pages that go are not written back; as they come again they are read again."""
        length = self._random.randrange(FILE_PAGES // 2, FILE_PAGES + 1)
        if length >= self._length:
            self._lengthen(length)
        else:
            self._cut_file(length)

    def _cut_file(self, length: int) -> None:
        self._add((SHORTEN, 0, length), 0, f"the file is cut to {length} pages")
        for pages in self._spaces.values():
            for number, page in pages.items():
                if page.index >= length:
                    self._met("a file is cut below pages that are mapped")
                    pages[number] = replace(page, word=None)
        self._length = length
        self._file[length:] = self._on_disk[length:]

    def _lengthen(self, length: int) -> None:
        if length > self._length:
            self._met("a file grows again")
        self._add((LENGTH, 0, length), 0, f"the file gets {length} pages")
        self._length = length
