"""Programs of a mounted disk when nearly all memory has pages of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.disks.test_ext_write_guest import guest  # noqa: F401 (fixture)
from tests.host.ext.images import MIB, make_image


@pytest.fixture
def programs(tmp_path) -> Path:
    """None: the root is in memory, too."""
    folder = tmp_path / "programs"
    folder.mkdir()
    return folder


def test_programs_start_when_files_have_all_memory(guest, tmp_path):  # noqa: F811
    """execve takes 32 pages in a row; and nearly all memory has pages of files, anywhere."""
    image = make_image(tmp_path / "a.img", 48 * MIB, "-t ext4")
    copies = "i=0; while [ $i -lt 20 ]; do cp /bin/busybox /mnt/$i; i=$((i+1)); done"
    reads = "for i in 7 3 19 5 11 2 17 13 1 18 4; do cat /mnt/$i | cmp - /bin/busybox; done"
    said = guest(
        f"""mkdir /mnt; mount /dev/hdb /mnt; {copies}; sync; {reads}; {reads}
        umount /mnt; echo the end""",
        image,
        memory=24,
    )
    assert "Cannot allocate" not in said and "the end" in said, said
