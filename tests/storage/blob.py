"""Exercise S9 from outside: the drives of a blob store (labs/storage/blob/log.c) are here, and the
program that has the store (tests/storage/host/blob.c) asks them. After a power cut another process
opens what a drive has kept: an object that it did not write to the drive is nowhere.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from errno import EFBIG, EINVAL, EIO, ENOENT, ENOSPC
from pathlib import Path
from random import Random

import pytest

from labs.tools.grading.lab import PROGRAM_STOPPED, ROOT, Lab
from tests.storage.mapping import cause_in
from tests.support.told import expect, fail, require

SOURCES = (
    "labs/storage/blob/log.c",
    "labs/storage/blob/index.c",
    "fs/jbd2/checksum.c",
    "kernel/lib/string.c",
)
HOST = ROOT / "tests/storage/host"
DRIVERS = [HOST / "blob.c", HOST / "asked.c"]
SECTOR = 512
HEAD = 48  # bytes of a record before its data
SUPERS = 8192  # bytes before the two areas
DISK = 64 << 10
KEYS = range(8)
AREA = (DISK - SUPERS) // 2 // 4096 * 4096
FIGURES = struct.Struct("<5Q")
CALLS = 100_000  # of a program, to drives
CUTS = 32  # that a process recovers from: what it prints is bounded
NO_ROOM, NO_OBJECT, BROKEN = -ENOSPC, -ENOENT, -EIO
TOO_LARGE, INVALID = -EFBIG, -EINVAL

programs: dict[Path, Path] = {}

Version = bytes | None
"""What an object has; None: it is not there."""


@dataclass(frozen=True)
class Reply:
    """What a command returned, and the bytes that it found."""

    result: int
    found: bytes


Steps = Generator[str, Reply, None]
"""The commands of a program, each of which gives its reply."""


@dataclass(frozen=True)
class Event:
    """A write, or (None) a sync, with what the store was told to do then and what may be there if
    the power goes."""

    write: tuple[int, bytes] | None
    doing: str
    may_be: dict[int, tuple[Version, ...]]


@dataclass
class Promises:
    """For each object the versions that may be there after a power cut: that of the last sync, and
    each later one."""

    may_be: dict[int, list[Version]] = field(default_factory=dict)

    def issue(self, key: int, version: Version) -> None:
        """It is being written."""
        self.may_be.setdefault(key, [None]).append(version)

    def refused(self, key: int) -> None:
        """The last one was not."""
        self.may_be[key].pop()

    def synced(self) -> None:
        """All is safe."""
        self.may_be = {key: versions[-1:] for key, versions in self.may_be.items()}

    def now(self, key: int) -> Version:
        """What a get must find."""
        return self.may_be.get(key, [None])[-1]

    def copy(self) -> dict[int, tuple[Version, ...]]:
        """As they are now."""
        return {key: tuple(versions) for key, versions in self.may_be.items()}


class Sparse:
    """What a large drive has: zeros where nothing was written."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._sectors: dict[int, bytes] = {}

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: slice) -> bytes:
        sectors = range(place.start, place.stop, SECTOR)
        return b"".join(self._sectors.get(at, bytes(SECTOR)) for at in sectors)

    def __setitem__(self, place: slice, data: bytes) -> None:
        for at in range(place.start, place.stop, SECTOR):
            self._sectors[at] = bytes(data[at - place.start : at - place.start + SECTOR])


