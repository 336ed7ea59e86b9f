"""Exercise S3: where the blocks of a file are, by pointers and by extents.

Not looked at here, but by the graders: blocks of 2 and 4 KiB, the last block that pointers reach,
deeper trees of extents, unwritten extents and extents of full length, numbers of more than 32
bits, other kinds of damage, and errors of the drive.
"""

from __future__ import annotations

import re
import zlib
from random import Random

import pytest

from labs.tools.machine.qemu_command import Drive
from tests.host.ext.images import MIB, bmap, make_image, write_blocks
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
    require_places,
    require_refused,
    root,
)
from tests.support.told import Usual, expect, require, told

HINT = "make hint EX=S3"
IN_GDB = "make gdb LESSON=storage BOOT=direct, then: break ext_map, continue, finish"
POLLED = (("disk", "pio-polled"),)  # so S2 need not be written
PLACES = (0, 11, 12, 13, 100, 267, 268, 600, 601)  # with 256 pointers in a block: 12, 12 + 256
POINTER_MISTAKES = (
    Usual("error -117", "a pointer was followed that is 0, or the wrong one: which slot is it?"),
    Usual("not put back", "every block of ext_mapping_block goes back with bcache_put, each once"),
    Usual("depth", "out->depth grows by 1 for each block of pointers that is read"),
    Usual(
        "expected blocks.*seen a hole",
        "position 0 of the tree of height 1 is block 12 of the file, of height 2 block 12 + N",
    ),
    Usual(
        "expected a hole.*seen a hole",
        "a hole ends with the zeros in its block of pointers, or where the pointer's tree ends",
    ),
    Usual("expected blocks", "a run goes on while the next pointer is larger by one"),
    Usual("disk block", "which slot is it? The first 12 pointers are in the inode, 0 to 11"),
)
EXTENT_MISTAKES = (
    Usual("not put back", "every node of ext_extent_child goes back with bcache_put, each once"),
    Usual("seen error", "an extent's end may be the next one's beginning, but not beyond it"),
    Usual(
        "expected a hole.*seen blocks",
        "the block is beyond the extent's last one: the hole goes on to the next extent",
    ),
    Usual(
        "expected a hole.*seen a hole",
        "a hole goes on to the next entry: of this node, or, in the last one, of its parent",
    ),
    Usual(
        "expected blocks",
        "the entry to follow is the last one that does not begin after the block",
    ),
)


@pytest.mark.exercise("S3", points=2, gate=True, host=True)
def test_places_by_pointers(lab):
    """Where each block is, however short the run that is answered."""
    one, two, part, data = Random(lab.seed).sample(range(100, 9000, 10), 4)
    disk = Disk(1024, 10_000)
    disk.put(one, pointers([data, data + 1, 0, data + 3]))
    disk.put(two, pointers([0, part]))
    disk.put(part, pointers([0, data + 5, data + 6]))
    file = Mapped(pointers([data + 7, data + 8, *[0] * 10, one, two, 0]), False)
    wanted = [(0, data + 7, 2, False), (1, data + 8, 1, False), (2, 0, 10, False)]
    wanted += [(12, data, 2, False), (14, 0, 1, False), (15, data + 3, 1, False)]
    wanted += [(268, 0, 256, False), (525, data + 5, 2, False), (527, 0, 253, False)]
    with told(POINTER_MISTAKES, HINT):
        require_places(lab, disk, file, wanted)


@pytest.mark.exercise("S3", points=2, gate=True, host=True)
def test_places_by_extents(lab):
    """The same of a tree with extents in two leaves."""
    one, two = Random(lab.seed).sample(range(1000, 30_000, 100), 2)
    disk = Disk(1024, 60_000)
    disk.put(50, node(0, [(0, 100, one), (300, 8, two)]))
    disk.put(51, node(0, [(4000, 50, one + 200)]))
    file = root(1, [(0, 0, 50), (4000, 0, 51)])
    wanted = [(0, one, 100, False), (99, one + 99, 1, False), (100, 0, 200, False)]
    wanted += [(305, two + 5, 3, False), (308, 0, 3692, False), (4007, one + 207, 43, False)]
    with told(EXTENT_MISTAKES, HINT):
        require_places(lab, disk, file, wanted)


@pytest.mark.exercise("S3", points=2, gate=True, host=True)
def test_pointers(lab, tmp_path):
    """A file with holes on ext2, in blocks of 1 KiB: no, one and two levels of pointer blocks; and
    how long the runs are."""
    (tmp_path / "root").mkdir()
    write_blocks(tmp_path / "root/file", 1024, PLACES)
    write_blocks(tmp_path / "root/another", 1024, range(1 + lab.seed % 300))
    image = make_image(tmp_path / "a.img", 4 * MIB, "-t ext2 -b 1024 -N 64", tmp_path / "root")
    disk, file = read_disk(image, 1024), file_of(image, "/file", 1024)
    with told(POINTER_MISTAKES, HINT):
        answers = ask(lab, disk, file, PLACES)
        truth = bmap(image, [("/file", place) for place in PLACES])
        for place, answer, (physical, _) in zip(PLACES, lab.judged(answers), truth, strict=True):
            what = f"ext_map_pointers({place}), file with blocks {', '.join(map(str, PLACES))}:"
            expect(f"{what} disk block", answer.physical, physical, f"the answer: {answer}")
            height = (place >= 12) + (place >= 268)
            expect(f"{what} blocks of pointers read", len(answer.read), height)
            expect(f"{what} depth", answer.depth, height)
        holes = [(1, 0, 10, False), (14, 0, 86, False), (602, 0, 178, False)]
        require_mapped(lab, disk, file, [*holes, (780, 0, 256, False), (10, 0, 1, False)])
        pair = 1 + (truth[2][0] + 1 == truth[3][0])
        require_mapped(lab, disk, file, [(12, truth[2][0], pair, False)])


