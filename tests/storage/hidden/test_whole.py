"""All exercises of the storage lab in one kernel: files, two power cuts, and reads that it counts
itself."""

from __future__ import annotations

from random import Random

import pytest

from labs.tools.machine.qemu_command import Drive
from tests.lesson3.support import with_files
from tests.lesson4.support import program
from tests.storage.hidden.test_journal_kernel import (
    SOURCE,
    check,
    check_files,
    cut_off,
    new_disk,
)
from tests.storage.hidden.test_seekrw_hidden import require_reads
from tests.support.told import require

FIRST_OF_SECOND = 101


@pytest.mark.exercise("S.0", points=3)
def test_files_after_two_power_cuts(lab):
    """The power fails twice while a program writes files: the next boot replays the log, and what
    fsync had promised is there."""
    random = Random(lab.seed)
    counts = random.randrange(3, 20), random.randrange(3, 20)
    disk = new_disk(lab.scratch / "whole.img", "-t ext4 -b 1024")
    cut_off(lab, disk, counts[0])
    cut_off(lab, disk, counts[1], FIRST_OF_SECOND)
    files = with_files(lab, {"bin/journal_files": program(SOURCE)})
    drives = (Drive(disk, 1, writable=True),)
    said = lab.run("run /bin/journal_files read", drives=drives, **files).check().serial
    require("unmounted 0" in said, f"umount: expected 0, seen {said[-300:]}")
    where = "the machine was cut off twice, and its kernel has replayed the log"
    check(disk, where)
    check_files(disk, counts[0], where)
    check_files(disk, counts[1], where, FIRST_OF_SECOND)


@pytest.mark.exercise("S.0", points=2, once=True)
def test_reads_of_a_drive(lab, tmp_path):
    """seekrw in the whole kernel: QEMU sees the requests of the seed, and no others."""
    require_reads(lab, tmp_path)
