"""Exercise 6.2: operations on areas, and a model of what they make: for each page what is there."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from labs.tools.grading.lab import Lab
from tests.lesson4.support import signed
from tests.lesson6.support import ENOMEM, PAGE, Run, areas_of, instead, space_code
from tests.support.told import fail

SOURCE = "tests/lesson6/memory/areas.c"
BASE = 0x40400000 - 128 * PAGE  # across the border of two tables
WINDOW = 256  # pages
OBJECTS = 3
AT_ONCE = 400  # operations
NAMES = ("area_put", "area_cut", "area_protect", "a page", "area_find", "area_from", "area_gap")
PUT, CUT, PROTECT, TOUCH, FIND, FROM, GAP = range(7)
OPERATION = struct.Struct("<7I")
FNV, MASK = 16777619, 0xFFFFFFFF
PRESENT, WRITE, THERE = 1, 2, 4
AreaRow = tuple[int, int, int, int, int]  # start, end, flags, object, index


@dataclass(frozen=True)
class Operation:
    """One operation, as the C code has it. fails: the n-th object for an area cannot be had."""

    what: int
    start: int
    end: int = 0
    flags: int = 0
    object: int = 0
    index: int = 0
    fails: int = 0

    def packed(self) -> bytes:
        """Its words."""
        return OPERATION.pack(
            self.what, self.start, self.end, self.flags, self.object, self.index, self.fails
        )

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

    def digest(self) -> int:
        """The number that the C code makes of areas and entries."""
        value = 0
        for area in self.areas():
            for word in (*area, 1):
                value = (value ^ word) * FNV & MASK
        for i in range(WINDOW):
            value = (value ^ self.entries.get(BASE + i * PAGE, 0)) * FNV & MASK
        return value


def continues(lower: Place, upper: Place) -> bool:
    """Whether two neighbours are one area."""
    same = lower.flags == upper.flags and lower.object == upper.object
    return same and (not lower.object or lower.index + 1 == upper.index)


@contextmanager
def area_code(lab: Lab) -> Iterator[Run]:
    """A kernel whose areas come from the test, which counts them."""
    with space_code(lab, SOURCE) as run:
        for name in ("pool_alloc", "pool_free"):
            instead(run, name, f"own_{name}")
        yield run


def begin(run: Run) -> int:
    """A space without an area."""
    return run.call("begin_areas", BASE)


def put(run: Run, space: int, first: int, end: int, flags: int, of: int = 0, index: int = 0) -> int:
    """area_put from one page to another, counted from BASE, of an object (0: none)."""
    return signed(
        run.call("put_area", space, BASE + first * PAGE, BASE + end * PAGE, flags, of, index)
    )


def cut(run: Run, space: int, first: int, end: int) -> int:
    """area_cut."""
    return signed(run.call("area_cut", space, BASE + first * PAGE, BASE + end * PAGE))


def seen_areas(run: Run, space: int) -> list[AreaRow]:
    """The areas in the kernel, as Model.areas has them."""
    numbers = {run.call("object_at", number): number for number in range(OBJECTS + 1)}
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


def require_areas(run: Run, space: int, model: Model, when: str) -> None:
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


def require_operations(run: Run, random: Random, count: int) -> None:
    """This many operations, one after the other, each compared with the model."""
    space, model = begin(run), Model()
    done: list[Operation] = []
    # What is asked depends on the model, and the model on what failed: so operations that may fail
    # are asked one by one, the others together.
    while len(done) < count:
        together = planned(random, model, min(AT_ONCE, count - len(done)))
        before = together.before
        perform(run, space, together, done)
        model = together.model if not together.failing else settled(run, together, before)


@dataclass
class Batch:
    """Operations that are performed together, of which only the last may fail. models: the digest
    after each; model: after all of them; before: before the last one."""

    operations: list[Operation]
    wanted: list[tuple[int, int]]
    model: Model
    before: Model
    failing: bool = False
    result: int = 0


def planned(random: Random, model: Model, most: int) -> Batch:
    """Operations up to one that may fail."""
    operations, wanted = [], []
    before = model
    while len(operations) < most:
        each = next(random_operations(random, model, 1))
        before = copied(model)
        fails = may_fail(each, before)
        result = model.apply(each)
        operations.append(each)
        wanted.append((result, model.digest()))
        if fails:
            return Batch(operations, wanted, model, before, True)
    return Batch(operations, wanted, model, before)


def copied(model: Model) -> Model:
    """A model of its own with the same contents."""
    other = Model()
    other.pages, other.entries = dict(model.pages), dict(model.entries)
    return other


def perform(run: Run, space: int, batch: Batch, done: list[Operation]) -> None:
    """Performs a batch. Fails where something differs."""
    data = b"".join(each.packed() for each in batch.operations)
    run.guest.write(run.address("operations"), data)
    words = run.answers("perform_all", space, len(batch.operations))
    for i, each in enumerate(batch.operations):
        result, digest, counted = words[3 * i : 3 * i + 3]
        wanted, right = batch.wanted[i]
        last = i == len(batch.operations) - 1
        if last and batch.failing and signed(result) == -ENOMEM:
            wanted, right = result, batch.before.digest()
            batch.result = -ENOMEM
        if result != wanted:
            shown = signed(result) if each.what in (PUT, CUT, PROTECT) else hex(result)
            want = wanted if each.what in (PUT, CUT, PROTECT) else hex(wanted)
            fail(f"operation {len(done)}, {each}: expected {want}, seen {shown}")
        if digest != right or not counted:
            explain(run, [*done, each], counted)
        done.append(each)


def settled(run: Run, batch: Batch, before: Model) -> Model:
    """The model after a batch whose last operation may have failed."""
    return before if batch.result else batch.model


def explain(run: Run, operations: Sequence[Operation], counted: int) -> None:
    """Performs the operations again, up to the one that was wrong, and says what is there then."""
    space, model, before = begin(run), Model(), Model()
    for at in range(0, len(operations), AT_ONCE):
        part = operations[at : at + AT_ONCE]
        run.guest.write(run.address("operations"), b"".join(each.packed() for each in part))
        words = run.answers("perform_all", space, len(part))
        for each, result in zip(part, words[::3], strict=True):
            before = copied(model)
            if each.what not in (PUT, CUT, PROTECT) or signed(result) == 0:
                model.apply(each)
    what = f"after operation {len(operations) - 1}, {operations[-1]}"
    require_areas(run, space, model, f"{what} (before: {in_words(before.areas())})")
    if not counted:
        fail(
            f"{what}: space->size, the objects' references and lists, and the areas that were "
            "taken and given back: expected to agree with the areas, seen not"
        )
    fail(f"{what}: expected other entries in the page tables (which pages are there, writable)")
