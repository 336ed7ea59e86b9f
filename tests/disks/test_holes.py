"""Holes that programs punch into files."""

from __future__ import annotations

import pytest

from tests.disks.test_ext_write_guest import KINDS, check, guest, programs  # noqa: F401
from tests.host.ext.images import MIB, debugfs, make_image


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


@pytest.mark.parametrize("kind", ["ext2-1k", "ext3-1k"])
def test_what_was_cut_stays_a_hole_when_the_file_grows(guest, tmp_path, kind):  # noqa: F811
    """Only those blocks of a dirty page are written that have data below the file's end, as on
    Linux: not what a truncate has cut, nor what an area has beyond the end. An area that writes to
    the same page later has its block."""
    image = make_image(tmp_path / "a.img", 64 * MIB, KINDS[kind])
    steps = {  # and how many sectors Linux gives the file
        "w 0 4096 t 100 t 8192": 2,
        "w 0 4096 t 1000 w 8192 10": 4,
        "w 3000 100 t 2000 t 5000": 0,
        "w 0 1000 m 0 100 t 4096": 2,
        "w 0 1000 m 0 100 t 4096 m 2000 100": 8,
        "w 0 100 m 0 100 w 3000 100 m 1024 10": 8,
        "w 0 2000 m 0 100 w 2000 200": 6,
    }
    script = "\n".join(f"/tail {number} {each} b" for number, each in enumerate(steps))
    said = guest(f"mkdir /mnt; mount /dev/hdb /mnt; cd /mnt\n{script}\ncd /; umount /mnt", image)
    check(image)
    assert said == "".join(f"{number} {each}\n" for number, each in enumerate(steps.values()))


@pytest.mark.parametrize("kind", ["ext3-1k", "ext4-4k"])
@pytest.mark.parametrize("longer", ["w 8192 1024", "d 8192 1024", "t 9216"])
def test_nobody_sees_what_an_area_has_beyond_the_end(guest, tmp_path, kind, longer):  # noqa: F811
    """Whatever makes the file longer: what an area has stored after its end becomes zeros."""
    image = make_image(tmp_path / "a.img", 64 * MIB, KINDS[kind])
    step = f"/tail a w 0 1000 m 2000 100 {longer} b"
    guest(f"mkdir /mnt; mount /dev/hdb /mnt; cd /mnt\n{step}\ncd /; umount /mnt", image)
    check(image)
    debugfs(image, [f"dump a {tmp_path / 'a'}"])
    last = b"\0" if longer.startswith("t") else b"x"
    assert (tmp_path / "a").read_bytes() == b"x" * 1000 + bytes(8192 - 1000) + last * 1024
