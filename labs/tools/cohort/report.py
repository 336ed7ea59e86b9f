"""What a class gets back: grades.csv, a page for each student, and a page for the instructor.

The pages open from a folder, without a server. Nothing in them depends on the time, on the machine
or on the order in which the jobs were done.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import mean, median
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from labs.tools.cohort.one import Result, asked_of, write_whole
from labs.tools.cohort.rules import Rules, Student, owner_of
from labs.tools.course.exercises import Exercise, name_of, word_of
from labs.tools.course.handed_in import answers_path, measuring
from labs.tools.grading.grade_report import Score, most, number, total
from labs.tools.grading.lab_plan import MODES
from labs.tools.grading.lab_words import DOES_NOT_BUILD, MISSING
from labs.tools.grading.test_run import TestResult

HARDEST = 15  # tests on the class's page
STEPS = 10  # of the distribution
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet computes
NOT_TAKEN = (
    "the handout's file is in place of yours, for the reason above; so nothing is written there"
)
PAGES = Path(__file__).parent / "pages"


# ---- who has how many points ---------------------------------------------------------------------


@dataclass
class Line:
    """A line of the table of grades. status: graded, refused, or nothing handed in; share: what is
    left of the points after late days; attempt: from 1, of those that are graded."""

    student: Student | None
    result: Result | None
    status: str
    days_late: int = 0
    share: float = 1.0
    attempt: int = 0
    counts: bool = False
    why: str = ""
    page: str = ""

    @property
    def earned(self) -> float:
        """The points of the tests alone."""
        return total(self.result.scores) if self.result else 0.0

    @property
    def points(self) -> float:
        """The points after late days."""
        return round(self.earned * self.share, 2)

    @property
    def id(self) -> str:
        """The student's."""
        return self.student.id if self.student else ""

    @property
    def heading(self) -> str:
        """Whose it is, for a page."""
        known = self.student and (self.student.name or self.student.id)
        return known or (self.result.name if self.result else "")


@dataclass
class Class:
    """A class's results, with what its rules make of them."""

    lesson: int
    rules: Rules
    roster: Sequence[Student]
    results: Sequence[Result]
    exercises: dict[str, Exercise] = field(init=False)

    def __post_init__(self) -> None:
        self.exercises = asked_of(self.lesson)

    @cached_property
    def lines(self) -> list[Line]:
        """A line for each submission, and for each student of the roster without one; by student,
        and then in the order in which they came."""
        lines = [self._line(result) for result in self.results]
        for own in by_student(lines).values():
            self._count(own)
        there = {line.id for line in lines}
        lines += [Line(each, None, "nothing") for each in self.roster if each.id not in there]
        return sorted(lines, key=lambda line: (line.id == "", line.id, self._order(line)))

    @property
    def counting(self) -> list[Line]:
        """The lines that count: one for each student who has a grade."""
        return [line for line in self.lines if line.counts]

    def _order(self, line: Line) -> tuple[float, str]:
        """When a submission came; those without a time first, by name."""
        name = line.result.name if line.result else ""
        came = self.rules.handed_in.get(name)
        return (came.timestamp() if came else 0.0, name)

    def _line(self, result: Result) -> Line:
        """The line of one submission, alone."""
        student = owner_of(result.name, self.roster)
        days = self.rules.days_late(result.name)
        if result.reading.refusal:
            return Line(student, result, "refused", days, why=result.reading.refusal)
        share = self.rules.share(result.name, student.id if student else "")
        why = "too late" if days and not share else ""
        return Line(student, result, "graded", days, share, why=why if student else "not in ROSTER")

    def _count(self, lines: list[Line]) -> None:
        """Says which of a student's submissions counts."""
        graded = sorted((each for each in lines if each.status == "graded"), key=self._order)
        for attempt, line in enumerate(graded, 1):
            line.attempt = attempt
        allowed = graded[: self.rules.attempts or None]
        for line in graded[len(allowed) :]:
            line.why = f"attempt {line.attempt}, of {self.rules.attempts}"
        if allowed:
            is_best = self.rules.counts == "best"
            chosen = max(allowed, key=lambda each: each.points) if is_best else allowed[-1]
            chosen.counts = True


