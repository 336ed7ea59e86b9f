"""Exercise S3, for the graders: every edge, every depth, and what must not be believed."""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from random import Random

import pytest

from labs.tools.machine.qemu_command import DiskError, Drive
from tests.host.ext.images import MIB, bmap, debugfs, make_image, write_blocks
from tests.storage.mapping import (
    ENDLESS,
    Disk,
    Mapped,
    Wanted,
    ask,
    file_of,
    node,
    pointers,
    read_disk,
    require_mapped,
    require_places,
    require_told_apart,
    root,
)
from tests.support.told import expect, fail

BLOCKS = (1024, 2048, 4096)
HUGE = 1 << 34  # blocks of a disk: their numbers have more than 32 bits


def pointer_file(**words: int) -> Mapped:
    """i_block with some of its words: w0=7 is the first."""
    values = [words.get(f"w{index}", 0) for index in range(15)]
    return Mapped(pointers(values), False)


@pytest.mark.exercise("S3", points=3, host=True)
@pytest.mark.parametrize("block", BLOCKS)
def test_edges_of_pointers(lab, tmp_path, block):
    """Blocks at each limit of the three trees, with N = 256, 512 and 1024: mapped right."""
    slots = block // 4
    double = 12 + slots
    triple = double + slots * slots
    edges = {0, 11, 12, double - 1, double, triple - 1, triple, triple + slots * slots + 3}
    chance = Random(lab.seed)
    edges |= {12 + chance.randrange(slots), *chance.sample(range(double, triple), 5)}
    (tmp_path / "root").mkdir()
    write_blocks(tmp_path / "root/edges", block, sorted(edges))
    write_blocks(tmp_path / "root/solid", block, range(double + chance.randrange(40, 80)))
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
    """Holes in pointers: a missing tree is one hole up to its end, and a run ends with its block of
    pointers."""
    slots = block // 4
    double, square = 12 + slots, slots * slots
    triple = double + square
    disk = Disk(block, 500_000)
    part, one, two, three = Random(lab.seed).sample(range(100, 1000), 4)
    at, run, data = Random(lab.seed + 1).sample(range(2000, 400_000), 3)
    disk.put(part, pointers([0] * 5 + [data, data + 1, data + 2, 0, data + 4]))
    disk.put(one, pointers([run + i for i in range(slots)]))
    disk.put(two, pointers([0, part]))
    disk.put(three, pointers([0, two]))
    full = pointer_file(w3=at, w4=at + 1, w5=at + 3, w12=one, w13=two, w14=three)
    far = triple + square + slots
    wanted = [
        (0, 0, 3, False), (3, at, 2, False), (5, at + 3, 1, False), (6, 0, 6, False),
        (12, run, slots, False), (double - 1, run + slots - 1, 1, False),
        (double, 0, slots, False), (double + 3, 0, slots - 3, False),
        (double + slots, 0, 5, False), (double + slots + 5, data, 3, False),
        (double + slots + 8, 0, 1, False), (double + slots + 10, 0, slots - 10, False),
        (double + 2 * slots + 1, 0, slots - 1, False), (triple - 1, 0, 1, False),
        (triple, 0, square, False), (triple + square - 2, 0, 2, False),
        (far + 6, data + 1, 2, False), (far + slots, 0, slots, False),
        (triple + 2 * square + 7, 0, square - 7, False),
    ]  # fmt: skip
    require_mapped(lab, disk, full, wanted)
    some = [(logical, *rest) for logical, *rest in wanted if rest[0]]
    require_places(lab, disk, replace(full, most=3), some)
    require_places(lab, disk, replace(full, most=2 * slots), some)  # more than any run has
    empty = pointer_file()
    wanted = [(12, 0, slots, False), (double + 9, 0, square - 9, False)]
    wanted += [(triple + 9, 0, slots * square - 9, False), (triple, 0, slots * square, False)]
    require_mapped(lab, disk, empty, wanted)
    low = [1 << 40, (1 << 32) + 3, (1 << 32) + 12]  # of these, 32 bits are blocks that are there
    beyond = [triple + slots * square, *low, (1 << 63) - 5]
    for logical, answer in zip(beyond, ask(lab, disk, full, beyond), strict=True):
        expect(f"block {logical}, where no pointer leads", (answer.error, answer.physical), (0, 0))


