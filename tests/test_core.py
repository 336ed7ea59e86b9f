"""The core without the breadth: every lesson's kernel links, boots, runs the course's programs, and
has all its points."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from labs.tools.course import exercises
from labs.tools.course.source_lists import BREADTH, changes, linked
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.test_run import run_tests
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.symbols import symbols_of
from tests.building import ROOT, make

LESSONS = tuple(exercises.lessons())


@cache
def core_kernel(lesson: int) -> Path:
    """A lesson's kernel without the breadth."""
    make(f"LESSON={lesson}", "BREADTH=no", "image-direct")
    return ROOT / f"build/lesson{lesson}-core/kernel.elf"


def address(kernel: Path, name: str) -> int:
    """The address of a symbol of the linker."""
    return symbols_of(kernel).find(name).address


@pytest.mark.parametrize("lesson", LESSONS)
def test_nothing_starts_by_itself(lesson) -> None:
    """The table of startup functions is empty, and the kernel boots to its prompt."""
    kernel = core_kernel(lesson)
    assert address(kernel, "startups_start") == address(kernel, "startups_end")
    run(Config(boot="direct", kernel=kernel, script="help", guest_limit=10)).check()


@pytest.mark.parametrize("lesson", LESSONS)
def test_lists_are_of_files_that_are_there(lesson) -> None:
    """No file is in two lists, or linked and taken away twice."""
    listed = [path for n in range(1, lesson + 1) for path in changes(ROOT / f"labs/lesson{n}")[0]]
    assert len(listed) == len(set(listed))
    assert all((ROOT / path).is_file() for path in listed)


def test_breadth_is_all_that_is_added() -> None:
    """Without the breadth no file of a breadth list is linked."""
    breadth = {path for n in LESSONS for path in changes(ROOT / f"labs/lesson{n}", BREADTH)[0]}
    assert breadth
    assert not breadth & set(linked(LESSONS[-1], ROOT, core=True))


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS)
def test_reference_has_all_points(lesson) -> None:
    """The hidden tests pass, in guest time that is counted in instructions. The programs that they
    bring along use no call of the breadth."""
    core_kernel(lesson)
    job = Job("", str(ROOT), modes=("icount",), seed="the core", core=True)
    results = run_tests([job], [f"tests/lesson{lesson}/hidden"], workers=1)
    assert results
    assert [f"{each.name}: {each.words}" for each in results if not each.passed] == []
