"""More kinds of damage that are sound by themselves: maps, trees and features that disagree.

The checksums are put right afterwards where debugfs does so; where it does not, an image without
checksums is the one that tells something.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.host.damage.kinds import DIRECTORIES, FILES, SUPER, Image, leaf

FEATURES = ("inline_data", "casefold", "ea_inode", "encrypt", "verity", "large_dir", "project")


def sizes(image: Image) -> list[str]:
    """Files, directories and links whose size, with its upper half, is not that of their map."""
    path = image.rng.choice([*FILES, *DIRECTORIES, "/many"])
    high = image.rng.choice((0, 1, 0x7F, 0x3FF, 0x7FFFFFFF, 0xFFFFFFFF))
    low = image.rng.choice((0, 1, 1023, 1024, 61440, 61439, 0xFFFFFC00, 0xFFFFFFFF))
    commands = [f"sif {path} size_high {high}", f"sif {path} size {low}"]
    return image.rng.choice((commands, commands[:1], commands[1:]))


def inode_bodies(image: Image) -> list[str]:
    """How long an inode is, by itself and by the superblock."""
    rng = image.rng
    extra = rng.choice((0, 2, 3, 4, 24, 28, 31, 32, 33, 124, 128, 0xFFFF))
    commands = [f"sif {rng.choice(FILES)} extra_isize {extra}"]
    commands += [
        f"ssv min_extra_isize {extra}",
        f"ssv want_extra_isize {rng.choice((0, 7, 96, 200))}",
    ]
    return rng.sample(commands, rng.choice((1, 2)))


def flags(image: Image) -> list[str]:
    """Flags of inodes that say more than there is: data in the inode, names without case, verity,
    encryption, another's attributes, a map of extents or none."""
    rng = image.rng
    path = rng.choice([*FILES, *DIRECTORIES])
    bits = (1 << 28, 1 << 30, 1 << 20, 1 << 11, 1 << 21, 1 << 12, 1 << 19, 1 << 18, 1 << 4, 1 << 5)
    at = image.inode(image.numbers[path]) + 0x20
    value = image.get(at, "I")
    for bit in rng.sample(bits, rng.choice((1, 1, 2))):
        value ^= bit
    commands = [f"sif {path} flags {value}"]
    if rng.randrange(3) == 0:
        commands.append(f"feature {rng.choice(FEATURES)}")
    return commands


def unwritten(image: Image) -> list[str]:
    """Extents of length 0 and 32768 and 32769, that overlap, of a file and of a directory."""
    rng = image.rng
    at, count = leaf(image)
    if count == 0:
        number = image.numbers[rng.choice(DIRECTORIES)]
        at, count = image.inode(number) + 0x28, 1
        if image.get(at, "H") != 0xF30A:
            return sizes(image)
    for _ in range(rng.choice((1, 2, 3))):
        entry = at + 12 + 12 * rng.randrange(count)
        kind = rng.randrange(4)
        length = image.get(entry + 4, "H")
        if kind == 0:
            image.put(entry + 4, "H", rng.choice((0, 32768, 32769, length | 32768, length + 32768)))
        elif kind == 1:
            image.put(entry + 4, "H", length + rng.choice((1, 2, 100)))
        elif kind == 2:
            image.put(entry, "I", 0xFFFFFFFF - rng.choice((0, 1, length, length - 1)))
        else:
            other = at + 12 + 12 * rng.randrange(count)
            image.put(entry + 6, "H", image.get(other + 6, "H"))
            image.put(entry + 8, "I", image.get(other + 8, "I") + rng.choice((0, 0, 1, -1)))
    return []


def depths(image: Image) -> list[str]:
    """Nodes of a tree of extents whose depth, entries and room are another's."""
    rng = image.rng
    at = image.inode(image.numbers["/holes"]) + 0x28
    if image.get(at, "H") != 0xF30A:
        return sizes(image)
    if rng.randrange(2) and image.get(at + 6, "H"):
        at = image.get(at + 12 + 4, "I") * image.size
    field, layout = rng.choice(((0, "H"), (2, "H"), (4, "H"), (6, "H"), (8, "I")))
    image.put(at + field, layout, rng.choice((0, 1, 2, 3, 4, 5, 6, 83, 84, 85, 0xFFFF)))
    return []