def by_student(lines: Sequence[Line]) -> Mapping[str, list[Line]]:
    """The lines of each student. One that is nobody's stands alone."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.id or f"\0{line.result.name}", []).append(line)
    return found


# ---- the table -----------------------------------------------------------------------------------


def grades(known: Class) -> str:
    """grades.csv: a line for each submission, and for each student without one."""
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n")
    head = ["student", "name", "submission", "attempt", "status", "days late", "counts"]
    table.writerow([*head, "points", "before late days", *known.exercises, "why"])
    for line in known.lines:
        table.writerow(map(cell, row(line, known)))
    return out.getvalue()


def row(line: Line, known: Class) -> list[str]:
    """A line of the table."""
    student = line.student or Student("")
    scores = line.result.scores if line.result else ()
    points = {score.exercise.id: score.points for score in scores}
    is_graded = line.status == "graded"
    return [
        student.id,
        student.name,
        line.result.name if line.result else "",
        str(line.attempt or ""),
        line.status,
        str(line.days_late),
        "yes" if line.counts else "no",
        number(line.points) if is_graded else "0",
        number(line.earned) if is_graded else "",
        *(number(points[each]) if each in points else "" for each in known.exercises),
        line.why,
    ]


def cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula, whatever a student has called a file."""
    return f"'{text}" if text.startswith(FORMULA) else text


# ---- why points are missing ----------------------------------------------------------------------


@dataclass(frozen=True)
class Loss:
    """Points that one reason has cost. expected, seen: by tests whose first has this title; more:
    how many others say the same; hidden: the student has none of these tests; again: the command
    that shows it."""

    points: float
    expected: str
    seen: str
    more: int
    hidden: bool
    name: str
    again: str


def losses(score: Score) -> list[Loss]:
    """Why an exercise's points are missing: those that cost most come first, and together they are
    what is missing."""
    tests: dict[str, list[TestResult]] = {}
    for test in score.failed:
        tests.setdefault(test.words, []).append(test)
    lost = score.exercise.points - score.points
    weights = [weight_of(same, score) for same in tests.values()]
    whole = sum(weights) or 1
    found = [
        loss_of(same, score, lost * weight / whole)
        for same, weight in zip(tests.values(), weights, strict=True)
    ]
    return sorted(found, key=lambda each: -each.points)


def weight_of(tests: Sequence[TestResult], score: Score) -> float:
    """What tests weigh; all the same where only tests without a weight have failed."""
    return sum(test.weight for test in tests) or (0 if any(t.weight for t in score.failed) else 1)


def loss_of(tests: Sequence[TestResult], score: Score, points: float) -> Loss:
    """The loss by tests that say the same."""
    first = next((each for each in tests if not each.is_hidden), tests[0])
    return Loss(
        points=round(points, 2),
        expected=first.title or first.name,
        seen=NOT_TAKEN if score.problems and MISSING.search(first.words) else first.words,
        more=len(tests) - 1,
        hidden=first.is_hidden,
        name=first.name,
        again=command_for(first, score),
    )


def command_for(test: TestResult, score: Score) -> str:
    """What a student types to see it again. A hidden test is not in their tree; the exercise's
    visible ones are."""
    exercise = score.exercise
    if exercise.id.endswith(".M"):
        return measuring(exercise.lesson)
    if not exercise.files:
        return f"make grade LESSON={word_of(exercise.lesson)}"
    can_replay = test.mode in MODES or test.program
    if test.is_hidden or not can_replay or test.words.startswith(DOES_NOT_BUILD):
        return f"make grade EX={exercise.id}"
    if MISSING.search(test.words):
        return f"make grade EX={exercise.id}"
    mode = f" MODE={test.mode}" if test.mode in MODES[1:] else ""
    return f"make replay TEST={test.name}{mode}"


