"""Kinds of damage that an outsider makes: numbers that agree with each other and are wrong.

A bitmap that calls used blocks free is found by its count, so here the counts fit it; what has a
checksum gets the right one (sums.py). So nothing but the meaning is wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.host.damage.kinds import DIRECTORIES, FILES, SUPER, Image, leaf

EXTENT = 0xF30A
LINKS = ("/A/x1", "/B/x2", "/x3")  # names that a kind of damage makes


def tables(image: Image, group: int) -> list[int]:
    """The blocks of a group's two bitmaps, and its table of inodes."""
    at = image.group(group)
    first = image.get(at + 8, "I")
    length = image.per_group * image.inode_size // image.size
    return [image.get(at, "I"), image.get(at + 4, "I"), *range(first, first + length)]


def own_blocks(image: Image) -> list[int]:
    """Blocks that no file may have: descriptors, bitmaps, tables, the journal."""
    group = image.rng.randrange(image.groups)
    rng, found = image.rng, [*range(image.first, image.first + 4), *tables(image, group)]
    chosen = [*rng.sample(found, 3), image.get(image.group(group), "I")]
    return [*chosen, *rng.sample(image.map_of(8) or found, 3)]


def count(image: Image, group: int, field: int, change: int) -> None:
    """Changes a count of a descriptor and that of the superblock: 12 blocks, 14 inodes."""
    at = image.group(group) + field
    image.put(at, "H", image.get(at, "H") + change)
    at = SUPER + field
    image.put(at, "I", image.get(at, "I") + change)


def flip(image: Image, block: int) -> None:
    """A block that is in use is free, and the other way round; the counts fit."""
    per_group = image.get(SUPER + 32, "I")
    group, index = divmod(block - image.first, per_group)
    at = image.get(image.group(group), "I") * image.size + index // 8
    value = image.get(at, "B") ^ 1 << index % 8
    image.put(at, "B", value)
    count(image, group, 12, -1 if value >> index % 8 & 1 else 1)


def free_metadata(image: Image) -> list[str]:
    """Descriptors, bitmaps, tables of inodes or the journal are free, says the bitmap."""
    for block in sorted(set(own_blocks(image))):
        flip(image, block)
    return []


def free_inodes(image: Image) -> list[str]:
    """Inodes in use are free, says their bitmap, or free ones are in use."""
    rng = image.rng
    numbers = [*image.numbers.values(), *rng.sample(range(12, 500), 3)]
    for number in rng.sample(numbers, rng.choice((1, 3))):
        group, index = divmod(number - 1, image.per_group)
        at = image.get(image.group(group) + 4, "I") * image.size + index // 8
        value = image.get(at, "B") ^ 1 << index % 8
        image.put(at, "B", value)
        count(image, group, 14, -1 if value >> index % 8 & 1 else 1)
    return []


def foreign_maps(image: Image) -> list[str]:
    """Files whose maps lead into tables, bitmaps, descriptors, the journal or another file."""
    rng = image.rng
    path = rng.choice([*FILES, *DIRECTORIES])
    at = image.inode(image.numbers[path]) + 0x28
    other = image.map_of(image.numbers[rng.choice(FILES)]) or [1]
    target = rng.choice([*own_blocks(image), rng.choice(other), 0, 1])
    if image.extents:
        start, entries = leaf(image)
        if entries == 0 or rng.randrange(3) == 0:
            start = at
            image.data[at : at + 12] = struct.pack("<HHHHI", EXTENT, 1, 4, 0, 0)
            image.put(at + 12, "I", 0)
            entries = 1
        entry = start + 12 + 12 * rng.randrange(entries)
        image.put(entry + 8, "I", target)
        if rng.randrange(2):
            image.put(entry + 4, "H", rng.choice((1, 2, 8, 64)))
    else:
        image.put(at + 4 * rng.choice((0, 1, 3, 12, 13, 14)), "I", target)
    return []


def reserved_names(image: Image) -> list[str]:
    """Names of the journal, the root and other inodes that have a meaning; and names of parents."""
    number = image.rng.choice((1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10))
    target = image.rng.choice((f"<{number}>", f"<{number}>", *DIRECTORIES))
    return [f"ln {target} {path}" for path in image.rng.sample(LINKS, 2)]


