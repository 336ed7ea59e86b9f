"""A write that fails while a file system is unmounted: as on Linux the console says what is lost,
the unmount succeeds, and the file system is sound."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs.tools.machine.qemu_command import DiskError, Drive
from tests.host.ext.images import run_tool
from tests.test_block_files import blank, programs, said, storage_config  # noqa: F401

LOST = "4096 bytes at 0 could not be written and are lost: EIO"
TOLD = "hdb: not everything could be written before the unmount: EIO"


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """An ext4 with two files of a block; that of `bad` cannot be written."""
    files = tmp_path / "files"
    files.mkdir()
    for name in ("bad", "good"):
        (files / name).write_bytes(name.encode().ljust(4096, b"\n"))
    image = blank(tmp_path / "b.img", 16384)
    run_tool("mkfs.ext4", "-q", "-F", "-b", "4096", "-d", str(files), str(image))
    block = int(run_tool("debugfs", "-R", "blocks /bad", str(image)).split()[-1])
    return Drive(image, 1, errors=(DiskError("write", block * 8),), writable=True)


WRITE = "mkdir /mnt; mount -t ext4 /dev/hdb /mnt; cd /mnt; for f in bad good; do " + (
    "yes new | head -c 4096 | dd of=$f conv=notrunc 2>/dev/null; done; cd /; "
)


@pytest.mark.parametrize("end", ["umount /mnt; echo umount $?", "mount -o remount,ro /mnt", "true"])
def test_a_write_is_lost_at_the_unmount(said, drive, end):  # noqa: F811
    """By umount, after a remount, and when the machine is switched off."""
    again = "mount -t ext4 /dev/hdb /mnt; head -n 1 /mnt/good; umount /mnt; echo again $?"
    serial = said(WRITE + end + ("; " + again if "umount" in end else ""), drives=(drive,)).serial
    assert serial.count(LOST) == 1
    if "umount" in end:
        assert serial.count(TOLD) == 1
        assert "\numount 0\nnew\nagain 0\n" in serial
    run_tool("e2fsck", "-fn", str(drive.path))
    assert run_tool("debugfs", "-R", "cat /good", str(drive.path)).startswith("new\n")
    assert run_tool("debugfs", "-R", "cat /bad", str(drive.path)).startswith("bad\n")
