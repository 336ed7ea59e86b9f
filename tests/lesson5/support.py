"""What the tests of lesson 5 share: code of a test's own in the stopped kernel, and a picture of
the page array and of the zones, with what contradicts the invariants in it.

with memory_code(lab, "tests/lesson5/memory/audit.c", PLAIN) as run:
    run.call("begin_audit")
    assert picture(run.guest).contradictions() == []

The C code is compiled with the headers of the whole tree (tests/lesson5/memory/code.h has
`answer`), and put into memory below 1 MiB that nobody uses.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from labs.tools.grading.lab import Lab
from labs.tools.machine.symbols import KERNEL_BASE, Symbols
from tests.lesson4.support import code, fail, require_untouched
from tests.support.outside import INTERRUPTS, Outside
from tests.support.remote import Guest, stopped
from tests.support.standstill import describe

PAGE = 4096
ORDERS = 11
LARGEST = 1 << ORDERS - 1  # pages of the largest block
DMA_END = (16 << 20) // PAGE
RESERVED, FREE, USED, SLAB, TAIL = range(5)  # enum page_state
STATES = ("PAGE_RESERVED", "PAGE_FREE", "PAGE_USED", "PAGE_SLAB", "PAGE_TAIL")
PAGE_ENTRY = struct.Struct("<IIBB2xI")  # struct page: next, previous, state, order, owner
ZONE = struct.Struct("<5I22I")  # struct zone: name, first, end, free, reserve, lists
ZONE_NAMES = ("DMA", "Normal")
MOST_FRAMES = 1 << 18
START = "page_array_initialize"  # the kernel can print and panic, and knows the memory map


class Run:
    """Code of a test in a stopped kernel, whose functions are called one by one."""

    def __init__(self, guest: Guest, symbols: Symbols, image: bytes) -> None:
        self.guest = guest
        self.symbols = symbols
        self._size = len(image)
        self._code = image[: self.address("code_end") - self.address("begin")]

    def address(self, name: str) -> int:
        """Where a name of the test's code, or of the kernel, is."""
        try:
            return self.symbols.find(name).address
        except KeyError:
            return self.guest.address(name)

    def call(self, name: str, *arguments: int, words: str = "") -> int:
        """Calls a function of the test's code, or of the kernel, with interrupts disabled. Returns
        EAX. A failure says `words`, or the name. Fails where the kernel has written to the test's
        code: what that says would be the kernel's word."""
        result = self.guest.call(self.address(name), *arguments, name=words or name)
        require_untouched(self.guest, self.address("begin"), self._code)
        return result

    def answers(self, name: str, *arguments: int) -> list[int]:
        """The same; returns what it has answered."""
        self.guest.write(self.address("answer_count"), bytes(4))
        self.call(name, *arguments)
        count = self.guest.read_word(self.address("answer_count"))
        return list(self.guest.read_words(self.address("answers"), count)) if count else []

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """For a `with` statement: nothing of the test is in the guest, neither code and variables
        nor what its calls have left on the stack. Fails where the kernel writes there."""
        place, nothing = self.address("begin"), bytes(self._size)
        kept = self.guest.read(place, self._size)
        self.guest.write(place, nothing)
        stack = self.guest.registers()["esp"] - STACK_LEFT
        self.guest.write(stack, bytes(STACK_LEFT - 4))
        yield
        if self.guest.read(place, self._size) != nothing:
            fail(f"the kernel writes to memory that is not its own, at {place:#x}")
        self.guest.write(place, kept)


NANOSECONDS = {"icount": 8, "slower": 16}  # of guest time, an instruction
STACK_LEFT = 0x800  # of the stack, which the test's functions may have used


@contextmanager
def memory_code(lab: Lab, source: str, place: str = START, **fields: object) -> Iterator[Run]:
    """The lab's kernel, stopped at `place`, with the code of `source` in it."""
    image, symbols = code(lab, source)
    with stopped(lab, place, **fields) as guest:
        guest.more_symbols.append(symbols)
        run = Run(guest, symbols, image)
        guest.write(run.address("begin"), image)
        yield run


