"""Holes that programs punch into files."""

from __future__ import annotations

import pytest

from tests.host.ext.images import MIB, debugfs, make_image
from tests.test_ext_write_guest import KINDS, check, guest, programs  # noqa: F401


@pytest.mark.parametrize("kind", ["ext3-4k", "ext4-4k"])
def test_a_hole_to_the_end_frees_the_last_block(guest, tmp_path, kind):  # noqa: F811
    """Linux frees it too, although the hole ends in the middle of the block: nothing of the file
    is after it. A hole that ends before leaves the block, and the bytes after it."""
    size, whole = 21549, 20480  # the file, and its whole blocks of 4 KiB
    image = make_image(tmp_path / "a.img", 64 * MIB, KINDS[kind])
    said = guest(
        f"""mkdir /mnt; mount /dev/hdb /mnt; cd /mnt
        seq 1 9000 | head -c {size} > end; cp end before; sync; stat -c '%b' end
        /punch end {whole - 1536} 4096; /punch before {whole - 1536} {size - whole + 1535}
        stat -c '%s %b %n' end before; cd /; umount /mnt""",
        image,
    )
    check(image)
    allocated, end, before = said.split("\n")[:3]
    assert end == f"{size} {int(allocated) - 8} end"
    assert before == f"{size} {allocated} before"
    data = "".join(f"{i}\n" for i in range(1, 9001)).encode()[:size]
    hole = data[: whole - 1536] + bytes(size - whole + 1536)
    for name, wanted in (("end", hole), ("before", hole[:-1] + data[-1:])):
        debugfs(image, [f"dump {name} {tmp_path / name}"])
        assert (tmp_path / name).read_bytes() == wanted, name
