"""The kernels of students' trees: which blank is reached first, what each blank says, and what
the solutions make of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from labs.tools.course import exercises
from labs.tools.course.exercises import blank, by_id, regions
from labs.tools.grading.grade_parts import part_jobs, parts_of
from labs.tools.grading.grade_report import scores_of
from labs.tools.grading.test_run import run_tests
from labs.tools.machine.machine import Machine
from labs.tools.machine.qemu_command import Config, ConfigError
from labs.tools.machine.result import Outcome, Result
from tests.support.building import WHOLE, shared_folder
from tests.support.student_trees import (
    LESSONS,
    MESSAGE,
    ROOT,
    boot,
    make,
    solve,
    started_trees,
)
from tests.tree.test_handouts import WITH_PROGRAMS

pytestmark = pytest.mark.slow

# Nothing but the tests of threads comes here, and nothing but the programs of a disk.
UNREACHED = ("kernel/task/lock.c", "mm/page_cache.c")

PROGRAMS = {each: ("user-programs",) if each >= WITH_PROGRAMS else () for each in LESSONS}

BLANKS = [
    pytest.param(each, path, index, id=f"{each.id}-{Path(path).name}-{index + 1}")
    for each in exercises.load()
    for path in each.files
    for index in range(len(each.stubs[path]))
    if path not in UNREACHED and each.lesson in LESSONS
]


@pytest.fixture(scope="module")
def trees(build, tmp_path_factory) -> dict[int, Path]:
    """The students' trees, as they begin."""
    return started_trees(build, tmp_path_factory)


def assert_missing(result: Result, number: str) -> None:
    """The run ended at this exercise's stub, which said so."""
    assert result.outcome in (Outcome.ENDED, Outcome.PANIC), result.explain()
    said = re.findall(r"^exercise .* is not written yet.*$", result.serial, re.MULTILINE)
    assert said == [MESSAGE.format(number)], result.explain()


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_doctor_has_nothing_to_mend_in_a_fresh_tree(trees, lesson) -> None:
    assert not (trees[lesson] / ".venv").exists()
    done = subprocess.run(
        ["make", "doctor"], cwd=trees[lesson], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fix" not in done.stdout
    assert "Ready for make run and make grade. The first command installs" in done.stdout


@pytest.mark.parametrize("way", ["disk", "direct", "grub"])
def test_lesson_1_begins_with_the_first_blank(trees, way) -> None:
    if way == "direct":
        with pytest.raises(ConfigError, match=r"exercise 1\.1"):
            boot(trees[1], 1, way)
    elif way == "grub":
        result = boot(trees[1], 1, way)
        assert "This is not a Multiboot kernel (exercise 1.1)." in result.serial
        assert result.outcome is Outcome.ENDED
    else:
        assert_missing(boot(trees[1], 1, way), "1.4")


@pytest.mark.parametrize(("way", "number"), [("disk", "2.2"), ("direct", "2.5"), ("grub", "2.5")])
def test_lesson_2_begins_with_the_first_blank(trees, way, number) -> None:
    assert_missing(boot(trees[2], 2, way), number)


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS)
def test_trees_have_a_core(trees, lesson) -> None:
    """Every tree builds without the breadth, beside the kernel that has it."""
    make(trees[lesson], lesson, "BREADTH=no", "image-disk")
    make(trees[lesson], lesson, "image-disk")
    for name in (f"lesson{lesson}", f"lesson{lesson}-core"):
        assert (trees[lesson] / "build" / name / "boot.img").is_file()


def test_each_solution_leads_to_the_next_blank(trees, tmp_path) -> None:
    """Lesson 1 as a student takes it; lesson 2 is given in objects and stays so."""
    tree = tmp_path / "tree"
    shutil.copytree(trees[1], tree)
    for number, following in (("1.1", "1.2"), ("1.2", "1.3"), ("1.3", "1.5"), ("1.5", "1.6")):
        solve(tree, number)
        assert_missing(boot(tree, 1, "direct", "panic"), following)
    solve(tree, "1.6")
    solve(tree, "1.4")
    mine = boot(tree, 1, "disk", "help; memory")
    theirs = reference(1, "disk", "help; memory")
    assert without_addresses(mine.check().serial) == without_addresses(theirs.check().serial)


@pytest.mark.parametrize(
    ("lesson", "way"),
    [(each, "direct") for each in LESSONS[2:]]
    + [(each, way) for each in LESSONS[2 if WHOLE else -1 :] for way in ("disk", "grub")],
)
def test_later_lessons_begin_with_the_first_blank(trees, lesson, way) -> None:
    """What boots them is that of lesson 1, so that the largest of them is booted in each way; with
    WHOLE=yes all are."""
    script = "memory" if lesson <= 5 else "run /bin/hello"
    assert_missing(boot(trees[lesson], lesson, way, script), f"{lesson}.1")


