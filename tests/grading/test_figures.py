"""What hidden tests ask in instructions is in the text that a student reads: no solution loses
points by a figure that nobody could know."""

from __future__ import annotations

import re

import pytest

from tests.support.building import ROOT

# By test and constant: the words of the text, which allow so many instructions; or why it has none.
FIGURES = {
    "lesson1/hidden/test_backtrace.py STEPS": "At most 220 instructions to find the start",
    "lesson1/hidden/test_entry.py FIRST_STEPS": "none: in words, in the exercise's comment",
    "lesson2/hidden/test_interrupts.py WAY_BACK": "none: many times what a solution needs",
    "lesson2/hidden/test_protected_mode.py PAST_FAR_JUMP": "none: the manual says that it is next",
    "lesson3/hidden/test_fast_gate.py BUDGET": "At most 125 instructions for `getpid`",
    "lesson3/hidden/test_gate.py BUDGET": "At most 80 instructions for `getpid`",
    "lesson3/hidden/test_trace.py BUDGET": "At most 600 instructions for `getpid`",
    "lesson3/hidden/test_user_memory.py PAGE_BUDGET": "At most 1,100 instructions for a page",
    "lesson4/hidden/test_preemption.py LONGEST": "none: of a thread of the test's own",
    "lesson4/hidden/test_schedule.py YIELD_BUDGET": "At most 300 instructions from one thread's",
    "lesson4/hidden/test_schedule.py SWITCH_BUDGET": "at most 120 of them from task_load on",
    "lesson5/hidden/test_buddy.py MOST_INSTRUCTIONS": "At most 40 instructions without a split",
    "lesson5/hidden/test_buddy.py MORE_EACH": "and 40 more for each",
    "lesson5/hidden/test_buddy.py OF_A_CALL": "none: it is added to what the text allows",
    "lesson5/hidden/test_kmalloc.py BUDGET": "At most 60 instructions for kmalloc and kfree",
    "lesson6/hidden/test_areas.py MOST_SEARCH": "in at most 500 instructions",
    "lesson6/hidden/test_areas.py MOST_CHANGE": "there in at most 6,000 together",
    "lesson6/hidden/test_copy_on_write.py BUDGET": "At most 60 instructions for each mapped page",
    "lesson6/hidden/test_copy_on_write.py FORK_ALONE": "and 25,000 for the rest",
    "lesson6/hidden/test_page_tables.py MOST_EMPTY": "in at most 150,000 instructions",
}
CONSTANTS = re.compile(r"^([A-Z_]+(?:, [A-Z_]+)*) = ([\d_ ,+]+?)(?:  # (.*))?$", re.MULTILINE)


def constants() -> dict[str, int]:
    """The numbers of the hidden tests, by file and name: those that are in the list, and all whose
    comment speaks of instructions."""
    found = {}
    for path in sorted((ROOT / "tests").glob("lesson?/hidden/test_*.py")):
        for names, numbers, comment in CONSTANTS.findall(path.read_text()):
            for name, number in zip(names.split(", "), numbers.split(", "), strict=True):
                place = f"{path.relative_to(ROOT / 'tests')} {name}"
                if place in FIGURES or "instructions" in comment:
                    found[place] = sum(map(int, number.split("+")))
    return found


def test_every_figure_is_listed():
    """A hidden test that counts instructions says which words of the text allow so many."""
    assert set(constants()) == set(FIGURES)


@pytest.mark.parametrize("place", [each for each in FIGURES if "none: " not in FIGURES[each]])
def test_a_solution_may_need_what_the_text_allows(place):
    """The words are in the lesson's handout, and the test allows no less."""
    words = FIGURES[place]
    page = ROOT / "labs" / place.partition("/")[0] / "README.md"
    assert words in " ".join(page.read_text().split())
    (allowed,) = re.findall(r"\d[\d,]*", words)
    assert constants()[place] >= int(allowed.replace(",", ""))