class Calls:
    """What a test does in a stopped kernel, from outside: each function of a derived class is some
    calls of the kernel's, and nothing of it is in the guest."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.kernel = Outside(guest)

    def links(self, head: int, most: int = 1 << 14) -> Iterator[int]:
        """The links of a list, from the front. Fails where it has no end."""
        link = self.kernel.word(head)
        for _ in range(most):
            if link == head:
                return
            yield link
            link = self.kernel.word(link)
        fail(f"the list at {head:#x} has no end")

    def length(self, head: int) -> int:
        """How many there are."""
        return sum(1 for _ in self.links(head))

    def free_pages(self) -> int:
        """What page_free_count returns."""
        return self.kernel.call("page_free_count")

    def fail_request(self, number: int) -> None:
        """The request for memory of this number from now on fails; 0: none."""
        self.kernel.set_word("allocation_fails_in", number)

    def require_undisturbed(
        self, calls: Sequence[tuple[str | int, ...]], watched: Sequence[tuple[int, int]]
    ) -> None:
        """Calls functions (name, arguments) with interrupts enabled, an instruction at a time; an
        argument that is None is what the call before has returned. No byte of what is watched
        (address, length) changes where an interrupt could come between."""
        known: list[bytes] = []

        def look(now: dict[str, int]) -> None:
            enabled = now["eflags"] & INTERRUPTS
            seen = [self.guest.data(*each) for each in watched] if enabled else []
            if enabled and known and seen != known:
                place = describe(self.guest, now["eip"])
                fail(f"at {place} interrupts are enabled, and a list changes")
            known[:] = seen

        result = 0
        for function, *arguments in calls:
            known.clear()
            given = (result if each is None else each for each in arguments)
            _, result = self.kernel.cost(function, *given, enabled=1, each=look)


Own = TypeVar("Own", bound=Calls)


@contextmanager
def outside(
    lab: Lab, calls: Callable[[Guest], Own], place: str = START, **fields: object
) -> Iterator[Own]:
    """The lab's kernel, stopped at `place`, and what a test can do there."""
    with stopped(lab, place, **fields) as guest:
        yield calls(guest)


@dataclass(frozen=True)
class Frame:
    """An entry of the page array."""

    state: int
    order: int
    owner: int


@dataclass(frozen=True)
class Zone:
    """A zone, and the frames in each of its lists, from the front on."""

    name: str
    first: int
    end: int
    free: int
    reserve: int
    lists: tuple[tuple[int, ...], ...]

    def blocks(self) -> list[tuple[int, int]]:
        """The free blocks as (frame, order), by frame."""
        found = ((frame, order) for order, frames in enumerate(self.lists) for frame in frames)
        return sorted(found)


@dataclass(frozen=True)
class Picture:
    """All frames and zones at one moment."""

    frames: tuple[Frame, ...]
    zones: tuple[Zone, ...]

    @cached_property
    def is_free(self) -> list[bool]:
        """For each frame whether it is in a block of a list."""
        free = [False] * len(self.frames)
        for zone in self.zones:
            for frame, order in zone.blocks():
                free[frame : frame + (1 << order)] = [True] * (1 << order)
        return free

    def count(self, state: int) -> int:
        """How many frames have a state."""
        return sum(each.state == state for each in self.frames)

    def contradictions(self) -> list[str]:
        """What the invariants of mm/buddy.c and mm/page.h do not allow, in words."""
        return [words for zone in self.zones for words in self._of_zone(zone)]

    def _of_zone(self, zone: Zone) -> Iterator[str]:
        blocks = zone.blocks()
        for frame, order in blocks:
            yield from self._of_block(zone, frame, order)
        places = set(blocks)
        for frame, order in blocks:
            buddy = frame ^ 1 << order
            if order < ORDERS - 1 and frame < buddy and (buddy, order) in places:
                yield f"frames {frame} and {buddy} of order {order} are buddies, and both are free"
        firsts = {frame for frame, _ in blocks}
        for frame in range(zone.first, zone.end):
            if self.frames[frame].state == FREE and frame not in firsts:
                yield f"frame {frame} is PAGE_FREE and begins no block of the lists"
        pages = sum(1 << order for _, order in blocks)
        if zone.free != pages:
            yield f"{zone.name}.free is {zone.free}, and its lists have {pages} pages"

    def _of_block(self, zone: Zone, frame: int, order: int) -> Iterator[str]:
        end = frame + (1 << order)
        entry = self.frames[frame]
        what = f"frame {frame} in the list of order {order} of {zone.name}"
        if frame < zone.first or end > zone.end:
            yield f"{what}: the zone has frames {zone.first} to {zone.end - 1}"
            return
        if frame % (1 << order):
            yield f"{what} is not aligned"
        if entry.state != FREE:
            yield f"{what} is {state_name(entry.state)}, not PAGE_FREE"
        if entry.order != order:
            yield f"{what} has the order {entry.order}"
        for tail in range(frame + 1, end):
            if self.frames[tail].state != TAIL:
                state = state_name(self.frames[tail].state)
                yield f"frame {tail}, within the block at {frame} of order {order}, is {state}"
                return


