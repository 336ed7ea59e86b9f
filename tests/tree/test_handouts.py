"""The handouts: they build, what they print is printed today, and what they tell to type works.

A fence `console` is a dialogue with the shell: `$ make ...`, and what comes out of it. A fence
`gdb` is a piece of the walk: `(gdb) ...`, and what gdb shows. In both, `...` stands for lines left
out. Addresses and sizes that follow the compiler are compared by their form only.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from labs.tools.course import reading
from labs.tools.course.exercises import of_lesson
from labs.tools.machine.bounded import run_within
from tests.support.building import make, shared_folder

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
LESSONS = (1, 2, 3, 4, 5, 6)
WITH_PROGRAMS = 3  # the first lesson whose kernel has files, and programs in them
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r"^```\{literalinclude\} (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GDB_PROMPT, SHELL_PROMPT = "(gdb) ", "$ "
SECONDS = 600
UNKNOWN = "<optimized out>"
LEFT_OUT = "..."

# Numbers that the text explains; others of their length follow the compiler.
EXPLAINED = {
    *(0x7C00, 0x8000, 0x7DFE, 0xE05B, 0xFFFFFFF0, 0x100000, 0xC0000000, 0xF7FFFFFF, 0x3FFFFF, 0),
    *(0x2BADB002, 0x1BADB002, 0xE4524FFB, 3, 0x1234, 0xFFFFFFFF, 0x3F8, 0x08000003, 0x7C05),
}


@dataclass(frozen=True)
class Step:
    """A command, and the lines that it shows."""

    command: str
    shows: tuple[str, ...]


@cache
def handout(lesson: int) -> str:
    return (ROOT / f"labs/lesson{lesson}/README.md").read_text()


def steps(lesson: int, language: str, prompt: str) -> list[Step]:
    """The commands of all fences of a language. A folded answer either repeats the commands before
    it, with what they show (each is one step), or goes on with further ones."""
    found: list[Step] = []
    asked = 0  # how many of the last ones have no answer yet
    for match in FENCE.finditer(handout(lesson)):
        if match[1] != language:
            continue
        head, *parts = re.split(rf"^{re.escape(prompt)}", match[2], flags=re.MULTILINE)
        assert not head, f"a fence begins with {head!r}, not with {prompt}"
        new = [Step(command, tuple(lines)) for command, *lines in map(lines_of, parts)]
        commands = [step.command for step in new]
        known = [step.command for step in found[len(found) - asked :]]
        if not is_folded(lesson, match.start()):
            found, asked = found + new, len(new)
        elif commands == known:
            found[len(found) - asked :], asked = new, 0
        else:
            assert commands[0] not in known, f"asked: {known}, answered: {commands}"
            found, asked = found + new, 0
    return found


def lines_of(part: str) -> list[str]:
    return part.rstrip("\n").split("\n")


def is_folded(lesson: int, place: int) -> bool:
    """Is this place of the handout in an answer that the reader opens?"""
    before = handout(lesson)[:place]
    return before.count("<details>") > before.count("</details>")


def built(lesson: int) -> Path:
    """The lesson's kernel and boot disk, and its programs; returns their directory."""
    programs = ["user-programs"] if lesson >= WITH_PROGRAMS else []
    make(f"LESSON={lesson}", "image-disk", "image-direct", *programs)
    return ROOT / "build" / f"lesson{lesson}"


def machine_options(lesson: int) -> list[str]:
    """What `make run` and `make gdb` give to their programs for this lesson."""
    options = ["--build", str(built(lesson))]
    return options + (["--user", "build/user/bin"] if lesson >= WITH_PROGRAMS else [])


def form(line: str) -> str:
    """The line without what follows the compiler or the host."""

    def number(match: re.Match[str]) -> str:
        return match[0] if int(match[1], 16) in EXPLAINED else "0x~"

    if not line.lstrip("| ").startswith(("memory:", "0x00", "0x0f", "probe")):
        line = re.sub(r"0x([0-9a-f]{4,})\b", number, line)
    line = re.sub(r"\b[0-9a-f]{8}\b", "~", line)
    line = re.sub(r"\+0x[0-9a-f]+|\+ \d+|ds:0x\w+", "+~", line)
    line = re.sub(r"^#\d+ +(0x~ in )?", "#~ ", line)  # compilers inline other functions
    line = re.sub(r"kernel of \d+ bytes|\b\d+ of \d+ KiB free|\d+ kHz", "~", line)
    line = re.sub(r"of /\S*/build/", "of build/", line)
    line = re.sub(r"^(\$\d+|  \w+)( = 0x)\w{3,}(,?)$", r"\1\2~\3", line)
    return line.rstrip()


