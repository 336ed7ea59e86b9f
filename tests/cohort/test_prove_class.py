"""The trial of a class: what it hands in, and that it sees a difference."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from labs.tools.cohort.reader import read_here
from labs.tools.machine.command import CommandError
from labs.tools.proving import prove_class
from labs.tools.proving.prove_class import (
    FOLDERS,
    PACKINGS,
    command,
    done_in,
    graded,
    hand_in,
    killed_at,
    same,
)

REFUSED = {"cut.tgz", "bomb.tgz", "empty.zip", "other.rar", "essay.zip"}


def test_each_way_to_hand_in_is_taken_or_refused(tmp_path, monkeypatch):
    """The gigabyte is a megabyte here; what refuses it is no longer a gigabyte, either."""
    monkeypatch.setattr(prove_class, "BOMB", 1 << 24)
    monkeypatch.setattr("labs.tools.cohort.entries.MOST_UNPACKED", 1 << 24)
    submissions, seen = tmp_path / "in", {}
    submissions.mkdir()
    for number in range(len(PACKINGS) + len(FOLDERS)):
        packing = hand_in(1, number, "1", submissions, tmp_path / "made")
        (place,) = submissions.glob(f"s{number:03}-*")
        seen[packing] = read_here(place, 1, tmp_path)
        assert bool(seen[packing].refusal) == (packing in REFUSED), (packing, seen[packing])
    assert seen.keys() == {*PACKINGS, *FOLDERS}
    assert len({seen[packing].refusal for packing in REFUSED}) == len(REFUSED)


WRITES = """
import sys, time, pathlib
results = pathlib.Path(sys.argv[1], "work/results")
results.mkdir(parents=True, exist_ok=True)
for name in "abc":
    (results / (name + ".json")).write_text("")
    (results / (".d.json." + name)).write_text("")
    time.sleep(30 * (name == "b"))
"""


def test_a_class_is_killed_when_so_many_are_done(tmp_path):
    words = [sys.executable, "-c", WRITES, tmp_path]
    assert killed_at(words, tmp_path, 2) and done_in(tmp_path) == 2
    assert not killed_at([sys.executable, "-c", ""], tmp_path, 3)


def test_a_class_has_these_grades():
    options = SimpleNamespace(lesson=1, jobs=3)
    words = command(options, Path("in"), Path("out"))
    assert words[1:3] == ["-m", "labs.tools.cohort.grade_class"]
    assert words[3:] == ["--lesson=1", "--submissions=in", "--output=out", "--jobs=3"]
    with pytest.raises(CommandError, match="the class has no grades: no such class"):
        graded([sys.executable, "-c", "import sys; sys.exit('no such class')"])


def test_a_difference_is_seen(tmp_path):
    for name, words in (("a", "x"), ("b", "x"), ("c", "y")):
        (tmp_path / name / "work").mkdir(parents=True)
        (tmp_path / name / "grades.csv").write_text(words)
        (tmp_path / name / "work/cost").write_text(name)
    assert same(tmp_path / "a", tmp_path / "b") == []
    assert same(tmp_path / "a", tmp_path / "c") == ["grades.csv"]


@pytest.mark.parametrize("words", [["--count=0"]])
def test_what_cannot_be_tried_is_told(words):
    program = [sys.executable, "-m", "labs.tools.proving.prove_class", *words]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and len(done.stderr.splitlines()) == 1
