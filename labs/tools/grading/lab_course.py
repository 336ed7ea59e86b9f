"""Which tests of a group are run: a rule over their order and what came of those before.

The rule is used twice: while the tests run, to save time, and for the report, which so depends on
nothing but the planned order and what came of each test.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

HANGS_ALLOWED = 2

# Of one exercise, at both clock rates: many times what a finished one takes on a busy host. Without
# it a kernel that is slow, but never too slow for one machine, would keep the grader for hours.
PROCESSOR_SECONDS = 240
REAL_SECONDS = 7200  # for what waits without working; a busy host counts too
IN_NO_TIME = {"processor": 0.0, "real": 0.0}


@dataclass
class Course:
    """What has come so far of a group: the tests of one job and one exercise, in order. thorough:
    tests after gates that have all failed are run all the same, although they cannot change the
    score. brief: none is run after the first that fails. gates: of each test that is one, whether
    it passed at any clock rate."""

    thorough: bool = True
    brief: bool = False
    gates: dict[str, bool] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    hangs: int = 0
    processor: float = 0
    real: float = 0

    def why_not(self, test: str, gate: bool) -> str:
        """Why a test is not to be run, in the words of the report; empty when it is."""
        if not self.thorough and not gate and not is_open(self.gates):
            return "not run: nothing of this exercise works yet"
        if self.hangs >= HANGS_ALLOWED:
            return f"not run: the kernel did not end in {HANGS_ALLOWED} runs before"
        if self.processor > PROCESSOR_SECONDS or self.real > REAL_SECONDS:
            return "not run: the tests before it have taken all the time that an exercise has"
        if self.brief and self.failed:
            return "not run: a test before it has failed"
        if test in self.failed:
            return "not run: it failed at the other clock rate"
        return ""

    def note(self, record: Mapping[str, object]) -> None:
        """Takes the record of the next test, run or not."""
        self.processor += record["processor"]
        self.real += record["real"]
        test, passed = record["test"], record["passed"]
        if record["gate"]:
            self.gates[test] = passed or self.gates.get(test, False)
        if not passed:
            self.failed.add(test)
            self.hangs += record["stuck"]


def is_open(gates: Mapping[str, bool]) -> bool:
    """Whether an exercise can have points: one of its gates has passed, or it has none. A test that
    passes although nothing is written (a bad pointer is refused, no memory is lost) counts only
    then. Where there are hidden gates the visible ones open nothing: their questions are known."""
    hidden = [passed for test, passed in gates.items() if "/hidden/" in test]
    return any(hidden or gates.values()) or not gates


def settled(
    planned: list[dict],
    records: list[dict],
    thorough: Collection[str],
    brief: Collection[str] = (),
) -> tuple[list[dict], list[dict]]:
    """The record of each planned test as they would be had each group been run in order by one
    process, and the planned tests that it would have run and that have not been. thorough, brief:
    the names of the jobs that are."""
    ran = {place(each): each for each in records if each["ran"]}
    courses: dict[tuple[str, str], Course] = {}
    known, missing = [], []
    for item in planned:
        group = (item["job"], item["exercise"])
        course = courses.setdefault(group, Course(item["job"] in thorough, item["job"] in brief))
        if words := course.why_not(item["test"], item["gate"]):
            record = not_run(item, words)
        elif not (record := ran.get(place(item))):
            missing.append(item)
            continue
        course.note(record)
        known.append(record)
    return known, missing


def place(record: Mapping[str, object]) -> tuple[object, ...]:
    """What tells a run of a test from all others."""
    return record["job"], record["test"], record["mode"]


def not_run(item: Mapping[str, object], words: str) -> dict:
    """The record of a test that is not run."""
    return {**item, "passed": False, "ran": False, "stuck": False, "words": words, **IN_NO_TIME}
