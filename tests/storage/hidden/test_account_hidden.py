"""Exercise S10, for the graders: layouts at random, file systems of mke2fs next to what dumpe2fs
and debugfs say, superblocks of which one number is wrong, and the kernel."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from labs.tools.machine.qemu_command import Drive
from tests.lesson3.support import with_files
from tests.storage.account import (
    BIGALLOC,
    HAS_64BIT,
    HUGE_FILE,
    HUGE_INODE,
    JOURNAL_DEVICE,
    LINE,
    META_BG,
    SHEET,
    SPARSE_SUPER,
    SPARSE_SUPER2,
    FileImage,
    Image,
    Layout,
    check,
    check_layout,
    refused,
)
from tests.support.told import expect

FEATURES = {
    "none": (0, 0, 0),
    "sparse_super": (0, 0, SPARSE_SUPER),
    "sparse_super2": (SPARSE_SUPER2, 0, SPARSE_SUPER),
    "meta_bg": (0, META_BG, SPARSE_SUPER),
    "64bit": (0, HAS_64BIT, SPARSE_SUPER),
    "meta_bg,64bit": (0, META_BG | HAS_64BIT, 0),
}
GROUPS = 60_000  # at most: the other account is in Python


def layout(chance: Random, features: str) -> Layout:
    """A file system that is in order."""
    compat, incompat, ro_compat = FEATURES[features]
    block = 1024 << chance.randrange(7)
    inode = chance.choice([size for size in (128, 256, 512, 1024) if size <= block])
    wide = bool(incompat & HAS_64BIT)
    made = Layout(
        blocks=0, block=block, compat=compat, incompat=incompat, ro_compat=ro_compat | HUGE_FILE,
        blocks_per_group=chance.choice((8 * block, 8 * block - 8, 4096, 1024)),
        inodes_per_group=chance.randrange(max(block // inode, 8), min(8 * block, 60_000)) // 8 * 8,
        inode_size=inode, descriptor_size=chance.choice((64, 128, 1024)) if wide else 77,
        table=chance.randrange(3, 900),
    )  # fmt: skip
    made = replace(made, inodes_per_group=max(made.inodes_per_group, block // inode))
    groups = chance.choice((1, 2, chance.randrange(3, 400), chance.randrange(3, GROUPS)))
    groups = min(groups, (1 << 32) // made.inodes_per_group - 1)
    rest = chance.choice((0, 1, chance.randrange(made.blocks_per_group)))
    blocks = made.first + groups * made.blocks_per_group - rest
    blocks = max(blocks, 4096) if wide else min(max(blocks, 4096), 0xFFFFFFFF)
    made = replace(made, blocks=blocks)
    many = -(-made.groups // (made.block // made.width))
    made = replace(
        made,
        first_meta_bg=chance.choice((0, many, chance.randrange(many + 1))),
        backups=chance.choice(((0, 0), (1, max(1, made.groups - 1)), (1, 0))),
    )
    left = made.blocks - made.account()["= overhead"]
    if left <= 0:
        return layout(chance, features)
    free = chance.randrange(left + 1)
    used = left - free
    return replace(
        made,
        free=free,
        reserved=chance.choice((0, free, made.blocks, made.blocks // 20)),
        resize_units=used // 3 * (block // 512),
        journal_units=used // 2 * (block // 512),
    )


@pytest.mark.exercise("S10", points=3, gate=True, host=True)
@pytest.mark.parametrize("features", FEATURES)
def test_random_layouts(lab, features):
    """Random file systems of each kind of features and each block size: the account is right."""
    chance = Random(f"{lab.seed} {features}")
    for _ in range(12):
        check_layout(lab, layout(chance, features))


@pytest.mark.exercise("S10", points=2, gate=True, host=True)
def test_copies_of_each_group(lab):
    """Copies of the superblock: in groups that are powers of 3, 5 and 7, each tried as the last
    group, up to 3000."""
    powers = {base**n for base in (3, 5, 7) for n in range(1, 8) if base**n < 3000}
    for groups in sorted({power + more for power in powers for more in (0, 1)} | {1, 2, 16, 36}):
        check_layout(
            lab, Layout(groups * 1024, blocks_per_group=1024, inodes_per_group=16, table=9)
        )


@pytest.mark.exercise("S10", points=2, host=True)
def test_counts_of_more_than_32_bits(lab):
    """Counts of more than 32 bits: used with 64bit, ignored without, as is the size of a
    descriptor."""
    large = replace(
        SHEET, blocks=(5 << 32) + 12_345, blocks_per_group=524_288, block=65_536,
        inodes_per_group=4096, incompat=HAS_64BIT, free=(4 << 32) + 1, reserved=(3 << 32) + 5,
        journal_units=0, resize_units=0,
    )  # fmt: skip
    check_layout(lab, large)
    used = large.account()["= used"]
    huge = replace(large, ro_compat=SPARSE_SUPER | HUGE_FILE, journal_flags=HUGE_INODE,
                   journal_units=used // 2)  # fmt: skip
    check_layout(lab, huge)
    # A sum of 32 bits wraps in the tables of inodes of one group, and in those of all.
    check_layout(lab, replace(
        large, inodes_per_group=524_288, inode_size=16_384, blocks=8191 * 524_288,
        changed={}, free=0, reserved=0,
    ))  # fmt: skip
    check_layout(lab, replace(SHEET, changed={
        "blocks_high": 7, "free_high": 8, "reserved_high": 9, "descriptor_size": 3,
    }))  # fmt: skip
    check_layout(lab, replace(SHEET, revision=0, inodes_per_group=16_384, changed={
        "inode_size": 0,
    }))  # fmt: skip


BAD = {
    "magic": (0xEF52,),
    "log_block": (7, 22, 31, 32, 0xFFFFFFFF),
    "first": (1, 0xFFFFFFFF),
    "blocks_per_group": (0, 32_769, 0xFFFFFFFF),
    "inodes_per_group": (0, 15, 32_769, 0x80000000, 0xFFFFFFFF),
    "inode_size": (0, 64, 192, 255, 8192, 0xFFFF),
    "incompat": (JOURNAL_DEVICE,),
    "ro_compat": (SPARSE_SUPER | BIGALLOC,),
    "inodes": (0, 4_923_391, 0xFFFFFFFF),
    "blocks": (0, 0xFFFFFFFF),
    "free": (19_663_561, 19_354_569, 0xFFFFFFFF),
    "reserved": (19_663_561, 0xFFFFFFFF),
}


@pytest.mark.exercise("S10", points=3, host=True)
@pytest.mark.parametrize("name", BAD)
def test_one_number_is_wrong(lab, name):
    """The superblock of 2010 with one wrong number: the field is named."""
    for value in BAD[name]:
        changed = replace(SHEET, changed={name: value}).image()
        refused(lab, f"{name} is {value:#x}", changed)
    check(lab, "the file system of 2010", SHEET.image(), {"= overhead": 308_992})


@pytest.mark.exercise("S10", points=2, host=True)
def test_wrong_numbers_of_64bit(lab):
    """Impossible descriptor sizes and counts with 64bit, meta_bg's first group, no blocks: each is
    refused."""
    wide = replace(SHEET, incompat=HAS_64BIT, resize_units=0)  # its descriptors take more
    check_layout(lab, wide)
    for size in (0, 32, 63, 65, 96, 8192, 0xFFFF):
        refused(
            lab,
            f"descriptor_size is {size}",
            replace(wide, changed={"descriptor_size": size}).image(),
        )
    for high in (1, 0xFFFF, 0xFFFFFFFF):
        refused(
            lab, f"blocks_high is {high:#x}", replace(wide, changed={"blocks_high": high}).image()
        )
        refused(lab, f"free_high is {high:#x}", replace(wide, changed={"free_high": high}).image())
        refused(
            lab,
            f"reserved_high is {high:#x}",
            replace(wide, changed={"reserved_high": high}).image(),
        )
    all_ones = {
        "blocks": 0xFFFFFFFF,
        "blocks_high": 0xFFFFFFFF,
        "inodes": 0,
        "free": 0,
        "reserved": 0,
    }
    refused(lab, "2^64 - 1 blocks", replace(wide, changed=all_ones).image())
    # (1 << 32) + 601 groups have as many inodes in 32 bits as 601.
    blocks = ((1 << 32) + 601) * 32_768
    wrapped = {"blocks": blocks & 0xFFFFFFFF, "blocks_high": blocks >> 32}
    refused(lab, "2^32 groups more", replace(wide, changed=wrapped).image())
    meta = replace(SHEET, incompat=META_BG, changed={"first_meta_bg": 6})
    refused(lab, "first_meta_bg is 6 of 5", meta.image())
    check_layout(lab, replace(SHEET, incompat=META_BG, first_meta_bg=5))
    check_layout(lab, replace(SHEET, changed={"first_meta_bg": 6}))  # without meta_bg it is nothing
    meta = replace(wide, incompat=META_BG | HAS_64BIT, first_meta_bg=10)
    check_layout(lab, meta)
    refused(lab, "first_meta_bg is 11 of 10", replace(meta, changed={"first_meta_bg": 11}).image())
    small = Layout(8193, block=1024, blocks_per_group=8192, inodes_per_group=2008, inode_size=128)
    check_layout(lab, small)
    for blocks in (0, 1):
        refused(
            lab, f"{blocks} blocks of 1 KiB", replace(small, changed={"blocks": blocks}).image()
        )


# Five groups, and all that can be as large as a block, or as a bitmap of one block, is.
SMALL = Layout(40_000, block=1024, blocks_per_group=8192, inodes_per_group=8192, inode_size=128)
LIMITS = {
    # What is reserved is where the inode table of group 0 would be.
    "the first block is 0": replace(SMALL, reserved=SMALL.table, changed={"first": 0}),
    "the first block is 2": replace(SMALL, changed={"first": 2}),
    "8193 blocks a group": replace(SMALL, blocks_per_group=8193),
    "8200 inodes a group": replace(SMALL, inodes_per_group=8200),
    "inodes of 2 KiB": replace(SMALL, inodes_per_group=64, inode_size=2048),
    "descriptors of 2 KiB": replace(SMALL, incompat=HAS_64BIT, descriptor_size=2048),
    "no inodes": replace(SHEET, inodes_per_group=0),
    "15 inodes of 256 bytes a group": replace(SHEET, inodes_per_group=15),
    "32,776 inodes a group": replace(SHEET, inodes_per_group=32_776),
}


@pytest.mark.exercise("S10", points=2, host=True)
def test_limits_of_small_blocks(lab):
    """Limits that a block sets, of 1 KiB and of 4: refused beyond them, although all other numbers
    fit together, and counted at them."""
    for what, beyond in LIMITS.items():
        refused(lab, what, beyond.image())
    meta = META_BG | HAS_64BIT
    for at in (
        SMALL,
        replace(SMALL, inodes_per_group=64, inode_size=1024),
        replace(SMALL, compat=SPARSE_SUPER2, backups=(0, 4)),
        replace(SMALL, incompat=meta, descriptor_size=1024),  # a meta group is one group
        replace(SMALL, incompat=meta, descriptor_size=512),
        replace(SHEET, inodes_per_group=16),
    ):
        check_layout(lab, at)


@pytest.mark.exercise("S10", points=1, host=True)
def test_not_a_file_system(lab):
    """Zeros, random bytes and drives that end too early: refused."""
    noise = Random(lab.seed).randbytes(8192)
    refused(lab, "zeros", Image(1 << 20, {}))
    refused(lab, "random bytes", Image(8192, {0: noise}))
    for size in (0, 1023, 1024, 2047, 2048, 4096, 4127):
        refused(lab, f"a drive of {size} bytes", Image(size, SHEET.image().parts))
    check_layout(lab, replace(SHEET, free=SHEET.free - lab.seed % 9999))


MADE = {
    "ext2": (64 << 20, "-t ext2 -b 1024"),
    "ext3": (200 << 20, "-t ext3 -b 2048 -N 5000"),
    "ext4": (300 << 20, "-t ext4 -b 4096"),
    "a short last group": ((129 << 20) + (3 << 20), "-t ext4 -b 4096 -O ^resize_inode"),
    "blocks of 1 KiB": (100 << 20, "-t ext4 -b 1024 -g 1024"),
    "meta_bg": (150 << 20, "-t ext4 -b 1024 -g 512 -O meta_bg,^resize_inode"),
    "meta_bg, 32 bits": (150 << 20, "-t ext4 -b 1024 -g 512 -O meta_bg,^resize_inode,^64bit"),
    "flex_bg": (300 << 20, "-t ext4 -b 1024 -G 64 -I 512"),
    "no sparse_super": (100 << 20, "-t ext2 -b 1024 -O ^sparse_super,^resize_inode"),
    "sparse_super2": (100 << 20, "-t ext4 -b 1024 -O sparse_super2,^resize_inode"),
    "the file system of 2010": (
        78_654_240 << 10,
        "-t ext3 -b 4096 -I 256 -N 4923392 -J size=128 -O none,has_journal,ext_attr,resize_inode,"
        "dir_index,filetype,sparse_super,large_file",
    ),
}


def tool(*words: object) -> str:
    """What a tool of e2fsprogs prints."""
    command = list(map(str, words))
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def dumped(image: Path) -> dict[str, int]:
    """The account as dumpe2fs and debugfs have it: each group's lines, and two inodes."""
    said = tool("dumpe2fs", image)

    def of(name: str) -> int:
        found = re.search(rf"^{name}: +(\d+)$", said, re.MULTILINE)
        return int(found[1]) if found else 0

    groups = len(re.findall(r"^Group \d+:", said, re.MULTILINE))
    copies = len(re.findall(r"(?:Primary|Backup) superblock at", said))
    for first, last in re.findall(r"Group descriptors? at (\d+)(?:-(\d+))?", said):
        copies += int(last or first) - int(first) + 1
    tables = groups * of("Inode blocks per group")
    held = [
        int(re.search(r"Blockcount: (\d+)", tool("debugfs", "-R", f"stat <{number}>", image))[1])
        for number in (8, 7)
    ]
    block = of("Block size")
    lines = {
        "inode tables": tables, "bitmaps": 2 * groups,
        "superblocks and descriptors": copies + of("First block"),
        "free": of("Free blocks"), "reserved for root": of("Reserved block count"),
        "journal": held[0] * 512 // block, "room for descriptors": held[1] * 512 // block,
    }  # fmt: skip
    overhead = tables + 2 * groups + lines["superblocks and descriptors"]
    lines["= used"] = of("Block count") - lines["free"] - overhead
    return lines


