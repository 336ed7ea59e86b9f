"""The lists of usual mistakes: their form, and what a student reads after some of them."""

from __future__ import annotations

import ast
import subprocess

import pytest

from labs.tools.course.exercises import ROOT, every_lesson, of_lesson, word_of
from labs.tools.grading.grade_words import ALL_PASS
from labs.tools.grading.graded_tree import open_tree
from labs.tools.proving.mistakes import (
    GOLDEN,
    Mistake,
    MistakeError,
    changed_files,
    checked,
    chosen,
    comparable,
    differences,
    kept_in,
    mistake_from,
    mistakes_of,
)
from tests.support.building import WHOLE, make

SAMPLE, SEED = 2 if WHOLE else 1, "1"
VISIBLE = sorted(ROOT.glob("tests/*/visible/*.py"))
MISTAKE = {
    "id": "1.1-x",
    "exercise": "1.1",
    "title": "X",
    "file": "boot/kernel.ld",
    "old": "KEEP(*(.multiboot))",
    "new": "",
    "shows": "magic",
}


def every_mistake() -> list[Mistake]:
    return [mistake for lesson in every_lesson() for mistake in mistakes_of(lesson)]


def test_each_mistake_applies_and_is_listed_once():
    names = [mistake.id for mistake in every_mistake()]
    assert len(names) == len(set(names))
    assert all(changed_files(mistake) for mistake in every_mistake())


def test_what_is_kept_belongs_to_a_mistake():
    kept = [(path, name) for path in sorted(GOLDEN.iterdir()) for name in kept_in(path)]
    shown = [each for each in every_mistake() if not each.silent]
    assert sorted(kept) == sorted((each.golden, each.id) for each in shown)


@pytest.mark.parametrize("lesson", every_lesson())
def test_half_of_the_mistakes_of_an_exercise_may_be_silent(lesson):
    for exercise in of_lesson(lesson):
        own = [each for each in mistakes_of(lesson) if each.exercise == exercise.id]
        silent = [each.id for each in own if each.silent]
        assert 2 * len(silent) <= len(own) + 1, f"{exercise.id} has too many silent: {silent}"


@pytest.mark.slow
@pytest.mark.parametrize("lesson", every_lesson())
def test_students_read_what_is_kept(lesson):
    make(f"LESSON={word_of(lesson)}", "image-disk")
    assert checked(chosen(lesson, sample=SAMPLE, seed=SEED), workers=1) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shows": ""}, "either"),
        ({"silent": "why"}, "either"),
        ({"caught": 1}, "unknown field caught"),
        ({"id": "2.1-x"}, "begins with"),
        ({"old": None, "new": None}, "changes nothing"),
    ],
)
def test_wrong_form_is_refused(change, words):
    table = {key: value for key, value in (MISTAKE | change).items() if value is not None}
    with pytest.raises(MistakeError, match=words):
        mistake_from(table)


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("tests/*/visible/*.py")), ids=lambda path: path.stem
)
def test_no_visible_test_has_an_assertion_without_a_message(path):
    tree = ast.parse(path.read_text())
    bare = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert) and not node.msg]
    assert not bare, f"{path.relative_to(ROOT)}, lines {bare}: say what was expected and seen"


def test_old_text_must_be_there_once():
    with pytest.raises(MistakeError, match="0 times"):
        changed_files(mistake_from(MISTAKE | {"old": "no such text"}))


def test_a_changed_include_is_compiled_where_it_is_included(tmp_path):
    make("LESSON=2", "image-disk")
    path = "kernel/cpu/trap_frame.inc"
    open_tree(2, {path: (ROOT / path).read_bytes()}, tmp_path / "tree")
    command = ["make", "-s", "LESSON=2", "build/lesson2/kernel.elf"]
    made = subprocess.run(
        command, cwd=tmp_path / "tree", capture_output=True, text=True, check=True
    )
    assert "kernel/cpu/trap_entry.asm" in made.stdout


def test_what_is_read_is_compared():
    shown, silent = MISTAKE | {"id": "1.1-checksum-forgets-flags"}, dict(MISTAKE, silent="why")
    del silent["shows"]
    assert "magic" in differences(mistake_from(shown), "make hint EX=1.1: something else")
    assert "all visible tests pass" in differences(mistake_from(shown), ALL_PASS)
    assert differences(mistake_from(silent), ALL_PASS) == ""
    assert "no longer silent" in differences(mistake_from(silent), "help:   make hint EX=1.1")


def test_addresses_and_lines_are_not_compared():
    text = "at 0xc0101234 kmain+0x12 (main.c:88), expected 0x10"
    assert comparable(text) == "at ADDRESS kmain+N (main.c:N), expected 0x10"


def test_pages_and_sizes_that_follow_the_kernel_are_not_compared():
    text = "expected frame 16322 (P W), seen frame 16323 (P); page 102, frame 12 (P)"
    assert comparable(text) == "expected frame N (P W), seen frame N (P); page 102, frame 12 (P)"
    text = "KiB that it had: expected 16384 to 32768, seen 7512; 3 pages: expected 3, seen 7"
    assert comparable(text).endswith("16384 to 32768, seen N; 3 pages: expected 3, seen 7")