def trees(image: Image) -> list[str]:
    """A hashed directory whose tree has a circle, a leaf twice, a level more, or no order."""
    rng = image.rng
    blocks = image.map_of(image.numbers["/many"])
    at = blocks[0] * image.size
    count = image.get(at + 34, "H")
    slot = at + 32 + 8 * rng.randrange(max(1, count))
    kind = rng.randrange(7)
    if kind == 0:
        image.put(slot + 4, "I", 0)  # the root itself
    elif kind == 1:
        image.put(slot + 4, "I", image.get(at + 32 + 8 * rng.randrange(max(1, count)) + 4, "I"))
    elif kind == 2:
        image.put(at + 30, "B", rng.choice((1, 2, 3)))
    elif kind == 3:
        image.put(slot, "I", image.get(at + 32 + 8 * rng.randrange(max(1, count)), "I"))
    elif kind == 4:
        image.put(at + 34, "H", image.get(at + 32, "H") + rng.choice((-1, 0, 1)))
    elif kind == 5:
        image.put(at + 29, "B", rng.choice((0, 7, 8, 9, 16)))
    else:  # a leaf is a node that leads to the root
        node = rng.choice(blocks[1:] or blocks) * image.size
        image.data[node : node + 32] = struct.pack(
            "<IHBBHHIII", 0, image.size, 0, 0, 126, 2, 0, 1 << 31, 0
        ) + bytes(4)
        image.put(at + 30, "B", 1)
    return []


def dots(image: Image) -> list[str]:
    """The first two names of a directory."""
    rng = image.rng
    number = rng.choice([image.numbers[path] for path in DIRECTORIES] + [2])
    at = image.map_of(number)[0] * image.size
    where, layout, values = rng.choice(
        (
            (0, "I", (0, 1, 2, 8, 11, 12, 0xFFFFFFFF)),
            (4, "H", (0, 8, 11, 12, 24, 1024, 1012)),
            (6, "B", (0, 1, 2, 255)),
            (8, "B", (0, 46, 47, 65)),
            (12, "I", (0, 1, 8, number, 12, 0xFFFFFFFF)),
            (16, "H", (0, 8, 12, 16, 1000, 1012, 4084)),
            (18, "B", (0, 1, 3, 255)),
            (21, "B", (0, 46, 47)),
        )
    )
    image.put(at + where, layout, rng.choice(values))
    return []


def references(image: Image) -> list[str]:
    """Blocks of attributes that more or fewer inodes have than they count, up to Linux's limit."""
    rng = image.rng
    owners = [image.numbers[path] for path in ("/A/bar", "/B", "/holes")]
    at = image.get(image.inode(rng.choice(owners)) + 0x68, "I") * image.size
    if at == 0:
        return flags(image)
    image.put(at + 4, "I", rng.choice((0, 1, 2, 1023, 1024, 0x7FFFFFFF, 0xFFFFFFFF)))
    image.put(at + 8, "I", rng.choice((0, 1, 1, 2)))
    block = at // image.size
    return [
        f"sif {rng.choice(FILES)} file_acl {block}",
        f"sif {rng.choice(FILES)} file_acl {block}",
    ]


def journal_super(image: Image) -> list[str]:
    """The journal's superblock, field by field, while there is something to replay or not."""
    rng = image.rng
    if image.data[SUPER + 92] & 4 == 0:
        return flags(image)
    at = image.map_of(8)[0] * image.size
    length = struct.unpack_from(">I", image.data, at + 16)[0]
    where, values = rng.choice(
        (
            (0, (0, 0xC03B3998, 0xC03B3999)),  # magic
            (4, (0, 1, 2, 3, 4, 5, 6)),  # kind of block
            (12, (0, 512, 1024, 2048, 4096, 3)),  # size of a block
            (16, (0, 1, 2, 3, length - 1, length + 1, 0xFFFFFFFF)),  # s_maxlen
            (20, (0, 1, 2, length - 1, length, length + 1, 0xFFFFFFFF)),  # s_first
            (24, (0, 1, 0x7FFFFFFF, 0xFFFFFFFF)),  # s_sequence
            (28, (0, 1, 2, length - 1, length, length + 1, 0xFFFFFFFF)),  # s_start
            (32, (0, 1, 5, 0xFFFFFFFF)),  # s_errno
            (36, (0, 1, 2, 0xFFFFFFFF)),  # features: compat
            (40, (1, 2, 3, 4, 8, 16, 18, 19, 24, 32, 64, 0xFFFFFFFF)),  # incompat
            (44, (1, 0xFFFFFFFF)),  # ro_compat
            (0x50, (0x01000000, 0x04000000, 0x05000000, 0xFF000000)),  # kind of checksum
            (0x54, (0, 1, length, 0xFFFFFFFF)),  # blocks for fast commits
            (0x40, (0, 1, 2, 48, 0xFFFFFFFF)),  # users
        )
    )
    struct.pack_into(">I", image.data, at + where, rng.choice(values))
    if rng.randrange(2):
        struct.pack_into(">I", image.data, at + 28, rng.choice((1, 2, length - 1)))
        image.put(SUPER + 96, "I", image.get(SUPER + 96, "I") | 4)
    return []


