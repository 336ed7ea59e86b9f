"""Exercise S10 (an extra): where mkfs's blocks went, from a drive that another process plays.

Not looked at here, but by the graders: other layouts at random, sparse_super2, meta_bg and 64bit,
file systems of mke2fs next to dumpe2fs, and more superblocks that are damaged.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.storage.account import (
    COUNTED,
    SHEET,
    TUNED,
    Layout,
    account,
    check,
    check_layout,
    lines_in,
    refused,
)
from tests.support.told import Usual, expect, told

HINT = "make hint EX=S10"
USUAL = (
    Usual("inode tables: expected", "each group has a table of whole blocks, the last one too, "
          "however short it is"),
    Usual("bitmaps: expected", "two blocks in each group; the last one counts, too"),
    Usual("superblocks and descriptors: expected", "with sparse_super groups 0, 1 and the powers "
          "of 3, 5 and 7 have copies; without it all groups. Each copy is a superblock and the "
          "descriptors of all groups. With blocks of 1 KiB block 0 comes before"),
    Usual("= overhead: expected", "tables, bitmaps and copies, in 64 bits"),
    Usual("status: expected 0(?s:.*)cannot be counted", "problem_of refuses a superblock that is "
          "right"),
    Usual("status: expected 0(?s:.*)is damaged", "problem_of accepts it, but the blocks do not add "
          "up: is the overhead too large? With sparse_super 13 of 601 groups have copies"),
    Usual("expected an error", "problem_of: what is divided by, what is shifted by, and what must "
          "be equal?"),
    Usual("FAILED|runtime error|does not end|no whole answer", "problem_of comes before any sum: a "
          "number of the disk may be 0"),
)  # fmt: skip
# 601 groups, of which 13 have copies.
PUBLISHED = {
    "inode tables": 307_712, "bitmaps": 1202, "superblocks and descriptors": 78,
    "= overhead": 308_992, "journal": 32_801, "room for descriptors": 13_248,
    "directories and files": 5, "= used": 46_054, "free": 19_308_514,
    "reserved for root": 983_178, "available": 18_325_336,
}  # fmt: skip


@pytest.mark.exercise("S10", points=2, gate=True, host=True)
def test_the_sheet_of_2010(lab):
    """The file system of "Don't waste your SSD blocks", to the block."""
    with told(USUAL, HINT):
        check(lab, "the file system of 2010", SHEET.image(), PUBLISHED)


@pytest.mark.exercise("S10", points=2, host=True)
def test_what_options_give_back(lab):
    """With -m 0, ^resize_inode, -N 16 and -J size=4: 1,335,313 blocks more."""
    with told(USUAL, HINT):
        said = account(lab, TUNED.image())
        expect("tuned: status", said.status, 0, *said.errors.splitlines()[:2])
        found = lines_in(said)
        expect("tuned: lines", sorted(found), sorted(COUNTED))
        expect("tuned: inode tables", found["inode tables"], 601)
        expect("tuned: available", found["available"], 19_660_649)
        expect("won", found["available"] - PUBLISHED["available"], 1_335_313)


@pytest.mark.exercise("S10", points=2, host=True)
def test_small_blocks(lab):
    """Blocks of 1 KiB; the last group is short. Then without sparse_super."""
    small = Layout(
        100_001, block=1024, blocks_per_group=8192, inodes_per_group=2008, inode_size=128,
        free=80_000, reserved=5000, table=264,
    )  # fmt: skip
    with told(USUAL, HINT):
        check_layout(lab, small)
        check_layout(lab, replace(small, ro_compat=0))


@pytest.mark.exercise("S10", points=2, gate=True, host=True)
@pytest.mark.parametrize("name", ["magic", "blocks_per_group", "inodes_per_group", "blocks"])
def test_zeros(lab, name):
    """A superblock that has 0 there."""
    with told(USUAL, HINT):
        refused(lab, f"{name} is 0", replace(SHEET, changed={name: 0}).image())
        check(lab, "the file system of 2010", SHEET.image(), {"= overhead": 308_992})
