"""Kinds of damage of maps, trees, names and attributes; and all that are newer."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.host.damage.features import (
    ALL,
    block_counts,
    cross_groups,
    ends_of_bitmaps,
    journal_sums,
    journal_twice,
    new_groups,
    orphans_in_file,
    put_extents,
    room_for_descriptors,
    super_others,
    unused_ends,
)
from tests.host.damage.kinds import DIRECTORIES, FILES, SUPER, Image, leaf
from tests.host.damage.outside import EXTENT


def wide_trees(image: Image) -> list[str]:
    """A block of pointers, or of extents, that leads to itself in every entry: a tree without end,
    and a size to go with it."""
    rng = image.rng
    path = rng.choice(("/holes", "/solid", "/A/foo", "/A", "/many"))
    number = image.numbers[path]
    blocks, at = image.map_of(number), image.inode(number) + 0x28
    block = rng.choice(blocks)
    start = block * image.size
    high = rng.choice((0, 0, 1, 3))
    if image.extents:
        depth = rng.choice((1, 2, 5))
        root = struct.pack("<HHHHIIIHH", EXTENT, 1, 4, depth, 0, 0, block, 0, 0)
        image.data[at : at + len(root)] = root
        room = (image.size - 12) // 12
        step = rng.choice((0, 1, 7))
        node = struct.pack("<HHHHI", EXTENT, room, room, rng.choice((depth - 1, depth)), 0)
        for entry in range(room):
            node += struct.pack("<IIHH", entry * step, block, 0, 0)
        image.data[start : start + len(node)] = node
    else:
        for slot in range(image.size // 4):
            image.put(start + 4 * slot, "I", block)
        for slot in rng.choice(((13,), (12, 13), range(14))):  # e2fsck has no end with 14
            image.put(at + 4 * slot, "I", block)
        image.put(image.inode(number) + 0x6C, "I", high if path not in DIRECTORIES else 0)
    image.put(image.inode(number) + 4, "I", rng.choice((1 << 20, 0x7FFFFC00, 0xFFFFFC00)))
    return []


def sparse_links(image: Image) -> list[str]:
    """A long symbolic link with a hole, with two blocks, unwritten, or longer than a path."""
    rng = image.rng
    number = image.numbers["/long"]
    at = image.inode(number)
    blocks = image.map_of(number) or [1]
    if image.extents:
        runs = rng.choice(
            (
                [(0, 32769, blocks[0])],
                [(1, 1, blocks[0])],
                [(0, 1, blocks[0]), (1, 1, blocks[0])],
                [(0, 2, blocks[0])],
                [],
            )
        )
        put_extents(image, number, runs)
    else:
        image.put(at + 0x28 + 4 * rng.choice((0, 1, 12)), "I", rng.choice((0, *blocks, 2)))
    image.put(at + 4, "I", rng.choice((60, 131, 1023, 1024, 4095, 4096, 5000, 1 << 20)))
    return []


def directory_maps(image: Image) -> list[str]:
    """Directories with unwritten blocks, blocks after their end, a block twice, of a file."""
    rng = image.rng
    number = rng.choice([image.numbers[path] for path in DIRECTORIES])
    at, blocks = image.inode(number), image.map_of(number)
    other = image.map_of(image.numbers[rng.choice(("/solid", "/A/bar", "/many"))])
    if image.extents and image.get(at + 0x2E, "H") == 0:
        first = blocks[0]
        runs = rng.choice(
            (
                [(0, 32769, first)],
                [(0, 1, first), (1, 1, first)],
                [(0, 1, first), (1, 32770, other[0])],
                [(0, 1, first), (5, 1, other[0])],
                [(1, 1, first)],
                [(0, 1, first), (0xFFFFFFFE, 1, other[0])],
                [(0, 1, other[0])],
            )
        )
        put_extents(image, number, runs)
    elif not image.extents:
        slot = rng.choice((0, 1, 2, 11, 12, 13))
        image.put(at + 0x28 + 4 * slot, "I", rng.choice([0, *blocks, *other[:3]]))
    if rng.randrange(2):
        sizes = (0, 1, image.size // 2, image.size, image.size * 2, image.size * 70, 1 << 28)
        image.put(at + 4, "I", rng.choice(sizes))
    return []


def tails(image: Image) -> list[str]:
    """The ends of blocks of names: no place for the checksum, an entry over it, two of them."""
    rng = image.rng
    number = rng.choice([image.numbers[path] for path in DIRECTORIES] + [2])
    at = rng.choice(image.map_of(number)) * image.size
    end = at + image.size - 12
    kind = rng.randrange(6)
    if kind == 0:
        image.put(end + 4, "H", rng.choice((0, 8, 11, 13, 16, 0xFFFF)))
    elif kind == 1:
        image.put(end + 7, "B", rng.choice((0, 1, 2, 0xDF)))
    elif kind == 2:
        image.put(end, "I", image.numbers["/A/foo"])
    elif kind == 3:
        image.put(end + 6, "B", rng.choice((1, 3, 4, 255)))
    else:
        here = at
        while image.get(here + 4, "H") and here + image.get(here + 4, "H") < end:
            here += image.get(here + 4, "H")
        image.put(here + 4, "H", image.get(here + 4, "H") + rng.choice((12, -12, 4, 8)))
    return []


def hash_trees(image: Image) -> list[str]:
    """A tree with more levels than it has, whose nodes lead to each other, to leaves of others, and
    names that are in another leaf than their hash."""
    rng = image.rng
    blocks = image.map_of(image.numbers["/many"])
    at = blocks[0] * image.size
    entries = image.get(at + 34, "H")
    kind = rng.randrange(7)
    if kind == 0 and len(blocks) > 3:  # two leaves change places
        one, other = (block * image.size for block in rng.sample(blocks[1:], 2))
        size = image.size
        image.data[one : one + size], image.data[other : other + size] = (
            image.data[other : other + size],
            image.data[one : one + size],
        )
    elif kind == 1:
        image.put(at + 30, "B", rng.choice((1, 2, 3)))
        for block in rng.sample(blocks[1:], min(3, len(blocks) - 1)):
            room = image.size // 8 - 1
            node = struct.pack("<IHBBHHI", 0, image.size, 0, 0, room, room, rng.randrange(9))
            node += b"".join(
                struct.pack("<II", 2 * each, rng.randrange(9)) for each in range(1, room)
            )
            image.data[block * image.size : block * image.size + len(node)] = node
    elif kind == 2:
        image.put(SUPER + 0x160, "I", rng.choice((0, 1, 2, 3)))
        image.put(at + 28, "B", rng.choice((0, 1, 2, 3, 4, 5)))
    elif kind == 3:
        image.put(at + 32, "H", rng.choice((entries, entries + 1, 200, 0x7FFF)))
        image.put(at + 34, "H", rng.choice((1, entries, 2 * entries)))
    elif kind == 4:
        for slot in range(1, min(entries, 100)):
            image.put(at + 32 + 8 * slot + 4, "I", 1)
    elif kind == 5:
        order = sorted((rng.getrandbits(31) << 1 for _ in range(entries)), reverse=True)
        for slot in range(1, min(entries, 100)):
            image.put(at + 32 + 8 * slot, "I", order[slot])
    else:
        image.put(image.inode(image.numbers["/many"]) + 4, "I", rng.choice((1, 2, 3)) * image.size)
    return []


def hash_flags(image: Image) -> list[str]:
    """Small directories that call themselves hashed, files that do, large ones that do not."""
    rng = image.rng
    for path in rng.sample([*DIRECTORIES, "/A/foo", "/long"], 2):
        at = image.inode(image.numbers[path]) + 32
        image.put(at, "I", image.get(at, "I") ^ 0x1000)
    if rng.randrange(2):
        block = image.map_of(image.numbers["/A"])[0] * image.size
        root = struct.pack("<IBBBB", 0, rng.choice((0, 1, 4)), 8, rng.choice((0, 1, 2)), 0)
        image.data[block + 24 : block + 24 + len(root)] = root
        image.put(block + 16, "H", image.size - 12)
    return []


def leaf_nodes(image: Image) -> list[str]:
    """Empty nodes, nodes that end elsewhere, and files whose extents are unwritten past their end
    or have the last numbers that there are."""
    rng = image.rng
    at, entries = leaf(image)
    number = image.numbers[rng.choice(("/A/foo", "/solid", "/A/bar"))]
    if entries == 0 or not image.extents:
        return wide_trees(image)
    kind = rng.randrange(6)
    blocks = image.map_of(number)
    if kind == 0:
        image.put(at + 2, "H", 0)
    elif kind == 1:
        image.put(at + 4, "H", rng.choice((entries, 4, 83, 84, 340)))
    elif kind == 2:
        put_extents(image, number, [(0, 1, blocks[0]), (900, 32770, blocks[1])])
        image.put(image.inode(number) + 4, "I", rng.choice((0, 5, image.size)))
    elif kind == 3:
        put_extents(image, number, [(0, 1, blocks[0]), (0xFFFFFFFD, 2, blocks[1])])
    elif kind == 4:
        put_extents(image, number, [(9, 1, blocks[0]), (5, 2, blocks[1]), (0, 3, blocks[1])])
    else:
        put_extents(image, number, [(0, 32768, blocks[0]), (32768, 32767, blocks[0])])
    return []


def shared_values(image: Image) -> list[str]:
    """A block of attributes that is a block of a file, of names, of extents; that three have."""
    rng = image.rng
    owners = [image.numbers[path] for path in ("/A/bar", "/B", "/holes")]
    block = image.get(image.inode(rng.choice(owners)) + 0x68, "I")
    targets = [*image.map_of(image.numbers["/solid"])[-2:], *image.map_of(image.numbers["/A"])]
    targets += [block, block, block, *image.map_of(image.numbers["/holes"])[-1:]]
    for path in rng.sample([*FILES, *DIRECTORIES], rng.choice((1, 2, 3))):
        image.put(image.inode(image.numbers[path]) + 0x68, "I", rng.choice(targets))
    if block and rng.randrange(2):
        image.put(block * image.size + 4, "I", rng.choice((0, 1, 2, 3, 1024, ALL)))
    return []


def links_and_counts(image: Image) -> list[str]:
    """Links that wrap, directories of 1 or 65,000, blocks counted in another unit."""
    rng = image.rng
    for path in rng.sample([*FILES, *DIRECTORIES], 2):
        at = image.inode(image.numbers[path])
        image.put(at + 26, "H", rng.choice((0, 1, 2, 64999, 65000, 65001, 65534, 65535)))
        if rng.randrange(2):
            image.put(at + 32, "I", image.get(at + 32, "I") ^ 0x40000)
            image.put(at + 0x74, "H", rng.choice((0, 0xFFFF)))
    return []


def roots(image: Image) -> list[str]:
    """The root directory, and lost+found: no directory, no blocks, flags of others, another's."""
    rng = image.rng
    at = image.inode(rng.choice((2, 2, 11)))
    kind = rng.randrange(6)
    if kind == 0:
        image.put(at, "H", rng.choice((0, 0o100644, 0o40000, 0o120777)))
    elif kind == 1:
        image.put(at + 4, "I", rng.choice((0, 1, image.size * 2, image.size * 40)))
    elif kind == 2:
        image.put(at + 32, "I", image.get(at + 32, "I") ^ rng.choice((0x800, 0x1000, 1 << 28)))
    elif kind == 3:
        other = image.inode(image.numbers[rng.choice(("/A", "/many", "/solid"))])
        image.data[at + 0x28 : at + 0x64] = image.data[other + 0x28 : other + 0x64]
    elif kind == 4:
        image.put(at + 26, "H", rng.choice((0, 1, 2, 65000)))
    else:
        image.put(at + 20, "I", rng.choice((1, 12, 1262304000)))
    return []


