"""What makes lessons: a student's tree, the stubs in its blanks, hints, and what a lesson adds."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from labs.tools.course import difference, exercises, hint, room_readme, start, student_tree
from labs.tools.course.exercises import (
    ExerciseError,
    blank,
    by_id,
    lesson_of,
    of_lesson,
    regions,
    solved,
)
from labs.tools.course.handed_in import NUMBERS, answers_path
from labs.tools.course.source_lists import ever_linked
from labs.tools.course.student_tree import TreeError
from labs.tools.grading.grade_parts import parts_of
from tests.support.building import WHOLE
from tests.support.student_trees import (
    EVERY,
    LESSONS,
    ROOT,
    WITH_PROGRAMS,
    started_trees,
)

pytestmark = pytest.mark.slow

NAMED = re.compile(r"(?<![\w./-])(?:[\w-]+/)+[\w-]+\.(?:md|c|h|inc|asm|py|toml)\b")
IMPORT = re.compile(r"^\s*(?:from|import) ([\w.]+)(?: import \(?([\w\s,]+))?", re.MULTILINE)


@pytest.fixture(scope="module")
def trees(build, tmp_path_factory) -> dict[int, Path]:
    """The students' trees, as they begin."""
    return started_trees(build, tmp_path_factory)


@cache
def made(lesson: int) -> dict[str, bytes]:
    """The files of a lesson's tree, which takes half a second to put together."""
    return student_tree.contents(lesson)


def contents(lesson: int) -> dict[str, bytes]:
    """The same, for a test to take apart."""
    return dict(made(lesson))


# ---- the list -----------------------------------------------------------------------------------


def test_list_is_whole() -> None:
    """Each lesson has 100 points, 80 of them for exercises; each exercise has four hints, and each
    region an exercise with as many stubs."""
    points = Counter()
    for each in exercises.load():
        points[each.lesson] += each.points
        assert (len(each.hints), lesson_of(each.id)) == (4, each.lesson), each.id
        assert set(each.needs) <= {other.id for other in exercises.load()}, each.id
        for path in each.files:
            blank((ROOT / path).read_text(), path, each)
    assert points == dict.fromkeys(EVERY, 80)
    assert all(80 + sum(part.points for part in parts_of(n)) == 100 for n in EVERY)


