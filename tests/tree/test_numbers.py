"""Large numbers in handouts and decks come from somewhere: from another file of this tree (a table
that a command writes, a source, a test), from a dialogue that the tests repeat, from a calculation,
or from a command that numbers.toml names."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from labs.tools.course import reading

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("labs/*/README.md"), *ROOT.glob("slides/[ls]*.md")])
NUMBER = re.compile(r"(?<![\d.,x])\d{1,3}(?:,\d{3})+(?![\d,]*\d)")
DIALOGUE = re.compile(r"^```(?:console|gdb|text)\n.*?^```", re.MULTILINE | re.DOTALL)
ELSEWHERE = (
    *("labs/bench/*.md", "slides/figures.toml", "labs/**/*.toml", "labs/**/*.json", "labs/**/*.py"),
    *("labs/**/*.[ch]", "boot/*", "kernel/**/*.[ch]", "mm/*", "drivers/**/*.[ch]", "fs/**/*.[ch]"),
    *("user/**/*.[ch]", "tests/**/*.py", "tests/**/*.toml"),
)
KNOWN = tomllib.loads(Path(__file__).with_name("numbers.toml").read_text(encoding="utf-8"))
OURS = "test_numbers.py", "numbers.toml"
PRINTED = [number for numbers in KNOWN["printed"].values() for number in numbers]
COMMAND = re.compile(r"make (?:measure|run|lab|bench)\b|a published ")


def told(page: str) -> set[str]:
    """The large numbers of a page, without those of tables that `make tables` writes."""
    head, _, rest = page.partition(reading.BEGINNING)
    return set(NUMBER.findall(head + rest.partition(reading.END)[2]))


@cache
def elsewhere() -> set[str]:
    """All numbers of the other files, and of the pages' dialogues, without commas."""
    paths = {path for pattern in ELSEWHERE for path in ROOT.glob(pattern)}
    texts = [p.read_text(errors="replace") for p in paths if p.is_file() and p.name not in OURS]
    for page in PAGES:
        texts += DIALOGUE.findall(page.read_text(encoding="utf-8"))
    return set(re.findall(r"\d{4,}", re.sub(r"(?<=\d)[,_](?=\d{3})", "", "\n".join(texts))))


def without_source(page: str) -> list[str]:
    """The numbers of a page that come from nowhere."""
    known = KNOWN["calculated"].keys() | set(PRINTED)
    return sorted(n for n in told(page) if n.replace(",", "") not in elsewhere() and n not in known)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_each_number_comes_from_somewhere(page: Path) -> None:
    assert without_source(page.read_text(encoding="utf-8")) == [], "where do they come from?"


def test_a_number_from_nowhere_is_found() -> None:
    assert without_source("That takes 7,654,321 cycles, and 4,096 bytes.") == ["7,654,321"]


@pytest.mark.parametrize(("number", "how"), KNOWN["calculated"].items())
def test_calculations_are_right(number: str, how: str) -> None:
    assert re.fullmatch(r"[\d\s.e+*/()-]+", how)
    assert abs(eval(how) - int(number.replace(",", ""))) < 1, how


def test_what_is_named_is_told() -> None:
    """Each by a command that prints it, and none that no page has any more."""
    every = set().union(*(told(page.read_text(encoding="utf-8")) for page in PAGES))
    assert not {*KNOWN["calculated"], *PRINTED} - every
    assert all(COMMAND.match(command) for command in KNOWN["printed"])
