"""What a student reads after `make grade`: the points, why some are missing, what to type next."""

from __future__ import annotations

from collections.abc import Sequence

from labs.tools.grading.grade_report import Score, indented, table

ADVICE_LINES = 4
ALL_PASS = "All visible tests pass. The graders ask more: read the exercises once again."


def own_report(scores: Sequence[Score]) -> str:
    """The points of the visible tests, and what to do next."""
    parts = [table(scores)]
    for score in scores:
        if not score.is_full:
            lines = indented(advice(score, scores))
            parts.append(f"{score.exercise.id} {score.exercise.title}\n{lines}")
    return "\n\n".join(parts if len(parts) > 1 else [*parts, ALL_PASS])


def advice(score: Score, scores: Sequence[Score]) -> list[str]:
    """What failed, and what helps."""
    lines = [needs_words(score, scores)] if needs_words(score, scores) else []
    seen = set()
    for test in score.failed:
        if test.words not in seen and not test.words.startswith("not run: it"):
            seen.add(test.words)
            lines.append(f"{test.name}: {test.words}")
    more = len(lines) - ADVICE_LINES
    lines = [*lines[:ADVICE_LINES], f"... and {more} more"] if more > 0 else lines
    return [*lines, f"help:   make hint EX={score.exercise.id}", *replay_words(score)]


def needs_words(score: Score, scores: Sequence[Score]) -> str:
    """Which exercises come first, when they are not done."""
    own = score.exercise
    missing = [s.exercise.id for s in scores if s.exercise.id in own.needs and not s.is_full]
    if not missing:
        return ""
    one = len(missing) == 1
    listed = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
    return f"{own.id} needs {listed}, which {'does' if one else 'do'} not pass yet: begin there"


def replay_words(score: Score) -> list[str]:
    """The command that shows a failed test in gdb; not for one whose code is not written, or does
    not build: there is no machine to show."""
    nothing = ("is not written yet", "it does not build")
    for test in score.failed:
        if not any(words in test.words for words in nothing) and test.mode == "icount":
            return [f"replay: make replay TEST={test.name}"]
    return []
