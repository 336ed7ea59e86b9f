"""One wrong detail does not take a whole exercise: of the mutants that all visible tests pass each
keeps half of the hidden points, with the points that the tests have today. What mutants fail is in
tests/mutants/shares.txt, which `make shares` writes."""

from __future__ import annotations

import pytest

from labs.tools.course.exercises import every_lesson
from labs.tools.proving import prove_shares
from labs.tools.proving.prove_mutants import mutants_of
from labs.tools.proving.prove_shares import (
    Hidden,
    Known,
    checksum,
    measured,
    not_tried,
    read,
    share,
    too_little,
    write,
)

TESTS = {"a": Hidden(2, 4, True), "b": Hidden(1, 1, True), "c": Hidden(5, 2, False)}


@pytest.mark.parametrize("lesson", every_lesson())
def test_a_mutant_keeps_half(lesson):
    """Or a visible test tells: then it is not asked."""
    assert too_little(lesson, read()) == []


def test_what_is_kept_is_of_today():
    """Each line is that of a mutant as it is now."""
    now = {each.name: checksum(each) for lesson in every_lesson() for each in mutants_of(lesson)}
    old = [name for name, each in read().items() if now.get(name) != each.checksum]
    assert old == [], "make shares tries those that have changed, and forgets those that are gone"


def test_measured_exercises_are_measured():
    """Each mutant of theirs has a line."""
    assert measured() >= {"1.1", "3.1", "S8"}
    assert not_tried(read(), measured()) == [], "make shares tries the mutants that are new"


def test_an_exercise_stays_measured(tmp_path):
    """It becomes so with the last of its mutants; with a new one it is not forgotten."""
    names, path = [each.name for each in mutants_of(1) if each.exercise == "1.1"], tmp_path / "kept"
    known = {name: Known("0", None) for name in names}
    for few, are in ((names[1:], set()), (names, {"1.1"}), (names[1:], {"1.1"})):
        write({name: known[name] for name in few}, path)
        assert measured(path) == are
    assert not_tried(read(path), measured(path)) == names[:1]


@pytest.mark.parametrize(
    "failed, left",
    [({}, 1), ({"a": 1}, 15 / 16), ({"a": 4, "c": 1}, 3.5 / 8), ({"a": 4, "b": 1}, 0)],
)
def test_points_are_those_of_variants(failed, left):
    """Variants share a test's points; without a gate nothing is left."""
    assert share(TESTS, failed) == left


def test_too_little_is_told(monkeypatch, tmp_path):
    """What is below half, and that no visible test tells."""
    mutant = mutants_of(1)[0]
    tests = {mutant.exercise: TESTS}
    monkeypatch.setattr(prove_shares, "hidden_tests", lambda _: tests)
    for failed, words in (({"c": 2}, [f"{mutant.name} keeps 38%"]), ({"a": 4}, []), (None, [])):
        write({mutant.name: Known("0", failed)}, tmp_path / "shares")
        known = read(tmp_path / "shares")
        assert known == {mutant.name: Known("0", failed)}
        assert [each.partition(" (")[0] for each in too_little(1, known)] == words


def test_a_test_that_is_gone_is_an_error():
    """Then nobody knows what the mutant keeps."""
    with pytest.raises(KeyError):
        share(TESTS, {"gone": 1})
