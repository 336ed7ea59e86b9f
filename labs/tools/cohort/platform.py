"""Grades one submission on a platform's machine, and writes what that platform reads.

    python -m labs.tools.cohort.platform --lesson 1 --prepare       builds what grades are made from
    python -m labs.tools.cohort.platform --format gradescope --lesson 1 --submission DIR
        --output results.json [--hidden after_due_date]

It is run by what `make autograder` puts into a bundle. The exit status is 0 when there is a result,
which a refusal is, too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from labs.tools.cohort import exports
from labs.tools.cohort.one import Result, grade, job_for
from labs.tools.course.exercises import ExerciseError, number_of
from labs.tools.grading import sandbox
from labs.tools.grading.grade import GradeError, build_reference
from labs.tools.grading.test_run import TestRunError
from labs.tools.machine.command import CommandError, Options, in_a_line, typed_path
from labs.tools.machine.work_folder import command_folder

PROGRAM = "autograder"
FORMATS = ("gradescope", "prairielearn", "autolab")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    parser = Options(PROGRAM)
    parser.add_argument("--format", choices=FORMATS)
    parser.add_argument("--lesson", required=True)
    parser.add_argument("--submission", type=typed_path)
    parser.add_argument("--output", type=typed_path)
    parser.add_argument("--hidden", choices=exports.VISIBILITIES, default="after_due_date")
    parser.add_argument("--prepare", action="store_true")
    options = parser.parse_args(arguments)
    try:
        lesson = number_of(options.lesson)
        build_reference(lesson)
        if options.prepare:
            return 0
        if not options.submission or not options.format:
            raise CommandError("--format and --submission say what is graded, and for whom")
        sandbox.require()
        with command_folder("grade") as work:
            result = grade(job_for(options.submission, lesson), work / "read", work)
    except (ExerciseError, GradeError, TestRunError, sandbox.SandboxUnavailable) as error:
        raise CommandError(str(error)) from error
    write(result, options.format, options.hidden, options.output)
    return 0


def write(result: Result, form: str, hidden: str, output: Path | None) -> None:
    """Writes the result; Autolab's is the last line of the output, after what a student reads."""
    if form == "autolab":
        for score in result.scores:
            print(*(part.output for part in exports.parts_of(score) if part.output), sep="\n")
        print(result.reading.refusal or exports.table(result.scores))
        print(exports.autolab(result))
        return
    if output is None:
        raise CommandError(f"{form}: --output says where the result goes")
    text = exports.gradescope(result, hidden) if form == "gradescope" else None
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text or exports.prairielearn(result))


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))
