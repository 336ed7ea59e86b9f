"""Kinds of damage that are sound by themselves: what a bug of another system leaves on a disk."""

from __future__ import annotations

import random
import re
import struct
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from labs.tools.machine.bounded import run_within
from tests.host.damage.sums import descriptor_at, repair
from tests.host.damage.variants import EVERY, SIZES, VARIANTS
from tests.host.ext.images import (
    ENVIRONMENT,
    MIB,
    SUPER,
    debugfs,
    make_image,
    run_tool,
    write_blocks,
)

FILES = ["/A/foo", "/A/bar", "/B/x", "/holes", "/long", "/short", "/solid"]
DIRECTORIES = ["/A", "/B", "/many", "/A/sub"]
NEW = ["/new", "/A/new", "/many/new", "/A/sub/new", "/B/other"]
ORPHANS = ("<0>", "<1>", "<2>", "<7>", "<8>", "<11>", "<9999>")


def source(root: Path) -> Path:
    """Files of each shape."""
    for name in ("A/sub", "B", "many"):
        (root / name).mkdir(parents=True)
    (root / "A/foo").write_bytes(b"foo" * 1000)
    (root / "A/bar").write_bytes(b"bar" * 9000)
    (root / "B/x").write_bytes(b"x" * 300)
    (root / "A/sub/deep").write_bytes(b"d" * 20000)
    (root / "B/link").hardlink_to(root / "A/bar")
    write_blocks(root / "holes", 1024, range(0, 700, 2))
    (root / "solid").write_bytes(b"solid!!!" * 25600)
    (root / "short").symlink_to("A/foo")
    (root / "tiny").symlink_to("w\1")
    (root / "long").symlink_to("A/" + "./" * 60 + "foo")
    for number in range(300):
        (root / "many" / f"name-{number}").touch()
    keep(root / "keep")
    return root


def keep(root: Path) -> None:
    """What no damage is meant for, and nobody works on."""
    (root / "sub").mkdir(parents=True)
    for number in range(24):
        (root / f"file-{number}").write_bytes(b"%7d\n" % number * (number * 60))
    (root / "sub/deep").write_bytes(b"keep" * 8000)
    (root / "link").symlink_to("sub/" + "./" * 50 + "deep")
    write_blocks(root / "holes", 1024, range(0, 60, 3))


@cache
def pristine(variant: str) -> bytes:
    """An image of a variant, made once."""
    with tempfile.TemporaryDirectory(prefix="damaged-") as name:
        return made(variant, Path(name)).read_bytes()


def made(variant: str, folder: Path) -> Path:
    """Makes an image of a variant."""
    image = folder / f"{variant}.img"
    make_image(image, SIZES.get(variant, 8 * MIB), EVERY[variant], source(folder / "root"))
    run_within(["e2fsck", "-fyD", str(image)], env=ENVIRONMENT, capture_output=True, seconds=60)
    values = [f"ea_set {path} user.a {'v' * 40}" for path in ("/A", "/A/foo", "/solid")]
    values += [f"ea_set {path} user.b {'w' * 400}" for path in ("/A/bar", "/B", "/holes")]
    debugfs(image, values, write=True)
    run_tool("e2fsck", "-fn", str(image))
    return image


