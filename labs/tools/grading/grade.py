"""`make grade`: how many points the exercises of a lesson have.

    python -m labs.tools.grading.grade --lesson 1
        a student's: the visible tests on this tree as it is, and what to do next
    python -m labs.tools.grading.grade --lesson 1 --submission DIR [--seed WORD] [--output DIR]
        an instructor's: for each exercise, only its files are taken from DIR, compiled in a sandbox
        and linked with the reference's objects; visible and hidden tests; then all exercises of
        DIR in one kernel, its measurement and the answers; three reports

Exit status: 0 when there is a score, whatever it is, 1 when there is none.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from labs.tools.course import hint
from labs.tools.course.exercises import (
    ROOT,
    STORAGE,
    Exercise,
    ExerciseError,
    by_id,
    name_of,
    number_of,
    of_lesson,
    word_of,
)
from labs.tools.grading.grade_parts import graded_job, part_jobs, parts_of
from labs.tools.grading.grade_report import (
    Score,
    scores_of,
    text_report,
    write_reports,
)
from labs.tools.grading.grade_words import own_report
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.test_run import WORKERS, TestRunError, run_tests
from labs.tools.machine.command import Options, in_a_line, own_environment, say, typed_path
from labs.tools.machine.work_folder import command_folder

SECRET = "APPRENTICE_SECRET"  # an instructor's word: without it nobody can tell a run's questions
FOLDERS_LOOKED_AT = 1000
OF_STORAGE = ("user-programs", "build/host/lab-file")  # what its tests need beside the kernel
DISTRUST = "grade: WITHOUT A SANDBOX: the submission can read every file that you can"


class GradeError(RuntimeError):
    """There is no score; the text says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    options = parser().parse_args(arguments)
    try:
        exercises = exercises_of(options.lesson, options.exercise)
        with command_folder("grade") as work:
            if options.submission:
                grade_submission(exercises, options, work)
            else:
                grade_own(exercises, options.workers, options.core)
    except (GradeError, ExerciseError, TestRunError, sandbox_error()) as error:
        say(f"grade: {error}")
        return 1
    return 0


def sandbox_error() -> type[Exception]:
    """The sandbox's error. A student's tree has no sandbox."""
    from labs.tools.grading.sandbox import SandboxUnavailable

    return SandboxUnavailable


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Options("make grade")
    made.add_argument("--lesson", required=True)
    made.add_argument("--exercise", default="", help="only this one; its lesson counts then")
    made.add_argument(
        "--submission", type=typed_path, help="the student's tree; this one is the reference"
    )
    made.add_argument("--seed", default="", help="what the hidden tests' questions are made from")
    made.add_argument("--output", type=typed_path, help="where the reports go")
    made.add_argument("--workers", type=int, default=WORKERS)
    made.add_argument("--core", action="store_true", help="the kernel without the breadth")
    made.add_argument("--without-sandbox", action="store_true", help="trust the submission")
    return made


def exercises_of(lesson: str, number: str = "") -> tuple[Exercise, ...]:
    """The exercises of a lesson by its number or name, or one of them. Raises ExerciseError, which
    lists what there is."""
    if number:
        return (by_id(number),)
    return of_lesson(number_of(lesson))


# ---- a student's own tree -----------------------------------------------------------------------


def grade_own(exercises: Sequence[Exercise], workers: int, core: bool = False) -> None:
    """Prints the points of the visible tests, and what to do next."""
    lesson = exercises[0].lesson
    is_whole = exercises == of_lesson(lesson)
    names = [""] if is_whole else [each.id for each in exercises]
    asked = [*exercises, *(parts_of(lesson, core) if is_whole else ())]
    jobs = [Job(name, str(ROOT), exercise=name, core=core) for name in names]
    results = run_tests(jobs, [f"tests/{name_of(lesson)}/visible"], workers, is_told=True)
    scores = scores_of(asked, results)
    print(own_report(scores))
    failed = (score.exercise for score in scores if not score.is_full)
    hint.remember_failures(each for each in failed if each in exercises)


# ---- a submission -------------------------------------------------------------------------------


def grade_submission(
    exercises: Sequence[Exercise], options: argparse.Namespace, work: Path
) -> None:
    """Prints the points of a submission, and writes its reports. `work` is for its trees."""
    require_directory(options.submission)
    require_files(options.submission, [path for each in exercises for path in each.files])
    output = options.output or ROOT / f"build/grades/{name_of(exercises[0].lesson)}"
    require_output(output)
    if options.without_sandbox:
        print(DISTRUST, file=sys.stderr)
    build_reference(exercises[0].lesson, options.core)
    seed = options.seed or seed_of(options.submission, exercises)
    how = {"boxed": not options.without_sandbox, "core": options.core, "workers": options.workers}
    scores = graded(exercises, options.submission, work, seed, **how)
    write_reports(output, scores, seed)
    print(text_report(scores), end="")


