"""Files of 2 TB whose blocks are found by a tree of any shape, for X6 and X7.

Each lowest block of the tree is in front of the data that it maps, as with ext3. The cache forgets
nothing. All reads go through it; each n-th is replayed on the model of the 5400 rpm disk.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from labs.storage.disk_model import Request, drive, replay
from labs.storage.experiments import margins

READS = 100_000
FILE_BYTES = 2 << 40  # of the formulas; the drive is a little smaller, and the model is given less


@dataclass(frozen=True)
class Tree:
    """A tree over blocks of `block` bytes; a lowest block maps `span` of them, one above it
    `fanout` lowest ones."""

    block: int
    span: float
    fanout: int

    @property
    def lowest(self) -> float:
        """Blocks of the lowest level."""
        return FILE_BYTES / self.block / self.span


def cost(tree: Tree, reads: int = READS, sample: int = 10) -> dict[str, float]:
    """Mapping blocks that a random read has to fetch (`mapping`), and milliseconds (`ms`) with half
    of their interval of 95 percent (`margin`), on average over the first `reads` reads."""
    generator, disk, known = random.Random(7), drive("hdd5400"), set[tuple[int, int]]()
    sectors, requests, missed = tree.block // 512, [], 0
    places = disk.sectors // sectors
    for number in range(reads):
        block = generator.randrange(places)
        low = int(block / tree.span)
        chain = [(1, low // tree.fanout), (0, low)]
        new = [each for each in chain if each not in known]
        known.update(new)
        missed += len(new)
        if number % sample == 0:
            at = {
                (0, low): int(low * tree.span),
                chain[0]: int(chain[0][1] * tree.fanout * tree.span),
            }
            requests += [Request("read", at[each] * sectors, sectors) for each in new]
            requests.append(Request("read", block * sectors, sectors))
    done, replayed = replay(requests, disk), reads / sample
    return {"mapping": missed / reads, "ms": done.total_ms / replayed,
            "margin": margins.of_total_ms(done) / replayed}  # fmt: skip


def expected(reads: float, blocks: float) -> float:
    """Pointer blocks to read for each of this many reads, if none is ever forgotten: of N blocks n
    random touches find N(1 - e^(-n/N)) new."""
    return blocks / reads * (1 - exp(-reads / blocks))


def mapped(requests: Sequence[Request], reads: int, blocks: float) -> dict[str, float]:
    """Mapping blocks for each of this many reads of a sector in the guest, and by the formula. What
    is longer than a sector is a block of the mapping, or on the way to the file."""
    longer = sum(each.sectors > 1 for each in requests)
    return {"mapping": longer / reads, "margin": margins.of_mapping(requests),
            "formula": expected(reads, blocks)}  # fmt: skip