@pytest.mark.exercise("S3", points=2, host=True)
def test_damaged_pointers(lab):
    """Pointers outside the disk, at every level: an error."""
    chance = Random(lab.seed)
    end = chance.randrange(2000, 9000)  # of the disk
    first, bad, data, high, higher = chance.sample(range(1, 1000), 5)
    disk = Disk(1024, end)
    disk.put(high, pointers([first]))
    disk.put(higher, pointers([high]))
    disk.put(first, pointers([data, end - 2, end - 1, end]))
    disk.put(bad, pointers([end, first]))
    cases = {
        "a pointer in the inode": (pointer_file(w3=end), 3),
        "the pointer to a block of pointers": (pointer_file(w12=end), 12),
        "the pointer to a tree": (pointer_file(w14=0xFFFFFFFF), 80_000),
        "a pointer in the middle": (pointer_file(w13=bad), 12 + 256),
        "a run that ends outside": (pointer_file(w12=first), 13),
        "two neighbours, the second outside": (pointer_file(w0=end - 1, w1=end), 0),
        "a run of the second tree that ends outside": (pointer_file(w13=high), 12 + 256 + 1),
        "a pointer of the third tree": (pointer_file(w14=higher), 12 + 256 + 256 * 256 + 3),
    }
    sound = (
        (pointer_file(w12=first), [(12, data, 1, False)]),
        (pointer_file(w0=end - 1, w1=data), [(0, end - 1, 1, False), (1, data, 1, False)]),
        (pointer_file(w13=bad), [(12 + 256 + 256, data, 1, False)]),
        (pointer_file(w14=higher), [(12 + 256 + 256 * 256, data, 1, False)]),
    )
    require_told_apart(lab, disk, cases, sound)


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


@pytest.mark.exercise("S3", points=1, host=True)
@pytest.mark.parametrize("depth", range(6))
def test_places_in_trees(lab, depth):
    """Trees of depth 0 to 5: each block is where it should be, however short the run is that is
    answered."""
    require_places(lab, *tree_with_questions(lab.seed + depth, depth))


@pytest.mark.exercise("S3", points=2, host=True)
@pytest.mark.parametrize("depth", range(6))
def test_trees_of_extents(lab, depth):
    """Trees of depth 0 to 5 with leaves of up to 340 extents: blocks at and around each extent are
    mapped right, and only what is needed is read."""
    disk, file, wanted = tree_with_questions(lab.seed + depth, depth)
    for (logical, physical, *_), answer in zip(
        wanted, require_mapped(lab, disk, file, wanted), strict=True
    ):
        if physical:
            expect(f"block {logical}: nodes read", len(answer.read), depth)


def tree_with_questions(seed: int, depth: int) -> tuple[Disk, Mapped, list[Wanted]]:
    """A tree with that many levels below its root, and what is to be found in it."""
    random = Random(seed)
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
    return disk, file, wanted


@pytest.mark.exercise("S3", points=2, host=True)
def test_unwritten_and_longest(lab):
    """Lengths 32768 and 32769: the longest written extent, and one unwritten block."""
    disk = Disk(1024, 400_000)
    long, one, last = Random(lab.seed).sample(range(1000, 300_000), 3)
    file = root(0, [(0, 32768, long), (32768, 32769, one), (40_000, 65535, last)])
    wanted = [(0, long, 32768, False), (32767, long + 32767, 1, False), (32768, one, 1, True)]
    wanted += [(32769, 0, 7231, False), (40_000, last, 32767, True)]
    wanted += [(72_766, last + 32766, 1, True), (72_767, 0, ENDLESS, False)]
    wanted += [((1 << 32) + 40_010, 0, ENDLESS, False)]  # its 32 bits are in an extent
    require_mapped(lab, disk, file, wanted)


