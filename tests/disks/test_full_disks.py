"""What write() has accepted is there after the disk became full of names, attributes, maps and data
past the cache: a sample. `make full-disks` is all of it."""

from __future__ import annotations

import shutil

import pytest

from labs.storage import full_disks
from labs.storage.full_disks import Filled
from labs.storage.linux_program import COMPILER
from tests.support.building import make

SAMPLE = {
    "ext3-4k": ["plain", "scattered", "links", "two-scattered"],
    "ext4-1k": ["plain", "attributes", "links", "unwritten"],
}
"""Ways that lost pages on these kinds before the kernel kept what it had reserved."""


@pytest.mark.parametrize("kind", SAMPLE)
def test_nothing_that_was_accepted_is_lost(tmp_path, kind):
    if not shutil.which(COMPILER[0]):
        pytest.skip(f"there is no {COMPILER[0]} here")
    make("LESSON=storage", "image-direct", "user-programs")
    found, wrong = full_disks.fill(tmp_path, kind, SAMPLE[kind], 2010)
    assert not wrong, wrong
    assert sum(each.pages for each in found) > 30


def test_what_should_not_be_is_told():
    assert Filled("names", 9, 9, 3, 0, 0).faults() == []
    assert Filled("names", 9, 9, 300, 2, 1).faults() == [
        "2 fsyncs failed",
        "1 of 9 pages are lost",
        "300 blocks are left",
    ]
    assert set(full_disks.ways()) >= {way for ways in SAMPLE.values() for way in ways}
