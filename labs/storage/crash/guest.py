"""Power cuts of a guest: QEMU's blklogwrites records what our kernel wrote and flushed while
programs ran, and any state that a power cut would have left is made of that record.

The disk is larger than its file system. To say where it is, the guest writes sector END + n with
O_DIRECT ("mark n"): in the record that is in its order between the other requests.

    requests   0 write  1 write  2 FLUSH  mark 0  3 write  4 FLUSH  mark 1  5 write ...
    marks      0: 3 requests              1: 5 requests

Whatever a program was promised before mark n must be in each state after that many requests.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labs.storage.crash.building import MIB, ROOT, run_tool
from labs.storage.crash.log import FUA, SECTOR, Entry, read_log
from labs.storage.crash.workloads import Workload, pattern
from labs.tools.guest.debian import debian_root
from labs.tools.guest.initramfs import Entry as File
from labs.tools.guest.initramfs import archive, regular
from labs.tools.guest.programs import busybox, guest_root
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive

KERNEL = ROOT / "build/storage/kernel.elf"
DONE = "the recorded programs have ended"
SECONDS = 3000
NOT_NEEDED = ("perl", "gconv", "scalar", "git-shell", "git-core/git-re", "git-core/git-ht")

HEAD = """\
set -eu
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C TZ=UTC
mark() {{ dd if=/dev/zero of=/dev/hdb bs=512 count=1 seek=$(({end} + $1)) oflag=direct \\
	conv=notrunc status=none; }}
