"""Who copied: a copy with other names and moved functions is found, and right solutions that were
written by themselves are not."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from labs.tools.cohort import similarity
from labs.tools.cohort.similarity import (
    lay_out_handout,
    overlap,
    parts_of,
    plain_name,
    works_of,
    written_part,
)
from labs.tools.course.exercises import ROOT, by_id, of_lesson
from labs.tools.course.submit import graded_files
from labs.tools.grading.graded_tree import handout
from labs.tools.machine.command import CommandError
from labs.tools.proving.prove_ways import ways_of

LESSON = 1
KEPT = (
    "bool break case char const continue default define double else endif enum equ extern false "
    "float global include long return section short signed sizeof static struct switch true "
    "undef union unsigned void while"
)
NAME = re.compile(rf"(?<![%\w.])(?!(?:{KEPT.replace(' ', '|')})\b)[a-z_]\w{{3,}}")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def two_ways() -> tuple[dict[str, str], dict[str, str]]:
    """The same parts of a lesson, as the reference has them and written in other ways: of each file
    what differs, all of it right."""
    reference: dict[str, str] = {}
    other: dict[str, str] = {}
    for way in ways_of(LESSON):
        for path, old, new in way.edits:
            reference[path] = reference.get(path, "") + old
            other[path] = other.get(path, "") + new
    return reference, other


def copied(texts: dict[str, str]) -> dict[str, str]:
    """Names are others, comments are gone, and functions are in the opposite order."""
    names: dict[str, str] = {}

    def another(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"my_{len(names)}")

    def disguised(path: str, text: str) -> str:
        if not path.endswith(".c"):
            labels = set(re.findall(r"^\.?(\w+):", text, re.MULTILINE))
            return re.sub(rf"\b({'|'.join(labels) or 'no label'})\b", another, text)
        functions = re.split(r"(?<=^\}\n)", COMMENT.sub("", text), flags=re.MULTILINE)
        return NAME.sub(another, "".join(reversed(functions)))

    return {path: disguised(path, text) for path, text in texts.items()}


def handed_in(output: Path, classes: dict[str, dict[str, str]]) -> None:
    """What make grade-class leaves."""
    for name, texts in classes.items():
        for path, text in texts.items():
            place = output / "work/files" / name / "files" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    (output / "work/students.json").write_text(json.dumps({name: name for name in classes}))


def start() -> dict[str, str]:
    """The handout, as it begins."""
    return {path: handout(each, path).decode() for each in of_lesson(LESSON) for path in each.files}


def test_a_copy_is_on_top_and_independent_solutions_are_not(tmp_path):
    pytest.importorskip("compare50", reason="compare50 is not installed")
    solved, own = two_ways()
    assert len(own) >= 5
    half = start() | {path: own[path] for path in by_id("1.6").files}
    handed_in(tmp_path / "now", {"anna": own, "ben": copied(own), "carla": solved, "dora": start()})
    handed_in(tmp_path / "last", {"eva": half, "fred": half})
    command = [sys.executable, "-m", "labs.tools.cohort.similarity", "--lesson=1"]
    command += [f"--output={tmp_path / 'now'}", f"--archive={tmp_path / 'last'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "now/similarity.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    pairs = {frozenset((row["first"], row["second"])): row for row in rows}
    shares = {pair: float(row["part of the first"]) for pair, row in pairs.items()}
    assert {rows[0]["first"], rows[0]["second"]} == {"anna", "ben"}
    assert shares[frozenset(("anna", "ben"))] > 0.7
    assert shares.get(frozenset(("anna", "carla")), 0) < 0.3
    assert not [pair for pair in pairs if "dora" in pair or pair == {"eva", "fred"}]
    page = (tmp_path / "now/similarity/1.html").read_text()
    assert "<mark>" in page and "anna and ben" in page
    assert "(archive)" in (tmp_path / "now/similarity.html").read_text()


def test_only_what_is_written_is_compared(tmp_path):
    text = (
        "a\n; your code, exercise 1.2 {\nmine\n; } exercise 1.2\nb\n"
        "; SOLUTION 1.2 {\nours\n; } SOLUTION 1.2\n"
    )
    assert written_part(text, by_id("1.2")) == "mine\n\nours\n"
    for whole in ("all of it\n", "; SOLUTION 1.2 {\nno end\n"):
        assert written_part(whole, by_id("1.2")) == whole
    names = lay_out_handout(LESSON, tmp_path / "x")
    assert len(names) == len(set(names)) >= 2 * len(graded_files(LESSON)) - 4


def test_parts_of_texts():
    assert list(parts_of("abcdef", [(1, 2), (4, 6)])) == [
        (False, "a"), (True, "b"), (False, "cd"), (True, "ef"), (False, ""),
    ]  # fmt: skip
    assert overlap([(0, 4), (6, 9)], [(2, 7)]) == 3
    assert plain_name("boot/kernel.ld") == "boot_kernel.c"


def test_a_class_that_is_nowhere_is_told():
    with pytest.raises(CommandError, match="OUTPUT=dir"):
        similarity.main(["--lesson=1", "--output="])


def test_a_class_that_is_not_graded_is_told(tmp_path):
    with pytest.raises(CommandError, match="make grade-class has not graded a class there"):
        works_of(LESSON, tmp_path, tmp_path)
