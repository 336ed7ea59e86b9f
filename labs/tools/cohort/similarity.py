"""`make similarity`: which submissions of a class are alike; a list to look at, never a verdict.

    make similarity LESSON=1 OUTPUT=grades [ARCHIVE='last-year earlier']

After make grade-class: OUTPUT gets similarity.csv, similarity.html and a page for each pair. What
compare50 compares is only what students write, the regions between the marks; what was handed out
does not count. Names, numbers, strings, comments and the order of functions make no difference.
ARCHIVE names outputs of former years, whose submissions are compared with these.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labs.tools.cohort.one import write_whole
from labs.tools.cohort.report import cell, pages
from labs.tools.course.exercises import (
    Exercise,
    ExerciseError,
    number_of,
    of_lesson,
    regions,
)
from labs.tools.grading.graded_tree import handout
from labs.tools.machine.command import CommandError, Options, in_a_line, typed_path

PROGRAM = "make similarity"
PAIRS = 50  # that are shown
LIBRARY = "compare50"
FIXED = "PYTHONHASHSEED"  # what compare50 samples depends on Python's hashes
SUFFIXES = {".inc": ".asm", ".ld": ".c"}  # the kind of text that is known for it


@dataclass(frozen=True)
class Work:
    """What one submission has between the marks: a folder of files. key: of its page; student: who
    handed it in, or its own name."""

    key: str
    student: str
    folder: Path
    is_archive: bool = False


@dataclass(frozen=True)
class Pair:
    """Two submissions. score: compare50's; first, second: what part of each is in the other, from 0
    to 1; files: the texts of both, as parts that are alike or not."""

    score: float
    works: tuple[Work, Work]
    shares: tuple[float, float]
    files: tuple[Any, Any]


# ---- what is compared ----------------------------------------------------------------------------


def written_part(text: str, exercise: Exercise) -> str:
    """What a student has written in a file: between the marks, or all of it where they are gone."""
    try:
        own = [each.body for each in regions(text) if each.exercise == exercise.id]
    except ExerciseError:
        own = []
    return "\n".join(own) or text


def lay_out(lesson: int, files: Path, folder: Path) -> None:
    """Writes what was written in the files of a submission to a folder, a file for each."""
    folder.mkdir(parents=True)
    for exercise in of_lesson(lesson):
        for path in exercise.files:
            if (files / path).is_file():
                text = (files / path).read_bytes().decode("ascii", "replace").replace("\0", "?")
                place = folder / plain_name(path)
                with place.open("a") as stream:
                    stream.write(written_part(text, exercise))


def plain_name(path: str) -> str:
    """A file's name without folders, and with a suffix whose kind of text is known."""
    name = Path(path.replace("/", "_"))
    return str(name.with_suffix(SUFFIXES.get(name.suffix, name.suffix)))


def lay_out_handout(lesson: int, folder: Path) -> list[str]:
    """Writes what students get to a folder: whole files, for what has no marks, and the regions."""
    folder.mkdir(parents=True)
    names = []
    for exercise in of_lesson(lesson):
        for path in exercise.files:
            text = handout(exercise, path).decode()
            for kind, part in (("whole", text), ("part", written_part(text, exercise))):
                names.append(f"{exercise.id}-{kind}-{plain_name(path)}")
                (folder / names[-1]).write_text(part)
    return names


def works_of(lesson: int, output: Path, place: Path, is_archive: bool = False) -> list[Work]:
    """The submissions that make grade-class has graded. Raises CommandError."""
    try:
        students = json.loads((output / "work/students.json").read_text())
    except (OSError, ValueError) as error:
        raise CommandError(f"{output}: make grade-class has not graded a class there") from error
    found = []
    for key, student in sorted(students.items()):
        lay_out(lesson, output / "work/files" / key / "files", place / key)
        found.append(Work(key, student, place / key, is_archive))
    return found


# ---- compare50 -----------------------------------------------------------------------------------


def library() -> Any:
    """compare50, without progress bars and processes of its own. Raises CommandError."""
    try:
        import compare50
        from compare50 import _api
    except ImportError as error:
        raise CommandError(f"{LIBRARY} is not installed: make setup-suite") from error
    _api.Executor = _api.FauxExecutor
    return compare50


