"""Kinds of damage of what other file systems than the usual ones have, with right checksums."""

from __future__ import annotations

import struct

from tests.host.damage.kinds import DIRECTORIES, FILES, SUPER, Image
from tests.host.damage.outside import EXTENT, count, journal_writer, own_blocks, tables
from tests.storage.journal import crc32c

ALL = 0xFFFFFFFF


def put_extents(image: Image, number: int, runs: list[tuple[int, int, int]]) -> None:
    """The map of an inode: (logical, length, physical)."""
    at = image.inode(number) + 0x28
    data = struct.pack("<HHHHI", EXTENT, len(runs), 4, 0, 0)
    for logical, length, physical in runs:
        data += struct.pack("<IHHI", logical & ALL, length, 0, physical)
    image.data[at : at + len(data)] = data


def cross_groups(image: Image) -> list[str]:
    """Two groups that are far from each other have a bitmap or a part of a table in common."""
    rng = image.rng
    one, other = rng.sample(range(image.groups), 2)
    field = rng.choice((0, 4, 8))
    target = rng.choice(tables(image, other)[: rng.choice((2, 3, 99))])
    image.put(image.group(one) + field, "I", target)
    if field == 8 or rng.randrange(2):
        return []
    for at in (12, 14, 16, 28):
        image.put(image.group(one) + at, "H", image.get(image.group(other) + at, "H"))
    return []


def new_groups(image: Image) -> list[str]:
    """A group with files says that its bitmaps and its table were never written; counts fit."""
    rng = image.rng
    group = rng.choice([*range(image.groups), 0, 1])
    at, bits = image.group(group), rng.choice((1, 2, 3, 5, 7))
    if bits & 1:
        count(image, group, 14, image.per_group - image.get(at + 14, "H"))
        image.put(at + 16, "H", 0)
        image.put(at + 28, "H", image.per_group)
    if bits & 2:
        start = image.first + group * image.get(SUPER + 32, "I")
        end = min(start + image.get(SUPER + 32, "I"), image.blocks)
        own = {block for each in range(image.groups) for block in tables(image, each)}
        free = end - start - len(own & set(range(start, end)))
        count(image, group, 12, free - rng.choice((0, 3, 35)) - image.get(at + 12, "H"))
    image.put(at + 18, "H", bits | rng.choice((0, 4)))
    if rng.randrange(3) == 0:  # not even their checksums are there
        for where in (0x18, 0x1A):
            image.put(at + where, "H", 0)
    return []


def unused_ends(image: Image) -> list[str]:
    """Tables whose end counts as never used; the bitmap may say so, too."""
    rng = image.rng
    for path in rng.sample([*FILES, *DIRECTORIES], 2):
        number = image.numbers[path]
        group, index = divmod(number - 1, image.per_group)
        at = image.group(group)
        image.put(at + 28, "H", image.per_group - rng.choice((0, index)))
        if rng.randrange(2):
            bits = image.get(at + 4, "I") * image.size + index // 8
            value = image.get(bits, "B")
            if value >> index % 8 & 1:
                image.put(bits, "B", value & ~(1 << index % 8))
                count(image, group, 14, 1)
    return []


