"""Exercise 5.5: objects of kmalloc, which functions of the test ask for and free from outside; and
a model of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from labs.tools.grading.lab import Lab
from tests.lesson4.support import fail
from tests.lesson5.slabs import LINK, SLABS
from tests.lesson5.support import Calls, outside
from tests.support.met import Met

PLAIN = "kmalloc_debug_enable"  # kmalloc_initialize has been called, and nobody checks yet
GUARD = 32  # bytes of struct guard
RED = 8  # bytes of a red zone
QUARANTINE = 64
SLAB_LARGEST = 2016
FIRST, SECOND = "first_owner", "second_owner"
FIRST_FREER, SECOND_FREER = "first_freer", "second_freer"


@dataclass(frozen=True)
class Guard:
    """What is before an object: bytes asked for, functions, and the allocation's number."""

    size: int
    owner: str
    freer: str
    serial: int


class Objects(Calls):
    """Objects that are asked for, and freed, by functions of known names."""

    def kmalloc(self, size: int, by: str = FIRST, enabled: int = 0) -> int:
        """An object; 0 for none."""
        return self.kernel.call(self.kernel.word("kmalloc"), size, by=by, enabled=enabled)

    def kfree(self, address: int, by: str = FIRST_FREER, enabled: int = 0) -> None:
        """Frees it."""
        self.kernel.call(self.kernel.word("kfree"), address, by=by, enabled=enabled)

    def panic_of_kfree(self, address: int, by: str = SECOND_FREER) -> str:
        """What the kernel's panic says of it; "" for no panic."""
        return self.kernel.panic_of(self.kernel.word("kfree"), address, by=by)

    def size_of(self, address: int) -> int:
        """What an object can hold."""
        return self.kernel.call(self.kernel.word("kmalloc_size"), address)

    def krealloc(self, address: int, size: int, by: str = "resizer", enabled: int = 0) -> int:
        """The object in another size; 0 for none."""
        return self.kernel.call("krealloc", address, size, by=by, enabled=enabled)

    def free_others(self, count: int) -> None:
        """Frees this many other objects."""
        for _ in range(count):
            self.kfree(self.kmalloc(16, by=SECOND), by=SECOND_FREER)

    def fill(self, address: int, size: int, first: int) -> None:
        """Fills the object with bytes that count on from `first`."""
        self.guest.put_data(address, counting(size, first))

    def filled(self, address: int, size: int, first: int) -> int:
        """How many bytes from its beginning are as filled."""
        pairs = zip(self.guest.data(address, size), counting(size, first), strict=True)
        return next((i for i, (seen, expected) in enumerate(pairs) if seen != expected), size)

    def guard_of(self, address: int) -> Guard:
        """The guard of the object at an address."""
        size, owner, freer, serial = self.kernel.words(address - GUARD + 8, 4)
        by = self.kernel.name_of(freer) if freer else "nobody"
        return Guard(size, self.kernel.name_of(owner), by, serial)

    def live(self) -> list[int]:
        """The guards of the objects that are handed out, the oldest first."""
        return [*self.links(self.guest.address("kmalloc_live"))]

    def account(self) -> int:
        """Pages that are free or in slabs."""
        caches = self.links(self.guest.address("slab_caches"))
        return self.free_pages() + sum(self.kernel.word(each - LINK + SLABS) for each in caches)


def counting(size: int, first: int) -> bytes:
    """Bytes that count on from `first`."""
    return bytes(each & 0xFF for each in range(first, first + size))


@contextmanager
def checked(lab: Lab, **fields: object) -> Iterator[Objects]:
    """A kernel whose kmalloc checks."""
    with outside(lab, Objects, PLAIN, **fields) as run:
        run.kernel.call("kmalloc_debug_enable")
        yield run


# ---- a model ----


MOST, LEAST = 50, 10  # objects at the end of a phase
SMALL, MIDDLE, LARGE = 200, SLAB_LARGEST + 200, 20_000
CASES = (
    *("an object of no byte", "an object of a slab", "an object of pages", "kmalloc is refused"),
    *("krealloc is refused", "krealloc from a slab to pages", "krealloc from pages to a slab"),
    *("krealloc to a larger object", "krealloc to a smaller object"),
)


