"""fstrim on a mounted ext4: the drive learns which blocks are free, and keeps all others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from labs.tools.machine.qemu_command import Drive
from tests.disks.test_block_files import (  # noqa: F401
    blank,
    diskstats,
    programs,
    said,
    storage_config,
)
from tests.disks.test_ext_write_guest import KINDS, dump, sums_of
from tests.host.ext.images import MIB, make_image, run_tool

UNMAP = ("discard=unmap",)
OLD = 0xAA  # what a free block has before


def free_blocks(image: Path) -> list[int]:
    text = run_tool("dumpe2fs", str(image))
    found = []
    for line in re.findall(r"^  Free blocks: (.+)$", text, re.MULTILINE):
        for each in line.split(", "):
            first, _, last = each.partition("-")
            found += range(int(first), int(last or first) + 1)
    return found


def made(folder: Path, kind: str, size: int) -> tuple[Path, int]:
    """An image with some files, whose free blocks are not zeros; and the size of a block."""
    (folder / "root/d").mkdir(parents=True)
    for number in range(200):
        (folder / f"root/d/{number}").write_bytes(f"{number} ".encode() * 3000)
    image = make_image(folder / "a.img", size, KINDS[kind], folder / "root")
    block = int(re.search(r"Block size: +(\d+)", run_tool("dumpe2fs", str(image)))[1])
    with image.open("r+b") as file:
        for number in free_blocks(image):
            file.seek(number * block)
            file.write(bytes([OLD]) * block)
    run_tool("e2fsck", "-fn", str(image))
    return image, block


def kept(image: Path, block: int) -> list[int]:
    """Free blocks that still have something."""
    data = image.read_bytes()
    zeros = bytes(block)
    return [n for n in free_blocks(image) if data[n * block : (n + 1) * block] != zeros]


@pytest.mark.parametrize("kind", ["ext4", "ext4-4k", "ext3-1k"])
def test_free_blocks_are_discarded(said, tmp_path, kind):  # noqa: F811
    """All of them, also what was freed a moment before; 64 ranges with a request."""
    image, block = made(tmp_path, kind, 40 * MIB)
    serial = said(
        """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt
        for i in $(seq 0 2 199); do rm d/$i; done; seq 1 20000 >new; sync; rm d/1
        fstrim -v /mnt; echo trimmed $?; cat /proc/diskstats; md5sum new d/*
        cd /; umount /mnt""",
        drives=(Drive(image, 1, writable=True, options=UNMAP),),
    ).serial
    bytes_said = int(re.search(r"/mnt: (\d+) bytes", serial)[1])
    assert "trimmed 0" in serial
    run_tool("e2fsck", "-fn", str(image))
    assert kept(image, block) == []
    assert bytes_said == len(free_blocks(image)) * block
    discards, _, sectors, _ = diskstats(serial)["hdb"][11:15]
    assert sectors * 512 == bytes_said and discards < 8
    there, sums = dump(image, tmp_path / "dump"), sums_of(serial)
    assert len(sums) == 100 and {path: there[path] for path in sums} == sums


def test_a_part_is_discarded(said, tmp_path):  # noqa: F811
    """Only the range that is asked for, and no run that is shorter than that; what cannot be is an
    error, and changes nothing."""
    image, block = made(tmp_path, "ext4-4k", 40 * MIB)
    serial = said(
        """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt
        for i in $(seq 0 2 199); do rm d/$i; done
        fstrim -v -o 8388608 -l 8388608 -m 65536 /mnt
        fstrim -o 99999999999 /mnt; fstrim -l 100 /mnt; fstrim -m 999999999 /mnt
        cd /; umount /mnt; mount -o ro /dev/hdb /mnt; fstrim /mnt; umount /mnt""",
        drives=(Drive(image, 1, writable=True, options=UNMAP),),
    ).serial
    assert serial.count("Invalid argument") == 3 and serial.count("Read-only file system") == 1
    left, free = set(kept(image, block)), set(free_blocks(image))
    part = range(8 * MIB // block, 16 * MIB // block)
    discarded = free - left
    assert discarded and all(number in part for number in discarded)
    assert len(discarded) * block == int(re.search(r"/mnt: (\d+) bytes", serial)[1])
    runs = [n for n in part if n in free and n - 1 not in free]
    lengths = {first: next(n for n in range(16) if first + n not in free or n == 15)
               for first in runs}  # fmt: skip
    assert all((first in discarded) == (length == 15) for first, length in lengths.items())
    run_tool("e2fsck", "-fn", str(image))


def test_a_drive_without_trim(said, tmp_path):  # noqa: F811
    """It is never asked to discard, whoever wants it, and says so."""
    image = blank(tmp_path / "b.img", 16384)
    run_tool("mkfs.ext4", "-q", "-F", str(image))
    serial = said(
        "mkdir /mnt; cat /sys/block/hdb/queue/discard_max_bytes; blkdiscard /dev/hdb; "
        "mount /dev/hdb /mnt; fstrim /mnt; echo text >/mnt/file; umount /mnt; cat /proc/diskstats",
        drives=(Drive(image, 1, writable=True, options=UNMAP, discards=False),),
    ).serial
    assert re.search(r"^0$", serial, re.MULTILINE)
    assert serial.count("Operation not supported") == 2
    assert diskstats(serial)["hdb"][11:15] == [0, 0, 0, 0] and "hdb: discard" not in serial
    run_tool("e2fsck", "-fn", str(image))
