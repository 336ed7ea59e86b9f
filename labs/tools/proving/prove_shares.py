"""`make shares`: how many of the hidden points a mutant keeps that all visible tests pass. One
wrong detail must not take a whole exercise: it is half of them, or a visible test tells.

    python -m labs.tools.proving.prove_shares [--lesson 1] [--only PATTERN] [--workers N]

It tries the mutants that are new, or have changed, since tests/mutants/shares.txt was written; with
--only those whose names fit. Then it writes that file: a line for each mutant with its name, a
checksum of its text, and "seen" (a visible test fails), or the hidden tests that fail, with how
many of their variants. Points are not kept: they are those that the tests have today.

A mutant is tried at one clock rate. Exit status: 0 when each mutant keeps half.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from zlib import crc32

from labs.tools.course.exercises import every_lesson, name_of, number_of, of_lesson
from labs.tools.grading.grade import GradeError, build_reference
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.test_run import (
    WORKERS,
    Run,
    TestRunError,
    function_of,
    planned_file,
    read_lines,
    run_tests,
    write_lines,
)
from labs.tools.machine.command import Options, in_a_line
from labs.tools.machine.work_folder import command_folder
from labs.tools.proving.prove_mutants import (
    DIRECTORY,
    Mutant,
    MutantError,
    file_of,
    mutant_job,
    mutants_of,
    read_mutants,
)

PROGRAM = "make shares"
FILE = DIRECTORY / "shares.txt"
SEEN = "seen"
MEASURED = "measured:"
LEAST = 0.5
AT_ONCE = 40  # mutants whose trees are there at the same time


@dataclass(frozen=True)
class Known:
    """What is known of a mutant. failed: of its exercise's hidden tests, by function, how many
    variants fail; None: a visible test tells."""

    checksum: str
    failed: dict[str, int] | None


def checksum(mutant: Mutant) -> str:
    """Changes with the mutant's text."""
    return f"{crc32(repr((mutant.edits, mutant.mode)).encode()):08x}"


def read(path: Path = FILE) -> dict[str, Known]:
    """What is kept, by the mutants' names."""
    found = {}
    for line in lines_of(path)[1:]:
        name, number, *tests = line.split()
        counts = (each.rpartition("*") for each in tests)
        failed = None if tests == [SEEN] else {test: int(count) for test, _, count in counts}
        found[name] = Known(number, failed)
    return found


def lines_of(path: Path) -> list[str]:
    """A file's lines; none of one that is not there."""
    return path.read_text().splitlines() if path.exists() else []


def measured(path: Path = FILE) -> set[str]:
    """The exercises of which each mutant has been tried."""
    return {each for line in lines_of(path)[:1] for each in line.removeprefix(MEASURED).split()}


def not_tried(known: dict[str, Known], exercises: Iterable[str]) -> list[str]:
    """The mutants of exercises of which nothing is known."""
    of_each = (read_mutants(each, file_of(each).read_text()) for each in sorted(exercises))
    return [mutant.name for mutants in of_each for mutant in mutants if mutant.name not in known]


def write(known: dict[str, Known], path: Path = FILE) -> None:
    """Keeps it, in the order of names. An exercise that is measured stays so."""
    tried = {name.partition("-")[0] for name in known}
    whole = measured(path) | {each for each in tried if not not_tried(known, [each])}
    lines = [" ".join([MEASURED, *sorted(whole)]) + "\n"]
    for name in sorted(known):
        failed = known[name].failed
        tests = [SEEN] if failed is None else [f"{test}*{n}" for test, n in sorted(failed.items())]
        lines.append(" ".join([name, known[name].checksum, *tests]) + "\n")
    path.write_text("".join(lines))


# ---- what a mutant keeps ------------------------------------------------------------------------


@dataclass(frozen=True)
class Hidden:
    """A hidden test of an exercise: its points, and how many variants share them."""

    points: float
    variants: int
    gate: bool


def hidden_tests(lesson: int) -> dict[str, dict[str, Hidden]]:
    """The hidden tests of a lesson's exercises, by function. Raises TestRunError."""
    return tests_in(lesson, hidden_folder(lesson))


def hidden_folder(lesson: int) -> str:
    """Where they are."""
    return f"tests/{name_of(lesson)}/hidden"


@cache
def tests_in(lesson: int, folder: str) -> dict[str, dict[str, Hidden]]:
    """The graded tests in a folder, by exercise and by name there. Raises TestRunError."""
    with tempfile.TemporaryDirectory(prefix="shares-") as name:
        run = Run(Path(name), [folder])
        write_lines(run.plan, [asdict(Job("", "."))])
        run.pytest("found", ["--collect-only", "-pno:xdist"])
        planned = read_lines(planned_file(run.directory / "found"))
    tests = {each["test"]: each for each in planned}.values()
    variants = Counter(function_of(each["test"]) for each in tests)
    found: dict[str, dict[str, Hidden]] = {each.id: {} for each in of_lesson(lesson)}
    for each in tests:
        function = function_of(each["test"])
        own = found.setdefault(each["exercise"], {})
        own[short(function, folder)] = Hidden(each["points"], variants[function], each["gate"])
    return found


