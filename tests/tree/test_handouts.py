"""The handouts: they build, what they print is printed today, and what they tell to type works
(tests/support/dialogues.py)."""

from __future__ import annotations

import re
import shlex
import sys
from functools import cache
from pathlib import Path

import pytest

from labs.tools.course import reading
from labs.tools.course.exercises import of_lesson
from labs.tools.machine.bounded import run_within
from tests.support.building import make
from tests.support.dialogues import GDB_PROMPT, SECONDS, SHELL_PROMPT, missing, steps, walked

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
LESSONS = (1, 2, 3, 4, 5, 6)
WITH_PROGRAMS = 3  # the first lesson whose kernel has files, and programs in them
INCLUDE = re.compile(r"^```\{literalinclude\} (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@cache
def handout(lesson: int) -> str:
    return (ROOT / f"labs/lesson{lesson}/README.md").read_text()


def built(lesson: int) -> Path:
    """The lesson's kernel and boot disk, and its programs; returns their directory."""
    programs = ["user-programs"] if lesson >= WITH_PROGRAMS else []
    make(f"LESSON={lesson}", "image-disk", "image-direct", *programs)
    return ROOT / "build" / f"lesson{lesson}"


def machine_options(lesson: int) -> list[str]:
    """What `make run` and `make gdb` give to their programs for this lesson."""
    options = ["--build", str(built(lesson))]
    return options + (["--user", "build/user/bin"] if lesson >= WITH_PROGRAMS else [])


# ---- as pages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", LESSONS)
def test_drawings_are_there_and_used(lesson: int) -> None:
    named = set(re.findall(r"\]\(drawings/(\w+\.svg)\)", handout(lesson)))
    assert named == {path.name for path in (ROOT / f"labs/lesson{lesson}/drawings").iterdir()}


def excerpt(lesson: int, path: str, options: str) -> tuple[Path, int, int]:
    """File, first line and end of an excerpt, counted from 0."""
    file = (ROOT / f"labs/lesson{lesson}" / path).resolve()
    lines = file.read_text().split("\n")
    anchors = {name: shlex.split(value)[0] for name, value in re.findall(r":(.+?): (.+)", options)}
    start = next(i for i, line in enumerate(lines) if anchors["start-at"] in line)
    for name, beyond in (("end-at", 1), ("end-before", 0)):
        if name in anchors:
            end = next(i for i in range(start + 1, len(lines)) if anchors[name] in lines[i])
            return file, start, end + beyond
    return file, start, len(lines)


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_excerpt_shows_a_solution(lesson: int) -> None:
    """In a student's tree the excerpts must be there, and nowhere may they give an answer away."""
    for path, options in INCLUDE.findall(handout(lesson)):
        file, start, end = excerpt(lesson, path, options)
        lines = file.read_text().split("\n")
        opened = sum("SOLUTION" in line and "{" in line for line in lines[:start])
        closed = sum("} SOLUTION" in line for line in lines[:start])
        assert opened == closed, f"{path}:{start + 1} begins inside a solution"
        assert not any("SOLUTION" in line for line in lines[start:end]), f"{path}:{start + 1}"


# ---- what is told --------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", LESSONS)
def test_exercises_are_those_of_the_table(lesson: int) -> None:
    """Number, title, points and files are those of labs/exercises.toml."""
    rows = re.findall(
        r"^\| (\d\.\d) (.+?) \| (\d+) \| .+? \| (.+?) \|", handout(lesson), re.MULTILINE
    )
    told = [(n, title, int(p), set(re.findall(r"`(.+?)`", files))) for n, title, p, files in rows]
    known = of_lesson(lesson)
    assert told == [(each.id, each.title, each.points, set(each.files)) for each in known]


@pytest.mark.parametrize("lesson", LESSONS)
def test_make_knows_every_command(lesson: int) -> None:
    """Each target that the handout names is one of the Makefile's (or of its author's part)."""
    rules = (ROOT / "Makefile").read_text()
    head, _, rest = handout(lesson).partition(reading.BEGINNING)  # what files say is not typed
    written = head + rest.partition(reading.END)[2]
    for text in re.findall(r"make ((?:\w+=\S+ )*)([a-z-]+)", written):
        assert re.search(rf"^{text[1]}:", rules, re.MULTILINE), f"make {' '.join(text)}"


@pytest.mark.parametrize("lesson", LESSONS)
def test_console_shows_what_is_printed_today(lesson: int) -> None:
    for step in steps(handout(lesson), "console", SHELL_PROMPT):
        words = shlex.split(step.command)
        if not step.shows or words[-1] == "measure":
            continue
        settings = dict(word.split("=", 1) for word in words if "=" in word)
        assert words[0] == "make" and "run" in words, f"how shall {step.command} be checked?"
        command = [sys.executable, "-m", "labs.tools.machine.run", *machine_options(lesson)]
        command += ["--boot", settings.get("BOOT", "disk"), "--script", settings["SCRIPT"]]
        done = run_within(
            command, cwd=ROOT, capture_output=True, text=True, seconds=SECONDS, check=False
        )
        line = missing(step.shows, done.stdout)
        assert line is None, f"{step.command} does not show {line!r}:\n{done.stdout}"


@pytest.mark.parametrize("lesson", LESSONS)
def test_walks_name_no_source_lines(lesson: int) -> None:
    """A file's name and ...: the number is another one after each edit above that line."""
    shown = [line for step in steps(handout(lesson), "gdb", GDB_PROMPT) for line in step.shows]
    drifting = [line for line in shown if re.search(r"\.(c|h|asm):\d", line)]
    assert not drifting, drifting


@pytest.mark.parametrize("lesson", LESSONS)
def test_gdb_walk(lesson: int, tmp_path: Path) -> None:
    """All the walk's commands in one session, as `make gdb` begins it."""
    walk = steps(handout(lesson), "gdb", GDB_PROMPT)
    assert len(walk) >= 20
    walked(
        [sys.executable, "-m", "labs.tools.debugging.debug", *machine_options(lesson)],
        walk,
        tmp_path,
    )


@pytest.mark.parametrize("lesson", LESSONS)
def test_questions(lesson: int) -> None:
    questions = handout(lesson).partition("## Questions")[2]
    assert 8 <= len(re.findall(r"^\d+\. ", questions, re.MULTILINE)) <= 10