@dataclass
class Drive:
    """A drive with a cache, and what was done to it. fails: the number of a call that fails, from
    0; and whether the data of that write reach the drive all the same."""

    data: bytearray | Sparse
    fails: int = -1
    reaches: bool = False
    promises: Promises = field(default_factory=Promises)
    events: list[Event] = field(default_factory=list)
    kept: bytes = b""  # what it had when the events begin
    calls: int = 0
    read: int = 0  # bytes
    looks: list[int] = field(default_factory=list)  # where it was read
    doing: str = ""

    def call(self, letter: str, offset: int, data: bytes | int) -> tuple[int, bytes]:
        """A call of the store: its error, and the bytes of a read."""
        number, self.calls = self.calls, self.calls + 1
        length = data if isinstance(data, int) else len(data)
        where = (
            f"{self.doing}: a {'read' if letter == 'r' else 'write'} of {length} bytes at {offset}"
        )
        require(offset % SECTOR == 0 == length % SECTOR, f"{where}: not whole sectors")
        require(0 <= offset <= len(self.data) - length, f"{where}: beyond the drive's end")
        failed = number == self.fails
        if letter == "w" and (not failed or self.reaches):
            self.data[offset : offset + length] = data
            self.events.append(Event((offset, bytes(data)), self.doing, self.promises.copy()))
        if letter == "s" and not failed:
            self.events.append(Event(None, self.doing, self.promises.copy()))
        if failed:
            return -EIO, b""
        if letter == "r":
            self.read += length
            self.looks.append(offset)
        return 0, bytes(self.data[offset : offset + length]) if letter == "r" else b""


class Judge:
    """Answers a program: its drives, and the next command."""

    def __init__(self, drives: list[Drive], steps: Steps) -> None:
        self.drives, self._steps = drives, steps
        self.problem: BaseException | None = None
        self.commands = -1
        self.has_ended = False
        self._calls = 0

    def answer(self, question: bytes) -> bytes:
        """The line for a line. After a failure each call fails, and the next command is the end."""
        letter, *words = question.decode(errors="replace").split(" ") or [""]
        try:
            if letter == "n":
                return (self._next(words) + "\n").encode()
            self._calls += 1
            require(self._calls < CALLS, "the store calls its drive without end")
            error, data = self._call(letter, words)
        except (ValueError, IndexError):
            return b"-22 .\n"
        except pytest.fail.Exception as failure:
            self.problem = self.problem or failure
            return b"-5 .\n"
        return f"{error} {data.hex()}.\n".encode()

    def _call(self, letter: str, words: list[str]) -> tuple[int, bytes]:
        """A call of a drive."""
        if self.problem:
            return -EIO, b""
        drive = self.drives[int(words[0])]
        if letter == "s":
            return drive.call(letter, 0, 0)
        data = bytes.fromhex(words[2].rstrip(".")) if letter == "w" else int(words[2])
        return drive.call(letter, int(words[1]), data)

    def _next(self, words: list[str]) -> str:
        """The next command."""
        reply = Reply(int(words[0]), bytes.fromhex(words[1].rstrip(".")))
        self.commands += 1
        try:
            if self.problem:
                raise StopIteration
            line = next(self._steps) if self.commands == 0 else self._steps.send(reply)
        except StopIteration:
            self.has_ended = True
            return "end"
        except pytest.fail.Exception as failure:
            self.problem, self.has_ended = failure, True
            return "end"
        for drive in self.drives:
            drive.doing = told_of(line)
        return line


def told_of(command: str) -> str:
    """A command in words."""
    name, *words = command.split(" ")
    if name == "put":
        return f"put of object {words[0]} ({len(words[1]) // 2} bytes)"
    return f"{name} of object {words[0]}" if name in ("get", "delete", "length") else name


def work(lab: Lab, drives: list[Drive], steps: Steps) -> None:
    """A process with a store, which does these steps on these drives. It must end by itself."""
    if lab.root not in programs or not programs[lab.root].exists():
        programs[lab.root] = lab.host(SOURCES, DRIVERS, "blob")
    judge = Judge(drives, steps)
    done = lab.converse(programs[lab.root], judge.answer)
    said, errors = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    lab.judging(max(0, judge.commands - 1))
    stopped = done.returncode in PROGRAM_STOPPED or not judge.has_ended
    if "not written" in errors or (stopped and not judge.problem):
        fail(f"{drives[0].doing}: {cause_in(said + errors, done.returncode)}\n{errors[-1500:]}")
    if judge.problem:
        raise judge.problem
    lab.judging(-1)


# ---- what a store is asked ----------------------------------------------------------------------


def drives_line(drives: Sequence[Drive]) -> str:
    """The first command."""
    return f"drives {' '.join(str(len(drive.data)) for drive in [*drives, *drives][:2])}"