@pytest.mark.exercise("S10", points=3, host=True)
@pytest.mark.parametrize("name", MADE)
def test_next_to_dumpe2fs(lab, name, tmp_path):
    """File systems made by mke2fs: the account agrees with dumpe2fs."""
    size, options = MADE[name]
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(size)
    tool("mke2fs", "-q", "-F", "-E", "lazy_itable_init=1,nodiscard", *options.split(), image)
    check(lab, name, FileImage(image), dumped(image))
    image.unlink()


@pytest.mark.exercise("S10", points=1, gate=True, once=True)
def test_in_the_kernel(lab, tmp_path):
    """The program in the kernel: it reads a drive and prints the same account."""
    image = tmp_path / "b.img"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    tool("mke2fs", "-q", "-F", "-t", "ext4", "-b", "1024", image)
    wanted = dumped(image)
    fields = with_files(lab, {"bin/account": lab.build("build/user/bin/account").read_bytes()})
    result = lab.run(
        "run /bin/account /dev/hdb", drives=[Drive(image, 1)], guest_limit=120, **fields
    )
    said = result.check().serial.replace("\r", "")
    found = {name.strip(): int(value) for name, value in LINE.findall(said)}
    for name, value in wanted.items():
        expect(f"on the kernel: {name}", found.get(name), value)
