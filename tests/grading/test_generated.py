"""`make prove GENERATED=k`: the mutants that a program makes, and what is said of them
(labs/tools/proving/generated.py and prove_generated.py)."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from labs.tools.course.exercises import by_id, load
from labs.tools.grading.lab_course import Course
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.test_run import TestResult
from labs.tools.proving import generated, prove_generated, prove_mutants
from labs.tools.proving.generated import (
    SAME,
    Choice,
    Made,
    changed_lines,
    chosen,
    drawn,
    equivalent,
    identity,
    in_context,
)
from labs.tools.proving.prove_generated import main, table, tried
from labs.tools.proving.prove_mutants import Change, MutantError, changed_files

FORMAT = by_id("1.3")
C = """int before = 1;
	/* SOLUTION 1.3 { */
	int inside = 2; /* not 3 */
	/* 4 and
	5 */
	/* } SOLUTION 1.3 */
	/* SOLUTION 1.2 { */
	int other = 6;
	/* } SOLUTION 1.2 */
"""
ASSEMBLY = "; SOLUTION 1.3 {\n\tadd eax, 2 ; 3\n\tje .no\n; } SOLUTION 1.3\n"

# ---- what is drawn ------------------------------------------------------------------------------


@pytest.fixture
def library():
    """What make test installs, and make test-fast need not have."""
    pytest.importorskip("universalmutator", reason="universalmutator is not installed")


def test_only_lines_of_the_blank_and_no_comments(library):
    made = changed_lines("a.c", C, "1.3")
    assert {line for line, _ in made} == {2}
    assert {"\tint inside = (2+1); \n", "\tint inside = 0; \n"} <= {new for _, new in made}


def test_assembly_has_rules_of_its_own(library):
    made = changed_lines("a.asm", ASSEMBLY, "1.3")
    assert {"\tsub eax, 2 \n", "\tjne .no\n", "\tnop\n"} <= {new for _, new in made}
    assert not [new for _, new in made if "break" in new or "continue" in new]


def test_the_seed_draws(library):
    """The same each time, no two of the same code, and each applies to the blank of a file."""
    names = [identity(each) for each in drawn(FORMAT, 2010)]
    assert names == [identity(each) for each in drawn(FORMAT, 2010)]
    assert names[:9] != [identity(each) for each in drawn(FORMAT, 2011)][:9]
    assert len(set(names)) == len(names) > 100


def test_old_text_is_there_once():
    text = "a\nb\na\nc\n"
    assert in_context(text, 1, "x\n") == ("b\n", "x\n")
    assert in_context(text, 2, "x\n") == ("b\na\nc\n", "b\nx\nc\n")
    assert in_context(text, 0, "x\n") == ("a\nb\n", "x\nb\n")


def a_mutant(number: int, old: str, new: str) -> Made:
    """A mutant of the kernel's printing."""
    edit = ("kernel/lib/format.c", old, new)
    return Made(f"1.3-{number}", "1.3", "", (edit,))


def statements() -> list[str]:
    """Statements that are in the file once."""
    text = Path("kernel/lib/format.c").read_text()
    return [line for line in text.splitlines() if line[-1:] == ";" and text.count(line) == 1][:9]


def test_what_is_chosen_is_counted(monkeypatch):
    """Refused ones, those of the reference's code or of another's, and listed ones are not tried;
    of those that are tried or listed there are as many as asked for."""
    lines = statements()
    made = [a_mutant(i, line, f"{i};") for i, line in enumerate(lines)]
    codes = dict(zip(lines, (None, "reference", "a", "a", "b", "c", "d"), strict=False))

    def code(_, files):
        ((_, data),) = files.items()
        return next((codes[line] for line in codes if line not in data.decode()), "reference")

    listed = [(Change("", "1.3", "", made[4].edits), "why")]
    monkeypatch.setattr(generated, "drawn", lambda *_: iter(made))
    monkeypatch.setattr(generated, "code", code)
    monkeypatch.setattr(generated, "equivalent", lambda _: listed)
    choice = chosen(replace(FORMAT, files=("kernel/lib/format.c",)), 3, 1)
    assert (choice.made, choice.refused, choice.same_code, choice.equivalent) == (6, 1, 2, 1)
    assert choice.mutants == [made[2], made[5]]


@pytest.mark.parametrize(
    "path, old, new, same",
    [
        ("kernel/lib/format.c", "int minimum =", "int /* so */ minimum =", True),
        ("kernel/lib/format.c", "int minimum =", "int minimum = 1 +", False),
        ("kernel/lib/format.c", "int minimum =", "int no minimum =", None),
    ],
)
def test_code_is_compared_without_what_a_debugger_reads(path, old, new, same, lesson_one):
    text = Path(path).read_text()
    reference = generated.code(FORMAT, {path: text.encode()})
    changed = generated.code(FORMAT, {path: f"\n{text.replace(old, new)}".encode()})
    assert (None if changed is None else changed == reference) is same


def test_a_header_is_compared_by_what_includes_it():
    """Of the C library: what its functions become is there."""
    assert "user/libc/file.c" in generated.users_of("user/libc/syscall.h")
    assert generated.users_of("user/libc/nothing.h") == []


@pytest.fixture
def lesson_one(build):
    """Trees to compile in are made of it."""
    build("build/lesson1/boot.img")


# ---- the list of equivalent ones ----------------------------------------------------------------


