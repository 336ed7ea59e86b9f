"""Grades one submission of a class: the job that make, or Snakemake, runs for each of them.

    python -m labs.tools.cohort.one WORK NAME       WORK/jobs/NAME.json -> WORK/results/NAME.json

The result is the same whenever and wherever it is made. It is there whole, or not at all.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labs.tools.cohort.reader import Reading, printable, read
from labs.tools.course.exercises import Exercise, of_lesson
from labs.tools.grading.grade import graded, sandbox_error, seed_of
from labs.tools.grading.grade_parts import parts_of
from labs.tools.grading.grade_report import Score, most, number, total
from labs.tools.grading.test_run import TestResult, TestRunError
from labs.tools.machine.command import in_a_line
from labs.tools.machine.work_folder import command_folder

PROGRAM = "make grade-class"


@dataclass(frozen=True)
class Result:
    """What came of a submission. key: the name of its files in OUTPUT; name: the one that it has in
    SUBMISSIONS, printable; scores: of the exercises and the parts, none of a refused one."""

    key: str
    name: str
    reading: Reading
    seed: str = ""
    scores: tuple[Score, ...] = ()

    @property
    def words(self) -> str:
        """The points, or the refusal."""
        if self.reading.refusal:
            return f"refused: {self.reading.refusal}"
        return f"{number(total(self.scores))} of {most(self.scores)}"


def asked_of(lesson: int) -> dict[str, Exercise]:
    """The exercises of a lesson and its other parts, by number."""
    return {each.id: each for each in (*of_lesson(lesson), *parts_of(lesson))}


def job_for(place: Path, lesson: int) -> dict[str, Any]:
    """A job for one submission alone."""
    place = place.absolute()
    return {
        "key": "one",
        "name": printable(place.name),
        "place": os.fsencode(place).hex(),
        "lesson": lesson,
    }


def grade(job: Mapping[str, Any], files: Path, work: Path) -> Result:
    """Reads and grades a submission; `files` is where its files go, `work` is for trees. Raises
    TestRunError, SandboxUnavailable."""
    place, lesson = Path(os.fsdecode(bytes.fromhex(job["place"]))), job["lesson"]
    reading = read(place, lesson, files)
    if reading.refusal:
        return Result(job["key"], job["name"], reading)
    exercises = of_lesson(lesson)
    seed = seed_of(files / "files", exercises)
    scores = graded(exercises, files / "files", work, seed, workers=1)
    return Result(job["key"], job["name"], reading, seed, tuple(scores))


# ---- as a file -----------------------------------------------------------------------------------


def table_of(result: Result) -> dict[str, Any]:
    """A result as JSON has it."""
    scores = [
        {
            "exercise": score.exercise.id,
            "problems": list(score.problems),
            "tests": [asdict(test) for test in score.tests],
        }
        for score in result.scores
    ]
    reading = asdict(result.reading)
    names = {"key": result.key, "name": result.name}
    return {**names, "reading": reading, "seed": result.seed, "scores": scores}


def result_of(table: Mapping[str, Any], lesson: int) -> Result:
    """The same back."""
    asked = asked_of(lesson)
    scores = tuple(
        Score(
            asked[each["exercise"]],
            tuple(TestResult(**test) for test in each["tests"]),
            tuple(each["problems"]),
        )
        for each in table["scores"]
    )
    return Result(table["key"], table["name"], Reading(**table["reading"]), table["seed"], scores)


def write_whole(path: Path, text: str) -> None:
    """Writes a file that is there whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = path.with_name(f".{path.name}.{os.getpid()}")
    waiting.write_text(text)
    waiting.rename(path)


def processor_seconds() -> float:
    """What this process and those that it has waited for have used."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(each.ru_utime + each.ru_stime for each in used)


def said(work: Path, result: Result) -> str:
    """How far the class is, in a line."""
    done = sum(1 for _ in (work / "results").glob("[!.]*.json"))
    of = len((work / "names").read_text().split())
    return f"{done} of {of}: {result.name}: {result.words}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The job. Returns its exit status: 1 where the grader itself has failed."""
    work, name = Path((arguments or sys.argv[1:])[0]), (arguments or sys.argv[1:])[1]
    job = json.loads((work / "jobs" / f"{name}.json").read_text())
    try:
        with command_folder("grade") as trees:
            result = grade(job, work / "files" / name, trees)
    except (TestRunError, sandbox_error()) as error:
        print(f"{PROGRAM}: {job['name']}: {error}", file=sys.stderr)
        return 1
    write_whole(work / "costs" / name, f"{processor_seconds():.2f}\n")
    write_whole(work / "results" / f"{name}.json", json.dumps(table_of(result), indent=1))
    print(said(work, result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))
