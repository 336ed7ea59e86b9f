"""The guest's first files: a cpio archive (format newc) that the kernel unpacks at its start.

archive([regular("bin/hello", data), symlink("init", "bin/init")]) -> bytes

The same entries give the same bytes: order, times and inode numbers do not depend on the host.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

TIME = 1767225600
"""When each file was last changed: 2026-01-01, the day on which the guest's clock begins."""

MAGIC = "070701"
LAST = "TRAILER!!!"
ALIGNMENT = 4
FOLDER_LIMIT = 2 << 30  # bytes; a guest has at most 1 GiB of memory, an image may have more
FILE_LIMIT = (1 << 32) - 1  # the field of a file's size has 8 hexadecimal digits


class InitramfsError(ValueError):
    """A file that cannot go into the archive; the text names it and the cause."""


@dataclass(frozen=True)
class Entry:
    """A file: its path without a slash before it, its mode with the type's bits, and its contents
    (of a symbolic link: its target), or a device's major and minor number."""

    path: str
    mode: int
    content: bytes = field(default=b"", repr=False)
    device: tuple[int, int] = (0, 0)


def regular(path: str, content: bytes, mode: int = 0o755) -> Entry:
    """A file with contents."""
    return Entry(path, stat.S_IFREG | mode, content)


def folder(path: str, mode: int = 0o755) -> Entry:
    """A folder. Those that a path needs come by themselves."""
    return Entry(path, stat.S_IFDIR | mode)


def symlink(path: str, target: str) -> Entry:
    """A symbolic link."""
    return Entry(path, stat.S_IFLNK | 0o777, os.fsencode(target))


def character_device(path: str, major: int, minor: int, mode: int = 0o666) -> Entry:
    """A device such as /dev/null."""
    return Entry(path, stat.S_IFCHR | mode, device=(major, minor))


def from_host(top: Path) -> list[Entry]:
    """All that is in a folder of this machine, with modes and symbolic links. Raises InitramfsError
    for anything else (sockets, devices, pipes), for what cannot be read, for no folder, and for
    more than this machine should read into its memory (PROGRAMS=/)."""
    if not top.is_dir():
        raise InitramfsError(f"{top} is not a folder")
    entries, size = [], 0
    for path in walk(top):
        entries.append(from_file(path, path.relative_to(top)))
        size += len(entries[-1].content)
        if size > FOLDER_LIMIT:
            raise InitramfsError(f"{top} has more than {FOLDER_LIMIT >> 30} GiB")
    return entries


def walk(top: Path) -> Iterator[Path]:
    """Everything below a folder; symbolic links are not followed."""

    def refuse(error: OSError) -> None:
        raise InitramfsError(f"{error.filename}: {error.strerror}") from error

    for directory, folders, files in os.walk(top, onerror=refuse):
        yield from (Path(directory, name) for name in sorted(folders + files))


def from_file(path: Path, inside: Path) -> Entry:
    """One file of this machine, to be at `inside` in the guest."""
    try:
        status = path.lstat()
        kind, mode, name = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), str(inside)
        if kind == stat.S_IFLNK:
            return symlink(name, os.readlink(path))
        if kind == stat.S_IFDIR:
            return folder(name, mode)
        if kind != stat.S_IFREG:
            raise InitramfsError(f"{path} is neither a file, a folder nor a symbolic link")
        if status.st_size > FILE_LIMIT:
            raise InitramfsError(f"{path} is larger than 4 GiB")
        with path.open("rb") as file:  # what has more, such as a file of /proc, may have no end
            return regular(name, file.read(status.st_size), mode)
    except OSError as error:
        raise InitramfsError(f"{path}: {error.strerror}") from error


def merged(entries: Iterable[Entry]) -> list[Entry]:
    """One entry a path, the last one given, in order; with the folders that a path needs. Raises
    InitramfsError where something is below what is no folder."""
    chosen = {entry.path: entry for entry in entries}
    for path in list(chosen):
        for parent in PurePosixPath(path).parents:
            if str(parent) != ".":
                chosen.setdefault(str(parent), folder(str(parent)))
                if not stat.S_ISDIR(chosen[str(parent)].mode):
                    raise InitramfsError(f"{path} is below {parent}, which is not a folder")
    return [chosen[path] for path in sorted(chosen, key=lambda path: path.split("/"))]


def archive(entries: Iterable[Entry]) -> bytes:
    """The archive. Where a path comes twice the later entry counts. Raises InitramfsError."""
    parts = [record(number, entry) for number, entry in enumerate(merged(entries), start=1)]
    return b"".join([*parts, record(0, Entry(LAST, 0))])


def record(number: int, entry: Entry) -> bytes:
    """An entry as the archive has it: the header in hexadecimal digits, the path, the contents."""
    name = os.fsencode(entry.path) + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    time = TIME if entry.mode else 0
    fields = (number, entry.mode, 0, 0, links, time, len(entry.content), 0, 0, *entry.device)
    header = MAGIC + "".join(f"{value:08x}" for value in (*fields, len(name), 0))
    return padded(header.encode() + name) + padded(entry.content)


def padded(data: bytes) -> bytes:
    """The data, filled up with zeros to a multiple of four bytes."""
    return data + bytes(-len(data) % ALIGNMENT)
