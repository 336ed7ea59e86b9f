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
    Run,
    address_of,
    frame_at,
)

LIMIT = (896 << 20) // PAGE
RESERVE_PART = 64
SOURCE = "tests/lesson5/memory/array.c"
JUMP = 0xE9


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
    """The memory of a PC, as a BIOS tells it."""
    end = megabytes << 20
    return [
        Range(0, 0x9FC00),
        Range(0x9FC00, 0x400, 2),
        Range(0xF0000, 0x10000, 2),
        Range(0x100000, end - 0x120000),
        Range(end - 0x20000, 0x20000, 2),
    ]


def kernel_frames(run: Run) -> int:
    """The first frame after the kernel."""
    return frame_at(run.guest.address("kernel_end") + PAGE - 1)


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


def write_map(run: Run, ranges: Sequence[Range]) -> None:
    """Gives the kernel this memory map."""
    entries = b"".join(struct.pack("<QQI", each.base, each.length, each.type) for each in ranges)
    count = struct.pack("<I", len(ranges))
    run.guest.write(run.guest.address("boot_info") + COUNT_OFFSET, count + entries)
    run.guest.call("memory_map_initialize")
    run.guest.write(run.guest.address("page_frames"), bytes(4))
    run.guest.write(run.guest.address("zones"), bytes(2 * ZONE.size))


def record(run: Run) -> None:
    """From here on what is handed over is recorded, and nobody gets it."""
    place = run.guest.address("buddy_give_range")
    distance = run.address("record_range") - (place + 5)
    run.guest.write(place, struct.pack("<Bi", JUMP, distance))


def initialize(run: Run) -> list[tuple[int, int, int]]:
    """Calls page_array_initialize. Returns what it handed over: (zone, first, end), in order."""
    run.guest.write(run.address("answer_count"), bytes(4))
    run.guest.call("page_array_initialize")
    count = run.guest.read_word(run.address("answer_count"))
    words = run.guest.read_words(run.address("answers"), count) if count else ()
    parts = zip(words[::3], words[1::3], words[2::3], strict=True)
    return sorted((zone, first, first + size) for zone, first, size in parts)


def require_array(run: Run, expected: Plan) -> None:
    """The array is where it is to be, as large as it is to be, and says PAGE_RESERVED of all."""
    guest = run.guest
    frames = guest.read_word(guest.address("page_frames"))
    if frames != expected.page_frames:
        fail(f"page_frames: expected {expected.page_frames}, seen {frames}")
    array = guest.read_word(guest.address("page_array"))
    if array != address_of(expected.array):
        what = f"page_array: expected {address_of(expected.array):#x} (frame {expected.array})"
        fail(f"{what}, seen {array:#x}")
    words = guest.read(array, frames * PAGE_ENTRY.size)
    for frame, (_, _, state, _, _) in enumerate(PAGE_ENTRY.iter_unpack(words)):
        if state:
            fail(
                f"the state of frame {frame}, which nobody has handed over: expected PAGE_RESERVED "
                f"(0), seen {state}"
            )


def require_zones(run: Run, expected: Plan) -> None:
    """The zones' borders and reserves."""
    guest = run.guest
    borders = ((0, expected.border), (expected.border, expected.page_frames))
    for number, border in enumerate(borders):
        data = guest.read(guest.address("zones") + number * ZONE.size, ZONE.size)
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
