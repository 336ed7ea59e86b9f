"""What makes lessons: a student's tree, the stubs in its blanks, hints, and what a lesson adds."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from labs.tools import difference, exercises, hint, start, student_tree
from labs.tools.exercises import ExerciseError, blank, by_id, filled, regions, solved
from labs.tools.initramfs import archive, from_host, regular
from labs.tools.machine import Machine, run
from labs.tools.qemu_command import Config, ConfigError
from labs.tools.result import Outcome, Result
from labs.tools.run import check_header
from labs.tools.student_tree import TreeError, contents
from tests.test_handouts import WITH_PROGRAMS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
LESSONS = tuple(exercises.lessons())
MESSAGE = "exercise {0} is not written yet (labs/lesson{0[0]}/README.md)"
BLANKS = [
    pytest.param(each, path, index, id=f"{each.id}-{Path(path).name}-{index + 1}")
    for each in exercises.load()
    for path in each.files
    for index in range(len(each.stubs[path]))
]
IMAGES = {"disk": "boot.img", "grub": "grub.iso"}


@pytest.fixture(scope="session")
def trees(build, tmp_path_factory) -> dict[int, Path]:
    """The students' trees, as they begin."""
    build("build/objects/boot/paging.asm.o")
    build("build/objects/boot/protected_mode.asm.o")
    place = tmp_path_factory.mktemp("trees")
    for lesson in LESSONS:
        start.start(lesson, place / str(lesson))
    return {lesson: place / str(lesson) for lesson in LESSONS}


def make(tree: Path, lesson: int, *targets: str) -> None:
    """Builds in a student's tree, with warnings as errors."""
    command = ["make", "-s", "-j2", f"LESSON={lesson}", "CI=1", *targets]
    made = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr


def boot(tree: Path, lesson: int, way: str, script: str = "memory") -> Result:
    """Builds and boots a tree's kernel; from lesson 3 on with the programs of the course, and with
    a text that is none."""
    make(tree, lesson, f"image-{way}", *(["user-programs"] if lesson >= WITH_PROGRAMS else []))
    directory = tree / "build" / f"lesson{lesson}"
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


# ---- the list -----------------------------------------------------------------------------------


def test_list_is_whole() -> None:
    """Each lesson has 100 points, each exercise three hints, and each region of the source an
    exercise with as many stubs."""
    points = Counter()
    for each in exercises.load():
        points[each.lesson] += each.points
        assert (len(each.hints), each.id[0]) == (3, str(each.lesson)), each.id
        assert set(each.needs) <= {other.id for other in exercises.load()}, each.id
        for path in each.files:
            blank((ROOT / path).read_text(), path, each)
    assert points == dict.fromkeys(LESSONS, 100)


def test_files_belong_to_one_exercise() -> None:
    files = Counter(chain.from_iterable(each.files for each in exercises.load()))
    assert set(files.values()) == {1}
    marked = {
        path
        for path in student_tree.listed(ROOT)
        if path.endswith((".c", ".h", ".asm", ".ld")) and regions((ROOT / path).read_text())
    }
    assert marked == set(files)


def test_a_mark_without_partner_is_refused() -> None:
    text = (ROOT / "boot/entry.asm").read_text()
    with pytest.raises(ExerciseError, match=r"no partner: ; SOLUTION 1\.2 \{"):
        regions(text[: text.index("} SOLUTION 1.2")])


# ---- the tree -----------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", LESSONS)
def test_two_runs_are_the_same(trees, tmp_path, lesson) -> None:
    """Every file, its mode, and the commit."""
    start.start(lesson, tmp_path / "again")
    once, again = trees[lesson], tmp_path / "again"
    listing = start.git(once, "ls-tree", "-r", "HEAD")
    assert start.git(again, "ls-tree", "-r", "HEAD") == listing
    assert start.git(again, "rev-parse", "HEAD") == start.git(once, "rev-parse", "HEAD")
    assert start.git(again, "status", "--porcelain", "--ignored") == ""


