"""What a student reads after `make grade`: the points, why some are missing, what to type next."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence

from labs.tools.course.exercises import ID, name_of, word_of
from labs.tools.grading.grade_report import Score, table
from labs.tools.grading.lab_plan import MODES
from labs.tools.grading.lab_words import DOES_NOT_BUILD, MISSING, NOT_LOADED
from labs.tools.grading.test_run import TestResult
from labs.tools.machine.language import told as in_language

WIDTH = 100  # columns
TESTS_SHOWN = 4  # of an exercise
ALL_PASS = "All visible tests pass. The graders ask more: read the exercises once again."
NO_MACHINE = (DOES_NOT_BUILD, NOT_LOADED)
NUMBER = re.compile(ID)
ENDS = re.compile(r"the (?:machine (?:ended|does not)|kernel panicked)")
VALUE = re.compile(r"\b(?:0x[0-9a-f]+|[0-9]+)\b")
GOAL = re.compile(r"(?<=reach ).*?(?=:)|(?<=reached ).*?(?=;)")


def own_report(
    scores: Sequence[Score], width: int = WIDTH, say: Callable[[str], str] = in_language
) -> str:
    """The points of the visible tests, and what to do next. What fails in several exercises for one
    reason is told once. `say` gives a line in the reader's language."""
    parts, told = [table(scores, say)], set[str]()
    if errors := build_errors(scores):
        parts.append(build_words(errors, scores[0].exercise.lesson))
    for score in scores:
        if not score.is_full and (lines := list(advice(score, scores, told))):
            title = f"{score.exercise.id} {say(score.exercise.title)}"
            parts.append("\n".join([title, *(f"  {line}" for line in lines)]))
    text = "\n\n".join(parts if len(parts) > 1 else [*parts, ALL_PASS])
    lines = (say(line) for line in text.splitlines())
    return "\n".join(wrapped(line, width) for line in lines)


def wrapped(line: str, width: int) -> str:
    """A line that is not too wide; what it is broken into is further right."""
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    options = {"break_long_words": False, "break_on_hyphens": False}
    return "\n".join(textwrap.wrap(line, width, subsequent_indent=indent, **options))


# ---- what does not build ------------------------------------------------------------------------


def build_errors(scores: Sequence[Score]) -> list[str]:
    """What the compiler and the linker said, each once."""
    words = (first_line(test) for score in scores for test in score.failed)
    return list(dict.fromkeys(each for each in words if each.startswith(DOES_NOT_BUILD)))


def build_words(errors: Sequence[str], lesson: int) -> str:
    """The same for a student. The kernel is one program, which the tests of nearly all exercises
    need; a program of user/ or labs/ is built for its own exercise."""
    said = [each.removeprefix(DOES_NOT_BUILD).lstrip(": ") for each in errors]
    is_program = all(each.startswith(("user/", "labs/")) for each in said)
    what = "A program does not build" if is_program else "The kernel does not build"
    lines = [f"{what}, and {'its' if is_program else 'nearly all'} tests need it:"]
    lines += [f"  {each}" for each in said]
    target = "user-programs" if all(each.startswith("user/") for each in said) else "image-disk"
    how = f"; make LESSON={word_of(lesson)} {target} shows all that the compiler says"
    if any(each.startswith("labs/") for each in said):
        how = ""
    return "\n".join([*lines, f"  next:   fix that first{how}"])


# ---- an exercise --------------------------------------------------------------------------------


def advice(score: Score, scores: Sequence[Score], told: set[str]) -> Iterator[str]:
    """What failed, and what helps. `told` has what was said before, and gets what is said here. An
    exercise that fails because the kernel does not build needs no words of its own."""
    number = score.exercise.id
    failed = [test for test in score.failed if not first_line(test).startswith(DOES_NOT_BUILD)]
    if not failed:
        return
    if number in missing_in(failed):
        yield f"not written yet: labs/{name_of(score.exercise.lesson)}/README.md describes it"
    yield from needs_words(score, scores, failed)
    shown = [test for test in failed if is_news(test, told)]
    for test in shown[:TESTS_SHOWN]:
        first, *below = test.words.splitlines()
        yield f"{test.name}: {first}"
        yield from below
    if len(shown) > TESTS_SHOWN:
        yield f"... and {len(shown) - TESTS_SHOWN} more"
    if score.exercise.hints:
        yield f"help:   make hint EX={number}"
    yield from replay_words(failed)


def first_line(test: TestResult) -> str:
    """What a test says of its failure, without details."""
    return test.words.partition("\n")[0]


def is_news(test: TestResult, told: set[str]) -> bool:
    """Whether a test says what no other has said."""
    words = first_line(test)
    if kind_of(words) in told or words.startswith("not run: it") or MISSING.search(words):
        return False
    told.add(kind_of(words))
    return True


def kind_of(words: str) -> str:
    """What failures of one kind have in common: where a machine has ended or hangs, numbers and the
    place where the test wanted to go are left out. One mistake usually explains all of them."""
    return VALUE.sub("N", GOAL.sub("", words)) if ENDS.match(words) else words


def missing_in(tests: Sequence[TestResult]) -> list[str]:
    """The exercises that are not written, as the tests have found out."""
    found = (MISSING.search(first_line(test)) for test in tests)
    return list(dict.fromkeys(NUMBER.search(each[0])[0] for each in found if each))


def needs_words(score: Score, scores: Sequence[Score], failed: Sequence[TestResult]) -> list[str]:
    """Which exercises come first: those that the kernel has named, or else those that this one is
    built on and that do not pass."""
    own = score.exercise
    named = [number for number in missing_in(failed) if number != own.id]
    if named:
        return [f"{own.id} needs {listed(named)}, not written yet: begin there"]
    wanting = [s.exercise.id for s in scores if s.exercise.id in own.needs and not s.is_full]
    if not wanting or own.id in missing_in(failed):
        return []
    verb = "does" if len(wanting) == 1 else "do"
    return [f"{own.id} needs {listed(wanting)}, which {verb} not pass yet: begin there"]


def listed(numbers: Sequence[str]) -> str:
    """Exercises in a sentence."""
    return " and ".join(filter(None, [", ".join(numbers[:-1]), numbers[-1]]))


def replay_words(failed: Sequence[TestResult]) -> list[str]:
    """The command that shows a failed test in gdb; not for one without a machine or a program to
    show, because its code is not written, or because the kernel does not build or is not loaded."""
    for test in failed:
        words, is_shown = first_line(test), test.mode in MODES or test.program
        if is_shown and not words.startswith(NO_MACHINE) and not MISSING.search(words):
            mode = f" MODE={test.mode}" if test.mode in MODES[1:] else ""
            return [f"replay: make replay TEST={test.name}{mode}"]
    return []
