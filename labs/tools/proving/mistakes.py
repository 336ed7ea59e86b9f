"""`make mistakes`: what a student reads after a usual mistake, kept as text and compared.

    python -m labs.tools.proving.mistakes [--lesson 1] [--only PATTERN] [--renew]
        [--sample K [--seed S]] [--workers N]

tests/mistakes/lessonN.toml lists the mistakes. Each is put into the reference, and graded as
`make grade EX=...` does in a student's tree: the visible tests, with the advice. What that prints
is compared with what tests/mistakes/golden has of it, in a file for each exercise; --renew writes
it there (read it as a student would, then commit it). tests/mistakes/README.md describes the
fields. Exit status: 0 when all is as kept.
"""

from __future__ import annotations

import argparse
import difflib
import random
import re
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from labs.tools.course.exercises import (
    ROOT,
    Exercise,
    by_id,
    every_lesson,
    lesson_of,
    name_of,
    number_of,
    word_of,
)
from labs.tools.grading.grade import GradeError, build_reference
from labs.tools.grading.grade_report import scores_of
from labs.tools.grading.grade_words import ALL_PASS, own_report
from labs.tools.grading.graded_tree import handout, open_tree
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.test_run import WORKERS, TestResult, TestRunError, run_tests
from labs.tools.machine.command import A_COUNT, Options, in_a_line
from labs.tools.machine.work_folder import command_folder

DIRECTORY = ROOT / "tests/mistakes"
GOLDEN = DIRECTORY / "golden"
FIELDS = {"id", "exercise", "title", "file", "old", "new", "edit", "shows", "silent"}
FIELDS |= {"graded", "blank", "mode"}

# What differs between compilers and from change to change, although the message is the same. Which
# page the kernel gets, and how much a program can have, follows what the kernel has taken before.
VARYING = (
    (re.compile(r"(processor: running) .*"), r"\1 ..."),  # where in a loop it was stopped
    (re.compile("[\u2018\u2019]"), "'"),  # a compiler's, by the locale
    (re.compile(r"\b0x[0-9a-f]{8}\b(?= \w+\+0x)"), "ADDRESS"),
    (re.compile(r"\b0x[0c]01[0-9a-f]{5}\b"), "ADDRESS"),  # the kernel's
    (re.compile(r"\bframe \d{4,}(?= \()|\bframe \d+(?= was handed over)"), "frame N"),
    (re.compile(r"(?<=; DMA got )\d+"), "N"),
    (re.compile(r"(?<=array is in frames )\d+ to \d+"), "N to N"),
    (re.compile(r"(?<=expected PAGE_RESERVED \(0\), seen )\d+"), "N"),
    (re.compile(r"0x[0-9a-f]{8}(?=, where there is no memory)"), "ADDRESS"),
    (re.compile(r"\b0x[0-9a-f]3[0-9a-f]{6}(?=: no page is there)"), "ADDRESS"),  # of the last MiB
    (re.compile(r"(KiB that .*: expected \d+ to \d+, seen )\d+"), r"\1N"),
    (re.compile(r"(?<=CS:EIP )([0-9a-f]{4}):[0-9a-f]{8}"), r"\1:ADDRESS"),
    (re.compile(r"(?<=at offset )\d+(?= of the file)|(?<=kernel of )\d+(?= bytes)"), "N"),
    (re.compile(r"(?<=unmapped address )0x[0-9a-f]{8}"), "ADDRESS"),
    (re.compile(r"0x[0-9a-f]{8}(?=, where no code| in memory below 1 MiB)"), "ADDRESS"),
    (re.compile(r"(?<=expected ADDRESS, seen )0x[0-9a-f]+"), "ADDRESS"),
    (re.compile(r"(?<=error code )0x[0-9a-f]{3,}|(?<=DT entry )\d{3,}"), "N"),
    (re.compile(r"(?<=: entry )\d+(?= of the)"), "N"),
    (re.compile(r"(?<=\w)\+0x[0-9a-f]+"), "+N"),
    (re.compile(r"(?<=\.)(c|h|asm|ld):\d+(?::\d+)?"), r"\1:N"),
    (re.compile(r"([\w.]+ < [\w.]+)(?: < [\w.]+)+"), r"\1 < ..."),
)


NOT_WRAPPED = 10_000  # columns
HEADING = re.compile(r"^==== (\S+) ====\n", re.MULTILINE)  # of a mistake, in a golden file


