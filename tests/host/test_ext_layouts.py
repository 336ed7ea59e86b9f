"""The library writes to sound file systems of unusual layouts (tests/host/ext_layouts.py).

Each is filled until nothing more goes in, and emptied; e2fsck finds nothing. A run is bounded in
time: a loop that does not end is a failure. `make test` takes a seeded sample; `make layouts`, all,
in the guest too.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from tests.disks.test_ext_write_guest import dump, guest, programs, sums_of  # noqa: F401 (fixtures)
from tests.host.ext.images import SEED, run_tool
from tests.host.ext_layouts import LAYOUTS

pytest_plugins = ["tests.host.ext.fixtures"]

SAMPLE, IN_GUEST = 12, 4
# The kernel froze on the first two, left out what the third one has more than before, and refuses
# the last one.
ALWAYS = ("tune2fs-j", "journal-crosses-small-groups", "grown-ext4", "inline-data")
PIECE = 1 << 18  # bytes
NAMES = 150


def chosen(count: int, seed: int = SEED) -> list[str]:
    """The layouts of a run: some, with those that are always there; with LAYOUTS=all, all; with
    LAYOUTS=NAME, one."""
    wanted = os.environ.get("LAYOUTS")
    if wanted:
        names = list(LAYOUTS) if wanted == "all" else wanted.split()
        if unknown := [name for name in names if name not in LAYOUTS]:
            raise pytest.UsageError(f"LAYOUTS: there is no {unknown[0]}; there are {[*LAYOUTS]}")
        return names
    others = [name for name in LAYOUTS if name not in ALWAYS]
    return [*ALWAYS, *random.Random(seed).sample(others, count - len(ALWAYS))]


def begin() -> list[str]:
    """Files and directories of every kind, with attributes; some are made longer and shorter."""
    return [
        "mkdir /w",
        *(f"mkdir /w/d{number}" for number in range(40)),
        *(f"create /w/d3/file-with-a-name-of-some-length-{each}" for each in range(NAMES)),
        *(f"unlink /w/d3/file-with-a-name-of-some-length-{each}" for each in range(0, NAMES, 2)),
        "create /w/a",
        "write /w/a 0 30000 1",
        "write /w/a 300000 5000 2",
        "append /w/a 9000 3",
        "truncate /w/a 20000",
        "truncate /w/a 500000",
        "punch /w/a 4096 8192",
        "setattr /w/a user.small 20 1",
        "setattr /w/a user.large 700 2",
        "setattr /w/d1 user.large 700 2",
        f"symlink {'x/' * 40}y /w/slow",
        "link /w/a /w/d2/hard",
        "rename /w/a /w/d1/b",
        "rename /w/d2 /w/d1/below",
        "exchange /w/d4 /w/d5",
        "mknod /w/fifo",
    ]


def fill(image: Path) -> list[str]:
    """Two files that take all there is, and a directory that wants more."""
    pieces = range(image.stat().st_size // PIECE + 2)
    return [
        "create /w/full",
        "create /w/other",
        *(f"append /w/{('full', 'other')[each % 2]} {PIECE} {each}" for each in pieces),
        *(f"append /w/other 1024 {each}" for each in range(5)),
        *(f"mkdir /w/d5/full-{each}" for each in range(30)),
    ]


def empty() -> list[str]:
    """All of that goes."""
    return [
        *(f"rmdir /w/d5/full-{each}" for each in range(30)),
        "truncate /w/full 100000",
        "unlink /w/full",
        "unlink /w/other",
        *(f"unlink /w/d3/file-with-a-name-of-some-length-{each}" for each in range(1, NAMES, 2)),
        "unlink /w/d1/b",
        "unlink /w/d1/below/hard",
        "unlink /w/slow",
        "unlink /w/fifo",
        "rmdir /w/d1/below",
        *(f"rmdir /w/d{number}" for number in range(40) if number != 2),
        "rmdir /w",
        "rmdir /lost+found",
        "sync",
    ]


# Nothing in it may be too much for the smallest layout: what finds no room is left out.
WORK = """mkdir /mnt; mount /dev/hdb /mnt; cd /mnt; rmdir lost+found 2>/dev/null
mkdir -p t/a/b t/c; seq 1 4000 >t/numbers; for i in $(seq 60); do echo $i >t/c/file-$i; done
ln -s ../numbers t/a/link; ln t/numbers t/hard
cp -r t u; mv u/c v; rm -r v/*1*; mv t/numbers v/; truncate -s 5000 u/numbers; rm -r u/a
truncate -s 90000 u/numbers; dd if=/dev/zero of=full bs=64k 2>/dev/null; sync
for i in $(seq 200); do mkdir d$i 2>/dev/null || break; done; rm full; rmdir d*; sync
head -c 20000 /bin/busybox >last; find t/hard u v last -type f | sort | xargs md5sum
cd /; umount /mnt; mount /dev/hdb /mnt; rm -r /mnt/t/c; umount /mnt && echo unmounted"""


def usages(lines: list[str]) -> list[tuple[int, ...]]:
    """What "usage" said: blocks, free, available, inodes, free inodes."""
    return [tuple(map(int, line.split()[1:])) for line in lines if line.startswith("usage ")]


@pytest.mark.parametrize("name", chosen(SAMPLE))
def test_a_layout_is_written_to(ext, tmp_path, name):
    """Blocks and inodes run out where they should; what is freed can be had again."""
    layout = LAYOUTS[name]
    image = layout.make(tmp_path / "a.img")
    before = image.read_bytes() if layout.refused else b""
    script = ["usage", *begin(), "usage", *fill(image), "usage", "again", *empty(), "usage"]
    lines = ext.start(image, "write", text="\n".join([*script, "again", *begin(), *fill(image)]))
    if layout.refused:
        assert lines[-1].startswith("error E") and image.read_bytes() == before, lines
        return
    run_tool("e2fsck", "-fn", str(image))
    assert [line for line in lines if line.startswith(("console", "panic"))] == []
    errors = {line for line in lines if line.startswith("error")}
    assert errors <= {"error ENOSPC", "error EOPNOTSUPP", "error ENOENT", "error ENOTEMPTY"}, errors
    first, _, full, last = usages(lines)
    assert min(full[2], full[4]) <= 64, full
    assert last[1] >= first[1] - 4 and last[4] >= first[4], (first, last)
    assert re.search(r"Filesystem state: +clean", run_tool("dumpe2fs", "-h", str(image)))


@pytest.mark.parametrize("name", chosen(IN_GUEST))
def test_programs_write_to_a_layout(guest, tmp_path, name):  # noqa: F811
    """The same by system calls: a tree that is copied and moved, a full disk, and all of it gone.
    The guest's instructions are limited: a kernel that freezes is a failure."""
    layout = LAYOUTS[name]
    image = layout.make(tmp_path / "a.img")
    if layout.refused:
        before = image.read_bytes()
        said = guest(
            "mkdir /mnt; mount /dev/hdb /mnt && touch /mnt/new && echo made", image, ends=False
        )
        assert "made" not in said.splitlines() and image.read_bytes() == before, said
        return
    said = guest(WORK, image)
    run_tool("e2fsck", "-fn", str(image))
    assert said.splitlines()[-1] == "unmounted" and "error" not in said, said
    sums, there = sums_of(said), dump(image, tmp_path / "dump")
    assert sums and {path: there.get(path) for path in sums} == sums
