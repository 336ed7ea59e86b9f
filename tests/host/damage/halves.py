"""Kinds of damage of fields that most images leave at 0: upper halves, inodes of quotas, values in
inodes, fast commits; and journals that are full of revoke blocks."""

from __future__ import annotations

import struct

from tests.host.damage.kinds import DIRECTORIES, FILES, SUPER, Image
from tests.host.damage.outside import EXTENT, journal_writer

MAGIC = 0xC03B3998


def begin_log(image: Image, features: int, *, fast: int = 0) -> tuple[list[int], int]:
    """A journal without checksums that has something to replay, from its block 1 on: its blocks,
    and the sequence of its first transaction."""
    journal = image.map_of(8)
    at = journal[0] * image.size
    old = struct.unpack_from(">I", image.data, at + 0x28)[0]
    struct.pack_into(">I", image.data, at + 0x28, old & ~0x18 | features)
    image.put(at + 0x50, "B", 0)
    sequence = image.rng.choice((1, 9, 0x7FFFFFFF, 0xFFFFFFFE))
    struct.pack_into(">II", image.data, at + 24, sequence, 1)
    struct.pack_into(">I", image.data, at + 0x54, fast)
    image.put(SUPER + 96, "I", image.get(SUPER + 96, "I") | 4)
    return journal, sequence


def high_halves(image: Image) -> list[str]:
    """Upper halves of numbers in descriptors, inodes and the superblock, which may be 0 only."""
    rng = image.rng
    where = rng.randrange(3)
    if where == 0 and image.descriptor >= 64:
        at = image.group(rng.randrange(image.groups)) + rng.choice(range(0x20, 0x40, 2))
    elif where == 1:
        at = image.inode(image.numbers[rng.choice([*FILES, *DIRECTORIES])])
        at += rng.choice((0x6C, 0x6E, 0x74, 0x76, 0x78, 0x7A, 0x7E))
    else:
        at = SUPER + rng.choice((0x150, 0x152, 0x154, 0x158, 0x15A))
    image.put(at, "H", rng.choice((1, 0x7FFF, 0x8000, 0xFFFF)))
    return []


def extent_halves(image: Image) -> list[str]:
    """Blocks of extents, and of their nodes, beyond 32 bits."""
    rng = image.rng
    at = image.inode(image.numbers[rng.choice([*FILES, *DIRECTORIES])]) + 0x28
    if image.get(at, "H") != EXTENT:
        return high_halves(image)
    entry = at + 12 * rng.randrange(1, 1 + max(1, image.get(at + 2, "H")))
    is_leaf = image.get(at + 6, "H") == 0
    image.put(entry + (6 if is_leaf else 8), "H", rng.choice((1, 0x100, 0x8000, 0xFFFF)))
    if is_leaf and rng.randrange(3) == 0:
        image.put(entry + 8, "I", rng.choice((0, 0xFFFFFFFF, image.blocks - 1)))
    return []


def quota_inodes(image: Image) -> list[str]:
    """The files of quotas are files, directories, the journal; with the feature, or without."""
    rng = image.rng
    for at in rng.sample((0x240, 0x244, 0x26C), rng.choice((1, 2, 3))):
        image.put(SUPER + at, "I", image.any_inode())
    image.put(SUPER + 100, "I", image.get(SUPER + 100, "I") | rng.choice((0, 0, 0x100, 0x2000)))
    return []


def mmp_blocks(image: Image) -> list[str]:
    """Protection from two mounts: its block is another's, or says anything."""
    rng = image.rng
    image.put(SUPER + 96, "I", image.get(SUPER + 96, "I") | 0x100)
    block = image.any_block()
    image.put(SUPER + 0x168, "Q", block)
    image.put(SUPER + 0x166, "H", rng.choice((0, 5, 300, 0xFFFF)))
    if block < image.blocks and rng.randrange(2):
        image.put(block * image.size, "I", 0x004D4D50)
        image.put(block * image.size + 4, "I", rng.choice((0, 1, 0xE24D4D50, 0xFF4D4D50)))
    return []


def fast_commits(image: Image) -> list[str]:
    """The part for fast commits has records of any kind and length, with and without a head."""
    rng = image.rng
    count = rng.choice((8, 30, 0, len(image.map_of(8)) - 5, 0xFFFFFFFF))
    journal, sequence = begin_log(image, 0x20, fast=count)
    place = len(journal) - (count if 0 < count < len(journal) else 256)
    if place < 1:
        return []
    records = struct.pack("<HHII", 9, rng.choice((8, 8, 8, 0xFFFF)), 0, sequence)
    for _ in range(rng.randrange(1, 9)):
        tag, length = rng.randrange(11), rng.choice((0, 4, 8, 16, 300, 0xFFFF))
        words = [image.any_inode(), image.any_block(), image.any_number(), image.any_block()]
        records += struct.pack("<HH4I", tag, length, *(word & 0xFFFFFFFF for word in words))
    at = journal[place] * image.size
    image.data[at : at + len(records)] = records
    return []


