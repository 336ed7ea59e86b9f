"""Exercise S4, for the graders: what cannot be had, of buffers, of runs and of bitmaps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.host.ext.images import MIB, run_tool
from tests.storage.writing import BUSY, KINDS, NOT_READ, Files, contents
from tests.support.told import expect, fail, require

INODE_OF_B = 13


@pytest.mark.exercise("S4", points=2, host=True)
@pytest.mark.parametrize("buffers", [4, 5])  # a leaf, and a node above it, have none left
def test_few_buffers(lab, tmp_path, buffers):
    """A cache of few buffers: a large file's tree fails without a change, a small one works, and
    all buffers are released."""
    options = KINDS["ext4-small-groups"].replace("-O ", "-O ^has_journal,")
    with Files(lab, tmp_path, options, 4 * MIB, buffers=buffers) as files:
        for number in range(360):
            files.allocate("a", number * 2, 1, keep=True)
            if number % 40 == 39:
                files.write("b", number * 100, 10, seed=number)
        results = files.run(fails=True)
        done = []
        for words, change, each in zip(files.words, files.changes, results, strict=True):
            if change.inode == INODE_OF_B:
                expect(f"{words}: result", each.result, 10)
            elif each.result not in (0, BUSY):
                fail(f"{words}: result: expected 0, or {BUSY} without a buffer, seen {each.result}")
            elif each.result == 0:
                done.append((change.first, 1))
        expect("extents of /a", [(e.logical, e.length) for e in files.extents("a")], done)
        require(len(done) < 360, "the test wants requests for nodes that fail")


@pytest.mark.exercise("S4", points=1, host=True)
def test_single_free_blocks(lab, tmp_path):
    """Free space in single blocks only, with six buffers: every group is searched, and its bitmap
    released."""
    options = KINDS["ext4-small-groups"].replace("-O ", "-O ^has_journal,")
    with Files(lab, tmp_path, f"{options} -m 0", 8 * MIB, buffers=6) as files:
        for number in range(2):
            files.write("a", number * 4 * MIB, 4 * MIB, seed=1, known=False)
        for number in range(64):
            files.punch("a", number * 110, 1)
        files.write("b", 0, 40 * 1024, seed=2)
        results = files.run()
        expect("write 40 blocks to single ones: result", results[-1].result, 40 * 1024)
        expect("extents of /b", len(files.extents("b")), 40)
        files.model["a"][:] = bytearray(contents(0, results[-2].size, 1))
        for number in range(64):
            files.model["a"][number * 110 * 1024 : (number * 110 + 1) * 1024] = bytes(1024)


@pytest.mark.exercise("S4", points=2, host=True)
def test_bitmaps_that_cannot_be_read(lab, tmp_path):
    """An unreadable bitmap: of a full group it is not needed; of another one it is an error."""
    with Files(lab, tmp_path, KINDS["ext4-small-groups"], 4 * MIB) as files:
        files.write("a", 0, 4 * MIB, seed=1, known=False)
        full = files.run()[0].size
        require(full > 2 * MIB, f"write to an empty disk: expected more than 2 MiB, seen {full}")
        files.again()
        files.model["a"][:] = contents(0, full - 100 * 1024, 1)
        files.truncate("a", full - 100 * 1024)
        files.run()
        image, groups = files.image.read_bytes(), bitmaps(files.image)
        free = [bitmap for bitmap, blocks in groups if blocks]
        require(0 < len(free) < len(groups), f"the test wants full groups: {groups}")
        for bitmap, blocks in groups:
            files.again()
            files.image.write_bytes(image)
            files.write("b", 0, 500, known=False)
            (seen,) = files.run(fails=True, bad=bitmap)
            require(blocks > 0 or not files.met_bad, "the bitmap of a full group was read")
            wanted = (500,) if blocks == 0 else (500, NOT_READ) if len(free) > 1 else (NOT_READ,)
            if seen.result not in wanted:
                words = f"write, and the bitmap of a group with {blocks} free blocks is not read"
                expected = " or ".join(map(str, wanted))
                fail(f"{words}: result: expected {expected}, seen {seen.result}")
            files.model["b"][:] = contents(0, max(seen.result, 0), 1)


def bitmaps(image: Path) -> list[tuple[int, int]]:
    """Of each group: where its bitmap of blocks is, and how many of them are free."""
    text = run_tool("dumpe2fs", str(image))
    places = [int(place) for place in re.findall(r"Block bitmap at (\d+)", text)]
    free = [int(count) for count in re.findall(r"(?m)^  (\d+) free blocks,", text)]
    return list(zip(places, free, strict=True))