@pytest.mark.parametrize("lesson", LESSONS)
def test_history_has_nothing_but_the_tree(trees, lesson) -> None:
    """One commit, and no object that is not of it: not a byte of a solution in .git."""
    tree = trees[lesson]
    assert start.git(tree, "rev-list", "--all", "--count").strip() == "1"
    every = start.git(tree, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    reached = start.git(tree, "rev-list", "--objects", "--all").splitlines()
    assert {line.split()[0] for line in every} == {line.split()[0] for line in reached}
    assert not (tree / ".git" / "hooks").exists()


@pytest.mark.parametrize("lesson", LESSONS)
def test_tree_has_no_file_of_later_lessons(lesson) -> None:
    later = [number for number in LESSONS if number > lesson]
    linked_later = student_tree.linked(later, ROOT)
    storage = set((ROOT / "labs/storage/sources").read_text().split())
    blanks = {path for each in exercises.load() if each.lesson > lesson for path in each.files}
    strangers = (
        r"labs/storage|hidden|mutants|cheats|slides|user/|fs/|author|prove|start\.|student_tree"
    )
    for path in contents(lesson):
        assert path not in linked_later | storage | blanks, path
        assert not re.search(strangers, path), path
        assert not re.search("|".join(f"lesson{number}" for number in later) or "^$", path), path


def test_exercises_of_a_tree_are_its_own(trees) -> None:
    """The list that the student's commands read has no stubs, and nothing of later lessons."""
    for lesson in LESSONS:
        listed = exercises.load(trees[lesson])
        assert [each.id for each in listed] == [
            each.id for each in exercises.load() if each.lesson <= lesson
        ]
        assert not any(each.stubs for each in listed)
        assert tuple(exercises.lessons(trees[lesson])) == LESSONS[: LESSONS.index(lesson) + 1]


@pytest.mark.parametrize("lesson", LESSONS)
def test_only_the_lesson_itself_is_blank(lesson) -> None:
    tree = contents(lesson)
    for each in exercises.load():
        texts = {path: tree[path].decode() for path in each.files if path in tree}
        assert set(texts) == (set(each.files) if each.lesson <= lesson else set())
        for path, text in texts.items():
            assert "SOLUTION" not in text
            assert f"EXERCISE {each.id}" in text or path == "kernel/backtrace.c"
            wanted = len(each.stubs[path]) if each.lesson == lesson else 0
            assert text.count(f"your code, exercise {each.id} {{") == wanted, path
            if not wanted:
                assert text == solved((ROOT / path).read_text())


@pytest.mark.parametrize("lesson", LESSONS)
def test_programs_of_a_tree_find_what_they_import(trees, lesson) -> None:
    """All modules but gdb's own; and pytest finds the tests of this lesson and those before."""
    modules = [
        path.relative_to(trees[lesson]).with_suffix("").as_posix().replace("/", ".")
        for path in sorted((trees[lesson] / "labs").rglob("*.py"))
        if "gdb" not in path.parts
    ]
    imported = subprocess.run(
        [sys.executable, "-c", f"import {', '.join(modules)}"],
        cwd=trees[lesson],
        capture_output=True,
        text=True,
        check=False,
    )
    assert imported.returncode == 0, imported.stderr
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"],
        cwd=trees[lesson],
        capture_output=True,
        text=True,
        check=False,
    )
    assert collected.returncode == 0, collected.stdout + collected.stderr


def test_start_refuses(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "file").write_text("mine")
    for directory, words in ((tmp_path, "is not empty"), (tmp_path / "file", "is a file")):
        with pytest.raises(TreeError, match=words):
            start.start(LESSONS[0], directory)
    with pytest.raises(TreeError, match="there is no lesson 9; the lessons are 1, 2"):
        start.start(9, tmp_path / "new")
    for arguments, words in ((["1", ""], "say where"), (["storage", "d"], "is no lesson")):
        monkeypatch.setattr(sys, "argv", ["start", *arguments])
        assert start.main() == 1
        assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# ---- leaks --------------------------------------------------------------------------------------