class MistakeError(ValueError):
    """A mistake that is not as it should be; the text says how."""


@dataclass(frozen=True)
class Mistake:
    """A usual mistake. edits: file, old and new text of each change. graded: the exercises whose
    points are printed. blank: exercises that the student has not written. shows: a text that the
    student must read; silent: why none of the visible tests tells."""

    id: str
    exercise: str
    title: str
    edits: tuple[tuple[str, str, str], ...]
    graded: tuple[str, ...]
    blank: tuple[str, ...]
    shows: str
    silent: str
    mode: str

    @property
    def lesson(self) -> int:
        """The lesson of its exercise."""
        return lesson_of(self.exercise)

    @property
    def golden(self) -> Path:
        """The file with what the student reads, after this and the exercise's other mistakes."""
        return GOLDEN / f"{self.exercise}.txt"

    @property
    def exercises(self) -> list[Exercise]:
        """The exercises whose points are printed."""
        return [by_id(number) for number in self.graded]


def mistakes_of(lesson: int, directory: Path = DIRECTORY) -> list[Mistake]:
    """The mistakes of a lesson, in the order of the list. Raises MistakeError."""
    path = directory / f"{name_of(lesson)}.toml"
    if not path.exists():
        return []
    try:
        tables = tomllib.loads(path.read_text()).get("mistake", [])
    except tomllib.TOMLDecodeError as error:
        raise MistakeError(f"{path.name}: {error}") from error
    return [mistake_from(table) for table in tables]


def mistake_from(table: dict) -> Mistake:
    """A mistake of the list. Raises MistakeError."""
    name = table.get("id", "a mistake without id")
    if unknown := set(table) - FIELDS:
        raise MistakeError(f"{name}: unknown field {', '.join(sorted(unknown))}")
    if bool(table.get("shows")) == bool(table.get("silent")):
        raise MistakeError(f"{name}: give either `shows` or `silent`")
    try:
        edits = table.get("edit", [table] if "old" in table else [])
        mistake = Mistake(
            id=table["id"],
            exercise=table["exercise"],
            title=table["title"],
            edits=tuple((e.get("file", table.get("file")), e["old"], e["new"]) for e in edits),
            graded=tuple(table.get("graded", [table["exercise"]])),
            blank=tuple(table.get("blank", ())),
            shows=table.get("shows", ""),
            silent=table.get("silent", ""),
            mode=table.get("mode", "icount"),
        )
    except KeyError as error:
        raise MistakeError(f"{name}: the field {error} is missing") from error
    if not mistake.id.startswith(f"{mistake.exercise}-"):
        raise MistakeError(f"{name}: an id begins with its exercise, {mistake.exercise}-")
    if not mistake.edits and not mistake.blank:
        raise MistakeError(f"{name}: it changes nothing; give file, old and new, or `blank`")
    return mistake


def changed_files(mistake: Mistake) -> dict[str, bytes]:
    """The files of the student's tree that are not the reference's. Raises MistakeError when an
    edit does not apply."""
    files: dict[str, str] = {}
    for number in mistake.blank:
        for path in by_id(number).files:
            files[path] = handout(by_id(number), path).decode()
    for path, old, new in mistake.edits:
        text = files.get(path) or (ROOT / path).read_text()
        if text.count(old) != 1:
            count = text.count(old)
            raise MistakeError(f"{mistake.id}: the old text is {count} times in {path}, not once")
        files[path] = text.replace(old, new)
    return {path: text.encode() for path, text in files.items()}


# ---- running them -------------------------------------------------------------------------------


def printed(mistakes: Sequence[Mistake], workers: int = WORKERS) -> dict[str, str]:
    """What `make grade` prints for each mistake, by id; all of one lesson, whose reference is
    built. Raises MistakeError, TestRunError."""
    if not mistakes:
        return {}
    lesson = mistakes[0].lesson
    with command_folder("mistakes") as work:
        jobs = [job for each in mistakes for job in jobs_of(each, work)]
        results = run_tests(jobs, [f"tests/{name_of(lesson)}/visible"], workers)
    return {each.id: report_of(each, results) for each in mistakes}


def jobs_of(mistake: Mistake, work: Path) -> list[Job]:
    """Makes the student's tree, and a job for each exercise that is graded in it."""
    tree = work / mistake.id
    open_tree(mistake.lesson, changed_files(mistake), tree)
    modes = (mistake.mode,)
    return [
        Job(name=f"{mistake.id}:{number}", tree=str(tree), exercise=number, modes=modes)
        for number in mistake.graded
    ]


