"""What a submission consists of, whatever it is: a folder, a zip, a tar or a git repository.

for each in entries(place): each.name, each.kind, each.read(limit)

Nothing is unpacked: an entry's contents are read when they are asked for, up to a limit, before
the next entry. Links are never followed, and devices never opened. What is too much, or is broken,
raises Refusal, whose text is for the student.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MOST_ENTRIES = 20_000  # of those that may be a student's
MOST_AT_ALL = 500_000
MOST_UNPACKED = 1 << 30  # bytes that a compressed tar has
DEEPEST = 40  # folders in folders

# Folders that a whole tree has besides its files, and what computers add by themselves.
IGNORED = {".git", ".venv", "build", "__pycache__", "__MACOSX", ".vscode", ".idea"}
IGNORED_NAMES = {".DS_Store", "Thumbs.db", "desktop.ini"}

FILE, FOLDER, LINK, SPECIAL = "file", "folder", "link", "special"
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OSError,
)
# How files begin, in small letters, that are no archive, or one that nobody can read here.
FOREIGN = {
    b"rar!": "a RAR archive",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard",
    b"%pdf": "a PDF",
    b"<!doctype html": "a web page (of a login?)",
    b"<html": "a web page (of a login?)",
}


class Refusal(ValueError):
    """A submission that cannot be read; the text says why."""


@dataclass(frozen=True)
class Entry:
    """A file, folder or link of a submission. name: as it is there, with / between folders.
    read(limit): its first bytes, at most `limit` of them; only before the next entry."""

    name: str
    kind: str
    read: Callable[[int], bytes] = lambda limit: b""


def entries(place: Path) -> Iterator[Entry]:
    """The entries of a folder, a zip or a tar, without what IGNORED names. Raises Refusal."""
    is_folder = place.is_dir() and not place.is_symlink()
    found = of_folder(place) if is_folder else of_archive(place)
    count = own = 0
    try:
        for entry in found:
            count += 1
            own += not is_ignored(entry.name)
            if own > MOST_ENTRIES or count > MOST_AT_ALL:
                raise Refusal(f"it has more than {MOST_ENTRIES} files")
            if not is_ignored(entry.name):
                yield entry
    except Refusal:
        raise
    except BROKEN as error:
        raise Refusal(f"it cannot be read: {words_of(error)}") from error


def words_of(error: BaseException) -> str:
    """An error in a line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def is_ignored(name: str) -> bool:
    """Whether a name is not a student's work: a tool's, or another computer's."""
    *folders, last = name.replace("\\", "/").rstrip("/").split("/")
    return last in IGNORED_NAMES or last.startswith("._") or bool(IGNORED & {*folders, last})


# ---- folders ------------------------------------------------------------------------------------


def of_folder(place: Path) -> Iterator[Entry]:
    """What is in a folder, sorted; folders that are ignored are not opened."""
    waiting: list[tuple[str, int]] = [("", 0)]
    while waiting:
        folder, depth = waiting.pop()
        with os.scandir(place / folder) as listing:
            found = sorted(listing, key=lambda each: os.fsencode(each.name))
        for each in found:
            name = f"{folder}{each.name}"
            kind = kind_of(each.stat(follow_symlinks=False).st_mode)
            yield Entry(name, kind, lambda limit, name=name: head_of(place / name, limit))
            if kind == FOLDER and not is_ignored(each.name):
                if depth == DEEPEST:
                    raise Refusal(f"its folders are nested more than {DEEPEST} deep")
                waiting.append((f"{name}/", depth + 1))


def kind_of(mode: int) -> str:
    """The kind of a file of this mode; where an archive says nothing, it is a file."""
    kinds = {stat.S_IFREG: FILE, 0: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: LINK}
    return kinds.get(stat.S_IFMT(mode), SPECIAL)


def head_of(place: Path, limit: int) -> bytes:
    """The beginning of a file; no other process makes a device or a link of it in between."""
    file = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(file, "rb", buffering=0) as stream:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return b""
        return stream.read(limit)


# ---- archives -----------------------------------------------------------------------------------


def of_archive(place: Path) -> Iterator[Entry]:
    """What is in a zip or a tar. Raises Refusal for anything else."""
    mode = place.lstat().st_mode
    if not stat.S_ISREG(mode):
        raise Refusal("it is a link" if stat.S_ISLNK(mode) else "it is neither a file nor a folder")
    start = head_of(place, 512)
    if not start:
        raise Refusal("it is empty")
    for magic, what in FOREIGN.items():
        if start.lower().startswith(magic):
            raise Refusal(f"it is {what}: a zip or a tar, please (make submit makes one)")
    if start.startswith(b"PK"):
        return of_zip(place)
    return of_tar(place, start)


def of_zip(place: Path) -> Iterator[Entry]:
    """What is in a zip."""
    with zipfile.ZipFile(place) as archive:
        for each in archive.infolist():
            kind = FOLDER if each.is_dir() else kind_of(each.external_attr >> 16)
            yield Entry(
                each.filename, kind, lambda limit, each=each: zip_head(archive, each, limit)
            )


def zip_head(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limit: int) -> bytes:
    """The beginning of a file in a zip. Raises Refusal."""
    if entry.flag_bits & 1:
        raise Refusal("it is encrypted: without a password, please")
    with archive.open(entry) as stream:
        return stream.read(limit)


def of_tar(place: Path, start: bytes) -> Iterator[Entry]:
    """What is in a tar, compressed or not, which is read once from its beginning."""
    kinds = {tarfile.DIRTYPE: FOLDER, tarfile.SYMTYPE: LINK, tarfile.LNKTYPE: LINK}
    with (
        decompressed(place, start) as stream,
        tarfile.open(fileobj=Bounded(stream), mode="r|") as archive,
    ):
        for each in archive:
            kind = FILE if each.isreg() else kinds.get(each.type, SPECIAL)
            yield Entry(
                each.name, kind, lambda limit, each=each: archive.extractfile(each).read(limit)
            )
            archive.members.clear()  # else it keeps all of them


def decompressed(place: Path, start: bytes) -> BinaryIO:
    """The contents of a file that may be compressed."""
    if start.startswith(b"\x1f\x8b"):
        return gzip.open(place, "rb")
    if start.startswith(b"BZh"):
        return bz2.open(place, "rb")
    if start.startswith((b"\xfd7zXZ\0", b"\x5d\0\0")):
        return lzma.open(place, "rb")
    return place.open("rb")


class Bounded:
    """A stream that ends with a Refusal after MOST_UNPACKED bytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._left = MOST_UNPACKED

    def read(self, count: int) -> bytes:
        """The next bytes."""
        data = self._stream.read(min(count, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise Refusal(f"it unpacks to more than {MOST_UNPACKED >> 20} MiB")
        return data
