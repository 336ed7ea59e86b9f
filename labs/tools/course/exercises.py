"""The exercises: labs/exercises.toml, and the marked regions of the source.

A region is between SOLUTION n.m { and } SOLUTION n.m, in comments of their own lines. In a
student's tree the marks of a blank say "your code, exercise n.m" instead. The storage lab is lesson
7; it has a name where the others have a number, and its exercises are S1, S2, ... Use:

    exercise = by_id("1.3")
    blank(text, path, exercise)         the file with the exercise's stubs in its regions
    solved(text)                        the file without marks
    filled(handout, reference, "1.3")   a handout's file with the reference's regions
    name_of(3), name_of(STORAGE)        "lesson3", "storage": its folder in labs, tests and build
    word_of(3), word_of(STORAGE)        "3", "storage": what a person says, LESSON=storage
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LIST = "labs/exercises.toml"
STORAGE = 7
ID = r"(?:\d\.\d|S\d+)"

# How a comment begins in each kind of file, and how it ends.
OPENING, CLOSING = r"[ \t]*(?:/\*|;)[ \t]*", r"[ \t]*(?:\*/)?[ \t]*"
SOLUTION = re.compile(
    rf"^{OPENING}SOLUTION (?P<id>{ID}) \{{{CLOSING}\n"
    rf"(?P<body>.*?)"
    rf"^{OPENING}\}} SOLUTION (?P=id){CLOSING}\n",
    re.MULTILINE | re.DOTALL,
)
BLANK = re.compile(
    rf"^{OPENING}your code, exercise (?P<id>{ID}) \{{{CLOSING}\n"
    rf"(?P<body>.*?)"
    rf"^{OPENING}\}} exercise (?P=id){CLOSING}\n",
    re.MULTILINE | re.DOTALL,
)
PART = re.compile(r"([0-9]|S)\.[0AM]")  # what grade_parts.py adds
STRAY_MARK = re.compile(rf"^.*\bSOLUTION {ID}.*$", re.MULTILINE)


class ExerciseError(ValueError):
    """The list of exercises, or a marked file, is not as it should be; the message says where."""


@dataclass(frozen=True)
class Exercise:
    """One exercise. `stubs` has for each file the texts that replace its regions, in order; it is
    empty in a student's tree. `needs` are the ids without which this one cannot be seen to work."""

    id: str
    lesson: int
    title: str
    points: int
    files: tuple[str, ...]
    needs: tuple[str, ...]
    hints: tuple[str, ...]
    stubs: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Region:
    """A marked region of a text: the exercise, what is between the marks, and the offsets of
    the whole of it, marks included."""

    exercise: str
    body: str
    start: int
    end: int


@cache
def load(root: Path = ROOT) -> tuple[Exercise, ...]:
    """The exercises of a tree in the order of the list. Raises ExerciseError."""
    return tuple(exercise_of(table) for table in tables(root).get("exercise", ()))


@cache
def lessons(root: Path = ROOT) -> dict[int, str]:
    """The lessons of a tree that have a number, and their titles. Raises ExerciseError."""
    return {number: title for number, title in every_lesson(root).items() if number != STORAGE}


@cache
def every_lesson(root: Path = ROOT) -> dict[int, str]:
    """The same, and the storage lab. Raises ExerciseError."""
    return {int(number): title for number, title in tables(root).get("lessons", {}).items()}


def name_of(lesson: int) -> str:
    """The name of a lesson's folders."""
    return "storage" if lesson == STORAGE else f"lesson{lesson}"


def word_of(lesson: int) -> str:
    """What a person calls a lesson."""
    return name_of(lesson).removeprefix("lesson")


def number_of(word: str, root: Path = ROOT) -> int:
    """The lesson that a person names. Raises ExerciseError, which lists those that there are."""
    for number in every_lesson(root):
        if word in (str(number), word_of(number)):
            return number
    known = ", ".join(map(word_of, every_lesson(root)))
    raise ExerciseError(f"there is no lesson {word or '(none given)'}; the lessons are {known}")


def lesson_of(exercise: str) -> int:
    """The lesson of an exercise, or of another part of it ("3.M")."""
    return STORAGE if exercise.startswith("S") else int(exercise.partition(".")[0])