def test_lesson_3_in_the_order_of_its_numbers(trees, tmp_path) -> None:
    """Each exercise can be seen to work without those behind it."""
    tree = tmp_path / "tree"
    shutil.copytree(trees[3], tree)
    for number, script, following in (
        ("3.1", "run /bin/hello", "3.2"),
        ("3.2", "strace /bin/hello", "3.5"),
        ("3.3", "run /bin/text", "3.6"),
    ):
        solve(tree, number)
        assert_missing(boot(tree, 3, "direct", script), following)
    assert "Hello from ring 3!" in boot(tree, 3, "direct", "run /bin/hello").check().serial
    assert "no SYSENTER" in boot(tree, 3, "direct", "run /bin/nullcall 9").check().serial
    for number, script, words in (
        ("3.4", "run /bin/nullcall 9", "getpid by the shared page"),
        ("3.5", "strace /bin/hello", "1 exit_group(0) = ?"),
        ("3.6", "run /bin/probe", "ok 40"),
    ):
        solve(tree, number)
        assert words in boot(tree, 3, "direct", script).check().serial


def reference(lesson: int, way: str, script: str) -> Result:
    """The repository's own kernel of the lesson."""
    return boot(ROOT, lesson, way, script)


@pytest.fixture(scope="module")
def solution(trees, tmp_path_factory) -> Path:
    """The tree of the last lesson with the solutions put back. All that is booted is built: its
    copies build only what a test changes."""

    def solve_all(place: Path) -> None:
        tree = place / "tree"
        for lesson in LESSONS[1:]:  # in the tree that others build in, too
            make(trees[LESSONS[-1]], lesson, "image-disk", "image-direct")
        shutil.copytree(trees[LESSONS[-1]], tree)
        for each in exercises.of_lesson(LESSONS[-1]):
            solve(tree, each.id)
        for lesson in LESSONS[1:]:
            make(tree, lesson, "image-disk", "image-direct")
        make(tree, LESSONS[-1], "user-programs")

    return shared_folder(tmp_path_factory, "solution", solve_all) / "tree"


def test_solutions_put_back_are_the_reference(solution) -> None:
    script = "help; memory; probe cli; crash divide"
    mine = boot(solution, 2, "direct", script)
    theirs = reference(2, "direct", script)
    assert (mine.outcome, mine.status) == (theirs.outcome, theirs.status)
    assert without_addresses(mine.serial) == without_addresses(theirs.serial)


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS)
def test_visible_tests_pass_with_the_solutions(trees, tmp_path, lesson) -> None:
    """Whoever solves everything gets every point: a tree has all that its tests need. Between the
    first and the last lesson the gates do, which use all that is built; with WHOLE=yes all tests.
    """
    make(trees[lesson], lesson, "image-disk", *PROGRAMS[lesson])  # which others build, too
    tree = tmp_path / "tree"
    shutil.copytree(trees[lesson], tree)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    for each in exercises.of_lesson(lesson):
        solve(tree, each.id)
    hand_in(tree, lesson)
    if not (WHOLE or lesson in (LESSONS[0], LESSONS[-1])):
        pass_gates(tree, lesson)
        return
    command = [sys.executable, *(["-m", GRADE] if WHOLE else ["-c", AT_ONE_RATE])]
    command += ["--lesson", str(lesson)]
    command += ["--workers", "1"]  # each is a start of pytest more, and others are at work
    graded = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert "95 of 100" in graded.stdout, graded.stdout + graded.stderr
    assert re.search(r"All of it together +hidden +0 of +5", graded.stdout)
    assert "All visible tests pass" in graded.stdout
    if lesson == LESSONS[0]:  # whose figures depend most on where and how the kernel was built
        assert graded_parts(tree, tmp_path / "work") == {"1.0": 5, "1.M": 10, "1.A": 0}


