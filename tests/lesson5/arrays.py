"""Exercise 5.1: memory maps made to order, and what page_array_initialize is to make of them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.lesson1.memory import AVAILABLE, COUNT_OFFSET, Range
from tests.lesson4.support import fail
from tests.lesson5.support import (
    DMA_END,
    LARGEST,
    PAGE,
    PAGE_ENTRY,
    ZONE,
    ZONE_NAMES,
    Calls,
    address_of,
    frame_at,
)
from tests.lesson5.zones import FREE_OFFSET
from tests.support.remote import Guest

LIMIT = (896 << 20) // PAGE
RESERVE_PART = 64


HOLE_AT, HOLE = 18, 6  # of some_map, in MiB
FAR = 1 << 20  # bytes: more than the frames that somebody may round up


@dataclass(frozen=True)
class Plan:
    """What is to come of a memory map: frames from `array` to the one before `array_end` are the
    page array's; `free` are the frames that are handed over, as (first, end), in order."""

    page_frames: int
    array: int
    array_end: int
    free: tuple[tuple[int, int], ...]

    @property
    def border(self) -> int:
        """Where the zone DMA ends."""
        return min(self.page_frames, DMA_END)

    def handed_over(self) -> list[tuple[int, int, int]]:
        """The same by zone: (zone, first, end)."""
        low = [(0, first, min(end, self.border)) for first, end in self.free if first < self.border]
        high = [(1, max(first, self.border), end) for first, end in self.free if end > self.border]
        return low + high

    def pages(self, zone: int) -> int:
        """How many pages a zone gets."""
        return sum(end - first for number, first, end in self.handed_over() if number == zone)


def some_map(megabytes: int) -> list[Range]:
    """The memory of a PC, as a BIOS tells it; with a hole, so that its end is another number than
    its size, in largest blocks, too."""
    hole, end = HOLE_AT << 20, megabytes << 20
    return [
        Range(0, 0x9FC00),
        Range(0x9FC00, 0x400, 2),
        Range(0xF0000, 0x10000, 2),
        Range(0x100000, hole - 0x100000),
        Range(hole, HOLE << 20, 2),
        Range(hole + (HOLE << 20), end - hole - (HOLE << 20) - 0x20000),
        Range(end - 0x20000, 0x20000, 2),
    ]


def kernel_frames(run: Calls) -> int:
    """The first frame after the kernel."""
    return frame_at(run.guest.address("kernel_end") + PAGE - 1)


class Arrays(Calls):
    """A kernel that is told of memory. What it hands over is recorded, in place of
    buddy_give_range, and nobody gets it; so the tests need no other exercise."""

    def __init__(self, guest: Guest) -> None:
        super().__init__(guest)
        self._handed_over: list[tuple[int, int, int]] = []
        self.kernel.serve(guest.address("buddy_give_range"), self._record)

    def _record(self, address: int, first: int, count: int, *_: int) -> None:
        zone = (address - self.guest.address("zones")) // ZONE.size
        self._handed_over.append((zone, first, first + count))
        place = address + FREE_OFFSET
        self.kernel.set_word(place, self.kernel.word(place) + count)

    def write_map(self, ranges: Sequence[Range]) -> None:
        """Gives the kernel this memory map."""
        entries = (struct.pack("<QQI", each.base, each.length, each.type) for each in ranges)
        place = self.guest.address("boot_info") + COUNT_OFFSET
        self.guest.put_data(place, struct.pack("<I", len(ranges)) + b"".join(entries))
        self.kernel.call("memory_map_initialize")
        self.kernel.set_word("page_frames", 0)
        self.guest.put_data(self.guest.address("zones"), bytes(2 * ZONE.size))

    def initialize(self) -> list[tuple[int, int, int]]:
        """Calls page_array_initialize. Returns what it handed over: (zone, first, end), in order;
        ranges of which one follows the other are one."""
        self._handed_over = []
        self.kernel.call("page_array_initialize")
        joined: list[tuple[int, int, int]] = []
        for zone, first, end in sorted(self._handed_over):
            follows = bool(joined) and joined[-1][::2] == (zone, first)
            start = joined.pop()[1] if follows else first
            joined.append((zone, start, end))
        return joined


