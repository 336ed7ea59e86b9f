"""A check that walks trees, as a file system with copy on write needs it (X22).

Such a file system has no tables. Inodes and names, extents, and checksums of data are leaves
of three trees; leaves and the nodes above are of 16 KiB, in metadata chunks among the data. A node
that changes goes to another place, so with age neighbours in a tree are not neighbours on the disk.

    by key      down from the root, a leaf after the other: what a simple checker does
    by place    all children of a level are collected, and read in the order of their places
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from labs.storage.disk_model import Request, drive, replay

NODE = 32  # sectors
CHUNK_NODES = 16_384  # places for nodes in a metadata chunk: 256 MiB
CHUNK_GROUPS = 745  # of 128 MiB that have their leaves in it: then half of the places are in use
CHUNK_AT = 8_388_608  # sectors: where the chunk is that is replayed
LEAVES = {"files": 3, "extents": 1, "checksums": 7}  # of 128 MiB with 100 files of 1 MiB
CHILDREN = 200  # of a node that is no leaf
RECORD_BYTES = 48  # in memory for each extent, to compare the two sides of a reference
WAYS = {"tree, new, by key": (False, False), "tree, aged, by key": (True, False),
        "tree, aged, by place": (True, True)}  # fmt: skip
"""Whether its nodes have moved, and whether a check sorts its reads."""


def places(groups: int, is_aged: bool) -> Iterator[tuple[str, list[int]]]:
    """Of each tree: its nodes' places in the order of their keys, a parent before its children."""
    free = list(range(CHUNK_NODES * groups // CHUNK_GROUPS))
    if is_aged:
        random.Random(22).shuffle(free)
    at = iter(free)
    for tree, leaves in LEAVES.items():
        count = leaves * groups
        yield tree, [next(at) for _ in range(count + -(-count // CHILDREN))]


def sorted_by_level(nodes: list[int]) -> list[int]:
    """The parents are read first, and then the leaves of all, both in the order of places."""
    parents = nodes[:: CHILDREN + 1]
    leaves = [node for number, node in enumerate(nodes) if number % (CHILDREN + 1)]
    return sorted(parents) + sorted(leaves)


def requests(nodes: Iterable[int]) -> list[Request]:
    """A read of each node."""
    return [Request("read", CHUNK_AT + node * NODE, NODE) for node in nodes]


def seconds(way: str, groups: int, name: str) -> dict[str, float]:
    """Of each tree, for a chunk with the leaves of so many groups, on a drive."""
    is_aged, is_sorted = WAYS[way]
    found, disk = {}, drive(name)
    for tree, nodes in places(groups, is_aged):
        order = sorted_by_level(nodes) if is_sorted else nodes
        found[tree] = replay(requests(order), disk).total_ms / 1000
    return found
