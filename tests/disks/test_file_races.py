"""Two tasks and one file, where one of them sleeps in the middle: what is seen is what one of the
two orders gives, and nothing is lost. And files that are too large."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest

from tests.disks.test_ext_write_guest import KINDS, check, guest, programs  # noqa: F401
from tests.host.ext.images import MIB, make_image


@pytest.mark.parametrize("kind", ["ext3-1k", "ext4"])
def test_a_file_that_is_cut_or_punched_meanwhile(guest, tmp_path, kind):  # noqa: F811
    """A read finds the end, not EIO. What is stored through memory beside a hole stays, and the
    hole has no old contents, where blocks are smaller than a page."""
    image = make_image(tmp_path / "a.img", 16 * MIB, KINDS[kind])
    said = guest(
        """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt
        /races cut file; /races punch file; /races beside file; cd /; umount /mnt""",
        image,
        settings={"disk": "dma-interrupt"},
    )
    assert said == "".join(f"{way}: 0 of 40 wrong\n" for way in ("cut", "punch", "beside"))
    check(image)


def test_buffered_and_direct_writes_to_one_page_of_a_drive(guest, tmp_path):  # noqa: F811
    image = tmp_path / "a.img"
    image.write_bytes(bytes(8 * MIB))
    said = guest("/races direct /dev/hdb", image, settings={"disk": "dma-interrupt"})
    assert said == "direct: 0 of 40 wrong\n"


def test_a_stream_while_one_of_its_ends_waits_for_a_page(guest, tmp_path):  # noqa: F811
    """No byte is lost that is sent meanwhile."""
    image = tmp_path / "a.img"
    image.write_bytes(bytes(8 * MIB))
    said = guest("/races stream /dev/hdb", image, settings={"disk": "dma-interrupt"})
    assert said == "stream: 0 of 40 wrong\n"


def test_a_drive_beyond_16_tib_is_refused(guest):  # noqa: F811
    """Its pages cannot be numbered: offset 16 TiB would be offset 0. The file has no contents."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        image = Path(name, "large.img")
        try:
            with image.open("wb") as file:
                file.truncate((1 << 44) + MIB)
        except OSError:
            pytest.skip("this host has no files of 16 TiB")
        said = guest(
            """mkdir /mnt; head -c 10 /dev/hdb || echo refused
            mount -t ext4 /dev/hdb /mnt || echo refused""",
            image,
        )
        assert os.stat(image).st_blocks == 0
    assert len(re.findall("refused", said)) == 2
    assert "File too large" in said and "hdb: it has more than 16 TiB" in said


def test_a_hole_at_the_end_keeps_the_size(guest, tmp_path):  # noqa: F811
    """What is discarded was not written yet, and so the disk had not had its size."""
    (tmp_path / "root").mkdir()
    image = make_image(tmp_path / "a.img", 8 * MIB, "-t ext3 -b 1024", tmp_path / "root")
    said = guest(
        """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt; head -c 4608 /dev/zero > a; sync
        head -c 1024 /dev/zero >> a; /punch a 2560 3072; cd /; umount /mnt
        mount /dev/hdb /mnt; stat -c %s /mnt/a; umount /mnt""",
        image,
    )
    assert said == "5632\n"
