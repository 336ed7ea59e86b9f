"""The storage lab as a lesson: a student's tree, its blanks, its points with the solutions."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labs.tools.course import exercises, start
from labs.tools.course.exercises import STORAGE, ExerciseError, number_of, of_lesson
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive
from labs.tools.machine.result import Result
from tests.support.building import ROOT, shared_folder
from tests.support.student_trees import make, solve

pytestmark = pytest.mark.slow

KERNEL = "build/storage/kernel.elf"


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A student's tree, as it begins; nobody changes a file of it."""
    place = shared_folder(
        tmp_path_factory, "storage-tree", lambda place: start.start(STORAGE, place / "tree")
    )
    return place / "tree"


def booted(kernel: Path, folder: Path) -> Result:
    """A kernel that has one drive, hda."""
    image = folder / "disk.img"
    image.write_bytes(bytes(100 * 512))
    drives = (Drive(image, 0),)
    return run(Config(boot="direct", kernel=kernel, script="read hda 9", drives=drives))


def test_names_of_the_lesson() -> None:
    assert number_of("storage") == number_of("7") == STORAGE
    with pytest.raises(
        ExerciseError, match=r"there is no lesson 8; the lessons are 1, .*6, storage"
    ):
        number_of("8")
    for words in (["LESSON=7"], ["LESSON=storage"]):
        command = ["make", "-pn", *words, "clean"]
        printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert "\nLAB := storage\n" in printed.stdout


def test_points() -> None:
    """They are 80, as those of a lesson; the extras have none."""
    points = {each.id: each.points for each in of_lesson(STORAGE)}
    wanted = {"S1": 12, "S2": 12, "S3": 16, "S4": 16, "S5": 12, "S6": 12}
    assert sum(wanted.values()) == 80
    assert points == wanted | {each.id: 0 for each in of_lesson(STORAGE)[len(wanted) :]}


def test_the_tree_is_one_commit_and_the_same_again(tree, tmp_path) -> None:
    start.start(STORAGE, tmp_path / "again")
    assert start.git(tmp_path / "again", "rev-parse", "HEAD") == start.git(
        tree, "rev-parse", "HEAD"
    )
    assert start.git(tree, "rev-list", "--all", "--count").strip() == "1"


def test_programs_of_the_tree_find_what_they_import(tree) -> None:
    modules = [
        path.relative_to(tree).with_suffix("").as_posix().replace("/", ".")
        for path in sorted((tree / "labs").rglob("*.py"))
        if "gdb" not in path.parts
    ]
    for command in (
        ["-c", f"import {', '.join(modules)}"],
        ["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/storage"],
        ["-m", "labs.tools.course.difference", "storage"],
        ["-m", "labs.tools.course.hint", "S1"],
    ):
        done = subprocess.run(
            [sys.executable, *command], cwd=tree, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    listed = subprocess.run(["make"], cwd=tree, capture_output=True, text=True, check=True)
    assert "make lab " in listed.stdout
    assert "make slides" not in listed.stdout


@pytest.mark.slow
def test_every_blank_says_so_and_solutions_read_a_drive(tree, tmp_path) -> None:
    """The kernel of the tree says which exercise is missing; with the solutions it reads a drive
    (the points are those of tests/storage)."""
    mine = tmp_path / "tree"
    shutil.copytree(tree, mine)
    (mine / ".venv").symlink_to(ROOT / ".venv")
    make(mine, STORAGE, "image-direct")
    said = booted(mine / KERNEL, tmp_path).serial
    assert "exercise S1 is not written yet (labs/storage/README.md)" in said
    for each in of_lesson(STORAGE):
        solve(mine, each.id)
    make(mine, STORAGE, "image-direct")
    assert "crc32" in booted(mine / KERNEL, tmp_path).check().serial


def test_the_order_of_the_handout_gives_all_points(tree, tmp_path) -> None:
    """S1 first, without S2; then S3, and S4 without S5: all visible points each time. S2 needs S1,
    and the others stand alone."""
    mine = tmp_path / "tree"
    shutil.copytree(tree, mine)
    (mine / ".venv").symlink_to(ROOT / ".venv")
    make(mine, STORAGE, "image-direct", "user-programs")
    for number in ("S1", "S3", "S4"):
        solve(mine, number)
        command = [sys.executable, "-m", "labs.tools.grading.grade"]
        command += ["--lesson", "storage", "--exercise", number]
        done = subprocess.run(command, cwd=mine, capture_output=True, text=True, check=False)
        points = exercises.by_id(number).points
        assert re.search(rf"\b{points} of +{points}\b", done.stdout), done.stdout + done.stderr