@dataclass
class Image:
    """An image, and where its structures are."""

    path: Path
    rng: random.Random
    done: list[str] = field(default_factory=list)
    """What was damaged, in words."""

    def __post_init__(self) -> None:
        self.data = bytearray(self.path.read_bytes())
        self.size = 1024 << self.get(SUPER + 24, "I")
        self.blocks = self.get(SUPER + 4, "I")
        self.per_group = self.get(SUPER + 40, "I")
        self.inode_size = self.get(SUPER + 88, "H")
        wide = self.get(SUPER + 96, "I") & 0x80
        self.descriptor = self.get(SUPER + 254, "H") if wide else 32
        self.first = self.get(SUPER + 20, "I")
        self.groups = -(-(self.blocks - self.first) // self.get(SUPER + 32, "I"))
        self.extents = bool(self.get(SUPER + 96, "I") & 0x40)
        self.numbers = {path: self.number(path) for path in [*FILES, *DIRECTORIES]}

    def get(self, at: int, layout: str) -> int:
        return struct.unpack_from("<" + layout, self.data, at)[0]

    def put(self, at: int, layout: str, value: int) -> None:
        width = 8 * struct.calcsize(layout)
        struct.pack_into("<" + layout, self.data, at, value & ((1 << width) - 1))

    def save(self) -> None:
        self.path.write_bytes(self.data)

    def number(self, path: str) -> int:
        """Of an inode."""
        key = (self.path.stem.split("_")[0], path)
        if key not in _numbers:
            text = run_tool("debugfs", "-R", f"stat {path}", str(self.path))
            _numbers[key] = int(re.search(r"Inode: (\d+)", text)[1])
        return _numbers[key]

    def group(self, index: int) -> int:
        """Where a group's descriptor is."""
        return descriptor_at(self.data, index)

    def inode(self, number: int) -> int:
        """Where an inode is."""
        group, index = divmod(number - 1, self.per_group)
        return self.get(self.group(group) + 8, "I") * self.size + index * self.inode_size

    def map_of(self, number: int) -> list[int]:
        """All blocks that an inode has, those of its map last."""
        text = run_tool("debugfs", "-R", f"blocks <{number}>", str(self.path))
        return [int(each) for each in text.split() if each.isdigit() and int(each) < self.blocks]

    def any_block(self) -> int:
        """A number of a block that is worth a try."""
        group = self.group(self.rng.randrange(self.groups))
        choices = [0, 1, self.first, self.blocks - 1, self.blocks, 0xFFFFFFFF, self.size]
        choices += [self.get(group + at, "I") for at in (0, 4, 8)]
        choices += [self.rng.randrange(self.blocks) for _ in range(4)]
        choices += self.map_of(self.rng.choice([*self.numbers.values(), 8, 7, 2]))[:2]
        return self.rng.choice(choices)

    def any_number(self) -> int:
        """A number that is worth a try, of no meaning."""
        rng = self.rng
        small = rng.choice((0, 1, 2, 3, 5, 12, 255, 256, 1023, 1024, 4096, 65535, 32768, 32769))
        return rng.choice((small, rng.getrandbits(32), 0xFFFFFFFF, 1 << rng.randrange(32)))

    def any_inode(self) -> int:
        """The number of an inode that is worth a try."""
        used = [*self.numbers.values(), 2, 7, 8, 11]
        return self.rng.choice([*used, *used, 0, 1, 3, 10, 300, 511, 512, 513, 0xFFFFFFFF])


_numbers: dict[tuple[str, str], int] = {}

# ---- kinds of damage ----------------------------------------------------------------------------

SUPER_FIELDS = [
    *("free_blocks_count", "free_inodes_count", "r_blocks_count", "first_ino", "inodes_count"),
    *("reserved_gdt_blocks", "last_orphan", "journal_inum", "log_groups_per_flex", "hash_seed[0]"),
    *("def_hash_version", "min_extra_isize", "want_extra_isize", "state", "mnt_count", "flags"),
    *("first_meta_bg", "jnl_blocks[0]", "mmp_block", "kbytes_written", "error_count", "rev_level"),
    *("free_blocks_hi", "r_blocks_hi", "log_cluster_size", "default_mount_opts", "backup_bgs[0]"),
]
GROUP_FIELDS = [
    *("block_bitmap", "inode_bitmap", "inode_table", "free_blocks_count", "free_inodes_count"),
    *("used_dirs_count", "flags", "itable_unused"),
]
INODE_FIELDS = [
    *("mode", "size", "links_count", "flags", "dtime", "generation", "file_acl", "size_high"),
    *("extra_isize", "blocks", "block[0]", "block[1]", "block[2]", "block[3]", "block[5]"),
    *("block[IND]", "block[DIND]", "block[TIND]", "uid", "atime_extra", "mtime", "file_acl_high"),
]
MODES = (0o40755, 0o100644, 0o120777, 0o10644, 0o20644, 0o140777, 0o0, 0o100000, 0o47777)


def values(image: Image, name: str) -> int:
    """A value for a field of this name."""
    if name == "mode":
        return image.rng.choice(MODES)
    if name in {"last_orphan", "journal_inum"}:
        return image.any_inode()
    if re.search("bitmap|table|file_acl|block", name) and image.rng.randrange(3):
        return image.any_block()
    return image.any_number()


def by_debugfs(image: Image, command: str, fields: list[str], what: str = "") -> list[str]:
    """One or two fields of a structure, with the checksum that belongs to them."""
    names = image.rng.sample(fields, image.rng.choice((1, 1, 2)))
    return [f"{command} {what} {name} {values(image, name)}" for name in names]


def super_fields(image: Image) -> list[str]:
    return by_debugfs(image, "ssv", SUPER_FIELDS)


def super_features(image: Image) -> list[str]:
    """A feature is missing, or there, though the contents say otherwise."""
    names = ("extent", "filetype", "flex_bg", "64bit", "dir_index", "has_journal", "large_file",
             "huge_file", "dir_nlink", "extra_isize", "sparse_super", "resize_inode", "ext_attr",
             "metadata_csum", "uninit_bg", "needs_recovery", "meta_bg")  # fmt: skip
    signs = image.rng.choices(("", "^"), k=2)
    return [f"feature {sign}{image.rng.choice(names)}" for sign in signs]


def group_fields(image: Image) -> list[str]:
    group = str(image.rng.randrange(image.groups))
    commands = by_debugfs(image, "sbg", GROUP_FIELDS, group)
    return [*commands, f"sbg {group} checksum calc"]


def inode_fields(image: Image) -> list[str]:
    number = image.rng.choice([*image.numbers.values(), 2, 7, 8, 11])
    return by_debugfs(image, "sif", INODE_FIELDS, f"<{number}>")


def orphans(image: Image) -> list[str]:
    """A list of orphans with a circle, with what is in use, with what is none."""
    chosen = [image.any_inode() for _ in range(image.rng.randrange(1, 4))]
    ends = [*chosen[1:], image.rng.choice((0, chosen[0], image.any_inode()))]
    links = [f"sif <{one}> dtime {two}" for one, two in zip(chosen, ends, strict=True)]
    return [*links, f"ssv last_orphan {chosen[0]}"]


def names(image: Image) -> list[str]:
    """Names that lead where they must not, and inodes without one."""
    rng = image.rng
    path = rng.choice([*FILES, *DIRECTORIES])
    target = f"<{image.any_inode()}>"
    return rng.choice(
        (
            [f"ln {target} {path}-again"],
            [f"unlink {path}"],
            [f"unlink {rng.choice(DIRECTORIES)}/..", f"ln {target} {rng.choice(DIRECTORIES)}/.."],
            [f"clri {path}"],
            [f"ln {rng.choice(DIRECTORIES)} /A/sub/loop"],
            ["unlink /lost+found", "clri <11>"],
            [f"freei {path}"],
            [f"seti <{rng.randrange(12, 512)}>" for _ in range(20)],
        )
    )


def bits(image: Image) -> list[str]:
    """Blocks in use that their bitmap calls free, with right counts, or the other way round."""
    rng = image.rng
    blocks = image.map_of(rng.choice([*image.numbers.values(), 8, 7, 2]))
    if rng.randrange(2) and blocks:
        return [f"freeb {block}" for block in rng.sample(blocks, min(len(blocks), 5))]
    first = rng.randrange(1, image.blocks - 20)
    return [f"{rng.choice(('setb', 'freeb'))} {first} {rng.randrange(1, 20)}"]


def leaf(image: Image) -> tuple[int, int]:
    """Where the extents of a file begin, and how many there are."""
    number = image.rng.choice(list(image.numbers.values()))
    at = image.inode(number) + 0x28
    while image.get(at, "H") == 0xF30A and image.get(at + 6, "H") > 0:
        at = image.get(at + 16, "I") * image.size
    return (at, image.get(at + 2, "H")) if image.get(at, "H") == 0xF30A else (0, 0)


def extents(image: Image) -> list[str]:
    """Extents that overlap, go backwards, are another file's, go over the end of a group."""
    at, count = leaf(image)
    if count == 0:
        return pointers(image)
    rng = image.rng
    entry = at + 12 + 12 * rng.randrange(count)
    kind = rng.randrange(7)
    if kind == 0:
        image.put(entry + 4, "H", rng.choice((0, 1, 2, 500, 2048, 32768, 32769, 33000, 65535)))
    elif kind == 1:
        image.put(entry + 8, "I", image.any_block())
    elif kind == 2:
        image.put(entry, "I", rng.choice((0, 1, image.get(entry, "I") + 1, 0xFFFFFFFF, 1 << 31)))
    elif kind == 3:
        image.put(at + 2, "H", rng.choice((0, count + 1, count - 1, 4, 5, 85)))
    elif kind == 4:
        image.put(at + 4, "H", rng.choice((0, count, count + 1, 340, 65535)))
    elif kind == 5:
        image.put(entry + 6, "H", rng.choice((1, 65535)))
    else:
        image.put(at + 6, "H", rng.choice((1, 2, 5, 6, 65535)))
    return []


def index_nodes(image: Image) -> list[str]:
    """The tree of a deep file: a child that is its own parent, another's, or not where it says."""
    at = image.inode(image.numbers["/holes"]) + 0x28
    if image.get(at, "H") != 0xF30A:
        return pointers(image)
    entry = at + 12 + 12 * image.rng.randrange(max(1, image.get(at + 2, "H")))
    if image.rng.randrange(2):
        image.put(entry + 4, "I", image.any_block())
    else:
        image.put(entry, "I", image.any_number())
    return []


def pointers(image: Image) -> list[str]:
    """The same block twice, a block of pointers in itself, another file's."""
    if image.extents:
        return index_nodes(image)
    at = image.inode(image.numbers[image.rng.choice(("/holes", "/solid"))]) + 0x28
    for _ in range(image.rng.choice((0, 1, 1, 2))):
        block = image.get(at + 4 * image.rng.choice((12, 13)) if at % image.size else at, "I")
        at = block * image.size if 0 < block < image.blocks else at
    slot = image.rng.randrange(12)
    image.put(at + 4 * slot, "I", image.rng.choice((image.any_block(), at // image.size)))
    return []


def entries(image: Image) -> list[str]:
    """Entries of a directory: doubled, of free inodes, of a wrong type, with odd names."""
    rng = image.rng
    number = rng.choice([image.numbers[path] for path in DIRECTORIES] + [2])
    at = rng.choice(image.map_of(number)) * image.size
    starts, here = [], at
    while here < at + image.size and image.get(here + 4, "H") >= 12:
        starts.append(here)
        here += image.get(here + 4, "H")
    one, other = rng.choice(starts), rng.choice(starts)
    kind = rng.randrange(7)
    if kind == 0:
        image.put(one, "I", image.any_inode())
    elif kind == 1:
        image.put(one + 7, "B", rng.choice((0, 1, 2, 7, 9, 200)))
    elif kind == 2:
        image.put(one + 8, "B", rng.choice((0, ord("/"), ord("."), 255)))
    elif kind == 3:
        image.put(one, "I", image.get(other, "I"))
    elif kind == 4:
        length = min(image.get(other + 6, "B"), image.get(one + 4, "H") - 8)
        image.data[one + 8 : one + 8 + length] = image.data[other + 8 : other + 8 + length]
        image.put(one + 6, "B", length)
    elif kind == 5:
        image.put(one + 6, "B", rng.choice((0, 1, 2, 254, 255)))
    else:
        image.put(one + 4, "H", rng.choice((0, 8, 12, 16, 20, image.get(one + 4, "H") + 12, 1024)))
    return []


def hashes(image: Image) -> list[str]:
    """The tree of a hashed directory: its root, the numbers of its leaves, their order."""
    rng = image.rng
    at = image.map_of(image.numbers["/many"])[0] * image.size
    kind = rng.randrange(6)
    if kind == 0:
        image.put(at + 28, "B", rng.choice((0, 1, 2, 3, 4, 5, 200)))
    elif kind == 1:
        image.put(at + 30, "B", rng.choice((1, 2, 3, 200)))
    elif kind == 2:
        image.put(at + 32, "H", rng.choice((0, 1, 123, 124, 65535)))
    elif kind == 3:
        image.put(at + 34, "H", rng.choice((0, 1, 3, 100, 124, 65535)))
    elif kind == 4:
        image.put(at + 36 + 8 * rng.randrange(3), "I", rng.choice((0, 1, 2, 9, 99999, 1 << 28)))
    else:
        image.put(at + 40 + 8 * rng.randrange(3), "I", rng.getrandbits(32))
    return []


def attribute_blocks(image: Image) -> list[str]:
    """A block of attributes that others have, with a wrong count, or with wrong places."""
    rng = image.rng
    one, other = (image.numbers[path] for path in rng.sample(["/A/bar", "/B", "/holes"], 2))
    at = image.get(image.inode(one) + 0x68, "I") * image.size
    kind = rng.randrange(5)
    if kind == 0:
        image.put(image.inode(other) + 0x68, "I", at // image.size)
    elif kind == 1:
        image.put(at + 4, "I", rng.choice((0, 2, 3, 1024, 1025, 0xFFFFFFFF)))
    elif kind == 2:
        image.put(at + 32 + rng.choice((0, 1)), "B", rng.choice((0, 1, 2, 7, 100, 255)))
    elif kind == 3:
        image.put(at + 34, "H", rng.choice((0, 1, 33, 1020, 1024, 65535)))
    else:
        image.put(at + 40, "I", rng.choice((0, 1, 401, 5000, 1 << 31, 0xFFFFFFFF)))
    return []


def attributes_inside(image: Image) -> list[str]:
    """Attributes in an inode."""
    inode = image.inode(image.rng.choice([image.numbers[path] for path in ("/A/foo", "/solid")]))
    at = inode + 128 + image.get(inode + 128, "H")
    offset, layout = image.rng.choice(((0, "I"), (4, "B"), (5, "B"), (6, "H"), (8, "I"), (12, "I")))
    image.put(at + offset, layout, image.any_number())
    return []


def journal(image: Image) -> list[str]:
    """The journal's superblock, or what it has to replay."""
    rng = image.rng
    if image.data[SUPER + 92] & 4 == 0:
        return super_fields(image)
    blocks = image.map_of(8)
    at = blocks[0] * image.size
    if rng.randrange(2):
        field_at = rng.choice((12, 16, 20, 24, 28, 32, 36, 40, 44, 0x50, 0x54))
        value = rng.choice((0, 1, 2, len(blocks), len(blocks) + 1, 0xFFFFFFFF, image.any_number()))
        struct.pack_into(">I", image.data, at + field_at, value)
        if rng.randrange(2):
            image.put(SUPER + 96, "I", image.get(SUPER + 96, "I") | 4)
        return []
    target = [str(image.any_block()) for _ in range(rng.randrange(1, 4))]
    target = [each for each in target if 1 < int(each) < image.blocks] or ["900"]
    # What debugfs writes is the contents of a file: 4 blocks of a directory's, at another place.
    contents = image.path.with_suffix(".blocks")
    number = rng.choice([2, *image.numbers.values()])
    contents.write_bytes(
        b"".join(
            bytes(image.data[block * image.size : (block + 1) * image.size])
            for block in (image.map_of(number) * 4 or [1, 1, 1, 1])[: len(target)]
        )
    )
    revoke = f" -r {image.any_block() % image.blocks}" if rng.randrange(2) else ""
    return ["jo", f"jw -b {','.join(target)}{revoke} {contents}", "jc"]


def shared_tables(image: Image) -> list[str]:
    """Two groups with one bitmap, or one table of inodes."""
    rng = image.rng
    one, other = rng.sample(range(image.groups), 2) if image.groups > 1 else (0, 0)
    at = rng.choice((0, 4, 8))
    image.put(
        image.group(one) + at, "I", image.get(image.group(other) + rng.choice((0, 4, at)), "I")
    )
    return []


KINDS: dict[str, Callable[[Image], list[str]]] = {
    kind.__name__: kind
    for kind in (
        super_fields,
        super_features,
        group_fields,
        inode_fields,
        orphans,
        names,
        bits,
        extents,
        index_nodes,
        pointers,
        entries,
        hashes,
        attribute_blocks,
        attributes_inside,
        journal,
        shared_tables,
    )
}


def damage(
    folder: Path,
    seed: int,
    kinds: dict[str, Callable[[Image], list[str]]],
    variants: Collection[str] = VARIANTS,
) -> tuple[Path, str, list[str]]:
    """A new damaged image; its kind, and the debugfs commands of it."""
    rng = random.Random(seed)
    kind = list(kinds)[seed % len(kinds)]
    variant = rng.choice(list(variants))
    image = folder / f"{variant}_{seed}.img"
    image.write_bytes(pristine(variant))
    commands = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        try:
            state = Image(image, rng)
            more = kinds[kind](state)
        except (struct.error, IndexError, ValueError, ZeroDivisionError):
            # the first damage is enough
            break
        if rng.randrange(4):
            repair(pristine(variant), state.data)
        state.save()
        script = image.with_suffix(".debugfs")
        script.write_text("\n".join(more) + "\n")
        if more:
            run_within(["debugfs", "-w", "-f", str(script), str(image)], env=ENVIRONMENT,
                       capture_output=True, seconds=60, check=False)  # fmt: skip
        commands += more
    return image, f"{seed} {variant} {kind}", commands