@pytest.mark.exercise("S3", points=2, gate=True, host=True)
def test_extents(lab):
    """A tree of the test's own: extents in the root, and in two leaves below it; how long the runs
    are, and which nodes are read."""
    disk = Disk(1024, 60_000)
    one, two, three = Random(lab.seed).sample(range(1000, 30_000, 100), 3)
    flat = root(0, [(5, 10, one), (15, 5, two), (100, 8, three)])
    with told(EXTENT_MISTAKES, HINT):
        wanted = [(0, 0, 5, False), (5, one, 10, False), (14, one + 9, 1, False)]
        wanted += [(15, two, 5, False), (20, 0, 80, False), (107, three + 7, 1, False)]
        require_mapped(lab, disk, flat, [*wanted, (108, 0, ENDLESS, False)])
        disk.put(50, node(0, [(0, 100, one), (300, 8, two)]))
        disk.put(51, node(0, [(4000, 1000, three)]))
        deep = root(1, [(0, 0, 50), (4000, 0, 51)])
        wanted = [(99, one + 99, 1, False), (100, 0, 200, False), (308, 0, 3692, False)]
        wanted += [(3999, 0, 1, False), (4000, three, 1000, False), (4999, three + 999, 1, False)]
        answers = require_mapped(lab, disk, deep, wanted)
        expect("the nodes read for blocks 99 to 3999", {a.read for a in answers[:4]}, {(50,)})
        expect("the nodes read for blocks 4000 and 4999", {a.read for a in answers[4:]}, {(51,)})


@pytest.mark.exercise("S3", points=1, host=True)
def test_damage(lab):
    """A tree that leads to itself, and a block that the disk does not have, are errors."""
    usually = (
        Usual("it does not end", "a child is one level lower than its parent: check its eh_depth"),
        Usual("outside", "ext_range_valid(fs, first, count) says whether a run is on the disk"),
        Usual("loop", "a child is one level lower than its parent: check its eh_depth"),
    )
    disk = Disk(1024, 60_000)
    disk.put(50, node(1, [(0, 0, 50)]))
    with told(usually, HINT):
        require_refused(lab, disk, root(1, [(0, 0, 50)]), 7, "a loop: a node that is its own child")
        end = disk.blocks - lab.seed % 9  # the extent's last blocks are not on the disk
        outside = root(0, [(0, 10, end)])
        require_refused(lab, disk, outside, 3, "an extent whose end is outside the file system")
        inside = root(0, [(0, 10, disk.blocks - 10)])
        require_places(lab, disk, inside, [(3, disk.blocks - 7, 7, False)])


@pytest.mark.exercise("S3", points=2, gate=True, once=True)
@pytest.mark.parametrize("kind", ["ext2", "ext4"])
def test_in_the_kernel(lab, tmp_path, kind):
    """The kernel reads files of a drive that mke2fs made: contents, and the places of blocks."""
    usually = (
        Usual("crc32", "test_pointers and test_extents say which block is the wrong one"),
        Usual("map ", "debugfs says where the block is: debugfs -R 'bmap /file 300' IMAGE"),
    )
    (tmp_path / "root").mkdir()
    data = Random(lab.seed).randbytes(300_000)
    (tmp_path / "root/solid").write_bytes(data)
    write_blocks(tmp_path / "root/holes", 1024, range(0, 700, 2))
    options = f"-t {kind} -b 1024 -N 64"
    image = make_image(tmp_path / "a.img", 4 * MIB, options, tmp_path / "root")
    blocks = [0, 11, 12, 13, 268, 300, 301, 698]
    script = f"sum hdb /solid; map hdb /holes {' '.join(map(str, blocks))}"
    with told(usually, IN_GDB):
        result = lab.run(script, drives=[Drive(image, 1)], settings=POLLED)
        said = result.check().serial.replace("\r", "")
        found = re.search(r"crc32 (0x[0-9a-f]+), (\d+) bytes, /solid", said)
        require(found, "sum hdb /solid: expected a line with crc32, seen none")
        expect("crc32 of /solid", found[1], f"{zlib.crc32(data):#010x}")
        seen = re.findall(r"^map (\d+) -> (\d+)", said, re.MULTILINE)
        truth = bmap(image, [("/holes", block) for block in blocks])
        for (block, place), (physical, _) in zip(seen, truth, strict=True):
            expect(f"map hdb /holes {block}", int(place), physical)
