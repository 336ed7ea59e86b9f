"""The files that a student hands in beside the exercises, in labs/lesson{n}/ or labs/storage/:

measurement.json   written by make measure, or make lab: the predictions, the results, and figures
                   of the kernel that the grader measures again
answers.toml       five short answers, written by hand

What is in them is a student's: every fault of a file is an error that names the file and the cause.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labs.tools.course.exercises import STORAGE, name_of, of_lesson, word_of

SIZE_LIMIT = 16 << 10  # bytes of either
ANSWER_LENGTH = 80  # characters
NUMBERS = ("1", "2", "3", "4", "5")  # of the answers
MOST = 1e18  # a number beyond that, or none at all (NaN), is no figure
NEAR, FEW = 0.1, 2  # another compiler makes other instructions, but not many
DEEPEST = 100  # brackets within brackets; make measure writes two
TABLES = ("prediction", "result", "figures")
COURSE = "labs/course.txt"  # the word of this year's course; make course COURSE=word writes it


class MeasurementError(Exception):
    """The figures cannot be had, or cannot be right; the text says why."""


class HandedInError(AssertionError):
    """A file that is handed in is not as it should be; the text says which, and why."""


@dataclass(frozen=True)
class Measurement:
    """What is handed in of a measurement. sources: what sources_of said of the kernel's files;
    prediction, result: by question; figures: what the grader measures again."""

    sources: str
    prediction: dict[str, float]
    result: dict[str, float]
    figures: dict[str, float]


def measurement_path(lesson: int) -> str:
    """Where a lesson's measurement is, in a tree."""
    return f"labs/{name_of(lesson)}/measurement.json"


def answers_path(lesson: int) -> str:
    """Where the answers are."""
    return f"labs/{name_of(lesson)}/answers.toml"


def measuring(lesson: int) -> str:
    """The command that measures."""
    return f"make LESSON={word_of(lesson)} {'lab' if lesson == STORAGE else 'measure'}"


# ---- the measurement ----------------------------------------------------------------------------


def course_of(root: Path) -> str:
    """The word of the course to which the tree `root` belongs; empty if it has none."""
    place = root / COURSE
    return place.read_text().strip() if place.is_file() else ""


def sources_of(root: Path, lesson: int) -> str:
    """A word for the text of a lesson's exercises in the tree `root`, and for its course: spaces
    and line ends do not matter. The points at which a kernel is measured for the grader are chosen
    by it, so another year's measurement is not this year's."""
    digest = hashlib.sha256(str(lesson).encode())
    digest.update(course_of(root).encode())
    for path in sorted(path for each in of_lesson(lesson) for path in each.files):
        file = root / path
        digest.update(b"\0".join([path.encode(), *file.read_bytes().split()]))
    return digest.hexdigest()[:16]


def chosen(sources: str, name: str, low: int, high: int) -> int:
    """A number from low to high, chosen by the kernel's sources; `name` is that of the choice."""
    digest = hashlib.sha256(f"{sources}:{name}".encode()).digest()
    return low + int.from_bytes(digest[:8], "big") % (high - low + 1)


def write_measurement(
    root: Path,
    lesson: int,
    sources: str,
    prediction: Mapping[str, float],
    result: Mapping[str, float],
    figures: Mapping[str, int],
) -> Path:
    """Writes the file into the tree `root`; returns its path."""
    path = root / measurement_path(lesson)
    table = {"sources": sources, "prediction": dict(prediction)}
    table |= {"result": dict(result), "figures": dict(figures)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table, indent=2) + "\n")
    return path


def is_deep(text: str) -> bool:
    """Whether brackets are nested deeper than any such file has them. Not every Python's parser
    stops at the same depth, and with the same words."""
    depth = 0
    for each in text:
        depth += (each in "[{") - (each in "]}")
        if depth > DEEPEST:
            return True
    return False


