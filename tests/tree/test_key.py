"""The instructor's key has an answer to each question of the handouts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KEY = (ROOT / "INSTRUCTOR-KEY.md").read_text()
LESSONS = (1, 2, 3, 4, 5, 6)


def section(text: str, title: str) -> str:
    """What is between a title and the next one of its level or above."""
    return re.split(r"\n#{1,2} ", text.partition(f"## {title}\n")[2])[0]


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]


@pytest.mark.parametrize("lesson", LESSONS)
def test_an_answer_for_each_question(lesson: int) -> None:
    asked = numbers(section((ROOT / f"labs/lesson{lesson}/README.md").read_text(), "Questions"))
    assert numbers(section(KEY, f"Lesson {lesson}")) == asked != []


def test_an_answer_for_each_question_of_the_storage_lab() -> None:
    asked = numbers(section((ROOT / "labs/storage/README.md").read_text(), "Explain"))
    assert numbers(section(KEY, "The storage lab: *Explain*")) == asked != []


def test_questions_to_ask_aloud() -> None:
    rows = re.findall(r"^\| (\d) \|", section(KEY, "To ask aloud"), re.MULTILINE)
    assert rows == [str(lesson) for lesson in LESSONS for _ in range(4)]
