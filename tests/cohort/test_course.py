"""What students get has no solution, no hidden test and no answer: the search for them finds each,
and what make course hands out has none."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from labs.tools.cohort import course
from labs.tools.cohort.course import leaks, make_template, solutions
from labs.tools.course.exercises import ROOT, STORAGE, every_lesson
from labs.tools.course.handed_in import COURSE, course_of, sources_of
from labs.tools.course.student_tree import NEVER, TreeError, any_of, contents
from labs.tools.grading import graded_tree
from labs.tools.machine.command import in_a_line


def test_a_leak_of_each_kind_is_found():
    reference = (ROOT / "boot/entry.asm").read_bytes()
    tree = {
        "boot/entry.asm": reference.replace(b"\t", b"    "),
        "tests/lesson1/hidden/test_x.py": b"",
        "INSTRUCTOR.md": b"",
        "labs/tools/cohort/one.py": b"",
        "labs/lesson1/answers.toml": (ROOT / "labs/lesson1/answers.toml").read_bytes(),
        "mm/a.c": b"int x;",
    }
    found = list(leaks(1, tree))
    assert [each for each in found if each.startswith("boot/entry.asm has the solution of 1.2")]
    assert {each.split()[0] for each in found} == tree.keys() - {"mm/a.c"}
    assert list(leaks(2, {"boot/entry.asm": reference})) == []  # solved by then


@pytest.mark.parametrize("lesson", every_lesson())
def test_each_lesson_has_solutions_to_look_for(lesson):
    own = [name for name in solutions(lesson) if name.startswith("S" if lesson == STORAGE else "")]
    assert len(own) >= 5


def test_no_template_has_one():
    """Of a lesson that gives object code, and of one that does not."""
    for lesson in (1, 3):
        assert list(leaks(lesson, contents(lesson))) == []


def test_a_template_that_leaks_is_not_made(tmp_path, monkeypatch):
    monkeypatch.setattr(course, "contents", lambda lesson: {})
    monkeypatch.setattr(course, "leaks", lambda lesson, tree: ["x has the solution of 1.2"])
    with pytest.raises(TreeError, match=r"/t must not be handed out: x has the solution of 1\.2"):
        make_template(1, tmp_path / "t", {})
    assert not (tmp_path / "t").exists()


def test_course_has_what_is_private_and_what_is_not(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(course, "listed", lambda root: {"INSTRUCTOR.md", "Makefile"})
    place = tmp_path / "course"
    monkeypatch.setattr(sys, "argv", ["course", f"--dir={place}", "--lesson=1", "--course=y2"])
    assert in_a_line("make course", course.main) == 0
    assert (place / "instructor/INSTRUCTOR.md").is_file()
    assert {course_of(place / name) for name in ("instructor", "lesson1")} == {"y2"}
    assert sources_of(place / "lesson1", 1) != sources_before(place / "lesson1")
    assert not (place / "lesson1/INSTRUCTOR.md").exists()
    assert "git -C lesson1 push" in (place / "README.md").read_text()
    log = subprocess.run(
        ["git", "-C", place / "lesson1", "log", "--format=%s"], capture_output=True, check=True
    )
    assert log.stdout == b"Lesson 1, as it begins\n"
    assert in_a_line("make course", course.main) == 1
    assert "is there, and not an empty folder" in capsys.readouterr().err


def sources_before(tree: Path) -> str:
    """What a student has measured in a tree without the word."""
    (tree / COURSE).rename(tree / "other.txt")
    try:
        return sources_of(tree, 1)
    finally:
        (tree / "other.txt").rename(tree / COURSE)


def test_the_word_reaches_the_tree_that_is_graded(tmp_path, monkeypatch):
    (tmp_path / "labs").mkdir()
    (tmp_path / COURSE).write_text("y2\n")
    monkeypatch.setattr(graded_tree, "ROOT", tmp_path)
    monkeypatch.setattr(graded_tree, "room_files", lambda: ())  # it remembers what it has found
    assert COURSE in list(graded_tree.shown())
    (tmp_path / COURSE).unlink()
    assert COURSE not in list(graded_tree.shown())


@pytest.mark.parametrize("word", ["", "a b", "x" * 41, "../x", "\u00e4"])
def test_a_word_that_is_none_is_refused(word):
    with pytest.raises(ArgumentTypeError, match="1 to 40 letters"):
        course.a_word(word)


def test_course_asks_where(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["course", "--dir", ""])
    assert in_a_line("make course", course.main) == 1
    assert capsys.readouterr().err == "make course: say where: make course DIR=../course\n"


def test_no_student_has_the_instructors_page():
    assert (ROOT / "INSTRUCTOR.md").is_file()
    for path in ("INSTRUCTOR.md", "INSTRUCTOR-KEY.md", "labs/tools/cohort/one.py"):
        assert any_of(NEVER).match(path) and path not in contents(1)
