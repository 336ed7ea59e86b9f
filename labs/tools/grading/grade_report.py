"""The score of a lesson, and the report about it: text, Gradescope's results.json, JUnit XML.

Nothing in a report depends on the time, on the machine, or on where the files are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from labs.tools.course.exercises import Exercise
from labs.tools.grading.lab_course import is_open
from labs.tools.grading.test_run import TestResult
from labs.tools.machine.language import left, right
from labs.tools.machine.result import MISSING

NAME_WIDTH = 34


@dataclass(frozen=True)
class Score:
    """An exercise's tests, and what was wrong with its files."""

    exercise: Exercise
    tests: tuple[TestResult, ...]
    problems: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """The points earned."""
        return round(self.exercise.points * self.share, 2)

    @property
    def share(self) -> float:
        """How much of it works, from 0 to 1: by weight, and nothing while a gate fails."""
        gates = {test.test: test.passed for test in self.tests if test.gate}
        if not self.tests or not is_open(gates):
            return 0.0
        weights = [test.weight for test in self.tests]
        weights = weights if any(weights) else [1] * len(weights)  # a student sees the form only
        earned = sum(w for w, test in zip(weights, self.tests, strict=True) if test.passed)
        return earned / sum(weights)

    @property
    def is_full(self) -> bool:
        """Whether nothing is missing."""
        return bool(self.tests) and all(test.passed for test in self.tests)

    @property
    def failed(self) -> list[TestResult]:
        """The tests that did not pass."""
        return [test for test in self.tests if not test.passed]


def scores_of(
    exercises: Sequence[Exercise],
    results: Sequence[TestResult],
    problems: Mapping[str, Sequence[str]] | None = None,
) -> list[Score]:
    """The scores of a lesson's exercises, in order."""
    return [
        Score(
            each,
            tuple(result for result in results if result.exercise == each.id),
            tuple((problems or {}).get(each.id, ())),
        )
        for each in exercises
    ]


def total(scores: Sequence[Score]) -> float:
    """The points of the lesson."""
    return round(sum(score.points for score in scores), 2)


def most(scores: Sequence[Score]) -> int:
    """The points that there are."""
    return sum(score.exercise.points for score in scores)


def number(points: float) -> str:
    """Points as a person writes them."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def table(scores: Sequence[Score], say: Callable[[str], str] = str) -> str:
    """A line an exercise, and the sum. `say`: the reader's language; a file has the course's."""
    head = (left(say("exercise"), NAME_WIDTH), right(say("tests"), 7), right(say("points"), 12))
    lines = ["  ".join(head)]
    for score in scores:
        name = f"{score.exercise.id} {say(score.exercise.title)}"
        passed = f"{len(score.tests) - len(score.failed)}/{len(score.tests)}"
        passed = passed if score.tests else say("hidden")
        lines.append(row(name, passed, score.points, score.exercise.points))
    return "\n".join([*lines, row(say("total"), "", total(scores), most(scores))])


def row(name: str, passed: str, points: float, of: float) -> str:
    """A line of the table."""
    score = f"{number(points)} of {number(of):>3}"
    return f"{left(name, NAME_WIDTH)}  {right(passed, 7)}  {score:>12}"


def reasons(score: Score) -> list[str]:
    """Why points are missing: the files first, and each reason once, with the tests that say so.
    Where a file could not be taken, the handout's is there: that it is not written says nothing."""
    tests: dict[str, list[str]] = {}
    for test in score.failed:
        if score.problems and MISSING.search(test.words):
            continue
        tests.setdefault(test.words.partition("\n")[0], []).append(test.title or test.name)
    return [*score.problems, *(reason(names, words) for words, names in tests.items())]


def reason(names: Sequence[str], words: str) -> str:
    """One reason, and the first of the tests that gave it."""
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"{names[0]}{more}\n  {words}"


def text_report(scores: Sequence[Score]) -> str:
    """The whole report for a terminal."""
    parts = [table(scores)]
    for score in scores:
        if lines := reasons(score):
            parts.append(f"{score.exercise.id} {score.exercise.title}\n{indented(lines)}")
    return "\n\n".join(parts) + "\n"


def indented(lines: Sequence[str]) -> str:
    """Lines under a heading."""
    return "\n".join("  " + line.replace("\n", "\n  ") for line in lines)


def gradescope(scores: Sequence[Score], seed: str) -> str:
    """results.json: a test an exercise, with its reasons."""
    tests = [
        {
            "number": score.exercise.id,
            "name": f"{score.exercise.id} {score.exercise.title}",
            "score": score.points,
            "max_score": score.exercise.points,
            "status": "passed" if score.is_full else "failed",
            "output": "\n".join(reasons(score)),
            "visibility": "visible",
        }
        for score in scores
    ]
    report = {
        "score": total(scores),
        "max_score": most(scores),
        "output": table(scores),
        "tests": tests,
        "extra_data": {"seed": seed},
    }
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def junit(scores: Sequence[Score]) -> bytes:
    """The tests as JUnit XML: a suite an exercise, without times."""
    root = ElementTree.Element("testsuites", name="grade")
    for score in scores:
        counts = {"tests": str(len(score.tests)), "failures": str(len(score.failed))}
        name = f"{score.exercise.id} {score.exercise.title}"
        suite = ElementTree.SubElement(root, "testsuite", name=name, errors="0", **counts)
        for test in score.tests:
            case = ElementTree.SubElement(suite, "testcase", name=test.name)
            case.set("classname", test.test.partition("::")[0])
            if not test.passed:
                ElementTree.SubElement(case, "failure", message=test.words)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def write_reports(directory: Path, scores: Sequence[Score], seed: str) -> None:
    """Writes the three reports to a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "results.json").write_text(gradescope(scores, seed))
    (directory / "junit.xml").write_bytes(junit(scores))
    (directory / "report.txt").write_text(text_report(scores))