def read_measurement(data: bytes, path: str) -> Measurement:
    """The file's content. Raises HandedInError, which calls it `path`."""
    text = text_of(data, path)
    if is_deep(text):
        raise HandedInError(f"{path} is nested too deeply: make measure writes it")
    try:
        table = json.loads(text)
    except ValueError as error:
        raise HandedInError(f"{path} is not as make measure writes it: {error}") from None
    if not isinstance(table, dict) or not isinstance(table.get("sources"), str):
        raise HandedInError(f'{path} is not as make measure writes it: it has no "sources"')
    numbers = (numbers_of(table.get(name), name, path) for name in TABLES)
    return Measurement(table["sources"], *numbers)


def numbers_of(table: object, name: str, path: str) -> dict[str, float]:
    """A part of the file: numbers by name. Raises HandedInError."""
    if not isinstance(table, dict) or not table:
        raise HandedInError(f'{path} has no "{name}": make measure writes it')
    for key, value in table.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not abs(value) < MOST:
            known = ascii(key[:40])[1:-1]  # half of a surrogate pair cannot be written
            raise HandedInError(f'{path}: "{name}" has something else than numbers: {known}')
    return table


def compare(handed: Measurement, sources: str, figures: Mapping[str, int], lesson: int) -> None:
    """Are these the figures of this kernel? Raises HandedInError for the first that is not."""
    path, again = measurement_path(lesson), measuring(lesson)
    if handed.sources != sources:
        raise HandedInError(
            f"{path} was measured with other exercise files than those that are here. After the "
            f"last change to an exercise: {again}"
        )
    if set(handed.figures) != set(figures):
        raise HandedInError(f"{path}: its figures are not those of this lesson: {again}")
    for name, figure in figures.items():
        if abs(handed.figures[name] - figure) > max(FEW, NEAR * abs(figure)):
            raise HandedInError(
                f"{path}: {name} is {handed.figures[name]:.15g}, but this kernel gives {figure}. "
                f"Only the exercises' files are taken from your tree: undo other changes, {again}"
            )


# ---- the answers --------------------------------------------------------------------------------


def read_answers(data: bytes, path: str) -> dict[str, str]:
    """The answers by number, in one form: as text, lower case, without spaces around them; empty
    where there is none. Raises HandedInError, which calls the file `path`."""
    text = text_of(data, path)
    if is_deep(text):
        raise HandedInError(f"{path} is nested too deeply: a line an answer")
    try:
        table = tomllib.loads(text)
    except ValueError as error:
        raise HandedInError(f"{path} cannot be read: {error}; put answers in quotes") from None
    return {number: answer_of(table.get(number, ""), number, path) for number in NUMBERS}


def answer_of(value: object, number: str, path: str) -> str:
    """An answer in one form. Raises HandedInError for what is no answer."""
    is_huge = isinstance(value, int) and abs(value) >= 10**ANSWER_LENGTH  # str has its own limit
    if isinstance(value, dict | list) or is_huge or len(str(value)) > ANSWER_LENGTH:
        raise HandedInError(f"{path}: answer {number} should be a number or a word, in quotes")
    return " ".join(str(value).casefold().split())


def without_answers(text: str) -> str:
    """The file as a student gets it: the questions, and no answer."""
    return re.sub(r'^(\d = ").*"$', r'\1"', text, flags=re.MULTILINE)


def same_answer(given: str, right: str) -> bool:
    """Is it the right one? A number may be decimal or hexadecimal."""
    first, second = (as_number(each) for each in (given, right))
    return given == right.casefold() if second is None else first == second


def as_number(text: str) -> int | None:
    """A whole number, as C writes it; None for anything else."""
    try:
        return int(text.replace(" ", ""), 0)
    except ValueError:
        return None


def text_of(data: bytes, path: str) -> str:
    """The text of a file. Raises HandedInError."""
    if len(data) > SIZE_LIMIT:
        raise HandedInError(f"{path} is larger than {SIZE_LIMIT >> 10} KiB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise HandedInError(f"{path} is not UTF-8: byte {error.start} of it") from None
