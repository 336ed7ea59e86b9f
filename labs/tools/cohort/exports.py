"""A result in the words of the platforms that grade: what each of them documents, and no more.

gradescope     results.json: a test for each test, hidden ones with the visibility that is asked for
prairielearn   results.json: a test for each visible test, one for an exercise's hidden tests; each
               has points and max_points, since one without hides those of all
autolab        the last line of the output: the points of each exercise

No output has colours or other control characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labs.tools.cohort.one import Result
from labs.tools.cohort.report import command_for, to_read
from labs.tools.grading.grade_report import Score, most, table, total

VISIBILITIES = ("hidden", "after_due_date", "after_published", "visible")
LARGEST = 900_000  # bytes of a result: PrairieLearn takes 1 MB
DETAILS = 2000  # characters of a test's output


@dataclass(frozen=True)
class Part:
    """A test of an exercise, with its own part of the points, or several as one."""

    number: str
    name: str
    points: float
    of: float
    output: str
    hidden: bool

    @property
    def passed(self) -> bool:
        """Whether no point is missing."""
        return self.points == self.of


def parts_of(score: Score) -> Iterator[Part]:
    """An exercise's tests with the points of each; together they have those of the exercise."""
    whole = sum(test.weight for test in score.tests) or len(score.tests)
    for test in score.tests:
        weight = test.weight if any(each.weight for each in score.tests) else 1
        of = score.exercise.points * weight / whole
        is_paid = test.passed and score.share > 0
        yield Part(
            score.exercise.id,
            f"{score.exercise.id} {test.title or test.name}",
            round(of, 4) if is_paid else 0.0,
            round(of, 4),
            "" if is_paid else output_of(score, test),
            test.is_hidden,
        )
    if not score.tests:
        name = f"{score.exercise.id} {score.exercise.title}"
        yield Part(score.exercise.id, name, 0.0, float(score.exercise.points), "not run", False)


def output_of(score: Score, test: Any) -> str:
    """Why a test has no points, and what to do."""
    words = test.words or "passed, but nothing of this exercise works as far as its gates can see"
    lines = [*score.problems, words, f"to read: {to_read(score)}"]
    return "\n".join([*lines, f"again: {command_for(test, score)}"])[:DETAILS]


def gradescope(result: Result, hidden: str = "after_due_date") -> str:
    """results.json of Gradescope; hidden: the visibility of hidden tests."""
    tests = [
        {
            "number": part.number,
            "name": part.name,
            "score": part.points,
            "max_score": part.of,
            "status": "passed" if part.passed else "failed",
            "output": part.output,
            "output_format": "text",
            "visibility": hidden if part.hidden else "visible",
        }
        for score in result.scores
        for part in parts_of(score)
    ]
    said = result.reading.notes if result.scores else [f"not graded: {result.reading.refusal}"]
    return as_json(
        {
            "score": total(result.scores),
            "output": "\n".join([*said, *([table(result.scores)] if result.scores else [])]),
            "output_format": "text",
            "stdout_visibility": "hidden",
            "tests": tests,
            "extra_data": {"seed": result.seed, "hints": result.reading.hints},
        }
    )


def prairielearn(result: Result) -> str:
    """results.json of PrairieLearn. What is refused is not gradable, and costs no attempt."""
    if not result.scores:
        return as_json({"gradable": False, "format_errors": [result.reading.refusal]})
    tests = [
        {
            "name": part.name,
            "points": part.points,
            "max_points": part.of,
            "output": part.output,
        }
        for score in result.scores
        for part in joined(list(parts_of(score)), score)
    ]
    return as_json(
        {
            "gradable": True,
            "score": round(total(result.scores) / most(result.scores), 4),
            "message": "\n".join(result.reading.notes),
            "output": table(result.scores),
            "tests": tests,
        }
    )


def joined(parts: Sequence[Part], score: Score) -> Iterator[Part]:
    """The visible tests, and one for all hidden ones: PrairieLearn shows what it gets."""
    yield from (part for part in parts if not part.hidden)
    if hidden := [part for part in parts if part.hidden]:
        name = f"{score.exercise.id} hidden tests of {score.exercise.title}"
        passed = sum(part.passed for part in hidden)
        points, of = (sum(getattr(p, each) for p in hidden) for each in ("points", "of"))
        words = f"{passed} of {len(hidden)} passed"
        yield Part(score.exercise.id, name, round(points, 4), round(of, 4), words, True)


def autolab(result: Result) -> str:
    """The line that Autolab reads: an object of the points by problem."""
    points = {score.exercise.id: score.points for score in result.scores}
    return json.dumps({"scores": points})


def as_json(table: Mapping[str, Any]) -> str:
    """JSON in ASCII. Raises ValueError where that is more than a platform takes."""
    text = json.dumps(table, indent=1) + "\n"
    if len(text) > LARGEST:
        raise ValueError(f"the result has {len(text)} bytes, of {LARGEST} at most")
    return text
