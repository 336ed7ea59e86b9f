"""What a lesson's handout promises of the whole kernel: the lines of a run."""

from __future__ import annotations

import re

import pytest

from labs.tools.grading.lab_words import guest_words
from labs.tools.machine.result import Outcome, Result

TOGETHER = "with all your exercises together"


def expect(result: Result, *lines: str, outcome: Outcome = Outcome.ENDED) -> None:
    """The run has these lines (regular expressions), in this order, and this end."""
    if line := missing(result.serial, lines):
        fail(f'{TOGETHER} there is no line "{line}"', result)
    if result.outcome is not outcome:
        fail(f"{TOGETHER} the run does not end ({outcome.value})", result)


def expect_said(said: str, *lines: str) -> None:
    """The same of what a machine on a leash has said."""
    if line := missing(said, lines):
        last = (said.strip() or "nothing").splitlines()[-1]
        pytest.fail(f'{TOGETHER} there is no line "{line}"; the last is: {last}', pytrace=False)


def missing(said: str, lines: tuple[str, ...]) -> str:
    """The first of the lines that does not come after those before it; empty without one."""
    text, place = said.replace("\r", ""), 0
    for line in lines:
        found = re.compile(f"^{line}", re.MULTILINE).search(text, place)
        if not found:
            return line
        place = found.end()
    return ""


def fail(words: str, result: Result) -> None:
    """Fails the test with what became of the machine."""
    pytest.fail(f"{words}: {guest_words(result)}", pytrace=False)
