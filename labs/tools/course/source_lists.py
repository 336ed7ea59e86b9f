"""What a kernel is linked from: the lists labs/lessonN/sources and labs/storage/sources. A line is
a file that the lesson adds; -FILE takes away one of an earlier lesson's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from labs.tools.course.exercises import ROOT, lessons


def changes(directory: Path) -> tuple[list[str], list[str]]:
    """The files that the list in a directory adds, and those that it takes away, in its order. In
    a student's tree a lesson may have no list: nothing."""
    path = directory / "sources"
    lines = path.read_text().split() if path.is_file() else []
    added = [line for line in lines if not line.startswith("-")]
    return added, [line[1:] for line in lines if line.startswith("-")]


def ever_linked(lessons: Iterable[int], root: Path) -> set[str]:
    """The files that any of these lessons adds; those that a later one takes away, too."""
    return {path for each in lessons for path in changes(root / f"labs/lesson{each}")[0]}


def linked(lesson: int, root: Path) -> list[str]:
    """The sources of a lesson's kernel, without its main.c."""
    lists = [changes(root / f"labs/lesson{number}") for number in range(1, lesson + 1)]
    gone = {path for _, removed in lists for path in removed}
    return [path for added, _ in lists for path in added if path not in gone]


def kernels(root: Path = ROOT) -> dict[str, list[str]]:
    """The sources of every kernel, by the name of its folder in labs/; main.c among them."""
    found = {f"lesson{lesson}": linked(lesson, root) for lesson in lessons(root)}
    storage = root / "labs/storage"
    if storage.is_dir():
        every = linked(max(lessons(root)), root)
        added, removed = changes(storage)
        found["storage"] = [path for path in (*every, *added) if path not in removed]
    return {name: [*paths, f"labs/{name}/main.c"] for name, paths in found.items()}
