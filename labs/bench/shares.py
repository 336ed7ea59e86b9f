"""How each class shares the processor: what user/shares.c prints, as a table."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

PROGRAM = "shares"
CLASSES = {"rr": "round robin", "mlfq": "multi-level feedback", "fair": "fair"}
LINUX = "linux"
TITLES = CLASSES | {LINUX: "Linux (CFS)"}
WEIGHTS = (1024, 335, 110, 36)
"""Linux's for niceness 0, 5, 10 and 15: sched_prio_to_weight in its kernel/sched/core.c."""

LINE = re.compile(rf"^{PROGRAM} (\w+) (equal|delay|nice)((?: \d+)+)$", re.MULTILINE)
HEAD = """\
| class | Jain's index of four | a sleeper is late (mean, most) | shares of nice 0, 5, 10, 15 |
|---|--:|--:|--:|
"""


class SharesError(Exception):
    """The figures cannot be had; the text says why."""


@dataclass(frozen=True)
class Shares:
    """A class's figures: rounds of the equal and of the unequal competitors; how late a sleeper
    wakes up beside the equal ones, mean and most, in microseconds."""

    equal: tuple[int, ...]
    nice: tuple[int, ...]
    delay: tuple[int, int]

    @property
    def jain(self) -> float:
        """Jain's index of fairness: 1 when all have the same, 1/n when one has all."""
        return sum(self.equal) ** 2 / (len(self.equal) * sum(each**2 for each in self.equal))

    @property
    def parts(self) -> list[float]:
        """The share of each of the unequal ones."""
        return [each / sum(self.nice) for each in self.nice]


def shares_of(output: str, classes: Iterable[str]) -> dict[str, Shares]:
    """The figures of these classes in a machine's output. Raises SharesError."""
    found: dict[str, dict[str, tuple[int, ...]]] = {name: {} for name in classes}
    for name, what, numbers in LINE.findall(output.replace("\r\n", "\n")):
        found[name][what] = tuple(map(int, numbers.split()))
    for name, each in found.items():
        if len(each) < len(dataclasses.fields(Shares)):
            last = "\n".join(output.splitlines()[-8:])
            raise SharesError(f"no shares of {name}; the last lines:\n{last}")
    return {name: Shares(**each) for name, each in found.items()}


def script() -> str:
    """What our kernel runs."""
    return f"run /bin/{PROGRAM} {' '.join(CLASSES)}"


def linux_words(words: str) -> str:
    """Linux's command line for the program as its first process."""
    return f"{words} rdinit=/bin/{PROGRAM} -- {LINUX}"


def percent(parts: Sequence[float]) -> str:
    """Shares as a reader wants them."""
    return ", ".join(f"{100 * each:.1f}" for each in parts) + " %"


def table(found: Mapping[str, Shares]) -> str:
    """The table in Markdown, and what the last column should be."""
    lines = []
    for name, title in TITLES.items():
        if name in found:
            each = found[name]
            late = "{:.1f} ms, {:.1f} ms".format(*(us / 1000 for us in each.delay))
            lines.append(f"| {title} | {each.jain:.4f} | {late} | {percent(each.parts)} |\n")
    weights = [each / sum(WEIGHTS) for each in WEIGHTS]
    return f"{HEAD}{''.join(lines)}\nBy Linux's weights the last column is {percent(weights)}.\n"
