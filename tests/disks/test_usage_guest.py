"""What getrusage and /proc tell of pages that are read from a disk, and written to it."""

from __future__ import annotations

from tests.disks.test_ext_write_guest import guest, programs  # noqa: F401
from tests.guest.test_memory_guest import failures
from tests.host.ext.images import MIB, make_image


def test_blocks_and_major_faults_are_counted(guest, tmp_path):  # noqa: F811
    image = make_image(tmp_path / "disk", 8 * MIB, "-t ext4 -b 4096")
    said = guest("mkdir -p /m; mount /dev/hdb /m; /counted /m/file; umount /m", image)
    assert failures(said) == set()
