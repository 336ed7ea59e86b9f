"""Exercise 5.4: caches of slabs of the test's own, called from outside, and a model of them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.lesson4.support import fail
from tests.lesson5.support import PAGE, SLAB, Calls, page_state
from tests.support.met import Met
from tests.support.remote import Guest

START = "kmalloc_initialize"  # pages can be had; the test begins the slabs
NAMES = ("test-a", "test-b")
CONSTRUCTOR = "the constructor"
CONSTRUCTED = 0x600DC0DE
CACHE_BYTES, SLAB_BYTES = 72, 32  # of struct slab_cache, and of struct slab with some of its map
# Offsets in struct slab_cache and in struct slab.
SIZE, ALIGNMENT, COUNT, PARTIAL, FULL, EMPTY, SLABS, USED, LINK = 4, 8, 12, 28, 36, 44, 52, 56, 60
MAGAZINE = 68
OWNER, OBJECTS, HANDED_OUT = 8, 12, 16


class Slabs(Calls):
    """Two caches of the test's own, in a kernel that has no other yet."""

    def __init__(self, guest: Guest) -> None:
        super().__init__(guest)
        self.caches = [0, 0]
        self.objects: list[int] = []  # of fill_objects
        self.constructed: list[int] = []
        self.construct: Callable[[int], None] = self.note
        self._names = [guest.text(name) for name in NAMES]
        place = self.kernel.place(CONSTRUCTOR)
        self.kernel.serve(place, lambda address, *_: self.construct(address))

    def begin(self) -> int:
        """slab_initialize, once for all. Returns how many caches there are then."""
        self.kernel.call("slab_initialize")
        return self.length(self.guest.address("slab_caches"))

    def make_cache(self, number: int, size: int, alignment: int, constructs: int = 0) -> int:
        """Makes cache `number`: returns how many objects are in its slabs; 0 for no cache."""
        constructor = self.kernel.place(CONSTRUCTOR) if constructs else 0
        name = self._names[number]
        cache = self.kernel.call("slab_cache_create", name, size, alignment, constructor)
        self.caches[number] = cache
        self.constructed = []
        return self.of(number, COUNT) if cache else 0

    def note(self, address: int) -> None:
        """What the constructor does."""
        self.constructed.append(address)
        self.kernel.set_word(address, CONSTRUCTED)

    def of(self, number: int, offset: int) -> int:
        """A field of a cache."""
        return self.kernel.word(self.caches[number] + offset)

    def take(self, number: int, enabled: int = 0) -> int:
        """An object; 0 for none."""
        return self.kernel.call("slab_alloc", self.caches[number], enabled=enabled)

    def give(self, number: int, address: int) -> None:
        """Frees an object."""
        self.kernel.call("slab_free", self.caches[number], address)

    def panic_of_give(self, number: int, address: int) -> str:
        """What the kernel's panic says of it; "" for no panic."""
        return self.kernel.panic_of("slab_free", self.caches[number], address)

    def destroy(self, number: int) -> int:
        """1: the cache is gone. Of a `bool` only the lowest 8 bits mean something."""
        return self.kernel.call("slab_cache_destroy", self.caches[number]) & 0xFF

    def shrink(self, number: int) -> int:
        """How many pages it has given back."""
        return self.kernel.call("slab_shrink", self.caches[number])

    def slab_of(self, address: int) -> int:
        """The slab of an address; 0 where its page is not PAGE_SLAB."""
        return address & -PAGE if page_state(self.guest, address) == SLAB else 0

    def in_list(self, number: int, offset: int) -> list[int]:
        """The slabs in one of a cache's lists."""
        return [*self.links(self.caches[number] + offset)]

    def lists(self, number: int) -> list[int]:
        """Partial, full, empty slabs, as listed; slabs and objects handed out, as counted."""
        listed = [len(self.in_list(number, offset)) for offset in (PARTIAL, FULL, EMPTY)]
        return [*listed, self.of(number, SLABS), self.of(number, USED)]

    def every_cache(self) -> list[int]:
        """The addresses of all caches, the oldest first."""
        return [link - LINK for link in self.links(self.guest.address("slab_caches"))]

    def fill_objects(self, number: int, count: int) -> tuple[int, int, int, int]:
        """Takes objects and fills each with a number of its own. Returns how many there were, how
        many of them are not aligned, not in a page that is PAGE_SLAB, and not as they were filled
        when all are there."""
        size, alignment = self.of(number, SIZE), self.of(number, ALIGNMENT)
        misaligned = elsewhere = 0
        while len(self.objects) < count and (address := self.take(number)):
            misaligned += address % alignment != 0
            slab = self.slab_of(address)
            elsewhere += not slab or slab != (address + size - 1) & -PAGE
            self.guest.put_data(address, filling(len(self.objects), size))
            self.objects.append(address)
        kept = (self.guest.data(each, size) for each in self.objects)
        overwritten = sum(data != filling(n, size) for n, data in enumerate(kept))
        return len(self.objects), misaligned, elsewhere, overwritten

    def empty_objects(self, number: int) -> None:
        """Gives back what fill_objects took."""
        while self.objects:
            self.give(number, self.objects.pop())

    def starts(self, number: int, slabs: int) -> list[int]:
        """Takes this many slabs full of objects. Returns where in each slab its first object is."""
        found: dict[int, int] = {}
        for _ in range(slabs * self.of(number, COUNT)):
            self.objects.append(self.take(number))
            slab = self.slab_of(self.objects[-1])
            if not slab:
                fail(f"the object at {self.objects[-1]:#x} is in no page that is PAGE_SLAB")
            found.setdefault(slab, self.kernel.word(slab + OBJECTS) % PAGE)
        return [*found.values()]


