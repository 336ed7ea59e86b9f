"""Debian's tools for drives in the kernel of the storage lab: sfdisk, mke2fs, lsblk, blockdev,
wipefs, blkdiscard and fstrim, dynamically linked as in their packages."""

from __future__ import annotations

import re

import pytest

from tests.disks.test_block_files import blank
from tests.disks.test_e2fsprogs_guest import debian  # noqa: F401
from tests.host.ext.images import MIB

SCRIPT = r"""printf 'label: gpt\n,10M\n,20M\n' | sfdisk -q /dev/hdb; echo made $?
/sbin/mke2fs -E discard /dev/hdb1 | grep -c Discarding; e2fsck -fn /dev/hdb1 >/out; echo sound $?
lsblk -o NAME,MAJ:MIN,SIZE,TYPE,ROTA,SCHED,DISC-GRAN; /sbin/blockdev --report
mount -t ext2 /dev/hdb1 /mnt; /sbin/blockdev --rereadpt /dev/hdb; umount /mnt
/sbin/wipefs -q -a --force /dev/hdb; /sbin/blockdev --rereadpt /dev/hdb; ls /sys/class/block
/sbin/blkdiscard /dev/hdb; echo discarded $?
mke2fs -q /dev/hdb; mount /dev/hdb /mnt; /sbin/fstrim -v /mnt; umount /mnt
e2fsck -fn /dev/hdb >/out; echo sound $?"""


@pytest.mark.slow
def test_tools_of_debian(debian, tmp_path):  # noqa: F811
    """A table is made, seen, used, and wiped."""
    image = blank(tmp_path / "b.img", 64 * MIB // 512)
    said = debian(SCRIPT, image, "util-linux fdisk e2fsprogs")
    assert re.findall(r"^(?:made|sound|discarded) \d+$", said, re.MULTILINE) == [
        *("made 0", "sound 0", "discarded 0", "sound 0")
    ]
    assert re.search(r"^/mnt: [\d.]+ MiB \(\d+ bytes\) trimmed", said, re.MULTILINE)
    rows = [line.split() for line in re.findall(r"^\W*(hdb.*)$", said, re.MULTILINE)]
    assert ["hdb", "3:64", "64M", "disk", "1", "c-look", "512B"] in rows
    assert ["hdb2", "3:66", "20M", "part", "1", "c-look", "512B"] in rows
    assert re.search(r"^rw +128 +512 +4096 +22528 +20971520 +/dev/hdb2$", said, re.MULTILINE)
    assert said.count("Device or resource busy") == 1
    assert re.search(r"^hdb\s+discarded", said, re.MULTILINE)
