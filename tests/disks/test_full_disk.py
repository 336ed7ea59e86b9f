"""A full disk: what a program was promised is kept, and what it was not promised is not lost. And
when what is in memory is written back."""

from __future__ import annotations

import re

import pytest

from tests.disks.test_ext_write_guest import KINDS, check, guest, programs  # noqa: F401
from tests.host.ext.images import MIB, make_image, run_tool


@pytest.fixture
def image(tmp_path, request):
    """An empty file system of the kind that the test is asked for."""
    (tmp_path / "root").mkdir()
    return make_image(tmp_path / "a.img", 8 * MIB, KINDS[request.param], tmp_path / "root")


@pytest.mark.parametrize("image", ["ext3-1k", "ext4", "ext4-4k"], indirect=True)
def test_a_write_past_the_cache_is_told_and_nothing_is_lost(guest, image):  # noqa: F811
    """The program gets ENOSPC. The console says nothing, because no contents are lost."""
    said = guest(
        """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt
        dd if=/dev/zero of=large bs=64k oflag=direct 2>&1 | grep -o 'No space left on device'
        dd if=/dev/zero of=large bs=64k count=9 oflag=direct conv=notrunc 2>&1 | grep 'out'
        set -- $(stat -c '%s %b' large); cd /; umount /mnt; mount /dev/hdb /mnt
        [ "$(stat -c '%s %b' /mnt/large)" = "$*" ] && echo same; umount /mnt""",
        image,
    )
    assert said == "No space left on device\n9+0 records out\nsame\n"
    check(image)


@pytest.mark.parametrize("image", ["ext3-1k", "ext4-4k"], indirect=True)
def test_no_block_is_promised_twice(guest, image):  # noqa: F811
    """Processes that write through the cache, past it, and allocate, all on what is left of a disk.
    They sleep in the middle of everything."""
    said = guest(
        """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt; mkdir work
        dd if=/dev/zero of=large bs=64k 2>/dev/null; sync
        truncate -s $(($(stat -c %s large) - 400000)) large; sync
        /promises work 12; cd /; umount /mnt && echo unmounted""",
        image,
        settings={"disk": "dma-interrupt"},
    )
    assert said == "lost: 0\n" * 2 + "unmounted\n"
    check(image)


@pytest.mark.parametrize("image", ["ext4-4k"], indirect=True)
def test_write_back_waits_from_the_first_second_on(guest, image):  # noqa: F811
    """The machine is younger than what counts as old: files that are written to each second stay in
    memory nevertheless, and are written back together when they are old."""
    said = guest(
        """mkdir /mnt; mount -o noatime /dev/hdb /mnt; cd /mnt
        writes() { awk '$3 == "hdb" {print "writes", $8}' /proc/diskstats; }
        writes
        for i in 1 2 3; do for f in a b c d e f; do echo $i >>$f; done; sleep 1; done; writes
        echo up $(cat /proc/uptime); sleep 6; writes; cd /; umount /mnt""",
        image,
    )
    mounted, young, old = map(int, re.findall(r"^writes (\d+)$", said, re.M))
    assert 3 <= float(re.search(r"^up (\S+)", said, re.M)[1]) < 5
    assert young == mounted and 6 <= old - young < 60, said
    check(image)


@pytest.mark.parametrize("image", ["ext3-1k", "ext4-4k"], indirect=True)
def test_stat_says_the_same_before_and_after_a_write_back(guest, image):  # noqa: F811
    """That blocks are allocated is no change of the file: tar said "file changed as we read it".
    And a file whose pages have no blocks yet is no hole: tar -S kept nothing of its contents."""
    said = guest(
        """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt; seq 20000 > a; truncate -s 3M b; echo end >> b
        mkdir d; touch d/c; seq 2000 > d/c; truncate -s 3 d/c; usleep 20000
        show() { stat -c "$1 %n %s %z %y" a b d/c; stat -c 'blocks %n %b' a b d/c; }
        show before; usleep 50000; sync; show after; cd /; umount /mnt""",
        image,
        settings={"disk": "dma-interrupt"},
    )
    before, after = ([line.split()[1:] for line in said.splitlines() if line.startswith(word)]
                     for word in ("before", "after"))  # fmt: skip
    assert len(before) == 3 and before == after, said
    blocks = re.findall(r"^blocks (\S+) (\d+)$", said, re.M)
    assert len(blocks) == 6 and all(int(number) > 0 for _, number in blocks), said
    assert int(blocks[0][1]) >= 108894 // 512, said
    check(image)


@pytest.mark.parametrize("options", ["-t ext2 -b 1024", "-t ext3 -b 1024", "-t ext4 -b 1024"])
def test_what_has_blocks_can_be_written_again(guest, tmp_path, options):  # noqa: F811
    """On a full disk, although the rest of its page has none; by three tasks."""
    image = make_image(tmp_path / "disk", 4 * MIB, f"{options} -m 0")
    said = guest("mkdir /mnt; mount /dev/hdb /mnt; /partly /mnt; umount /mnt", image)
    assert re.findall(r"^(?:WRONG|done).*$", said, re.M) == ["done"]
    check(image)
    shown = {name: run_tool("debugfs", "-R", f"cat /{name}", str(image))
             for name in (f"part{i}" for i in range(5))}  # fmt: skip
    assert shown["part4"] == ("given" if "ext4" in options else "")
    for i in range(4):
        start = "012." + "\0\0\0\0" + ("s" if i == 0 else "\0")
        assert shown[f"part{i}"] == "\0" * 1024 * i + start.ljust(1024 * (4 - i), "\0")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("-t ext4 -b 4096 -J size=4", (14325, 14319, 13173)),
        ("-t ext3 -b 2048 -J size=4", (28602, 28587, 26949)),
        ("-t ext2 -b 1024", (60138, 60124, 56848)),
    ],
)
def test_df_says_what_it_says_on_linux(guest, tmp_path, options, wanted):  # noqa: F811
    """Blocks for files, free ones, and those that are available to others than root, mounted to
    write and only to read: the journal is none of them, nor what extents may need for maps."""
    image = make_image(tmp_path / "a.img", 64 * MIB, options)
    said = guest(
        """mkdir /mnt; mount /dev/hdb /mnt; stat -f -c '%b %f %a' /mnt; umount /mnt
        mount -o ro /dev/hdb /mnt; stat -f -c '%b %f %a' /mnt; umount /mnt""",
        image,
    )
    assert said == "{} {} {}\n".format(*wanted) * 2
