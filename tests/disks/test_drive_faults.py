"""A mounted ext4 on a drive that fails in the middle of its work: programs are told, the console
names the cause, the rest goes on, and what was safe before is there afterwards."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from labs.tools.machine.qemu_command import DiskError
from tests.disks.test_ext_write_guest import guest, programs  # noqa: F401 (fixtures)
from tests.host.ext.images import MIB, debugfs, make_image, run_tool

WORK = """mkdir /mnt /other; mount -o errors={errors} /dev/hdb /mnt; mount /dev/hdc /other
cd /mnt; cat old/* | md5sum
for i in 1 2 3 4 5 6; do
    for f in a b c; do dd if=/bin/busybox of=dir/$f$i bs=4k count=25 conv=fsync 2>&1 |
        grep -v records; done; mkdir dir/d$i; rm -f dir/a$i
done; sync
cat old/* | md5sum; echo alive > /other/file; sync; cat /other/file
cd /; umount /mnt; echo umount $?; umount /other; echo the end
"""
MADE = {f"{letter}{number}" for letter in "bcd" for number in range(1, 7)}
PLACES = {
    "table": r"Inode table at (\d+)",
    "bitmap": r"Block bitmap at (\d+)",
    "inodes": r"Inode bitmap at (\d+)",
    "descriptors": r"Group descriptors at (\d+)",
}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An ext4 of four groups, with files that nobody works on."""
    (tmp_path / "root/old").mkdir(parents=True)
    (tmp_path / "root/dir").mkdir()
    for number in range(20):
        (tmp_path / f"root/old/{number}").write_bytes(b"%5d" % number * 4000)
    options = "-t ext4 -b 4096 -g 2048 -J size=4"
    return make_image(tmp_path / "a.img", 32 * MIB, options, tmp_path / "root")


@pytest.fixture
def work(guest, image, tmp_path):  # noqa: F811
    """Runs WORK while a sector fails. Returns what was said, the names that are there after e2fsck
    has replayed the journal, and whether it was asked to look at everything. The other drive works
    on, and the old files are as they were."""

    def go(operation: str, block: int, errors: str):
        other = Path(shutil.copy(image, tmp_path / "b.img"))
        fault = DiskError(operation, block * 8)
        said = guest(WORK.format(errors=errors), image, second=other, errors=[fault])
        assert said.endswith("the end\n") and "\nalive\n" in said, said
        repaired = run_tool("e2fsck", "-p", str(image), allowed=(0, 1))
        run_tool("e2fsck", "-fn", str(image))
        sums = re.findall(r"^([0-9a-f]{32})  -", said, re.M)
        assert len(sums) == 2 and len(set(sums)) == 1, said
        for number in (0, 7, 19):
            kept = run_tool("debugfs", "-R", f"cat /old/{number}", str(image))
            assert kept == f"{number:5}" * 4000
        names = re.findall(r"^/\d+/\d+/\d+/\d+/(\w+)/", "\n".join(
            debugfs(image, ["ls -p /dir"])), re.M)  # fmt: skip
        return said, set(names), "with errors, check forced" in repaired

    return go


def place_of(image: Path, what: str) -> int:
    return int(re.search(PLACES[what], run_tool("dumpe2fs", str(image)))[1])


@pytest.mark.parametrize("index", (0, 3, 40))
def test_a_block_of_the_journal_cannot_be_written(work, image, index):
    """The commit is lost, and the program that waits for it is told: EIO. Then it is read-only."""
    journal = [int(each) for each in debugfs(image, ["blocks <8>"])[0].split()]
    said, names, _ = work("write", journal[index], "continue")
    assert "hdb: journal: a commit failed (error 5): nothing is written from now on\n" in said, said
    lines = [line for line in said.splitlines() if line.startswith("dd:")]
    assert re.fullmatch(r"dd: .*: Input/output error", lines[0]), said
    assert len(lines) > 9 and all("Read-only" in line for line in lines[1:]), said
    done = 3 * (int(re.search(r"dir/\w(\d)", lines[1])[1]) - 1)
    assert len(names & MADE) in range(max(0, done - 2), done + 3), (names, said)
    assert "hdb: not everything could be written before the unmount" in said


@pytest.mark.parametrize("what", ("table", "bitmap", "inodes", "descriptors"))
def test_a_block_cannot_be_written_to_its_place(work, image, what):
    """It stays in the log, which the next mount replays: nothing is lost."""
    said, names, is_forced = work("write", place_of(image, what), "continue")
    assert "hdb: journal: a checkpoint failed (error 5): nothing is written from now on\n" in said
    assert "dd:" not in said and names >= MADE and not is_forced, (said, names)


@pytest.mark.parametrize("what", ("bitmap", "inodes"))
def test_a_bitmap_cannot_be_read(work, image, what):
    """Its group is left alone, and said once; all that is written goes to others. What was freed
    there stays used until e2fsck."""
    block = place_of(image, what)
    said, names, is_forced = work("read", block, "continue")
    assert said.count(f"hdb: metadata: block {block} cannot be read\n") == 1, said
    assert "dd:" not in said and "mkdir:" not in said and names >= MADE, (said, names)
    assert is_forced


@pytest.mark.parametrize("what", ("bitmap", "inodes"))
def test_a_bitmap_cannot_be_read_and_errors_end_all_writing(work, image, what):
    """errors=remount-ro counts for what cannot be read, too."""
    block = place_of(image, what)
    said, names, _ = work("read", block, "remount-ro")
    line = f"hdb: metadata: block {block} cannot be read\nhdb: read-only from now on\n"
    assert said.count(line) == 1 and said.count("Read-only file system") > 9, said
    assert len(names & MADE) <= 1, names


@pytest.mark.parametrize("errors", ("continue", "remount-ro"))
def test_a_directory_cannot_be_read(work, image, errors):
    """It is EIO each time, and what is beside it can be read."""
    block = int(run_tool("debugfs", "-R", "bmap /dir 0", str(image)))
    said, names, is_forced = work("read", block, errors)
    lines = [line for line in said.splitlines() if line.startswith("dd:")]
    assert len(lines) == 18 and all("Input/output error" in line for line in lines[:1]), said
    assert f"hdb: metadata: block {block} cannot be read\n" in said and not names & MADE
    assert said.count("hdb: read-only from now on\n") == (errors == "remount-ro"), said
    assert not is_forced