def pairs_of(works: Sequence[Work], handed_out: Sequence[Path], most: int = PAIRS) -> list[Pair]:
    """The pairs that are most alike, of different students, and not both of an archive."""
    compare50 = library()
    structure = compare50.passes.structure
    prepare = compare50._data.Preprocessor(structure.preprocessors)

    def submission(folder: Path, names: Sequence[str], is_archive: bool = False) -> Any:
        return compare50.Submission(folder, names, preprocessor=prepare, is_archive=is_archive)

    made = {
        submission(each.folder, sorted(os.listdir(each.folder)), each.is_archive): each
        for each in works
    }
    by_id = {each.id: work for each, work in made.items()}
    own = [each for each in made if not each.is_archive]
    archive = [each for each in made if each.is_archive]
    ignored = {file for path in handed_out for file in submission(path.parent, [path.name]).files}
    scores = [
        score
        for score in structure.comparator.score(own, archive, ignored)
        if by_id[score.sub_a.id].student != by_id[score.sub_b.id].student
    ]
    scores.sort(key=lambda each: (-round(each.score, 3), each.sub_a.id, each.sub_b.id))
    results = compare50.compare(scores[:most], ignored, structure)
    return [pair_of(result, by_id) for result in results]


def pair_of(result: Any, by_id: dict[int, Work]) -> Pair:
    """A pair of what compare50 says."""
    sides = (result.sub_a, result.sub_b)
    marked = [marks_of(side, result) for side in sides]
    return Pair(
        round(float(result.score.score), 1),
        tuple(by_id[side.id] for side in sides),
        tuple(share_of(side, result) for side in sides),
        tuple(marked),
    )


def spans_of(file: Any, spans: Any) -> list[tuple[int, int]]:
    """The parts of a file that are in some of these spans, in order, without overlaps."""
    found: list[tuple[int, int]] = []
    for start, end in sorted((each.start, each.end) for each in spans if each.file == file):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def share_of(side: Any, result: Any) -> float:
    """What part of a submission is in the other one, of what counts, from 0 to 1."""
    alike = [span for group in result.groups for span in group.spans]
    same = counted = 0
    for file in side.files:
        parts = spans_of(file, alike)
        gone = spans_of(file, result.ignored_spans)
        same += sum(end - start for start, end in parts) - overlap(parts, gone)
        counted += len(file.read()) - sum(end - start for start, end in gone)
    return round(same / counted, 3) if counted else 0.0


def overlap(some: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> int:
    """How many characters are in both."""
    return sum(
        max(0, min(end, stop) - max(start, begin)) for start, end in some for begin, stop in others
    )


def marks_of(side: Any, result: Any) -> list[tuple[str, list[tuple[bool, str]]]]:
    """The files of a submission by name, as parts: whether it is alike, and the text."""
    alike = [span for group in result.groups for span in group.spans]
    return [
        (file.name.name, list(parts_of(file.read(), spans_of(file, alike)))) for file in side.files
    ]


def parts_of(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[bool, str]]:
    """A text in parts."""
    at = 0
    for start, end in spans:
        yield from ((False, text[at:start]), (True, text[start:end]))
        at = end
    yield False, text[at:]


# ---- the list ------------------------------------------------------------------------------------


def table_of(pairs: Sequence[Pair]) -> str:
    """similarity.csv."""
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["first", "second", "score", "part of the first", "part of the second"])
    for pair in pairs:
        names = [cell(work.student) for work in pair.works]
        table.writerow([*names, pair.score, *pair.shares])
    return out.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    parser = Options(PROGRAM)
    parser.add_argument("--lesson", required=True)
    parser.add_argument("--output", type=typed_path, required=True)
    parser.add_argument("--archive", default="", help="outputs of former years")
    options = parser.parse_args(arguments)
    if options.output == Path():
        raise CommandError("say where make grade-class has put the grades: OUTPUT=dir")
    try:
        lesson = number_of(options.lesson)
    except ExerciseError as error:
        raise CommandError(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="similarity-") as name:
        place = Path(name)
        works = works_of(lesson, options.output, place / "own")
        for number, former in enumerate(options.archive.split()):
            works += works_of(lesson, Path(former), place / f"archive{number}", is_archive=True)
        names = lay_out_handout(lesson, place / "handout")
        pairs = pairs_of(works, [place / "handout" / each for each in names])
        write_pages(lesson, pairs, options.output)
    print(f"{options.output}: similarity.csv and similarity.html, {len(pairs)} pairs")
    return 0


def write_pages(lesson: int, pairs: Sequence[Pair], output: Path) -> None:
    """Writes the list and a page for each pair."""
    made = pages()
    for number, pair in enumerate(pairs, 1):
        text = made.get_template("pair.html").render(lesson=lesson, pair=pair)
        write_whole(output / "similarity" / f"{number}.html", text)
    text = made.get_template("similarity.html").render(lesson=lesson, pairs=pairs)
    write_whole(output / "similarity.html", text)
    write_whole(output / "similarity.csv", table_of(pairs))


def with_fixed_hashes() -> None:
    """Starts this program again where Python's hashes are others each time."""
    if sys.flags.hash_randomization:
        os.environ[FIXED] = "0"
        os.execv(
            sys.executable, [sys.executable, "-m", "labs.tools.cohort.similarity", *sys.argv[1:]]
        )


if __name__ == "__main__":
    with_fixed_hashes()
    sys.exit(in_a_line(PROGRAM, main))
