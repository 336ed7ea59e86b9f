"""Cheats: submissions that try to get points without doing the exercises, in tests/cheats/NAME/.

A cheat begins with the handout and may have, besides cheat.toml with its title (and with a table
figures.LESSON, if it hands in what its kernel prints as a measurement):

payload.c, payload.asm   what is in each blank in place of the stub's include; they define
                         cheat("1.3"), or the macro cheat "1.2", which then comes in place of
                         exercise_missing; the boot sector gets payload.asm and `cheat "1.4"`
whole.c, whole.asm, whole.ld   what comes in place of the whole file
files/                   laid over the submission
links = true             (in cheat.toml) each file is a symbolic link to the reference's

In all of them @ROOT@ is the reference's directory, @FILE@ the file and @LESSON@ the lesson.
"""

from __future__ import annotations

import importlib
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from labs.tools.course.exercises import ROOT, Exercise, blank, every_lesson, of_lesson
from labs.tools.course.handed_in import sources_of, write_measurement

DIRECTORY = ROOT / "tests/cheats"
BOOT_SECTOR = "boot/mbr.asm"
INCLUDES = (  # of stubs: what defines exercise_missing
    '#include "kernel/report/exercise.h"\n',
    '#include "user/libc/exercise.h"\n',
    '%include "kernel/report/exercise.inc"\n',
)


@dataclass(frozen=True)
class Cheat:
    """A cheat. parts: the texts of its payloads by file name. figures: of its measurement, by
    lesson."""

    name: str
    title: str
    lessons: tuple[int, ...]
    links: bool
    parts: dict[str, str]
    figures: dict[int, dict[str, int]]

    @property
    def directory(self) -> Path:
        """Where it is."""
        return DIRECTORY / self.name


def cheats_of(lesson: int) -> list[Cheat]:
    """The cheats that are tried on a lesson."""
    every = (read_cheat(path.parent) for path in sorted(DIRECTORY.glob("*/cheat.toml")))
    return [cheat for cheat in every if lesson in cheat.lessons]


def read_cheat(directory: Path) -> Cheat:
    """A cheat of a directory."""
    table = tomllib.loads((directory / "cheat.toml").read_text())
    parts = {path.name: path.read_text() for path in directory.glob("[pw]*.*")}
    tried = tuple(table.get("lessons", every_lesson()))
    links, figures = table.get("links", False), table.get("figures", {})
    figures = {int(lesson): each for lesson, each in figures.items()}
    return Cheat(directory.name, table["title"], tried, links, parts, figures)


def lay_cheat(cheat: Cheat, lesson: int, submission: Path) -> None:
    """Makes the submission of a cheat."""
    for exercise in of_lesson(lesson):
        for path in exercise.files:
            place = submission / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if cheat.links:
                place.symlink_to(ROOT / path)
            else:
                place.write_text(cheating_text(cheat, exercise, path))
    if (cheat.directory / "files").is_dir():
        shutil.copytree(cheat.directory / "files", submission, dirs_exist_ok=True)
    if figures := cheat.figures.get(lesson):
        questions = importlib.import_module(f"labs.lesson{lesson}.measure").QUESTIONS
        guesses = {each.key: 1.0 for each in questions}
        sources = sources_of(submission, lesson)
        write_measurement(submission, lesson, sources, guesses, guesses, figures)


def cheating_text(cheat: Cheat, exercise: Exercise, path: str) -> str:
    """A file of the exercise as the cheat has it."""
    suffix = PurePosixPath(path).suffix
    if whole := cheat.parts.get(f"whole{suffix}"):
        return filled_in(whole, exercise, path)
    payload = cheat.parts.get(f"payload{suffix}", "")
    stubs = tuple(cheating_stubs(exercise, path, filled_in(payload, exercise, path)))
    cheating = replace(exercise, stubs={**exercise.stubs, path: stubs})
    return blank((ROOT / path).read_text(), path, cheating)


def cheating_stubs(exercise: Exercise, path: str, payload: str) -> Iterator[str]:
    """The texts of a file's blanks. Without a payload they are the stubs."""
    for stub in exercise.stubs[path]:
        if payload and path == BOOT_SECTOR:
            yield f'{payload}\tcheat "{exercise.id}"\n'
        elif payload:
            included = stub
            for line in INCLUDES:
                included = included.replace(line, payload)
            yield included.replace("exercise_missing", "cheat")
        else:
            yield stub


def filled_in(text: str, exercise: Exercise, path: str) -> str:
    """A payload for one file."""
    words = {"@ROOT@": str(ROOT), "@FILE@": path, "@LESSON@": str(exercise.lesson)}
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    return text
