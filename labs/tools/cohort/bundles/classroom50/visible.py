"""A lesson's points in the visible tests, as JSON: autograder.py runs it at a tree's top.

    python visible.py 1

The last line of the output is a list of objects: test-name, passed, score, max-score, output. The
points are whole, since such platforms take no others.
"""

from __future__ import annotations

import json
import sys

from labs.tools.course.exercises import ROOT, name_of, number_of, of_lesson
from labs.tools.grading.grade_parts import parts_of
from labs.tools.grading.grade_report import Score, reasons, scores_of
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.test_run import run_tests
from labs.tools.machine.command import in_a_line


def table_of(score: Score) -> dict[str, object]:
    """An exercise's line."""
    return {
        "test-name": f"{score.exercise.id} {score.exercise.title}",
        "passed": score.is_full,
        "score": int(score.points),
        "max-score": score.exercise.points,
        "output": "\n".join(reasons(score)),
    }


def main() -> int:
    """Grades this tree by the visible tests of the lesson that is named."""
    lesson = number_of(sys.argv[1])
    asked = [*of_lesson(lesson), *parts_of(lesson)]
    results = run_tests([Job("", str(ROOT))], [f"tests/{name_of(lesson)}/visible"])
    print(json.dumps([table_of(score) for score in scores_of(asked, results)]))
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("autograder", main))
