"""`make submit`: one archive of what is handed in, and what is missing in it.

It has the files of the lesson's exercises, the measurement, the answers, and submission.json: the
lesson, the course's word, and how many layers of each exercise's hints were shown. The same files
make the same bytes.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from labs.tools.course import hint
from labs.tools.course.exercises import (
    ROOT,
    Exercise,
    ExerciseError,
    name_of,
    number_of,
    of_lesson,
    word_of,
)
from labs.tools.course.handed_in import (
    HandedInError,
    answers_path,
    course_of,
    measurement_path,
    measuring,
    read_answers,
    read_measurement,
    sources_of,
)
from labs.tools.machine.command import Options, in_a_line, say, typed_path

PROGRAM = "make submit"
MANIFEST = "submission.json"
OLDEST = (1980, 1, 1, 0, 0, 0)  # of a file in a zip; the same whenever it is made


def graded_files(lesson: int, root: Path = ROOT) -> list[str]:
    """The files of a lesson that have points, sorted: the exercises', the measurement, answers."""
    files = {path for each in of_lesson(lesson, root) for path in each.files}
    return sorted({*files, measurement_path(lesson), answers_path(lesson)})


def manifest(lesson: int, shown: dict[str, int], root: Path = ROOT) -> bytes:
    """submission.json: the lesson, the course, and the hints that were shown."""
    own = {each.id: shown[each.id] for each in of_lesson(lesson, root) if each.id in shown}
    table = {"lesson": word_of(lesson), "course": course_of(root), "hints": own}
    return (json.dumps(table, indent=2, sort_keys=True) + "\n").encode()


def write_archive(lesson: int, root: Path, archive: Path, shown: dict[str, int]) -> list[str]:
    """Writes what there is of the files into the zip `archive`; returns their paths."""
    found = [path for path in graded_files(lesson, root) if (root / path).is_file()]
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for path in found:
            made.writestr(zipfile.ZipInfo(path, OLDEST), (root / path).read_bytes())
        made.writestr(zipfile.ZipInfo(MANIFEST, OLDEST), manifest(lesson, shown, root))
    return found


def missing(lesson: int, root: Path) -> Iterator[str]:
    """What has no points as it is, a line each, with what to do."""
    for exercise in of_lesson(lesson, root):
        gone = [path for path in exercise.files if not (root / path).is_file()]
        if gone:
            yield f"{exercise.id} {exercise.title}: {', '.join(gone)} is not there"
        elif not hint.is_written(exercise, root):
            yield f"{exercise.id} {exercise.title}: not written yet{mark_of(exercise)}"
    yield from problems_of_measurement(lesson, root)
    yield from problems_of_answers(lesson, root)


def mark_of(exercise: Exercise) -> str:
    """Where an exercise is to be written."""
    return f" ({', '.join(exercise.files)})"


def problems_of_measurement(lesson: int, root: Path) -> Iterator[str]:
    """What is wrong with the measurement."""
    path = measurement_path(lesson)
    if not (root / path).is_file():
        yield f"the measurement: {measuring(lesson)}"
        return
    try:
        known = read_measurement((root / path).read_bytes(), path)
        if known.sources != sources_of(root, lesson):
            yield f"the measurement is older than the exercises: {measuring(lesson)}"
    except HandedInError as error:
        yield str(error)
    except OSError:
        return  # an exercise's file is not there, which is said already


def problems_of_answers(lesson: int, root: Path) -> Iterator[str]:
    """What is wrong with the answers."""
    path = answers_path(lesson)
    if not (root / path).is_file():
        yield f"the answers: {path} is not there"
        return
    try:
        answers = read_answers((root / path).read_bytes(), path)
    except HandedInError as error:
        yield str(error)
        return
    if empty := [number for number, answer in answers.items() if not answer]:
        yield f"the answers: {path} has none to {', '.join(empty)}"


def main() -> int:
    """Runs the command line; returns the exit status: 0 when there is an archive."""
    parser = Options(PROGRAM)
    parser.add_argument("--lesson", required=True)
    parser.add_argument("--file", type=typed_path, help="the archive")
    options = parser.parse_args()
    try:
        lesson = number_of(options.lesson)
    except ExerciseError as error:
        say(f"{PROGRAM}: {error}")
        return 1
    archive = options.file or ROOT / "build/submit" / f"{name_of(lesson)}.zip"
    found = write_archive(lesson, ROOT, archive, hint.numbers_in(hint.MEMORY))
    for problem in missing(lesson, ROOT):
        print(f"missing: {problem}")
    shown = archive if options.file else archive.relative_to(ROOT)
    print(f"{shown}: {len(found)} files, {archive.stat().st_size} bytes. Hand in this file.")
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))
