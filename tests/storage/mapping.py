"""Exercise S3 from outside: maps of files in images of mke2fs, and maps that the test makes itself.

map.c (tests/storage/host) is linked with the two files of the exercise. It asks here for each
question and for each block of the disk, and knows nothing else of them: what was read and put back
is noted on this side. What is true debugfs says, or the test, which has made the tree.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from labs.tools.grading.lab import PROGRAM_STOPPED, ROOT, Lab
from tests.host.ext.images import debugfs, extent_node
from tests.support.told import expect, fail

SOURCES = ("fs/ext/map_pointers.c", "fs/ext/map_extents.c", "kernel/lib/string.c")
HOST = ROOT / "tests/storage/host"
DRIVERS = [HOST / "map.c", HOST / "asked.c"]
DIRECT = 12
EUCLEAN = -117
EXTENTS_FLAG = 0x80000
ENDLESS = 1 << 40  # blocks: of a hole without a next extent, which may end with the file's numbers
FILE_BLOCKS = (1 << 32) - 1  # a file has no more
SANITIZER = re.compile(r"ERROR: AddressSanitizer: ([\w-]+)|runtime error: .*|FAILED: .*")
PLACE = re.compile(r"#\d+ 0x\w+ in (?P<function>\w+) \S*?(?P<line>fs/\w+/\w+\.c:\d+)")
INODE_WORDS = struct.Struct("<15I")
MOST_READ = 32  # blocks of the map for one answer
NUMBER = re.compile(r"-?\d{1,20}")
DONE_NUMBERS = 5

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


@dataclass(frozen=True)
class Mapped:
    """A file of an image: its i_block, and which of the two maps it has. most: of the blocks of a
    run; 0: all."""

    words: bytes
    extents: bool
    most: int = 0

    def numbers(self) -> str:
        """The words of i_block."""
        return " ".join(map(str, INODE_WORDS.unpack(self.words[: INODE_WORDS.size])))

    @property
    def asked(self) -> str:
        """The function that maps its blocks."""
        return "ext_map_extents" if self.extents else "ext_map_pointers"


Question = tuple[Mapped, int]  # a file, and the block that is to be mapped


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
            for number in range(start // block, (end + block - 1) // block):
                # lseek moves the position that the file's own buffer relies on.
                if any(data := os.pread(file.fileno(), block, number * block)):
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
        programs[lab.root] = lab.host(SOURCES, DRIVERS, "map")
    return programs[lab.root]


class Inquiry:
    """Questions, one after another: gives the program what it asks for, and notes it."""

    def __init__(self, disk: Disk, questions: Iterable[Question]) -> None:
        self.answers: list[Answer] = []
        self._questions = [
            f"{disk.block} {disk.blocks} {int(file.extents)} {logical} {file.most} {file.numbers()}"
            for file, logical in questions
        ]
        self._disk, self._read, self._said = disk, [], ""
        self._held: Counter[int] = Counter()

    def answer(self, question: bytes) -> bytes:
        """The line for a line."""
        word, _, rest = question.decode(errors="replace").partition(" ")
        numbers = [int(each) if NUMBER.fullmatch(each) else 0 for each in rest.split()]
        line = ""
        if word == "read" and numbers:
            line = self._contents(numbers[0])
        elif word == "put" and numbers:
            self._held[numbers[0]] -= 1
        elif word == "said":
            self._said = rest
        elif word == "done" and len(numbers) == DONE_NUMBERS and self._questions:
            self._take(numbers)
        if word in ("next", "done"):
            line = next(iter(self._questions), "")
        return f"{line}\n".encode()

    def _contents(self, number: int) -> str:
        """Of a block of the disk, in hexadecimal."""
        self._read.append(number)
        self._held[number] += 1
        if len(self._read) > MOST_READ:
            return ""
        return "+" + self._disk.pieces.get(number, b"").rstrip(b"\0").hex()

    def _take(self, numbers: Sequence[int]) -> None:
        """Notes the answer to a question, which is done."""
        error, physical, length, unwritten, depth = numbers
        held = sum(map(abs, self._held.values()))
        self.answers.append(
            Answer(
                error, physical, length, bool(unwritten), depth, held, tuple(self._read), self._said
            )
        )
        del self._questions[0], self._read[:]
        self._said, self._held = "", Counter()


def ask(lab: Lab, disk: Disk, file: Mapped, blocks: Sequence[int]) -> list[Answer]:
    """Maps each of the blocks. Fails unless there is an answer to each."""
    return ask_all(lab, disk, [(file, block) for block in blocks])


def ask_all(lab: Lab, disk: Disk, questions: Sequence[Question]) -> list[Answer]:
    """The same for several files of a disk."""
    inquiry = Inquiry(disk, questions)
    done = lab.converse(map_program(lab), inquiry.answer)
    answers = inquiry.answers
    if len(answers) < len(questions):
        file, block = questions[len(answers)]
        lab.judging(len(answers))
        report(done, f"{file.asked}, asked for block {block}")
    for (file, block), answer in zip(questions, lab.judged(answers), strict=True):
        expect(f"{file.asked}({block}): blocks of the map that were not put back", answer.held, 0)
    return answers


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
    """Each block is mapped so. A length of ENDLESS is one to the last block that a file can have,
    or beyond."""
    answers = ask(lab, disk, file, [logical for logical, *_ in wanted])
    for answer, each in zip(lab.judged(answers), wanted, strict=True):
        check_mapped(file, answer, each)
    return answers


def require_places(lab: Lab, disk: Disk, file: Mapped, wanted: Sequence[Wanted]) -> None:
    """Each block is where it should be; a run may be shorter than it is, but not longer."""
    answers = ask(lab, disk, file, [logical for logical, *_ in wanted])
    for answer, each in zip(lab.judged(answers), wanted, strict=True):
        check_place(file, answer, each)


def check_place(file: Mapped, answer: Answer, wanted: Wanted) -> None:
    """The same of an answer."""
    logical, physical, length, unwritten = wanted
    is_short = answer.length >= 1 and (answer.length <= length or length == ENDLESS)
    seen = replace(answer, length=1) if is_short else answer
    right = Answer(0, physical, 1, unwritten, 0, 0, (), "")
    expect(f"{file.asked}({logical}), of the run its first block", str(seen), str(right))


def check_mapped(file: Mapped, answer: Answer, wanted: Wanted) -> None:
    """The answer is this one."""
    logical, physical, length, unwritten = wanted
    where = [f"the console said: {answer.said}"] if answer.said else []
    is_endless = length == ENDLESS and answer.length >= max(1, FILE_BLOCKS - logical)
    least = ENDLESS if is_endless else answer.length
    seen = Answer(answer.error, answer.physical, least, answer.unwritten, 0, 0, (), "")
    right = Answer(0, physical, length, unwritten, 0, 0, (), "")
    expect(f"{file.asked}({logical})", str(seen), str(right), *where)
    expect(f"{file.asked}({logical}): depth", answer.depth, len(answer.read))


def require_refused(lab: Lab, disk: Disk, file: Mapped, logical: int, what: str) -> None:
    """It is -EUCLEAN, and the console has a line."""
    (answer,) = ask(lab, disk, file, [logical])
    check_refused(file, logical, answer, what)


def check_refused(file: Mapped, logical: int, answer: Answer, what: str) -> None:
    """The same of an answer."""
    if answer.error != EUCLEAN:
        fail(f"{what}, {file.asked}({logical}): expected -EUCLEAN, seen {answer}")
    if not answer.said:
        fail(f"{what}, {file.asked}({logical}): expected a line of ext_corrupt_inode, seen none")


def require_told_apart(
    lab: Lab,
    disk: Disk,
    damaged: dict[str, Question],
    sound: Iterable[tuple[Mapped, Sequence[Wanted]]],
) -> None:
    """What is damaged is refused; what is sound, asked in between, is found, in runs that may be
    short."""
    asked = [(file, logical, what, None) for what, (file, logical) in damaged.items()]
    asked += [(file, each[0], "", each) for file, wanted in sound for each in wanted]
    Random(lab.seed).shuffle(asked)
    answers = ask_all(lab, disk, [(file, logical) for file, logical, *_ in asked])
    for (file, logical, what, wanted), answer in zip(asked, lab.judged(answers), strict=True):
        if wanted:
            check_place(file, answer, wanted)
        else:
            check_refused(file, logical, answer, what)
