"""A write that fails while a file system is unmounted: as on Linux the console says what is lost,
the unmount succeeds, and the file system is sound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from labs.storage.crash.log import read_log
from labs.tools.machine.qemu_command import DiskError, Drive
from tests.disks.test_block_files import blank, programs, said, storage_config  # noqa: F401
from tests.host.ext.images import MIB, debugfs, make_image, run_tool

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


CHANGES = ("create", "mkdir", "mkfifo", "symlink", "link", "rename", "rename over", "rename away",
           "rename here", "exchange", "rmdir", "unlink")  # fmt: skip
CHANGES_OF_A_FILE = ("shorter", "longer", "allocated", "hole", "attribute", "no attribute", "flags",
                     "open", "refused")  # fmt: skip


def test_what_is_true_at_once(said, tmp_path):  # noqa: F811
    """Names of synchronous directories (dirsync, chattr +D, sync), and files of a synchronous
    mount, are safe when calls that change them return; write-back need not wait until BLKZEROOUT
    has ended; an inode of 256 bytes without room for nanoseconds shows none."""
    (tmp_path / "root/plain").mkdir(parents=True)
    (tmp_path / "root/D").mkdir()
    (tmp_path / "root/file").write_bytes(b"old")
    image = make_image(tmp_path / "b.img", 8 * MIB, "-t ext4 -I 256", tmp_path / "root")
    debugfs(image, ["set_inode_field /file extra_isize 0"], write=True)
    run_tool("e2fsck", "-fy", str(image), allowed=(0, 1))
    blocks = blank(tmp_path / "c.img", 16384)
    serial = said(
        "mkdir /m; mount -t ext4 /dev/hdb /m; /at_once times /m/file;"
        "/at_once names hdb /m/plain; echo flag; /at_once flag - /m/D -; /at_once names hdb /m/D;"
        "for how in dirsync sync; do umount /m; mount -t ext4 -o $how /dev/hdb /m;"
        "grep hdb /proc/mounts; mkdir /m/$how; /at_once names hdb /m/$how;"
        "/at_once changes hdb /m/changed; done; umount /m;"
        "/at_once zero /dev/hdc",
        mode="dma-interrupt",
        drives=(Drive(image, 1, writable=True), Drive(blocks, 2, writable=True)),
    ).serial
    assert "nanoseconds: none\n" in serial and "zeroed: 0\nmsyncs: many\n" in serial
    of_a_file = re.compile(rf"^(?:{'|'.join(CHANGES_OF_A_FILE)}): (.*)\n", re.M)
    said_so = [f"0, {'not ' * is_plain}flushed" for is_plain in (True, False) for _ in range(8)]
    assert [each for each in of_a_file.findall(serial) if each[0] == "0"] == said_so, serial
    assert serial.count("refused: -1, not flushed") == 2
    parts = re.split("flag\n|hdb /m ", of_a_file.sub("", serial))
    assert [part.count(": 0, flushed") for part in parts] == [0, *[len(CHANGES)] * 3], serial
    assert parts[0].count(": 0, not flushed") == len(CHANGES)
    assert serial.count("no such name: -1, not flushed") == 4
    assert ",dirsync " in serial and ",sync " in serial
    run_tool("e2fsck", "-fn", str(image))


def test_a_cut_of_ext2_keeps_what_a_file_had(said, tmp_path):  # noqa: F811
    """Without a journal new blocks of pointers are written before inodes, as by Linux's fsync: once
    it is safe, a file survives each cut between two requests, also while it becomes longer."""
    image, log = blank(tmp_path / "b.img", 4 * MIB // 512), tmp_path / "log"
    run_tool("mke2fs", "-q", "-F", "-t", "ext2", "-b", "1024", str(image))
    disk = bytearray(image.read_bytes())
    log.write_bytes(b"")
    serial = said(
        "mkdir /m; mount /dev/hdb /m; cd /m; seq 1 2000 >a; sync; for i in 1 2; do"
        " seq 2001 60000 >>a; sync; truncate -s 8000 a; sync; done; cd /; umount /m; echo end",
        drives=(Drive(image, 1, writable=True, log=log),),
    ).serial
    assert serial.endswith("end\n")
    there, cut, first = [], tmp_path / "cut", "".join(f"{i}\n" for i in range(1, 2001))[:8000]
    for entry in (each for each in read_log(log) if each.data):
        disk[entry.sector * 512 : entry.sector * 512 + len(entry.data)] = entry.data
        cut.write_bytes(disk)
        run_tool("e2fsck", "-fy", str(cut), allowed=(0, 1))
        there.append(run_tool("debugfs", "-R", "cat a", str(cut)).startswith(first))
    assert there[-1] and there == sorted(there), there
