"""`make prove REPEAT=20`: half-finished submissions get the same report each time, idle or busy.

    python -m labs.tools.proving.prove_repeat --count 20 [--lesson 1] [--exercises 2] [--times 3]
        [--load 4] [--seed WORD]

Of a submission each exercise is finished, or blank, or has a mutant's bug: drawn by the seed. Its
first grading has the machine to itself, as far as we know; beside the others this many processes
calculate. Exit status: 0 when no two reports of a submission differ.
"""

from __future__ import annotations

import argparse
import difflib
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from labs.tools.course.exercises import ROOT, Exercise, every_lesson, number_of, of_lesson
from labs.tools.grading.grade import build_reference, graded
from labs.tools.grading.grade_report import gradescope, text_report
from labs.tools.grading.graded_tree import handout_files
from labs.tools.machine.command import A_COUNT, Options, in_a_line
from labs.tools.machine.work_folder import command_folder
from labs.tools.proving.prove_mutants import changed_files, mutants_of

FINISHED, BLANK = "finished", "blank"
TIMES, LOAD = 3, 4
CALCULATE = "while True: pass"


@dataclass(frozen=True)
class Draft:
    """A half-finished submission of a lesson: its number, the exercises that are graded, and what
    each of them is: FINISHED, BLANK, or a mutant's name."""

    number: int
    exercises: tuple[Exercise, ...]
    parts: dict[str, str]

    def __str__(self) -> str:
        return f"{self.number}: " + ", ".join(f"{name} {part}" for name, part in self.parts.items())


def drafts(lesson: int, count: int, seed: str, most: int) -> list[Draft]:
    """This many drafts of a lesson, of at most this many exercises each."""
    return [draft(lesson, number, seed, most) for number in range(count)]


def draft(lesson: int, number: int, seed: str, most: int) -> Draft:
    """The draft of this number."""
    drawn = random.Random(f"{seed}:{lesson}:{number}")
    every = of_lesson(lesson)
    chosen = sorted(drawn.sample(every, min(most, len(every))), key=lambda each: each.id)
    mutants: dict[str, list[str]] = {}
    for mutant in mutants_of(lesson):
        if mutant.compiles:
            mutants.setdefault(mutant.exercise, []).append(mutant.name)
    parts = {
        each.id: drawn.choice((FINISHED, BLANK, drawn.choice(mutants[each.id]))) for each in chosen
    }
    return Draft(number, tuple(chosen), parts)


def write_draft(made: Draft, directory: Path) -> None:
    """Writes the files of a draft."""
    for exercise in made.exercises:
        for path, data in files_of(exercise, made.parts[exercise.id]).items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_bytes(data)


def files_of(exercise: Exercise, part: str) -> dict[str, bytes]:
    """An exercise's files, finished, blank, or with a mutant's bug."""
    files = {path: (ROOT / path).read_bytes() for path in exercise.files}
    if part == BLANK:
        return handout_files(exercise)
    if part != FINISHED:
        mutant = next(each for each in mutants_of(exercise.lesson) if each.name == part)
        files |= changed_files(mutant)
    return files


def reports(made: Draft, times: int, load: int, seed: str) -> Iterator[str]:
    """The reports about a draft, graded this often."""
    with command_folder("repeat") as folder:
        write_draft(made, folder / "submission")
        for time in range(times):
            with busy(load if time else 0):
                work = folder / str(time)
                scores = graded(made.exercises, folder / "submission", work, seed)
            yield text_report(scores) + gradescope(scores, seed)


@contextmanager
def busy(load: int) -> Iterator[None]:
    """This many processes calculate meanwhile."""
    processes = [subprocess.Popen([sys.executable, "-c", CALCULATE]) for _ in range(load)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def differences(found: Sequence[str]) -> list[str]:
    """The lines in which the later reports differ from the first."""
    lines = []
    for later in found[1:]:
        compared = difflib.unified_diff(found[0].splitlines(), later.splitlines(), lineterm="", n=0)
        lines += [line for line in compared if line[:3] not in ("---", "+++")]
    return lines


def check(lesson: int, options: argparse.Namespace) -> bool:
    """Grades the drafts of a lesson, and prints what came. Returns whether all reports agree."""
    build_reference(lesson)
    held = True
    for made in drafts(lesson, options.count, options.seed, options.exercises):
        found = list(reports(made, options.times, options.load, options.seed))
        wrong = differences(found)
        held = held and not wrong
        total = next(line for line in found[0].splitlines() if line.startswith("total"))
        print(f"lesson {lesson}, submission {made}: {total.split(None, 1)[1]}", flush=True)
        for line in wrong:
            print(f"  DIFFERS  {line}", flush=True)
    return held


def agreement(check: Callable[[int, argparse.Namespace], bool], options: argparse.Namespace) -> int:
    """Calls `check` for the lesson of the options, or for each, and prints whether all reports
    agree. Returns the exit status."""
    numbers = [options.lesson] if options.lesson else list(every_lesson())
    held = [check(number, options) for number in numbers]
    print("all reports agree" if all(held) else "REPORTS DIFFER")
    return 0 if all(held) else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    made = Options("make prove")
    made.add_argument("--lesson", type=number_of)
    made.add_argument("--count", type=A_COUNT, default=20, help="submissions of each lesson")
    made.add_argument("--exercises", type=int, default=6, help="at most this many of each")
    made.add_argument("--times", type=int, default=TIMES, help="each is graded this many times")
    made.add_argument("--load", type=int, default=LOAD, help="processes that calculate meanwhile")
    made.add_argument("--seed", default="2010", help="which submissions, and which questions")
    options = made.parse_args(arguments)
    return agreement(check, options)


if __name__ == "__main__":
    sys.exit(in_a_line("make prove", main))