def lines_of(text: str) -> Iterator[str]:
    """The lines of code that say something, without comments and with single blanks."""
    for line in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).splitlines():
        code = " ".join(re.sub(r";[^;]*$", "", line).split())
        if len(re.sub(r"\W", "", code)) >= 8:
            yield code


@cache
def public_lines(lesson: int) -> frozenset[str]:
    """The lines of the source that a student of this lesson may see."""

    def hidden(region: exercises.Region) -> str:
        return region.body if int(region.exercise[0]) < lesson else ""

    found: set[str] = set()
    for path in contents(lesson):
        if path.endswith((".c", ".h", ".asm", ".ld")) and not path.startswith("tests/"):
            text = (ROOT / path).read_text()
            found |= set(lines_of(exercises.replaced(text, lambda region, _: hidden(region))))
    for each in exercises.load():
        found |= set(lines_of("".join(chain.from_iterable(each.stubs.values()))))
    return frozenset(found)


def solution_lines(number: str) -> frozenset[str]:
    """The lines of an exercise's solution."""
    texts = [(ROOT / path).read_text() for path in by_id(number).files]
    bodies = [each.body for text in texts for each in regions(text) if each.exercise == number]
    return frozenset(lines_of("\n".join(bodies)))


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_solution_in_a_tree(lesson) -> None:
    """No line of a solution of this lesson or a later one, outside the hints."""
    tree = contents(lesson)
    del tree[exercises.LIST]
    told = {
        path: set(lines_of(data.decode(errors="replace")))
        for path, data in tree.items()
        if not path.endswith(".py")  # Python's "return result" is nobody's solution
    }
    for each in exercises.load():
        secret = solution_lines(each.id) - public_lines(lesson)
        if each.lesson >= lesson:
            assert secret, each.id
            leaks = {path: lines & secret for path, lines in told.items() if lines & secret}
            assert not leaks, f"{each.id}: {leaks}"


def test_hints_leave_gaps() -> None:
    """Nearly the answer is not the answer."""
    for each in exercises.load():
        secret = solution_lines(each.id)
        told = set(lines_of("\n".join(each.hints))) & secret
        assert len(told) < 0.6 * len(secret), f"{each.id}: {len(told)} of {len(secret)} lines"


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_hidden_test_or_mutant_in_a_tree(lesson) -> None:
    """Neither the names of hidden tests, nor what a mutant's bug is."""
    text = b"\n".join(contents(lesson).values()).decode(errors="replace")
    known = {name for path in ROOT.glob("tests/**/visible/*.py") for name in names_of_tests(path)}
    secret = {name for path in ROOT.glob("tests/**/hidden/*.py") for name in names_of_tests(path)}
    mutants = [path.read_text() for path in (ROOT / "tests").glob("mutants/*.toml")]
    secret |= {tomllib.loads(mutant)["title"] for mutant in mutants}
    words = set(re.findall(r"\btest_\w+", text))
    found = [name for name in secret - known if name in words or (" " in name and name in text)]
    assert not found


def names_of_tests(path: Path) -> list[str]:
    """The names of the tests in a file."""
    return re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)


# ---- what the kernels do ------------------------------------------------------------------------


def assert_missing(result: Result, number: str) -> None:
    """The run ended at this exercise's stub, which said so."""
    assert result.outcome in (Outcome.ENDED, Outcome.PANIC), result.explain()
    said = re.findall(r"^exercise .* is not written yet.*$", result.serial, re.MULTILINE)
    assert said == [MESSAGE.format(number)], result.explain()


