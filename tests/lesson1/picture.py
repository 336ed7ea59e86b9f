"""What a lesson's handout promises of the whole kernel: the lines of a run."""

from __future__ import annotations

import re

import pytest

from labs.tools.grading.lab_words import guest_words
from labs.tools.machine.result import Outcome, Result


def expect(result: Result, *lines: str, outcome: Outcome = Outcome.ENDED) -> None:
    """The run has these lines (regular expressions), in this order, and this end."""
    place = 0
    for line in lines:
        found = re.compile(f"^{line}", re.MULTILINE).search(result.serial.replace("\r", ""), place)
        if not found:
            fail(f'with all your exercises together there is no line "{line}"', result)
        place = found.end()
    if result.outcome is not outcome:
        fail(f"with all your exercises together the run does not end ({outcome.value})", result)


def fail(words: str, result: Result) -> None:
    """Fails the test with what became of the machine."""
    pytest.fail(f"{words}: {guest_words(result)}", pytrace=False)