def filling(number: int, size: int) -> bytes:
    """What an object is filled with."""
    return struct.pack("<I", number << 12 | 0x5A5) * (size // 4)


# ---- a model ----


@dataclass
class Kept:
    """Objects of one cache that are handed out: what is in each."""

    number: int
    count: int  # in a slab
    size: int
    alignment: int
    objects: dict[int, bytes] = field(default_factory=dict)
    slabs: set[int] = field(default_factory=set)

    def used(self, slab: int) -> int:
        """How many objects of a slab are handed out."""
        return sum(address & -PAGE == slab for address in self.objects)


CASES = (
    *("an object of a partial slab", "an object of an empty slab", "an object of a new slab"),
    *("the last object of a slab", "an object of a full slab is freed", "a slab becomes empty"),
    *("a partial slab although one is empty", "empty slabs are given back"),
)


class Model:
    """Random operations on two caches. Each is judged before the next."""

    def __init__(self, run: Slabs, random: Random) -> None:
        self._run, self._random = run, random
        self._kept = [
            Kept(number, *(run.of(number, each) for each in (COUNT, SIZE, ALIGNMENT)))
            for number in range(2)
        ]
        self.met = Met(*CASES)

    def operate(self) -> None:
        """Each cache gets four slabs, all but a few objects go, and then all."""
        for kept in self._kept:
            self._fill(kept, 4)
            self._thin_out(kept)
            self._shrink(kept)
        for kept in self._kept:
            self._fill(kept, 3)
            for address in self._random.sample([*kept.objects], len(kept.objects)):
                self._give(kept, address)
            self._shrink(kept)
        self.met.require()

    def _fill(self, kept: Kept, slabs: int) -> None:
        """More is taken than freed, until there are so many objects."""
        while len(kept.objects) < slabs * kept.count:
            self._take(kept)
            if self._random.randrange(10) < 2:
                self._give(kept, self._random.choice([*kept.objects]))

    def _thin_out(self, kept: Kept) -> None:
        """Two slabs, of which one is full, become empty; of the others some objects are freed."""
        full = [slab for slab in kept.slabs if kept.used(slab) == kept.count]
        slabs = {*full[:1], *self._random.sample(sorted(kept.slabs), 2)}
        leaving = [each for each in kept.objects if each & -PAGE in slabs]
        staying = [each for each in kept.objects if each & -PAGE not in slabs]
        leaving += self._random.sample(staying, len(staying) // 3)
        self._random.shuffle(leaving)
        for address in leaving:
            self._give(kept, address)
        for _ in range(kept.count):
            self._take(kept)

    def _take(self, kept: Kept) -> None:
        free = {slab: kept.count - kept.used(slab) for slab in kept.slabs}
        partial = {slab for slab, left in free.items() if 0 < left < kept.count}
        empty = {slab for slab, left in free.items() if left == kept.count}
        address = self._run.take(kept.number)
        slab = self._run.slab_of(address)
        if not slab or address % kept.alignment or address in kept.objects:
            fail(f"slab_alloc returns {address:#x}: no object of a slab, or one that is handed out")
        wanted, kind = (partial, "a partial") if partial else (empty, "an empty")
        if wanted and slab not in wanted:
            fail(f"slab_alloc takes from another slab although there is {kind} one")
        if not wanted and slab in kept.slabs:
            fail(f"slab_alloc takes an object of the slab at {slab:#x}, which is full")
        self._note_taken(kept, slab, bool(partial), bool(empty))
        kept.slabs.add(slab)
        data = self._random.randbytes(kept.size)
        self._run.guest.put_data(address, data)
        kept.objects[address] = data
        self._require_lists(kept, "slab_alloc")

    def _note_taken(self, kept: Kept, slab: int, partial: bool, empty: bool) -> None:
        kind = "a partial" if partial else "an empty" if empty else "a new"
        self.met(f"an object of {kind} slab")
        if partial and empty:
            self.met("a partial slab although one is empty")
        if kept.used(slab) == kept.count - 1:
            self.met("the last object of a slab")

    def _give(self, kept: Kept, address: int) -> None:
        slab, data = address & -PAGE, kept.objects[address]
        if self._run.guest.data(address, kept.size) != data:
            fail(f"the object at {address:#x}, of {kept.size} bytes, was overwritten")
        if kept.used(slab) == kept.count:
            self.met("an object of a full slab is freed")
        self._run.give(kept.number, address)
        if self._run.guest.data(address, kept.size) != data:
            fail(f"slab_free has changed the object at {address:#x}")
        del kept.objects[address]
        if not kept.used(slab):
            self.met("a slab becomes empty")
        self._require_lists(kept, "slab_free")

    def _shrink(self, kept: Kept) -> None:
        empty = {slab for slab in kept.slabs if not kept.used(slab)}
        free = self._run.free_pages()
        given = self._run.shrink(kept.number)
        if (given, self._run.free_pages() - free) != (len(empty), len(empty)):
            fail(f"slab_shrink with {len(empty)} empty slabs returns {given}")
        if empty:
            self.met("empty slabs are given back")
        kept.slabs -= empty
        self._require_lists(kept, "slab_shrink")

    def _require_lists(self, kept: Kept, after: str) -> None:
        """Each slab is in the list that its objects ask for, and the sums are right."""
        run, used = self._run, {slab: kept.used(slab) for slab in kept.slabs}
        for offset, name, belongs in (
            (PARTIAL, "partial", {slab for slab in used if 0 < used[slab] < kept.count}),
            (FULL, "full", {slab for slab in used if used[slab] == kept.count}),
            (EMPTY, "empty", {slab for slab in used if not used[slab]}),
        ):
            seen = run.in_list(kept.number, offset)
            if sorted(seen) != sorted(belongs):
                fail(f"after {after}: {len(seen)} {name} slabs, not {len(belongs)}, or others")
        for slab, count in used.items():
            if run.kernel.word(slab + HANDED_OUT) != count:
                fail(f"after {after}: `used` of a slab is not {count}")
        sums = run.of(kept.number, SLABS), run.of(kept.number, USED)
        if sums != (len(used), len(kept.objects)):
            fail(f"after {after}: `slabs` or `used` of the cache is wrong")