def geometry(image: Image) -> list[str]:
    """What the superblock says about sizes: of inodes, descriptors, groups, their number."""
    rng = image.rng
    where, layout, values = rng.choice(
        (
            (84, "I", (0, 1, 2, 10, 11, 12, 64, 512, 0xFFFFFFFF)),  # s_first_ino
            (88, "H", (0, 64, 127, 128, 256, 512, 1024, 2048)),  # s_inode_size
            (254, "H", (0, 32, 63, 64, 128, 1024, 0xFFFF)),  # s_desc_size
            (0x174, "B", (0, 1, 5, 31, 32, 255)),  # s_log_groups_per_flex
            (0xCE, "H", (0, 1, 255, 256, 1024, 0xFFFF)),  # s_reserved_gdt_blocks
            (40, "I", (0, 1, 8, 120, 128, 8192, 0xFFFFFFFF)),  # inodes per group
            (32, "I", (0, 1, 256, 1024, 2040, 8192, 0xFFFFFFFF)),  # blocks per group
            (0, "I", (0, 1, 11, 500, 0xFFFFFFFF)),  # inodes
            (0x240, "I", (1, 2, 7, 11, 12, 0xFFFFFFFF)),  # s_usr_quota_inum
            (0x248, "I", (0, 1, 2, 0xFFFFFFFF)),  # s_overhead_blocks
            (0x280, "I", (1, 2, 8, 12, 9999)),  # s_orphan_file_inum
            (0x78, "B", (0x2F,)),  # a name with a slash
        )
    )
    image.put(SUPER + where, layout, rng.choice(values))
    features = (
        "quota",
        "project",
        "orphan_file",
        "bigalloc",
        "metadata_csum_seed",
        "sparse_super2",
    )
    if rng.randrange(3) == 0:
        return [f"feature {rng.choice(features)}"]
    return ["ssv mnt_count 3"]  # writes the superblock with its checksum


def lazy(image: Image) -> list[str]:
    """Groups that say that they were never used, or how much of their inodes was not."""
    rng = image.rng
    group = rng.randrange(image.groups)
    unused = (0, 1, image.per_group - 1, image.per_group, image.per_group + 1, 0xFFFF)
    commands = [
        f"sbg {group} flags {rng.choice((0, 1, 2, 3, 4, 5, 6, 7))}",
        f"sbg {group} itable_unused {rng.choice(unused)}",
        f"sbg {group} used_dirs_count {rng.choice((0, 1, 0xFFFF))}",
    ]
    return [*rng.sample(commands, rng.choice((1, 2, 3))), f"sbg {group} checksum calc"]


def tables_of_others(image: Image) -> list[str]:
    """Descriptors whose bitmaps and tables are each other's, the journal's, a file's."""
    rng = image.rng
    one, other = (rng.randrange(image.groups) for _ in range(2))
    at, source = rng.choice((0, 4, 8)), rng.choice((0, 4, 8))
    target = image.get(image.group(other) + source, "I") + rng.choice((0, 0, 1))
    if rng.randrange(3) == 0:
        target = rng.choice(image.map_of(rng.choice([8, 7, *image.numbers.values()])) or [1])
    name = {0: "block_bitmap", 4: "inode_bitmap", 8: "inode_table"}[at]
    return [f"sbg {one} {name} {target}", f"sbg {one} checksum calc"]


def reserved(image: Image) -> list[str]:
    """Inodes with a meaning: the root, the journal, that of the descriptors, of bad blocks."""
    rng = image.rng
    number = rng.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11))
    field = rng.choice(
        (
            "mode",
            "links_count",
            "flags",
            "size",
            "block[0]",
            "block[5]",
            "blocks",
            "dtime",
            "generation",
        )
    )
    value = rng.choice((0, 1, 0o40755, 0o100600, 0x80000, 1024, image.any_block()))
    return [f"sif <{number}> {field} {value}"]


MORE: dict[str, Callable[[Image], list[str]]] = {
    kind.__name__: kind
    for kind in (
        sizes,
        inode_bodies,
        flags,
        unwritten,
        depths,
        trees,
        dots,
        references,
        journal_super,
        geometry,
        lazy,
        tables_of_others,
        reserved,
    )
}