@pytest.mark.parametrize("way", ["disk", "direct", "grub"])
def test_lesson_1_begins_with_the_first_blank(trees, way) -> None:
    if way == "direct":
        with pytest.raises(ConfigError, match=r"exercise 1\.1"):
            boot(trees[1], 1, way)
    elif way == "grub":
        result = boot(trees[1], 1, way)
        assert "This is no Multiboot kernel (exercise 1.1)." in result.serial
        assert result.outcome is Outcome.ENDED
    else:
        assert_missing(boot(trees[1], 1, way), "1.4")


@pytest.mark.parametrize(("way", "number"), [("disk", "2.2"), ("direct", "2.5"), ("grub", "2.5")])
def test_lesson_2_begins_with_the_first_blank(trees, way, number) -> None:
    assert_missing(boot(trees[2], 2, way), number)


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


@pytest.mark.parametrize("way", ["disk", "direct", "grub"])
def test_lesson_3_begins_with_the_first_blank(trees, way) -> None:
    assert_missing(boot(trees[3], 3, way), "3.1")


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


@pytest.fixture(scope="session")
def solution(trees, tmp_path_factory) -> Path:
    """The tree of the last lesson with the solutions put back, built."""
    tree = tmp_path_factory.mktemp("solution") / "tree"
    shutil.copytree(trees[LESSONS[-1]], tree)
    for each in exercises.of_lesson(LESSONS[-1]):
        solve(tree, each.id)
    make(tree, LESSONS[-1], "image-disk")
    return tree


def test_solutions_put_back_are_the_reference(solution) -> None:
    script = "help; memory; probe cli; exception 3"
    mine = boot(solution, 2, "direct", script)
    theirs = reference(2, "direct", script)
    assert (mine.outcome, mine.status) == (theirs.outcome, theirs.status)
    assert without_addresses(mine.serial) == without_addresses(theirs.serial)


@pytest.mark.parametrize("lesson", LESSONS)
def test_visible_tests_pass_with_the_solutions(trees, tmp_path, lesson) -> None:
    """Whoever solves everything gets every point: a tree has all that its tests need."""
    tree = tmp_path / "tree"
    shutil.copytree(trees[lesson], tree)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    for each in exercises.of_lesson(lesson):
        solve(tree, each.id)
    command = [sys.executable, "-m", "labs.tools.grade", "--lesson", str(lesson)]
    graded = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert "100 of 100" in graded.stdout, graded.stdout + graded.stderr
    assert "All visible tests pass" in graded.stdout


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
    "kernel/backtrace.c": ("direct", "panic"),
    "kernel/symbols.c": ("direct", "panic"),
    "kernel/trap_entry.asm": ("direct", "exception 3"),
    "kernel/task_state.c": ("direct", "probe cli"),
    "kernel/user_entry.asm": ("direct", "probe cli"),
    "kernel/syscall_entry.asm": ("direct", "run /bin/hello"),
    "user/libc/syscall.h": ("direct", "run /bin/hello"),
    "kernel/user_copy.c": ("direct", "run /bin/probe"),
    "kernel/sysenter_entry.asm": ("direct", "run /bin/nullcall 9"),
    "kernel/syscall_trace.c": ("direct", "strace /bin/hello"),
    "kernel/exec_elf.c": ("direct", "run /bin/text"),
    "kernel/exec_strings.c": ("direct", "run /bin/probe"),
    "mm/space_slot.c": ("direct", "run /bin/callcost copy; run /bin/ls /; run /bin/calls 1 9"),
}

# Stubs that do what programs need: what they lack can be seen, but they do not speak.
SILENT = {
    "kernel/sysenter.c": "the kernel has no shared page: no SYSENTER",
    "kernel/shared_page.asm": "getpid by the shared page",
}


