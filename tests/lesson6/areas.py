"""Exercise 6.2: operations on areas, made one after the other from outside, and a model of what
they make: for each page what is there. Memory for areas, and their objects, are the test's."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from labs.tools.grading.lab import Lab
from tests.lesson4.support import signed
from tests.lesson5.support import outside
from tests.lesson6.spaces import START, Spaces
from tests.lesson6.support import ENOMEM, PAGE, areas_of, entries
from tests.support.met import Met
from tests.support.remote import Guest
from tests.support.told import expect, fail

BASE = 0x40400000 - 128 * PAGE  # across the border of two tables
WINDOW = 256  # pages
OBJECTS = 3
OBJECT_BYTES, OPS_BYTES = 12, 28
NAMES = ("area_put", "area_cut", "area_protect", "a page", "area_find", "area_from", "area_gap")
PUT, CUT, PROTECT, TOUCH, FIND, FROM, GAP = range(7)
PRESENT, WRITE, THERE = 1, 2, 4
SPACE_SIZE = 20  # of size in struct space
JUNK = b"\xcc"
CASES = (
    *("a cut in the middle of an area", "a change over several areas"),
    *("three areas become one", "neighbours whose pages do not continue stay apart"),
    *("no memory for an area", "pages go with what is cut", "pages lose a right"),
    *("what is put over another continues the area below", "and the one above", "and both"),
)
AreaRow = tuple[int, int, int, int, int]  # start, end, flags, object, index


@dataclass(frozen=True)
class Operation:
    """One operation. fails: the n-th object for an area cannot be had."""

    what: int
    start: int
    end: int = 0
    flags: int = 0
    object: int = 0
    index: int = 0
    fails: int = 0

    def __str__(self) -> str:
        name = NAMES[self.what]
        if self.what in (FIND, FROM, TOUCH):
            return f"{name} of {self.start:#x}"
        if self.what == GAP:
            return f"{name} of {self.index:#x} bytes from {self.start:#x} to {self.end:#x}"
        text = f"{name} of [{self.start:#x}, {self.end:#x})"
        if self.what != CUT:
            text += f" with flags {self.flags:#x}"
        if self.object:
            text += f", page {self.index} of object {self.object}"
        return text + (", without memory" if self.fails else "")


@dataclass(frozen=True)
class Place:
    """What is at a page: flags, object (0: none), the object's page."""

    flags: int
    object: int
    index: int


class Model:
    """A space as pages."""

    def __init__(self) -> None:
        self.pages: dict[int, Place] = {}
        self.entries: dict[int, int] = {}

    def areas(self) -> list[AreaRow]:
        """The areas that follow: start, end, flags, object, index (0 without an object)."""
        found: list[AreaRow] = []
        for page in sorted(self.pages):
            place = self.pages[page]
            before = self.pages.get(page - PAGE)
            if before and continues(before, place):
                start, _, *rest = found[-1]
                found[-1] = (start, page + PAGE, *rest)
            else:
                index = place.index if place.object else 0
                found.append((page, page + PAGE, place.flags, place.object, index))
        return found

    def apply(self, each: Operation) -> int:
        """Makes the change, and returns what the kernel is to return."""
        pages = range(each.start, each.end, PAGE)
        if each.what in (PUT, CUT):
            for page in pages:
                self.pages.pop(page, None)
                self.entries.pop(page, None)
        if each.what == PUT:
            for i, page in enumerate(pages):
                self.pages[page] = Place(each.flags, each.object, each.index + i)
        elif each.what == PROTECT:
            self._protect(pages, each.flags)
        elif each.what == TOUCH:
            self.entries[each.start] = THERE | PRESENT | each.flags & WRITE
            return 1
        elif each.what in (FIND, FROM):
            return self._find(each)
        elif each.what == GAP:
            return self.gap(each.start, each.end, each.index)
        return 0

    def _protect(self, pages: Sequence[int], flags: int) -> None:
        for page in pages:
            place = self.pages[page]
            self.pages[page] = Place(place.flags & ~7 | flags, place.object, place.index)
            if page in self.entries:
                kept = self.entries[page] if flags & WRITE else self.entries[page] & ~WRITE
                self.entries[page] = kept & ~PRESENT | (PRESENT if flags else 0)

    def _find(self, each: Operation) -> int:
        for start, end, *_ in self.areas():
            if each.start < end and (each.what == FROM or each.start >= start):
                return start
        return 0

    def gap(self, low: int, high: int, length: int) -> int:
        """The highest room."""
        start = (high - length) & -PAGE if length <= high - low else low - 1
        while start >= low:
            taken = [page for page in range(start, start + length, PAGE) if page in self.pages]
            if not taken:
                return start
            start = taken[0] - length
        return 0


