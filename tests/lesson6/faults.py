"""Exercise 6.3: faults in a space of the test's own, over an object of its own; and what they have
made. The object's operations are functions of the test: the kernel calls them in its process."""

from __future__ import annotations

import struct
from errno import EIO, ENOMEM

from labs.tools.machine.symbols import KERNEL_BASE
from tests.lesson4.support import signed
from tests.lesson6.spaces import Spaces
from tests.lesson6.support import PAGE, WRITE, error_name, frame_of, page_at, state_name, tables_of
from tests.support.remote import Guest
from tests.support.told import expect

BASE = 0x40000000
OBJECT_PAGES = 40
FIRST_WORD = 0x1000  # what a page of the object is full of: this, and its number
OBJECT_BYTES, OPS_BYTES = 12, 28
AROUND = 16  # pages


class Faults(Spaces):
    """A space, and an object of which every page is in memory."""

    def __init__(self, guest: Guest) -> None:
        super().__init__(guest)
        self.object = self.room(OBJECT_BYTES)
        self.pages = [0] * OBJECT_PAGES  # addresses; 0: not in memory
        self.references = self.references_meanwhile = 0  # after a change, while it was asked
        self.tables_meanwhile = 0  # of the space, after that
        self.asked: list[tuple[int, int]] = []  # for which page; is that to be written to?
        self.peeks_at_most = OBJECT_PAGES
        self.no_memory_at = -1  # for this page of the object there is none
        self._faster = (0, 0)
        self._change = (0, 0, 0, 0, 0, 0)
        self._peeked = self.room(4 * OBJECT_PAGES)
        own = (self._page, self._peek, self._hold, self._release)
        names = ("page", "peek", "hold", "release")
        places = [
            self.kernel.serve(self.kernel.place(f"the object's {name}"), handler)
            for name, handler in zip(names, own, strict=True)
        ]
        self._ops = [self.room(OPS_BYTES), self.room(OPS_BYTES)]
        for ops, peek in zip(self._ops, (0, places[1]), strict=True):
            self.guest.put_data(ops, struct.pack("<4I", places[0], peek, *places[2:]))

    def begin(self, with_peek: bool = True) -> int:
        """A space without areas, and the object with all its pages."""
        link = self.object + 4
        self.guest.put_data(self.object, struct.pack("<3I", self._ops[with_peek], link, link))
        self.references = 0
        for index, address in enumerate(self.pages):
            if not address:
                self.pages[index] = self.new_page(FIRST_WORD + index)
        self.guest.put_data(self._peeked, struct.pack(f"<{OBJECT_PAGES}I", *self.pages))
        return self.empty_space()

    def put(
        self, space: int, first: int, end: int, flags: int, of: int = 0, index: int = 0
    ) -> None:
        """An area from one page to another, counted from BASE; `of` 1: of the object, from the page
        `index` on."""
        place = BASE + first * PAGE, BASE + end * PAGE
        found = self.put_area(space, *place, flags, self.object if of else 0, index)
        expect("area_put returns", signed(found), 0)

    # What the kernel calls

    def _page(self, _: int, index: int, write: int, given: int) -> int:
        enabled = self.kernel.enabled
        self.asked.append((index, write & 0xFF))
        if self._change[0]:
            self._change_areas(enabled)
        space, address = self._faster
        self._faster = (0, 0)
        if space:
            self.map_page(space, address, 1)
        if index >= OBJECT_PAGES or not self.pages[index]:
            return -ENOMEM if index == self.no_memory_at else -EIO
        page = self.page_at(self.pages[index])
        self.hold_page(page)
        self.kernel.set_word(given, page)
        return 0

    def _peek(self, _: int, index: int, count: int, *__: int) -> int:
        if index >= OBJECT_PAGES:
            return 0
        self.kernel.set_word(count, min(OBJECT_PAGES - index, self.peeks_at_most))
        return self._peeked + 4 * index

    def _hold(self, *_: int) -> None:
        self.references += 1

    def _release(self, *_: int) -> None:
        self.references -= 1

    def lose_page(self, index: int, no_memory: bool) -> None:
        """A page of the object is not in memory any more, and cannot be had: it cannot be read, or
        there is no memory for it."""
        self.pages[index] = 0
        self.kernel.set_word(self._peeked + 4 * index, 0)
        if no_memory:
            self.no_memory_at = index

    # Another task of the space, the next time that the object is asked

    def be_faster(self, space: int, address: int) -> None:
        """It maps a page there."""
        self._faster = space, address

    def be_changed(
        self, space: int, start: int, end: int, flags: int, of: int = 0, index: int = 0
    ) -> None:
        """It changes the areas of a range: it puts one there, of the object where `of` is 1; or
        (`flags` 0) takes all away; or (`of` 2) changes the rights alone."""
        self._change = space, start, end, flags, of, index

    def _change_areas(self, enabled: int) -> None:
        space, start, end, flags, of, index = self._change
        self._change = (0, 0, 0, 0, 0, 0)
        if of == 2:
            self.call("area_protect", space, start, end, flags, enabled=enabled)
        elif flags:
            its = self.object if of else 0
            self.put_area(space, start, end, flags, its, index, enabled=enabled)
        else:
            self.call("area_cut", space, start, end, enabled=enabled)
        self.references_meanwhile = self.references
        self.tables_meanwhile = len(tables_of(self, space))

    # Memory

    def spill_junk(self, count: int) -> None:
        """The next `count` pages that are handed out are full of junk."""
        for address in [self.new_page(0xA5A5A5A5) for _ in range(count)]:
            self.call("page_free", address, 0)

    def others(self, frame: int, word: int) -> int:
        """How many words of a page are not `word`."""
        found = self.kernel.words(KERNEL_BASE + frame * PAGE, PAGE // 4)
        return len(found) - found.count(word)


def fault(run: Faults, space: int, address: int, write: bool, may_sleep: bool = True) -> str:
    """What space_fault returns, by its name."""
    return error_name(run.call("space_fault", space, address, int(write), int(may_sleep)))


def in_words(address: int, write: bool) -> str:
    """A fault as a person reads it."""
    return f"space_fault of a {'write' if write else 'read'} at {address:#x}"


def require_fault(
    run: Faults, space: int, address: int, write: bool, expected: str = "0", may_sleep: bool = True
) -> None:
    """space_fault returns this."""
    what = f"{in_words(address, write)}{'' if may_sleep else ', which must not sleep,'} returns"
    expect(what, fault(run, space, address, write, may_sleep), expected)


def page_of_object(run: Faults, index: int) -> int:
    """The frame of a page of the object."""
    return frame_of(run.pages[index] - KERNEL_BASE)


def which_page(run: Faults, entry: int) -> str:
    """Which page an entry shows, as a person reads it."""
    for index in range(OBJECT_PAGES):
        if page_of_object(run, index) == frame_of(entry):
            return f"page {index} of the object"
    return "another page" if entry else "none"


def require_zero(run: Faults, entry: int, what: str) -> None:
    """All words of the page that an entry shows are 0."""
    expect(f"words of {what} that are not 0", run.others(frame_of(entry), 0), 0)


def require_own_page(run: Faults, entry: int, what: str) -> None:
    """The entry shows a page of the program's own, which it may write to."""
    seen = page_at(run, frame_of(entry))
    expect(f"state of {what}, from page_alloc", state_name(seen.state), "PAGE_USED")
    expect(f"references of {what}", seen.references, 1)
    expect(f"PTE_WRITE of {what}", bool(entry & WRITE), True)