mkdir -p /mnt && /bin/mount /dev/hdb /mnt && cd /mnt
"""
TAIL = f"\ncd / && /bin/umount /mnt && echo {DONE}\n"


class GuestError(Exception):
    """The guest did not come to its end; the text has its last words."""


@dataclass(frozen=True)
class Recording:
    """What a guest wrote to its file system, and how many requests there were at each mark."""

    image: bytes  # before it
    entries: list[Entry]
    marks: list[int]

    def passed(self, position: int) -> int:
        """How many marks there were before a cut after this many requests."""
        return sum(mark <= position for mark in self.marks)

    def epoch(self, position: int) -> int:
        """The first request after the last flush before a position: those from it on may be
        missing."""
        flushes = (at for at in range(position, 0, -1) if self.entries[at - 1].flushes)
        return next(flushes, 0)

    def cuts(self, count: int, seed: int) -> Iterator[tuple[int, frozenset[int]]]:
        """Positions, and requests of the open epoch that are missing: half of the cuts have such,
        if there are any. A fifth of the positions are at a mark."""
        chance = random.Random(seed)
        for number in range(count):
            position = chance.randrange(len(self.entries) + 1)
            if number % 5 == 0 and self.marks:
                position = chance.choice(self.marks)
            open_ones = [
                at
                for at in range(self.epoch(position), position)
                if self.entries[at].data and not self.entries[at].flags & FUA
            ]
            some = chance.sample(open_ones, chance.randint(0, len(open_ones)))
            yield position, frozenset(some if number % 2 else ())

    def state(self, position: int, missing: Iterable[int] = ()) -> bytes:
        """The file system after a cut."""
        disk, lost = bytearray(self.image), set(missing)
        for number, entry in enumerate(self.entries[:position]):
            if number not in lost:
                disk[entry.sector * SECTOR : entry.sector * SECTOR + len(entry.data)] = entry.data
        return bytes(disk)


@cache
def system(packages: tuple[str, ...]) -> list[File]:
    """The guest's root with Debian's programs. Raises PackageError."""
    every = guest_root(ROOT / "build/user/bin", busybox(), [debian_root(packages)])
    return [file for file in every if not any(word in file.path for word in NOT_NEEDED)]


def record(
    image: Path, script: str, place: Path, packages: Sequence[str], files: Iterable[File] = ()
) -> Recording:
    """Runs a script for bash in our kernel, in the file system of an image, which stays as it is.
    Raises GuestError, PackageError."""
    before = image.read_bytes()
    end = len(before) // SECTOR
    disk, log, root = place / "disk", place / "log", place / "initramfs"
    disk.write_bytes(before + bytes(MIB))
    log.write_bytes(b"")
    programs = ["bash", "coreutils", *packages]
    text = HEAD.format(end=end) + script + TAIL
    every = [*system(tuple(programs)), *files, regular("programs", text.encode())]
    root.write_bytes(archive(every))
    machine = Config(
        boot="direct",
        kernel=KERNEL,
        initramfs=root,
        memory=512,
        drives=(Drive(disk, 1, writable=True, log=log),),
        settings=(("cmd", "bash /programs"), ("disk", "dma-polled")),
        guest_limit=SECONDS,
        wall_limit=SECONDS,
    )
    result = run(machine)
    if DONE not in result.serial:
        raise GuestError(f"{result.explain()}\n{result.serial[-2000:]}")
    run_tool("e2fsck", "-fn", str(disk))
    return split(before, read_log(log))


def split(before: bytes, log: Iterable[Entry]) -> Recording:
    """The requests of the file system, and the marks between them."""
    entries: list[Entry] = []
    marks: list[int] = []
    for entry in log:
        if entry.sector * SECTOR >= len(before):
            marks.append(len(entries))
        elif entry.data or entry.flushes:
            entries.append(entry)
    return Recording(before, entries, marks)


def dump_state(image: Path, folder: Path) -> None:
    """e2fsck replays the journal, and finds nothing else; then debugfs reads all files. Raises
    RuntimeError."""
    run_tool("e2fsck", "-y", "-E", "journal_only", str(image), allowed=(0, 1))
    run_tool("e2fsck", "-fn", str(image))
    run_tool("debugfs", "-R", f"rdump / {folder}", str(image))


# ---- the library's workloads, in the guest ------------------------------------------------------

COMMANDS = {
    "create": ": > .{0}",
    "truncate": "truncate -s {1} .{0}",
    "link": "ln .{0} .{1}",
    "unlink": "rm .{0}",
    "rename": "mv -T .{0} .{1}",
    "mkdir": "mkdir .{0}",
    "rmdir": "rmdir .{0}",
    "symlink": "ln -s {0} .{1}",
    "fsync": "sync .{0}",
    "fdatasync": "sync -d .{0}",
    "sync": "sync",
    "again": "cd / && /bin/umount /mnt && /bin/mount /dev/hdb /mnt && cd /mnt",
}


def in_shell(workload: Workload) -> tuple[str, list[File]]:
    """A workload as commands with a mark after each, and the files with what they write. Raises
    KeyError for an operation that the guest's programs do not have."""
    lines, files, sizes = [], [], {}
    for number, line in enumerate(workload.lines):
        name, *words = line.decode().split()
        if name in ("write", "append"):
            path, rest = words[0], [int(word) for word in words[1:]]
            at = rest[0] if name == "write" else sizes.get(path, 0)
            length, seed = rest[-2:]
            data = pattern(at + length, seed)[at:]
            files.append(regular(f"data/{number}", data, 0o644))
            sizes[path] = max(sizes.get(path, 0), at + length)
            lines.append(
                f"dd if=/data/{number} of=.{path} bs=1M oflag=seek_bytes seek={at} conv=notrunc "
                "status=none"
            )
        else:
            lines.append(COMMANDS[name].format(*words))
            if name == "create":
                sizes[words[0]] = 0
        lines.append(f"mark {number}")
    return "\n".join(lines), files


def marked(workload: Workload, recording: Recording) -> Workload:
    """The workload as the laboratory's program reads it with log=: each line begins with the number
    of requests that there were when it had ended."""
    lines = zip(recording.marks, workload.lines, strict=True)
    text = tuple(b"%d %s" % (end, line) for end, line in lines)
    return Workload(workload.name, text, workload.on_tree, workload.small)