@pytest.mark.parametrize("exercise", [each.id for each in load()])
def test_what_is_listed_applies(exercise):
    """Its old text is in the file once: one that is there no longer is to be looked at again. It is
    a change of a blank, and said once."""
    entries = [each for each, _ in equivalent(by_id(exercise))]
    assert len({identity(each) for each in entries}) == len(entries)


def test_every_list_is_that_of_an_exercise():
    assert {path.stem for path in SAME.glob("*")} <= {each.id for each in load()}


@pytest.mark.parametrize(
    "text, words",
    [
        ("[[same]]\nfile = 'a'\nold = 'b'\nnew = 'c'\n", "entry 1: file, old, new and why"),
        ("[[same]]\nfile = 'a'\nold = 'b'\nnew = 'b'\nwhy = 'd'\n", "entry 1"),
        ("[[same]]\nfile = 'a'\nold = 'b'\nnew = 'c'\nwhy = ''\n", "entry 1"),
        ("[[other]]\n", "same"),
        ("[[", "1.3.toml"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, text, words):
    (tmp_path / "1.3.toml").write_text(text)
    with pytest.raises(MutantError, match=words):
        equivalent(FORMAT, tmp_path)


def test_old_text_that_is_gone_is_an_error(tmp_path):
    text = "[[same]]\nfile = 'kernel/lib/format.c'\nold = 'no such'\nnew = 'c'\nwhy = 'd'\n"
    (tmp_path / "1.3.toml").write_text(text)
    ((entry, _),) = equivalent(FORMAT, tmp_path)
    with pytest.raises(MutantError, match="the old text is there 0 times"):
        changed_files(entry)


# ---- trying them, and the report ----------------------------------------------------------------


def result(job: str, folder: str, passed: bool) -> TestResult:
    """What came of a test of a folder."""
    test = f"tests/lesson1/{folder}/test_a.py::test_b"
    return TestResult(job, "1.3", test, "", 1.0, False, passed, "" if passed else "why", "icount")


def test_visible_tests_first_then_hidden_then_the_other_rate(monkeypatch, tmp_path):
    """A job stops at its first failure, and what is caught is not tried again."""
    lines = statements()
    mutants = [a_mutant(i, line, f"{i};") for i, line in enumerate(lines[:4])]
    caught_in = {0: ("visible", "icount"), 1: ("hidden", "icount"), 2: ("hidden", "slower")}
    runs = []

    def run_tests(jobs: list[Job], folders: list[str], _: int) -> list[TestResult]:
        (folder,) = folders
        folder, mode = folder.removeprefix("tests/lesson1/"), jobs[0].modes[0]
        runs.append((folder, mode, len(jobs)))
        assert all(job.brief and job.exercise == "1.3" for job in jobs)
        caught = [caught_in.get(int(job.name.rpartition("-")[2])) for job in jobs]
        return [
            result(job.name, folder, each != (folder, mode))
            for job, each in zip(jobs, caught, strict=True)
        ]

    monkeypatch.setattr(prove_generated, "run_tests", run_tests)
    monkeypatch.setattr(prove_mutants, "open_tree", lambda *_: None)
    (outcome,) = tried([Choice(FORMAT, 9, 3, 1, 1, mutants)], tmp_path, 1)
    assert runs == [("visible", "icount", 4), ("hidden", "icount", 3), ("hidden", "slower", 2)]
    assert outcome.row == ("1.3", 9, 3, 1, 1, 2, 1, 1)
    assert [each.name for each in outcome.survivors] == ["1.3-3"]
    assert table([outcome, outcome]).splitlines()[-1].split() == ["all", "18", *"622422"]


def test_nothing_is_run_after_the_first_failure():
    course = Course(brief=True)
    record = {"test": "a", "gate": False, "processor": 0, "real": 0, "stuck": False}
    course.note({**record, "passed": True})
    assert course.why_not("b", False) == ""
    course.note({**record, "passed": False})
    assert course.why_not("b", False) == "not run: a test before it has failed"


@pytest.mark.parametrize("lives", [True, False])
def test_one_that_survives_is_shown(monkeypatch, capsys, lives):
    line = statements()[0]
    choice = Choice(FORMAT, 1, mutants=[a_mutant(7, line, "changed")])
    outcome = prove_generated.Outcome(choice, {} if lives else {"1.3-7": "a test"}, {})
    monkeypatch.setattr(prove_generated, "proved", lambda *_: [outcome])
    assert main(["--generated", "1", "--exercise", "1.3"]) == int(lives)
    said = capsys.readouterr().out
    shown = "NO TEST CATCHES  1.3-7\n--- kernel/lib/format.c\n+++ mutant 1.3-7\n"
    assert (shown in said, f"-{line}\n" in said) == (lives, lives)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--generated", "1", "--exercise", "9.9"], "there is no exercise 9.9; there are 1.1, 1.2"),
        (["--generated", "1", "--lesson", "2", "--exercise", "1.3"], "EX=1.3 is no exercise of"),
    ],
)
def test_a_wrong_exercise_is_named(capsys, arguments, words):
    assert main(arguments) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--generated", "0"], "GENERATED: '0' is not a whole number from 1"),
        (["--generated", "1", "--seed", "x"], "SEED: 'x' is not a whole number from 0"),
    ],
)
def test_a_wrong_number_is_named(capsys, arguments, words):
    with pytest.raises(SystemExit):
        main(arguments)
    assert words in capsys.readouterr().err


def test_without_the_library_it_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "universalmutator.mutator", None)
    generated.rules_of_library.cache_clear()
    with pytest.raises(MutantError, match="is not installed: labs"):
        generated.rules_of_library()
    generated.rules_of_library.cache_clear()