def test_files_belong_to_one_exercise() -> None:
    files = Counter(chain.from_iterable(each.files for each in exercises.load()))
    assert set(files.values()) == {1}
    marked = {
        path
        for path in student_tree.listed(ROOT)
        if path.endswith((".c", ".h", ".asm", ".inc", ".ld")) and regions((ROOT / path).read_text())
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


@pytest.mark.parametrize("lesson", EVERY)
def test_readme_says_what_to_do_with_every_file(lesson) -> None:
    """A row of its tables names the file, or a folder that it is in; and every row is of a file.
    What the lesson's hints say to read is there, too."""
    tree = contents(lesson)
    for each in of_lesson(lesson):
        hinted = {name for words in each.hints for name in NAMED.findall(words)}
        assert {name for name in hinted if (ROOT / name).exists()} <= set(tree), each.id
    text = tree.pop("README.md").decode()
    rows = re.findall(
        r"^\| (?:`|\*\*)([\w./-]+?)(?:`|\*\*) \|.*\| ([^|]*) \|$",
        text,
        re.M,
    )
    named = {path for path, advice in rows if advice.strip(" *")}
    advices = {advice.strip(" *") for _, advice in rows}
    assert advices <= {"read", "skim", "ignore", "known", ""}
    assert ("known" in advices) == (lesson > LESSONS[0]), "before the first there is no lesson"
    for path in tree:
        place = path if path.count("/") or not path.startswith(".") else "pyproject.toml"
        assert any(place == row or (row[-1] == "/" and place.startswith(row)) for row in named), (
            path
        )
    for line in text.splitlines():
        assert line.count("(") == line.count(")"), f"a sentence is cut: {line}"
    for row in named:
        assert any(path == row or (row[-1] == "/" and path.startswith(row)) for path in tree), row


@pytest.mark.parametrize("lesson", EVERY)
def test_readmes_of_folders_name_what_is_there(lesson) -> None:
    """And the kernel's own is in every tree."""
    tree = contents(lesson)
    there = {parent.as_posix() for path in tree for parent in (Path(path), *Path(path).parents)}
    names = [path for path in tree if path.endswith("/README.md") and "lesson" not in path]
    assert {"kernel/README.md", "boot/README.md", "mm/README.md"} <= set(names)
    for name in names:
        for line in tree[name].decode().splitlines():
            named = room_readme.names_in(line, Path(name).parent.as_posix())
            assert named <= there, f"{name}: {line}"


@pytest.mark.parametrize("lesson", EVERY)
def test_tree_has_questions_and_no_answer(lesson) -> None:
    """And nobody's measurement."""
    tree, path = contents(lesson), answers_path(lesson)
    key = tomllib.loads((ROOT / path).read_text())
    given = tree[path].decode()
    assert tomllib.loads(given) == dict.fromkeys(key, "")
    assert tuple(key) == NUMBERS
    assert [line for line in given.splitlines() if line[:1] == "#"] == [
        line for line in (ROOT / path).read_text().splitlines() if line[:1] == "#"
    ]
    assert not [path for path in tree if path.endswith("measurement.json")]
    assert f"tests/lesson{lesson}/hidden/test_answers.py" not in tree


@pytest.mark.parametrize("lesson", LESSONS)
def test_handouts_of_a_tree_are_pages(trees, tmp_path, lesson) -> None:
    """make handouts works in a student's tree, too: every excerpt, drawing and link is there, which
    sphinx also looks for when it writes no pages (dummy)."""
    builder = "html" if WHOLE or lesson == LESSONS[-1] else "dummy"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", builder, "labs"]
    done = subprocess.run(
        [*command, str(tmp_path)], cwd=trees[lesson], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("lesson", LESSONS)
def test_tree_has_no_file_of_later_lessons(lesson) -> None:
    later = [number for number in LESSONS if number > lesson]
    linked_later = ever_linked(later, ROOT)
    storage = set((ROOT / "labs/storage/sources").read_text().split()) - {
        f"labs/lesson{LESSONS[-1]}/main.c"  # its kernel begins as the last lesson's
    }
    blanks = {path for each in exercises.load() if each.lesson > lesson for path in each.files}
    strangers = r"(labs|tests)/storage|hidden|mutants|other_ways|cheats|slides|author|prove"
    strangers += r"|tools/start\.|student_tree"
    if lesson < WITH_PROGRAMS:
        strangers += "|user/|fs/"
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


@pytest.mark.parametrize("lesson", EVERY)
def test_only_the_lesson_itself_is_blank(lesson) -> None:
    tree = contents(lesson)
    for each in exercises.load():
        texts = {path: tree[path].decode() for path in each.files if path in tree}
        assert set(texts) == (set(each.files) if each.lesson <= lesson else set())
        for path, text in texts.items():
            assert "SOLUTION" not in text
            assert f"EXERCISE {each.id}" in text or path == "kernel/report/backtrace.c"
            wanted = len(each.stubs[path]) if each.lesson == lesson else 0
            assert text.count(f"your code, exercise {each.id} {{") == wanted, path
            if not wanted:
                assert text == solved((ROOT / path).read_text())


def imported_files(text: str) -> set[str]:
    """The files of the repository that a Python program imports."""
    found = set()
    for module, names in IMPORT.findall(text):
        several = [module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))]
        found |= {f"{each.replace('.', '/')}.py" for each in several}
    return {path for each in found for path in (each, f"tests/{each}") if (ROOT / path).is_file()}


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_tree_has_what_its_programs_import(lesson) -> None:
    tree = contents(lesson)
    for path, data in tree.items():
        if path.endswith(".py"):
            assert not imported_files(data.decode()) - tree.keys(), path


@pytest.mark.parametrize("lesson", LESSONS if WHOLE else (LESSONS[0], LESSONS[-1]))
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
    with pytest.raises(ExerciseError, match="there is no lesson 9; the lessons are 1, 2"):
        start.start(9, tmp_path / "new")
    for arguments, words in ((["1", ""], "say where"), (["9", "d"], "there is no lesson 9")):
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
        return region.body if lesson_of(region.exercise) < lesson else ""

    found: set[str] = set()
    for path in contents(lesson):
        if path.endswith((".c", ".h", ".asm", ".inc", ".ld")) and not path.startswith("tests/"):
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


@pytest.mark.parametrize("lesson", EVERY)
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


@pytest.mark.parametrize("lesson", EVERY)
def test_no_hidden_test_or_mutant_in_a_tree(lesson) -> None:
    """Neither the names of hidden tests, nor what a mutant's bug is."""
    tree = contents(lesson).items()  # the storage lab's kernel has test_ticks among its commands
    seen = [data for path, data in tree if not path.startswith("tests/kernel/")]
    text = b"\n".join(seen).decode(errors="replace")
    known = {name for path in ROOT.glob("tests/**/visible/*.py") for name in names_of_tests(path)}
    secret = {name for path in ROOT.glob("tests/**/hidden/*.py") for name in names_of_tests(path)}
    for path in (ROOT / "tests").glob("mutants/*.toml"):
        mutants = tomllib.loads(path.read_text())
        secret |= {each["title"] for each in mutants.values() if "title" in each}
    words = set(re.findall(r"\w+", text))
    maybe = [name for name in secret - known if words.issuperset(re.findall(r"\w+", name))]
    assert not [name for name in maybe if " " not in name or name in text]