def pass_gates(tree: Path, lesson: int) -> None:
    """Runs the visible gates in a tree, at one clock rate: at least one of each exercise passes."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--mode=icount"]
    command += ["-m", "exercise(gate=True)", f"tests/lesson{lesson}/visible"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = int(re.search(r"(\d+) passed", done.stdout)[1])
    assert passed > len(exercises.of_lesson(lesson)), done.stdout


# make grade. That the tests pass at both clock rates is tried by tests/lesson* on the same kernels.
# A tree can lack something only for a test, not for its clock rate, so one is enough here. The
# command by its name is tried in the storage lab's tree.
GRADE = "labs.tools.grading.grade"
AT_ONE_RATE = f"""
import functools, sys
from {GRADE.rpartition(".")[0]} import grade
grade.Job = functools.partial(grade.Job, modes=("icount",))
sys.exit(grade.main())
"""

MEASURED = """
from pathlib import Path
from labs.lesson{0} import measure
from labs.tools.course.handed_in import sources_of, write_measurement
root, sources = Path.cwd(), sources_of(Path.cwd(), {0})
guesses = dict.fromkeys((each.key for each in measure.QUESTIONS), 7)
figures = measure.own_figures(root / "build/lesson{0}", root / "build", sources)
write_measurement(root, {0}, sources, guesses, guesses, figures)
"""


def hand_in(tree: Path, lesson: int) -> None:
    """What make measure writes, without the long way to its plots; and five wrong answers."""
    make(tree, lesson, "image-disk", *PROGRAMS[lesson])
    subprocess.run([sys.executable, "-c", MEASURED.format(lesson)], cwd=tree, check=True)
    answers = tree / f"labs/lesson{lesson}/answers.toml"
    answers.write_text(answers.read_text().replace('= ""', '= "12345"'))


def graded_parts(tree: Path, work: Path) -> dict[str, float]:
    """What an instructor's grader gives lesson 1 besides the exercises."""
    subprocess.run(["make", "-s", "LESSON=1", "image-disk"], cwd=ROOT, check=True)
    jobs = part_jobs(exercises.of_lesson(1), tree, work, "seed")
    jobs = jobs if WHOLE else [replace(each, modes=("icount",)) for each in jobs]
    scores = scores_of(parts_of(1), run_tests(jobs, ["tests/lesson1"], 1))
    return {score.exercise.id: score.points for score in scores}


@pytest.mark.parametrize("lesson", LESSONS)
def test_make_in_a_tree_offers_only_what_is_there(trees, lesson) -> None:
    """No command of the authors, and for each of the others the module that it runs."""
    listed = subprocess.run(["make"], cwd=trees[lesson], capture_output=True, text=True, check=True)
    assert "make slides" not in listed.stdout
    for module in re.findall(r"-m (labs(?:\.\w+)+)\s", (trees[lesson] / "Makefile").read_text()):
        assert (trees[lesson] / module.replace(".", "/")).with_suffix(".py").is_file(), module


def without_addresses(text: str) -> str:
    """The text without what changes with the length of the code and of the file."""
    return re.sub(r"\b(0x)?[0-9a-f]{8}\b|\+0x[0-9a-f]+|\d+ bytes", "ADDRESS", text)


# How a blank is reached that the kernel does not reach by itself.
REACHED_BY = {
    "boot/mbr.asm": ("disk", ""),
    "boot/load_elf.c": ("disk", ""),
    "boot/protected_mode.asm": ("disk", ""),
    "kernel/report/backtrace.c": ("direct", "panic"),
    "kernel/report/symbols.c": ("direct", "panic"),
    "kernel/cpu/trap_entry.asm": ("direct", "crash divide"),
    "kernel/cpu/trap_frame.inc": ("direct", "crash divide"),
    "kernel/cpu/task_state.c": ("direct", "probe cli"),
    "kernel/cpu/user_entry.asm": ("direct", "probe cli"),
    "kernel/syscall/gate.asm": ("direct", "run /bin/hello"),
    "kernel/syscall/gate.c": ("direct", "run /bin/hello"),
    "user/libc/syscall.h": ("direct", "run /bin/hello"),
    "mm/user_copy.c": ("direct", "run /bin/probe"),
    "kernel/syscall/sysenter_entry.asm": ("direct", "run /bin/nullcall 9"),
    "kernel/syscall/syscall_trace.c": ("direct", "strace /bin/hello"),
    "kernel/process/exec_elf.c": ("direct", "run /bin/text"),
    "kernel/process/exec_strings.c": ("direct", "run /bin/probe"),
    "mm/space_slot.c": ("direct", "run /bin/callcost copy; run /bin/ls /; run /bin/calls 1 9"),
    "kernel/task/sched_preempt.c": ("direct", "spin 2"),
    "kernel/task/sched_round_robin.c": ("direct", "spin 2"),
    "kernel/task/timer.c": ("direct", "spin 2"),
    "kernel/task/wait.c": ("direct", "run /bin/hello"),
    "kernel/task/semaphore.c": ("direct", "quantum 100 100"),
    "kernel/task/sched_mlfq.c": ("direct", "sched mlfq; spin 2"),
    "kernel/task/sched_fair.c": ("direct", "sched fair; spin 2"),
    "kernel/process/fork.c": ("direct", "run /bin/forkbench 1"),
    "kernel/process/exit.c": ("direct", "run /bin/hello"),
    "kernel/process/children.c": ("direct", "run /bin/hello"),
    "mm/page_free.c": ("direct", "run /bin/hello"),
    "mm/audit.c": ("direct", "audit"),
    "mm/page_table.c": ("direct", "run /bin/hello"),
    "mm/area.c": ("direct", "run /bin/hello"),
    "mm/space_areas.c": ("direct", "run /bin/ls /"),
    "mm/fault.c": ("direct", "run /bin/hello"),
    "mm/copy_on_write.c": ("direct", "run /bin/forkbench 1"),
    "mm/second_chance.c": ("direct", "run /bin/memcost cow 15000 15000"),
    "kernel/process/page_fault.c": ("direct", "run /bin/memcost cow 15000 15000"),
}

