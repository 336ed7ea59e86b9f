"""`make map LESSON=n`: one walk through the kernel, function by function, downwards and back.

The steps are labs/lessonN/map.toml, and labs/storage/map.toml. tests/tree/test_maps.py follows them
with gdb in a running kernel.
"""

from __future__ import annotations

import signal
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

from labs.tools.course.exercises import (
    ROOT,
    STORAGE,
    ExerciseError,
    every_lesson,
    name_of,
    number_of,
    word_of,
)
from labs.tools.machine.command import in_a_line, say

PROGRAM = "make map"
COLUMNS = 96


@dataclass(frozen=True)
class Stop:
    """A place on the walk: a file, a function or label in it, one sentence. `address` is for code
    that no symbol names; `when` is a condition, in gdb's words; `key` is a scan code that
    the keyboard sends here."""

    path: str
    name: str
    sentence: str
    address: str = ""
    when: str = ""
    key: str = ""


@dataclass(frozen=True)
class Walk:
    """A lesson's walk: what it follows, the kernel's commands or the shell's that make it happen,
    how the machine boots, the image that is its root (the storage lab's), the stops."""

    title: str
    script: str
    command: str
    boot: str
    root: str
    stops: tuple[Stop, ...]


def walk_of(lesson: str, root: Path = ROOT) -> Walk:
    """The walk of a lesson. Raises ExerciseError."""
    maps = {word_of(each): map_of(each, root) for each in every_lesson(root)}
    there = {word: path for word, path in maps.items() if path.is_file()}
    if lesson not in there:
        raise ExerciseError(
            f"there is no map of lesson {lesson or '(none given)'}; there are {', '.join(there)}"
        )
    table = tomllib.loads(there[lesson].read_text())
    stops = tuple(
        Stop(
            *each["at"].split(":"),
            each["is"],
            *(each.get(name, "") for name in ("address", "when", "key")),
        )
        for each in table["stop"]
    )
    words = (table.get("script", ""), table.get("command", ""), table.get("boot", "direct"))
    return Walk(table["title"], *words, table.get("root", ""), stops)


def map_of(lesson: int, root: Path) -> Path:
    """The file with a lesson's walk."""
    return root / "labs" / name_of(lesson) / "map.toml"


def report(lesson: str, root: Path = ROOT) -> str:
    """The walk, for a terminal."""
    walk = walk_of(lesson, root)
    is_storage = number_of(lesson, root) == STORAGE
    lines = [f"{'The storage lab' if is_storage else f'Lesson {lesson}'}: {walk.title}", ""]
    indent = " " * 5
    for number, stop in enumerate(walk.stops, 1):
        lines.append(f"{number:>3}  {stop.path}:{stop.name}")
        lines += textwrap.wrap(
            stop.sentence, COLUMNS, initial_indent=indent, subsequent_indent=indent
        )
    script = f" SCRIPT='{walk.script}'" if walk.script else ""
    script += f" CMD='{walk.command}'" if walk.command else ""
    root_disk = f" ROOT={walk.root}" if walk.root else ""
    made = f"make LESSON={lesson}" + ("" if is_storage else " BREADTH=no")  # the lab has no core
    lines += ["", f"It happens in {made} run BOOT={walk.boot}{root_disk}{script}"]
    return "\n".join(lines)


def main() -> int:
    """Runs the command line; returns the exit status."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a pager may be left before the end
    try:
        print(report(sys.argv[1] if len(sys.argv) > 1 else ""))
    except ExerciseError as error:
        say(f"{PROGRAM}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("make map", main))