@pytest.mark.exercise("S3", points=3, host=True)
def test_damaged_trees(lab):
    """Damaged trees (loops, depths, ranges, blocks outside the disk, lengths): an error."""
    chance = Random(lab.seed)
    disk = Disk(1024, 60_000)
    loop, leaf, high, wide, no_node, mixed, ring, ring_2, index, far = chance.sample(
        range(100, 30_000), 10
    )
    data, other = chance.sample(range(31_000, 59_000, 10), 2)
    disk.put(loop, node(1, [(10, 0, loop)]))
    disk.put(leaf, node(0, [(10, 5, data)]))
    disk.put(high, node(2, [(10, 0, leaf)]))
    disk.put(wide, node(0, [(10, 5, data), (200, 5, other)]))
    disk.put(no_node, b"\0" * 16)
    disk.put(mixed, node(0, [(20, 1, data), (15, 1, other), (30, 1, data)]))
    disk.put(ring, node(1, [(10, 0, ring_2)]))
    disk.put(ring_2, node(1, [(10, 0, ring)]))
    disk.put(index, node(0, [(10, leaf, 1 << 16)]))  # read as an index it leads to the leaf
    disk.put(far, node(0, [(10, 10, 59_991)]))
    cases = {
        "a loop of one node": (root(2, [(10, 0, loop)]), 12),
        "a loop of two nodes": (root(3, [(10, 0, ring)]), 12),
        "a leaf one level too high": (root(2, [(10, 0, leaf)]), 12),
        "a leaf that would lead to a leaf": (root(2, [(10, 0, index)]), 12),
        "a node one level too low": (root(1, [(10, 0, loop)]), 12),
        "a node two levels too high": (root(2, [(10, 0, high)]), 12),
        "a child that begins before its entry": (root(1, [(11, 0, leaf)]), 12),
        "a child with an entry of the next node's": (root(1, [(10, 0, wide), (200, 0, leaf)]), 12),
        "a child whose last entry is the next node's": (
            root(1, [(10, 0, wide), (150, 0, leaf)]),
            160,
        ),
        "a child that is no node": (root(1, [(10, 0, no_node)]), 12),
        "entries that do not ascend": (root(1, [(10, 0, mixed)]), 16),
        "a child outside the disk": (root(1, [(10, 0, 60_000)]), 12),
        "a child beyond 32 bits": (root(1, [(10, 0, (1 << 32) + leaf)]), 12),
        "a child beyond 40 bits": (root(1, [(10, 0, (1 << 40) + leaf)]), 12),
        "an extent beyond 40 bits": (root(0, [(0, 10, (1 << 40) + 100)]), 3),
        "an extent that ends outside the disk": (root(0, [(0, 10, 59_991)]), 0),
        "an extent of a leaf that ends outside the disk": (root(1, [(10, 0, far)]), 12),
        "an extent beyond 32 bits": (root(0, [(0, 10, (1 << 32) + 100)]), 3),
        "an extent in the superblock": (root(0, [(0, 10, 0)]), 3),
        "an extent of length 0": (root(0, [(0, 0, data)]), 0),
        "an extent that reaches into the next": (root(0, [(0, 10, data), (9, 1, other)]), 2),
        "an extent around the end of 32 bits": (
            root(0, [(0xFFFFFFF0, 32, data), (0xFFFFFFF8, 1, other)]),
            0xFFFFFFF1,
        ),
        "an unwritten extent into the next": (root(0, [(0, 32778, data), (9, 1, other)]), 2),
        "depth 6": (root(6, [(0, 0, loop)]), 2),
        "more entries than there is room": (root(0, [(i, 1, data + i) for i in range(5)]), 2),
    }
    sound = (
        (root(1, [(10, 0, wide)]), [(12, data + 2, 3, False), (200, other, 5, False)]),
        (root(1, [(10, 0, leaf), (200, 0, loop)]), [(13, data + 3, 2, False)]),
        (root(2, [(10, 0, 99)]), [(14, data + 4, 1, False), (15, 0, ENDLESS, False)]),
        (root(0, [(0, 10, other), (12, 1, data)]), [(3, other + 3, 7, False), (10, 0, 2, False)]),
    )
    disk.put(99, node(1, [(10, 0, leaf)]))
    require_told_apart(lab, disk, cases, sound)


@pytest.mark.exercise("S3", points=1, host=True)
def test_damaged_inner_nodes(lab):
    """Nodes with entries, or a last extent, outside their part of the file: an error. A leaf may be
    empty."""
    chance = Random(lab.seed)
    disk = Disk(1024, 60_000)
    inner, leaf, other, empty = chance.sample(range(100, 30_000), 4)
    data = chance.randrange(31_000, 59_000)
    disk.put(leaf, node(0, [(10, 5, data)]))
    disk.put(other, node(0, [(200, 5, data + 9)]))
    disk.put(inner, node(1, [(10, 0, leaf), (200, 0, other)]))
    cases = {
        "an inner node that begins before its entry": (root(2, [(11, 0, inner)]), 12),
        "an inner node whose last entry is the next one's": (
            root(2, [(10, 0, inner), (150, 0, 99)]),
            12,
        ),
        "a leaf's last extent that reaches into the next leaf": (
            root(1, [(10, 0, leaf), (13, 0, other)]),
            12,
        ),
    }
    disk.put(empty, node(0, []))
    sound = (
        (root(2, [(10, 0, inner)]), [(12, data + 2, 3, False), (200, data + 9, 5, False)]),
        (root(1, [(10, 0, empty), (200, 0, other)]), [(12, 0, 188, False)]),
    )
    require_told_apart(lab, disk, cases, sound)


@pytest.mark.exercise("S3", points=3, once=True)
@pytest.mark.parametrize("kind", ["ext2", "ext4"])
@pytest.mark.parametrize("block", [1024, 4096])
def test_maps_in_the_kernel(lab, tmp_path, kind, block):
    """Maps in the kernel: those of debugfs, with the right contents and requests."""
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
    """A block of pointers that cannot be read: EIO for the blocks that it maps, and only for
    them."""
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
