"""The READMEs of the folders: their words are in them, their maps are made here from
labs/rooms.toml and from the files' first lines, between two marks.

A student's tree has the maps of the files that it has, and no line that names another file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath

from labs.tools.course.exercises import ROOT
from labs.tools.course.reading import in_order
from labs.tools.course.rooms import SOURCE, in_a_room, module_of, opening, part_of, room_of, rooms

FOLDERS = "<!-- folders -->\n", "<!-- end of folders -->\n"
FILES = "<!-- files -->\n", "<!-- end of files -->\n"
NAME = re.compile(r"`([\w./-]+)`|((?<![\w/.-])[\w-]+(?:/[\w.-]+)+)")


def readmes(root: Path = ROOT) -> list[str]:
    """The READMEs of folders of the kernel, by path."""
    tops = {PurePosixPath(folder).parts[0] for folder in rooms(root)} - {"labs", "tests", "user"}
    found = [path for top in tops for path in (root / top).rglob("README.md")]
    found += (root / "labs/tools").glob("README.md")
    return sorted(path.relative_to(root).as_posix() for path in found)


def text(readme: str, paths: Iterable[str], root: Path = ROOT) -> str:
    """A README whose maps show these files."""
    whole = (root / readme).read_text()
    folder = PurePosixPath(readme).parent.as_posix()
    here = {path for path in paths if in_a_room(path, root) and path.endswith(SOURCE)}
    for (beginning, end), rows in (
        (FOLDERS, folder_rows(here, root)),
        (FILES, file_rows(folder, here, root)),
    ):
        if beginning in whole:
            head, rest = whole.split(beginning)
            whole = head + beginning + "\n" + "\n".join(rows) + "\n\n" + end + rest.split(end)[1]
    return whole


def folder_rows(paths: set[str], root: Path) -> Iterator[str]:
    """The map of all folders with one of the files, lowest first."""
    there = [room for room in rooms(root).values() if in_kernel(room.folder)]
    names = {room_of(path, root).folder for path in paths}
    yield "| folder | what it is | part | may use, besides itself |"
    yield "|---|---|---|---|"
    for room in there:
        if room.folder in names:
            modules = {module_of(path) for path in paths}
            used = [each for each in room.may_use if each in names | modules]
            listed = ", ".join(f"`{each}`" for each in used) or "nothing"
            yield f"| `{room.folder}/` | {room.sentence} | {room.part} | {listed} |"


def in_kernel(folder: str) -> bool:
    """Is it a folder that a kernel or its loader is made of?"""
    return folder.split("/")[0] not in ("labs", "tests", "user")


def file_rows(folder: str, paths: set[str], root: Path) -> Iterator[str]:
    """The map of a folder: its modules, what others use first."""
    own = {path for path in paths if PurePosixPath(path).parent.as_posix() == folder}
    yield "| files | what they are |"
    yield "|---|---|"
    for _, group in groupby(in_order(own, root), module_of):
        files = list(group)
        names = ", ".join(f"`{PurePosixPath(path).name}`" for path in files)
        is_breadth = part_of(files[0], root) != room_of(files[0], root).part
        what = opening(files[-1], root).replace("|", "/")
        yield f"| {names} | {what}{' (breadth)' if is_breadth else ''} |"


def names_in(line: str, folder: str, root: Path = ROOT) -> set[str]:
    """The files and folders that a line of a README names, by path from the root. Within backquotes
    a name may be one of the README's own folder. /proc/cpuinfo is of no folder here, and what is
    built is in no tree."""
    found = set()
    for quoted, plain in NAME.findall(line):
        for place in (plain or quoted, f"{folder}/{quoted}") if quoted else (plain,):
            if not place.startswith(("/", "build/")) and (root / place).exists():
                found.add(place.rstrip("/"))
                break
    return found


def units(whole: str) -> Iterator[list[str]]:
    """What a README can do without: a row of a table or of a drawing; an item; a paragraph."""
    fenced, unit = False, list[str]()
    for line in whole.split("\n"):
        fenced ^= line.startswith("```")
        alone = fenced or line.startswith(("|", "#", "<!--", "```"))
        if unit and (alone or not line or line.startswith("- ")):
            yield unit
            unit = []
        if alone or not line:
            yield [line]
        else:
            unit.append(line)
    if unit:
        yield unit


def without_absent(whole: str, folder: str, paths: Iterable[str], root: Path = ROOT) -> str:
    """The text without what names a file or folder that is not among the paths; empty if that is
    the first paragraph already."""
    there = {"."}
    for path in paths:
        parts = path.split("/")
        there.update("/".join(parts[:count]) for count in range(1, len(parts) + 1))
    kept = [(unit, names_in("\n".join(unit), folder, root) <= there) for unit in units(whole)]
    first = next(good for unit, good in kept if unit[0] and unit[0][0] not in "#|<`")
    return "\n".join("\n".join(unit) for unit, good in kept if good) if first else ""
