"""Graded tests ask for no name that a student could not know: each symbol that they look for is
given by the source around the blanks, or named in the exercise's text. So is each member of a
structure that their C code uses, and its comment says what it holds."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from labs.tools.course.exercises import ROOT, blank, load
from tests.lesson4.support import FLAGS, tool

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
LINKERS = {"__bss_start", "_end"}  # made by the linker in every program


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
    if name in OPTIONAL | LINKERS or own.search(words_of_tests()):
        return True
    texts = [text for text in given().values() if name in text and word.search(text)]
    return any(not hidden.search(text) or is_named(name, text) for text in texts)


@cache
def exercises_in(text: str) -> list[str]:
    """The comments of exercises."""
    return re.findall(r"/\* EXERCISE.*?\*/|; EXERCISE.*?(?=\n\s*[^;\s])", text, re.DOTALL)


def is_named(name: str, text: str) -> bool:
    """Whether the comment of an exercise names it."""
    return any(re.search(rf"\b{name}\b", comment) for comment in exercises_in(text))


@cache
def functions() -> set[str]:
    """The functions and labels of the whole source, static ones and those of the blanks too."""
    begin = re.compile(r"^(?!#)[\w *]*?\b(\w+)\([^;{}]*\)[^;{}()]*\n\{|^(\w+):", re.MULTILINE)
    texts = ((ROOT / path).read_text() for path in given())
    return {found[1] or found[2] for text in texts for found in begin.finditer(text)}


def words_in(text: str) -> set[str]:
    """All strings of a test that are a function's name, wherever they are used."""
    constants = (each.value for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Constant))
    return functions().intersection(each for each in constants if isinstance(each, str))


@pytest.mark.parametrize("lesson", [1, 2, 3, 4])
def test_names_are_given(lesson):
    files = sorted((ROOT / f"tests/lesson{lesson}").rglob("*.py"))
    texts = {path: path.read_text() for path in files}
    wanted = {name: path for path in files for name in names_in(texts[path])}
    wanted |= {name: path for path in files for name in words_in(texts[path])}
    assert wanted, "no test looks for a symbol"
    unknown = {name: Path(path).name for name, path in wanted.items() if not is_known(name)}
    assert not unknown, f"names that no student can know: {unknown}"


# ---- members of structures, as the compiler sees them --------------------------------------------

SOURCES = [
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "tests").glob("lesson*/**/*.c"))
    if "/programs/" not in str(path)
]
FUNCTION = re.compile(r"^;; Function (\w+).*?\n(.*?)(?=^;; Function|\Z)", re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r"(?:->|\.)([a-z]\w*)")
FIELD = r"^\t+[^\n(]*\b{}\b(?:\[[^\n]*\])?(?:, [^\n;]*)?(?: : \d+)?;|^\t+[^\n]*\(\*{}\)\("


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory) -> Path:
    """The sources as students have them, in a folder."""
    folder = tmp_path_factory.mktemp("given")
    for place, text in given().items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text)
    return folder


def members_of(source: str, folder: Path, place: Path) -> set[str]:
    """The members that the functions of a test's file use. It must compile with the headers in
    `folder`."""
    command = [*tool("cc"), *FLAGS, f"-I{folder}", "-I.", "-c", source, "-o", str(place / "object")]
    command += [f"-fdump-tree-original={place / 'dump'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{source} needs what no student has:\n{done.stderr}"
    text = (ROOT / source).read_text()
    return {
        member
        for name, body in FUNCTION.findall((place / "dump").read_text())
        if re.search(rf"^\w[^\n;]*\b{name}\(", text, re.MULTILINE)
        for member in MEMBER.findall(body)
    }


def is_explained(member: str, texts: list[str]) -> bool:
    """Whether a comment says what a member is: its own, that above the lines that it is one of, one
    above its structure that names it, or an exercise's."""
    field = re.compile(FIELD.format(member, member), re.MULTILINE)
    for text in (text for text in texts if member in text):
        if is_named(member, text):
            return True
        for found in field.finditer(text):
            line = text[found.start() : text.index("\n", found.end() - 1)]
            if "/*" in line or is_headed(member, text[: found.start()].splitlines()):
                return True
    return False


def is_headed(member: str, lines: list[str]) -> bool:
    """Whether the comment above a member, or above its structure, is about it."""
    group = next((line for line in reversed(lines) if not is_plain(line)), "")
    if group.strip().endswith("*/") and group.strip().startswith(("/*", "*")):
        return True
    above = "\n".join(lines).rpartition("\nstruct ")[0].rpartition("\n\n")[2]
    return "*/" in above and bool(re.search(rf"\b{member}\b", above))


def is_plain(line: str) -> bool:
    """Whether a line declares a member, and no more."""
    return line.endswith(";") and "/*" not in line


@pytest.mark.parametrize("source", SOURCES)
def test_members_are_given(source, handed_out, tmp_path):
    own = re.sub(r"^#.*$", "", (ROOT / source).read_text(), flags=re.MULTILINE)
    texts = [*given().values(), words_of_tests()]
    unknown = {
        member
        for member in members_of(source, handed_out, tmp_path)
        if not is_explained(member, texts)
        and not re.search(FIELD.format(member, member), own, re.M)
    }
    assert not unknown, f"members that no text explains: {sorted(unknown)}"


def test_members_are_seen(handed_out, tmp_path):
    used = members_of("tests/lesson5/hidden/audit.c", handed_out, tmp_path)
    assert {"slabs", "lists", "state"} <= used
    used = members_of("tests/lesson5/memory/audit.c", handed_out, tmp_path)
    assert not used, "a header's functions count as the test's"
    texts = [
        "/* one */\nstruct a {\n\tint one;\n};\n\nstruct b {\n\tint two; /* it */\n\tint no;\n};"
    ]
    assert [is_explained(each, texts) for each in ("one", "two", "no")] == [True, True, False]