def report_of(mistake: Mistake, results: Sequence[TestResult]) -> str:
    """What the student reads, except that long lines are not wrapped."""
    own = [each for each in results if each.job.startswith(f"{mistake.id}:")]
    return own_report(scores_of(mistake.exercises, own), NOT_WRAPPED, str) + "\n"


def comparable(text: str) -> str:
    """A report without what varies: addresses after symbols, offsets, line numbers."""
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    return text


def differences(mistake: Mistake, text: str) -> str:
    """What is not as kept, in words; empty when all is as it should be."""
    text = comparable(text)
    again = f"read it, then: make mistakes ONLY={mistake.id} RENEW=yes"
    is_silent = ALL_PASS in text
    if mistake.silent:
        return "" if is_silent else f"it is no longer silent; {again}\n{text}"
    if is_silent:
        return "all visible tests pass; should it be silent, say why in `silent`"
    if mistake.shows not in text:
        return f"the student does not read {mistake.shows!r}, but\n{text}"
    kept = comparable(kept_in(mistake.golden).get(mistake.id, ""))
    if not kept:
        return f"it is not in {mistake.golden.relative_to(ROOT)}; {again}\n{text}"
    if kept == text:
        return ""
    lines = difflib.unified_diff(kept.splitlines(), text.splitlines(), "kept", "now", lineterm="")
    return f"the student reads something else; {again}\n" + "\n".join(lines)


def kept_in(path: Path) -> dict[str, str]:
    """What a file has: a heading for each mistake, and what the student reads."""
    texts = HEADING.split(path.read_text())[1:] if path.exists() else []
    return dict(zip(texts[::2], texts[1::2], strict=True))


def renew(mistake: Mistake, text: str) -> None:
    """Keeps what the student reads, in the order of names; nothing is kept of a silent one."""
    texts = kept_in(mistake.golden)
    texts.pop(mistake.id, None)
    if not mistake.silent:
        texts[mistake.id] = comparable(text)
    GOLDEN.mkdir(parents=True, exist_ok=True)
    mistake.golden.write_text("".join(f"==== {name} ====\n{texts[name]}" for name in sorted(texts)))


# ---- the command --------------------------------------------------------------------------------


def chosen(lesson: int, only: str = "", sample: int | None = None, seed: str = "") -> list[Mistake]:
    """The mistakes of a lesson whose ids fit, or a random sample of them. Raises MistakeError."""
    mistakes = [each for each in mistakes_of(lesson) if fnmatch(each.id, only or "*")]
    if sample is None or sample >= len(mistakes):
        return mistakes
    return random.Random(f"{seed}:{lesson}").sample(mistakes, sample)


def checked(mistakes: Sequence[Mistake], workers: int, is_new: bool = False) -> list[str]:
    """Grades the mistakes of one lesson, and renews what is kept if `is_new`. Returns what is not
    as it should be."""
    wrong = []
    for mistake, text in zip(mistakes, printed(mistakes, workers).values(), strict=True):
        if is_new:
            renew(mistake, text)
        if words := differences(mistake, text):
            wrong.append(f"mistake {mistake.id} ({mistake.title}): {words}")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    options = parser().parse_args(arguments)
    numbers = [options.lesson] if options.lesson else list(every_lesson())
    try:
        if not any(chosen(lesson, options.only) for lesson in numbers):
            raise MistakeError(f"ONLY={options.only}: no mistake has such a name")
        for lesson in numbers:
            mistakes = chosen(lesson, options.only, options.sample, options.seed)
            if not mistakes:
                continue
            build_reference(lesson)
            wrong = checked(mistakes, options.workers, options.renew)
            print("\n".join([*wrong, f"lesson {word_of(lesson)}: {len(mistakes)} mistakes tried"]))
            if wrong:
                return 1
    except (GradeError, MistakeError, TestRunError) as error:
        print(f"mistakes: {error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Options("make mistakes")
    made.add_argument("--lesson", type=number_of)
    made.add_argument("--only", default="", metavar="PATTERN", help="those with such ids")
    made.add_argument("--sample", type=A_COUNT, help="this many of each lesson")
    made.add_argument("--seed", default="", help="which of them")
    made.add_argument("--renew", action="store_true", help="keep what is printed now")
    made.add_argument("--workers", type=int, default=WORKERS)
    return made


if __name__ == "__main__":
    sys.exit(in_a_line("make mistakes", main))
