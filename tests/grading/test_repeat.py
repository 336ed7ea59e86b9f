"""A half-finished submission gets the same report each time: labs/tools/proving/prove_repeat.py."""

from __future__ import annotations

import os

import pytest

from labs.tools.grading.grade import build_reference
from labs.tools.proving.prove_repeat import BLANK, FINISHED, differences, draft, drafts, reports


def test_drafts_are_drawn_by_their_seed():
    made = drafts(4, 30, "seed", 6)
    assert made == drafts(4, 30, "seed", 6)
    assert made != drafts(4, 30, "other", 6)
    parts = {part for each in made for part in each.parts.values()}
    assert {FINISHED, BLANK} < parts
    assert all(len(each.exercises) == 6 for each in made)


def test_a_difference_is_found():
    assert differences(["a\nb", "a\nb", "a\nb"]) == []
    assert differences(["a\nb", "a\nb", "a\nc"]) == ["@@ -2 +2 @@", "-b", "+c"]


@pytest.mark.slow
def test_reports_agree_idle_and_busy(one_rate):
    """One of lesson 1, with a mistake and graded in seconds; make prove REPEAT=n tries more."""
    lesson, number = 1, 2
    build_reference(lesson)
    made = draft(lesson, number, "2010", 1)
    load = "PYTEST_XDIST_WORKER" not in os.environ  # else other tests are that
    assert differences(list(reports(made, 2, int(load), "2010"))) == [], str(made)
