"""Exercise S3 from outside: maps of files in images of mke2fs, and maps that the test makes itself.

map.c (tests/storage/host) is linked with the two files of the exercise, and answers questions; what
is true debugfs says, or the test, which has made the tree.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labs.tools.grading.lab import PROGRAM_STOPPED, ROOT, Lab
from tests.host.ext.images import debugfs, extent_node
from tests.told import expect, fail

SOURCES = ("fs/ext/map_pointers.c", "fs/ext/map_extents.c", "kernel/lib/string.c")
DRIVER = ROOT / "tests/storage/host/map.c"
DIRECT = 12
EUCLEAN = -117
EXTENTS_FLAG = 0x80000
ENDLESS = 1 << 40  # blocks; a hole without a next extent goes on at least so far
SANITIZER = re.compile(r"ERROR: AddressSanitizer: ([\w-]+)|runtime error: .*|FAILED: .*")
PLACE = re.compile(r"#\d+ 0x\w+ in (?P<function>\w+) \S*?(?P<line>fs/\w+/\w+\.c:\d+)")
INODE_WORDS = struct.Struct("<15I")

programs: dict[Path, Path] = {}


@dataclass(frozen=True)
class Answer:
    """What a map function did. held: blocks of the map that it did not give back."""

    error: int
    physical: int
    length: int
    unwritten: bool
    depth: int
    held: int
    read: tuple[int, ...]
    said: str

    def __str__(self) -> str:
        if self.error:
            return f"error {self.error}"
        kind = "unwritten " if self.unwritten else ""
        where = f"{kind}blocks from {self.physical} on" if self.physical else "a hole"
        return f"{where}, {self.length} long"


@dataclass
class Disk:
    """The blocks of a disk that are not zeros."""

    block: int  # bytes
    blocks: int
    pieces: dict[int, bytes] = field(default_factory=dict)

    def put(self, number: int, data: bytes) -> None:
        """Sets the beginning of a block."""
        self.pieces[number] = data.ljust(self.block, b"\0")

    def packed(self) -> bytes:
        """As the program reads it."""
        head = struct.pack("<IQI", self.block, self.blocks, len(self.pieces))
        each = (struct.pack("<Q", number) + data for number, data in self.pieces.items())
        return head + b"".join(each)


@dataclass(frozen=True)
class Mapped:
    """A file of an image: its i_block, and which of the two maps it has."""

    words: bytes
    extents: bool


def node(depth: int, entries: Iterable[tuple[int, int, int]], room: int = 84) -> bytes:
    """An extent node: (logical, length, physical) each."""
    return extent_node(depth, room, entries)


def root(depth: int, entries: Iterable[tuple[int, int, int]], room: int = 4) -> Mapped:
    """The root of an extent tree, as i_block."""
    return Mapped(extent_node(depth, room, entries).ljust(60, b"\0")[:60], True)


def pointers(words: Sequence[int]) -> bytes:
    """A block of pointers."""
    return struct.pack(f"<{len(words)}I", *words)


def read_disk(image: Path, block: int) -> Disk:
    """An image's blocks."""
    size = image.stat().st_size
    disk = Disk(block, size // block)
    with image.open("rb") as file:
        for start, end in data_of(file.fileno(), size):
            file.seek(start // block * block)
            for number in range(start // block, (end + block - 1) // block):
                if any(data := file.read(block)):
                    disk.put(number, data)
    return disk


def data_of(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Where a sparse file has data."""
    end = 0
    while end < size:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(file, start, os.SEEK_HOLE)
        yield start, end


def file_of(image: Path, path: str, block: int) -> Mapped:
    """i_block of a file in an image with blocks of this many bytes."""
    text = " ".join(debugfs(image, [f"imap {path}"]))
    place = re.search(r"located at block (\d+), offset 0x([0-9a-f]+)", text)
    with image.open("rb") as file:
        file.seek(int(place[1]) * block + int(place[2], 16))
        data = file.read(100)
    (flags,) = struct.unpack_from("<I", data, 32)
    return Mapped(data[40:], bool(flags & EXTENTS_FLAG))


def map_program(lab: Lab) -> Path:
    """The submission's maps with the driver; compiled once for each tree."""
    if lab.root not in programs or not programs[lab.root].exists():
        programs[lab.root] = lab.host(SOURCES, [DRIVER], "map")
    return programs[lab.root]


def ask(lab: Lab, disk: Disk, file: Mapped, blocks: Sequence[int]) -> list[Answer]:
    """Maps each of the blocks. Fails unless there is an answer to each."""
    each = (struct.pack("<I", file.extents) + file.words + struct.pack("<Q", b) for b in blocks)
    done = lab.ask(map_program(lab), disk.packed() + b"".join(each))
    answers = [answer_of(line) for line in done.stdout.decode(errors="replace").splitlines()]
    name = "ext_map_extents" if file.extents else "ext_map_pointers"
    if len(answers) < len(blocks) or None in answers:
        index = answers.index(None) if None in answers else len(answers)
        lab.judging(index)
        report(done, f"{name}, asked for block {blocks[index]}")
    for block, answer in zip(blocks, lab.judged(answers), strict=True):
        expect(f"{name}({block}): blocks of the map that were not put back", answer.held, 0)
    return answers


def answer_of(line: str) -> Answer | None:
    """A line of the program. None: it says something else."""
    head, _, said = line.partition(":")
    try:
        error, physical, length, unwritten, depth, held, *read = map(int, head.split())
    except ValueError:
        return None
    return Answer(error, physical, length, unwritten != 0, depth, held, tuple(read), said)


def report(done: subprocess.CompletedProcess[bytes], what: str) -> None:
    """Fails with what the program said at its end."""
    words = (done.stdout[-400:] + b"\n" + done.stderr).decode(errors="replace")
    fail(f"{what}, run on this computer: {cause_in(words, done.returncode)}\n{words}")


def cause_in(words: str, status: int) -> str:
    """Why it has ended, without addresses: those differ from run to run."""
    missing = [line for line in words.splitlines() if "is not written" in line]
    if missing:
        return missing[0]
    if status in PROGRAM_STOPPED or "endless" in words or "too many requests" in words:
        return "it does not end"
    if not (wrong := SANITIZER.search(words)):
        return "it gave no whole answer"
    place = PLACE.search(words, wrong.end())
    where = f" in {place['function']} ({place['line']})" if place else ""
    return f"{wrong[1] or wrong[0]}{where}"


Wanted = tuple[int, int, int, bool]  # logical block, physical (0: hole), length, unwritten


def require_mapped(lab: Lab, disk: Disk, file: Mapped, wanted: Sequence[Wanted]) -> list[Answer]:
    """Each block is mapped so. A length of ENDLESS is one of at least that."""
    answers = ask(lab, disk, file, [logical for logical, *_ in wanted])
    name = "ext_map_extents" if file.extents else "ext_map_pointers"
    for answer, (logical, physical, length, unwritten) in zip(
        lab.judged(answers), wanted, strict=True
    ):
        where = [f"the console said: {answer.said}"] if answer.said else []
        least = min(answer.length, ENDLESS) if length == ENDLESS else answer.length
        seen = Answer(answer.error, answer.physical, least, answer.unwritten, 0, 0, (), "")
        right = Answer(0, physical, length, unwritten, 0, 0, (), "")
        expect(f"{name}({logical})", str(seen), str(right), *where)
        expect(f"{name}({logical}): depth", answer.depth, len(answer.read))
    return answers


def require_refused(lab: Lab, disk: Disk, file: Mapped, logical: int, what: str) -> None:
    """It is -EUCLEAN, and the console has a line."""
    (answer,) = ask(lab, disk, file, [logical])
    name = "ext_map_extents" if file.extents else "ext_map_pointers"
    if answer.error != EUCLEAN:
        fail(f"{what}, {name}({logical}): expected -EUCLEAN, seen {answer}")
    if not answer.said:
        fail(f"{what}, {name}({logical}): expected a line of ext_corrupt_inode, seen none")
