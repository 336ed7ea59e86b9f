"""Exercise S4 from outside: files of an image are changed by the library on this computer, and
e2fsck and debugfs judge what it has left. The image is on this side: what is in it was written by a
request, and which requests fail the library learns when they do.

with Files(lab, tmp_path, "-t ext4 -b 1024", 8 << 20) as files:
    files.write("a", 0, 5000)
    files.punch("a", 1, 2)
"""

from __future__ import annotations

import mmap
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import TracebackType
from typing import NamedTuple

from labs.tools.grading.lab import ROOT, Lab
from tests.host.ext.images import ENVIRONMENT, bmap, debugfs, make_image, run_tool
from tests.storage.drive import SECTOR, Drive
from tests.storage.mapping import report
from tests.support.told import expect, fail

LIBRARY = (
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "fs/ext").glob("*.c")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "fs/jbd2").glob("*.c")),
    *("fs/cache/bcache.c", "kernel/lib/errno.c", "kernel/lib/string.c"),
)
DRIVERS = [
    ROOT / "tests/storage/host/write.c",
    ROOT / "tests/storage/host/asked.c",
    ROOT / "tests/storage/host/asked_disk.c",
    ROOT / "tests/host/ext/shim.c",
    ROOT / "tests/host/ext/record.c",
]
WRITE, TRUNCATE, ALLOCATE, ALLOCATE_KEEP, PUNCH, COMMIT, REMOVE, FAIL = range(8)
DONE = re.compile(r"done (-?\d{1,10}) (\d{1,20}) (\d{1,20})")
END = re.compile(r"end (-?\d{1,10}) (\d{1,10})")
ONE = "-t ext4 -b 1024 -N 64"
KINDS = {
    "ext4-1k": ONE,
    "ext4-small-groups": "-t ext4 -b 1024 -N 64 -g 1024 -O ^flex_bg,^resize_inode",
    "ext4-4k": "-t ext4 -b 4096 -N 64",
    "ext3-1k": "-t ext3 -b 1024 -N 64",
    "ext2-2k": "-t ext2 -b 2048 -N 64",
}
BUFFERS = 1024  # of the cache
NO_SPACE, BUSY, NOT_READ = -28, -16, -5
MOST_TOLD = 3  # lines of e2fsck
MOST_OTHER = 16 << 10  # bytes of another file, so that no image is like the last one
MOST_FILLED = 8 << 20  # bytes of a run of free blocks
NAMES = ("a", "b", "c", "d")
LEAF = re.compile(
    r"\s*(\d+)/\s*\d+\s+(\d+)/\s*(\d+)\s+(\d+)\s*-\s*(\d+)\s+(\d+)\s*-\s*\d+\s+\d+(.*)"
)
NODE = re.compile(r"\s*\d+/\s*\d+\s+\d+/\s*\d+\s+\d+\s*-\s*\d+\s+(\d+)\s+\d+\s*$")
TABLE = bytes(i % 256 for i in range(512))

programs: dict[Path, Path] = {}


