"""S5 in the whole kernel: the machine is cut off, and e2fsprogs judge its disk."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from labs.tools.grading.lab import Lab
from labs.tools.machine.bounded import run_within
from labs.tools.machine.qemu_command import Drive
from tests.host.ext.images import ENVIRONMENT
from tests.lesson3.support import with_files
from tests.lesson4.support import program

SOURCE = "tests/storage/hidden/journal_files.c"
MIB = 1 << 20
SECONDS = 60
WORDS = 750  # of a file
CUTS = (2, 13)  # this many files are safe when the power fails
MOST = 40


def tool(*command: object, text: str = "") -> subprocess.CompletedProcess[str]:
    """One of e2fsprogs, for a bounded time."""
    words = [str(each) for each in command]
    options = {"capture_output": True, "text": True, "check": False, "env": ENVIRONMENT}
    return run_within(words, input=text, seconds=SECONDS, **options)


def new_disk(place: Path, options: str) -> Path:
    """A disk with a small journal, so that its log goes round."""
    with place.open("wb") as file:
        file.truncate(16 * MIB)
    done = tool("mke2fs", "-q", "-F", *options.split(), "-J", "size=1", place)
    assert done.returncode == 0, done.stderr
    return place


def check(image: Path, where: str) -> None:
    """e2fsck finds nothing to repair."""
    done = tool("e2fsck", "-fn", image)
    assert done.returncode == 0, f"{where}: e2fsck finds\n{done.stdout[-1500:]}"


def check_files(image: Path, count: int, where: str, first: int = 1) -> None:
    """What was safe is there."""
    place = image.with_suffix(".files")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    names = [f"f{number:04}" for number in range(first, first + count)]
    asked = "".join(f"dump /{name} {place / name}\n" for name in names)
    tool("debugfs", "-f", "/dev/stdin", image, text=asked)
    for number, name in enumerate(names, first):
        data = (place / name).read_bytes() if (place / name).exists() else b""
        assert data == struct.pack("<I", number) * WORDS, (
            f"{where}: fsync of /{name} had returned, and the file has {len(data)} bytes, or others"
        )


def cut_off(lab: Lab, disk: Path, count: int, first: int = 1) -> None:
    """Programs write, and the machine ends when this many files are safe."""
    files = with_files(lab, {"bin/journal_files": program(SOURCE)})
    drives = (Drive(disk, 1, writable=True),)
    script = f"run /bin/journal_files write {MOST} {first}"
    settings = (("disk", "dma-polled"),)
    with lab.machine(script, drives=drives, settings=settings, **files) as machine:
        machine.expect(rf"safe {first + count - 1}\r?\n")


@pytest.mark.exercise("S5", points=1)
@pytest.mark.parametrize("options", ["-t ext4 -b 1024", "-t ext3 -b 1024"], ids=["ext4", "ext3"])
def test_kernel_is_cut_off(lab: Lab, options: str) -> None:
    """A power cut of the kernel: after e2fsck's replay the file system is sound, and what fsync
    promised is there."""
    for count in CUTS:
        disk = new_disk(lab.scratch / "cut.img", options)
        cut_off(lab, disk, count)
        where = f"the machine is cut off when {count} files are safe, and e2fsck replays the log"
        done = tool("e2fsck", "-E", "journal_only", "-y", disk)
        assert done.returncode in (0, 1), f"{where}: {done.stdout[-1000:]}"
        check(disk, where)
        check_files(disk, count, where)


@pytest.mark.exercise("S5", points=1, gate=True)
def test_kernel_replays(lab: Lab) -> None:
    """Replay by the kernel: the same as e2fsck's, also after a second power cut."""
    disk = new_disk(lab.scratch / "own.img", "-t ext4 -b 1024")
    cut_off(lab, disk, 12)
    cut_off(lab, disk, 5, first=101)
    judged = lab.scratch / "judged.img"
    shutil.copy(disk, judged)
    assert tool("e2fsck", "-E", "journal_only", "-y", judged).returncode in (0, 1)
    files = with_files(lab, {"bin/journal_files": program(SOURCE)})
    settings = (("disk", "dma-polled"),)
    drives = (Drive(disk, 1, writable=True),)
    said = (
        lab.run("run /bin/journal_files read", drives=drives, settings=settings, **files)
        .check()
        .serial
    )
    assert "unmounted 0" in said, said[-1000:]
    for image, who in ((disk, "the kernel"), (judged, "e2fsck")):
        where = f"the machine was cut off twice, and {who} has replayed the log"
        check(image, where)
        check_files(image, 12, where)
        check_files(image, 5, where, first=101)
    assert names(disk) == names(judged), "the kernel's replay and e2fsck's give different names"


def names(image: Path) -> list[str]:
    """What is in the root."""
    return sorted(
        re.findall(r"/([\w+.]+)/\d*/$", tool("debugfs", "-R", "ls -p /", image).stdout, re.M)
    )