def missing(shows: tuple[str, ...], output: str) -> str | None:
    """The first shown line that does not come in its order; there may be others between: gdb says
    more than a page should."""
    lines = iter([form(line) for line in output.splitlines()])
    wanted = [form(line) for line in shows if line != LEFT_OUT and line.strip()]
    return next((line for line in wanted if not any(fits(line, each) for each in lines)), None)


def fits(shown: str, line: str) -> bool:
    """Is this the shown line? One that ends in ... says only how it begins. A value that one
    compiler keeps track of, another does not."""
    pattern = re.escape(shown.removesuffix(LEFT_OUT).rstrip())
    pattern = pattern.replace(re.escape(UNKNOWN), "[^,)]+")
    return bool(re.fullmatch(pattern + (".*" if shown.endswith(LEFT_OUT) else ""), line))


# ---- as pages ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The handouts as Sphinx builds them; every warning is an error."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "labs"]

    def make_pages(place: Path) -> None:
        done = subprocess.run(
            [*command, str(place)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    return shared_folder(tmp_path_factory, "pages", make_pages)


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS)
def test_builds_as_a_page(pages: Path, lesson: int) -> None:
    """With its drawings and its excerpts."""
    page = (pages / f"lesson{lesson}/README.html").read_text()
    drawings = re.findall(r"!\[.+\]\((drawings/\w+\.svg)\)", handout(lesson))
    assert page.count("<img") >= len(drawings) >= 5
    assert page.count('class="highlight') >= len(INCLUDE.findall(handout(lesson))) >= 5


def test_translations_can_be_drawn_out(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "gettext", "labs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "boot sector" in (tmp_path / "lesson1/README.pot").read_text()


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
    for step in steps(lesson, "console", SHELL_PROMPT):
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
    shown = [line for step in steps(lesson, "gdb", GDB_PROMPT) for line in step.shows]
    drifting = [line for line in shown if re.search(r"\.(c|h|asm):\d", line)]
    assert not drifting, drifting


@pytest.mark.parametrize("lesson", LESSONS)
def test_gdb_walk(lesson: int, tmp_path: Path) -> None:
    """All the walk's commands in one session, as `make gdb` begins it."""
    walk = steps(lesson, "gdb", GDB_PROMPT)
    assert len(walk) >= 20
    mark = "@@ step {} @@"
    script = tmp_path / "walk.gdb"
    commands = (
        f"echo {mark.format(index)}\\n\n{step.command}\n" for index, step in enumerate(walk)
    )
    script.write_text("".join(commands) + f"echo {mark.format(len(walk))}\\n\n")
    command = [sys.executable, "-m", "labs.tools.debugging.debug", *machine_options(lesson)]
    shown, errors = shown_in_time([*command, "--batch", str(script)])
    for index, step in enumerate(walk):
        _, found, rest = shown.partition(mark.format(index) + "\n")
        assert found, f"the walk ends before {step.command}:\n{shown}{errors}"
        output = rest.partition(mark.format(index + 1))[0]
        line = missing(step.shows, output)
        assert line is None, f"(gdb) {step.command} does not show {line!r}:\n{output}"


def shown_in_time(command: list[str]) -> tuple[str, str]:
    """What a command prints on its two streams, or has printed when its time is over: the step
    at which it waits for ever is behind the last that it shows."""
    try:
        done = run_within(command, cwd=ROOT, capture_output=True, seconds=SECONDS, check=False)
        output = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b"", (late.stderr or b"") + b"(no end within the test's time)"
    shown, errors = (text.decode(errors="replace") for text in output)
    return shown, errors


@pytest.mark.parametrize("lesson", LESSONS)
def test_questions(lesson: int) -> None:
    questions = handout(lesson).partition("## Questions")[2]
    assert 8 <= len(re.findall(r"^\d+\. ", questions, re.MULTILINE)) <= 10