def plan(ranges: Sequence[Range], kernel: int) -> Plan:
    """What is to come of these ranges, which are in order and apart from each other."""
    usable = []
    for each in ranges:
        first = max(-(-each.base // PAGE), kernel)
        end = min((each.base + each.length) // PAGE, LIMIT)
        if each.type == AVAILABLE and first < end:
            usable.append((first, end))
    page_frames = -(-max(end for _, end in usable) // LARGEST) * LARGEST
    size = page_frames * PAGE_ENTRY.size // PAGE
    array = next(first for first, end in usable if end - first >= size)
    free = [(first + size if first == array else first, end) for first, end in usable]
    return Plan(page_frames, array, array + size, tuple(free))


def require_array(run: Calls, expected: Plan) -> None:
    """The array is where it is to be, as large as it is to be, and says PAGE_RESERVED of all."""
    frames, array = run.kernel.word("page_frames"), run.kernel.word("page_array")
    if frames != expected.page_frames:
        fail(f"page_frames: expected {expected.page_frames}, seen {frames}")
    if array != address_of(expected.array):
        what = f"page_array: expected {address_of(expected.array):#x} (frame {expected.array})"
        above = ", far above that" if array > address_of(expected.array) + FAR else ""
        fail(f"{what}, seen {array:#x}{above}")
    words = run.guest.data(array, frames * PAGE_ENTRY.size)
    for frame, (_, _, state, _, _) in enumerate(PAGE_ENTRY.iter_unpack(words)):
        if state:
            fail(
                f"the state of frame {frame}, which nobody has handed over: expected PAGE_RESERVED "
                f"(0), seen {state}"
            )


def require_zones(run: Calls, expected: Plan) -> None:
    """The zones' borders and reserves."""
    guest = run.guest
    borders = ((0, expected.border), (expected.border, expected.page_frames))
    for number, border in enumerate(borders):
        data = guest.data(guest.address("zones") + number * ZONE.size, ZONE.size)
        _, first, end, _, reserve, *_ = ZONE.unpack(data)
        name = ZONE_NAMES[number]
        if (first, end) != border:
            what = f"the zone {name}: expected frames {border[0]} to {border[1]}"
            fail(f"{what} (exclusive), seen {first} to {end}")
        wanted = expected.pages(number) // RESERVE_PART
        if reserve != wanted:
            fail(f"the reserve of {name}: expected {wanted} pages, seen {reserve}")


def require_handed_over(found: Sequence[tuple[int, int, int]], expected: Plan, kernel: int) -> None:
    """These frames were handed over, each once and to its zone."""
    seen = list(found)
    for (zone, first, end), (_, after, _) in pairwise(seen):
        if after < end:
            fail(f"frame {after} was handed over twice; {ZONE_NAMES[zone]} got {first} to {end}")
    wanted = [each for each in expected.handed_over() if each[1] < each[2]]
    if seen == wanted:
        return
    for zone, first, end in seen:
        bad = next((f for f in range(first, end) if not is_in(wanted, f, zone)), None)
        if bad is not None:
            owner = whose(bad, zone, expected, kernel)
            fail(
                f"frame {bad} was handed over to {ZONE_NAMES[zone]}: expected not, because {owner}"
            )
    for zone, first, end in wanted:
        if (lost := next((f for f in range(first, end) if not is_in(seen, f, zone)), None)) is None:
            continue
        fail(f"frame {lost} is free memory: expected to go to {ZONE_NAMES[zone]}, seen nowhere")


def is_in(ranges: Sequence[tuple[int, int, int]], frame: int, zone: int) -> bool:
    """Whether a zone got a frame."""
    return any(number == zone and first <= frame < end for number, first, end in ranges)


def whose(frame: int, zone: int, expected: Plan, kernel: int) -> str:
    """Why a frame is not handed over, in words."""
    if frame < kernel:
        return f"the kernel goes on to frame {kernel - 1}, and what is below is not free either"
    if expected.array <= frame < expected.array_end:
        return f"the page array is in frames {expected.array} to {expected.array_end - 1}"
    if (frame < expected.border) != (zone == 0):
        return f"the zones' border is frame {expected.border}"
    return "the memory map has no whole frame of usable memory there"
