"""`make thirds`: points follow the parts of an exercise. A student who leaves out a third of it
loses about a third of its points, and never less than a quarter.

    python -m labs.tools.proving.prove_thirds [--lesson 1] [--only PATTERN] [--workers N]

Left out is what the handout has a blank for: functions, or whole regions; the rest is the
reference's. Where a blank of C ends the machine and says so, it returns nothing, or 0: a student
who wants the rest to run writes that, and it loses least. Of each exercise that consists of several
such pieces two choices are tried: the fewest pieces that are about a third of its lines, and the
most. tests/mutants/thirds.txt has a line for each: the exercise, the pieces, and the tests that
fail, with how many of their variants. Points are not kept: they are those that the tests have
today. Without --only it tries what has no line yet.

It is tried at one clock rate. Exit status: 0 when each choice loses a quarter.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from itertools import combinations
from pathlib import Path

from labs.tools.course.exercises import (
    ROOT,
    Exercise,
    by_id,
    every_lesson,
    name_of,
    of_lesson,
    regions,
    replaced,
)
from labs.tools.grading.grade import GradeError, build_reference
from labs.tools.grading.graded_tree import open_tree
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.test_run import TestRunError
from labs.tools.machine.command import in_a_line
from labs.tools.machine.work_folder import command_folder
from labs.tools.proving.prove_mutants import DIRECTORY
from labs.tools.proving.prove_shares import failed_in, parser, share, tests_in

PROGRAM = "make thirds"
FILE = DIRECTORY / "thirds.txt"
THIRD, LEAST, MOST = 1 / 3, 0.28, 0.42  # of an exercise's lines
MUST_LOSE = 0.25  # of its points
BODY = re.compile(r"^\{\n.*?^\}\n", re.MULTILINE | re.DOTALL)
SIGNATURE = re.compile(r"(?:[^\n]+\n)+\Z")
COMMENT = re.compile(r"/\*.*?\*/|;[^\n]*", re.DOTALL)
ENDS = re.compile(r"exercise_missing\([^)]*\);")
OPENED = re.compile(r"^(\w[\w ]*?[ *]+)\w+\([^\n]*(?:\n\s+[^\n]*)*\)\n\{", re.MULTILINE)
NAME = re.compile(r"(\w+)\((?:[^()]|\([^()]*\))*\)\s*\Z")


@dataclass(frozen=True)
class Function:
    """A function of a text: where it begins and ends, without its comment; kind: what is before
    its name."""

    name: str
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Piece:
    """What can be left out: a function of a region, or all of a region (then `function` is empty).
    region: its number among those of the exercise in this file, from 0."""

    path: str
    region: int
    function: str

    @property
    def name(self) -> str:
        """The function, or the file and the region's number, from 1."""
        return self.function or f"{Path(self.path).name}:{self.region + 1}"


@dataclass(frozen=True)
class Known:
    """What is known of a choice: the names of its pieces, and how many variants of which tests
    fail."""

    exercise: str
    pieces: tuple[str, ...]
    failed: dict[str, int]

    @property
    def name(self) -> str:
        """The exercise and its pieces."""
        return f"{self.exercise}-{'+'.join(self.pieces)}"


# ---- what is left out ---------------------------------------------------------------------------


def functions(text: str) -> list[Function]:
    """The functions that are defined in a text, in order."""
    found = []
    for body in BODY.finditer(text):
        before = text[: body.start()].rpartition("*/\n")
        signature = SIGNATURE.search(before[2])
        name = NAME.search(signature[0]) if signature else None
        if name:
            start = body.start() - len(signature[0])
            kind = signature[0][: name.start()]
            found.append(Function(name[1], start, body.end(), kind))
    return found


def pieces_of(exercise: Exercise) -> list[Piece]:
    """What can be left out of an exercise, in order."""
    found = []
    for path in exercise.files:
        for number, (body, stub) in enumerate(regions_of(exercise, path)):
            blanks = {each.name for each in functions(stub)}
            own = [each.name for each in functions(body) if each.name in blanks]
            found += [Piece(path, number, name) for name in own or [""]]
    return found


def regions_of(exercise: Exercise, path: str) -> list[tuple[str, str]]:
    """The solution and the blank of each of its regions in a file."""
    text = (ROOT / path).read_text()
    bodies = [each.body for each in regions(text) if each.exercise == exercise.id]
    return list(zip(bodies, exercise.stubs[path], strict=True))