# Stubs that do what programs need: what they lack can be seen, but they do not speak.
SILENT = {
    "kernel/syscall/sysenter.c": "the kernel has no shared page: no SYSENTER",
    "kernel/syscall/shared_page.asm": "getpid by the shared page",
}


@pytest.fixture(scope="module")
def workbench(solution, tmp_path_factory) -> Path:
    """A copy of that tree, for this process alone."""
    tree = tmp_path_factory.mktemp("workbench") / "tree"
    shutil.copytree(solution, tree, ignore=shutil.ignore_patterns(".git", "*.iso"))
    return tree


@contextmanager
def with_one_blank(tree: Path, path: str, exercise: exercises.Exercise, index: int) -> Iterator:
    """Within it, a file of the tree has this stub. The next make compiles it, also afterwards."""
    before = (tree / path).read_text()
    (tree / path).write_text(one_blank(path, exercise, index))
    try:
        yield
    finally:
        (tree / path).write_text(before)


@pytest.mark.parametrize(("exercise", "path", "index"), BLANKS)
def test_one_blank_alone_says_which_it_is(workbench, exercise, path, index) -> None:
    """All else is solved. Whoever reaches the blank is told, and the machine ends."""
    with with_one_blank(workbench, path, exercise, index):
        check_one_blank(workbench, exercise, path, index)


def check_one_blank(tree: Path, exercise: exercises.Exercise, path: str, index: int) -> None:
    """What a tree does whose only stub is this one."""
    way, script = REACHED_BY.get(path, ("direct", "memory"))
    lesson = max(2, exercise.lesson)
    if exercise.id == "1.1":
        with pytest.raises(ConfigError, match=r"exercise 1\.1|boot/kernel\.ld must name"):
            boot(tree, lesson, way)
    elif path == "boot/protected_mode.asm" and index == 1:
        result = boot(tree, lesson, way, script)  # data cannot speak: the GDT is empty
        assert result.outcome is Outcome.TRIPLE_FAULT
    elif path in SILENT:
        result = boot(tree, lesson, way, "run /bin/nullcall 9").check()
        assert SILENT[path] in result.serial
    else:
        assert_missing(boot(tree, lesson, way, script), exercise.id)


def one_blank(path: str, exercise: exercises.Exercise, index: int) -> str:
    """The reference's file with one stub, in the exercise's region number index."""
    text = (ROOT / path).read_text()
    bodies = [each.body for each in regions(text)]
    return exercises.replaced(
        blank(text, path, exercise),
        lambda region, number: region.body if number == index else bodies[number],
    )


@pytest.mark.parametrize("number", ["2.5", "2.1"])
def test_a_stub_speaks_on_the_screen_too(workbench, number) -> None:
    """The last line of the VGA's text, from assembly before paging and from C after it."""
    with with_one_blank(workbench, by_id(number).files[0], by_id(number), 0):
        make(workbench, 2, "image-direct")
    kernel = workbench / "build/lesson2/kernel.elf"
    with Machine(Config(boot="direct", kernel=kernel, guest_limit=10)) as machine:
        machine.expect("README.md")
        cells = machine.read_physical(0xB8000 + 24 * 160, 160)
    assert cells[::2].decode().startswith(MESSAGE.format(number))


def test_a_stub_speaks_in_a_test_on_the_host(tmp_path) -> None:
    program = tmp_path / "program"
    source = '#include "kernel/report/exercise.h"\nint main(void) { exercise_missing("2.1"); }\n'
    command = ["gcc", "-Wall", "-Wextra", "-Werror", "-I.", "-x", "c", "-", "-o", str(program)]
    subprocess.run(command, cwd=ROOT, input=source, text=True, check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, MESSAGE.format("2.1") + "\n")
