"""Exercises 5.2 and 5.3: zones of the test's own (tests/lesson5/memory/zones.c), and models."""

from __future__ import annotations

from collections.abc import Sequence

from tests.lesson4.support import fail
from tests.lesson5.support import (
    ORDERS,
    ZONE_NAMES,
    Picture,
    Run,
    require_sound,
)

SOURCE = "tests/lesson5/memory/zones.c"
DMA, NORMAL = range(2)
FRAMES = 6144
NO_FRAME = 0xFFFFFFFF


def begin(run: Run) -> None:
    """Two zones without a free block, in a page array that says PAGE_RESERVED."""
    run.call("two_zones")


def fresh_range(run: Run, zone: int, first: int, count: int) -> None:
    """Hands frames over to a zone."""
    run.guest.call(
        run.address("give_range"), zone, first, count, name=f"buddy_give_range({first}, {count})"
    )


def require_blocks(run: Run, zone: int, expected: Sequence[tuple[int, int]], when: str) -> Picture:
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
