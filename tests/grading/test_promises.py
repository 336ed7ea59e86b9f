"""Each sentence of an exercise has a mutant that breaks it, or a reason why none can."""

from __future__ import annotations

import pytest

from labs.tools.course.exercises import every_lesson, of_lesson
from labs.tools.proving.promises import NONE, promises_of, sentences
from labs.tools.proving.prove_mutants import file_of, read_mutants

EXERCISES = [each.id for lesson in every_lesson() for each in of_lesson(lesson)]


@pytest.mark.parametrize("exercise", EXERCISES)
def test_each_sentence(exercise):
    """The sentences are those of the comments, in their order, and the mutants are there."""
    told, promises = sentences(exercise), promises_of(exercise)
    new = [each for each in told if each not in promises]
    assert not new, f"which mutant of tests/mutants/{exercise}.toml breaks this, or why none? {new}"
    assert list(promises) == list(dict.fromkeys(told)), "these sentences are no more"
    names = {
        each.name.removeprefix(f"{exercise}-")
        for each in read_mutants(exercise, file_of(exercise).read_text())
    }
    for sentence, value in promises.items():
        if value.startswith(NONE):
            assert len(value.removeprefix(NONE).split()) > 2, f"{sentence}: why can there be none?"
        else:
            assert value.split() and not set(value.split()) - names, f"{sentence}: {value}"