def continues(lower: Place, upper: Place) -> bool:
    """Whether two neighbours are one area."""
    same = lower.flags == upper.flags and lower.object == upper.object
    return same and (not lower.object or lower.index + 1 == upper.index)


class Areas(Spaces):
    """A space's areas, and three objects of the test's own."""

    def __init__(self, guest: Guest) -> None:
        super().__init__(guest)
        self.fails_in = 0  # the n-th object for an area from now on cannot be had; 0: each can
        self.out = 0  # objects for areas that are handed out
        self.references = [0] * (OBJECTS + 1)
        self.meanwhile: Operation | None = None  # by another thread, while an object is released
        self._space = 0
        self._unused: list[int] = []
        self.objects = [0, *(self.room(OBJECT_BYTES) for _ in range(OBJECTS))]  # 0 is none
        served = (("hold", self._hold), ("release", self._release))
        places = [self.kernel.serve(self.kernel.place(f"the object's {n}"), h) for n, h in served]
        self._ops = self.room(OPS_BYTES)
        self.guest.put_data(self._ops, struct.pack("<4I", 0, 0, *places))

    def own_pool(self) -> None:
        """From here on memory for areas comes from the test."""
        self.kernel.serve(self.guest.address("pool_alloc"), self._alloc)
        self.kernel.serve(self.guest.address("pool_free"), self._free)

    def begin(self) -> int:
        """A space without an area, and objects that no area has."""
        for address in self.objects[1:]:
            words = struct.pack("<3I", self._ops, address + 4, address + 4)
            self.guest.put_data(address, words)
        self.references = [0] * (OBJECTS + 1)
        self.out = self.fails_in = 0
        self._space = self.empty_space()
        return self._space

    def _alloc(self, pool: int, *_: int) -> int:
        if self.fails_in:
            self.fails_in -= 1
            if not self.fails_in:
                return 0
        self.out += 1
        size = self.kernel.word(pool)
        address = self._unused.pop() if self._unused else self.room(size)
        self.guest.put_data(address, bytes(size))
        return address

    def _free(self, pool: int, address: int, *_: int) -> None:
        self.out -= 1
        self.guest.put_data(address, JUNK * self.kernel.word(pool))
        self._unused.append(address)

    def _number(self, address: int) -> int:
        if address not in self.objects[1:]:
            fail(f"an operation of an object gets {address:#x}, which is no object")
        return self.objects.index(address)

    def _hold(self, address: int, *_: int) -> None:
        self.references[self._number(address)] += 1

    def _release(self, address: int, *_: int) -> None:
        number, each = self._number(address), self.meanwhile
        self.references[number] -= 1
        if each and not self.references[number]:
            self.meanwhile = None
            self.perform(self._space, each)

    def put_of(self, space: int, start: int, end: int, flags: int, of: int, index: int) -> int:
        """area_put, of an object by its number."""
        return self.put_area(space, start, end, flags, self.objects[of], index)

    def perform(self, space: int, each: Operation) -> int:
        """An operation; what it returns: for a search, where an area starts."""
        if each.what == PUT:
            form = each.flags, each.object, each.index
            return signed(self.put_of(space, each.start, each.end, *form))
        if each.what == CUT:
            return signed(self.call("area_cut", space, each.start, each.end))
        if each.what == PROTECT:
            return signed(self.call("area_protect", space, each.start, each.end, each.flags))
        if each.what == TOUCH:
            return int(self.map_page(space, each.start, each.flags & WRITE) != 0)
        if each.what == GAP:
            return self.call("area_gap", space, each.start, each.end, each.index)
        area = self.call(NAMES[each.what], space, each.start)
        return self.kernel.word(area + 8) if area else 0


@contextmanager
def area_code(lab: Lab) -> Iterator[Areas]:
    """A kernel whose areas come from the test, which counts them."""
    with outside(lab, Areas, START) as run:
        run.own_pool()
        yield run


def begin(run: Areas) -> int:
    """A space without an area."""
    return run.begin()


def put(
    run: Areas, space: int, first: int, end: int, flags: int, of: int = 0, index: int = 0
) -> int:
    """area_put from one page to another, counted from BASE, of an object (0: none)."""
    place = BASE + first * PAGE, BASE + end * PAGE
    return signed(run.put_of(space, *place, flags, of, index))


def cut(run: Areas, space: int, first: int, end: int) -> int:
    """area_cut."""
    return signed(run.call("area_cut", space, BASE + first * PAGE, BASE + end * PAGE))


def seen_areas(run: Areas, space: int) -> list[AreaRow]:
    """The areas in the kernel, as Model.areas has them."""
    numbers = {address: number for number, address in enumerate(run.objects)}
    return [
        (each.start, each.end, each.flags, of, each.index if of else 0)
        for each in areas_of(run, space)
        for of in (numbers.get(each.object, each.object),)
    ]