def contents(first: int, length: int, seed: int) -> bytes:
    """What the program writes at a place of a file."""
    parts, place, end = [], first, first + length
    while place < end:
        step = min(256 - place % 256, end - place)
        start = (place + place // 256 * 7 + seed) % 256
        parts.append(TABLE[start : start + step])
        place += step
    return b"".join(parts)


class Change(NamedTuple):
    """What is to be done (WRITE, ...) to an inode. FAIL is for the drive alone."""

    what: int
    inode: int
    first: int
    second: int
    seed: int


@dataclass(frozen=True)
class Result:
    """What a change returned, and the inode's size and sectors after it."""

    result: int
    size: int
    sectors: int


@dataclass(frozen=True)
class Extent:
    """An extent as debugfs shows it."""

    logical: int
    length: int
    physical: int
    unwritten: bool


@dataclass
class Files:
    """Files of an image, what is to be done to them, and what must be in them afterwards."""

    lab: Lab
    place: Path
    options: str
    size: int
    fill: dict[str, bytes] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    model: dict[str, bytearray] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    buffers: int = BUFFERS

    def __enter__(self) -> Files:
        source = self.place / "root"
        source.mkdir()
        for name in NAMES:
            data = self.fill.get(name, b"")
            (source / name).write_bytes(data)
            self.model[name] = bytearray(data)
        chance = Random(self.lab.seed)
        (source / "other").write_bytes(chance.randbytes(chance.randrange(1, MOST_OTHER)))
        self.image = make_image(self.place / "a.img", self.size, self.options, source)
        self._fill_free_blocks(chance.randbytes(self.block))
        return self

    def _fill_free_blocks(self, old: bytes) -> None:
        """What nobody uses is not zeros, as on a disk that has been in use: unwritten blocks must
        not show it."""
        text = run_tool("dumpe2fs", str(self.image))
        runs = re.findall(r"(\d+)-(\d+)", " ".join(re.findall(r"(?m)^  Free blocks: (.*)", text)))
        with self.image.open("r+b") as file:
            for first, last in runs:
                file.seek(int(first) * self.block)
                file.write(old * min(int(last) - int(first) + 1, MOST_FILLED // self.block))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            if not self.results:
                self.run()
            self.judge()

    # What is to be done

    def _add(self, what: int, name: str, first: int, second: int, seed: int, words: str) -> None:
        inode = 12 + NAMES.index(name)
        self.changes.append(Change(what, inode, first, second, seed))
        self.words.append(words)

    def write(self, name: str, first: int, length: int, seed: int = 1, known: bool = True) -> None:
        """Writes bytes. known=False: it may be less than that, and the model is not changed."""
        self._add(WRITE, name, first, length, seed, f"write {length} bytes at {first} of {name}")
        if known and length:
            data = self.model[name]
            data.extend(bytes(max(0, first + length - len(data))))
            data[first : first + length] = contents(first, length, seed)

    def truncate(self, name: str, size: int) -> None:
        """Sets the size."""
        self._add(TRUNCATE, name, size, 0, 0, f"truncate {name} to {size} bytes")
        data = self.model[name]
        del data[size:]
        data.extend(bytes(size - len(data)))

    def allocate(self, name: str, first: int, count: int, keep: bool = False) -> None:
        """Unwritten blocks, as fallocate makes them."""
        what = ALLOCATE_KEEP if keep else ALLOCATE
        words = f"allocate {count} blocks from {first} on for {name}"
        self._add(what, name, first, count, 0, words)
        if not keep:
            data = self.model[name]
            data.extend(bytes(max(0, (first + count) * self.block - len(data))))

    def punch(self, name: str, first: int, count: int) -> None:
        """A hole."""
        words = f"punch {count} blocks from {first} on out of {name}"
        self._add(PUNCH, name, first, count, 0, words)
        data, block = self.model[name], self.block
        end = min((first + count) * block, len(data))
        if first * block < end:
            data[first * block : end] = bytes(end - first * block)

    def commit(self) -> None:
        """Ends the transaction."""
        self._add(COMMIT, "a", 0, 0, 0, "commit")

    def fail(self, after: int) -> None:
        """After so many requests of the next changes one fails."""
        self._add(FAIL, "a", after, 1, 0, f"the drive fails once, {after} requests later")

    def remove(self, name: str, size: int) -> None:
        """Removes a file, which is cut to a size after that, because it is in use."""
        self._add(REMOVE, name, size, 0, 0, f"remove {name}, and truncate it to {size} bytes")
        del self.model[name]

    def again(self) -> None:
        """The same image, mounted again: the changes so far are done."""
        self.changes, self.words, self.results = [], [], []

    @property
    def block(self) -> int:
        """Bytes of a block."""
        return int(self.options.partition("-b ")[2].split()[0])

    # What came of it

    def run(self, fails: bool = False, bad: int = -1) -> list[Result]:
        """Does it all, and changes the image. Returns the results. fails: the console may tell of
        errors. bad: a block that cannot be read."""
        with self.image.open("r+b") as file, mmap.mmap(file.fileno(), 0) as contents:
            drive = Drive(contents, bad * self.block // SECTOR)
            desk = Desk(self.changes, drive, self.size, self.buffers)
            done = self.lab.converse(write_program(self.lab), desk.answer)
        self.results, self.met_bad = desk.results, drive.met_bad
        lines = done.stdout.decode(errors="replace").splitlines()
        said = [line for line in lines if line.startswith(("console", "panic"))]
        if desk.lost is None:
            self.lab.judging(desk.asked - 1)
            report(done, [*self.words, "unmount"][len(self.results)])
        if said and not fails:
            fail(f"the file system contradicts itself: {said[0]}")
        if desk.lost:
            fail(f"blocks of the cache that were not given back (bcache_put): {desk.lost}")
        return self.results

    def require_results(self) -> None:
        """Every change did all that it was asked for."""
        results = self.lab.judged(self.results)
        for words, change, result in zip(self.words, self.changes, results, strict=True):
            wanted = change.second if change.what == WRITE else 0
            expect(f"{words}: result", result.result, wanted)

    def judge(self) -> None:
        """e2fsck finds nothing, and debugfs reads what was written."""
        require_clean(self.image)
        require_counts(self.image)
        self.require_contents()
        self.require_tails()

    def require_contents(self) -> None:
        """Every file is what it should be."""
        for name, expected in self.model.items():
            seen = self.read(name)
            if seen != expected:
                fail(f"/{name} {difference(seen, expected)}")

    def read(self, name: str) -> bytes:
        """What is in a file."""
        target = self.place / "dump"
        target.unlink(missing_ok=True)
        debugfs(self.image, [f"dump /{name} {target}"])
        return target.read_bytes() if target.exists() else b""

    def require_tails(self) -> None:
        """Beyond a file's end its last block has zeros: Linux relies on them when a file grows."""
        asked = {f"/{name}": len(data) for name, data in self.model.items() if data}
        places = bmap(self.image, [(name, size // self.block) for name, size in asked.items()])
        for (name, size), (physical, unwritten) in zip(asked.items(), places, strict=True):
            if size % self.block and physical and not unwritten:
                with self.image.open("rb") as file:
                    file.seek(physical * self.block + size % self.block)
                    rest = file.read(self.block - size % self.block)
                if any(rest):
                    fail(f"{name}, {size} bytes: expected zeros beyond its end, seen {rest[:8]}")

    def extents(self, name: str) -> list[Extent]:
        """The leaves of a file's tree."""
        found = []
        for line in debugfs(self.image, [f"ex -l /{name}"]):
            numbers = LEAF.match(line)
            if numbers:
                first, last, physical, rest = numbers.groups()[3:]
                length = int(last) - int(first) + 1
                found.append(Extent(int(first), length, int(physical), "Uninit" in rest))
        return found

    def leaves(self, name: str) -> list[int]:
        """How many extents each leaf of a file's tree has."""
        found = [LEAF.match(line) for line in debugfs(self.image, [f"ex -l /{name}"])]
        return [int(line[3]) for line in found if line and line[2] == "1"]

    def nodes(self, name: str) -> list[int]:
        """The blocks of a file's tree."""
        lines = debugfs(self.image, [f"ex -n /{name}"])
        return [int(found[1]) for line in lines if (found := NODE.match(line))]


class Desk:
    """What answers the program: its next change, and the requests of its disk. lost: how many
    buffers nobody gave back; None before its end. asked: how many changes it was given."""

    def __init__(self, changes: Sequence[Change], drive: Drive, size: int, buffers: int) -> None:
        self.results: list[Result] = []
        self.lost: int | None = None
        self.asked = 0
        self._changes, self._drive, self._disk = changes, drive, f"{size // SECTOR} {buffers}"

    def answer(self, question: bytes) -> bytes:
        """The line for a line."""
        text = question.decode(errors="replace")
        line = ""
        if text == "disk":
            line = self._disk
        elif text == "mounted":
            line = self._next()
        elif (done := DONE.fullmatch(text)) and len(self.results) < len(self._changes):
            self.results.append(Result(*map(int, done.groups())))
            line = self._next()
        elif (end := END.fullmatch(text)) and len(self.results) == len(self._changes):
            self.lost = int(end[2])
        else:
            line = self._drive.answer(question)
        return f"{line}\n".encode()

    def _next(self) -> str:
        """The program's next change."""
        for change in self._changes[len(self.results) :]:
            if change.what != FAIL:
                self.asked += 1
                return " ".join(map(str, change))
            self._drive.fail(change.first, change.second)
            self.results.append(Result(0, 0, 0))
        return ""


def difference(seen: bytes, expected: bytes) -> str:
    """How a file differs, in words."""
    if len(seen) != len(expected):
        return f"is {len(seen)} bytes long: expected {len(expected)}"
    at = next(i for i, (one, other) in enumerate(zip(seen, expected, strict=True)) if one != other)
    return f"at byte {at}: expected {expected[at]:#04x}, seen {seen[at]:#04x}"


def require_clean(image: Path) -> None:
    """e2fsck finds nothing wrong."""
    command = ["timeout", "60", "e2fsck", "-fn", str(image)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if is_finding(line)]
        fail("e2fsck -fn: expected nothing, seen: " + " | ".join(lines[:MOST_TOLD]))


def require_counts(image: Path) -> None:
    """The superblock's free blocks are those of all groups: e2fsck repairs that silently."""
    lines = run_tool("dumpe2fs", str(image)).splitlines()
    (total,) = (int(line.split()[-1]) for line in lines if line.startswith("Free blocks:"))
    groups = [int(line.split()[0]) for line in lines if re.match(r"  \d+ free blocks,", line)]
    expect("Free blocks count of the superblock", total, sum(groups))


def is_finding(line: str) -> bool:
    """Whether a line of e2fsck says what is wrong, and not how far it is."""
    known = ("Pass", "e2fsck", "Fix", "***")
    return bool(line) and not line.startswith(known) and ": ****" not in line


def write_program(lab: Lab) -> Path:
    """The library with the submission's files; made once for each tree."""
    if lab.root not in programs or not programs[lab.root].exists():
        programs[lab.root] = lab.host(LIBRARY, DRIVERS, "write")
    return programs[lab.root]


def require_orphans_only(image: Path, where: str) -> list[str]:
    """After the journal e2fsck repairs nothing but the list of orphans; then nothing is left to do.
    Returns what it says of them."""
    command = ["timeout", "60", "e2fsck", "-fy", str(image)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    lines = [line for line in done.stdout.splitlines() if is_finding(line)]
    told = [line for line in lines if re.match(r"(Truncating|Clearing) orphaned inode", line)]
    others = [line for line in lines if line not in told and not line.startswith(str(image))]
    if others:
        fail(f"{where}: e2fsck: expected nothing but orphans, seen: {' | '.join(others[:3])}")
    require_clean(image)
    return told


def pieces_of(files: Sequence[Extent]) -> list[tuple[int, int, bool]]:
    """Extents without their place on the disk."""
    return [(each.logical, each.length, each.unwritten) for each in files]


# Programs in the guest


def program_files(count: int, seed: int) -> dict[str, bytes]:
    """What tests/storage/user/drive.c leaves: files by name."""
    found = {}
    for number in range(count):
        data = bytearray()
        for piece in range(3):
            place = piece * (number * 613 % 9000)
            length = 100 + (seed * number + piece * 2711) % 5900
            data.extend(bytes(max(0, place + length - len(data))))
            data[place : place + length] = contents(place, length, number)
        if number % 3 == 0:
            size = (number * 1009 + seed) % 12000
            del data[size:]
            data.extend(bytes(size - len(data)))
        if number % 5 != 4:
            found[f"f{number:03d}"] = bytes(data)
    return found


def require_files(image: Path, expected: dict[str, bytes]) -> None:
    """These files are in the root of an image."""
    place = image.with_name("rdump")
    place.mkdir()
    debugfs(image, [f"rdump / {place}"])
    seen = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
    if missing := sorted(set(expected) ^ set(seen)):
        fail(f"files: expected {len(expected)}, seen {len(seen)}; {missing[0]} is one that differs")
    for name, data in expected.items():
        if seen[name] != data:
            fail(f"/{name} {difference(seen[name], data)}")
