"""make exam: sheets and keys from the mutants."""

from __future__ import annotations

import re

import pytest

from labs.tools.cohort import exam
from labs.tools.course.exercises import every_lesson, name_of, of_lesson, word_of


def make(monkeypatch: pytest.MonkeyPatch, output, *words: str) -> dict[str, str]:
    """What the command writes, by name."""
    monkeypatch.setattr("sys.argv", ["exam", f"--output={output}", *words])
    assert exam.main() == 0
    return {path.name: path.read_text(encoding="utf-8") for path in output.iterdir()}


@pytest.mark.parametrize("lesson", [1, 4, 7])
def test_a_question_for_each_exercise(lesson: int) -> None:
    """The right answers are among the choices once, and the excerpt has the bug in it."""
    ids = {each.id for each in of_lesson(lesson)}
    asked = exam.questions(lesson, 2026, len(ids))
    assert {each.mutant.exercise for each in asked} == ids
    for each in asked:
        assert len(set(each.seen)) == len(set(each.fails)) == exam.CHOICES
        assert each.seen.count(each.mutant.title) == 1
        right, wrong = exam.changed(each.mutant)
        assert each.excerpt in "\n".join(wrong) and each.excerpt not in "\n".join(right)
        assert "SOLUTION" not in each.excerpt


def test_the_same_seed_gives_the_same_sheet(monkeypatch, tmp_path, capsys) -> None:
    words = ("--lesson=4", "--count=8")
    one, again, other = (
        make(monkeypatch, tmp_path / name, *words, f"--seed={seed}")
        for name, seed in (("one", 2026), ("again", 2026), ("other", 2027))
    )
    assert one == again
    assert sorted(one) == [f"lesson4-2026{e}" for e in ("-key.html", "-key.md", ".html", ".md")]
    assert one["lesson4-2026.md"] != other["lesson4-2027.md"]
    key, sheet = one["lesson4-2026-key.md"], one["lesson4-2026.md"]
    assert len(re.findall("^## ", sheet, re.MULTILINE)) == 8
    assert "tests/lesson4/hidden/" in key and "hidden" not in sheet
    assert "<main>" in one["lesson4-2026.html"] and 'lang="en"' in one["lesson4-2026.html"]


def test_in_chinese(monkeypatch, tmp_path) -> None:
    """The questions are; what bugs do and what tests check is told in English."""
    words = ("--lesson=storage", "--seed=1", "--count=2", "--language=zh_CN")
    made = make(monkeypatch, tmp_path / "zh", *words)
    assert "会出什么问题" in made["storage-1.md"] and 'lang="zh-CN"' in made["storage-1.html"]


def test_too_many(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(exam, "bugs", lambda _: [])
    with pytest.raises(exam.CommandError, match="COUNT=3: lesson4 has 0 bugs"):
        exam.questions(4, 1, 3)


def test_each_lesson_has_a_word() -> None:
    assert [word_of(n) for n in every_lesson()][-1] == name_of(max(every_lesson()))
