"""`make diff LESSON=n`: what a lesson adds, in reading order, what to do with each file, and how
main.c changes."""

from __future__ import annotations

import difflib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from labs.tools.course.exercises import (
    ROOT,
    STORAGE,
    ExerciseError,
    every_lesson,
    lessons,
    name_of,
    number_of,
    of_lesson,
    word_of,
)
from labs.tools.course.reading import entries, summary
from labs.tools.course.source_lists import BREADTH, CORE, changes
from labs.tools.machine.command import in_a_line, say

PROGRAM = "make diff"
COLOURS = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}
PLAIN = "\033[0m"


def directory_of(lesson: str, root: Path) -> Path:
    """Where the lesson (or "storage") has its main.c. Raises ExerciseError."""
    return root / "labs" / name_of(number_of(lesson, root))


def main_before(lesson: str, root: Path) -> str:
    """The path of the main.c of the lesson before; /dev/null before the first one."""
    earlier = [number for number in lessons(root) if lesson == "storage" or number < int(lesson)]
    return f"labs/lesson{max(earlier)}/main.c" if earlier else os.devnull


def reading_list(lesson: str, root: Path) -> Iterator[str]:
    """The files that the lesson adds, in reading order, below their folders; then those that it no
    longer links, and those that the breadth has another file for."""
    folder = None
    for each in entries(lesson, root):
        if each.room.folder != folder:
            folder = each.room.folder
            yield f"{folder}: {each.room.sentence}"
        lines = each.lines or "-"
        yield f"  {each.advice:<7} {each.path:<36} {lines:>4}  {each.sentence}"
    gone = changes(directory_of(lesson, root), CORE)[1]
    replaced = changes(directory_of(lesson, root), BREADTH)[1]
    yield from (f"  {path:<44}    no longer linked" for path in gone)
    yield from (f"  {path:<44}    not linked with the breadth" for path in replaced)
    yield ""
    yield summary(lesson, root)


def difference(lesson: str, root: Path) -> list[str]:
    """The unified difference between the two main.c."""
    before, after = main_before(lesson, root), directory_of(lesson, root) / "main.c"
    texts = [path.read_text().splitlines() for path in (root / before, after)]
    name = after.relative_to(root).as_posix()
    return list(difflib.unified_diff(*texts, before, name, lineterm=""))


def coloured(line: str) -> str:
    """A line of the difference, for a terminal."""
    return f"{COLOURS[line[0]]}{line}{PLAIN}" if line[:1] in COLOURS else line


def report(lesson: str, root: Path = ROOT, colour: bool = False) -> str:
    """All that a lesson adds, in words. Raises ExerciseError."""
    number = number_of(lesson, root)
    lesson, title = word_of(number), every_lesson(root)[number]
    lines = [f"Lesson {lesson}, {title}, adds" if number != STORAGE else "The storage lab adds", ""]
    lines += reading_list(lesson, root)
    exercises = of_lesson(number, root)
    if exercises:
        lines += ["", "You write", ""]
    for each in exercises:
        lines.append(f"  {each.id}  {each.title} ({each.points} points): {', '.join(each.files)}")
    lines += ["", "How main.c changes:", ""]
    changes = difference(lesson, root)
    return "\n".join([*lines, *(map(coloured, changes) if colour else changes)])


def main() -> int:
    """Runs the command line; returns the exit status."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a pager may be left before the end
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    try:
        print(report(sys.argv[1] if len(sys.argv) > 1 else "", colour=colour))
    except ExerciseError as error:
        say(f"{PROGRAM}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("make diff", main))
