"""The lab's reads as a list of requests, worked out on paper: no image, no guest, no kernel.

A prediction to compare with the measurement. The reads go through a page cache that never forgets,
so each costs the 4 KiB page it is in, and the mapping blocks above it that were not read before.
The random numbers are those of kernel/lib/random.h. Block numbers count blocks of 4 KiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from labs.storage.disk_model import FULL_SECTORS, SECTOR_BYTES, Request

BLOCK_BYTES = 4096
BLOCK_SECTORS = BLOCK_BYTES // SECTOR_BYTES
POINTERS = 1024
"""Pointers in a block."""
EXTENT_BLOCKS = 32_768
"""Blocks that one extent maps at most."""
LEAF_BLOCKS = 340 * EXTENT_BLOCKS
"""Blocks that a full block of extents maps."""
METADATA_PART = 31.4e9 / 2_000_398_934_016
"""The part of a drive that mkfs takes, nearly all of it for inode tables."""

MASK = (1 << 64) - 1


def random_offsets(seed: int, size_bytes: int, count: int) -> Iterator[int]:
    """Byte offsets of `count` reads, each of a sector in `size_bytes`, from SplitMix64."""
    sectors, state = size_bytes // SECTOR_BYTES, seed & MASK
    mask = (1 << (sectors - 1).bit_length()) - 1
    while count:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        if (sector := (z ^ (z >> 31)) & mask) < sectors:
            yield sector * SECTOR_BYTES
            count -= 1


class Layout(Protocol):
    """Where a drive's or file's blocks are, and the blocks that say so."""

    blocks: int

    def place(self, block: int) -> int:
        """The block of the drive that holds this block of the file."""

    def chain(self, block: int) -> list[int]:
        """The mapping blocks to read for it, from the top of the tree to its bottom."""


class RawLayout:
    """The drive itself."""

    def __init__(self, drive_sectors: int = FULL_SECTORS) -> None:
        self.blocks = drive_sectors // BLOCK_SECTORS

    def place(self, block: int) -> int:
        """Itself."""
        return block

    def chain(self, block: int) -> list[int]:
        """Nothing maps it."""
        return []


class PointerLayout:
    """A file that fills an ext3 drive: [pointer block][1024 data blocks], over and over."""

    def __init__(self, drive_sectors: int = FULL_SECTORS) -> None:
        drive_blocks = drive_sectors // BLOCK_SECTORS
        self._groups = int(drive_blocks * (1 - METADATA_PART)) // (POINTERS + 1)
        self._step = (drive_blocks - POINTERS) / self._groups
        self.blocks = self._groups * POINTERS

    def _bottom(self, group: int) -> int:
        """The pointer block of a group. What mkfs took is spread evenly between the groups."""
        return POINTERS + int(group * self._step)

    def place(self, block: int) -> int:
        """Right after its pointer block."""
        group, position = divmod(block, POINTERS)
        return self._bottom(group) + 1 + position

    def chain(self, block: int) -> list[int]:
        """Triple, double and single indirect block; each is before the first one below it."""
        group = block // POINTERS
        double = self._bottom(group // POINTERS * POINTERS) - 1
        return [self._bottom(0) - 2, double, self._bottom(group)]


class ExtentLayout:
    """A file that fills an ext4 drive, in extents as long as they can be."""

    def __init__(self, drive_sectors: int = FULL_SECTORS) -> None:
        drive_blocks = drive_sectors // BLOCK_SECTORS
        self.blocks = int(drive_blocks * (1 - METADATA_PART))
        self._stretch = drive_blocks / self.blocks

    def place(self, block: int) -> int:
        """In its extent; what mkfs took is spread evenly between the extents."""
        extent, position = divmod(block, EXTENT_BLOCKS)
        return int(extent * EXTENT_BLOCKS * self._stretch) + position

    def chain(self, block: int) -> list[int]:
        """The index block, if four leaves are not enough, and the leaf, by its first data."""
        leaf = self.place(block // LEAF_BLOCKS * LEAF_BLOCKS)
        return [1, leaf] if self.blocks > 4 * LEAF_BLOCKS else [leaf]


@dataclass
class Run:
    """A run's requests, and for each whether it read a block that maps (and not data)."""

    requests: list[Request] = field(default_factory=list)
    mapping: list[bool] = field(default_factory=list)
    bottom_misses: int = 0
    """Reads that had to fetch the mapping block right above their data."""

    def read(self, block: int, mapping: bool) -> None:
        """Appends a read of a whole block."""
        self.requests.append(Request("read", block * BLOCK_SECTORS, BLOCK_SECTORS))
        self.mapping.append(mapping)


def simulate(layout: Layout, reads: int, seed: int, keep_bottom: bool = True) -> Run:
    """The requests of `reads` random reads. Without `keep_bottom`, the lowest mapping blocks are
    forgotten at once, as on a machine whose memory is far too small for them."""
    run, cached = Run(), set()
    for offset in random_offsets(seed, layout.blocks * BLOCK_BYTES, reads):
        block = offset // BLOCK_BYTES
        chain = layout.chain(block)
        for needed in chain:
            if needed not in cached:
                run.read(needed, mapping=True)
                run.bottom_misses += needed == chain[-1]
        cached.update(chain if keep_bottom else chain[:-1])
        run.read(layout.place(block), mapping=False)
    return run
