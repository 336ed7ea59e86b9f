"""fsync and its like, by two tasks at once: each returns only when the change is on the medium.

Judged from outside: QEMU's trace has, in one order, the commands that the drives get, when the
guest reads that they are done, and each letter on the serial line."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from labs.tools.guest.programs import COMMAND
from labs.tools.machine.disk_trace import CHANNEL_OF_PORT, DiskTrace
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import UNIT_NAMES, DiskError, Drive
from labs.tools.machine.result import Outcome
from labs.tools.machine.run import machine_config, machine_options
from tests.disks.test_ext_write_guest import ROOT, programs  # noqa: F401 (a fixture)
from tests.host.ext.images import MIB, bmap, make_image, run_tool
from tests.support.building import make, mentioned

EVENTS = ("ide_*exec_cmd", "ide_ioport_write", "ide_ioport_read", "ide_dma_cb", "serial_write")
STATUS_READ = re.compile(r"ide_ioport_read IDE PIO rd @ 0x(1f7|177) \(.*?\); val 0x(\w+);")
LETTER = re.compile(r"serial_write (?:write addr 0x00 val|\[0x00\] <-) 0x(\w+)")
BUSY = 0x80
BESIDE = "sync, while another task writes back"
CALLS = ("fsync", "fdatasync", "O_SYNC", "O_DSYNC", "msync", "sync", "syncfs", "sync_file_range",
         "fsync of a directory", "fsync of what was evicted", BESIDE)  # fmt: skip
FLUSHES = {"/n/ext2": 1, "/dev/hdd": 1}  # that a commit has; elsewhere two
ROUNDS = int(os.environ.get("ROUNDS", "2"))  # 117: ten thousand calls


class Returned(NamedTuple):
    """A call has returned."""

    place: str
    call: str
    is_good: bool
    flushes: int
    """That ended since its change began, on that drive."""
    writes: int
    """That the drive was given after that, until all was done."""


def events(trace: Iterable[str], drives: Iterable[str]) -> Iterator[tuple[str, str]]:
    """("letter", one of the serial line), ("flushed" or "write", a drive)."""
    commands = DiskTrace(set(drives))
    flushing: dict[int, str] = {}
    for line in trace:
        if match := LETTER.search(line):
            yield "letter", chr(int(match[1], 16))
        elif match := STATUS_READ.search(line):
            channel = CHANNEL_OF_PORT[int(match[1], 16) & ~7]
            if channel in flushing and not int(match[2], 16) & BUSY:
                yield "flushed", flushing.pop(channel)
        seen = len(commands.requests)
        commands.feed(line)
        for request in commands.requests[seen:]:
            if request.operation == "flush":
                flushing[UNIT_NAMES.index(request.drive) // 2] = request.drive
            elif request.operation == "write":
                yield "write", request.drive


def returned(trace: Iterable[str], drives: dict[str, str]) -> Iterator[Returned]:
    """What the program `together` said. `drives`: of each the places that it has."""
    text, place, call = "", "", ""
    count: Counter[tuple[str, str]] = Counter()
    here: list[tuple[bool, int, int]] = []
    for kind, what in events(trace, drives):
        if kind != "letter":
            count[kind, what] += 1
            continue
        text = (text + what)[-100:]
        if match := re.search(r"judge (\S+)\r?\n$", text):
            place, text = match[1], ""
            drive = next(drive for drive, prefix in drives.items() if place.startswith(prefix))
        elif place and text[-2:-1] == "{":
            call = CALLS[ord(what) - ord("A")]
            begun = count["flushed", drive]
        elif place and what in "+~":
            here += [(what == "+", count["flushed", drive] - begun, count["write", drive])]
        elif place and what == "}":
            for is_good, flushes, writes in here:
                later = count["write", drive] - writes
                yield Returned(place, call, is_good, flushes, later)
            here = []


@pytest.fixture
def traced(programs, tmp_path):  # noqa: F811
    """Runs a script of the guest, and gives what was said and QEMU's trace."""

    def go(script: str, drives: tuple[Drive, ...]) -> tuple[str, Iterable[str]]:
        make("LESSON=storage", "image-direct", "user-programs")
        words = ["--boot", "direct", "--user", str(ROOT / "build/user/bin"), "--build"]
        words += [str(ROOT / "build/storage"), "--command", script]
        words += ["--programs", str(mentioned(programs, script))]
        trace = tmp_path / "trace"
        options = [word for event in EVENTS for word in ("-trace", event)]
        config = replace(
            machine_config(machine_options("test").parse_args(words)),
            drives=drives,
            settings=(("cmd", f"/bin/sh /{COMMAND}"), ("disk", "dma-interrupt")),
            extra=("-D", str(trace), *options),
            guest_limit=120 + 10 * ROUNDS,
            wall_limit=3600,
        )
        result = run(config)
        assert result.outcome is Outcome.ENDED and result.status == 0, result.explain()
        said = result.serial.partition("from the host")[2].partition("\n")[2]
        return said, trace.open()

    return go


