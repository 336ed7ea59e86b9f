"""INSTRUCTOR.md: each command of it is one of make's, which calls a program with options that it
knows, and each file of data in it can be read."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from labs.tools.cohort import autograder, course, exam, grade_class, similarity
from labs.tools.cohort.rules import read_roster, read_rules
from labs.tools.course import submit
from labs.tools.course.exercises import ROOT

PAGE = (ROOT / "INSTRUCTOR.md").read_text()
COMMANDS = sorted(set(re.findall(r"^    (make .+)$", PAGE, re.MULTILINE)))
INLINE = sorted(set(re.findall(r"`(make (?!snakemake)[a-z-]+ [A-Z][^`]+)`", PAGE)))
"""All but make snakemake: that installs, and starts no program of ours."""
PROGRAMS = {
    "labs.tools.cohort.autograder": autograder,
    "labs.tools.cohort.course": course,
    "labs.tools.cohort.exam": exam,
    "labs.tools.cohort.grade_class": grade_class,
    "labs.tools.cohort.similarity": similarity,
    "labs.tools.course.submit": submit,
}


def recipe(command: str) -> list[str]:
    """The words of the last program that make would start."""
    done = subprocess.run(
        [*shlex.split(command), "-n"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.replace("\\\n", " ").splitlines()
    return shlex.split([line for line in lines if " -m labs." in line][-1])


@pytest.mark.parametrize("command", [*COMMANDS, *INLINE])
def test_each_command_is_known(command, monkeypatch):
    words = recipe(command)
    module, options = words[words.index("-m") + 1], words[words.index("-m") + 2 :]
    assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
    if module not in PROGRAMS:
        return
    text = (ROOT / f"{module.replace('.', '/')}.py").read_text()
    names = {each.partition("=")[0] for each in options if each.startswith("--")}
    assert names and all(f'"{name}"' in text for name in names), names
    for variable in re.findall(r"\b([A-Z]+)=", command):
        assert f"--{variable.lower()}" in names or variable == "LESSON", variable


def test_the_page_has_the_commands_of_a_class():
    assert {command.split()[1] for command in COMMANDS} >= {
        "course", "grade-class", "similarity", "autograder", "exam",
    }  # fmt: skip


def test_the_way_from_the_readme_is_short():
    """README and the first section, at 220 words a minute: less than five, which leaves five for
    the commands."""
    readme = (ROOT / "README.md").read_text()
    first = PAGE.partition("\n## ")[2].partition("\n## ")[0]
    assert "(INSTRUCTOR.md)" in readme
    for each in ("course", "grade-class", "similarity", "exam"):
        assert f"`make {each}" in first
    assert len(f"{readme} {first}".split()) <= 5 * 220


def blocks(first: str) -> str:
    """The block of the page that begins with this line."""
    text = PAGE[PAGE.index(f"    {first}\n") :]
    lines = text.split("\n")
    end = next(n for n, line in enumerate(lines) if line and not line.startswith("    "))
    return "\n".join(line[4:] for line in lines[:end])


def test_its_files_of_data_can_be_read(tmp_path):
    (tmp_path / "roster.csv").write_text(blocks("id,name,submission"))
    (tmp_path / "rules.toml").write_text(blocks("[lesson.1]"))
    students = read_roster(tmp_path / "roster.csv")
    assert [each.id for each in students] == ["anna", "ben"] and students[1].submission == "team7"
    rules = read_rules(tmp_path / "rules.toml", 1)
    assert (rules.late_days, rules.cost, rules.attempts, rules.counts) == (3, 10, 2, "last")
    assert rules.days_late("anna.zip") == 1 and rules.share("anna.zip", "anna") == 1
