"""tests/verdicts.toml: where the verdict of each exercise comes from."""

from __future__ import annotations

import re
import tomllib

import pytest

from labs.tools.course.exercises import ROOT, every_lesson, name_of, of_lesson

KINDS = ("calls", "screen", "code", "process")
IN_THE_GUEST = re.compile(r"\b(memory_code|threads)\(lab")
VERDICTS = tomllib.loads((ROOT / "tests/verdicts.toml").read_text())


@pytest.mark.parametrize("lesson", every_lesson())
def test_every_exercise_has_a_verdict(lesson):
    """Each says where it comes from, what can be reached of it, and why that does no harm."""
    own = VERDICTS[str(lesson)]
    assert list(own) == [each.id for each in of_lesson(lesson)]
    for exercise, entry in own.items():
        assert set(entry) == {"from", "reach", "harmless"}, f"{exercise}: nothing may stay open"
        assert set(entry["from"]) <= set(KINDS), exercise
        assert entry["from"] and entry["reach"] and entry["harmless"], exercise


@pytest.mark.parametrize("lesson", every_lesson())
def test_code_in_the_guest_is_admitted(lesson):
    """A test that puts code into the guest belongs to an exercise that says so, and no other."""
    own, seen = VERDICTS[str(lesson)], set()
    for path in (ROOT / "tests" / name_of(lesson)).glob("*/test_*.py"):
        text = path.read_text()
        if IN_THE_GUEST.search(text):
            seen |= set(re.findall(r'exercise\("([\w.]+)"', text)) & set(own)
    assert seen == {exercise for exercise, entry in own.items() if "code" in entry["from"]}
