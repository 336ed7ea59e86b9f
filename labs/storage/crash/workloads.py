"""Workloads: made by hand, and every sequence of one and two operations (CrashMonkey's ACE).

An operation is a line of tests/host/ext/files.h. Names of workloads say what is in them, so that
one can be had again by its name alone.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ESCAPED = b"\xc0\x3b\x39\x98"  # what the journal's own blocks begin with
KIB = 1024


@dataclass(frozen=True)
class Workload:
    """Operations on a file system that is empty, or has the tree of make_tree; or on a small one,
    that becomes full."""

    name: str
    lines: tuple[bytes, ...]
    on_tree: bool = False
    small: bool = False

    @property
    def image(self) -> str:
        """The kind of image that it begins with."""
        return "tree" if self.on_tree else "small" if self.small else "empty"

    def text(self, kind: str = "workload") -> bytes:
        """As the program reads it."""
        return b"\n".join([f"{kind} {self.name}".encode(), *self.lines, b"end", b""])


def pattern(length: int, seed: int) -> bytes:
    """What "write PATH 0 LENGTH SEED" writes."""
    words = (struct.pack("<II", at + 1, seed) for at in range(-(-length // 8)))
    return b"".join(words)[:length]


def make_tree(root: Path) -> Path:
    """What the sequences begin with."""
    (root / "A" / "sub").mkdir(parents=True)
    (root / "B").mkdir()
    (root / "foo").write_bytes(pattern(10_000, 1))
    (root / "A" / "bar").write_bytes(pattern(5_000, 2))
    (root / "A" / "sub" / "deep").write_bytes(pattern(100, 3))
    return root


# ---- every sequence of one or two operations ---------------------------------------------------

# What is done, and where a sync of one file or directory would promise it. {0} is a seed.
OPERATIONS = {
    "create": ("create /new", "/new"),
    "create-below": ("create /A/new", "/A/new"),
    "write-new": ("create /fresh\nwrite /fresh 0 7000 {0}", "/fresh"),
    "write-far": ("write /foo 40000 3000 {0}", "/foo"),
    "append": ("append /foo 3000 {0}", "/foo"),
    "append-little": ("append /A/bar 100 {0}", "/A/bar"),
    "append-much": ("append /A/bar 60000 {0}", "/A/bar"),
    "overwrite": ("write /foo 0 4096 {0}", "/foo"),
    "overwrite-middle": ("write /foo 1000 3000 {0}", "/foo"),
    "truncate": ("truncate /foo 0", "/foo"),
    "truncate-part": ("truncate /foo 5001", "/foo"),
    "truncate-longer": ("truncate /foo 20000", "/foo"),
    "punch": ("punch /foo 1024 6000", "/foo"),
    "punch-all": ("punch /foo 0 12288", "/foo"),
    "allocate": ("allocate /foo 8192 16384", "/foo"),
    "link": ("link /foo /A/foo2", "/foo"),
    "link-up": ("link /A/bar /bar2", "/A/bar"),
    "unlink": ("unlink /foo", "/"),
    "unlink-below": ("unlink /A/bar", "/A"),
    "unlink-deep": ("unlink /A/sub/deep", "/A/sub"),
    "rename": ("rename /foo /bar", "/bar"),
    "rename-away": ("rename /foo /A/foo", "/A/foo"),
    "rename-over": ("rename /foo /A/bar", "/A/bar"),
    "rename-directory": ("rename /A/sub /B/sub", "/B/sub"),
    "rename-over-directory": ("rename /A/sub /B", "/B"),
    "rename-up": ("rename /A /B/A", "/B/A"),
    "exchange": ("exchange /foo /A/bar", "/foo"),
    "mkdir": ("mkdir /C", "/C"),
    "mkdir-below": ("mkdir /A/C", "/A/C"),
    "rmdir": ("rmdir /B", "/"),
    "setattr": ("setattr /foo user.a 20 {0}", "/foo"),
    "setattr-block": ("setattr /A/bar user.long 600 {0}", "/A/bar"),
    "removeattr": ("setattr /B user.b 90 {0}\nremoveattr /B user.b", "/B"),
    "symlink": ("symlink foo /short", "/"),
    "symlink-long": (f"symlink {'x' * 100} /A/long", "/A"),
}
SYNCS = ("none", "fsync", "fdatasync", "sync")


def sync_lines(kind: str, path: str) -> list[str]:
    """What makes an operation safe."""
    return {"none": [], "sync": ["sync"]}.get(kind, [f"{kind} {path}"])


def sequence(*steps: tuple[str, str]) -> Workload:
    """Operations by name, each with a sync after it or none; in the end there is an unmount."""
    lines = []
    for number, (name, kind) in enumerate(steps):
        text, path = OPERATIONS[name]
        lines += [*text.format(100 + number).split("\n"), *sync_lines(kind, path)]
    lines.append("again")
    name = "+".join(f"{name}.{kind}" for name, kind in steps)
    return Workload(name, tuple(line.encode() for line in lines), on_tree=True)


def single_operations() -> list[Workload]:
    """Every sequence of one operation."""
    return [sequence((name, kind)) for name in OPERATIONS for kind in SYNCS]


def pairs(seed: int) -> Iterator[Workload]:
    """Every sequence of two operations, in a seeded order."""
    steps = [(name, kind) for name in OPERATIONS for kind in SYNCS]
    every = [(first, second) for first in steps for second in steps]
    random.Random(seed).shuffle(every)
    for first, second in every:
        yield sequence(first, second)


# ---- by hand -----------------------------------------------------------------------------------


def lines_of(text: str) -> tuple[bytes, ...]:
    """The lines of a text."""
    return tuple(line.strip().encode() for line in text.strip().splitlines())


def many_files() -> Iterator[str]:
    """Files come and go, and sometimes there is a sync."""
    yield "mkdir /d"
    for number in range(24):
        yield f"create /d/file{number}"
        yield f"write /d/file{number} 0 {number * 700} {200 + number}"
        if number % 5 == 4:
            yield "sync"
            yield f"unlink /d/file{number - 3}"
            yield f"rename /d/file{number - 2} /moved{number}"
    yield "sync"


def log() -> Iterator[str]:
    """A log: append, fsync."""
    yield "create /log"
    for number in range(16):
        yield f"append /log {137 * (number + 1)} {300 + number}"
        yield "fsync /log" if number % 3 else "fdatasync /log"


def database() -> Iterator[str]:
    """A file that is changed in place, with an undo journal that is deleted: as sqlite does."""
    yield from ("create /db", "write /db 0 32768 400", "sync")
    for number in range(6):
        place = number * 4096
        yield from ("create /db-journal", f"write /db-journal 0 4608 {410 + number}")
        yield from ("fsync /db-journal", f"write /db {place} 4096 {420 + number}")
        yield from ("fsync /db", "unlink /db-journal")
    yield "sync"


def saving() -> Iterator[str]:
    """An editor that saves: a new file, fsync, and over the old one."""
    yield from ("create /text", "write /text 0 3000 500", "sync")
    for number in range(8):
        yield from ("create /text.new", f"write /text.new 0 {2500 + 900 * number} {501 + number}")
        if number != 5:
            yield "fsync /text.new"
        yield "rename /text.new /text"
    yield "sync"


def reuse() -> Iterator[str]:
    """Blocks of directories, deleted, become blocks of files: an old copy must not come back."""
    for turn in range(3):
        yield f"mkdir /d{turn}"
        for number in range(40):
            yield f"create /d{turn}/{'n' * 60}{number}"
        yield "sync"
        for number in range(40):
            yield f"unlink /d{turn}/{'n' * 60}{number}"
        yield f"rmdir /d{turn}"
        if turn == 1:
            yield "sync"
        for number in range(4):
            yield f"create /big{turn}.{number}"
            yield f"write /big{turn}.{number} 0 40000 {600 + 10 * turn + number}"
        yield f"fsync /big{turn}.0"
    yield "create /last"
    yield "sync"


def orphans() -> Iterator[str]:
    """Files that are open when their last name goes."""
    for number in range(4):
        yield from (f"create /o{number}", f"write /o{number} 0 30000 {700 + number}")
    yield "sync"
    for number in range(4):
        yield from (f"open /o{number}", f"unlink /o{number}")
    yield from ("create /x", "fsync /x", "mkdir /d", "close", "sync", "create /y", "sync")


def long_files() -> Iterator[str]:
    """Files with mapping blocks of their own."""
    yield "create /solid"
    yield "write /solid 0 400000 800"
    yield "create /holes"
    for number in range(0, 60, 2):
        yield f"write /holes {number * 9000} 1500 {801 + number}"
    yield "fsync /holes"
    yield "punch /solid 100000 200000"
    yield "truncate /holes 300000"
    yield "write /solid 150000 5000 900"
    yield "fdatasync /solid"
    yield "truncate /solid 1000"
    yield "unlink /holes"
    yield "create /after"
    yield "write /after 0 300000 901"
    yield "sync"


def directories() -> Iterator[str]:
    """Directories move; one grows until it has an index, and becomes empty again."""
    yield from ("mkdir /a", "mkdir /a/b", "mkdir /a/b/c", "create /a/b/c/f", "mkdir /z", "sync")
    yield from ("rename /a/b /z/b", "exchange /z/b /a", "rename /a/c /z/c", "fsync /z")
    for number in range(70):
        yield f"create /z/{'name' * 10}{number}"
    yield "sync"
    for number in range(0, 70, 3):
        yield f"unlink /z/{'name' * 10}{number}"
    yield from ("fsync /z", "rename /z /y", "sync")


def sessions() -> Iterator[str]:
    """Unmounted and mounted again, in the middle of it."""
    for number in range(4):
        yield from (f"create /s{number}", f"write /s{number} 0 6000 {950 + number}")
        if number % 2 == 0:
            yield "again"
        yield f"append /s{number} 5000 {960 + number}"
        yield f"unlink /s{number - 1}" if number else "mkdir /d"
    yield "again"
    yield "create /end"


def wrapped() -> Iterator[str]:
    """The journal is filled once, so that a transaction goes around its end."""
    yield "create /w"
    for number in range(230):
        yield f"append /w 10 {1000 + number}"
        yield f"create /w{number}"
        yield "sync"
    yield "quiet"
    for number in range(40):
        yield f"append /w 10 {1300 + number}"
        yield f"unlink /w{number}"
        yield "sync"


def full() -> Iterator[str]:
    """A full disk: what a directory had is all that a file can get. And no room is no harm."""
    yield from ("create /spare", "write /spare 0 60000 1400", "create /other", "sync")
    yield from ("create /fill", "write /fill 0 8000000 1401", "sync", "unlink /spare", "sync")
    yield "quiet"
    for turn in range(3):
        yield f"mkdir /d{turn}"
        for number in range(50):
            yield f"create /d{turn}/{'n' * 60}{number}"
        yield f"write /other {turn * 1000} 9000 {1410 + turn}"
        yield "sync"
        for number in range(50):
            yield f"unlink /d{turn}/{'n' * 60}{number}"
        yield f"rmdir /d{turn}"
        yield "sync"
        yield f"create /new{turn}"
        yield f"write /new{turn} 0 90000 {1420 + turn}"
        yield f"fsync /new{turn}"
        yield f"mkdir /no{turn}"
        yield f"append /other 20000 {1430 + turn}"
        yield "sync"
        yield f"unlink /new{turn}"
    yield "sync"


def attributes() -> Iterator[str]:
    """Extended attributes in inodes and in blocks, which are freed and become files' contents."""
    for number in range(8):
        yield from (f"create /a{number}", f"setattr /a{number} user.small 20 {1500 + number}")
        yield f"setattr /a{number} user.large {300 + 60 * number} {1510 + number}"
    yield "sync"
    for number in range(8):
        yield f"setattr /a{number} user.small 200 {1520 + number}"
        yield f"removeattr /a{number} user.large" if number % 3 else f"unlink /a{number}"
        yield from (f"create /b{number}", f"write /b{number} 0 3000 {1530 + number}")
        yield f"fsync /b{number}" if number % 2 else f"setattr / user.root{number} 90 1"
    yield "sync"