def files_without(exercise: Exercise, left: Sequence[Piece]) -> dict[str, bytes]:
    """The changed files of the reference when pieces are left out."""
    paths = {each.path for each in left}
    return {path: text_without(exercise, path, left, True).encode() for path in paths}


def text_without(exercise: Exercise, path: str, left: Sequence[Piece], has_stubs: bool) -> str:
    """A file without pieces of an exercise, and without helpers that nobody calls then; the other
    exercises are as they are. has_stubs: with the handout's blanks for them."""
    known = regions_of(exercise, path)

    def body(region: object, number: int) -> str:
        if region.exercise != exercise.id:
            return region.body
        gone = {each.function for each in left if (each.path, each.region) == (path, number)}
        solution, stub = known[number]
        stub = quiet(stub, text[: region.start]) if path.endswith((".c", ".h")) else stub
        return body_without(solution, stub if has_stubs else "", gone)

    text = (ROOT / path).read_text()
    return without_helpers(replaced(text, body), known)


def quiet(stub: str, before: str) -> str:
    """A blank of C that returns where it would end the machine. before: the file's text up to it,
    whose last line with a parameter list says what its function returns if none begins here."""
    for each in reversed(functions(stub)):
        blank = ENDS.sub(f"return{nothing_of(each.kind)};", stub[each.start : each.end])
        stub = stub[: each.start] + blank + stub[each.end :]
    opened = OPENED.findall(before)
    return ENDS.sub(f"return{nothing_of(opened[-1])};", stub) if opened else stub


def nothing_of(kind: str) -> str:
    """What a function that has not been written returns, after `return`."""
    words = kind.replace("static", "").replace("inline", "").split()
    if words[:1] == ["void"] and "*" not in kind:
        return ""
    return f" ({' '.join(words)}){{ 0 }}" if words[:1] == ["struct"] and "*" not in kind else " 0"


def body_without(solution: str, stub: str, gone: set[str]) -> str:
    """A region's text without functions, or the stub when all of it is left out."""
    if "" in gone:
        return stub
    blanks = {each.name: stub[each.start : each.end] for each in functions(stub)}
    own = {each.name for each in functions(solution)}
    for each in reversed(functions(solution)):
        if each.name in gone:
            blank = blanks.get(each.name, "")
            solution = solution[: each.start] + blank + solution[each.end :]
    helpers = "\n".join(text for name, text in blanks.items() if name not in own)
    includes = "".join(line + "\n" for line in stub.splitlines() if line.startswith("#include"))
    return f"{includes}{helpers}\n{solution}" if gone and stub else solution


def without_helpers(text: str, known: Iterable[tuple[str, str]]) -> str:
    """The text without static functions of the solution that have no blank of their own, and that
    nothing mentions any longer."""
    names = {each.name for body, _ in known for each in functions(body) if "static" in each.kind}
    names -= {each.name for _, stub in known for each in functions(stub)}
    for each in reversed(functions(text)):
        if each.name in names and len(re.findall(rf"\b{each.name}\b", uncommented(text))) == 1:
            return without_helpers(text[: each.start] + text[each.end :], known)
    return text


def uncommented(text: str) -> str:
    """A C text without comments."""
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def lines_in(text: str) -> int:
    """How many lines of it are code."""
    return sum(bool(line.strip()) for line in COMMENT.sub("", text).splitlines())


def part_of(exercise: Exercise, left: Sequence[Piece]) -> float:
    """How much of an exercise's lines pieces are, with the helpers that only they need."""
    whole = sum(lines_in(body) for path in exercise.files for body, _ in regions_of(exercise, path))
    gone = 0
    for path in {each.path for each in left}:
        before = lines_in(text_without(exercise, path, (), False))
        gone += before - lines_in(text_without(exercise, path, left, False))
    return gone / whole


# ---- which choices are tried --------------------------------------------------------------------


@cache
def choices(number: str) -> list[tuple[Piece, ...]]:
    """What is left out of an exercise: about a third of it, once in few pieces and once in many.
    None of an exercise that is one piece, or whose pieces make no third."""
    exercise = by_id(number)
    pieces = pieces_of(exercise)
    sizes = {each: part_of(exercise, (each,)) for each in pieces}
    fits: dict[int, list[tuple[float, tuple[Piece, ...]]]] = {}
    for count in range(1, len(pieces)):
        for left in combinations(pieces, count):
            if sum(sizes[each] for each in left) > MOST:
                continue
            part = part_of(exercise, left)
            if LEAST <= part <= MOST:
                fits.setdefault(count, []).append((abs(part - THIRD), left))
    counts = sorted({min(fits), max(fits)}) if fits else []
    return [min(fits[each], key=lambda fit: (fit[0], names_of(fit[1])))[1] for each in counts]