def in_words(areas: Sequence[AreaRow]) -> str:
    """Areas as a person reads them: pages counted from BASE."""
    texts = []
    for start, end, flags, of, index in areas[:10]:
        what = f"[{(start - BASE) // PAGE}, {(end - BASE) // PAGE}) flags {flags:#x}"
        texts.append(f"{what} object {of} page {index}" if of else what)
    more = [f"and {len(areas) - 10} more"] if len(areas) > 10 else []
    return ", ".join([*texts, *more]) or "none"


def require_areas(run: Areas, space: int, model: Model, when: str) -> None:
    """The kernel's areas are those of the model."""
    seen, wanted = seen_areas(run, space), model.areas()
    if seen != wanted:
        fail(
            f"areas {when}, as pages: expected {in_words(wanted)}; seen {in_words(seen)}",
            first_difference(wanted, seen),
        )


def first_difference(wanted: Sequence[AreaRow], seen: Sequence[AreaRow]) -> str:
    """What is wrong with the first area that is not as it should be."""
    lost = [each for each in wanted if each not in seen]
    if not lost:
        extra = next(each for each in seen if each not in wanted)
        return f"{in_words([extra])} should not be there"
    start, end, flags, of, _ = lost[0]
    here = [each for each in seen if each[0] < end and each[1] > start]
    if not here:
        return f"{in_words(lost[:1])} is missing"
    if (here[0][0], here[-1][1]) == (start, end) and len(here) > 1:
        return f"{in_words(lost[:1])} is in {len(here)} pieces"
    if (here[0][0], here[0][1], here[0][2], here[0][3]) == (start, end, flags, of):
        return f"the object's page at the start of {in_words(lost[:1])} is {here[0][4]}"
    if (here[0][0], here[0][1]) == (start, end):
        return f"{in_words(lost[:1])} has other flags, or another object: {in_words(here[:1])}"
    return f"{in_words(lost[:1])} has other borders: {in_words(here)}"


def random_operations(random: Random, model: Model, count: int) -> Iterator[Operation]:
    """Operations that fit what the model has become when the next one is asked for."""
    for _ in range(count):
        first = random.randrange(WINDOW)
        end = first + random.randrange(1, min(40, WINDOW - first) + 1)
        yield one_operation(random, model, first, end)