def full_of_attributes() -> Iterator[str]:
    """A full disk: what blocks of attributes had is all that a file can get."""
    yield from ("create /spare", "write /spare 0 20000 1600", "create /other")
    yield from (f"create /a{number}" for number in range(8))
    yield from ("sync", "create /fill", "write /fill 0 8000000 1601", "sync")
    yield from ("unlink /spare", "sync", "quiet")
    for turn in range(2):
        for number in range(8):
            yield f"setattr /a{number} user.large {300 + 70 * number} {1610 + number}"
        yield f"append /other 2000 {1620 + turn}"
        yield "sync"
        yield from (f"removeattr /a{number} user.large" for number in range(8))
        yield from ("sync", f"create /new{turn}", f"write /new{turn} 0 90000 {1630 + turn}")
        yield from (f"fsync /new{turn}", "setattr /a0 user.none 500 1640", f"unlink /new{turn}")
    yield "sync"


def escaped() -> Iterator[bytes]:
    """Blocks in the journal that begin like the journal's own."""
    for number in range(6):
        yield b"symlink " + ESCAPED + b"x" * (90 + number) + f" /link{number}".encode()
        if number % 2:
            yield b"sync"
    yield from (b"unlink /link1", b"unlink /link4", b"sync", b"create /end")


HAND_MADE = {
    "many-files": many_files,
    "log": log,
    "database": database,
    "saving": saving,
    "reuse": reuse,
    "orphans": orphans,
    "long-files": long_files,
    "directories": directories,
    "sessions": sessions,
    "wrapped": wrapped,
    "full": full,
    "attributes": attributes,
    "full-of-attributes": full_of_attributes,
    "escaped": escaped,
}