def never_used(image: Image) -> list[str]:
    """Descriptors that call a group, or the end of its table, never used though it is."""
    rng = image.rng
    group = rng.randrange(image.groups)
    at = image.group(group)
    kind = rng.randrange(4)
    image.put(at + 18, "H", rng.choice((1, 2, 3, 5, 7)))
    if kind == 0:
        image.put(at + 28, "H", rng.choice((image.per_group, image.per_group - 1, 40, 8, 1)))
    elif kind == 1:
        image.put(at + 14, "H", image.per_group)
        image.put(at + 28, "H", image.per_group)
    elif kind == 2:
        per_group = image.get(SUPER + 32, "I")
        image.put(at + 12, "H", per_group - rng.choice((0, 2, len(tables(image, group)))))
    else:
        image.put(SUPER + 0xCE, "H", rng.choice((2000, 9000, 0x7FFF, 0xFFFF)))
    return []


def overlaps(image: Image) -> list[str]:
    """A bitmap or a table that another group has, too, or the journal, with what it counts."""
    rng = image.rng
    one, other = (image.group(rng.randrange(image.groups)) for _ in range(2))
    field, counts = rng.choice(((0, (12,)), (4, (14, 16, 28)), (8, (14, 16, 28))))
    source = rng.choice((field, field, 0, 4, 8))
    target = image.get(other + source, "I") + rng.choice((0, 0, 0, 1, -1))
    if rng.randrange(4) == 0:
        target = rng.choice([*image.map_of(8), 1, image.first + 1, image.first + 2])
    image.put(one + field, "I", target)
    for at in counts:
        image.put(one + at, "H", image.get(other + at, "H"))
    return []


def journal_maps(image: Image) -> list[str]:
    """A journal that is where something else is, in pieces, with a hole, too short or too long."""
    rng = image.rng
    at = image.inode(8) + 0x28
    if image.data[SUPER + 92] & 4 == 0:
        return foreign_maps(image)
    kind = rng.randrange(4)
    if kind == 0:
        image.put(image.inode(8) + 4, "I", rng.choice((0, 1024, 4096, 65536, 1 << 30, 0x7FFFFFFF)))
    elif image.extents:
        length = image.get(at + 16, "H")
        first = image.get(at + 20, "I")
        cut = rng.randrange(1, max(2, length))
        target = rng.choice([*own_blocks(image), image.map_of(image.numbers["/solid"])[0], first])
        image.data[at : at + 36] = struct.pack("<HHHHI", EXTENT, 2, 4, 0, 0) + struct.pack(
            "<IHHIIHHI", 0, cut, 0, first, cut + (kind == 3), max(1, length - cut), 0, target
        )
    else:
        block = rng.choice([*own_blocks(image), 0, *image.map_of(image.numbers["/solid"])[:2]])
        image.put(at + 4 * rng.choice((1, 2, 5, 11, 12, 13)), "I", block)
    return []


def old_orphans(image: Image) -> list[str]:
    """A list of orphans with a file that was deleted, whose map still has what is another's now."""
    rng = image.rng
    path = rng.choice(("/A/foo", "/solid", "/holes", "/A/sub/deep"))
    number = image.numbers.get(path) or image.number(path)
    at = image.inode(number)
    inode = bytes(image.data[at : at + image.inode_size])
    free = rng.choice((400, 450, 500))
    start = image.inode(free)
    image.data[start : start + image.inode_size] = inode
    image.put(start + 26, "H", rng.choice((0, 0, 0, 1)))
    image.put(start + 20, "I", rng.choice((0, 0, 1262304000)))
    image.put(SUPER + 0xE8, "I", free)
    return []


def short_links(image: Image) -> list[str]:
    """Short symbolic links that say that they are long, and long ones that say that they are
    short. The text would be numbers of blocks."""
    rng = image.rng
    path = rng.choice(("/short", "/tiny", "/tiny", "/long"))
    at = image.inode(image.number(path))
    image.put(at + 4, "I", rng.choice((59, 60, 61, 1000, 1024, image.size, 3)))
    if rng.randrange(3) == 0:
        image.put(at + 28, "I", rng.choice((0, 2, 8, 0xFFFFFFFF)))
    return []


def shared_nodes(image: Image) -> list[str]:
    """A node of extents that is a directory, a table, a bitmap, an attribute's block, too."""
    rng = image.rng
    if not image.extents:
        return foreign_maps(image)
    group = rng.randrange(image.groups)
    targets = [*tables(image, group)[:4], *image.map_of(image.numbers["/many"])[:3]]
    targets += [image.get(image.inode(image.numbers["/B"]) + 0x68, "I")]
    target = rng.choice(targets)
    at = image.inode(image.numbers[rng.choice(("/holes", "/solid", "/A/foo"))]) + 0x28
    depth = rng.choice((1, 1, 2, 5))
    image.data[at : at + 24] = struct.pack("<HHHHIIIHH", EXTENT, 1, 4, depth, 0, 0, target, 0, 0)
    start = target * image.size
    if target in tables(image, group)[2:]:
        image.put(start + 2, "H", rng.choice((60, 340, 5000, 65534)))  # the owner
        image.put(start + 4, "H", rng.choice((84, 340, 20000)))
        image.put(start + 6, "H", depth - 1)
    return []


