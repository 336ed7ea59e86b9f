"""Mutants: the reference with one real bug put back, as data in tests/mutants, a file for each
exercise. In 1.3.toml this is the mutant 1.3-no-sign:

[no-sign]
title = "..."        what is wrong, in a sentence
pitfall = "..."      the pitfall of the course that it stands for
file = "kernel/lib/format.c"
old = '...'          text that is in the file exactly once
new = '...'
caught_by = "tests/lesson1/hidden/test_format.py::test_numbers"

Several edits are [[no-sign.edit]] tables with file, old and new; compiles = false for one that the
build refuses. mode = "slower" for a bug that only the second clock rate shows.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.tools.course.exercises import ROOT, by_id, lesson_of, name_of, of_lesson
from labs.tools.grading.graded_tree import open_tree
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.test_run import TestResult, function_of

DIRECTORY = ROOT / "tests/mutants"
DOES_NOT_BUILD = "it does not build"
# Tables that are no mutants: labs/tools/proving/promises.py.
SAID = PROMISES, CONTRACTS, PITFALLS = "promises", "contracts", "pitfalls"


class MutantError(ValueError):
    """A mutant that is not as it should be; the text says how."""


@dataclass(frozen=True)
class Change:
    """The reference with one exercise changed. edits: file, old text and new text of each."""

    name: str
    exercise: str
    title: str
    edits: tuple[tuple[str, str, str], ...]

    @property
    def lesson(self) -> int:
        """The lesson of its exercise."""
        return lesson_of(self.exercise)


@dataclass(frozen=True)
class Mutant(Change):
    """A bug."""

    caught_by: str
    mode: str
    compiles: bool

    @property
    def job_name(self) -> str:
        """Its name in a plan."""
        return f"mutant-{self.name}"

    @property
    def places(self) -> set[str]:
        """The files that it depends on, besides its own: those it changes, and its test."""
        return {self.caught_by.partition("::")[0], *(path for path, _, _ in self.edits)}


@dataclass(frozen=True)
class Verdict:
    """What the tests made of a mutant. error: why it proves nothing; empty when all is well."""

    mutant: Mutant
    error: str
    survives: bool


def file_of(exercise: str) -> Path:
    """The file with its mutants."""
    return DIRECTORY / f"{exercise}.toml"


def read_mutants(exercise: str, text: str) -> list[Mutant]:
    """The mutants of an exercise's file, in order. Raises MutantError."""
    try:
        tables = tomllib.loads(text)
        names = [name for name in tables if name not in SAID]
        return [mutant_of(exercise, f"{exercise}-{name}", tables[name]) for name in names]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise MutantError(f"{exercise}.toml: {error!r}") from error


def mutant_of(exercise: str, name: str, table: dict) -> Mutant:
    """A mutant of its table. Raises KeyError when a field is missing."""
    edits = table.get("edit") or [table]
    return Mutant(
        name=name,
        exercise=exercise,
        title=table["title"],
        caught_by=table["caught_by"],
        edits=tuple((e.get("file", table.get("file")), e["old"], e["new"]) for e in edits),
        mode=table.get("mode", "icount"),
        compiles=table.get("compiles", True),
    )


def mutants_of(lesson: int) -> list[Mutant]:
    """The mutants of a lesson, in order. Raises MutantError."""
    return [
        mutant
        for each in of_lesson(lesson)
        for mutant in read_mutants(each.id, file_of(each.id).read_text())
    ]


def changed_files(change: Change) -> dict[str, bytes]:
    """The changed files of the reference. Raises MutantError when an edit does not apply."""
    files: dict[str, str] = {}
    for path, old, new in change.edits:
        if path not in by_id(change.exercise).files:
            raise MutantError(f"{path} is no file of exercise {change.exercise}")
        text = files.get(path) or (ROOT / path).read_text()
        if text.count(old) != 1:
            raise MutantError(f"the old text is there {text.count(old)} times in {path}, not once")
        files[path] = text.replace(old, new)
    return {path: text.encode() for path, text in files.items()}


def mutant_job(mutant: Mutant, work: Path, visible: bool = True) -> Job:
    """Makes the mutant's tree, and the job that runs its named test and, with `visible`, those that
    a student has. Raises MutantError."""
    if "/hidden/" not in mutant.caught_by:
        raise MutantError(f"{mutant.caught_by} is no hidden test")
    tests = (mutant.caught_by, *([f"tests/{name_of(mutant.lesson)}/visible/"] * visible))
    return changed_job(mutant, mutant.job_name, work, tests=tests, modes=(mutant.mode,))


def changed_job(change: Change, name: str, work: Path, **fields: object) -> Job:
    """Makes the tree of a change, and a job of this name in it. fields: more of the job's. Raises
    MutantError."""
    tree = work / name
    open_tree(change.lesson, changed_files(change), tree)
    return Job(name, str(tree), exercise=change.exercise, seed=change.name, **fields)


def verdict(mutant: Mutant, results: Sequence[TestResult]) -> Verdict:
    """Judges a mutant by the results of its job."""
    named = [each for each in results if function_of(each.test) == mutant.caught_by]
    visible = [each for each in results if not each.is_hidden]
    survives = all(each.passed for each in visible)
    return Verdict(mutant, error_of(mutant, named, survives), survives)


def error_of(mutant: Mutant, named: Sequence[TestResult], survives: bool) -> str:
    """Why the named test did not catch the mutant; empty when it did, or when visible tests caught
    it by so many runs without an end that the named one was not run."""
    failed = [each for each in named if not each.passed]
    if not named:
        return f"there is no test {mutant.caught_by} of exercise {mutant.exercise}"
    if not failed:
        return f"{mutant.caught_by} does not catch it"
    if mutant.compiles and any(DOES_NOT_BUILD in each.words for each in failed):
        return f"{failed[0].words} (is compiles = false meant?)"
    if not mutant.compiles and not all(DOES_NOT_BUILD in each.words for each in failed):
        return "it builds, against compiles = false"
    if survives and all(each.words.startswith("not run") for each in failed):
        return f"{mutant.caught_by} was not run: {failed[0].words}"
    return ""
