"""What a lesson's 100 points are for, besides its exercises.

Each exercise is graded among the reference's code. These are graded in one kernel that has all
exercises of the student, and nothing of the reference's instead: does it run as a whole, and are
the files that are handed in about this kernel (labs/tools/course/handed_in.py)?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from labs.tools.course.exercises import STORAGE, Exercise
from labs.tools.grading.lab_plan import Job

# By the second part of their number: title and points. The exercises of a lesson have 80.
PARTS = {"0": ("All of it together", 5), "M": ("The measurement", 10), "A": ("The answers", 5)}
NEEDS_BREADTH = "M"  # its commands are not in the core


def parts_of(lesson: int, core: bool = False) -> list[Exercise]:
    """These parts of a lesson, as exercises without files. core: of a kernel without the breadth,
    which has nothing to measure with. The storage lab's kernel always has it."""
    word = "S" if lesson == STORAGE else lesson
    return [
        Exercise(f"{word}.{number}", lesson, title, points, (), (), (), {})
        for number, (title, points) in PARTS.items()
        if not core or number != NEEDS_BREADTH or lesson == STORAGE
    ]


def part_jobs(
    exercises: Sequence[Exercise],
    submission: Path,
    work: Path,
    seed: str,
    boxed: bool = True,
    core: bool = False,
) -> list[Job]:
    """Makes the tree with all exercises of a submission in `work`, and a job for each part."""
    from labs.tools.grading.graded_tree import whole_tree

    tree = work / "trees" / "whole"
    parts = parts_of(exercises[0].lesson, core)
    whole_tree(exercises, submission, tree, boxed, core)
    made = [graded_job(part, tree, seed, boxed, core) for part in parts]
    return [replace(job, handed_in=str(submission)) for job in made]


def graded_job(exercise: Exercise, tree: Path, seed: str, boxed: bool, core: bool) -> Job:
    """The job that grades an exercise, or a part, in a tree: without what cannot change points."""
    return Job(
        name=exercise.id,
        tree=str(tree),
        boxed=boxed,
        exercise=exercise.id,
        seed=seed,
        thorough=False,
        core=core,
    )
