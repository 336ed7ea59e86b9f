"""Students' trees, for the tests that make, build and boot them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labs.tools.course import exercises, start, student_tree
from labs.tools.course.exercises import by_id, filled
from labs.tools.guest.initramfs import archive, from_host, regular
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.result import Result
from labs.tools.machine.run import check_header
from tests.support.building import alone, shared_folder
from tests.tree.test_handouts import WITH_PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
LESSONS = tuple(exercises.lessons())
EVERY = tuple(exercises.every_lesson())  # of which the storage lab has a test file of its own
MESSAGE = "exercise {0} is not written yet (labs/lesson{0[0]}/README.md)"
IMAGES = {"disk": "boot.img", "grub": "grub.iso"}


def started_trees(build: Callable[[str], Path], factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The students' trees of all lessons, as they begin; the same for all tests of a run, which
    build in them and change no file."""

    def start_all(place: Path) -> None:
        for source in (ROOT / student_tree.GIVEN).rglob("*.asm"):
            build(f"build/objects/{source.relative_to(ROOT)}.o")
        for lesson in LESSONS:
            start.start(lesson, place / str(lesson))

    place = shared_folder(factory, "student-trees", start_all)
    return {lesson: place / str(lesson) for lesson in LESSONS}


def make(tree: Path, lesson: int, *targets: str) -> None:
    """Builds in a student's tree, with warnings as errors; one process at a time. make test has a
    cache of compiled files, so that only what differs from the repository's is compiled."""
    (tree / "build").mkdir(exist_ok=True)
    with alone(tree / "build" / ".lock"):
        command = ["make", "-s", "-j2", f"LESSON={exercises.word_of(lesson)}", "CI=1", *targets]
        made = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr


def boot(tree: Path, lesson: int, way: str, script: str = "memory") -> Result:
    """Builds and boots a tree's kernel; from lesson 3 on with the programs of the course, and with
    a text that is none."""
    make(tree, lesson, f"image-{way}", *(["user-programs"] if lesson >= WITH_PROGRAMS else []))
    directory = tree / "build" / exercises.name_of(lesson)
    programs = None
    if lesson >= WITH_PROGRAMS:
        programs = directory / "test-initramfs"
        entries = from_host(tree / "build/user/bin")
        files = [replace(each, path=f"bin/{each.path}") for each in entries]
        programs.write_bytes(archive([*files, regular("bin/text", b"no program\n")]))
    kernel = directory / "kernel.elf"
    if way == "direct":
        check_header(kernel)
    image = directory / IMAGES[way] if way in IMAGES else None
    config = Config(boot=way, kernel=kernel, image=image, script=script, guest_limit=10)
    return run(replace(config, initramfs=programs))


def solve(tree: Path, number: str) -> None:
    """Writes the reference's solution into the blanks of an exercise."""
    for path in by_id(number).files:
        text = filled((tree / path).read_text(), (ROOT / path).read_text(), number)
        (tree / path).write_text(text)
