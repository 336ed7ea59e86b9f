"""Exercise S3, for the graders: every edge, every depth, and what must not be believed."""

from __future__ import annotations

import re
import zlib
from random import Random

import pytest

from labs.tools.machine.qemu_command import DiskError, Drive
from tests.host.ext.images import MIB, bmap, debugfs, make_image, write_blocks
from tests.storage.mapping import (
    ENDLESS,
    Disk,
    Mapped,
    ask,
    file_of,
    node,
    pointers,
    read_disk,
    require_mapped,
    require_refused,
    root,
)
from tests.told import expect, fail

BLOCKS = (1024, 2048, 4096)
HUGE = 1 << 34  # blocks of a disk: their numbers have more than 32 bits


def pointer_file(**words: int) -> Mapped:
    """i_block with some of its words: w0=7 is the first."""
    values = [words.get(f"w{index}", 0) for index in range(15)]
    return Mapped(pointers(values), False)


@pytest.mark.exercise("S3", points=3, host=True)
@pytest.mark.parametrize("block", BLOCKS)
def test_edges_of_pointers(lab, tmp_path, block):
    """Around every border of the three trees, with N = 256, 512 and 1024."""
    slots = block // 4
    double = 12 + slots
    triple = double + slots * slots
    edges = {0, 11, 12, double - 1, double, triple - 1, triple, triple + slots * slots + 3}
    (tmp_path / "root").mkdir()
    write_blocks(tmp_path / "root/edges", block, sorted(edges))
    write_blocks(tmp_path / "root/solid", block, range(double + 40))
    image = make_image(tmp_path / "a.img", 16 * MIB, f"-t ext2 -b {block} -N 64", tmp_path / "root")
    disk = read_disk(image, block)
    near = {edge + step for edge in edges for step in (-1, 0, 1) if edge + step >= 0}
    for name, asked in (("/edges", sorted(near)), ("/solid", range(0, double + 40, 3))):
        answers = ask(lab, disk, file_of(image, name, block), list(asked))
        truth = bmap(image, [(name, each) for each in asked])
        for logical, answer, (physical, _) in zip(asked, answers, truth, strict=True):
            what = f"{name}, block {logical} with {slots} pointers in a block"
            expect(what, answer.physical, physical, f"the answer: {answer}")
            if physical:
                height = sum(logical >= edge for edge in (12, double, triple))
                expect(f"{what}: blocks of pointers read", len(answer.read), height)
        last = [(name, at + a.length - 1) for at, a in zip(asked, answers, strict=True)]
        for (_, at), answer, (physical, _) in zip(last, answers, bmap(image, last), strict=True):
            wanted = answer.physical and answer.physical + answer.length - 1
            expect(f"{name}: the last block, {at}, of the run '{answer}'", wanted, physical)
    beyond = [triple + slots**3 + step for step in (0, 1, slots * slots + 3)]
    for logical, answer in zip(
        beyond, ask(lab, disk, file_of(image, "/edges", block), beyond), strict=True
    ):
        what = f"block {logical}, to which no pointer leads: error, physical"
        expect(what, (answer.error, answer.physical), (0, 0))


