"""What a lesson adds, as a list to read: every file, bottom up, with what it is and what to do.

    read      it has a blank of the lesson, or such a file includes it and it is new
    skim      it is new, and none of these
    ignore    this lesson does not teach it (breadth, file systems), or it is given as object code

The handouts hold the same table between two marks; `make tables` renews it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labs.tools.course.exercises import ROOT, lessons, load, word_of
from labs.tools.course.rooms import (
    SOURCE,
    Room,
    breadth,
    code_lines,
    existing,
    includes,
    linked_by,
    module_of,
    opening,
    part_of,
    room_of,
    rooms,
)
from labs.tools.course.source_lists import BREADTH, CORE, GIVEN

STORAGE = "storage"
BEGINNING, END = "<!-- make diff -->\n", "<!-- end of make diff -->\n"


@dataclass(frozen=True)
class Entry:
    """A file of a lesson: its room, how many lines of code it has, what it is, what to do. `path`
    ends with a / for a folder whose files are all to be ignored."""

    path: str
    room: Room
    lines: int
    sentence: str
    advice: str


def folder_of(lesson: str) -> str:
    """Where the lesson has its main.c."""
    return "labs/storage" if lesson == STORAGE else f"labs/lesson{lesson}"


@cache
def belonging(root: Path = ROOT) -> dict[str, str]:
    """For each file the lesson that it belongs to, "1", "2", ... or "storage": the first that links
    it, or includes it; what the breadth alone includes is not the core's."""
    found: dict[str, str] = {}
    for lesson in (*map(str, lessons(root)), STORAGE):
        core = linked_by(folder_of(lesson), CORE, root)
        more = linked_by(folder_of(lesson), BREADTH, root) & breadth(root)
        for path in sorted(core | more):
            if path.endswith(SOURCE) and (
                (root / path).is_file() or (root / f"{path}{GIVEN}").is_file()
            ):
                found.setdefault(path, lesson)
    return found


@cache
def blanks(lesson: str, root: Path = ROOT) -> frozenset[str]:
    """The files with blanks of a lesson."""
    return frozenset(
        path for each in load(root) if word_of(each.lesson) == lesson for path in each.files
    )


def is_given(path: str, lesson: str, root: Path) -> bool:
    """Does a student of the lesson get the file as object code: has it blanks of a later one?"""
    if (root / f"{path}{GIVEN}").is_file():
        return True
    numbers = [word_of(each.lesson) for each in load(root) if path in each.files]
    return lesson != STORAGE and path.endswith((".c", ".asm")) and max(numbers, default="") > lesson


def added(lesson: str, root: Path = ROOT) -> set[str]:
    """The files that the lesson adds, and those older ones in which it has blanks."""
    own = {path for path, other in belonging(root).items() if other == lesson}
    return own | {path for path in blanks(lesson, root) if (root / path).is_file()}


def advice(path: str, lesson: str, root: Path) -> str:
    """read, skim or ignore."""
    if path in blanks(lesson, root):
        return "read"
    mine = ("core", "storage") if lesson == STORAGE else ("core",)
    if part_of(path, root) not in mine or is_given(path, lesson, root):
        return "ignore"
    taught = existing(blanks(lesson, root), root)
    return (
        "read"
        if any(path == other for each in taught for _, other in includes(each, root))
        else "skim"
    )


def in_order(paths: set[str], root: Path) -> list[str]:
    """Lowest folder first; in a folder, what others include before them, a header before its .c."""
    order, done = list(rooms(root)), list[str]()

    def visit(module: str, folder: str, way: tuple[str, ...]) -> None:
        files = sorted((each for each in here if module_of(each) == module), key=header_first)
        if not files or files[0] in done or module in way:
            return
        for each in sorted(existing(files, root)):
            for _, other in sorted(includes(each, root)):
                if module_of(other) != module:
                    visit(module_of(other), folder, (*way, module))
        done.extend(path for path in files if path not in done)

    for folder in order:
        here = sorted(path for path in paths if room_of(path, root).folder == folder)
        for path in here:
            visit(module_of(path), folder, ())
    return done


def header_first(path: str) -> tuple[bool, str]:
    """What to sort the files of a module by."""
    return not path.endswith(".h"), path


def entries(lesson: str, root: Path = ROOT) -> list[Entry]:
    """The table of a lesson."""
    paths = in_order(added(lesson, root), root)
    found = []
    for path in paths:
        there = (root / path).is_file()
        given = is_given(path, lesson, root)
        found.append(
            Entry(
                f"{path}{GIVEN}" if given else path,
                room_of(path, root),
                code_lines(path, root) if there and not given else 0,
                "given as object code" if given else opening(path, root),
                advice(path, lesson, root),
            )
        )
    return folded(found)


def folded(entries: list[Entry]) -> list[Entry]:
    """One entry for each folder in which all is to be ignored."""
    found: dict[str, Entry] = {}
    for each in entries:
        if each.room.part == "core" or each.advice != "ignore":
            found[each.path] = each
            continue
        path = f"{each.room.folder}/"
        before = found.get(path)
        lines = each.lines + (before.lines if before else 0)
        found[path] = Entry(
            path, each.room, lines, f"{each.room.part}: no lesson teaches it", "ignore"
        )
    return list(found.values())


def table(lesson: str, root: Path = ROOT) -> str:
    """The lesson's files as a table in Markdown, with a row for each folder."""
    rows, folder = ["| file | what it is | code | |", "|---|---|---:|---|"], ""
    for each in entries(lesson, root):
        if each.path.endswith("/"):
            rows.append(
                f"| **{each.path}** | {each.room.sentence} | {each.lines} | {each.advice} |"
            )
            continue
        if each.room.folder != folder:
            folder = each.room.folder
            rows.append(f"| **{folder}/** | **{each.room.sentence}** | | |")
        lines = each.lines or "-"
        what = f"**{each.advice}**" if each.advice == "read" else each.advice
        rows.append(f"| `{each.path}` | {each.sentence.replace('|', '/')} | {lines} | {what} |")
    return "\n".join([*rows, "", summary(lesson, root)]) + "\n"


def summary(lesson: str, root: Path = ROOT) -> str:
    """How much there is to read, to skim and to ignore."""
    lines = dict.fromkeys(("read", "skim", "ignore"), 0)
    for each in entries(lesson, root):
        lines[each.advice] += each.lines
    return (
        f"Lines of code, without comments: {lines['read']:,} to read, {lines['skim']:,} to skim,"
        f" {lines['ignore']:,} to ignore."
    )