def fill_with_revokes(image: Image, last: int, kind: int) -> None:
    """Revoke blocks up to this block of the log: of the same numbers, of all, of any."""
    rng = image.rng
    journal, sequence = begin_log(image, 0)
    wide = struct.unpack_from(">I", image.data, journal[0] * image.size + 0x28)[0] & 2
    width = 8 if wide else 4
    each = (image.size - 16) // width
    write = journal_writer(image, journal, 1)
    for index in range(1, min(last, len(journal) - 60)):
        first = 0 if kind == 0 else index * each if kind == 1 else rng.getrandbits(31)
        numbers = (first + step for step in range(each))
        data = struct.pack(">IIII", MAGIC, 5, sequence, 16 + each * width)
        write(data + b"".join(number.to_bytes(width, "big") for number in numbers))
        if rng.randrange(50) == 0:
            write(struct.pack(">III", MAGIC, 2, sequence))
            sequence = sequence + 1 & 0xFFFFFFFF
    write(struct.pack(">III", MAGIC, 2, sequence))


def many_revokes(image: Image) -> list[str]:
    """A log of revoke blocks, each full of numbers; so many as e2fsck reads in a second."""
    fill_with_revokes(image, image.rng.choice((2, 40, 90)), image.rng.randrange(3))
    return []


def values_in_inodes(image: Image) -> list[str]:
    """Attributes that say that an inode has their value: a file, a directory, none."""
    rng = image.rng
    path = rng.choice(("/A/bar", "/B", "/holes"))
    first = image.get(image.inode(image.numbers[path]) + 0x68, "I") * image.size + 32
    image.put(first + 4, "I", image.any_inode())
    image.put(first + 8, "I", rng.choice((0, 1, 5000, 0x7FFFFFFF, 0xFFFFFFFF)))
    if rng.randrange(4) == 0:
        image.put(SUPER + 96, "I", image.get(SUPER + 96, "I") | 0x400)
    return []


def times(image: Image) -> list[str]:
    """Nanoseconds that are more than a second, and years of any epoch, of inodes and of the file
    system."""
    rng = image.rng
    for _ in range(rng.choice((1, 3))):
        at = image.inode(image.numbers[rng.choice([*FILES, *DIRECTORIES])])
        fields = (8, 12, 16) if image.inode_size == 128 else (8, 12, 16, 0x84, 0x88, 0x8C, 0x90)
        image.put(at + rng.choice(fields), "I", rng.choice((0xFFFFFFFF, 0x80000000, 0xEE6B2803)))
    for where in (0x2C, 0x30, 0x40, 0x108):
        image.put(SUPER + where, "I", rng.choice((0, 0x7FFFFFFF, 0xFFFFFFFF)))
    image.put(SUPER + 0x274, "Q", rng.getrandbits(64))  # the upper bytes of times
    return []


def sparse_directories(image: Image) -> list[str]:
    """Directories with holes, blocks far away, and sizes of half a block."""
    rng = image.rng
    inode = image.inode(image.numbers[rng.choice(DIRECTORIES)])
    at = inode + 0x28
    if image.get(at, "H") == EXTENT and image.get(at + 6, "H") == 0:
        image.put(at + 12, "I", rng.choice((1, 7, 4000, 0xFFFFFFFE)))
    elif image.get(at, "H") != EXTENT:
        image.put(at + 4 * rng.choice((0, 0, 1, 2)), "I", 0)
        image.put(at + 4 * rng.choice((11, 12, 13, 14)), "I", image.any_block())
    size = rng.choice((image.size * 5000, image.size * 3 + image.size // 2, image.size, 1 << 31))
    image.put(inode + 4, "I", size)
    return []


def words_of_super(image: Image) -> list[str]:
    """What the superblock says of options, systems, revisions, errors and other journals."""
    rng = image.rng
    fields = (
        (0x3C, "H", (0, 4, 0xFFFF)), (0x48, "I", (1, 4, 0xFFFFFFFF)), (0x4C, "I", (0, 2, 99)),
        (0x5A, "H", (1, 0xFFFF)), (0x34, "H", (0xFFFF,)), (0x36, "H", (0, 0x8000)),
        (0x64, "I", (image.get(SUPER + 100, "I") | 0x200,)), (0xE4, "I", (1, 0xFFFFFFFF)),
        (0x100, "I", (0xFFFFFFFF,)), (0x175, "B", (0, 2, 255)), (0x194, "I", (0xFFFFFFFF,)),
        (0x1CC, "Q", (image.any_number(),)), (0x248, "I", (0, 1, image.blocks, 0xFFFFFFFF)),
        (0xE0, "I", (0, 2, 7, 12, 513)), (0x38, "H", (0, 0xEF52)), (0x50, "I", (0xFFFFFFFF,)),
    )  # fmt: skip
    for where, layout, choices in rng.sample(fields, rng.choice((1, 2, 4))):
        image.put(SUPER + where, layout, rng.choice(choices))
    words = rng.choice((b"data=journal,errors=panic", b"%s%n" * 15, b"\xff" * 64))
    image.data[SUPER + 0x200 : SUPER + 0x200 + len(words)] = words
    return []


HALVES = {
    kind.__name__: kind
    for kind in (
        high_halves,
        extent_halves,
        quota_inodes,
        mmp_blocks,
        fast_commits,
        many_revokes,
        values_in_inodes,
        times,
        sparse_directories,
        words_of_super,
    )
}