def to_read(score: Score) -> str:
    """What helps: the handout where nothing is written, a nudge where nothing works, the steps and
    pitfalls where something does."""
    exercise = score.exercise
    handout = f"labs/{name_of(exercise.lesson)}/README.md"
    if score.problems and exercise.files:
        return f"what is wrong with the files; make grade EX={exercise.id} shows it again"
    if exercise.id.endswith(".A"):
        return f"{answers_path(exercise.lesson)} has the questions; {handout} what they are about"
    if not exercise.hints:
        return handout
    if any(MISSING.search(test.words) and exercise.id in test.words for test in score.failed):
        return f"{handout}, then make hint EX={exercise.id} LAYER=1"
    return f"make hint EX={exercise.id} LAYER={2 if score.share else 1}"


# ---- the class -----------------------------------------------------------------------------------


def distribution(known: Class) -> list[tuple[str, int]]:
    """How many students have how many points, in ten steps."""
    of = most(known.counting[0].result.scores) if known.counting else 100
    steps = Counter(min(int(line.points * STEPS / of), STEPS - 1) for line in known.counting)
    width = of / STEPS
    return [(f"{n * width:g} to {(n + 1) * width:g}", steps[n]) for n in range(STEPS)]


def hardest(known: Class) -> list[dict[str, Any]]:
    """The tests that most students have failed, of those that some have."""
    failed: Counter[tuple[str, str]] = Counter()
    titles: dict[tuple[str, str], TestResult] = {}
    for line in known.counting:
        for score in line.result.scores:
            for test in score.failed:
                failed[score.exercise.id, test.test] += 1
                titles[score.exercise.id, test.test] = test
    order = sorted(failed, key=lambda each: (-failed[each], each))[:HARDEST]
    return [{"exercise": key[0], "test": titles[key], "failed": failed[key]} for key in order]


def by_exercise(known: Class) -> list[dict[str, Any]]:
    """The mean of each exercise, and its hints."""
    found = []
    for number_, exercise in known.exercises.items():
        scores = [
            s for line in known.counting for s in line.result.scores if s.exercise == exercise
        ]
        shown = [line.result.reading.hints.get(number_, 0) for line in known.counting]
        found.append(
            {
                "exercise": exercise,
                "mean": mean([score.points for score in scores]) if scores else 0.0,
                "full": sum(score.is_full for score in scores),
                "hints": mean(shown) if shown else 0.0,
                "last_hint": sum(1 for n in shown if n and n >= len(exercise.hints)),
            }
        )
    return found


def hours_left(known: Class) -> list[float]:
    """How many hours before it was due each counting submission came, sorted; of those whose time
    is known."""
    due, came = known.rules.due, known.rules.handed_in
    names = [line.result.name for line in known.counting]
    return sorted((due - came[n]).total_seconds() / 3600 for n in names if due and n in came)


# ---- pages ---------------------------------------------------------------------------------------


def pages() -> Environment:
    """The templates. Whatever a student wrote is text there, and nothing else."""
    made = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"number": number, "losses": losses, "to_read": to_read}
    made.globals |= {"most": most, "total": total, "word_of": word_of}
    return made


def write_class(known: Class, output: Path) -> None:
    """Writes grades.csv, index.html and a page for each submission; removes older pages."""
    made, wanted = pages(), set[str]()
    for line in known.lines:
        if line.result:
            line.page = f"students/{line.result.key}.html"
            wanted.add(f"{line.result.key}.html")
            text = made.get_template("student.html").render(line=line, known=known)
            write_whole(output / line.page, text)
    for path in sorted((output / "students").glob("*.html")):
        if path.name not in wanted:
            path.unlink()
    facts = {
        "known": known,
        "distribution": distribution(known),
        "hardest": hardest(known),
        "exercises": by_exercise(known),
        "hours": hours_left(known),
        "median": median([line.points for line in known.counting] or [0]),
    }
    own = {each.result.key: each.id or each.heading for each in known.lines if each.attempt}
    write_whole(output / "work/students.json", json.dumps(own, indent=1, sort_keys=True))
    write_whole(output / "index.html", made.get_template("class.html").render(facts))
    write_whole(output / "grades.csv", grades(known))