def ends_of_bitmaps(image: Image) -> list[str]:
    """What is after the last block, or the last inode, of a group, is free."""
    rng = image.rng
    group = rng.choice((image.groups - 1, rng.randrange(image.groups)))
    field = rng.choice((0, 4))
    at = image.get(image.group(group) + field, "I") * image.size
    last = (image.blocks - image.first) % image.get(SUPER + 32, "I") or image.size * 8
    bits = image.per_group if field else last
    for byte in range(-(-bits // 8), image.size):
        image.put(at + byte, "B", 0)
    if rng.randrange(2):
        image.put(image.group(group) + 12 + field // 2, "H", rng.choice((0xFFFF, bits + 8)))
    return []


def journal_twice(image: Image) -> list[str]:
    """Parts of the journal are where other parts are, or have too large numbers."""
    rng = image.rng
    blocks = image.map_of(8)
    if not blocks or not image.extents:
        return super_others(image)
    first, half = min(blocks), len(blocks) // 2
    runs = rng.choice(
        (
            [(0, half, first), (half, half, first)],
            [(0, half, first), (half, half, first + half - 1)],
            [(0, half, first), (half, half + 32768, first + half)],
            [(0, half, first), (half - 1, half, first + half)],
            [(half, half, first + half), (0, half, first)],
            [(0, half, first), (half, half, image.blocks - half)],
        )
    )
    put_extents(image, 8, runs)
    return []


def journal_sums(image: Image) -> list[str]:
    """A transaction with right checksums (version 3) whose targets are wild."""
    rng = image.rng
    journal = image.map_of(8)
    if len(journal) < 40:
        return super_others(image)
    at = journal[0] * image.size
    old = struct.unpack_from(">I", image.data, at + 0x28)[0]
    struct.pack_into(">I", image.data, at + 0x28, old & ~0x8 | 0x12 | rng.choice((0, 0, 0, 4, 32)))
    image.put(at + 0x50, "B", 4)
    sequence, start = rng.choice((1, 77, 0xFFFFFFFF)), rng.choice((1, 3, len(journal) - 2))
    struct.pack_into(">II", image.data, at + 24, sequence, start)
    struct.pack_into(">I", image.data, at + 0x54, rng.choice((0, 0, 0, 8, len(journal) - 4)))
    struct.pack_into(">I", image.data, at + 0xFC, 0)
    head = bytes(image.data[at : at + 1024])
    struct.pack_into(">I", image.data, at + 0xFC, crc32c(ALL, head))
    seed = crc32c(ALL, head[0x30:0x40])
    image.put(SUPER + 96, "I", image.get(SUPER + 96, "I") | 4)
    write = journal_writer(image, journal, start)
    targets = [rng.choice((image.any_block(), *own_blocks(image))) for _ in range(3)]
    text = struct.pack(">III", 0xC03B3998, 1, sequence)
    copies = []
    for index, target in enumerate(targets):
        copy = bytearray(image.data[target * image.size :][: image.size].ljust(image.size, b"\0"))
        if rng.randrange(4) == 0:
            copy[rng.randrange(image.size)] ^= 1
        copies.append(bytes(copy))
        sum_ = crc32c(crc32c(seed, struct.pack(">I", sequence)), copies[-1])
        flags = (2 if index else 0) | (8 if index + 1 == len(targets) else 0)
        text += struct.pack(">IIII", target & ALL, flags, rng.choice((0, 0, 0, 9)), sum_)
        text += b"" if index else head[0x30:0x40]
    block = text.ljust(image.size, b"\0")
    write(block[:-4] + struct.pack(">I", crc32c(seed, block)))
    for copy in copies:
        write(copy)
    block = struct.pack(">III", 0xC03B3998, 2, sequence).ljust(image.size, b"\0")
    write(block[:16] + struct.pack(">I", crc32c(seed, block)) + block[20:])
    return []


def orphans_in_file(image: Image) -> list[str]:
    """The orphan file: of what is in use, of what is none, twice, in itself, with a hole."""
    rng = image.rng
    number = image.get(SUPER + 0x280, "I")
    if not image.get(SUPER + 0x5C, "I") & 0x1000:
        return super_others(image)
    blocks = image.map_of(number)
    inode = image.inode(number)
    at = blocks[0] * image.size
    chosen = [image.any_inode() for _ in range(rng.randrange(1, 5))]
    chosen += rng.choice(([], chosen[:1], [number], [image.numbers["/A"]], [2]))
    for index, one in enumerate(chosen):
        image.put(at + 4 * index, "I", one)
    kind = rng.randrange(6)
    if kind == 0:
        image.put(SUPER + 0xE8, "I", chosen[0])
    elif kind == 1:
        image.put(SUPER + 0x280, "I", image.any_inode())
    elif kind == 2:
        put_extents(image, number, [(0, 1, blocks[0]), (1, 1, blocks[0]), (2, 30, blocks[1])])
    elif kind == 3:
        image.put(inode + 4, "I", rng.choice((0, 1, image.size, 1 << 24, 1 << 31)))
    elif kind == 4:
        image.put(at + image.size - 8, "I", 0)
    seed = image.get(SUPER + 0x270, "I")
    seed = crc32c(seed, struct.pack("<I", number) + bytes(image.data[inode + 100 : inode + 104]))
    sum_ = crc32c(seed, struct.pack("<Q", blocks[0]) + bytes(image.data[at : at + image.size - 8]))
    image.put(at + image.size - 4, "I", sum_)
    image.put(SUPER + 100, "I", image.get(SUPER + 100, "I") | 0x10000)
    return []


def super_others(image: Image) -> list[str]:
    """Fields of newer features, or of none, of the superblock."""
    rng = image.rng
    per_group = image.get(SUPER + 32, "I")
    fields = (
        (0x24, "I", (0, 1, per_group - 8, per_group * 2)),  # clusters per group
        (0xCC, "B", (255,)), (0xCD, "B", (255,)),  # blocks to preallocate
        (0x100, "I", (0, 0xFFFFFFFF)), (0x108, "I", (0, 0xFFFFFFFF)),
        (0x104, "I", (0, 1, 2, 3, 31, 0xFFFF)),  # first meta_bg
        (0x15E, "H", (0, 1, 3, 127, 0xFFFF)), (0x160, "I", (0, 1, 2, 3, 0xFFFFFFFF)),
        (0x164, "H", (1, 0xFFFF)), (0x170, "I", (1, 0xFFFFFFFF)),
        (0x174, "B", (0, 1, 5, 16, 31, 32, 63, 64, 128, 255)),
        (0x176, "B", (1, 255)), (0x178, "Q", (0, (1 << 64) - 1)),
        (0x24C, "I", (0, 1, 2, 3, 0xFFFFFFFF)), (0x250, "I", (0, 1, 2, 0xFFFFFFFF)),
        (0x254, "B", (1, 2, 255)), (0x268, "I", (2, 11, 12, 9999)), (0x26C, "I", (2, 3)),
        (0x270, "I", (0, 1)), (0x274, "B", (1, 255)), (0x27C, "H", (1,)),
        (0x10C, "I", (0, 1, 0xF30A)), (0xFD, "B", (0, 1, 255)), (0xD0, "I", (0, 1)),
        (0x5C, "I", tuple(image.get(SUPER + 0x5C, "I") ^ 1 << bit for bit in range(13))),
        (0x60, "I", tuple(image.get(SUPER + 0x60, "I") ^ 1 << bit for bit in range(18))),
        (0x64, "I", tuple(image.get(SUPER + 0x64, "I") ^ 1 << bit for bit in range(17))),
    )  # fmt: skip
    for where, layout, choices in rng.sample(fields, rng.choice((1, 1, 2, 4))):
        image.put(SUPER + where, layout, rng.choice(choices))
    return []


def room_for_descriptors(image: Image) -> list[str]:
    """Inode 7, which has the blocks for more descriptors: a map of others' blocks, or a circle."""
    rng = image.rng
    at = image.inode(7) + 0x28
    block = image.get(at + 52, "I")
    kind = rng.randrange(4)
    if kind == 0 and block:
        slot = rng.choice((0, 1, 60, image.size // 4 - 1))
        image.put(block * image.size + 4 * slot, "I", rng.choice((block, image.any_block())))
    elif kind == 1:
        image.put(at + 4 * rng.choice((0, 12, 13, 14)), "I", image.any_block())
    elif kind == 2:
        image.put(SUPER + 0xCE, "H", rng.choice((0, 1, 5, 100, image.size // 4)))
    else:
        image.put(image.inode(7) + rng.choice((0, 4, 26, 28, 32, 0x6C)), "H", image.any_number())
    return []


def block_counts(image: Image) -> list[str]:
    """The file system is shorter than it was, or than its last group."""
    rng = image.rng
    per_group = image.get(SUPER + 32, "I")
    shorter = rng.choice((1, 2, 8, 100, per_group // 2, per_group - 300, per_group - 1))
    last = (image.blocks - image.first) % per_group or per_group
    image.put(SUPER + 4, "I", image.blocks - min(shorter, last - 1))
    if rng.randrange(2):
        count(
            image,
            image.groups - 1,
            12,
            -min(shorter, image.get(image.group(image.groups - 1) + 12, "H")),
        )
    return []
