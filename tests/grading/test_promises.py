"""Each sentence of an exercise, of a header about its functions, and each pitfall of its hints, has
a mutant that breaks it, or a reason why none can."""

from __future__ import annotations

import pytest

from labs.tools.course.exercises import every_lesson, of_lesson
from labs.tools.proving.promises import KINDS, NONE, OPEN, contracts, promises_of
from labs.tools.proving.prove_mutants import file_of, read_mutants

MOST_OPEN = 3
EXERCISES = [each.id for lesson in every_lesson() for each in of_lesson(lesson)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_each_sentence(exercise, kind):
    """The sentences are those of the comments, in their order, and the mutants are there."""
    told, promises = KINDS[kind](exercise), promises_of(exercise, kind)
    new = [each for each in told if each not in promises]
    assert not new, f"which mutant of tests/mutants/{exercise}.toml breaks this, or why none? {new}"
    assert list(promises) == list(dict.fromkeys(told)), "these sentences are no more"
    names = {
        each.name.removeprefix(f"{exercise}-")
        for each in read_mutants(exercise, file_of(exercise).read_text())
    }
    for sentence, value in promises.items():
        if value.startswith((NONE, OPEN)):
            assert len(value.split()) > 3, f"{sentence}: why can there be none?"
        else:
            assert value.split() and not set(value.split()) - names, f"{sentence}: {value}"


def test_what_is_open():
    """Bugs that no hidden test catches yet: their number only falls."""
    values = [
        value
        for exercise in EXERCISES
        for kind in KINDS
        for value in promises_of(exercise, kind).values()
    ]
    assert sum(value.startswith(OPEN) for value in values) <= MOST_OPEN


def test_headers_are_read():
    """A function, two below one comment, a pointer to one, and a member of a structure."""
    heads = {
        "4.3": "Starts a timer that does not run",
        "6.2": "The area that holds an address",
        "5.5": "Gives an object back; nothing for NULL.",
        "4.6": "Takes the next task out of the queue",
    }
    for exercise, head in heads.items():
        assert any(each.startswith(head) for each in contracts(exercise)), head