def test_nobody_returns_early(traced, tmp_path):
    """Two tasks, one change, eleven kinds of calls, four kinds of mounts, and a raw drive: each
    call returns after the last FLUSH CACHE of a commit that began after the change."""
    size, inodes = (16 + ROUNDS) * MIB, 1000 + 40 * ROUNDS
    ext4 = make_image(tmp_path / "b.img", size, f"-t ext4 -b 1024 -N {inodes}")
    ext2 = make_image(tmp_path / "c.img", size, f"-t ext2 -b 1024 -N {inodes}")
    raw = tmp_path / "d.img"
    raw.write_bytes(bytes(MIB))
    script = "mkdir /m /n\n" + "".join(
        f"mount -o data={data} /dev/hdb /m; mkdir /m/{data}; /together /m/{data} {ROUNDS}\n"
        f"/stale /m/stale {ROUNDS * 8}; umount /m\n"
        for data in ("ordered", "journal", "writeback")
    )
    script += f"mount /dev/hdc /n; mkdir /n/ext2; /together /n/ext2 {ROUNDS}\n"
    script += f"/stale /n/stale {ROUNDS * 8}; umount /n\n"
    script += f"/together /dev/hdd {ROUNDS}; echo all"
    said, trace = traced(
        script,
        tuple(Drive(each, at, writable=True) for at, each in ((1, ext4), (2, ext2), (3, raw))),
    )
    assert said.endswith("all\n"), said
    assert re.findall(r"stale: (.*)", said) == ["0 stale, 0 past the cache"] * 4, said
    found = list(returned(trace, {"hdb": "/m", "hdc": "/n", "hdd": "/dev/hdd"}))
    calls = 2 * len(CALLS) - 1
    assert len(found) == ROUNDS * (4 * calls + 2) and all(each.is_good for each in found)
    early = [
        each
        for each in found
        if each.flushes < FLUSHES.get(each.place, 2) or (each.call == BESIDE and each.writes)
    ]
    assert not early, Counter((each.place, each.call) for each in early)
    for image in (ext4, ext2):
        run_tool("e2fsck", "-fn", str(image))


LATE = """before: ok
one: Input/output error
one again: ok
two: Input/output error
three: ok
syncfs: Input/output error
syncfs again: ok
syncfs of a later pipe: ok
syncfs of another: Input/output error
syncfs of a later one: ok
msync: Input/output error
msync again: ok
syncfs of who comes late: Input/output error
one at last: Input/output error
"""


def test_who_waits_is_told_and_who_comes_late(traced, tmp_path):
    """A commit that fails is an error for both tasks that wait for it: on ext4 a block of the
    journal cannot be written, on ext2 a bitmap. What could not be written back after a close is
    told to who opens the file next."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/file").write_bytes(bytes(range(256)) * 256)
    images = [
        make_image(tmp_path / f"{number}.img", 16 * MIB, options, tmp_path / "root")
        for number, options in enumerate(("-t ext4", "-t ext2", "-t ext4 -b 4096"))
    ]
    bitmap = re.search(r"Block bitmap at (\d+)", run_tool("dumpe2fs", str(images[1])))
    bad = (
        bmap(images[0], [("<8>", 3)])[0][0] * 2,
        int(bitmap[1]) * 2,
        bmap(images[2], [("/file", 0)])[0][0] * 8,
    )
    said, trace = traced(
        """mkdir /m /n /o; mount -t ext4 /dev/hdb /m; mount /dev/hdc /n; mount /dev/hdd /o
        mkfifo /o/pipe; /late_errors /o /o/file /o/pipe; echo; umount /o
        /together /m 1 1; /together /n 1""",
        tuple(
            Drive(image, at + 1, writable=True, errors=(DiskError("write", sector),))
            for at, (image, sector) in enumerate(zip(images, bad, strict=True))
        ),
    )
    assert LATE in re.sub(r"^hdd.*\n", "", said, flags=re.M), said
    found = list(returned(trace, {"hdb": "/m", "hdc": "/n"}))
    assert len(found) == 2 * len(CALLS) + 1
    wrong = [each for each in found if each.is_good and each.call not in ("sync", BESIDE)]
    assert not wrong
    for image in images:
        run_tool("e2fsck", "-p", str(image), allowed=(0, 1))
