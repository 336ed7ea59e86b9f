"""`make prove GENERATED=6`: mutants that a program makes (generated.py), this many an exercise.

    python -m labs.tools.proving.prove_generated --generated 6 [--lesson 1] [--exercise 1.3]
        [--seed 2010] [--workers N]

Each is tried by its exercise's visible tests, then by the hidden ones, up to the first that fails;
and what is left then, by those of the second clock rate. Prints a table, and the difference of each
that no test catches. Exit status: 0 when there is none.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labs.tools.course.exercises import (
    ROOT,
    Exercise,
    ExerciseError,
    by_id,
    every_lesson,
    name_of,
    number_of,
    of_lesson,
)
from labs.tools.grading.grade import GradeError, build_reference
from labs.tools.grading.lab_plan import MODES, Job
from labs.tools.grading.test_run import WORKERS, TestRunError, run_tests
from labs.tools.machine.command import A_COUNT, A_SEED, Options, in_a_line
from labs.tools.machine.work_folder import command_folder
from labs.tools.proving.generated import Choice, Made, chosen
from labs.tools.proving.prove_mutants import MutantError, changed_files, changed_job

SEED = 2010
HEADINGS = (
    "exercise",
    "made",
    "not compiled",
    "same code",
    "visible",
    "hidden",
    "equivalent",
    "survived",
)


@dataclass(frozen=True)
class Outcome:
    """What became of an exercise's mutants: those that the visible tests caught, and those that
    only the hidden ones did, each with the words of the test."""

    choice: Choice
    visible: dict[str, str]
    hidden: dict[str, str]

    @property
    def survivors(self) -> list[Made]:
        """Those that no test catches."""
        caught = self.visible | self.hidden
        return [each for each in self.choice.mutants if each.name not in caught]

    @property
    def row(self) -> tuple[str | int, ...]:
        """Its line of the table."""
        drawn = self.choice
        counts = (drawn.made, drawn.refused, drawn.same_code, len(self.visible), len(self.hidden))
        return (drawn.exercise.id, *counts, drawn.equivalent, len(self.survivors))


def tried(choices: Sequence[Choice], work: Path, workers: int) -> list[Outcome]:
    """Tries the mutants of one lesson, whose reference is built. Raises TestRunError."""
    every = [each for choice in choices for each in choice.mutants]
    jobs = [job_of(each, work) for each in every]
    folder = f"tests/{name_of(choices[0].exercise.lesson)}"
    visible = caught_by(jobs, f"{folder}/visible", workers)
    left = [job for job in jobs if job.name not in visible]
    hidden = caught_by(left, f"{folder}/hidden", workers)
    last = [replace(job, modes=MODES[1:]) for job in left if job.name not in hidden]
    slower = caught_by(last, f"{folder}/hidden", workers)
    return [
        Outcome(
            choice,
            *(
                {m.name: by[m.job_name] for m in choice.mutants if m.job_name in by}
                for by in (visible, hidden | slower)
            ),
        )
        for choice in choices
    ]


def job_of(mutant: Made, work: Path) -> Job:
    """Makes a mutant's tree, and its job. Raises MutantError."""
    how = {"modes": MODES[:1], "thorough": False, "brief": True}
    return changed_job(mutant, mutant.job_name, work, **how)


def caught_by(jobs: Sequence[Job], folder: str, workers: int) -> dict[str, str]:
    """The jobs whose mutants a folder's tests catch, each with the first test that fails. Raises
    TestRunError."""
    results = run_tests(jobs, [folder], workers) if jobs else []
    failed = [each for each in results if not each.passed]
    return {each.job: f"{each.name}: {each.words}" for each in reversed(failed)}


# ---- what is shown ------------------------------------------------------------------------------


def table(outcomes: Sequence[Outcome]) -> str:
    """A line for each exercise, and their sum."""
    rows = [each.row for each in outcomes]
    total = ("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))
    return "\n".join(in_columns(each) for each in (HEADINGS, *rows, total))


def in_columns(row: Sequence[str | int]) -> str:
    """A line of the table."""
    first, *others = row
    return f"{first:<8}" + "".join(
        f"  {cell:>{len(name)}}" for name, cell in zip(HEADINGS[1:], others, strict=True)
    )


def difference(mutant: Made) -> str:
    """What a mutant changes."""
    ((path, data),) = changed_files(mutant).items()
    before, after = (ROOT / path).read_text().splitlines(), data.decode().splitlines()
    lines = difflib.unified_diff(before, after, path, f"mutant {mutant.name}", lineterm="")
    return "\n".join(lines)


# ---- the command --------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    options = parser().parse_args(arguments)
    try:
        outcomes = [outcome for each in exercises_of(options) for outcome in proved(each, options)]
    except (ExerciseError, GradeError, MutantError, TestRunError) as error:
        print(f"prove: {error}", file=sys.stderr)
        return 1
    print(table(outcomes))
    survivors = [mutant for each in outcomes for mutant in each.survivors]
    for mutant in survivors:
        print(f"\nNO TEST CATCHES  {mutant.name}\n{difference(mutant)}")
    return 1 if survivors else 0


def exercises_of(options: argparse.Namespace) -> list[list[Exercise]]:
    """The exercises in question, a lesson's together. Raises ExerciseError."""
    lessons = [options.lesson] if options.lesson else list(every_lesson())
    if not options.exercise:
        return [list(of_lesson(lesson)) for lesson in lessons]
    exercise = by_id(options.exercise)
    if exercise.lesson not in lessons:
        raise ExerciseError(f"EX={exercise.id} is no exercise of this lesson")
    return [[exercise]]


def proved(exercises: Sequence[Exercise], options: argparse.Namespace) -> list[Outcome]:
    """Draws the mutants of one lesson's exercises, and tries them."""
    lesson = exercises[0].lesson
    build_reference(lesson)
    with command_folder("generated") as work:
        choices = [chosen(each, options.generated, options.seed) for each in exercises]
        return tried(choices, work, options.workers)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Options("make prove")
    made.add_argument("--generated", type=A_COUNT, required=True, help="mutants of an exercise")
    made.add_argument("--lesson", type=number_of)
    made.add_argument("--exercise", default="", help="only of this one")
    made.add_argument("--seed", type=A_SEED, default=SEED, help="which of them")
    made.add_argument("--workers", type=int, default=WORKERS)
    return made


if __name__ == "__main__":
    sys.exit(in_a_line("make prove", main))
