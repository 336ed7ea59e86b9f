"""The folders of the source, from labs/rooms.toml, and what files say about themselves.

rooms()["mm"].part                  "core"
room_of("fs/ram/ramfs.c").folder    "fs/ram"
code_lines("mm/pool.c")             lines without comments and empty lines
opening("mm/pool.c")                what the file is, by its first sentence
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from labs.tools.course.exercises import ROOT
from labs.tools.course.source_lists import BREADTH, CORE, changes

LIST = "labs/rooms.toml"
PARTS = ("core", "breadth", "storage")
STORAGE_LAB = "labs/storage"
INCLUDE = re.compile(r'[ \t]*[#%][ \t]*include[ \t]+"([^"]+)"')
SHORT = 90  # columns; what a longer sentence says after a colon, or last in brackets, is left out
SOURCE = (".c", ".h", ".asm", ".inc")


@dataclass(frozen=True)
class Room:
    """A folder: what it is in one sentence, its part, and whom it may use: folders, or modules of
    a folder ("drivers/disk/block" is block.h and block.c)."""

    folder: str
    sentence: str
    part: str
    may_use: tuple[str, ...]

    def may(self, path: str) -> bool:
        """May a file of this folder use the file `path`?"""
        other = room_of(path).folder
        return other in (self.folder, *self.may_use) or module_of(path) in self.may_use


@cache
def rooms(root: Path = ROOT) -> dict[str, Room]:
    """The folders by name, lowest first."""
    tables = tomllib.loads((root / LIST).read_text())
    return {
        folder: Room(folder, table["is"], table["part"], tuple(table.get("may_use", ())))
        for folder, table in tables.items()
    }


def room_of(path: str, root: Path = ROOT) -> Room:
    """The nearest folder above a file. Raises KeyError for a file of none."""
    known, folder = rooms(root), path
    while folder := folder.rpartition("/")[0]:
        if folder in known:
            return known[folder]
    raise KeyError(f"{path} is in no folder of {LIST}")


def in_a_room(path: str, root: Path = ROOT) -> bool:
    """Is there a folder of the list above the file?"""
    try:
        room_of(path, root)
    except KeyError:
        return False
    return True


def existing(paths: Iterable[str], root: Path) -> set[str]:
    """Those of the paths that are source and there."""
    return {path for path in paths if path.endswith(SOURCE) and (root / path).is_file()}


def linked_by(folder: str, name: str, root: Path = ROOT) -> set[str]:
    """What the list of a name in a folder of labs/ adds, and what all that includes. To the core of
    lesson 1 belongs the loader: all of boot/."""
    place = root / folder
    paths = set(changes(place, name)[0])
    if name == CORE:
        paths.add(f"{folder}/main.c")
    if name == CORE and folder == "labs/lesson1":
        paths |= {path.relative_to(root).as_posix() for path in (root / "boot").iterdir()}
    return paths | with_headers(existing(paths, root), root)


@cache
def breadth(root: Path = ROOT) -> frozenset[str]:
    """The files that no lesson's core links: what lists of breadth and the storage lab's kernel
    add, and the headers that only those include."""
    folders = {path.parent.relative_to(root).as_posix() for path in root.glob("labs/*/main.c")}
    lessons = folders - {STORAGE_LAB}
    core = set().union(*(linked_by(folder, CORE, root) for folder in lessons))
    added = set().union(*(linked_by(folder, BREADTH, root) for folder in folders))
    if STORAGE_LAB in folders:
        added |= linked_by(STORAGE_LAB, CORE, root)
    return frozenset(added - core)


STAMP = "labs/storage/stamp.h"


@cache
def needed_by_storage(root: Path = ROOT) -> frozenset[str]:
    """What the files of storage that the breadth links include, and the stamps of the lab's disks,
    which programs and host share."""
    files = {path for path in breadth(root) if room_of(path, root).part == "storage"}
    shared = {STAMP} if (root / STAMP).is_file() else set()
    return frozenset(with_headers(files | shared, root))


def part_of(path: str, root: Path = ROOT) -> str:
    """The part of a file: its folder's; but of the core's folders, what only the breadth needs is
    breadth, and what only the breadth and storage need is storage."""
    part = room_of(path, root).part
    if part == "core" and path in breadth(root):
        return "storage" if path in needed_by_storage(root) else "breadth"
    return part


@cache
def module_of(path: str) -> str:
    """A .c and its .h are one module: their path without the suffix."""
    return str(PurePosixPath(path).with_suffix(""))


@cache
def includes(path: str, root: Path = ROOT) -> tuple[tuple[int, str], ...]:
    """Line number and path of each file of ours that a file includes."""
    lines = enumerate((root / path).read_text().split("\n"), 1)
    found = ((number, match[1]) for number, line in lines if (match := INCLUDE.match(line)))
    return tuple(
        (number, name if (root / name).is_file() else header_of(name)) for number, name in found
    )


def header_of(path: str) -> str:
    """The header whose constants the build puts into a file for NASM; else the path as it is."""
    return str(PurePosixPath(path).with_suffix(".h")) if path.endswith(".inc") else path


def with_headers(paths: Iterable[str], root: Path = ROOT) -> set[str]:
    """These files, and all that they include, directly or not."""
    waiting, found = set(paths), set[str]()
    while waiting:
        path = waiting.pop()
        found.add(path)
        waiting |= {other for _, other in includes(path, root) if (root / other).is_file()} - found
    return found


def code_lines(path: str, root: Path = ROOT) -> int:
    """How many lines of a file have code: neither empty nor only a comment."""
    text = (root / path).read_text()
    if path.endswith((".asm", ".inc")):
        text = re.sub(r";.*", "", text)
    else:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    return sum(1 for line in text.split("\n") if line.strip())


def opening(path: str, root: Path = ROOT) -> str:
    """What a file is: the first sentence of its first comment, without the mark and the stop."""
    text = (root / path).read_text()
    if path.endswith((".asm", ".inc")):
        comment = re.match(r"(?:;[^\n]*\n)+", text)
        words = re.sub(r"^; ?", "", comment[0], flags=re.MULTILINE) if comment else ""
    else:
        comment = re.match(r"/\*(.*?)\*/", text, re.DOTALL)
        words = re.sub(r"^ ?\* ?", "", comment[1], flags=re.MULTILINE) if comment else ""
    paragraph = re.split(r"\n\s*\n", words.strip())[0]
    sentence = re.match(r"(?:\([^)]*\)|[^(])*?(?:[.;?!](?=\s)|$)", " ".join(paragraph.split()))[0]
    if len(sentence) > SHORT:
        sentence = re.split(r"(?<=\w):\s| \([^)]*\)$", sentence)[0]
    return sentence.rstrip(".:;")
