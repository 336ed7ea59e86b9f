"""Exercises 5.2 and 5.3: a page array and two zones of the test's own, at first without a free
block, and the functions of the exercises, called from outside.

frames	0 - 4095: DMA		4096 - 6143: Normal		48 MiB: the array itself
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.lesson4.support import fail
from tests.lesson5.support import (
    DMA_END,
    ORDERS,
    PAGE,
    PAGE_ENTRY,
    RESERVED,
    ZONE,
    ZONE_NAMES,
    Calls,
    Picture,
    address_of,
    require_sound,
)
from tests.support.outside import TEST

DMA, NORMAL = range(2)
BORDERS = (0, DMA_END, 6144)
FRAMES = BORDERS[-1]
ARRAY = address_of((48 << 20) // PAGE)
STALE_ORDER = 3  # of an earlier life: it says nothing
NO_FRAME = 0xFFFFFFFF
FREE_OFFSET, RESERVE_OFFSET = 12, 16  # in struct zone
OWNER_OFFSET = 12  # in struct page


class Zones(Calls):
    """Frames of two zones, which are taken and given back."""

    def begin(self) -> None:
        """Two zones without a free block, in a page array that says PAGE_RESERVED."""
        entry = PAGE_ENTRY.pack(0, 0, RESERVED, STALE_ORDER, 0)
        self.guest.put_data(ARRAY, entry * FRAMES)
        self.kernel.set_word("page_array", ARRAY)
        self.kernel.set_word("page_frames", FRAMES)
        self.fail_request(0)
        for zone, name in enumerate(ZONE_NAMES):
            text = self.guest.text(name)
            first, end = BORDERS[zone], BORDERS[zone + 1]
            self.kernel.call("buddy_initialize", self.zone(zone), text, first, end)

    def zone(self, number: int) -> int:
        """A zone's address."""
        return self.guest.address("zones") + number * ZONE.size

    def page(self, frame: int) -> int:
        """The address of a frame's entry."""
        return ARRAY + frame * PAGE_ENTRY.size

    def owner(self, frame: int) -> int:
        """Who asked for a block last, or freed it."""
        return self.kernel.word(self.page(frame) + OWNER_OFFSET)

    def give_range(self, zone: int, first: int, count: int) -> None:
        """Hands frames over to a zone."""
        self.kernel.call("buddy_give_range", self.zone(zone), first, count)

    def take(self, zone: int, order: int) -> int:
        """A block's frame, or NO_FRAME. Fails where it is no page of the array."""
        page = self.kernel.call("buddy_take", self.zone(zone), order)
        frame, rest = divmod(page - ARRAY, PAGE_ENTRY.size)
        if page and (rest or not 0 <= frame < FRAMES):
            fail(f"buddy_take returns {page:#x}, which is no page")
        return frame if page else NO_FRAME

    def give(self, zone: int, frame: int) -> None:
        """Gives a block back."""
        self.kernel.call("buddy_give", self.zone(zone), self.page(frame))

    def set_reserves(self, *reserves: int) -> None:
        """The reserves of DMA and of Normal, in pages."""
        for zone, pages in enumerate(reserves):
            self.kernel.set_word(self.zone(zone) + RESERVE_OFFSET, pages)

    def ask_for_page(self, order: int, dma: int, enabled: int) -> int:
        """page_alloc's or page_alloc_dma's answer: an address, or 0. Fails where the interrupt flag
        is not as it was."""
        name = "page_alloc_dma" if dma else "page_alloc"
        address = self.kernel.call(name, order, enabled=enabled)
        if self.kernel.enabled != enabled:
            left = f"it leaves it as {1 - enabled}; it returned {address:#x}"
            fail(f"{name}, called with IF {enabled}: {left}")
        return address

    def free_page(self, address: int, order: int, enabled: int = 0, by: str = TEST) -> None:
        """Calls page_free. Fails where the interrupt flag is not as it was."""
        self.kernel.call("page_free", address, order, enabled=enabled, by=by)
        if self.kernel.enabled != enabled:
            fail(f"page_free, called with IF {enabled}, leaves it as {1 - enabled}")

    def free_blocks(self, zone: int) -> list[list[int]]:
        """The frames in each list of a zone, and nothing else: read as fast as may be. Fails where
        a list leads out of the array, or has no end."""
        heads = self.zone(zone) + ZONE.size - 8 * ORDERS
        lists = [[*self.links(heads + 8 * order, FRAMES)] for order in range(ORDERS)]
        return [[self._frame(link) for link in each] for each in lists]

    def _frame(self, link: int) -> int:
        frame, rest = divmod(link - ARRAY, PAGE_ENTRY.size)
        if rest or not 0 <= frame < FRAMES:
            fail(f"a list of free blocks leads to {link:#x}, which is no page")
        return frame

    def state_and_order(self, frame: int) -> tuple[int, int]:
        """What a frame's entry says."""
        _, _, state, order, _ = PAGE_ENTRY.unpack(self.guest.data(self.page(frame), 16))
        return state, order

    def free(self, zone: int) -> int:
        """How many pages of a zone are free, as it says."""
        return self.kernel.word(self.zone(zone) + FREE_OFFSET)


def require_blocks(
    run: Zones, zone: int, expected: Sequence[tuple[int, int]], when: str
) -> Picture:
    """The zone's free blocks are these (frame, order), and no invariant is broken."""
    seen = require_sound(run.guest, when)
    blocks = seen.zones[zone].blocks()
    if blocks != sorted(expected):
        what = f"free blocks of {ZONE_NAMES[zone]} {when}"
        fail(f"{what}: expected {in_words(sorted(expected))}, seen {in_words(blocks)}")
    return seen


def in_words(blocks: Sequence[tuple[int, int]]) -> str:
    """Blocks as a person reads them."""
    texts = [f"{frame} (order {order})" for frame, order in blocks[:12]]
    more = [f"and {len(blocks) - 12} more"] if len(blocks) > 12 else []
    return ", ".join([*texts, *more]) or "none"


def largest_blocks(free: Sequence[int]) -> list[tuple[int, int]]:
    """The free blocks that follow from which frames are free: the largest that are aligned."""
    left, found = set(free), []
    for order in reversed(range(ORDERS)):
        size = 1 << order
        for frame in sorted(frame for frame in left if frame % size == 0):
            if all(each in left for each in range(frame, frame + size)):
                found.append((frame, order))
                left -= set(range(frame, frame + size))
    return sorted(found)