def must(reply: Reply, what: str, wanted: int = 0) -> Reply:
    """A reply with this result."""
    expect(f"{what}: returns", in_words(reply.result), in_words(wanted))
    return reply


def in_words(result: int) -> str:
    """A result of the store."""
    names = {NO_ROOM: "-ENOSPC", NO_OBJECT: "-ENOENT", BROKEN: "-EIO", TOO_LARGE: "-EFBIG",
             INVALID: "-EINVAL"}  # fmt: skip
    return names.get(result, str(result))


@dataclass
class Client:
    """Uses a store and keeps account of what it was promised, on drive 0."""

    drive: Drive
    chance: Random
    longest: int = 1800

    @property
    def promises(self) -> Promises:
        """Of the drive."""
        return self.drive.promises

    def data(self, length: int | None = None) -> bytes:
        """An object."""
        return self.chance.randbytes(
            self.chance.randrange(self.longest + 1) if length is None else length
        )

    def begin(self, command: str = "open") -> Steps:
        """Opens the store that is there."""
        yield drives_line([self.drive])
        must((yield command), command)

    def format(self) -> Steps:
        """Makes one, and opens it."""
        yield drives_line([self.drive])
        must((yield "format"), "format")
        must((yield "open"), "open")

    def put(self, key: int, data: bytes) -> Generator[str, Reply, bool]:
        """False when there is no room."""
        self.promises.issue(key, data)
        what = f"put {key} {data.hex()}."
        reply = yield what
        if reply.result == NO_ROOM:
            self.promises.refused(key)
            return False
        must(reply, told_of(what))
        return True

    def delete(self, key: int) -> Generator[str, Reply, bool]:
        """False when there is no room for it."""
        was = self.promises.now(key)
        self.promises.issue(key, None)
        reply = yield f"delete {key}"
        if reply.result == NO_ROOM:
            self.promises.refused(key)
            return False
        must(reply, f"delete of object {key}", 0 if was is not None else NO_OBJECT)
        return True

    def sync(self, command: str = "sync") -> Steps:
        """Or another command that syncs."""
        must((yield command), command)
        self.promises.synced()

    def look(self, keys: Iterable[int], after: str = "") -> Steps:
        """Each object is there, or not, as it may be; this is what must be there from now on."""
        for key in keys:
            reply = yield f"get {key} {self.longest}"
            seen = seen_of(reply, key, after)
            may_be = self.promises.may_be.setdefault(key, [None])
            if seen not in may_be:
                wrong(key, seen, may_be, after)
            self.promises.may_be[key] = [seen]


def seen_of(reply: Reply, key: int, after: str) -> Version:
    """What a get has found."""
    if reply.result == NO_OBJECT:
        return None
    what = f"get of object {key}: returns {in_words(reply.result)}"
    require(reply.result >= 0 and len(reply.found) == reply.result, what, *filter(None, [after]))
    return reply.found


def wrong(key: int, seen: Version, may_be: Sequence[Version], after: str) -> None:
    """An object that is as it may not be."""
    wanted = " or ".join(dict.fromkeys(map(shown, may_be)))
    if seen is None:
        what = f"object {key} is lost"
    elif set(may_be) == {None}:
        what = f"object {key} is there, and must not be"
    else:
        what = f"object {key} has other contents"
    fail(f"{what}: expected {wanted}, seen {shown(seen)}", *filter(None, [after]))


def shown(version: Version) -> str:
    """An object in a message."""
    if version is None:
        return "none"
    dots = "..." if len(version) > 4 else ""
    return f"{len(version)} bytes ({version[:4].hex(' ')}{dots})" if version else "0 bytes"


# ---- power cuts ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """What a drive has when the power has gone, and what may be there then."""

    image: bytes
    where: str
    may_be: dict[int, tuple[Version, ...]]


Kept = Callable[[Sequence[tuple[int, bytes]]], list[tuple[int, bytes]]]
"""What becomes of the writes since the last sync; the last one was under way."""