@pytest.mark.parametrize(("exercise", "path", "index"), BLANKS)
def test_one_blank_alone_says_which_it_is(solution, tmp_path, exercise, path, index) -> None:
    """All else is solved. Whoever reaches the blank is told, and the machine ends."""
    tree = tmp_path / "tree"
    shutil.copytree(solution, tree, ignore=shutil.ignore_patterns(".git", "*.iso"))
    (tree / path).write_text(one_blank(path, exercise, index))
    way, script = REACHED_BY.get(path, ("direct", "memory"))
    lesson = max(2, exercise.lesson)
    if exercise.id == "1.1":
        with pytest.raises(ConfigError, match=r"exercise 1\.1"):
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
def test_a_stub_speaks_on_the_screen_too(solution, tmp_path, number) -> None:
    """The last line of the VGA's text, from assembly before paging and from C after it."""
    tree, path = tmp_path / "tree", by_id(number).files[0]
    shutil.copytree(solution, tree, ignore=shutil.ignore_patterns(".git", "*.iso"))
    (tree / path).write_text(one_blank(path, by_id(number), 0))
    make(tree, 2, "image-direct")
    config = Config(boot="direct", kernel=tree / "build/lesson2/kernel.elf", guest_limit=10)
    with Machine(config) as machine:
        machine.expect("README.md")
        cells = machine.read_physical(0xB8000 + 24 * 160, 160)
    assert cells[::2].decode().startswith(MESSAGE.format(number))


def test_a_stub_speaks_in_a_test_on_the_host(tmp_path) -> None:
    program = tmp_path / "program"
    source = '#include "kernel/exercise.h"\nint main(void) { exercise_missing("2.1"); }\n'
    command = ["gcc", "-Wall", "-Wextra", "-Werror", "-I.", "-x", "c", "-", "-o", str(program)]
    subprocess.run(command, cwd=ROOT, input=source, text=True, check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, MESSAGE.format("2.1") + "\n")


# ---- hints and differences ----------------------------------------------------------------------


def test_hints_come_one_by_one(tmp_path, monkeypatch, capsys) -> None:
    memory = tmp_path / "build" / "hints.json"
    monkeypatch.setattr(hint, "MEMORY", memory)
    seen = []
    for arguments in (["1.3"], ["1.5"], ["1.3"], ["1.3"], ["1.3"], ["1.3", "--layer", "1"]):
        monkeypatch.setattr(sys, "argv", ["hint", *arguments])
        assert hint.main() == 0
        printed = capsys.readouterr().out
        seen.append(re.search(r"Hint (\d) of 3", printed)[1])
        assert by_id(arguments[0]).hints[int(seen[-1]) - 1] in printed
    assert seen == ["1", "1", "2", "3", "3", "1"]
    memory.write_text("{")
    assert hint.next_layer(by_id("1.3"), memory) == 1


def test_hint_refuses(monkeypatch, capsys) -> None:
    for arguments, words in (
        (["9.9"], "there is no exercise 9.9; there are 1.1, 1.2"),
        ([""], "there is no exercise (none given); there are 1.1"),
        (["1.1", "--layer", "4"], "LAYER=4: exercise 1.1 has 1 to 3"),
    ):
        monkeypatch.setattr(sys, "argv", ["hint", *arguments])
        assert hint.main() == 1
        assert words in capsys.readouterr().err


def test_difference_tells_the_lesson() -> None:
    report = difference.report("2")
    assert re.search(r"^  kernel/trap_entry.asm +\d+ lines$", report, re.MULTILINE)
    assert "2.5  Early paging (20 points): boot/paging.asm" in report
    assert "+\ttrap_initialize();" in report
    assert "\033[32m+\ttrap_initialize();\033[0m" in difference.report("2", colour=True)
    assert "+\tprompt(serial_get, idle);" in difference.report("1")
    with pytest.raises(ExerciseError, match="there is no lesson 7; there are 1, 2"):
        difference.report("7")


def test_difference_in_a_tree_knows_given_objects(trees) -> None:
    report = difference.report("1", trees[1])
    assert re.search(r"^  boot/paging.asm.o +given as object code$", report, re.MULTILINE)