def require_directory(submission: Path) -> None:
    """Raises GradeError where there is none, or none that can be read."""
    try:
        next(submission.iterdir(), None)
    except NotADirectoryError:
        raise GradeError(f"{submission} is not a directory") from None
    except OSError as error:
        raise GradeError(f"{submission} cannot be read: {error.strerror}") from error


def require_output(folder: Path) -> None:
    """Makes the folder of the reports, before minutes go by. Raises GradeError where none of them
    could be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise GradeError(f"OUTPUT={folder}: no report goes there: {error.strerror}") from error


def require_files(submission: Path, wanted: Sequence[str]) -> None:
    """Raises GradeError where not one of the files is at its place: it says where they are."""
    if not wanted or any((submission / path).exists() for path in wanted):
        return
    for place, _, names in islice(os.walk(submission), FOLDERS_LOOKED_AT):
        if any(Path(place, path).exists() for path in wanted):
            raise GradeError(f"the files are in {place}: say SUBMISSION={place}")
        if here := [path for path in wanted if Path(path).name in names]:
            found = Path(place, Path(here[0]).name)
            raise GradeError(f"{found} is to be {submission / here[0]}, and so all: in folders")
    raise GradeError(f"{submission} has none of the files: {', '.join(sorted(set(wanted)))}")


def graded(
    exercises: Sequence[Exercise],
    submission: Path,
    work: Path,
    seed: str,
    boxed: bool = True,
    workers: int = WORKERS,
    core: bool = False,
) -> list[Score]:
    """The scores of a submission. Raises SandboxUnavailable, TestRunError."""
    jobs, problems = submission_jobs(exercises, submission, work, seed, boxed, core)
    lesson, asked = exercises[0].lesson, list(exercises)
    if len(asked) == len(of_lesson(lesson)):  # some of them make no kernel without the reference
        jobs += part_jobs(exercises, submission, work, seed, boxed, core)
        asked += parts_of(lesson, core)
    return scores_of(asked, run_tests(jobs, [f"tests/{name_of(lesson)}"], workers), problems)


def submission_jobs(
    exercises: Sequence[Exercise],
    submission: Path,
    work: Path,
    seed: str,
    boxed: bool = True,
    core: bool = False,
) -> tuple[list[Job], dict[str, list[str]]]:
    """A job an exercise, each with its own tree, and what was wrong with files."""
    from labs.tools.grading.graded_tree import graded_tree
    from labs.tools.grading.sandbox import require

    if boxed:
        require()
    with ThreadPoolExecutor(WORKERS) as pool:
        trees = list(pool.map(lambda e: graded_tree(e, submission, work, boxed, core), exercises))
    jobs = [graded_job(each.exercise, each.tree, seed, boxed, core) for each in trees]
    return jobs, {each.exercise.id: list(each.problems.values()) for each in trees}


def build_reference(lesson: int, core: bool = False, *targets: str) -> None:
    """Builds what every graded tree is made from, and other targets of the Makefile. Raises
    GradeError with the compiler's words."""
    breadth = "no" if core else "yes"
    words = [f"LESSON={word_of(lesson)}", f"BREADTH={breadth}", "image-disk", *targets]
    words += OF_STORAGE if lesson == STORAGE else ()
    (ROOT / "build").mkdir(exist_ok=True)
    command = ["flock", "build/.lock", "make", "-s", *words]  # as the Makefile does
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env=own_environment()
    )
    if done.returncode != 0:
        raise GradeError(f"the reference does not build:\n{done.stdout}{done.stderr}")


def seed_of(submission: Path, exercises: Sequence[Exercise]) -> str:
    """The same for the same code, whatever its comments and blanks are; who does not know SECRET
    cannot tell it in advance."""
    from labs.tools.grading.graded_tree import SubmissionError, submitted

    digest = hmac.new(os.environ.get(SECRET, "").encode(), digestmod=hashlib.sha256)
    for path in sorted(path for each in exercises for path in each.files):
        try:
            digest.update(path.encode() + code_of(path, submitted(submission, path)))
        except SubmissionError as error:
            digest.update(str(error).encode())
    return digest.hexdigest()[:16]


def code_of(path: str, text: bytes) -> bytes:
    """A source without comments and white space: what only looks different is the same."""
    comment = rb";[^\n]*" if path.endswith((".asm", ".inc")) else rb"/\*.*?\*/|//[^\n]*"
    return b"".join(re.sub(comment, b"", text, flags=re.DOTALL).split())


if __name__ == "__main__":
    sys.exit(in_a_line("make grade", main))
