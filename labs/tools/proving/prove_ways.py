"""Other ways: right solutions that are written quite differently from the reference, as data in
tests/other_ways/*.toml. Graded as a submission, the exercise must have all its points.

exercise = "4.6"
title = "..."        what is different, in a sentence
file = "kernel/task/sched_fair.c"
old = '...'          text that is in the file exactly once
until = '...'        the change ends with the first such text after it; without this, with `old`
new = '...'

Several edits are [[edit]] tables with file, old, until and new.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from labs.tools.course.exercises import ROOT, by_id, lesson_of
from labs.tools.grading.grade_parts import graded_job
from labs.tools.grading.grade_report import scores_of
from labs.tools.grading.graded_tree import graded_tree
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.test_run import TestResult
from labs.tools.proving.prove_mutants import Change, MutantError, changed_files

DIRECTORY = ROOT / "tests/other_ways"


class Way(Change):
    """A right solution."""

    @property
    def job_name(self) -> str:
        """Its name in a plan."""
        return f"way-{self.name}"

    @property
    def places(self) -> set[str]:
        """The files that it depends on: those it changes, and its own."""
        own = str((DIRECTORY / f"{self.name}.toml").relative_to(ROOT))
        return {own, *(path for path, _, _ in self.edits)}


def ways_of(lesson: int, directory: Path = DIRECTORY) -> list[Way]:
    """The other ways of a lesson, in order. Raises MutantError."""
    paths = sorted(path for path in directory.glob("*.toml") if lesson_of(path.name) == lesson)
    return [read_way(path) for path in paths]


def read_way(path: Path) -> Way:
    """A way of a file. Raises MutantError."""
    try:
        table = tomllib.loads(path.read_text())
        edits = table.get("edit") or [table]
        made = tuple(edit_of({"file": table.get("file"), **each}) for each in edits)
        return Way(path.stem, table["exercise"], table["title"], made)
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise MutantError(f"{path.name}: {error!r}") from error


def edit_of(table: Mapping[str, str]) -> tuple[str, str, str]:
    """An edit with all of its old text. Raises MutantError where that has no end."""
    old, until = table["old"], table.get("until", "")
    _, begun, after = (ROOT / table["file"]).read_text().partition(old)
    between, ended, _ = after.partition(until) if until else ("", "", "")
    if begun and until and not ended:
        raise MutantError(f"no {until!r} follows {old!r} in {table['file']}")
    return table["file"], old + between + ended, table["new"]


def way_job(way: Way, work: Path) -> Job:
    """Makes the submission, whose other files are the reference's, and its tree. Raises
    MutantError."""
    exercise, place = by_id(way.exercise), work / way.job_name
    files = changed_files(way)
    for path in exercise.files:
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, place / path)
    for path, data in files.items():
        (place / path).write_bytes(data)
    graded = graded_tree(exercise, place, work / f"{way.job_name}.tree")
    if graded.problems:
        raise MutantError("; ".join(graded.problems.values()))
    job = graded_job(exercise, graded.tree, way.name, boxed=True, core=False)
    return replace(job, name=way.job_name, thorough=True)


def way_error(way: Way, results: Sequence[TestResult]) -> str:
    """What a right solution did not pass; empty when it has all points."""
    own = [each for each in results if each.job == way.job_name]
    (score,) = scores_of([by_id(way.exercise)], own)
    words = "; ".join(f"{test.test} ({test.mode}): {test.words}" for test in score.failed)
    return "" if score.is_full else words or f"there is no test of exercise {way.exercise}"
