"""`make replay` for a test that calls the exercise's functions on this computer: its last program
again, under gdb, with what it read.

gdb stops where one of the exercise's functions is called for the question that the test has found
wrong (Lab.judging), or for the first one if the test does not say. A sanitizer's error stops it,
too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from labs.tools.course.exercises import ROOT, Exercise, ExerciseError, by_id, regions
from labs.tools.debugging.debug import find_gdb, run_gdb
from labs.tools.grading.lab import HostRun

# A definition, from its first line up to the brace that ends it.
DEFINITION = re.compile(
    r"^(?!#)\w[\w *]*?\b(?P<name>\w+)\([^;{}]*\)[^;{}()]*\n\{\n.*?^\}", re.MULTILINE | re.DOTALL
)
STOP = "abort_on_error=1"  # so that gdb sees the place
MOST_NAMED = 6
HEADLINE = """\
replay: the test calls {functions} on this computer.
replay: {where}
replay: From there next, print, bt and finish are gdb's; continue goes on to the next call.
"""


def replay_on_host(
    run: HostRun, exercise: str, directory: Path, batch: Path | None = None, root: Path = ROOT
) -> int:
    """Opens gdb on the program; returns gdb's status. `batch`: commands that it runs instead of a
    person's. Raises DebugError."""
    functions = functions_of(exercise, root)
    names = [each.rpartition(":")[2] for each in functions]
    named = ", ".join([*names[:MOST_NAMED], *["..."][: len(functions) // (MOST_NAMED + 1)]])
    where = "It stops at the first of these calls: the test does not say which one is wrong."
    if run.question >= 0:
        where = f"It stops at the first call of question {run.question + 1}, the one that is wrong."
    print(HEADLINE.format(functions=named, where=where), flush=True)
    questions = directory / "questions"
    questions.write_bytes(run.read)
    gdb, _ = find_gdb()
    command = [gdb, "-nx", "-q", *commands(run, functions, questions, root)]
    return run_gdb([*command, "-batch", "-x", str(batch)] if batch else command, directory)


def commands(run: HostRun, functions: Sequence[str], questions: Path, root: Path) -> list[str]:
    """gdb's, up to the stop. A question is counted by a condition that is never true."""
    words = shlex.join(run.arguments)
    lines = [
        "set confirm off",
        "set breakpoint pending off",
        "set debuginfod enabled off",
        "handle SIGSEGV nostop noprint pass",  # of a driver's port accesses
        f"set environment ASAN_OPTIONS detect_leaks=0:{STOP}",
        f"set environment UBSAN_OPTIONS {STOP}",
        f"directory {root}",
        f"file {run.program}",
        f"set args {words} <{shlex.quote(str(questions))}{' >/dev/null' if run.asks else ''}",
        "set $asked = 0",
        *(["break question_begins if $asked++ < 0"] if run.question >= 0 else []),
        *(f"break {each} if $asked > {run.question}" for each in functions),
        "run",
    ]
    return [word for line in lines for word in ("-ex", line)]


def functions_of(exercise: str, root: Path = ROOT) -> list[str]:
    """The functions that the exercise's blanks are in, with their files, as gdb wants them. Where
    its marks are gone: all of its files but main."""
    try:
        known = by_id(exercise, root)
    except ExerciseError:
        return []
    texts = {path: (root / path).read_text() for path in known.files if path.endswith(".c")}
    marked = [f"{path}:{name}" for path, text in texts.items() for name in marked_in(text, known)]
    return marked or [
        f"{path}:{found['name']}"
        for path, text in texts.items()
        for found in DEFINITION.finditer(text)
        if found["name"] != "main"
    ]


def marked_in(text: str, exercise: Exercise) -> list[str]:
    """Those of a file: a blank is in a function, or has whole functions in it."""
    blanks = [region for region in regions(text) if region.exercise == exercise.id]
    return [
        found["name"]
        for found in DEFINITION.finditer(text)
        if any(found.start() < each.end and each.start < found.end() for each in blanks)
    ]