def names_in_blocks(image: Image) -> list[str]:
    """Entries whose lengths do not fit, doubled names, a block of names that is another's."""
    rng = image.rng
    number = rng.choice([image.numbers[path] for path in DIRECTORIES] + [2])
    blocks = image.map_of(number)
    at = rng.choice(blocks) * image.size
    starts, here = [], at
    while here < at + image.size and image.get(here + 4, "H") >= 12:
        starts.append(here)
        here += image.get(here + 4, "H")
    one = rng.choice(starts)
    length = image.get(one + 4, "H")
    kind = rng.randrange(5)
    if kind == 0:
        image.put(one + 4, "H", rng.choice((0, 1, 4, 7, 11, length + 1, length - 4, 65532, 65535)))
    elif kind == 1:
        image.put(one + 6, "B", rng.choice((0, length, length - 7, 255)))
    elif kind == 2 and len(starts) > 3:
        image.data[one + 4 : one + 12] = image.data[starts[-2] + 4 : starts[-2] + 12]
    elif kind == 3:
        other = rng.choice(image.map_of(image.numbers["/many"])) * image.size
        image.data[at : at + image.size] = image.data[other : other + image.size]
    else:
        image.put(one, "I", rng.choice((image.per_group * image.groups + 1, 0xFFFFFFFF, 1, 499)))
    return []