@pytest.mark.exercise("S3", points=2, host=True)
@pytest.mark.parametrize("block", BLOCKS)
def test_holes_between_pointers(lab, block):
    """A missing tree is one hole up to its end, and runs end with their block of pointers."""
    slots = block // 4
    double, square = 12 + slots, slots * slots
    triple = double + square
    disk = Disk(block, 500_000)
    disk.put(50, pointers([0] * 5 + [900, 901, 902, 0, 904]))
    disk.put(60, pointers([0, 50]))
    disk.put(70, pointers([0, 60]))
    disk.put(80, pointers([1000 + i for i in range(slots)]))
    full = pointer_file(w3=20, w4=21, w5=23, w12=80, w13=60, w14=70)
    at = triple + square + slots
    wanted = [
        (0, 0, 3, False), (3, 20, 2, False), (5, 23, 1, False), (6, 0, 6, False),
        (12, 1000, slots, False), (double - 1, 1000 + slots - 1, 1, False),
        (double, 0, slots, False), (double + 3, 0, slots - 3, False),
        (double + slots, 0, 5, False), (double + slots + 5, 900, 3, False),
        (double + slots + 8, 0, 1, False), (double + slots + 10, 0, slots - 10, False),
        (double + 2 * slots + 1, 0, slots - 1, False), (triple - 1, 0, 1, False),
        (triple, 0, square, False), (triple + square - 2, 0, 2, False),
        (at + 6, 901, 2, False), (at + slots, 0, slots, False),
        (triple + 2 * square + 7, 0, square - 7, False),
    ]  # fmt: skip
    require_mapped(lab, disk, full, wanted)
    empty = pointer_file()
    wanted = [(12, 0, slots, False), (double + 9, 0, square - 9, False)]
    wanted += [(triple + 9, 0, slots * square - 9, False), (triple, 0, slots * square, False)]
    require_mapped(lab, disk, empty, wanted)
    beyond = [triple + slots * square, 1 << 40, (1 << 63) - 5]
    for logical, answer in zip(beyond, ask(lab, disk, full, beyond), strict=True):
        expect(f"block {logical}, where no pointer leads", (answer.error, answer.physical), (0, 0))


@pytest.mark.exercise("S3", points=2, host=True)
def test_damaged_pointers(lab):
    """Numbers outside the disk, at every level."""
    disk = Disk(1024, 3000)
    disk.put(50, pointers([5, 2998, 2999, 3000]))
    disk.put(60, pointers([3000, 50]))
    cases = {
        "a pointer in the inode": (pointer_file(w3=3000), 3),
        "the pointer to a block of pointers": (pointer_file(w12=3000), 12),
        "the pointer to a tree": (pointer_file(w14=0xFFFFFFFF), 80_000),
        "a pointer in the middle": (pointer_file(w13=60), 12 + 256),
        "a run that ends outside": (pointer_file(w12=50), 13),
        "two neighbours, the second outside": (pointer_file(w0=2999, w1=3000), 0),
    }
    for what, (file, logical) in cases.items():
        require_refused(lab, disk, file, logical, what)
    require_mapped(lab, disk, pointer_file(w12=50), [(12, 5, 1, False)])


def random_tree(random: Random, disk: Disk, depth: int) -> tuple[Mapped, list[tuple]]:
    """A tree with blocks of the disk from 100 on, and what is in it: (logical, length, physical,
    unwritten), ascending."""
    extents, place = [], iter(range(100, 10_000))
    logical = random.randrange(3)

    def build(level: int, room: int) -> list[tuple[int, int, int]]:
        nonlocal logical
        entries = []
        for _ in range(random.randrange(1, room + 1) if level else room):
            if level == 0:
                logical += random.choice((0, 0, 1, 7, 5000))
                length = random.choice((1, 2, 9, 400, 32767, 32768))
                unwritten = length < 32768 and random.random() < 0.3
                physical = random.randrange(1 << 33, HUGE - 40_000)
                extents.append((logical, length, physical, unwritten))
                entries.append((logical, length + 32768 * unwritten, physical))
                logical += length
            else:
                below = build(level - 1, 340 if level == 1 and depth == 1 else 3)
                number = next(place)
                disk.put(number, node(level - 1, below, 340))
                entries.append((below[0][0], 0, number))
        return entries

    return root(depth, build(depth, 4)), extents


@pytest.mark.exercise("S3", points=3, host=True)
@pytest.mark.parametrize("depth", range(6))
def test_trees_of_extents(lab, depth):
    """Depth 0 to 5, leaves of up to 340, unwritten and longest extents: first, last, before,
    after each, and what was read for it."""
    random = Random(lab.seed + depth)
    disk = Disk(4096, HUGE)
    file, extents = random_tree(random, disk, depth)
    chosen = [0, len(extents) - 1, *random.sample(range(len(extents)), min(40, len(extents)))]
    wanted = []
    for index in chosen:
        logical, length, physical, unwritten = extents[index]
        wanted += [(logical, physical, length, unwritten)]
        wanted += [(logical + length - 1, physical + length - 1, 1, unwritten)]
        end = logical + length
        following = extents[index + 1][0] if index + 1 < len(extents) else end + ENDLESS
        if following > end:
            wanted.append((end, 0, following - end, False))
    if extents[0][0]:
        wanted.append((0, 0, extents[0][0], False))
    for (logical, physical, *_), answer in zip(
        wanted, require_mapped(lab, disk, file, wanted), strict=True
    ):
        if physical:
            expect(f"block {logical}: nodes read", len(answer.read), depth)


