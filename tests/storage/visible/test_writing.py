"""Exercise S4: blocks are allocated, extents merged and split, files cut. e2fsck judges.

Not looked at here, but by the graders: trees with more than one node, a disk that is full, small
groups, extents of full length, block pointers, random changes, and many files in a directory.
"""

from __future__ import annotations

from random import Random

import pytest

from labs.tools.machine.qemu_command import Drive
from tests.host.ext.images import MIB, make_image
from tests.lesson3.support import with_files
from tests.lesson4.support import SAID, program
from tests.storage.writing import (
    Files,
    pieces_of,
    program_files,
    require_clean,
    require_files,
)
from tests.support.told import Usual, expect, told

HINT = "make hint EX=S4"
IN_GDB = "make gdb LESSON=storage BOOT=direct, then: break ext_set_extent, continue, print *run"
WITHOUT_JOURNAL = "-O ^has_journal,^flex_bg"  # so S5 need not be written; graders' images have one
OPTIONS = f"-t ext4 -b 1024 -N 64 {WITHOUT_JOURNAL}"
POLLED = (("disk", "pio-polled"),)  # nor S2
DRIVE = "tests/storage/user/drive.c"
COUNTS = (
    Usual(
        "[Ff]ree blocks count",
        "a block that is taken is one free block less in the group's descriptor (before "
        "ext_bitmap_change writes it) and in the superblock",
    ),
    Usual("i_blocks", "inode->blocks counts sectors of 512 bytes, whatever a block's size is"),
    Usual("[Bb]itmap diff", "what the map says is not what ext_bitmap_change has set"),
    Usual("contradicts itself", "the extents that were written are not in order, or overlap"),
)
CONTENTS = (
    Usual(
        "at byte",
        "the rest to the right of a change begins as much later on the disk as in the file; "
        "written and unwritten blocks are never one extent",
    ),
)


@pytest.mark.exercise("S4", points=3, gate=True, host=True)
def test_appends(lab, tmp_path):
    """A file that grows by pieces is one extent; what it has taken is counted."""
    usually = (
        *COUNTS,
        Usual("extents", "a run that continues the piece before it is merged with that"),
        *CONTENTS,
    )
    with told(usually, HINT), Files(lab, tmp_path, OPTIONS, 8 * MIB) as files:
        for step in range(10):
            files.write("a", step * 3000, 3000, seed=step)
        files.run()
        files.require_results()
        expect("sectors of /a, 30,000 bytes", files.results[-1].sectors, 60)
        expect("extents of /a", [(e.logical, e.length) for e in files.extents("a")], [(0, 30)])


@pytest.mark.exercise("S4", points=3, gate=True, host=True)
def test_pieces(lab, tmp_path):
    """The table in the opening of fs/ext/set_extent.c."""
    usually = (
        Usual(
            "extents",
            "pieces, left to right: the rest to the left, the run, the rest to the right; each is "
            "merged with the one before it if one extent can say both",
        ),
        *COUNTS,
        *CONTENTS,
    )
    with told(usually, HINT), Files(lab, tmp_path, OPTIONS, 8 * MIB) as files:
        files.allocate("a", 0, 100)
        files.write("a", 40 * 1024, 10 * 1024)
        files.allocate("b", 0, 100)
        files.write("b", 40 * 1024, 10 * 1024)
        files.write("b", 50 * 1024, 50 * 1024)
        files.write("c", 0, 108 * 1024)
        files.punch("c", 10, 10)
        files.run()
        files.require_results()
        a, b, c = (pieces_of(files.extents(name)) for name in "abc")
        parted = [(0, 40, True), (40, 10, False), (50, 50, True)]
        expect("extents of /a (allocate 0-99, write 40-49)", a, parted)
        joined = [(0, 40, True), (40, 60, False)]
        expect("extents of /b (the same, then write 50-99)", b, joined)
        hole = [(0, 10, False), (20, 88, False)]
        expect("extents of /c (write 0-107, punch 10-19)", c, hole)


@pytest.mark.exercise("S4", points=2, host=True)
def test_truncate(lab, tmp_path):
    """A file is cut in the middle of a block, and grows again: what comes back is zeros."""
    usually = (
        Usual("beyond its end|at byte", "ext_zero_tail: the rest of the last block is zeros"),
        Usual("sectors", "free_beyond frees what is beyond the new size"),
        Usual("orphan|Deleted inode", "a file that has been cut leaves the list of orphans"),
        *COUNTS,
    )
    with told(usually, HINT), Files(lab, tmp_path, OPTIONS, 8 * MIB) as files:
        files.write("a", 0, 50_000)
        files.truncate("a", 10_300)
        files.truncate("a", 40_000)
        files.write("b", 0, 5000)
        files.truncate("b", 1500)
        files.run()
        files.require_results()
        expect("sectors of /a, cut to 10,300 bytes", files.results[1].sectors, 22)
        expect("size of /a in the end", files.results[2].size, 40_000)


@pytest.mark.exercise("S4", points=2)
def test_in_the_kernel(lab, tmp_path):
    """A program mounts a drive that mke2fs has made, writes, cuts and removes files, unmounts."""
    usually = (*COUNTS, *CONTENTS, Usual("mount", "the mount writes, too: test_appends says more"))
    seed = Random(lab.seed).randrange(1, 1000)
    (tmp_path / "empty").mkdir()
    options = f"-t ext4 -b 1024 -N 256 {WITHOUT_JOURNAL}"
    image = make_image(tmp_path / "a.img", 16 * MIB, options, tmp_path / "empty")
    with told(usually, IN_GDB):
        fields = with_files(lab, {"bin/drive": program(DRIVE)})
        drives = [Drive(image, 1, writable=True)]
        work = f"run /bin/drive work 30 {seed}"
        result = lab.run(work, drives=drives, settings=POLLED, guest_limit=60, **fields)
        said = dict(SAID.findall(result.check().serial.replace("\r", "")))
        for word in ("mount", "wrong", "umount"):
            expect(f"{word} of the program", said.get(word), "0")
        require_clean(image)
        require_files(image, program_files(30, seed))
