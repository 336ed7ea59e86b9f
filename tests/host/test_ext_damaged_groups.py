"""Groups whose bitmaps are damaged: on the host, and under a program that writes in the guest."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.disks.test_ext_write_guest import guest, programs  # noqa: F401 (fixtures)
from tests.host.ext.images import MIB, make_image, patch, peek, run_tool
from tests.host.test_ext_write import make_files

pytest_plugins = ["tests.host.ext.fixtures"]

LONG = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cat /bin/busybox; done > /seq"


def findings(image: Path, *options: str) -> list[str]:
    """What e2fsck says is wrong, or repairs, but not how much of all is free."""
    said = run_tool("e2fsck", "-f", *(options or ["-n"]), str(image), allowed=(0, 1, 4))
    said = re.sub(r"\(\d+, counted=\d+\)", "", said)
    kept = (line for line in said.splitlines() if line and not line.startswith(("e2fsck", "Pass")))
    return [line for line in kept if "FILE SYSTEM WAS" not in line and " blocks" not in line]


def promised_room(ext, image):
    """Room is promised in sound groups only: the others are looked at until there is enough."""
    copy = Path(shutil.copy(image, image.with_name("room.img")))
    calls = ("room 1", "room 1", "room 100000", "usage", "create /f", "write /f 0 50000 1", "usage")
    lines = ext.start(copy, "write", "errors=continue", text="\n".join((*calls, "room 100000", "")))
    found = [int(line.split()[2 if "usage" in line else 1]) for line in lines if line[0] in "ur"]
    first, again, sound, free, left, room = found
    assert 0 < first == again < sound == free and left == room <= free - 49, lines
    (damage,) = (line for line in lines if line.startswith("console"))
    assert "block bitmap: group " in damage, lines
    copy.unlink()


@pytest.mark.parametrize("kind", ("Block", "Inode"))
@pytest.mark.parametrize("variant", ("groups", "groups-checksum", "groups-ext2"))
def test_a_group_with_a_damaged_bitmap_is_left_alone(ext, tmp_path, variant, kind):
    """The console says it once. What is written goes to other groups until they are full, what is
    removed goes, and what e2fsck finds is in the damaged group."""
    image = tmp_path / "a.img"
    options = {"groups": "-t ext4 -O ^metadata_csum,^uninit_bg -J size=1",
               "groups-checksum": "-t ext4 -J size=1", "groups-ext2": "-t ext2"}  # fmt: skip
    old, new = make_files(image, 8 * MIB, f"-b 1024 -g 1024 {options[variant]}", 2)
    ext.write(image, f"grow 5 100000 {old}", "mkdir /dir", "create /dir/x", "again")
    place = run_tool("debugfs", "-R", f"bmap {old} 480", str(image))
    group = (int(place.split()[-1]) - 1) // 1024 if kind == "Block" else 0
    text = run_tool("dumpe2fs", str(image)).split(f"\nGroup {group}: ")[1]
    at = int(re.search(rf"{kind} bitmap at (\d+)", text)[1]) * 1024
    patch(image, at, "B", peek(image, at, "B")[0] ^ 0x10)
    before = findings(image)
    assert before
    if kind == "Block":
        promised_room(ext, image)
    lines = ext.start(
        image,
        "write",
        "errors=continue",
        text=f"usage\nwrite {new} 0 100000 1\ncreate /made\nwrite {new} 0 20000000 1\n"
        f"write {new} 20000000 9000 1\nusage\n",
    )
    said = [line for line in lines if line.startswith("console")]
    assert len(said) == 1 and f"{kind.lower()} bitmap: group {group}: " in said[0], said
    usages = [int(line.split()[2]) for line in lines if line.startswith("usage")]
    done = [int(line.split()[1]) for line in lines if line.startswith("done")]
    assert done[0] == 100000 and done[2] < 8 * MIB and lines.count("error ENOSPC") == 1, lines
    assert 0 <= usages[1] < 8 and usages[0] * 1024 < done[2] + 1100 * 1024, usages
    assert findings(image) == before
    lines = ext.start(image, "write", "errors=continue", text=f"unlink {old}\nunlink {new}\n")
    assert not any(line.startswith("error") for line in lines), lines
    findings(image, "-y")
    assert findings(image) == []


def test_a_writer_ends_where_a_bitmap_is_damaged(guest, tmp_path):  # noqa: F811
    """A group that contradicts itself is said once, and not written to: the others become full.
    With errors=remount-ro the writer is told, too, and nothing more is written."""
    (tmp_path / "root").mkdir()
    options = "-t ext4 -b 1024 -g 1024 -O ^metadata_csum,^uninit_bg -J size=1"
    image = make_image(tmp_path / "a.img", 8 * MIB, options, tmp_path / "root")
    group = run_tool("dumpe2fs", str(image)).split("\nGroup 4: ")[1]
    patch(image, int(re.search(r"Block bitmap at (\d+)", group)[1]) * 1024 + 70, "B", 1)
    second = Path(shutil.copy(image, tmp_path / "b.img"))
    said = guest(
        """mkdir /mnt /ro; mount -o errors=continue /dev/hdb /mnt
        fill() { dd if=/dev/zero of=$1/big bs=64k count=400 2>&1 | grep -o 'rror writing.*'; }
        fill /mnt; fill /mnt; rm /mnt/big; sync; seq 1 9000 > /mnt/seq; sync
        dd if=/mnt/seq bs=1k 2>/dev/null | cmp - /mnt/seq && umount /mnt && echo usable
        mount -o errors=remount-ro /dev/hdc /ro; fill /ro; ls /ro; umount /ro; true""",
        image,
        second=second,
    )
    damage = "block bitmap: group 4: 1023 free, but the descriptor says 1024\n"
    assert said.count("hdb: " + damage) == said.count("hdc: " + damage) == 1, said
    assert said.count("rror writing '/mnt/big': No space left on device") == 2, said
    assert "\nusable\n" in said and "hdc: read-only from now on\n" in said, said
    assert re.search("rror writing '/ro/big': (Structure|Read-only)", said), said
    done = run_tool("e2fsck", "-fn", str(image), allowed=(4,))
    assert re.findall(r"differences: .*|wrong for group #\d+", done) == [
        f"differences:  -{4 * 1024 + 70 * 8 + 1}", "wrong for group #4",
    ], done  # fmt: skip


def test_what_write_has_taken_is_kept(guest, tmp_path):  # noqa: F811
    """Contents wait in memory for their blocks. A write must not take what only a damaged group
    has room for, though nobody has looked at that group yet: fsync would lose it."""
    (tmp_path / "root").mkdir()
    options = "-t ext4 -b 1024 -g 1024 -O ^metadata_csum,^uninit_bg -J size=1"
    image = make_image(tmp_path / "a.img", 8 * MIB, options, tmp_path / "root")
    group = run_tool("dumpe2fs", str(image)).split("\nGroup 6: ")[1]
    patch(image, int(re.search(r"Block bitmap at (\d+)", group)[1]) * 1024 + 70, "B", 1)
    said = guest(
        f"""mkdir /mnt; mount -o errors=continue /dev/hdb /mnt; cd /mnt; {LONG}
        free=$(stat -f -c %f /mnt); stat -f -c 'free %f' /mnt
        dd if=/seq of=big bs=1k count=$((free - 700)) conv=fsync 2>&1 | grep -v records
        stat -f -c 'left %f' /mnt; stat -c 'has %s %b' big
        echo 3 > /proc/sys/vm/drop_caches; cmp big /seq; cd /; umount /mnt && echo ended""",
        image,
    )
    free, left = (
        int(re.search(rf"^{word} (\d+)", said, re.MULTILINE)[1]) for word in ("free", "left")
    )
    size, sectors = map(int, re.search(r"^has (\d+) (\d+)", said, re.MULTILINE).groups())
    assert "dd: error writing 'big': No space left on device" in said, said
    assert "cmp: EOF on big" in said and said.rstrip().endswith("ended"), said
    assert (free - 1024 - 300) * 1024 < size <= sectors * 512, said
    assert left < 300, said


def test_fallocate_leaves_what_was_promised(guest, tmp_path):  # noqa: F811
    """Another file's pages wait for their blocks, and fallocate wants nearly all that is free: they
    get theirs first. Their contents were lost."""
    (tmp_path / "root").mkdir()
    image = make_image(tmp_path / "a.img", 8 * MIB, "-t ext4 -b 1024 -J size=1", tmp_path / "root")
    said = guest(
        f"""mkdir /mnt; mount /dev/hdb /mnt; cd /mnt; {LONG}; touch two
        free=$(stat -f -c %f /mnt); dd if=/seq of=big bs=1k count=3000 2> /dev/null
        fallocate -l $(((free - 100) * 1024)) two; sync; stat -c 'has %s %b' big
        echo 3 > /proc/sys/vm/drop_caches; cmp big /seq; cd /; umount /mnt && echo ended""",
        image,
    )
    assert "fallocate 'two': No space left on device" in said and " lost" not in said, said
    assert "has 3072000 6000" in said and "cmp: EOF on big" in said and "ended" in said, said