def super_numbers(image: Image) -> list[str]:
    """Fields of the superblock that no tool would write."""
    rng = image.rng
    fields = (
        (0x18, "I", (3, 4, 7, 0xFFFFFFFF)),  # log of the block size
        (0x1C, "I", (0, 5, 0xFFFFFFFF)),  # of the cluster size
        (0x04, "I", (1, image.blocks - 1, image.blocks + 1, 2 * image.blocks, 0xFFFFFFFF)),
        (0x08, "I", (image.blocks, 0xFFFFFFFF)),  # reserved blocks
        (0x0C, "I", (0, 1, image.blocks, 0xFFFFFFFF)),  # free blocks
        (0x10, "I", (0, 1, 0xFFFFFFFF)),  # free inodes
        (0x20, "I", (image.get(SUPER + 32, "I") - 8, image.get(SUPER + 32, "I") + 8, 17)),
        (0x28, "I", (image.per_group - 4, image.per_group + 8, image.per_group // 2)),
        (0x2C, "I", (0, 0x7FFFFFFF, 0xFFFFFFFF)),  # mount time
        (0x34, "H", (0, 0xFFFF)),
        (0x3A, "H", (0, 2, 4, 7, 0xFFFF)),  # state
        (0x3C, "H", (0, 1, 2, 77)),  # errors
        (0x4C, "I", (0, 1, 2)),  # revision
        (0x54, "I", (12, 64, 400)),  # first inode
        (0x58, "H", (0, 129, 128, 512, image.size)),
        (0x60, "I", tuple(image.get(SUPER + 0x60, "I") ^ 1 << bit for bit in range(18))),
        (0x64, "I", tuple(image.get(SUPER + 0x64, "I") ^ 1 << bit for bit in range(17))),
        (0x5C, "I", tuple(image.get(SUPER + 0x5C, "I") ^ 1 << bit for bit in range(13))),
        (0xCE, "H", (1, 300, 2000, 9000, 0xFFFF)),  # blocks for more descriptors
        (0xE0, "I", (0, 2, 7, 11, 12, 400, 0xFFFFFFFF)),  # the journal's inode
        (0xE4, "I", (1, 0x301)),  # its device
        (0xE8, "I", (1, 8, 12, 13, 400, 0xFFFFFFFF)),  # orphans
        (0xFC, "B", (1, 2, 5, 6, 255)),  # hash
        (0xFE, "H", (0, 31, 33, 64, 1024)),
        (0x104, "I", (1, 2, 3, 0xFFFFFFFF)),  # first meta_bg
        (0x15C, "H", (0, 4, 64, 0xFFFF)),  # min_extra_isize
        (0x174, "B", (0, 1, 6, 7, 31, 255)),  # flex_bg
        (0x175, "B", (0, 2, 255)),  # kind of checksum
        (0x24C, "I", (1, 2, 0xFFFFFFFF)),  # copies (sparse_super2)
    )
    for where, layout, choices in rng.sample(fields, rng.choice((1, 1, 2, 3))):
        image.put(SUPER + where, layout, rng.choice(choices))
    return []


def copies(image: Image) -> list[str]:
    """Superblocks' and descriptors' copies that say something else."""
    rng = image.rng
    for group in (1, 3):
        at = (image.first + group * image.get(SUPER + 32, "I")) * image.size
        if at + image.size < len(image.data) and image.get(at + 0x38, "H") == 0xEF53:
            image.put(at + rng.choice((0, 4, 0x18, 0x20, 0x28, 0x60)), "I", image.any_number())
            image.put(at + image.size + rng.choice((0, 4, 8)), "I", image.any_block())
    image.put(SUPER + 0x3A, "H", rng.choice((0, 1, 2, 3)))
    return []


def attribute_numbers(image: Image) -> list[str]:
    """Attributes whose names, values and places do not fit, in a block or in the inode."""
    rng = image.rng
    if rng.randrange(2):
        path = rng.choice(("/A/bar", "/B", "/holes"))
        first = image.get(image.inode(image.numbers[path]) + 0x68, "I") * image.size + 32
    else:
        at = image.inode(image.numbers[rng.choice(("/A", "/A/foo", "/solid"))])
        if image.inode_size == 128:
            return []
        if rng.randrange(4) == 0:
            image.put(at + 128, "H", rng.choice((0, 4, 28, 30, 33, 96, 124, 128, 65532)))
        first = at + 128 + image.get(at + 128, "H") % 100 + 4
    where, layout, choices = rng.choice(
        (
            (0, "B", (0, 2, 200, 255)),  # length of the name
            (1, "B", (0, 2, 3, 5, 7, 9, 255)),  # prefix
            (2, "H", (1, 3, 32, 36, 1023, image.size - 1, image.size, 65535)),  # place
            (4, "I", (1, 8, 12, 500)),  # inode
            (8, "I", (0, 1, image.size, 0x7FFFFFFF, 0xFFFFFFFC, 0xFFFFFFFF)),  # size
            (12, "I", (0, 1)),  # hash
            (-32, "I", (0, 0xEA010000)),
            (-28, "I", (0, 2, 1025, 0xFFFFFFFF)),  # inodes
            (-24, "I", (0, 2)),  # blocks
        )
    )
    image.put(first + where, layout, rng.choice(choices))
    return []


def counts_of_inodes(image: Image) -> list[str]:
    """Links, blocks, sizes, times and flags that cannot be."""
    rng = image.rng
    number = rng.choice([*image.numbers.values(), 2, 11])
    at = image.inode(number)
    for _ in range(rng.choice((1, 2))):
        where, layout, choices = rng.choice(
            (
                (26, "H", (0, 1, 2, 3, 65000, 65535)),
                (28, "I", (0, 1, 7, 0x7FFFFFFF, 0xFFFFFFFF)),
                (4, "I", (0, 1, 1024, 1 << 20, 1 << 22, 1 << 23, 0x7FFFFC00, 0xFFFFFC00)),
                (0x6C, "I", (1, 0xFF, 0xFFFFFFFF)),
                (20, "I", (1, 12, 0xFFFFFFFF)),
                (32, "I", tuple(image.get(at + 32, "I") ^ 1 << bit for bit in range(30))),
                (0x74, "H", (1, 0xFFFF)),
            )
        )
        image.put(at + where, layout, rng.choice(choices))
    return []


def journal_writer(image: Image, journal: list[int], place: int) -> Callable[[bytes], None]:
    """What writes one block after the other into the journal, which has these blocks: from `place`
    on, and after the last one from its second."""

    def write(block: bytes) -> None:
        nonlocal place
        where = journal[place] * image.size
        image.data[where : where + image.size] = block.ljust(image.size, b"\0")
        place = place + 1 if place + 1 < len(journal) else 1

    return write


def log_blocks(image: Image) -> list[str]:
    """Something to replay whose tags, revokes and numbers are wild."""
    rng = image.rng
    journal = image.map_of(8)
    if image.data[SUPER + 92] & 4 == 0 or len(journal) < 40:
        return counts_of_inodes(image)
    at = journal[0] * image.size
    if image.get(at + 0x28, "I"):  # checksums, which debugfs would have to write
        features = struct.unpack_from(">I", image.data, at + 0x28)[0] & ~0x18
        struct.pack_into(">I", image.data, at + 0x28, features)
        image.put(at + 0x50, "B", 0)
    sequence = rng.choice((1, 5, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF))
    start = rng.choice((1, 2, len(journal) - 3, len(journal) - 1))
    wide = struct.unpack_from(">I", image.data, at + 0x28)[0] & 2
    struct.pack_into(">II", image.data, at + 24, sequence, start)
    image.put(SUPER + 96, "I", image.get(SUPER + 96, "I") | 4)
    write = journal_writer(image, journal, start)
    for _ in range(rng.choice((1, 2, 3))):
        targets = [rng.choice((image.any_block(), rng.choice(journal), image.first + 1))
                   for _ in range(rng.choice((1, 3)))]  # fmt: skip
        head = struct.pack(">III", 0xC03B3998, 1, sequence)
        for index, target in enumerate(targets):
            flags = 2 | (8 if index + 1 == len(targets) and rng.randrange(8) else 0)
            flags |= rng.choice((0, 0, 0, 1, 4))
            head += struct.pack(">II", target, flags)
            head += struct.pack(">I", rng.choice((0, 0, 0, 1))) if wide else b""
        write(head)
        for target in targets:
            valid = target < image.blocks and rng.randrange(3)
            block = target if valid else rng.randrange(image.blocks)
            write(bytes(image.data[block * image.size : (block + 1) * image.size]))
        if rng.randrange(3) == 0:
            revoke = struct.pack(">IIII", 0xC03B3998, 5, sequence,
                                 rng.choice((16, 20, 24, 0, 17, 1024, 0xFFFFFFFF)))  # fmt: skip
            write(revoke + struct.pack(">QQ", image.any_block(), image.any_block()))
        write(struct.pack(">III", 0xC03B3998, rng.choice((2, 2, 2, 2, 3, 9)), sequence))
        sequence = sequence + 1 & 0xFFFFFFFF
    return []


def index_numbers(image: Image) -> list[str]:
    """A hashed directory whose root and leaves do not fit: counts, limits, hashes, blocks."""
    rng = image.rng
    blocks = image.map_of(image.numbers["/many"])
    at = blocks[0] * image.size
    entries = image.get(at + 34, "H")
    if not 0 < entries < 100:
        return []
    slot = at + 32 + 8 * rng.randrange(entries)
    where, layout, choices = rng.choice(
        (
            (at + 28, "B", (1, 3, 4, 6, 255)),
            (at + 29, "B", (0, 7, 9)),
            (at + 30, "B", (1, 2, 3, 255)),
            (at + 32, "H", (0, 1, entries, 0xFFFF)),
            (at + 34, "H", (0, 1, entries - 1, entries + 1, 0xFFFF)),
            (slot, "I", (0, 1, 0xFFFFFFFF, rng.getrandbits(32))),
            (slot + 4, "I", (0, 1, len(blocks) - 1, len(blocks), 0xFFFFFFFF)),
            (blocks[-1] * image.size + 4, "H", (image.size, 12, 0)),
            (at + 12, "I", (0, 2, 8, image.numbers["/many"])),
            (at + 16, "H", (12, 1012, 0, image.size - 12)),
        )
    )
    image.put(where, layout, rng.choice(choices))
    return []


def parents(image: Image) -> list[str]:
    """Directories in each other, in themselves, twice, and without a way up."""
    rng = image.rng
    one, other = rng.sample(DIRECTORIES, 2)
    return rng.choice(
        (
            [f"unlink {one}/..", f"ln {other} {one}/..",
             f"unlink {other}/..", f"ln {one} {other}/.."],
            [f"unlink {one}/..", f"ln {one} {one}/.."],
            [f"ln {one} {one}/n1", f"ln {one} {one}/x1"],
            [f"ln {one} {LINKS[0]}", f"ln {one} {LINKS[1]}"],
            [f"ln / {LINKS[0]}", f"ln / {LINKS[1]}"],
            [f"unlink {one}/."],
            [f"unlink {one}/..", f"ln /short {one}/.."],
            [f"unlink {one}/.", f"ln {rng.choice(FILES)} {one}/."],
        )
    )  # fmt: skip


OUTSIDE: dict[str, Callable[[Image], list[str]]] = {
    kind.__name__: kind
    for kind in (
        free_metadata,
        free_inodes,
        foreign_maps,
        reserved_names,
        never_used,
        overlaps,
        journal_maps,
        old_orphans,
        short_links,
        shared_nodes,
        names_in_blocks,
        super_numbers,
        copies,
        attribute_numbers,
        counts_of_inodes,
        log_blocks,
        index_numbers,
        parents,
    )
}
