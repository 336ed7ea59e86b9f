"""How a visible test says that it has failed: what was expected and what was seen, where, which
mistake it usually is, and what to type next.

with told("the timer of a sleep that ended early is not cancelled", "make hint EX=4.3"):
    expect("getpid returns", found, 1)

A failure within the block is told with these lines below it (labs/tools/grading/lab_words.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import NoReturn

import pytest

from labs.tools.grading.lab_words import MISSING, guest_details, guest_words
from labs.tools.machine.result import GuestFailure

INDENT = "  "


@dataclass(frozen=True)
class Usual:
    """A usual mistake, and the pattern of the messages that point to it."""

    pattern: str
    mistake: str

    def fits(self, message: str) -> bool:
        """Whether a message points to it."""
        return re.search(self.pattern, message) is not None


def expect(what: str, seen: object, expected: object, *where: str) -> None:
    """Fails unless what was seen is what was expected. `where`: places and names that help."""
    if seen != expected:
        fail(f"{what}: expected {expected}, seen {seen}", *where)


def require(holds: object, message: str, *where: str) -> None:
    """Fails with a message unless something holds."""
    if not holds:
        fail(message, *where)


def fail(message: str, *where: str) -> NoReturn:
    """Fails with a message; `where` is told below it."""
    pytest.fail("\n".join([message, *(f"{INDENT}where: {each}" for each in where)]), pytrace=False)


@contextmanager
def told(usually: str | Usual | Sequence[str | Usual], then: str) -> Iterator[None]:
    """Adds to a failure within the block which mistakes it usually is, and what to type next. Of
    those with a pattern only the ones whose pattern is found in the message are told, and then no
    other. A blank that was reached stays alone."""
    try:
        yield
    except (AssertionError, LookupError, pytest.fail.Exception) as error:
        text = guest_text(error) if isinstance(error, GuestFailure) else str(error)
        if MISSING.search(text):
            raise
        lines = [f"{INDENT}usually: {each}" for each in fitting(usually, text)]
        message = with_lines(text, [*lines, f"{INDENT}next: {then}"])
        raise pytest.fail.Exception(message, pytrace=False) from None


def fitting(usually: str | Usual | Sequence[str | Usual], text: str) -> list[str]:
    """The mistakes that a message points to."""
    known = [usually] if isinstance(usually, str | Usual) else usually
    message = "\n".join(own_lines(text))
    found = [each.mistake for each in known if isinstance(each, Usual) and each.fits(message)]
    return found or [each for each in known if isinstance(each, str)]


def guest_text(error: GuestFailure) -> str:
    """What became of a machine: a line, and all that there is to say below it."""
    return "\n".join([guest_words(error.result), *guest_details(error.result), str(error)])


def with_lines(text: str, lines: Sequence[str]) -> str:
    """A message with these lines below its first and those that belong to it."""
    own = own_lines(text)
    return "\n".join([*own, *lines, *text.splitlines()[len(own) :]])


def own_lines(text: str) -> list[str]:
    """The first line of a message, and those that belong to it."""
    first, *rest = text.splitlines() or ["it failed"]
    return [first, *takewhile(lambda line: line.startswith(INDENT), rest)]