def names_of(left: Iterable[Piece]) -> tuple[str, ...]:
    """The names of pieces."""
    return tuple(each.name for each in left)


def named(known: Known) -> tuple[Piece, ...]:
    """The pieces of a line. Raises KeyError for one that is there no longer."""
    pieces = {each.name: each for each in pieces_of(by_id(known.exercise))}
    return tuple(pieces[each] for each in known.pieces)


# ---- what is kept -------------------------------------------------------------------------------


def read(path: Path = FILE) -> dict[str, Known]:
    """What is kept, by name."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {each.name: each for each in map(known_of, lines)}


def known_of(line: str) -> Known:
    """What a line says."""
    exercise, pieces, *tests = line.split()
    counts = (each.rpartition("*") for each in tests)
    failed = {test: int(count) for test, _, count in counts}
    return Known(exercise, tuple(pieces.split("+")), failed)


def write(known: dict[str, Known], path: Path = FILE) -> None:
    """Keeps it, in the order of names."""
    lines = []
    for _, each in sorted(known.items()):
        tests = [f"{test}*{count}" for test, count in sorted(each.failed.items())]
        lines.append(" ".join([each.exercise, "+".join(each.pieces), *tests]) + "\n")
    path.write_text("".join(lines))


def lost(known: Known) -> float:
    """Which part of an exercise's points is lost, with the tests of today. Raises KeyError for a
    test that is gone."""
    lesson = by_id(known.exercise).lesson
    return 1 - share(tests_in(lesson, f"tests/{name_of(lesson)}")[known.exercise], known.failed)


def words_of(known: Known) -> str:
    """A line of the table."""
    part = part_of(by_id(known.exercise), named(known))
    return f"{known.exercise:5} {part:4.0%} of the lines, {lost(known):4.0%} of the points: " + (
        ", ".join(known.pieces)
    )


# ---- the command --------------------------------------------------------------------------------


def tried(lesson: int, asked: Sequence[tuple[str, tuple[Piece, ...]]], workers: int) -> list[Known]:
    """Grades choices of a lesson, whose reference is built."""
    folder = f"tests/{name_of(lesson)}"
    with command_folder("thirds") as work:
        jobs = []
        for number, left in asked:
            name = f"{number}-{'+'.join(names_of(left))}"
            tree = work / str(len(jobs))
            open_tree(lesson, files_without(by_id(number), left), tree)
            job = Job(name, str(tree), exercise=number, modes=("icount",), thorough=False)
            jobs.append(job)
        failed = failed_in(folder, jobs, workers)
    return [
        Known(number, names_of(left), failed[job.name])
        for job, (number, left) in zip(jobs, asked, strict=True)
    ]


def proved(lesson: int, options: argparse.Namespace) -> list[Known]:
    """Tries what is to be tried of a lesson, and returns all that is known of it."""
    known, own = read(), {each.id for each in of_lesson(lesson)}
    if options.only:
        numbers = {each for each in own if fnmatch(each, options.only)}
    else:
        numbers = own - {each.exercise for each in known.values()}
    asked = [(number, left) for number in sorted(numbers) for left in choices(number)]
    if asked:
        build_reference(lesson)
        again = {number for number, _ in asked}
        known = {name: each for name, each in known.items() if each.exercise not in again}
        known |= {each.name: each for each in tried(lesson, asked, options.workers)}
        write(known)
    return [each for _, each in sorted(known.items()) if each.exercise in own]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    options = parser(PROGRAM).parse_args(arguments)
    lessons = [options.lesson] if options.lesson else list(every_lesson())
    try:
        known = [each for lesson in lessons for each in proved(lesson, options)]
    except (GradeError, TestRunError) as error:
        print(f"thirds: {error}", file=sys.stderr)
        return 1
    print("\n".join(map(words_of, known)))
    cheap = [each for each in known if lost(each) < MUST_LOSE]
    for each in cheap:
        print(f"{each.name} loses less than {MUST_LOSE:.0%}", file=sys.stderr)
    return 1 if cheap else 0


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))
