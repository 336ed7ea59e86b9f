"""How a visible test says that it has failed: what was expected and what was seen, where, which
mistake it usually is, and what to type next.

with told("the timer of a sleep that ended early is not cancelled", "make hint EX=4.3"):
    expect("getpid returns", found, 1)

A failure within the block is told with these lines below it (labs/tools/grading/lab_words.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import NoReturn

import pytest

from labs.tools.grading.lab_words import MISSING, guest_details, guest_words
from labs.tools.machine.result import GuestFailure

INDENT = "  "


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
def told(usually: str | Sequence[str], then: str) -> Iterator[None]:
    """Adds to a failure within the block which mistakes it usually is, and what to type next. A
    blank that was reached stays alone."""
    mistakes = [usually] if isinstance(usually, str) else usually
    lines = [f"{INDENT}usually: {each}" for each in mistakes] + [f"{INDENT}next: {then}"]
    try:
        yield
    except (AssertionError, pytest.fail.Exception) as error:
        text = guest_text(error) if isinstance(error, GuestFailure) else str(error)
        if MISSING.search(text):
            raise
        raise pytest.fail.Exception(with_lines(text, lines), pytrace=False) from None


def guest_text(error: GuestFailure) -> str:
    """What became of a machine: a line, and all that there is to say below it."""
    return "\n".join([guest_words(error.result), *guest_details(error.result), str(error)])


def with_lines(text: str, lines: Sequence[str]) -> str:
    """A message with these lines below its first and those that belong to it."""
    first, *rest = text.splitlines() or ["it failed"]
    own = list(takewhile(lambda line: line.startswith(INDENT), rest))
    return "\n".join([first, *own, *lines, *rest[len(own) :]])