@dataclass(frozen=True)
class Kept:
    """An object that is handed out."""

    address: int
    data: bytes

    @property
    def end(self) -> int:
        """The address after it; an object of no byte has an address of its own, too."""
        return self.address + max(1, len(self.data))

    @property
    def is_large(self) -> bool:
        """Whether it is of pages."""
        return len(self.data) > SLAB_LARGEST


class Model:
    """Random operations. Each is judged before the next."""

    def __init__(self, run: Objects, random: Random) -> None:
        self._run, self._random = run, random
        self._kept: list[Kept] = []
        self._met = Met(*CASES)

    def operate(self) -> None:
        """Objects of each kind, then phases in which there become more, and fewer; in the end
        none is left."""
        for size in (0, 1, SLAB_LARGEST, SLAB_LARGEST + 1, LARGE):
            self._take(size)
        for size in (LARGE, 30, SLAB_LARGEST, 0):
            self._resize(0, size)
        self._resize(0, LARGE, fails=True)
        self._take(LARGE, fails=True)
        while len(self._kept) < MOST:
            self._any(7)
        while len(self._kept) > LEAST:
            self._any(2)
        self._run.kernel.call("kmalloc_debug_check")
        while self._kept:
            self._give(0)
        self._met.require()

    def _any(self, likely: int) -> None:
        """One operation; of ten so many are a kmalloc."""
        size = self._random.randrange(self._random.choice((SMALL, SMALL, MIDDLE, LARGE)))
        fails, what = self._random.randrange(20) == 0, self._random.randrange(10)
        if what < likely or not self._kept:
            self._take(size, fails)
        elif what == 9:
            self._resize(self._random.randrange(len(self._kept)), size, fails)
        else:
            self._give(self._random.randrange(len(self._kept)))

    def _take(self, size: int, fails: bool = False) -> None:
        self._run.fail_request(int(fails))
        address = self._run.kmalloc(size)
        self._run.fail_request(0)
        if not address:
            if not fails:
                fail(f"kmalloc({size}) is refused")
            self._met("kmalloc is refused")
            return
        if not size:
            self._met("an object of no byte")
        self._met(f"an object of {'pages' if size > SLAB_LARGEST else 'a slab'}")
        self._keep(address, size)

    def _keep(self, address: int, size: int) -> None:
        """Fills an object that is new, and in no other."""
        holds = self._run.size_of(address)
        if address % 16 or holds < size:
            fail(f"an object of {size} bytes is at {address:#x}, and can hold {holds}")
        for other in self._kept:
            if address < other.end and other.address < address + max(1, size):
                fail(f"objects of {size} and of {len(other.data)} bytes overlap")
        self._kept.append(Kept(address, self._random.randbytes(size)))
        self._run.guest.put_data(address, self._kept[-1].data)

    def _require_whole(self, kept: Kept, when: str) -> None:
        if self._run.guest.data(kept.address, len(kept.data)) != kept.data:
            fail(f"an object of {len(kept.data)} bytes was overwritten {when}")

    def _give(self, index: int) -> None:
        kept = self._kept.pop(index)
        self._require_whole(kept, "before it was freed")
        self._run.kfree(kept.address)

    def _resize(self, index: int, size: int, fails: bool = False) -> None:
        old = self._kept[index]
        self._require_whole(old, "before a krealloc")
        self._run.fail_request(int(fails))
        address = self._run.krealloc(old.address, size)
        self._run.fail_request(0)
        if not address:
            if not fails:
                fail(f"krealloc from {len(old.data)} to {size} bytes is refused")
            self._met("krealloc is refused")
            self._require_whole(old, "by a krealloc that failed")
            return
        kept = old.data[:size]
        if self._run.guest.data(address, len(kept)) != kept:
            fail(f"krealloc from {len(old.data)} to {size} bytes does not keep what fits")
        del self._kept[index]
        self._note_resized(old, size)
        self._keep(address, size)

    def _note_resized(self, old: Kept, size: int) -> None:
        if old.is_large != (size > SLAB_LARGEST):
            way = ("pages", "a slab") if old.is_large else ("a slab", "pages")
            self._met(f"krealloc from {way[0]} to {way[1]}")
        if size != len(old.data):
            self._met(f"krealloc to a {'larger' if size > len(old.data) else 'smaller'} object")