def picture(guest: Guest) -> Picture:
    """What the page array and the zones say now."""
    count, array = (word_of(guest, name) for name in ("page_frames", "page_array"))
    if not 0 < count <= MOST_FRAMES:
        fail(f"page_frames: expected 1 to {MOST_FRAMES}, seen {count}")
    data = guest.data(array, count * PAGE_ENTRY.size)
    entries = list(PAGE_ENTRY.iter_unpack(data))
    frames = tuple(Frame(state, order, owner) for _, _, state, order, owner in entries)
    links = [(after, before) for after, before, *_ in entries]
    zones = guest.address("zones")
    read = [
        read_zone(guest, zones + i * ZONE.size, name, array, links)
        for i, name in enumerate(ZONE_NAMES)
    ]
    return Picture(frames, tuple(read))


def word_of(guest: Guest, name: str) -> int:
    """A variable of 32 bits."""
    return int.from_bytes(guest.data(guest.address(name), 4), "little")


def page_state(guest: Guest, address: int) -> int:
    """The state of the page of any address; PAGE_RESERVED for an address in no frame."""
    frame = frame_at(address)
    if not 0 <= frame < word_of(guest, "page_frames"):
        return RESERVED
    entry = guest.data(word_of(guest, "page_array") + frame * PAGE_ENTRY.size, PAGE_ENTRY.size)
    return PAGE_ENTRY.unpack(entry)[2]


def read_zone(
    guest: Guest, address: int, name: str, array: int, links: Sequence[tuple[int, int]]
) -> Zone:
    """A struct zone with its lists. Fails where a list leads out of the array, or has no end."""
    _, first, end, free, reserve, *heads = ZONE.unpack(guest.data(address, ZONE.size))
    lists = []
    for order in range(ORDERS):
        head = address + 20 + 8 * order
        found, before, at = [], head, heads[2 * order]
        while at != head:
            frame, rest = divmod(at - array, PAGE_ENTRY.size)
            if rest or not 0 <= frame < len(links):
                fail(f"the list of order {order} of {name} leads to {at:#x}, which is no page")
            if len(found) > len(links):
                fail(f"the list of order {order} of {name} has no end")
            if links[frame][1] != before:
                fail(f"the list of order {order} of {name}: frame {frame} has the wrong previous")
            before = at
            found.append(frame)
            at = links[frame][0]
        lists.append(tuple(found))
    return Zone(name, first, end, free, reserve, tuple(lists))


def state_name(state: int) -> str:
    """A page's state in words."""
    return STATES[state] if state < len(STATES) else f"state {state}"


def require_sound(guest: Guest, when: str = "") -> Picture:
    """The picture; fails with the first contradiction in it, which was found at `when`."""
    seen = picture(guest)
    if found := seen.contradictions():
        fail(f"{found[0]}{f', {when}' if when else ''}")
    return seen


def address_of(frame: int) -> int:
    """The kernel's address of a frame."""
    return KERNEL_BASE + frame * PAGE


def frame_at(address: int) -> int:
    """The frame of a kernel's address."""
    return (address - KERNEL_BASE) // PAGE
