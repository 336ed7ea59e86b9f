"""Who is in the class, when each submission came, and what that costs: two files of data.

The roster is a CSV with a line of names at its top: id, name, and if the platform calls a
submission otherwise, submission. The rules are a TOML:

    [lesson.1]
    due = 2026-10-14T23:59:00+02:00
    late_days = 3           accepted so many days later; 0 if there is none
    cost = 10               percent of the points for each late day that has begun
    attempts = 2            so many count; without it all
    counts = "last"         or "best": which of them

    [free_days]             late days that cost nothing, by student
    anna = 2

    [handed_in]             when each came, by its name in SUBMISSIONS; one without is in time
    "anna.zip" = 2026-10-15T07:30:00+02:00
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from labs.tools.course.exercises import word_of
from labs.tools.machine.command import CommandError

DAY = timedelta(days=1)
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".bundle", ".git")
COLUMNS = ("id", "name", "submission")


@dataclass(frozen=True)
class Student:
    """A line of the roster. submission: how the names of this student's submissions begin, if
    neither with the id nor with the name."""

    id: str
    name: str = ""
    submission: str = ""


@dataclass(frozen=True)
class Rules:
    """The rules of one lesson. attempts: 0 without a limit."""

    due: datetime | None = None
    late_days: int = 0
    cost: float = 0
    attempts: int = 0
    counts: str = "last"
    free_days: Mapping[str, int] = field(default_factory=dict)
    handed_in: Mapping[str, datetime] = field(default_factory=dict)

    def days_late(self, submission: str) -> int:
        """How many days after the due time have begun when it came; 0 for one in time."""
        came = self.handed_in.get(submission)
        if self.due is None or came is None or came <= self.due:
            return 0
        return -((self.due - came) // DAY)

    def share(self, submission: str, student: str) -> float:
        """What part of its points a submission keeps, from 0 to 1."""
        days = self.days_late(submission) - self.free_days.get(student, 0)
        if days > self.late_days:
            return 0.0
        return max(0.0, round(1 - self.cost / 100 * max(0, days), 4))


# ---- the roster ----------------------------------------------------------------------------------


def read_roster(path: Path) -> list[Student]:
    """The students of a CSV. Raises CommandError, which names the line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"ROSTER={path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"ROSTER={path}: not UTF-8, byte {error.start} of it") from error
    table = csv.DictReader(io.StringIO(text, newline=""), restkey="more")
    if "id" not in (table.fieldnames or ()):
        raise CommandError(f'ROSTER={path}: its first line is to be "id,name"')
    found: dict[str, Student] = {}
    for row in table:
        known = {name: (row.get(name) or "").strip() for name in COLUMNS}
        if not known["id"] or known["id"] in found or "more" in row:
            raise CommandError(f"ROSTER={path}:{table.line_num}: {why_not(known['id'], found)}")
        found[known["id"]] = Student(**known)
    return list(found.values())


def why_not(student: str, found: Mapping[str, Student]) -> str:
    """What is wrong with a line of the roster."""
    if student in found:
        return f"{student} is there twice"
    return "it has more columns than the first line" if student else "there is no id"


def stem_of(submission: str) -> str:
    """A submission's name without what says how it is packed."""
    suffixes = [each for each in SUFFIXES if submission.casefold().endswith(each)]
    return submission[: -len(max(suffixes, key=len))] if suffixes else submission


def owner_of(submission: str, roster: Sequence[Student]) -> Student | None:
    """Whose submission that is: its name begins with the student's id, or name, and then has no
    letter and no digit (anna, anna-2, Anna Muster_4711_assignsubmission_file). Without a roster it
    is the name's own; None where nobody in the roster fits."""
    stem = stem_of(submission)
    if not roster:
        return Student(stem.partition("@")[0])
    fits = [
        (len(key), student)
        for student in roster
        for key in (student.submission, student.id, student.name)
        if key and begins(stem.casefold(), key.casefold())
    ]
    return max(fits, key=lambda each: each[0])[1] if fits else None


def begins(stem: str, key: str) -> bool:
    """Whether a name begins with a key, and with no longer word."""
    return stem.startswith(key) and not stem[len(key) : len(key) + 1].isalnum()


# ---- the rules -----------------------------------------------------------------------------------


def read_rules(path: Path, lesson: int) -> Rules:
    """The rules of a lesson. Raises CommandError, which names the entry."""
    try:
        table = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise CommandError(f"RULES={path}: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"RULES={path}: {error}") from error
    own = table_in(table.get("lesson", {}), word_of(lesson), path)
    unknown = {*own} - {"due", "late_days", "cost", "attempts", "counts"}
    unknown |= {*table} - {"lesson", "free_days", "handed_in"}
    if unknown:
        raise CommandError(f"RULES={path}: there is no rule {min(unknown)}")
    if own.get("counts", "last") not in ("last", "best"):
        raise CommandError(f'RULES={path}: counts is "last" or "best"')
    rules = {name: number(own, name, path) for name in ("late_days", "cost", "attempts")}
    free = table_in(table, "free_days", path)
    came = table_in(table, "handed_in", path)
    return Rules(
        due=time_in(own, "due", path) if "due" in own else None,
        counts=own.get("counts", "last"),
        free_days={student: number(free, student, path) for student in free},
        handed_in={name: time_in(came, name, path) for name in came},
        **rules,
    )


def table_in(table: Any, name: str, path: Path) -> dict[str, Any]:
    """A table of a table, empty if it is not there. Raises CommandError."""
    found = table.get(name, {}) if isinstance(table, dict) else None
    if not isinstance(found, dict):
        raise CommandError(f"RULES={path}: {name} is to be a table")
    return found


def number(table: Mapping[str, Any], name: str, path: Path) -> Any:
    """A number from 0 on of the rules; 0 if it is not there. Raises CommandError."""
    value = table.get(name, 0)
    if type(value) not in (int, float) or not 0 <= value <= 1000:
        raise CommandError(f"RULES={path}: {name} is to be a number from 0 to 1000")
    return value


def time_in(table: Mapping[str, Any], name: str, path: Path) -> datetime:
    """A time of the rules. Raises CommandError where it is not one for all the world."""
    value = table[name]
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise CommandError(
            f"RULES={path}: {name} is to be a time with its zone, as 2026-10-14T23:59:00+02:00"
        )
    return value
