"""Graded tests ask for no name that a student could not know: each symbol that they look for is
given by the source around the blanks, or named in the exercise's text."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from labs.tools.course.exercises import ROOT, blank, load

ROOMS = ("boot", "kernel", "mm", "drivers", "fs", "labs", "user")
SUFFIXES = (".c", ".h", ".asm", ".inc", ".ld")
LOOKS = re.compile(
    r"\b(?:address|run_to|call|call64|symbols\.find|stopped|stopped_at|steps_to)"
    r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)|\bstop_at=\(([^)]*)\)"
)
TEXT = re.compile(r"\btext\([^()]*\)|\bb\"[^\"]*\"")
NAME = re.compile(r'(?<![=\w])"([a-z_]\w+)"')

# Looked at only where they are: the array of the source is used, or it is not.
OPTIONAL = {"first_stack"}


def names_in(text: str) -> set[str]:
    """The symbols that the code of a test looks for."""
    text = TEXT.sub("", text)
    places = (found[1] or found[2] or "" for found in LOOKS.finditer(text))
    return {name for place in places for name in NAME.findall(place)}


def test_names_are_seen():
    text = 'guest.run_to("a_b", goal="no"); guest.call(guest.address("c_d"), stop_at=("e_f",))'
    assert names_in(text) == {"a_b", "c_d", "e_f"}


@cache
def given() -> dict[str, str]:
    """The sources as students have them, by path, with every blank empty."""
    texts = {}
    for path in (path for room in ROOMS for path in sorted((ROOT / room).rglob("*"))):
        if path.suffix in SUFFIXES and path.is_file():
            place = str(path.relative_to(ROOT))
            texts[place] = path.read_text()
            for exercise in load():
                if place in exercise.files:
                    texts[place] = blank(texts[place], place, exercise)
    return texts


@cache
def words_of_tests() -> str:
    """The tests' own code for machines."""
    files = (path for path in (ROOT / "tests").rglob("*") if path.suffix in SUFFIXES)
    return "\n".join(path.read_text() for path in files)


def is_known(name: str) -> bool:
    """Whether a name is a test's own, is declared where no student writes, is global, or stands in
    an exercise's text. What is static may be left out, and is not in the kernel then."""
    word = re.compile(rf"\b{name}\b")
    hidden = re.compile(rf"^static [^\n;(]*\b{name}\b", re.MULTILINE)
    own = re.compile(rf"\b{name}\b\s*[([=;:\\]")
    if name in OPTIONAL or own.search(words_of_tests()):
        return True
    texts = [text for text in given().values() if word.search(text)]
    return any(not hidden.search(text) or is_named(name, text) for text in texts)


def is_named(name: str, text: str) -> bool:
    """Whether the comment of an exercise names it."""
    comments = re.findall(r"/\* EXERCISE.*?\*/|; EXERCISE.*?(?=\n\s*[^;\s])", text, re.DOTALL)
    return any(re.search(rf"\b{name}\b", comment) for comment in comments)


@pytest.mark.parametrize("lesson", [1, 2, 3, 4])
def test_names_are_given(lesson):
    files = sorted((ROOT / f"tests/lesson{lesson}").rglob("*.py"))
    wanted = {name: path for path in files for name in names_in(path.read_text())}
    assert wanted, "no test looks for a symbol"
    unknown = {name: Path(path).name for name, path in wanted.items() if not is_known(name)}
    assert not unknown, f"names that no student can know: {unknown}"