def hand_made() -> list[Workload]:
    """All of them."""
    made = []
    for name, lines in HAND_MADE.items():
        text = (line if isinstance(line, bytes) else line.encode() for line in lines())
        made.append(Workload(name, tuple(text), small=name.startswith("full")))
    return made


def named(name: str) -> Workload:
    """The workload of this name."""
    for workload in hand_made():
        if workload.name == name:
            return workload
    steps = [tuple(step.split(".", 1)) for step in name.split("+")]
    if not all(len(step) == 2 and step[0] in OPERATIONS and step[1] in SYNCS for step in steps):
        raise KeyError(name)
    return sequence(*steps)


# ---- second sessions ---------------------------------------------------------------------------

SECOND = [
    Workload("idle", ()),
    Workload(
        "files",
        lines_of(
            """
            create /second
            write /second 0 50000 5000
            sync
            create /third
            append /second 3000 5001
            fsync /second
            unlink /second
            sync
            """
        ),
    ),
    Workload(
        "directory",
        lines_of(
            """
            mkdir /dir2
            create /dir2/one
            fsync /dir2/one
            rename /dir2/one /dir2/two
            again
            unlink /dir2/two
            rmdir /dir2
            create /end2
            sync
            """
        ),
    ),
    Workload(
        "longer",
        lines_of(
            """
            truncate /foo 30000
            truncate /A/bar 9000
            fsync /foo
            append /foo 2000 5100
            unlink /A/bar
            sync
            """
        ),
        on_tree=True,
    ),
]