def one_operation(random: Random, model: Model, first: int, end: int) -> Operation:
    """Something to do with pages of a range, counted from BASE."""
    start, last = BASE + first * PAGE, BASE + end * PAGE
    fails = random.choice([0, 0, 0, 1, 2])
    chosen = random.randrange(100)
    if chosen < 40:
        of = random.choice([0, 0, 1, 2, 3])
        shared = 8 * random.randrange(2) if of else 0
        index = random.choice([first, first, random.randrange(60), 0xFFFFF000 + first])
        flags = random.choice([1, 3, 3, 0, 5]) | shared
        return Operation(PUT, start, last, flags, of, index if of else 0, fails)
    if chosen < 60:
        return Operation(CUT, start, last, fails=fails)
    if chosen < 75 and start in model.pages:
        while last - PAGE not in model.pages or not all(
            page in model.pages for page in range(start, last, PAGE)
        ):
            last -= PAGE
        return Operation(PROTECT, start, last, random.choice([0, 1, 3, 3, 5]), fails=fails)
    if chosen < 90 and start in model.pages and start not in model.entries:
        return Operation(TOUCH, start, flags=model.pages[start].flags & WRITE)
    if chosen < 96:
        return Operation(random.choice([FIND, FROM]), start + random.randrange(PAGE))
    high = BASE + PAGE * random.randrange(WINDOW // 2, WINDOW + 1)
    return Operation(GAP, BASE, high, index=PAGE * random.choice([1, 2, 5, 9, 17]))


def may_fail(each: Operation, before: Model) -> bool:
    """Whether -ENOMEM is right: a cut fails only in the middle of one area."""
    if not each.fails or each.what not in (PUT, CUT, PROTECT):
        return False
    around = (each.start - PAGE, *range(each.start, each.end, PAGE), each.end)
    places = [before.pages.get(page) for page in around]
    if each.what != CUT:
        return True
    pairs = itertools.pairwise(places)
    return all(lower and upper and continues(lower, upper) for lower, upper in pairs)


def first_operations(random: Random) -> Iterator[Operation]:
    """What is promised, with each seed, at some pages: an area of an object is cut in the middle,
    and filled up again so that three become one, or not; without memory; then all is cut."""
    first = random.randrange(WINDOW - 40)
    at = [BASE + (first + page) * PAGE for page in range(40)]
    of, index = random.randrange(1, OBJECTS + 1), random.randrange(100)
    yield Operation(PUT, at[2], at[30], 3, of, index)
    for page in (3, 12, 13, 29):
        yield Operation(TOUCH, at[page], flags=WRITE)
    yield Operation(CUT, at[12], at[14], fails=1)
    yield Operation(PROTECT, at[3], at[9], 1)
    yield Operation(CUT, at[12], at[14])
    yield Operation(PROTECT, at[3], at[9], 3)
    yield Operation(PUT, at[12], at[14], 3, of, index + 10)
    yield Operation(CUT, at[20], at[22])
    yield Operation(PUT, at[20], at[22], 3, of, index + 17)
    for low, high in ((25, 30), (2, 5), (14, 18)):  # with what is below, above, and both
        yield Operation(PUT, at[low], at[high], 1)
        yield Operation(PUT, at[low], at[high], 3, of, index + low - 2)
    yield Operation(PUT, at[10], at[25], 1, fails=1)
    yield Operation(PUT, at[10], at[25], 1)
    yield Operation(CUT, at[0], at[39])


def require_operations(run: Areas, random: Random, count: int) -> None:
    """This many operations, one after the other, each compared with the model."""
    space, model, met = run.begin(), Model(), Met(*CASES)
    first = [*first_operations(random)]
    for number in range(count):
        each = first[number] if number < len(first) else next(random_operations(random, model, 1))
        model = performed(run, space, model, each, number, met)
    met.require()


def performed(
    run: Areas, space: int, before: Model, each: Operation, number: int, met: Met
) -> Model:
    """Performs an operation. Returns the model of what is there then. Fails where it is not."""
    after, run.fails_in = copied(before), each.fails
    wanted, seen = after.apply(each), run.perform(space, each)
    run.fails_in = 0
    what = f"operation {number}, {each}"
    if seen == -ENOMEM and may_fail(each, before):
        met("no memory for an area")
        after = before
    elif seen != wanted:
        is_change = each.what in (PUT, CUT, PROTECT)
        expect(what, seen if is_change else hex(seen), wanted if is_change else hex(wanted))
    else:
        note(met, each, before, after)
    require_areas(run, space, after, f"after {what} (before: {in_words(before.areas())})")
    require_counted(run, space, after, f"after {what}")
    found = {at: THERE | entry & (PRESENT | WRITE) for at, entry in entries(run, space).items()}
    if found != after.entries:
        wrong = min(at for at, _ in found.items() ^ after.entries.items())
        fail(
            f"after {what}: expected other entries in the page tables (which pages are there, "
            f"writable), first at {wrong:#x}"
        )
    return after


def require_counted(run: Areas, space: int, model: Model, when: str) -> None:
    """What is counted agrees with the areas that are there: bytes, and references to objects."""
    areas = model.areas()
    for number in range(1, OBJECTS + 1):
        seen, shown = run.references[number], sum(of == number for _, _, _, of, _ in areas)
        expect(f"references of object {number} {when}, one for each area", seen, shown)
    size = run.kernel.word(space + SPACE_SIZE)
    expect(f"space->size {when}", size, sum(end - start for start, end, *_ in areas))
    expect(f"areas that are allocated {when}", run.out, len(areas))
    for number in range(1, OBJECTS + 1):
        expected = sum(of == number for *_, of, _ in areas)
        expect(f"references of object {number} {when}", run.references[number], expected)
        length = run.length(run.objects[number] + 4)
        expect(f"areas in the list of object {number} {when}", length, expected)


def note(met: Met, each: Operation, before: Model, after: Model) -> None:
    """Which cases an operation was."""
    old, new = before.areas(), after.areas()
    touched = [row for row in old if row[0] < each.end and row[1] > each.start]
    met("a change over several areas", each.what in (PUT, CUT) and len(touched) > 1)
    within = any(row[0] < each.start and row[1] > each.end for row in touched)
    met("a cut in the middle of an area", each.what == CUT and within)
    met("pages go with what is cut", len(after.entries) < len(before.entries))
    both = before.entries.keys() & after.entries.keys()
    lost = any(after.entries[at] < before.entries[at] for at in both)
    met("pages lose a right", each.what == PROTECT and lost)
    if each.what == PUT and not touched and len(new) == len(old) - 1:
        met("three areas become one")
    here = next((row for row in new if row[0] <= each.start < row[1]), (0, 0))
    below, above = here[0] < each.start, here[1] > each.end
    over = each.what == PUT and len(touched) > 0
    met("what is put over another continues the area below", over and below and not above)
    met("and the one above", over and above and not below)
    met("and both", over and below and above)
    sides = before.pages.get(each.start - PAGE), after.pages.get(each.start)
    if each.what == PUT and all(sides) and each.object and sides[0].object == each.object:
        same = sides[0].flags == sides[1].flags and not continues(*sides)
        met("neighbours whose pages do not continue stay apart", same)


def copied(model: Model) -> Model:
    """A model of its own with the same contents."""
    other = Model()
    other.pages, other.entries = dict(model.pages), dict(model.entries)
    return other
