"""A block group as ext4's allocator has it in memory, and changes it in four steps (X29).

    bitmap      a bit for each block, as on the disk
    buddy       the free runs of 1, 2, 4 ... blocks, made from the bitmap
    free        how many blocks are free, as in the group's descriptor

An allocation looks for a run in the buddy, sets the bits, changes the buddy, and counts. Between
two steps another processor may do something.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

BLOCKS, TOP = 2048, 11  # of a group, and the order of a free run that is all of it
STEPS = 4


def buddy_of(bits: bytearray) -> list[set[int]]:
    """The free runs by their order, as a new bitmap has them: the largest that are aligned."""
    runs: list[set[int]] = [set() for _ in range(TOP + 1)]
    at = 0
    while at < len(bits):
        order = 0
        while order < TOP and at % (2 << order) == 0 and not any(bits[at : at + (2 << order)]):
            order += 1
        if not bits[at]:
            runs[order].add(at)
        at += 1 << order
    return runs


@dataclass
class Group:
    """A group, and what has gone wrong in it. twice: blocks given to somebody who was not the only
    one."""

    bits: bytearray = field(default_factory=lambda: bytearray(BLOCKS))
    buddy: list[set[int]] = field(default_factory=list)
    free: int = BLOCKS
    twice: int = 0

    def __post_init__(self) -> None:
        self.buddy = self.buddy or buddy_of(self.bits)

    def take(self, order: int) -> Generator[None, None, int | None]:
        """Allocates 2^order blocks; yields between its steps. Returns the first, or None."""
        found = next(
            ((o, min(self.buddy[o])) for o in range(order, TOP + 1) if self.buddy[o]), None
        )
        yield
        if found is None:
            return None
        large, first = found
        self.twice += sum(self.bits[first : first + (1 << order)])
        self.bits[first : first + (1 << order)] = b"\1" * (1 << order)
        yield
        self.buddy[large].discard(first)
        for each in range(order, large):
            self.buddy[each].add(first + (1 << each))
        yield
        free = self.free
        yield
        self.free = free - (1 << order)
        return first

    def give(self, first: int, order: int) -> Generator[None, None, None]:
        """Frees what was taken, and joins what is free next to it; yields between its steps."""
        self.bits[first : first + (1 << order)] = bytes(1 << order)
        yield
        free = self.free
        size = order
        while size < TOP and (other := first ^ (1 << size)) in self.buddy[size]:
            self.buddy[size].discard(other)
            first, size = min(first, other), size + 1
        yield
        self.buddy[size].add(first)
        yield
        self.free = free + (1 << order)
        yield

    @property
    def wrong_runs(self) -> int:
        """Runs of which buddy and bitmap say different things."""
        rebuilt = buddy_of(self.bits)
        return sum(len(a ^ b) for a, b in zip(self.buddy, rebuilt, strict=True))

    @property
    def wrong_count(self) -> int:
        """How far the count of free blocks is from the bitmap."""
        return abs(self.free - self.bits.count(0))
