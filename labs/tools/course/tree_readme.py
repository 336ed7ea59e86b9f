"""The README of a student's tree: the first commands, the exercises, and what to do with each file.

The text is labs/tools/course/start.md; the tables are made here.
"""

from __future__ import annotations

from pathlib import Path

from labs.tools.course import reading
from labs.tools.course.exercises import ROOT, STORAGE, every_lesson, lessons, load, name_of, word_of
from labs.tools.course.rooms import in_a_room, room_of, rooms

README = "labs/tools/course/start.md"

# What is there beside the kernel: what it is, and what to do with it. A path that ends with / is a
# folder; files that an earlier row has are not meant.
BESIDE = (
    (
        "kernel/report/exercise.h",
        "what an unfinished exercise does: says so, ends the run",
        "ignore",
    ),
    ("kernel/report/exercise.inc", "the same, for assembly", "ignore"),
    ("boot/stage2.ld", "the second stage's place in memory", "skim"),
    ("boot/grub.cfg", "GRUB's menu, for `BOOT=grub`", "ignore"),
    ("labs/{}/README.md", "the handout", "**read**"),
    ("labs/{}/", "its drawings, and the measurement", "skim"),
    ("tests/{}/", "what `make grade` asks", "skim"),
    ("user/", "a small C library, and programs for your kernel and for Linux", "skim"),
    ("Makefile", "every command; `make` alone prints them", "skim"),
    ("labs/tools/", "the programs of the commands", "ignore"),
    ("labs/glossary.md", "the terms of all lessons, in English and Chinese", "skim"),
    ("labs/laptop.md", "what each system needs, and a container that has it", "skim"),
    ("labs/locale/", "what the commands say, in Chinese", "ignore"),
    ("labs/page/", "the page on which `make share` shows your kernel to a friend", "ignore"),
    ("labs/", "earlier lessons, lists of exercises and folders", "ignore"),
    ("tests/", "earlier lessons' tests, and what tests need", "ignore"),
    ("pyproject.toml", "settings of tools, as are files whose name begins with a dot", "ignore"),
    (".devcontainer/", "a container with all that the course needs", "ignore"),
    (".vscode/", "the commands as tasks of an editor", "ignore"),
    ("LICENSE", "MIT", "ignore"),
)

HANDED_IN = (
    ", and two more in labs/{} that you hand in, measurement.json and answers.toml\n"
    "(the handout says how)"
)


def text(lesson: int, paths: set[str], given: list[str], root: Path = ROOT) -> str:
    """What the student of a lesson reads first, in a tree of these paths."""
    exercises = [each for each in load(root) if each.lesson == lesson]
    rows = [
        f"| {each.id} | {each.title} | {each.points} | {', '.join(f'`{f}`' for f in each.files)} |"
        for each in exercises
    ]
    return (
        (root / README)
        .read_text()
        .format(
            heading=heading(lesson, root),
            name=name_of(lesson),
            mark="S1" if lesson == STORAGE else "n.m",
            handed_in=HANDED_IN.format(name_of(lesson)),
            exercises="\n".join(rows),
            first=exercises[0].id,
            given=given_note(given),
            reading=reading.table(word_of(lesson), root),
            rest="\n".join(
                f"| `{path}` | {what} | {do} |" for path, what, do in rest(lesson, paths)
            ),
        )
    )


def heading(lesson: int, root: Path) -> str:
    """What a lesson is called."""
    title = every_lesson(root)[lesson]
    return "the storage lab" if lesson == STORAGE else f"lesson {lesson}: {title}"


def rest(lesson: int, paths: set[str], root: Path = ROOT) -> list[tuple[str, str, str]]:
    """Rows for all that the lesson does not add: the kernel of earlier lessons by folder, and what
    is there beside the kernel."""
    older = {path for path in paths if not path.endswith(".md")} - reading.added(
        word_of(lesson), root
    )
    there = {room_of(path).folder for path in older if in_a_room(path)}
    named = {each.path for each in reading.entries(word_of(lesson), root)}
    kernel = [
        (f"{folder}/", room.sentence, "known" if room.part == "core" else "ignore")
        for folder, room in rooms().items()
        if folder in there
        and f"{folder}/" not in named
        and folder != "labs"
        and lesson > min(lessons(root))
    ]
    beside = [(path.format(name_of(lesson)), what, do) for path, what, do in BESIDE]
    readmes = [
        (path, "what is in the folder, and its rules", "**read**")
        for path in sorted(paths)
        if path.endswith("/README.md") and not path.startswith("labs/")
    ]
    return [
        *readmes,
        *kernel,
        *(row for row in beside if any(path.startswith(row[0]) for path in paths)),
    ]


def given_note(given: list[str]) -> str:
    """The sentence about object code; empty when there is none."""
    if not given:
        return ""
    names = " and ".join(f"`{path}`" for path in given)
    return f"\nYou get {names}\nas object code, without the source: that is for a later lesson.\n"
