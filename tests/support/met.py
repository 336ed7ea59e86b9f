"""What a random test promises to try: which cases it has met, and that it has met all of them.

met = Met("a copy that is read-only", "a late writer")
met("a late writer")
met.require()	fails: the run has not met "a copy that is read-only"

A seed changes how a case comes about, never whether. So a kernel is judged by the same cases with
each seed, and a run without one of them is a fault of the tests' own, and of nobody else.
"""

from __future__ import annotations

from collections import Counter


class TestsOwnFault(AssertionError):
    """A test did not do what it promises."""


class Met:
    """Counts cases, each by a few words."""

    def __init__(self, *cases: str) -> None:
        self._counts = Counter(dict.fromkeys(cases, 0))

    def __call__(self, case: str, times: int = 1) -> None:
        """A case was met, this many times."""
        assert case in self._counts, f"nobody promises {case}"
        self._counts[case] += times

    def lacks(self, least: int = 1) -> list[str]:
        """The cases that were met less often than this, and how often."""
        return [f"{case} ({n})" for case, n in self._counts.items() if n < least]

    def require(self, least: int = 1) -> None:
        """Each was met at least this many times. Raises TestsOwnFault."""
        if few := self.lacks(least):
            raise TestsOwnFault(f"the tests' own fault: not met, or too seldom: {', '.join(few)}")