@pytest.mark.exercise("S3", points=2, host=True)
def test_unwritten_and_longest(lab):
    """32768 is the longest written extent; 32769 is one unwritten block."""
    disk = Disk(1024, 200_000)
    file = root(0, [(0, 32768, 1000), (32768, 32769, 50_000), (40_000, 65535, 60_000)])
    wanted = [(0, 1000, 32768, False), (32767, 33767, 1, False), (32768, 50_000, 1, True)]
    wanted += [(32769, 0, 7231, False), (40_000, 60_000, 32767, True)]
    wanted += [(72_766, 92_766, 1, True), (72_767, 0, ENDLESS, False)]
    require_mapped(lab, disk, file, wanted)


@pytest.mark.exercise("S3", points=3, host=True)
def test_damaged_trees(lab):
    """Loops, wrong depths, children outside their part, blocks outside the disk, lengths."""
    disk = Disk(1024, 60_000)
    disk.put(50, node(1, [(10, 0, 50)]))
    disk.put(51, node(0, [(10, 5, 900)]))
    disk.put(52, node(2, [(10, 0, 51)]))
    disk.put(53, node(0, [(10, 5, 900), (200, 5, 950)]))
    disk.put(54, b"\0" * 16)
    disk.put(55, node(0, [(20, 1, 900), (15, 1, 950), (30, 1, 900)]))
    disk.put(56, node(1, [(10, 0, 57)]))
    disk.put(57, node(1, [(10, 0, 56)]))
    disk.put(58, node(0, [(10, 51, 1 << 16)]))  # read as an index it leads to block 51
    cases = {
        "a loop of one node": (root(2, [(10, 0, 50)]), 12),
        "a loop of two nodes": (root(3, [(10, 0, 56)]), 12),
        "a leaf one level too high": (root(2, [(10, 0, 51)]), 12),
        "a leaf that would lead to a leaf": (root(2, [(10, 0, 58)]), 12),
        "a node one level too low": (root(1, [(10, 0, 50)]), 12),
        "a node two levels too high": (root(2, [(10, 0, 52)]), 12),
        "a child that begins before its entry": (root(1, [(11, 0, 51)]), 12),
        "a child with an entry of the next node's": (root(1, [(10, 0, 53), (200, 0, 51)]), 12),
        "a child whose last entry is the next node's": (root(1, [(10, 0, 53), (150, 0, 51)]), 160),
        "a child that is no node": (root(1, [(10, 0, 54)]), 12),
        "entries that do not ascend": (root(1, [(10, 0, 55)]), 16),
        "a child outside the disk": (root(1, [(10, 0, 60_000)]), 12),
        "a child beyond 32 bits": (root(1, [(10, 0, (1 << 32) + 51)]), 12),
        "a child beyond 40 bits": (root(1, [(10, 0, (1 << 40) + 51)]), 12),
        "an extent beyond 40 bits": (root(0, [(0, 10, (1 << 40) + 100)]), 3),
        "an extent that ends outside the disk": (root(0, [(0, 10, 59_991)]), 0),
        "an extent beyond 32 bits": (root(0, [(0, 10, (1 << 32) + 100)]), 3),
        "an extent in the superblock": (root(0, [(0, 10, 0)]), 3),
        "an extent of length 0": (root(0, [(0, 0, 900)]), 0),
        "an extent that reaches into the next": (root(0, [(0, 10, 900), (9, 1, 950)]), 2),
        "an extent around the end of 32 bits": (
            root(0, [(0xFFFFFFF0, 32, 900), (0xFFFFFFF8, 1, 950)]),
            0xFFFFFFF1,
        ),
        "an unwritten extent into the next": (root(0, [(0, 32778, 900), (9, 1, 950)]), 2),
        "depth 6": (root(6, [(0, 0, 50)]), 2),
        "more entries than there is room": (root(0, [(i, 1, 900 + i) for i in range(5)]), 2),
    }
    for what, (file, logical) in cases.items():
        require_refused(lab, disk, file, logical, what)
    after = root(1, [(10, 0, 53)])
    require_mapped(lab, disk, after, [(12, 902, 3, False), (200, 950, 5, False)])


