"""What a kernel is linked from: the lists labs/lessonN/sources and labs/storage/sources, and what
no lesson teaches in labs/lessonN/breadth. A line is a file that the lesson adds; FOLDER/ is all the
sources in a folder; -FILE takes away a file that another list adds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from labs.tools.course.exercises import ROOT, every_lesson, name_of

CORE, BREADTH = "sources", "breadth"
LISTS = (CORE, BREADTH)
GIVEN = ".o"  # a source that a student has as object code


def changes(directory: Path, *names: str) -> tuple[list[str], list[str]]:
    """The files that the lists of these names (all lists without a name) in labs/lessonN add, and
    those that they take away, in their order. In a student's tree a lesson may have no list:
    nothing."""
    lists = [directory / name for name in names or LISTS]
    lines = [line for path in lists if path.is_file() for line in path.read_text().split()]
    root = directory.parent.parent
    added = [path for line in lines if line[0] != "-" for path in sources_of(line, root)]
    return added, [line[1:] for line in lines if line[0] == "-"]


def sources_of(line: str, root: Path) -> list[str]:
    """The sources that a line adds."""
    if not line.endswith("/"):
        return [line]
    names = {path.name.removesuffix(GIVEN) for path in (root / line).glob("*.*")}
    return [line + name for name in sorted(names) if name.endswith((".c", ".asm"))]


def ever_linked(lessons: Iterable[int], root: Path) -> set[str]:
    """The files that any of these lessons adds; those that are taken away again, too."""
    return {path for each in lessons for path in changes(root / f"labs/{name_of(each)}")[0]}


def linked(lesson: int, root: Path, core: bool = False) -> list[str]:
    """The sources of a lesson's kernel, without its main.c. core: without the breadth."""
    names = (CORE,) if core else LISTS
    lists = [changes(root / f"labs/{name_of(n)}", *names) for n in range(1, lesson + 1)]
    gone = {path for _, removed in lists for path in removed}
    return [path for added, _ in lists for path in added if path not in gone]


def kernels(root: Path = ROOT, core: bool = False) -> dict[str, list[str]]:
    """The sources of every kernel, by the name of its folder in labs/; main.c among them. core:
    without the breadth, though the storage lab's is never linked so."""
    found = {name_of(lesson): linked(lesson, root, core) for lesson in every_lesson(root)}
    return {name: [*paths, f"labs/{name}/main.c"] for name, paths in found.items()}