def large_files(image: Image) -> list[str]:
    """Sizes at the borders of what a map, a page and 32 bits can have."""
    rng = image.rng
    number = image.numbers[rng.choice(("/A/foo", "/solid", "/holes", "/A/bar"))]
    at = image.inode(number)
    size = rng.choice(
        (
            *(1 << 31, (1 << 31) - 1, 1 << 32, (1 << 32) + 1, (1 << 40) - 4096),
            *((12 + 256 + 256**2) * 1024 - 1, (12 + 256 + 256**2 + 256**3) * 1024 - 1),
            *(((1 << 32) - 1) * image.size, ((1 << 32) - 2) * image.size),
        )
    )
    image.put(at + 4, "I", size & ALL)
    image.put(at + 0x6C, "I", size >> 32)
    return []


def device_maps(image: Image) -> list[str]:
    """Devices, pipes and sockets that were files: with blocks, a size and the flag of extents."""
    rng = image.rng
    for path in rng.sample(FILES, 2):
        at = image.inode(image.numbers[path])
        image.put(at, "H", rng.choice((0o10644, 0o20644, 0o60644, 0o140755, 0o120777)))
    return []


def copied_inodes(image: Image) -> list[str]:
    """An inode that is another's copy: two files, or two directories, with the same blocks."""
    rng = image.rng
    one, other = rng.sample([*FILES, *DIRECTORIES], 2)
    source, at = image.inode(image.numbers[one]), image.inode(image.numbers[other])
    length = rng.choice((0x28 + 60, 128, image.inode_size))
    start = rng.choice((0, 0, 0x28))
    image.data[at + start : at + length] = image.data[source + start : source + length]
    return []


NEWER: dict[str, Callable[[Image], list[str]]] = {
    kind.__name__: kind
    for kind in (
        cross_groups,
        new_groups,
        unused_ends,
        ends_of_bitmaps,
        journal_twice,
        journal_sums,
        orphans_in_file,
        super_others,
        room_for_descriptors,
        wide_trees,
        sparse_links,
        directory_maps,
        tails,
        hash_trees,
        hash_flags,
        leaf_nodes,
        shared_values,
        links_and_counts,
        roots,
        large_files,
        device_maps,
        copied_inodes,
        block_counts,
    )
}