@pytest.mark.exercise("S3", points=3, once=True)
@pytest.mark.parametrize("kind", ["ext2", "ext4"])
@pytest.mark.parametrize("block", [1024, 4096])
def test_maps_in_the_kernel(lab, tmp_path, kind, block):
    """The whole kernel on a drive: what it says of random blocks is what debugfs says; contents;
    and what it asks the drive for."""
    random = Random(lab.seed + block)
    slots = block // 4
    (tmp_path / "root").mkdir()
    places = sorted({0, 11, 12, 11 + slots, 12 + slots, *random.sample(range(9000), 300)})
    write_blocks(tmp_path / "root/far", block, places)
    write_blocks(tmp_path / "root/kept", block, range(3), 400)
    data = random.randbytes(block * 400 + 7)
    (tmp_path / "root/solid").write_bytes(data)
    options = f"-t {kind} -b {block} -N 64"
    image = make_image(tmp_path / "a.img", 32 * MIB, options, tmp_path / "root")
    if kind == "ext4":
        debugfs(image, ["fallocate /kept 5 300"], write=True)
    chosen = [*random.sample(places, 12), *random.sample(range(9000), 8)]
    asked = [("/far", each) for each in chosen]
    asked += [("/kept", each) for each in (0, 2, 4, 5, 300, 301)]
    lines = [
        f"map hdb {path} {' '.join(str(each) for name, each in asked if name == path)}"
        for path in ("/far", "/kept")
    ]
    script = "; ".join([*lines, "sum hdb /solid", "sum hdb /kept"])
    result = lab.run(script, drives=[Drive(image, 1)], guest_limit=60).check()
    said = result.serial.replace("\r", "")
    seen = re.findall(r"^map (\d+) -> (\d+)( unwritten)?$", said, re.MULTILINE)
    expect("answers of map", len(seen), len(asked))
    for (path, logical), answer, truth in zip(asked, seen, bmap(image, asked), strict=True):
        expect(f"map hdb {path} {logical}", (int(answer[1]), bool(answer[2])), truth)
    zeros = (tmp_path / "root/kept").read_bytes()
    for name, contents in (("/solid", data), ("/kept", zeros)):
        if f"crc32 {zlib.crc32(contents):#010x}, {len(contents)} bytes, {name}" not in said:
            fail(f"sum hdb {name}: expected crc32 {zlib.crc32(contents):#010x}")


@pytest.mark.exercise("S3", points=2, once=True)
def test_a_bad_sector_in_the_map(lab, tmp_path):
    """A block of pointers that cannot be read is EIO for what it leads to, and only for that."""
    (tmp_path / "root").mkdir()
    write_blocks(tmp_path / "root/file", 1024, range(600))
    image = make_image(tmp_path / "a.img", 4 * MIB, "-t ext2 -b 1024 -N 64", tmp_path / "root")
    bad = int.from_bytes(file_of(image, "/file", 1024).words[52:56], "little")
    script = "map hdb /file 3; map hdb /file 100; map hdb /file 400; map hdb /file 200"
    drives = [Drive(image, 1, errors=(DiskError("read", bad * 2),))]
    said = lab.run(script, drives=drives).serial.replace("\r", "")
    truth = bmap(image, [("/file", each) for each in (3, 100, 200)])
    for logical, (physical, _) in zip((3, 100, 200), truth, strict=True):
        if f"map {logical} -> {physical}\n" not in said:
            fail(f"map hdb /file {logical}, with a bad sector elsewhere: expected {physical}")
    if "EIO" not in said:
        fail("map hdb /file 400, below a bad sector: expected EIO")