def short(function: str, folder: str) -> str:
    """A test's name in a folder: test_pio.py::test_counts."""
    return function.removeprefix(f"{folder}/")


def share(tests: dict[str, Hidden], failed: dict[str, int]) -> float:
    """How much is left of an exercise's hidden points, from 0 to 1. KeyError names a failed test
    that is there no longer."""
    lost = sum(tests[name].points * count / tests[name].variants for name, count in failed.items())
    gates = [tests[name].variants > failed.get(name, 0) for name in tests if tests[name].gate]
    whole = sum(each.points for each in tests.values())
    return 0.0 if gates and not any(gates) else 1 - lost / whole


def too_little(lesson: int, known: dict[str, Known]) -> list[str]:
    """Of the mutants of a lesson, in words, those that visible tests pass and that keep less than
    half."""
    wrong = []
    for mutant in mutants_of(lesson):
        failed = known[mutant.name].failed if mutant.name in known else None
        if failed is None:
            continue
        left = share(hidden_tests(lesson)[mutant.exercise], failed)
        if left < LEAST:
            wrong.append(f"{mutant.name} keeps {left:.0%} ({mutant.title}): {', '.join(failed)}")
    return wrong


# ---- trying them --------------------------------------------------------------------------------


def tried(mutants: Sequence[Mutant], workers: int) -> dict[str, Known]:
    """What becomes of mutants of one lesson, whose reference is built: the visible tests of each,
    and the hidden ones of those that pass."""
    folder = f"tests/{name_of(mutants[0].lesson)}"
    with command_folder("shares") as work:
        jobs = [job_of(each, work) for each in mutants]
        seen = failed_in(f"{folder}/visible", jobs, workers)
        failed = failed_in(
            f"{folder}/hidden", [each for each in jobs if not seen[each.name]], workers
        )
    return {each.name: Known(checksum(each), failed.get(each.name)) for each in mutants}


def job_of(mutant: Mutant, work: Path) -> Job:
    """Makes the mutant's tree, and the job for all tests of its exercise. Raises MutantError."""
    return replace(mutant_job(mutant, work), name=mutant.name, tests=(), thorough=False)


def failed_in(folder: str, jobs: Sequence[Job], workers: int) -> dict[str, dict[str, int]]:
    """For each job, how many variants of which tests of a folder fail."""
    failed: dict[str, Counter[str]] = {job.name: Counter() for job in jobs}
    for each in run_tests(jobs, [folder], workers) if jobs else ():
        if not each.passed:
            failed[each.job][short(function_of(each.test), folder)] += 1
    return {name: dict(tests) for name, tests in failed.items()}


# ---- the command --------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    options = parser(PROGRAM).parse_args(arguments)
    lessons = [options.lesson] if options.lesson else list(every_lesson())
    try:
        wrong = [line for each in lessons for line in proved(each, options)]
    except (GradeError, MutantError, TestRunError) as error:
        print(f"shares: {error}", file=sys.stderr)
        return 1
    print("\n".join(wrong) or "each mutant that visible tests pass keeps half of its exercise")
    return 1 if wrong else 0


def proved(lesson: int, options: argparse.Namespace) -> list[str]:
    """Tries what is to be tried of a lesson, and returns what does not hold."""
    every, known = mutants_of(lesson), read()
    asked = [each for each in every if is_asked(each, known, options.only)]
    if asked:
        build_reference(lesson)
    for first in range(0, len(asked), AT_ONCE):
        new = tried(asked[first : first + AT_ONCE], options.workers)
        names = {each.name for number in every_lesson() for each in mutants_of(number)}
        write({name: each for name, each in (read() | new).items() if name in names})
    return too_little(lesson, read())


def is_asked(mutant: Mutant, known: dict[str, Known], only: str) -> bool:
    """Whether a mutant is to be tried."""
    if only:
        return fnmatch(mutant.name, only)
    return mutant.name not in known or known[mutant.name].checksum != checksum(mutant)


def parser(program: str) -> argparse.ArgumentParser:
    """The command line of a program that keeps what it has tried."""
    made = Options(program)
    made.add_argument("--lesson", type=number_of)
    made.add_argument("--only", default="", metavar="PATTERN", help="those with such names")
    made.add_argument("--workers", type=int, default=WORKERS)
    return made


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))