def cuts(image: bytes, events: Sequence[Event], kept: Kept, how: str) -> Iterator[Cut]:
    """The power goes at each write of a history that began with `image`, and after the last one."""
    safe, since = bytearray(image), []
    for number, event in enumerate(events):
        if event.write is None:
            apply(safe, since)
            since = []
            continue
        since.append(event.write)
        left = bytearray(safe)
        apply(left, kept(since))
        where = f"the power went at write {number} to the drive, in {event.doing}{how}"
        yield Cut(bytes(left), where, event.may_be)


def apply(disk: bytearray, writes: Iterable[tuple[int, bytes]]) -> None:
    """Writes."""
    for offset, data in writes:
        disk[offset : offset + len(data)] = data


def sectors_of(write: tuple[int, bytes]) -> list[tuple[int, bytes]]:
    """One write for each sector."""
    offset, data = write
    return [(offset + at, data[at : at + SECTOR]) for at in range(0, len(data), SECTOR)]


def none_of_the_last(writes: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """All before it are on the drive."""
    return list(writes[:-1])


def torn(chance: Random) -> Kept:
    """All before the last write, and some of its sectors: the first ones, the last ones or any."""

    def kept(writes: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        parts = sectors_of(writes[-1])
        many = chance.randrange(len(parts) + 1)
        some = [parts[:many], parts[many:], [each for each in parts if chance.random() < 0.5]]
        return [*writes[:-1], *chance.choice(some)]

    return kept


def any_of_them(chance: Random) -> Kept:
    """Any sectors since the last sync; some of them only in part."""

    def kept(writes: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        part = chance.choice((0.1, 0.5, 0.9))
        some = [each for write in writes for each in sectors_of(write) if chance.random() < part]
        return [
            (offset, data[: chance.randrange(64)] if chance.random() < 0.1 else data)
            for offset, data in some
        ]

    return kept


def recover(lab: Lab, found: Sequence[Cut], keys: Iterable[int]) -> None:
    """Processes that have written none of it open what each cut has left, and get what must be
    there."""
    for start in range(0, len(found), CUTS):
        drive = Drive(bytearray())
        work(lab, [drive], opened(drive, found[start : start + CUTS], keys))


def opened(drive: Drive, found: Sequence[Cut], keys: Iterable[int]) -> Steps:
    """The drive has what each of these cuts has left."""
    for cut in found:
        drive.data, drive.doing = bytearray(cut.image), "open"
        drive.promises = Promises({key: list(each) for key, each in cut.may_be.items()})
        drive.events.clear()
        yield drives_line([drive])
        reply = yield "open"
        expect("open: returns", in_words(reply.result), "0", cut.where)
        yield from Client(drive, Random(0), longest=len(cut.image)).look(keys, cut.where)
        yield "close"


def begun(client: Client) -> None:
    """From here on a history is kept, and what is on the drive now is its beginning."""
    client.drive.events.clear()
    client.drive.kept = bytes(client.drive.data)


def formatted(client: Client):
    """A new store, which is open."""
    yield from client.format()
    begun(client)


def state(client: Client, where: str) -> Cut:
    """What is on the drive, and must be found there."""
    return Cut(bytes(client.drive.data), where, client.promises.copy())


def random_steps(client: Client, keys: Sequence[int], count: int) -> Steps:
    """Puts, deletes, syncs; a compaction where there is no room, and seldom elsewhere."""
    chance = client.chance
    for _ in range(count):
        key, what = chance.choice(keys), chance.random()
        if what < 0.15:
            yield from client.sync()
        elif what < 0.2:
            yield from client.sync("compact")
        elif what < 0.5:
            if not (yield from client.delete(key)):
                yield from client.sync("compact")
        elif not (yield from client.put(key, client.data())):
            yield from client.sync("compact")


def figures(reply: Reply) -> dict[str, int]:
    """What `count` has found."""
    names = ("objects", "live_bytes", "log_bytes", "area_bytes", "walked")
    require(len(reply.found) == FIGURES.size, "count: no figures")
    return dict(zip(names, FIGURES.unpack(reply.found), strict=True))


def record_bytes(length: int) -> int:
    """What an object takes of the log."""
    return -(-(HEAD + length) // SECTOR) * SECTOR