@pytest.mark.parametrize("lesson", EVERY)
def test_no_file_that_only_hidden_tests_use(lesson) -> None:
    """Each program of the tests is one that a test in the tree names, or another one includes."""
    tree = contents(lesson)
    tests = "".join(tree[path].decode() for path in tree if re.match(r"tests/.*\.(py|c)$", path))
    for path in tree:
        if re.match(r"tests/\w+/(?:host|programs)/", path):
            assert re.search(rf'["/]{Path(path).stem}(?:\.\w+)?"', tests), path


@cache
def names_of_tests(path: Path) -> list[str]:
    """The names of the tests in a file."""
    return re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)


# ---- hints and differences ----------------------------------------------------------------------


@pytest.fixture
def hints(tmp_path, monkeypatch, capsys) -> Callable[..., tuple[int, str]]:
    """make hint with these arguments, and memories of its own: its status, and what it prints."""
    monkeypatch.setattr(hint, "MEMORY", tmp_path / "build" / "hints.json")
    monkeypatch.setattr(hint, "ATTEMPTS", tmp_path / "build" / "attempts.json")

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["hint", *arguments])
        status = hint.main()
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


def test_hints_come_one_by_one(hints) -> None:
    """The last one, nearly the text, only after a failed attempt."""
    seen = []
    for arguments in (["1.3"], ["1.5"], ["1.3"], ["1.3"], ["1.3"], ["1.3", "--layer", "1"]):
        status, printed = hints(*arguments)
        assert status == 0
        seen.append(re.search(r"Hint (\d) of 4", printed)[1])
        assert by_id(arguments[0]).hints[int(seen[-1]) - 1] in printed
    assert seen == ["1", "1", "2", "3", "3", "1"]
    hint.MEMORY.write_text("{")
    assert "Hint 1 of 4" in hints("1.3")[1]


def test_last_hint_opens_after_an_attempt(hints) -> None:
    for _ in range(3):
        _, printed = hints("1.3")
    assert "write 1.3,\nrun make grade LESSON=1" in printed
    status, printed = hints("1.3", "--layer", "4")
    assert status == 1 and "LAYER=4 is closed" in printed
    hint.remember_failures([by_id("1.3")])
    assert "Hint 4 of 4" in hints("1.3")[1]
    assert "Hint 4 of 4" in hints("1.3", "--layer", "4")[1]
    assert hints("1.4", "--layer", "4")[0] == 1


def test_a_blank_is_no_attempt(hints, trees) -> None:
    """In a fresh tree every exercise fails, and none was tried."""
    for lesson, tree in trees.items():
        for each in of_lesson(lesson):
            assert not hint.is_written(each, tree), each.id
            assert hint.is_written(each), each.id


def test_hint_refuses(hints) -> None:
    for arguments, words in (
        (["9.9"], "there is no exercise 9.9; there are 1.1, 1.2"),
        ([""], "there is no exercise (none given); there are 1.1"),
        (["S.M"], "S.M is a part of its whole lesson: make grade LESSON=storage counts it"),
        (["1.1", "--layer", "5"], "LAYER=5: exercise 1.1 has 1 to 4"),
    ):
        status, printed = hints(*arguments)
        assert status == 1
        assert words in printed


def test_difference_tells_the_lesson() -> None:
    report = difference.report("2")
    assert re.search(r"^  read +kernel/cpu/trap_entry.asm +\d+  Where the", report, re.MULTILINE)
    assert "2.5  Early paging (16 points): boot/paging.asm" in report
    assert "+\ttrap_initialize();" in report
    assert "\033[32m+\ttrap_initialize();\033[0m" in difference.report("2", colour=True)
    assert "+\tprompt(serial_get, idle);" in difference.report("1")
    with pytest.raises(ExerciseError, match="there is no lesson 8; the lessons are 1, 2"):
        difference.report("8")


@pytest.mark.parametrize("command", ["difference", "walk"])
def test_a_pager_may_be_left_before_the_end(command) -> None:
    """Nobody reads what is printed: the command ends, without a word of Python's."""
    words = [sys.executable, "-m", f"labs.tools.course.{command}", "3"]
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""


def test_difference_tells_what_is_no_longer_linked() -> None:
    report = difference.report("4")
    assert re.search(r"^  kernel/task/wait_idle.c +no longer linked$", report, re.MULTILINE)
    assert "given as object code" not in report


def test_difference_in_a_tree_knows_given_objects(trees) -> None:
    report = difference.report("1", trees[1])
    assert re.search(
        r"^  ignore +boot/paging.asm.o +-  given as object code$", report, re.MULTILINE
    )