def tables(root: Path) -> dict:
    """The list as it is. Raises ExerciseError."""
    try:
        return tomllib.loads((root / LIST).read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ExerciseError(f"{LIST}: {error}") from error


def exercise_of(table: dict) -> Exercise:
    """An exercise from its table of the list."""
    try:
        return Exercise(
            id=table["id"],
            lesson=table["lesson"],
            title=table["title"],
            points=table["points"],
            files=tuple(table["files"]),
            needs=tuple(table["needs"]),
            hints=tuple(table["hints"]),
            stubs={path: tuple(texts) for path, texts in table.get("stubs", {}).items()},
        )
    except KeyError as error:
        raise ExerciseError(f"{LIST}: exercise {table.get('id')} has no {error}") from error


def by_id(number: str, root: Path = ROOT) -> Exercise:
    """The exercise "1.3". Raises ExerciseError, which lists those that there are."""
    for exercise in load(root):
        if exercise.id == number:
            return exercise
    if part := PART.fullmatch(number):
        lesson = word_of(STORAGE) if part[1] == "S" else part[1]
        raise ExerciseError(
            f"{number} is a part of its whole lesson: make grade LESSON={lesson} counts it"
        )
    known = ", ".join(f"{exercise.id}" for exercise in load(root))
    raise ExerciseError(f"there is no exercise {number or '(none given)'}; there are {known}")


def of_lesson(lesson: int, root: Path = ROOT) -> tuple[Exercise, ...]:
    """The exercises of a lesson."""
    return tuple(exercise for exercise in load(root) if exercise.lesson == lesson)


def files_of(number: str, root: Path = ROOT) -> tuple[str, ...]:
    """The files in which the student writes the exercise."""
    return by_id(number, root).files


def regions(text: str) -> list[Region]:
    """The marked regions of a text, solutions or blanks, in order. Raises ExerciseError for a mark
    without its partner."""
    for mark in STRAY_MARK.findall(SOLUTION.sub("", text)):
        raise ExerciseError(f"this mark has no partner: {mark.strip()}")
    matches = [*SOLUTION.finditer(text), *BLANK.finditer(text)]
    found = [Region(m["id"], m["body"], m.start(), m.end()) for m in matches]
    return sorted(found, key=lambda region: region.start)


def replaced(text: str, new: Callable[[Region, int], str]) -> str:
    """The text with new(region, n) for each region; it is the n-th one of its exercise, from 0."""
    parts, end, seen = [], 0, dict[str, int]()
    for region in regions(text):
        number = seen.setdefault(region.exercise, 0)
        seen[region.exercise] += 1
        parts += [text[end : region.start], new(region, number)]
        end = region.end
    return "".join([*parts, text[end:]])


def blank(text: str, path: str, exercise: Exercise) -> str:
    """The text of the file `path` with the exercise's stubs, between marks for the student."""
    stubs = exercise.stubs.get(path, ())
    count = sum(region.exercise == exercise.id for region in regions(text))
    if count != len(stubs):
        raise ExerciseError(f"{path}: {count} regions of {exercise.id}, but {len(stubs)} stubs")

    def stub(region: Region, number: int) -> str:
        whole = text[region.start : region.end]
        if region.exercise != exercise.id:
            return whole
        return framed(whole, exercise.id, stubs[number])

    return replaced(text, stub)


def framed(region: str, number: str, body: str) -> str:
    """The body between the marks of a blank, in the kind of comment and the place of the region's
    own marks."""
    first, last = region.splitlines()[0], region.splitlines()[-1]
    opening = first.replace(f"SOLUTION {number} {{", f"your code, exercise {number} {{")
    closing = last.replace(f"}} SOLUTION {number}", f"}} exercise {number}")
    return f"{opening}\n{body}{closing}\n"


def solved(text: str) -> str:
    """The text with its solutions, and without their marks. Blanks stay."""
    return SOLUTION.sub(lambda match: match["body"], text)


def filled(handout: str, reference: str, number: str) -> str:
    """A handout's text whose blanks of one exercise hold the reference's solutions."""
    bodies = [region.body for region in regions(reference) if region.exercise == number]

    def body(region: Region, position: int) -> str:
        if region.exercise != number:
            return handout[region.start : region.end]
        return bodies[position]

    return replaced(handout, body)
